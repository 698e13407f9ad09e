/* Exports of a run, and writing one into the folder of its run. */
#include "report/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/xml.h"
#include "record/run_file.h"
#include "report/compare.h"
#include "stats/order_stats.h"
#include "support/texts.h"

/* Google Benchmark, with its key names, units and flat counters */

/* Unknown values are 0 or empty, because readers need every key. */
static json_t *context_json(const struct lb_run *run)
{
    const json_t *environment = json_object_get(run->header, "environment");
    const char *program =
        json_string_value(json_array_get(json_object_get(run->header, "command"), 0));
    bool scales = strcmp(lb_json_text(environment, "governor", "performance"), "performance") != 0;
    bool debug = strcmp(lb_json_text(environment, "build_type", ""), "Debug") == 0;
    return json_pack("{s:s, s:s, s:s, s:I, s:i, s:b, s:[], s:[], s:s, s:s, s:s}", "date",
                     lb_json_text(run->header, "started", ""), "host_name",
                     lb_json_text(environment, "host", ""), "executable", program ? program : "",
                     "num_cpus", json_integer_value(json_object_get(environment, "threads")),
                     "mhz_per_cpu", 0, "cpu_scaling_enabled", scales, "caches", "load_avg",
                     "library_build_type", debug ? "debug" : "release", "bench_lstm_version",
                     lb_json_text(environment, "version", ""), "cpu",
                     lb_json_text(environment, "cpu", ""));
}

/* One of the entries of a case, of that many samples. cpu_time repeats real_time, because only that
 * is measured. */
static json_t *entry_json(const struct lb_row *row, size_t family, size_t repetitions,
                          size_t repetition, size_t samples, double real_time_ns)
{
    const char *id = LB_ROW_ID(row);
    double calls = round((double)samples * fmax(1, row->calls_per_sample));
    return json_pack("{s:s, s:I, s:i, s:s, s:s, s:I, s:I, s:i, s:I, s:f, s:f, s:s}", "name", id,
                     "family_index", (json_int_t)family, "per_family_instance_index", 0, "run_name",
                     id, "run_type", "iteration", "repetitions", (json_int_t)repetitions,
                     "repetition_index", (json_int_t)repetition, "threads", row->c.threads,
                     "iterations", (json_int_t)calls, "real_time", real_time_ns, "cpu_time",
                     real_time_ns, "time_unit", "ns");
}

/* Adds the known numbers of the record as counters, without those that the entry has anyway. */
static void add_counters(json_t *object, const struct lb_row *row)
{
    static const char *const keys[] = {
        "min_ns",         "median_lo_ns",  "median_hi_ns",    "p5_ns",
        "p95_ns",         "prepare_ns",    "update_ns",       "floor_ns",
        "floor_multiple", "err_max_abs",   "err_max_rel",     "err_norm",
        "weights_bytes",  "reserve_bytes", "workspace_bytes", "peak_bytes"};
    json_t *record = lb_row_to_json(row);
    json_object_set_new(object, "samples", json_real((double)row->samples));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_t *value = json_object_get(record, keys[i]);
        if (json_is_number(value))
            json_object_set_new(object, keys[i], json_real(json_number_value(value)));
    }
    const double rates[] = {row->flops / row->median_ns * 1e9, row->bytes / row->median_ns * 1e9};
    static const char *const names[] = {"flops_per_second", "bytes_per_second"};
    for (int i = 0; i < 2; i++)
        if (isfinite(rates[i]))
            json_object_set_new(object, names[i], json_real(rates[i]));
    json_decref(record);
}

/* Appends the entry of a case, if it has one: an error as the library's own reporter writes it. */
static void add_case(json_t *rows, const struct lb_row *row, size_t family)
{
    json_t *object;
    if (lb_row_is_timed(row)) {
        object = entry_json(row, family, 1, 0, row->samples, row->median_ns);
        add_counters(object, row);
    } else if (lb_verdict_is_failure(row->verdict) || row->verdict == LB_VERDICT_SUSPECT) {
        object = entry_json(row, family, 1, 0, 0, 0);
        json_object_set_new(object, "error_occurred", json_true());
        json_object_set_new(object, "error_message",
                            json_sprintf("%s: %s", lb_verdict_name(row->verdict), row->reason));
    } else {
        return;
    }
    json_array_append_new(rows, object);
}

/* Appends one entry per block, whose time is the median of the block. */
static void add_repetitions(json_t *rows, const struct lb_row *row, size_t family)
{
    if (!lb_row_is_timed(row))
        return;
    double *scratch = lb_needed(malloc(row->samples * sizeof(*scratch)));
    size_t first = 0;
    for (size_t i = 0; i < row->block_count; i++) {
        size_t count = row->blocks[i];
        double median = count > 0 ? lb_median_of(row->samples_ns + first, count, scratch) : 0;
        if (count > 0)
            json_array_append_new(rows,
                                  entry_json(row, family, row->block_count, i, count, median));
        first += count;
    }
    free(scratch);
}

static void write_all(const struct lb_run *run,
                      void (*add)(json_t *rows, const struct lb_row *row, size_t family), FILE *out)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < run->count; i++)
        add(rows, &run->rows[i], i);
    lb_json_write(json_pack("{s:o, s:o}", "context", context_json(run), "benchmarks", rows), out);
}

/* One entry per case, with the numbers of the record as counters. Of cases without a time it has
 * those that failed (lb_verdict_is_failure) or are suspect, as errors. */
static void gbench(const struct lb_run *run, FILE *out)
{
    write_all(run, add_case, out);
}

/* One entry per block of samples, as repetitions for compare.py. Cases without a time are left out,
 * because compare.py includes every entry in its geometric mean. */
static void gbench_repetitions(const struct lb_run *run, FILE *out)
{
    write_all(run, add_repetitions, out);
}

/* CSV */

/* Writes one field; text is quoted when RFC 4180 requires it, and null becomes empty. */
static void write_field(const json_t *value, FILE *out)
{
    const char *text = json_string_value(value);
    if (json_is_array(value)) {
        fprintf(out, "%zu", json_array_size(value));
    } else if (text && strpbrk(text, ",\"\r\n")) {
        fputc('"', out);
        for (; *text; text++)
            fprintf(out, *text == '"' ? "\"%c" : "%c", *text);
        fputc('"', out);
    } else if (text) {
        fputs(text, out);
    } else if (!json_is_null(value)) {
        json_dumpf(value, out, JSON_ENCODE_ANY);
    }
}

/* Writes a line with the keys of the record or their values, without the kind, which is always row,
 * and the times of the fixed loop, of which nothing would be left but their number. The column of
 * samples_ns, which has the number of samples, loses the unit. */
static void write_line(json_t *record, bool names, FILE *out)
{
    const char *key, *separator = "";
    json_t *value;
    json_object_foreach(record, key, value)
    {
        if (strcmp(key, "kind") == 0 || strcmp(key, "reference_ns") == 0)
            continue;
        fputs(separator, out);
        separator = ",";
        if (names)
            fputs(strcmp(key, "samples_ns") == 0 ? "samples" : key, out);
        else
            write_field(value, out);
    }
    fputc('\n', out);
    json_decref(record);
}

/* CSV: a header line, then one line per case. The columns are the keys of the record in their
 * order. Of an array only the length is written. Unknown values are empty. Fields are quoted as in
 * RFC 4180, and lines end with LF. */
static void csv(const struct lb_run *run, FILE *out)
{
    struct lb_case c = lb_case_defaults();
    struct lb_row empty = lb_row_make(&c);
    json_t *columns = lb_row_to_json(&empty);
    if (run->count > 0 && run->rows[0].label)
        json_object_set_new(columns, "device", json_null());
    write_line(columns, true, out);
    for (size_t i = 0; i < run->count; i++) {
        json_t *record = lb_row_to_json(&run->rows[i]);
        if (run->rows[i].label)
            json_object_set_new(record, "device", json_string(run->rows[i].label));
        write_line(record, false, out);
    }
}

/* JUnit XML and Markdown */

static const char *junit_element(enum lb_verdict verdict)
{
    if (verdict == LB_VERDICT_OK)
        return NULL;
    if (verdict == LB_VERDICT_WRONG)
        return "failure";
    return lb_verdict_is_failure(verdict) ? "error" : "skipped";
}

static void describe_case(const void *user, size_t index, struct lb_junit_case *c)
{
    const struct lb_row *row = &((const struct lb_run *)user)->rows[index];
    c->group = row->c.impl;
    lb_row_print_id(row, c->name);
    c->seconds = isfinite(row->elapsed_ns) ? row->elapsed_ns / 1e9 : 0;
    c->element = junit_element(row->verdict);
    if (c->element)
        snprintf(c->message, sizeof(c->message), "%s: %s", lb_verdict_name(row->verdict),
                 row->reason);
}

/* One test per case: wrong is a failure; timeout, crash and error are errors; a case that did not
 * run is skipped. The time of a test is that of the whole case. */
static void junit(const struct lb_run *run, FILE *out)
{
    lb_junit_write("bench-lstm", NULL, run->count, describe_case, run, "", out);
}

static void format_line(const struct lb_row *row, char *line, size_t size)
{
    char reason[LB_ROW_TEXT_SIZE];
    bool timed = lb_row_is_timed(row);
    snprintf(line, size, "| `%s` | ", LB_ROW_ID(row));
    if (timed)
        lb_append(line, size, "%.4g ", row->median_ns / 1e3);
    lb_append(line, size, "| ");
    if (timed && isfinite(row->median_lo_ns))
        lb_append(line, size, "%.4g to %.4g ", row->median_lo_ns / 1e3, row->median_hi_ns / 1e3);
    snprintf(reason, sizeof(reason), "%s", row->reason);
    lb_markdown_cell(reason);
    lb_append(line, size, timed ? "| ok |\n" : "| %s: %s |\n", lb_verdict_name(row->verdict),
              reason);
}

/* A table with one line per case, up to LB_MARKDOWN_LIMIT bytes. */
static void markdown(const struct lb_run *run, FILE *out)
{
    char machine[1024], line[LB_ROW_TEXT_SIZE + LB_ROW_ID_SIZE + 128];
    size_t written = sizeof(machine);
    lb_run_machine_line(run, machine, sizeof(machine));
    lb_markdown_cell(machine);
    fprintf(out, "### LSTM times: %s", machine);
    fputs("\n\n| case | median us | 95 % interval us | verdict |\n|---|---:|---:|---|\n", out);
    for (size_t i = 0; i < run->count; i++) {
        if (written + sizeof(line) > LB_MARKDOWN_LIMIT) {
            fprintf(out, "\n%zu more case%s in run.jsonl.\n", run->count - i,
                    run->count - i == 1 ? " is" : "s are");
            break;
        }
        format_line(&run->rows[i], line, sizeof(line));
        fputs(line, out);
        written += strlen(line);
    }
}

/* The JSON of other tools: Bencher, github-action-benchmark, hyperfine. Cases without a time are
 * left out. */

/* Bencher Metric Format with the measure latency: the median in ns and its interval. */
static void bmf(const struct lb_run *run, FILE *out)
{
    json_t *document = json_object();
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        if (!lb_row_is_timed(row))
            continue;
        /* json_real gives NULL for what is not known, and the key is then left out */
        json_t *entry =
            json_pack("{s:{s:f, s:o*, s:o*}}", "latency", "value", row->median_ns, "lower_value",
                      json_real(row->median_lo_ns), "upper_value", json_real(row->median_hi_ns));
        json_object_set_new(document, LB_ROW_ID(row), entry);
    }
    lb_json_write(document, out);
}

/* github-action-benchmark's customSmallerIsBetter: the median in ns. */
static void github(const struct lb_run *run, FILE *out)
{
    json_t *document = json_array();
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        char range[64] = "", extra[256];
        if (!lb_row_is_timed(row))
            continue;
        if (isfinite(row->median_lo_ns))
            snprintf(range, sizeof(range), "± %.0f", (row->median_hi_ns - row->median_lo_ns) / 2);
        snprintf(extra, sizeof(extra), "%zu samples, min %.0f ns, p95 %.0f ns", row->samples,
                 row->min_ns, row->p95_ns);
        json_array_append_new(document, json_pack("{s:s, s:s, s:f, s:s, s:s}", "name",
                                                  LB_ROW_ID(row), "unit", "ns", "value",
                                                  row->median_ns, "range", range, "extra", extra));
    }
    lb_json_write(document, out);
}

/* One result as hyperfine writes it: times in seconds, and one exit code per time. */
static json_t *hyperfine_json(const struct lb_row *row)
{
    double mean = 0, squares = 0, largest = 0, n = (double)row->samples;
    json_t *times = json_array(), *codes = json_array();
    for (size_t i = 0; i < row->samples; i++) {
        mean += row->samples_ns[i] / n;
        largest = fmax(largest, row->samples_ns[i]);
        json_array_append_new(times, json_real(row->samples_ns[i] / 1e9));
        json_array_append_new(codes, json_integer(0));
    }
    for (size_t i = 0; i < row->samples; i++)
        squares += pow(row->samples_ns[i] - mean, 2);
    return json_pack("{s:s, s:f, s:o, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "command",
                     LB_ROW_ID(row), "mean", mean / 1e9, "stddev",
                     n > 1 ? json_real(sqrt(squares / (n - 1)) / 1e9) : json_null(), "median",
                     row->median_ns / 1e9, "user", 0.0, "system", 0.0, "min", row->min_ns / 1e9,
                     "max", largest / 1e9, "times", times, "exit_codes", codes);
}

/* Every sample, in seconds. The user and system times, which are not measured, are 0. */
static void hyperfine(const struct lb_run *run, FILE *out)
{
    json_t *results = json_array();
    for (size_t i = 0; i < run->count; i++)
        if (lb_row_is_timed(&run->rows[i]))
            json_array_append_new(results, hyperfine_json(&run->rows[i]));
    lb_json_write(json_pack("{s:o}", "results", results), out);
}

/* The table of formats */

const struct lb_export_format lb_export_formats[] = {
    {"gbench", "benchmark.json", gbench},
    {"gbench-repetitions", "benchmark_repetitions.json", gbench_repetitions},
    {"csv", "run.csv", csv},
    {"bmf", "bmf.json", bmf},
    {"github", "github_action_benchmark.json", github},
    {"hyperfine", "hyperfine.json", hyperfine},
    {"junit", "junit.xml", junit},
    {"markdown", "run.md", markdown},
    {NULL, NULL, NULL},
};
