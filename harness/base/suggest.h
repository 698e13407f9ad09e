/* "Did you mean ...?": the name that a misspelt word probably stands for, by edit distance. */
#ifndef LB_SUGGEST_H
#define LB_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true, and lowers *distance, which starts as SIZE_MAX, when name is similar to word and
 * closer to it than *distance. The distance counts insertions, deletions, substitutions and swaps
 * of neighbouring letters, and ignores case; an abbreviation ("cpu" for "cpu_ref") has the distance
 * 1. A name is similar when its distance is at most a third of the word's length, plus 1, and below
 * the word's length. */
bool lb_is_closer(const char *word, const char *name, size_t *distance);

/* The end of a message about an unknown word: "did you mean X?" with the most similar of the known
 * names, else "there are X, Y, Z". Begin with {0} and add the names one at a time. */
struct lb_hint {
    char text[400];
    size_t distance; /* of the name in text, plus 1; 0: none is similar */
};

void lb_hint_add(struct lb_hint *hint, const char *word, const char *name);

/* The same with the names of the folder's files that end in suffix, such as ".json", without it. */
void lb_hint_add_files(struct lb_hint *hint, const char *word, const char *folder,
                       const char *suffix);
#endif
