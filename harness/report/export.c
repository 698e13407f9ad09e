/* The table of export formats, and writing an export into the folder of its run. */
#include "report/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic_file.h"

const struct lb_export_format lb_export_formats[] = {
    {"gbench", "benchmark.json", "Google Benchmark JSON, one entry per case, for trackers",
     lb_export_gbench},
    {"gbench-repetitions", "benchmark_repetitions.json",
     "Google Benchmark JSON, one entry per block of samples, for its compare.py",
     lb_export_gbench_repetitions},
    {"csv", "run.csv", "CSV, one line per case", lb_export_csv},
    {"bmf", "bmf.json", "Bencher Metric Format", lb_export_bmf},
    {"github", "github_action_benchmark.json", "github-action-benchmark, customSmallerIsBetter",
     lb_export_github},
    {"hyperfine", "hyperfine.json", "hyperfine's JSON, for its scripts", lb_export_hyperfine},
    {"junit", "junit.xml", "JUnit XML, one test per case", lb_export_junit},
    {"markdown", "run.md", "Markdown, a table under 60 KB", lb_export_markdown},
    {NULL, NULL, NULL, NULL},
};

const struct lb_export_format *lb_export_find(const char *name)
{
    for (const struct lb_export_format *format = lb_export_formats; format->name; format++)
        if (strcmp(format->name, name) == 0)
            return format;
    return NULL;
}

/* A format and the run to write in it. */
struct export
{
    const struct lb_export_format *format;
    const struct lb_run *run;
};

/* An lb_file_writer. */
static enum lb_status write_export(FILE *out, const void *user, struct lb_error *err)
{
    const struct export *export = user;
    return export->format->write(export->run, out, err);
}

enum lb_status lb_export_to_folder(const struct lb_export_format *format, const struct lb_run *run,
                                   const char *folder, struct lb_error *err)
{
    const struct export export = {format, run};
    size_t size = strlen(folder) + strlen(format->file_name) + sizeof("/");
    char *path = malloc(size);
    if (!path)
        return lb_fail(err, LB_OOM, "%s: out of memory", folder);
    snprintf(path, size, "%s/%s", folder, format->file_name);
    enum lb_status st = lb_write_file_atomically(path, write_export, &export, err);
    free(path);
    return st;
}
