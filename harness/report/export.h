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

/* The format with that name; NULL when there is none. */
const struct lb_export_format *lb_export_find(const char *name);

/* Writes the run as folder/file_name. An earlier file is replaced only when the new one is
 * complete. LB_IO, LB_OOM. */
enum lb_status lb_export_to_folder(const struct lb_export_format *format, const struct lb_run *run,
                                   const char *folder, struct lb_error *err);

/* Google Benchmark JSON with one entry per case and the numbers of the record as counters. Failed
 * cases (lb_verdict_is_failure) have error_occurred. Other cases without a time are left out,
 * because trackers would make a series of times of each entry. */
enum lb_status lb_export_gbench(const struct lb_run *run, FILE *out, struct lb_error *err);

/* Google Benchmark JSON with one entry per block of samples, as repetitions for compare.py. Cases
 * without a time are left out, because compare.py includes every entry in its geometric mean. */
enum lb_status lb_export_gbench_repetitions(const struct lb_run *run, FILE *out,
                                            struct lb_error *err);

/* CSV: a header line, then one line per case. The columns are the keys of the record in their
 * order. Of an array only the length is written; the column of samples_ns is called "samples".
 * Unknown values are empty. Fields are quoted as in RFC 4180, and lines end with LF. */
enum lb_status lb_export_csv(const struct lb_run *run, FILE *out, struct lb_error *err);

/* Bencher Metric Format with the measure latency: the median in ns and its interval. Only cases
 * with a time. */
enum lb_status lb_export_bmf(const struct lb_run *run, FILE *out, struct lb_error *err);

/* github-action-benchmark's customSmallerIsBetter: the median in ns. Only cases with a time. */
enum lb_status lb_export_github(const struct lb_run *run, FILE *out, struct lb_error *err);

/* The format of hyperfine's --export-json: every sample, in seconds. The user and system times,
 * which are not measured, are 0. Only cases with a time. */
enum lb_status lb_export_hyperfine(const struct lb_run *run, FILE *out, struct lb_error *err);

/* JUnit XML with one test per case: wrong is a failure; timeout, crash and error are errors; a case
 * that did not run is skipped. The time of a test is that of the whole case. */
enum lb_status lb_export_junit(const struct lb_run *run, FILE *out, struct lb_error *err);

/* Markdown: a table with one line per case, up to LB_MARKDOWN_LIMIT bytes. */
enum lb_status lb_export_markdown(const struct lb_run *run, FILE *out, struct lb_error *err);

#endif
