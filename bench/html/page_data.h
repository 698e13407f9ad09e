/* The data of the page, from which plots/report.js draws everything. */
#ifndef LB_PAGE_DATA_H
#define LB_PAGE_DATA_H

#include "plot/grouped_run.h"

/* What the page is made of. */
struct lb_page_source {
    const struct lb_grouped_run *grouped;
    const char *path;                  /* of the run, as it was named */
    const struct lb_run *const *bases; /* [base_count] earlier runs to compare with */
    const char *const *base_paths;     /* [base_count] */
    size_t base_count;
    double margin; /* of these comparisons, as in lb_compare_options */
};

/* The run's records and what was found in them, as one new JSON object. Texts that repeat are
 * stored once, in "texts"; a case refers to them by index. NULL with the reason in err. */
json_t *lb_page_data(const struct lb_page_source *source, struct lb_error *err);

#endif
