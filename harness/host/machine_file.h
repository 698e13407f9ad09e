/* Files that describe a GPU or a CPU that is not there: lines of the form "key = value". */
#ifndef LB_MACHINE_FILE_H
#define LB_MACHINE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

enum lb_machine_value {
    LB_REAL,          /* double above 0 */
    LB_WHOLE,         /* int above 0 */
    LB_REAL_OR_ZERO,  /* double, 0 or above */
    LB_WHOLE_OR_ZERO, /* int, 0 or above */
    LB_NAME,          /* char[64]; a file that names a known machine must still give it */
    LB_OTHER          /* read by the key's own function */
};

/* A key and where its value goes: `offset` bytes into the description. */
struct lb_machine_key {
    const char *name;
    enum lb_machine_value type;
    size_t offset;
    /* Of LB_OTHER: false when the value is wrong, and what it must be. */
    bool (*read)(const char *value, void *to);
    const char *wanted;
};

/* What kind of machine files describe. */
struct lb_machine_kind {
    const char *noun; /* "device" */
    const struct lb_machine_key *keys;
    size_t key_count;    /* at most 64 */
    const char *known;   /* the names for "like", for messages */
    const char *example; /* one of them */
    /* "like = name": fills in the whole description; false when there is no such machine. */
    bool (*like)(const char *name, void *description);
};

/* Reads a file. LB_INVALID names the line and the key that is wrong or missing; LB_IO: the file
 * cannot be read. *description may be changed in each case. */
enum lb_status lb_machine_file_read(const char *path, const struct lb_machine_kind *kind,
                                    void *description, struct lb_error *err);

/* Whether a readable file has a line with that key and, unless it is NULL, that value. */
bool lb_machine_file_has(const char *path, const char *key, const char *value);

#endif
