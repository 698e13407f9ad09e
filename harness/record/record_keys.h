/* The keys of a row, as writer and reader of rows share them. */
#ifndef LB_RECORD_KEYS_H
#define LB_RECORD_KEYS_H

#include <stddef.h>

#include "record/record.h"

extern const char *const lb_verdict_names[LB_VERDICT_COUNT];
extern const char *const lb_stop_names[LB_STOP_COUNT];

/* Every number of a row that stands by itself. Derived ones are written, and never read. */
#define LB_NUMBER_KEYS 36
struct lb_number_key {
    const char *key;
    size_t offset;
    bool derived;
};
extern const struct lb_number_key lb_number_keys[LB_NUMBER_KEYS];
double *lb_row_number(struct lb_row *row, size_t key); /* where the row holds it */

#define LB_TEXT_KEYS 4
struct lb_text_key {
    const char *key;
    size_t offset, size;
};
extern const struct lb_text_key lb_text_keys[LB_TEXT_KEYS];

/* Puts the keys that say which case it is; false when memory runs out. */
bool lb_put_case(json_t *object, const struct lb_case *c);

#endif
