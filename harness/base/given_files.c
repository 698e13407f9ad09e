/* What a user gives for all cases. */
#include "base/given_files.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static struct lb_given_files current; /* owns its texts */
static unsigned version;

/* Replaces a text of the current files by a copy of another. */
static void give(const char **text, const char *given, bool *changed)
{
    if (*text && given ? strcmp(*text, given) == 0 : *text == given)
        return;
    char *copy = given ? lb_needed(strdup(given)) : NULL;
    free((void *)(uintptr_t)*text);
    *text = copy;
    *changed = true;
}

void lb_give_files(const struct lb_given_files *given)
{
    bool changed = current.batch_first != given->batch_first || current.tune != given->tune;
    give(&current.weights, given->weights, &changed);
    give(&current.prefix, given->prefix, &changed);
    give(&current.inputs, given->inputs, &changed);
    give(&current.tuned, given->tuned, &changed);
    current.batch_first = given->batch_first;
    current.tune = given->tune;
    version += changed;
}

const struct lb_given_files *lb_given_files(void)
{
    return &current;
}

unsigned lb_given_files_version(void)
{
    return version;
}
