/* Exports a run to other tools' formats, which contain nothing that run.jsonl does not have. */
#ifndef LB_EXPORT_H
#define LB_EXPORT_H

#include <stdio.h>

#include "record/run_file.h"

struct lb_export_format {
    const char *name;      /* as in --export NAME */
    const char *file_name; /* of the exported file, in the folder of the run */
    void (*write)(const struct lb_run *run, FILE *out); /* the caller checks out for errors */
};

/* All formats; the last one has a NULL name. */
extern const struct lb_export_format lb_export_formats[];

/* Google Benchmark JSON with one entry per case and the numbers of the record as counters. Of cases
 * without a time it has those that failed (lb_verdict_is_failure) or are suspect, as errors. */
void lb_export_gbench(const struct lb_run *run, FILE *out);

#endif
