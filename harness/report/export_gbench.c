/* A run as Google Benchmark's JSON, with its key names, units and flat counters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "report/export.h"
#include "stats/order_stats.h"

/* A new reference to the environment's value. When it has none: the fallback, whose reference the
 * caller gives away in both cases. */
static json_t *copy_or(const json_t *environment, const char *key, json_t *fallback)
{
    json_t *value = json_object_get(environment, key);
    if (!value || json_is_null(value))
        return fallback;
    json_decref(fallback);
    return json_incref(value);
}

/* Unknown values are 0 or empty, because readers need every key. */
static json_t *context_json(const struct lb_run *run)
{
    const json_t *environment = json_object_get(run->header, "environment");
    const char *governor = json_string_value(json_object_get(environment, "governor"));
    const char *build = json_string_value(json_object_get(environment, "build_type"));
    const json_t *command = json_object_get(run->header, "command");
    return json_pack("{s:o, s:o, s:o, s:o, s:i, s:b, s:[], s:[], s:s, s:o, s:o}", "date",
                     copy_or(run->header, "started", json_string("")), "host_name",
                     copy_or(environment, "host", json_string("")), "executable",
                     json_array_size(command) > 0 ? json_incref(json_array_get(command, 0))
                                                  : json_string(""),
                     "num_cpus", copy_or(environment, "threads", json_integer(0)), "mhz_per_cpu", 0,
                     "cpu_scaling_enabled", governor && strcmp(governor, "performance") != 0,
                     "caches", "load_avg", "library_build_type",
                     build && strcmp(build, "Debug") == 0 ? "debug" : "release",
                     "bench_lstm_version", copy_or(environment, "version", json_string("")), "cpu",
                     copy_or(environment, "cpu", json_string("")));
}

/* One entry. cpu_time repeats real_time, because only that is measured. */
struct measurement {
    size_t family, repetitions, repetition;
    double iterations, real_time_ns;
};

static json_t *row_json(const struct lb_row *row, const struct measurement *m)
{
    char id[LB_ROW_ID_SIZE];
    lb_row_print_id(row, id);
    return json_pack("{s:s, s:I, s:i, s:s, s:s, s:I, s:I, s:i, s:I, s:f, s:f, s:s}", "name", id,
                     "family_index", (json_int_t)m->family, "per_family_instance_index", 0,
                     "run_name", id, "run_type", "iteration", "repetitions",
                     (json_int_t)m->repetitions, "repetition_index", (json_int_t)m->repetition,
                     "threads", row->c.threads, "iterations", (json_int_t)m->iterations,
                     "real_time", m->real_time_ns, "cpu_time", m->real_time_ns, "time_unit", "ns");
}

/* Adds the known numbers of the record as counters, without those that the entry has anyway. */
static bool add_counters(json_t *object, const struct lb_row *row)
{
    const struct {
        const char *name;
        double value;
    } counters[] = {
        {"samples", (double)row->samples},
        {"min_ns", row->min_ns},
        {"median_lo_ns", row->median_lo_ns},
        {"median_hi_ns", row->median_hi_ns},
        {"p5_ns", row->p5_ns},
        {"p95_ns", row->p95_ns},
        {"prepare_ns", row->prepare_ns},
        {"update_ns", row->update_ns},
        {"floor_ns", row->floor_ns},
        {"floor_multiple", row->floor_multiple},
        {"err_max_abs", row->err_max_abs},
        {"err_max_rel", row->err_max_rel},
        {"err_norm", row->err_norm},
        {"flops_per_second", row->flops / row->median_ns * 1e9},
        {"bytes_per_second", row->bytes / row->median_ns * 1e9},
        {"weights_bytes", row->weights_bytes},
        {"reserve_bytes", row->reserve_bytes},
        {"workspace_bytes", row->workspace_bytes},
        {"peak_bytes", row->peak_bytes},
    };
    bool done = true;
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        if (isfinite(counters[i].value))
            done =
                json_object_set_new(object, counters[i].name, json_real(counters[i].value)) == 0 &&
                done;
    return done;
}

/* Adds an error as the library's own reporter writes it; the entry's time is then 0. */
static bool add_error(json_t *object, const struct lb_row *row)
{
    char message[LB_ROW_TEXT_SIZE + 32];
    snprintf(message, sizeof(message), "%s: %s", lb_verdict_name(row->verdict), row->reason);
    json_t *text = json_string(message);
    return json_object_set_new(object, "error_occurred", json_true()) == 0 &&
           json_object_set_new(object, "error_message",
                               text ? text : json_string(lb_verdict_name(row->verdict))) == 0;
}

/* How many calls so many samples are made of. A foreign record may name any number: the most is
 * what every reader of JSON keeps exactly. */
static double calls_of(const struct lb_row *row, size_t samples)
{
    double calls = row->calls_per_sample >= 1 ? row->calls_per_sample : 1;
    return fmin(round((double)samples * calls), 0x1p53);
}

/* Appends the entry of a case, if it has one. */
static bool add_case(json_t *rows, const struct lb_row *row, size_t family)
{
    struct measurement m = {.family = family, .repetitions = 1};
    bool timed = lb_row_is_timed(row);
    if (!timed && !lb_verdict_is_failure(row->verdict))
        return true;
    if (timed) {
        m.real_time_ns = row->median_ns;
        m.iterations = calls_of(row, row->samples);
    }
    json_t *object = row_json(row, &m);
    bool done = object && (timed ? add_counters(object, row) : add_error(object, row));
    return json_array_append_new(rows, object) == 0 && done;
}

/* Appends one entry per block, whose time is the median of the block. */
static bool add_repetitions(json_t *rows, const struct lb_row *row, size_t family)
{
    if (!lb_row_is_timed(row))
        return true;
    double *sorted = malloc(row->samples * sizeof(*sorted));
    bool done = sorted != NULL;
    size_t first = 0;
    for (size_t i = 0; done && i < row->block_count; i++) {
        size_t count = row->blocks[i];
        if (count > 0)
            memcpy(sorted, row->samples_ns + first, count * sizeof(*sorted));
        first += count;
        lb_sort(sorted, count);
        struct measurement m = {
            .family = family,
            .repetitions = row->block_count,
            .repetition = i,
            .iterations = calls_of(row, count),
            .real_time_ns = lb_median(sorted, count),
        };
        done = count == 0 || json_array_append_new(rows, row_json(row, &m)) == 0;
    }
    free(sorted);
    return done;
}

static enum lb_status write_all(const struct lb_run *run,
                                bool (*add)(json_t *rows, const struct lb_row *row, size_t family),
                                FILE *out, struct lb_error *err)
{
    json_t *rows = json_array();
    bool done = rows != NULL;
    for (size_t i = 0; done && i < run->count; i++)
        done = add(rows, &run->rows[i], i);
    json_t *document = json_pack("{s:o, s:o}", "context", context_json(run), "benchmarks", rows);
    return lb_json_write(document, done, "gbench", out, err);
}

enum lb_status lb_export_gbench(const struct lb_run *run, FILE *out, struct lb_error *err)
{
    return write_all(run, add_case, out, err);
}

enum lb_status lb_export_gbench_repetitions(const struct lb_run *run, FILE *out,
                                            struct lb_error *err)
{
    return write_all(run, add_repetitions, out, err);
}
