/* Exports a run to other tools' formats, which contain nothing that run.jsonl does not have. */
#ifndef LB_EXPORT_H
#define LB_EXPORT_H

#include <stdio.h>

#include "record/run_file.h"

struct lb_export_format {
    const char *name;      /* as in --export NAME */
    const char *file_name; /* of the exported file, in the folder of the run */
    const char *summary;   /* one line for --help */
    /* Writes the run to out, which the caller checks for errors and closes; LB_OOM. */
    enum lb_status (*write)(const struct lb_run *run, FILE *out, struct lb_error *err);
};

/* All formats; the last one has a NULL name. */
extern const struct lb_export_format lb_export_formats[];

/* Writes the run as folder/file_name. An earlier file is replaced only when the new one is
 * complete. LB_IO, LB_OOM. */
enum lb_status lb_export_to_folder(const struct lb_export_format *format, const struct lb_run *run,
                                   const char *folder, struct lb_error *err);

/* Google Benchmark JSON with one entry per case and the numbers of the record as counters. Failed
 * cases (lb_verdict_is_failure) have error_occurred. Other cases without a time are left out,
 * because trackers would make a series of times of each entry. */
enum lb_status lb_export_gbench(const struct lb_run *run, FILE *out, struct lb_error *err);

#endif
