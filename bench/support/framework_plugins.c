/* The frameworks that --framework names, and where their plug-ins lie. */
#include "support/framework_plugins.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"

const char *const lb_framework_names[] = {
    "pytorch",          "keras",    "onnxruntime", "jax", "pytorch_cuda", "keras_cuda",
    "onnxruntime_cuda", "jax_cuda", NULL};

const char *const lb_framework_absent =
    "its plug-in was not built: that needs the headers and the library of Python 3";

bool lb_framework_plugin(const char *name, char *path, size_t size)
{
    static const char *const folders[] = {"frameworks", LB_PLUGINS_FROM_BINARY};
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, size, "%s/%s/bench_lstm_%s.so", program, folders[i], name);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

enum lb_status lb_framework_find(const char *text, size_t length, const char **name,
                                 struct lb_error *err)
{
    char word[64], all[200] = "";
    snprintf(word, sizeof(word), "%.*s", (int)length, text);
    for (size_t i = 0; lb_framework_names[i]; i++) {
        size_t used = strlen(all);
        *name = lb_framework_names[i];
        if (strlen(*name) == length && memcmp(*name, text, length) == 0)
            return LB_OK;
        snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", *name);
    }
    const char *suggestion = lb_suggest(word, lb_framework_names);
    return suggestion ? lb_fail(err, LB_INVALID,
                                "--framework %s: there is no such framework; did you mean %s?",
                                word, suggestion)
                      : lb_fail(err, LB_INVALID, "--framework %s: allowed are %s", word, all);
}
