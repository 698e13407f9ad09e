/* A run in the JSON of other tools: Bencher, github-action-benchmark, hyperfine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "report/export.h"

enum lb_status lb_export_bmf(const struct lb_run *run, FILE *out, struct lb_error *err)
{
    json_t *document = json_object();
    bool whole = document != NULL;
    for (size_t i = 0; whole && i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        char id[LB_ROW_ID_SIZE];
        if (!lb_row_is_timed(row))
            continue;
        lb_row_print_id(row, id);
        json_t *value = json_pack("{s:f}", "value", row->median_ns);
        if (isfinite(row->median_lo_ns))
            whole = json_object_set_new(value, "lower_value", json_real(row->median_lo_ns)) == 0 &&
                    json_object_set_new(value, "upper_value", json_real(row->median_hi_ns)) == 0;
        whole =
            whole && json_object_set_new(document, id, json_pack("{s:o}", "latency", value)) == 0;
    }
    return lb_json_write(document, whole, "bmf", out, err);
}

enum lb_status lb_export_github(const struct lb_run *run, FILE *out, struct lb_error *err)
{
    json_t *document = json_array();
    bool whole = document != NULL;
    for (size_t i = 0; whole && i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        char id[LB_ROW_ID_SIZE], range[64] = "", extra[256];
        if (!lb_row_is_timed(row))
            continue;
        lb_row_print_id(row, id);
        if (isfinite(row->median_lo_ns))
            snprintf(range, sizeof(range), "± %.0f", (row->median_hi_ns - row->median_lo_ns) / 2);
        snprintf(extra, sizeof(extra), "%zu samples, min %.0f ns, p95 %.0f ns", row->samples,
                 row->min_ns, row->p95_ns);
        whole = json_array_append_new(document, json_pack("{s:s, s:s, s:f, s:s, s:s}", "name", id,
                                                          "unit", "ns", "value", row->median_ns,
                                                          "range", range, "extra", extra)) == 0;
    }
    return lb_json_write(document, whole, "github", out, err);
}

/* One result as hyperfine writes it: times in seconds, and one exit code per time. */
static json_t *hyperfine_json(const struct lb_row *row)
{
    char id[LB_ROW_ID_SIZE];
    double mean = 0, squares = 0, largest = 0, n = (double)row->samples;
    json_t *times = json_array(), *codes = json_array();
    for (size_t i = 0; i < row->samples; i++) {
        mean += row->samples_ns[i] / n; /* the sum of foreign samples may overflow */
        largest = fmax(largest, row->samples_ns[i]);
        json_array_append_new(times, json_real(row->samples_ns[i] / 1e9));
        json_array_append_new(codes, json_integer(0));
    }
    for (size_t i = 0; i < row->samples; i++)
        squares += pow((row->samples_ns[i] - mean) / largest, 2);
    lb_row_print_id(row, id);
    return json_pack("{s:s, s:f, s:o, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "command", id, "mean",
                     mean / 1e9, "stddev",
                     n > 1 ? json_real(sqrt(squares / (n - 1)) * (largest / 1e9)) : json_null(),
                     "median", row->median_ns / 1e9, "user", 0.0, "system", 0.0, "min",
                     row->min_ns / 1e9, "max", largest / 1e9, "times", times, "exit_codes", codes);
}

enum lb_status lb_export_hyperfine(const struct lb_run *run, FILE *out, struct lb_error *err)
{
    json_t *results = json_array();
    bool whole = results != NULL;
    for (size_t i = 0; whole && i < run->count; i++)
        if (lb_row_is_timed(&run->rows[i]))
            whole = json_array_append_new(results, hyperfine_json(&run->rows[i])) == 0;
    return lb_json_write(json_pack("{s:o}", "results", results), whole, "hyperfine", out, err);
}
