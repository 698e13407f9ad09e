/* An index of a run: finds the row of a case. */
#ifndef LB_ROW_INDEX_H
#define LB_ROW_INDEX_H

#include "record/run_file.h"

/* Zero it before use. */
struct lb_row_index {
    const struct lb_run *run;
    size_t *slots; /* [mask + 1] row number plus one; 0: free */
    size_t mask;
};

/* The run is borrowed and must outlive the index. LB_OOM. */
enum lb_status lb_row_index_create(const struct lb_run *run, struct lb_row_index *index,
                                   struct lb_error *err);
void lb_row_index_free(struct lb_row_index *index); /* accepts a zeroed one */

/* The row of the case on the device of `like` (lb_row.label); NULL when the run has none. */
const struct lb_row *lb_row_index_find(const struct lb_row_index *index, const struct lb_case *c,
                                       const struct lb_row *like);

#endif
