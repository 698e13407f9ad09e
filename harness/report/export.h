/* Other tools' formats, derived from a run: nothing is in them that is not in run.jsonl. */
#ifndef LB_EXPORT_H
#define LB_EXPORT_H

#include <stdio.h>

#include "record/run_file.h"

struct lb_export_format {
    const char *name;      /* as in --export NAME */
    const char *file_name; /* in the folder of the run */
    const char *summary;   /* one line for --help */
    /* Writes the run to out, which the caller checks for errors and closes; LB_OOM. */
    enum lb_status (*write)(const struct lb_run *run, FILE *out, struct lb_error *err);
};

/* All formats; the last has a NULL name. */
extern const struct lb_export_format lb_export_formats[];

/* NULL when there is none of that name. */
const struct lb_export_format *lb_export_find(const char *name);

/* Writes the run as folder/file_name, in place of an earlier one only when all went well. */
enum lb_status lb_export_to_folder(const struct lb_export_format *format, const struct lb_run *run,
                                   const char *folder, struct lb_error *err);

/* Google Benchmark JSON, one row a case, with the numbers of the record as counters. Failed cases
 * (lb_verdict_is_failure) are rows with error_occurred; other cases without a time are left out,
 * for trackers take every row as a series. */
enum lb_status lb_export_gbench(const struct lb_run *run, FILE *out, struct lb_error *err);

/* Google Benchmark JSON, one row a block of samples: repetitions for compare.py. Cases without a
 * time are left out, for it takes the time of every row into its geometric mean. */
enum lb_status lb_export_gbench_repetitions(const struct lb_run *run, FILE *out,
                                            struct lb_error *err);

/* CSV: a header line, then a line a case. The columns are the keys of the record in their order;
 * where one holds an array its length stands, that of samples_ns as "samples". Unknown is empty.
 * Quoting as in RFC 4180, lines end in LF. */
enum lb_status lb_export_csv(const struct lb_run *run, FILE *out, struct lb_error *err);

/* Bencher Metric Format: measure latency, the median in ns and its interval. Timed cases only. */
enum lb_status lb_export_bmf(const struct lb_run *run, FILE *out, struct lb_error *err);

/* github-action-benchmark's customSmallerIsBetter: the median in ns. Timed cases only. */
enum lb_status lb_export_github(const struct lb_run *run, FILE *out, struct lb_error *err);

/* hyperfine's --export-json: seconds, every sample; user and system are not measured, and 0. Timed
 * cases only. */
enum lb_status lb_export_hyperfine(const struct lb_run *run, FILE *out, struct lb_error *err);

/* JUnit XML: wrong is a failure; timeout, crash and error are errors; what did not run is skipped.
 * A test's time is that of the whole case. */
enum lb_status lb_export_junit(const struct lb_run *run, FILE *out, struct lb_error *err);

/* Markdown: a line a case, as many as fit LB_MARKDOWN_LIMIT. */
enum lb_status lb_export_markdown(const struct lb_run *run, FILE *out, struct lb_error *err);

#endif
