/* An index of a run, from cases to rows: a hash table with open addressing. */
#include "support/row_index.h"

#include <stdlib.h>

enum lb_status lb_row_index_create(const struct lb_run *run, struct lb_row_index *index,
                                   struct lb_error *err)
{
    size_t size = 16;
    while (size < 2 * run->count)
        size *= 2;
    *index = (struct lb_row_index){run, calloc(size, sizeof(*index->slots)), size - 1};
    if (!index->slots)
        return lb_fail(err, LB_OOM, "out of memory for an index of %zu rows", run->count);
    for (size_t i = 0; i < run->count; i++) {
        size_t slot = (size_t)lb_case_hash(&run->rows[i].c) & index->mask;
        while (index->slots[slot])
            slot = (slot + 1) & index->mask;
        index->slots[slot] = i + 1;
    }
    return LB_OK;
}

void lb_row_index_free(struct lb_row_index *index)
{
    free(index->slots);
    *index = (struct lb_row_index){0};
}

/* Labels of a run are equal when they are the same string. */
const struct lb_row *lb_row_index_find(const struct lb_row_index *index, const struct lb_case *c,
                                       const struct lb_row *like)
{
    size_t slot = (size_t)lb_case_hash(c) & index->mask;
    for (; index->slots[slot]; slot = (slot + 1) & index->mask) {
        const struct lb_row *row = &index->run->rows[index->slots[slot] - 1];
        if (lb_case_same(&row->c, c) && row->label == like->label)
            return row;
    }
    return NULL;
}
