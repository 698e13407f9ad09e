/* The table of export formats, and writing one beside its run. */
#include "export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct lb_export_format lb_export_formats[] = {
    {"gbench", "benchmark.json", "Google Benchmark JSON, one row a case, for trackers",
     lb_export_gbench},
    {"gbench-repetitions", "benchmark_repetitions.json",
     "Google Benchmark JSON, one row a block of samples, for its compare.py",
     lb_export_gbench_repetitions},
    {"csv", "run.csv", "CSV, one line a case", lb_export_csv},
    {"bmf", "bmf.json", "Bencher Metric Format", lb_export_bmf},
    {"github", "github_action_benchmark.json", "github-action-benchmark, customSmallerIsBetter",
     lb_export_github},
    {"hyperfine", "hyperfine.json", "hyperfine's JSON, for its scripts", lb_export_hyperfine},
    {"junit", "junit.xml", "JUnit XML, a test a case", lb_export_junit},
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

enum lb_status lb_export_to_folder(const struct lb_export_format *format, const struct lb_run *run,
                                   const char *folder, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    FILE *out = NULL;
    size_t size = strlen(folder) + strlen(format->file_name) + sizeof("/.new");
    char *path = malloc(2 * size), *draft = path + size;
    if (!path)
        return lb_fail(err, LB_OOM, "%s: out of memory", folder);
    snprintf(path, size, "%s/%s", folder, format->file_name);
    snprintf(draft, size, "%s/%s.new", folder, format->file_name);

    out = fopen(draft, "w");
    if (!out) {
        st = lb_fail(err, LB_IO, "%s: %s", draft, strerror(errno));
        goto done;
    }
    LB_TRY(format->write(run, out, err));
    bool failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    out = NULL;
    if (failed || rename(draft, path) != 0)
        st = lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
done:
    if (out)
        fclose(out);
    if (st != LB_OK)
        unlink(draft);
    free(path);
    return st;
}
