/* The name a person probably meant: edit distance over short names. */
#ifndef LB_SUGGEST_H
#define LB_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* True when name is near word and nearer than *distance, which is lowered to its own distance;
 * start from SIZE_MAX. For names that do not lie in one array:
 *
 *     size_t distance = SIZE_MAX;
 *     for (size_t i = 0; i < count; i++)
 *         if (lb_is_nearer(word, entries[i].name, &distance))
 *             best = entries[i].name;
 *
 * Distance counts insertions, deletions, substitutions and swaps of neighbours, ignoring case; an
 * abbreviation ("cpu" for "cpu_ref") counts 1. Near is up to a third of the word's length, and 1.
 */
bool lb_is_nearer(const char *word, const char *name, size_t *distance);

/* The nearest of names (NULL-terminated), the first of equals; NULL when none is near. */
const char *lb_suggest(const char *word, const char *const *names);

#ifdef __cplusplus
}
#endif
#endif
