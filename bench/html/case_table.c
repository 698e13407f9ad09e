/* The table of all cases: verdict, times, errors, samples, and the command that repeats each. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/memory.h"
#include "html/sections.h"
#include "html/writer.h"
#include "support/terminal.h"

/* One line of the table. */
struct line {
    const struct lb_row *row;
    const struct lb_group *group;
    double speedup; /* over the baseline; NaN */
};

static const struct column {
    const char *name;
    bool number; /* sorted as one */
} columns[] = {
    {"Implementation", false},
    {"T", true},
    {"B", true},
    {"I", true},
    {"H", true},
    {"dtype", false},
    {"pass", false},
    {"also", false},
    {"Verdict", false},
    {"Median", true},
    {"A step", true},
    {"Speed-up", true},
    {"Error", true},
    {"Samples", true},
};

static const char *const marks[LB_VERDICT_COUNT] = {
    [LB_VERDICT_OK] = "✓",     [LB_VERDICT_WRONG] = "✗", [LB_VERDICT_UNSUPPORTED] = "–",
    [LB_VERDICT_ABSENT] = "○", [LB_VERDICT_OOM] = "▲",   [LB_VERDICT_TIMEOUT] = "✗",
    [LB_VERDICT_CRASH] = "✗",  [LB_VERDICT_ERROR] = "✗", [LB_VERDICT_SKIPPED] = "–",
};

/* In the order of the run; groups come from the lists that group them. */
static int by_row(const void *a, const void *b)
{
    const struct line *p = a, *q = b;
    return (p->row > q->row) - (p->row < q->row);
}

static struct line *collect(const struct lb_html_view *view)
{
    size_t count = 0;
    struct line *lines = calloc(view->run->count + 1, sizeof(*lines));
    for (size_t i = 0; lines && i < view->groups.count; i++) {
        const struct lb_group *group = &view->groups.items[i];
        const struct lb_row *base = lb_group_timed(group, view->baseline_series);
        for (size_t k = 0; k < group->count; k++) {
            const struct lb_row *row = group->candidates[k].row;
            bool both = base && lb_row_is_timed(row);
            lines[count++] =
                (struct line){row, group, both ? base->median_ns / row->median_ns : (double)NAN};
        }
    }
    if (lines)
        qsort(lines, count, sizeof(*lines), by_row);
    return lines;
}

/* All of the case that is neither size, dtype nor pass: "L2 D2 tf32 cold". */
static void write_also(FILE *out, const struct lb_case *c)
{
    const struct lb_problem *p = &c->problem;
    if (p->layers > 1)
        fprintf(out, "L%" PRId64 " ", p->layers);
    if (p->directions > 1)
        fprintf(out, "D%" PRId64 " ", p->directions);
    fprintf(out, "%s%s%s%s%s", p->math == LB_IEEE ? "" : lb_math_name(p->math),
            p->math == LB_IEEE ? "" : " ", p->ragged ? "ragged " : "",
            p->act == LB_ACT_TANH ? "" : "relu ", c->cache == LB_COLD ? "cold " : "");
    if (c->timing == LB_BATCHED)
        fputs("batched ", out);
    if (c->threads > 1)
        fprintf(out, "%d threads", c->threads);
}

/* A cell with a time, which sorts by its ns. */
static void write_time(FILE *out, double ns)
{
    if (isfinite(ns)) {
        fprintf(out, "<td class=n data-v=%.6g>", ns);
        lb_html_ns(out, ns);
    } else
        fputs("<td class=\"n x\">–", out);
}

static void write_error(FILE *out, double error)
{
    if (isfinite(error))
        fprintf(out, error > 0 ? "<td class=n data-v=%.3g>%.1e" : "<td class=n data-v=0>0", error,
                error);
    else
        fputs("<td class=\"n x\">–", out);
}

/* Whether several can't be told from the fastest. */
static bool is_tied(const struct lb_group *group)
{
    size_t leaders = 0;
    for (size_t i = 0; i < group->count; i++)
        leaders += lb_group_leads(group, group->candidates[i].row);
    return leaders > 1;
}

static void write_times(FILE *out, const struct line *line)
{
    const struct lb_row *row = line->row;
    bool timed = lb_row_is_timed(row);
    char ratio[32];
    write_time(out, timed ? row->median_ns : (double)NAN);
    if (timed && isfinite(row->median_lo_ns))
        fprintf(out, " <small>±%.1f %%</small>",
                50 * (row->median_hi_ns - row->median_lo_ns) / row->median_ns);
    write_time(out, timed ? row->median_ns / (double)row->c.problem.seq_len : (double)NAN);
    lb_format_ratio(line->speedup, ratio);
    bool leads = lb_group_leads(line->group, row);
    if (isfinite(line->speedup))
        fprintf(out, "<td class=n data-v=%.5g>%s%s×%s%s", line->speedup, leads ? "<b>" : "", ratio,
                leads ? "</b>" : "", leads && is_tied(line->group) ? " <small>tied</small>" : "");
    else
        fputs("<td class=\"n x\">–", out);
    write_error(out, row->err_norm);
    if (row->samples > 0 && row->median_ns > 0) {
        fprintf(out, "<td class=n data-v=%zu>", row->samples);
        lb_html_strip(out, row);
    } else {
        fputs("<td class=\"n x\">–", out);
    }
}

/* The text as one word of a command line. */
static void write_word(FILE *out, const char *text)
{
    size_t size = 4 * strlen(text) + 3;
    char *word = malloc(size);
    if (!word)
        return;
    lb_shell_word(text, word, size);
    lb_html_text(out, word);
    free(word);
}

/* A key of a run's header, the flag that sets it, and the value that needs no flag. */
static const struct setting {
    const char *key, *flag;
    double usual;
} settings[] = {
    {"seed", " --seed ", 1},
    {"repetitions", " --benchmark_repetitions=", 1},
    {"processes", " --processes ", 1},
    {"loss_scale", " --loss-scale ", 1},
    {"call_limit_s", " --call-limit ", 120},
    {"memory_bytes", " --memory ", 0},
    {"device", " --device ", 0},
};

/* The command that runs this case alone as the run did, by the run's header. */
static void write_command(FILE *out, const json_t *header, const struct lb_row *row)
{
    const json_t *plugins = json_object_get(header, "plugins");
    const json_t *sampler = json_object_get(header, "sampler");
    const char *tuned = json_string_value(json_object_get(header, "tuned"));
    char id[LB_CASE_ID_SIZE];
    lb_case_print(&row->c, id);
    fputs("<code>bench-lstm --sweep --case ", out);
    write_word(out, id);
    fprintf(out, " --case-time %g", json_number_value(json_object_get(sampler, "max_ns")) / 1e9);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        const json_t *value = json_object_get(header, settings[i].key);
        if (value && json_number_value(value) != settings[i].usual)
            fprintf(out, "%s%.17g", settings[i].flag, json_number_value(value));
    }
    if (json_is_true(json_object_get(header, "kernels")))
        fputs(" --kernels", out);
    if (json_is_true(json_object_get(header, "tune")))
        fputs(" --tune", out);
    if (tuned) {
        fputs(" --tuned ", out);
        write_word(out, tuned);
    }
    for (size_t i = 0; i < json_array_size(plugins); i++) {
        const char *path = json_string_value(json_array_get(plugins, i));
        fputs(" --plugin ", out);
        write_word(out, path ? path : "");
    }
    fputs("</code>", out);
}

/* A name and a number of the row, where it is known. */
static void write_fact(FILE *out, const char *name, double value, const char *format)
{
    char text[32];
    if (!isfinite(value))
        return;
    fprintf(out, "<dt>%s<dd>", name);
    if (strcmp(format, "ns") == 0) {
        lb_html_ns(out, value);
    } else if (strcmp(format, "bytes") == 0) {
        lb_format_bytes(value, text);
        fputs(text, out);
    } else {
        fprintf(out, "%.3g", value);
    }
}

/* The kernels of one call, the most time first; or why they are not known, where that was asked. */
static void write_kernels(FILE *out, const struct lb_row *row)
{
    const struct lb_kernels *kernels = &row->kernels;
    char sentence[160];
    lb_kernels_sentence(kernels, sentence, sizeof(sentence));
    if (!sentence[0] && !row->kernels_reason[0])
        return;
    fputs("<dt>kernels<dd>", out);
    lb_html_text(out, sentence[0] ? sentence : row->kernels_reason);
    for (size_t i = 0; i < kernels->count; i++) {
        lb_html_format(out, "; %" PRId64 " × %s, ", kernels->items[i].count,
                       kernels->items[i].name);
        lb_html_ns(out, kernels->items[i].total_ns);
    }
}

static void write_details(FILE *out, const struct lb_run *run, const struct lb_row *row)
{
    fputs("<td class=d><details><summary>more</summary><dl>", out);
    fputs("<dt>ran<dd>", out);
    lb_html_text(out, row->description[0] ? row->description : "not recorded");
    write_kernels(out, row);
    write_fact(out, "largest error", row->err_max_abs, "plain");
    write_fact(out, "largest relative error", row->err_max_rel, "plain");
    write_fact(out, "norm of the error", row->err_norm, "plain");
    if (row->samples > 0) {
        fprintf(out, "<dt>samples<dd>%zu, in blocks: %zu, calls a sample: %g, ended by %s",
                row->samples, row->block_count,
                isfinite(row->calls_per_sample) ? row->calls_per_sample : 1,
                lb_stop_reason_name(row->stop_reason));
        write_fact(out, "least", row->min_ns, "ns");
        write_fact(out, "5 % to here", row->p5_ns, "ns");
        write_fact(out, "95 % to here", row->p95_ns, "ns");
    }
    write_fact(out, "floor", row->floor_ns, "ns");
    write_fact(out, "steps in a row alone", row->chain_ns, "ns");
    write_fact(out, "steps in a row", row->chain_steps, "plain");
    write_fact(out, "times the floor", row->floor_multiple, "plain");
    write_fact(out, "preparation", row->prepare_ns, "ns");
    if (lb_row_is_timed(row) && row->flops > 0)
        write_fact(out, "GFLOP/s", row->flops / row->median_ns, "plain");
    write_fact(out, "peak memory", row->peak_bytes, "bytes");
    /* Not where another program made the run, or --ab measured it beside something else. */
    if (json_object_get(run->header, "sampler") && !json_object_get(run->header, "interleaved")) {
        fputs("<dt>again<dd>", out);
        write_command(out, run->header, row);
    }
    fputs("</dl></details>\n", out);
}

static void write_row(FILE *out, const struct lb_html_view *view, const struct line *line)
{
    const struct lb_row *row = line->row;
    const struct lb_problem *p = &row->c.problem;
    char label[2 * LB_NAME_SIZE];
    lb_impl_label(&row->c, label);
    fprintf(out, "<tr class=%s><td>",
            row->verdict == LB_VERDICT_OK         ? "ok"
            : lb_verdict_is_failure(row->verdict) ? "bad"
                                                  : "none");
    lb_html_text(out, label);
    if (row->c.launch == LB_GRAPH)
        fputs("/graph", out);
    fprintf(out, "<td>%" PRId64 "<td>%" PRId64 "<td>%" PRId64 "<td>%" PRId64 "<td>%s<td>%s<td>",
            p->seq_len, p->batch, p->input, p->hidden, lb_dtype_name(p->dtype),
            lb_pass_name(p->pass));
    write_also(out, &row->c);
    fprintf(out, "<td><span class=verdict>%s %s</span>", marks[row->verdict],
            lb_verdict_name(row->verdict));
    write_times(out, line);
    write_details(out, view->run, row);
    if (row->reason[0] || row->warning[0]) {
        fputs("<td class=r>", out);
        lb_html_text(out, row->reason[0] ? row->reason : row->warning);
    }
}

/* Hidden until the script shows it: without one it would do nothing. */
static void write_controls(FILE *out, size_t count)
{
    fprintf(out, "<form id=\"filter\" hidden><label>Filter <input type=\"search\" name=\"words\" "
                 "placeholder=\"words of a line: cpu_simd H=512 train\" size=\"36\"></label>"
                 "<label>Verdict <select name=\"verdict\"><option value=\"\">all</option>");
    static const char *const choices[][2] = {
        {"ok", "ok"}, {"bad", "failed"}, {"none", "did not run"}};
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
        fprintf(out, "<option value=\"%s\">%s</option>", choices[i][0], choices[i][1]);
    fprintf(out, "</select></label><output id=\"shown\">%zu cases</output></form>\n", count);
}

enum lb_status lb_html_cases(FILE *out, const struct lb_html_view *view, struct lb_error *err)
{
    size_t count = view->run->count;
    struct line *lines = collect(view);
    if (!lines)
        return lb_fail(err, LB_OOM, "out of memory for %zu cases", count);
    fputs("<section id=\"cases\">\n<h2>All cases</h2>\n<p class=\"note\">", out);
    if (view->baseline_series < view->series.count)
        lb_html_format(out,
                       "Speed-up is over %s at the same problem, bold where it is the fastest "
                       "there, tied where the intervals of several overlap. ",
                       view->baseline);
    else
        fputs("There are no speed-ups, for want of a baseline. ", out);
    fputs(
        "Error is the largest norm of a difference to the oracle over that of the oracle. Samples "
        "are counted by their distance from the median, a bar each per cent up to 20 %; what is "
        "farther away stands at the ends, in another colour.</p>\n",
        out);
    write_controls(out, count);
    fputs("<div id=\"table\"><table class=\"cases\"><thead><tr>", out);
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        fprintf(out, "<th scope=\"col\"%s>%s</th>", columns[i].number ? " class=\"n\"" : "",
                columns[i].name);
    fputs("<th scope=\"col\" class=\"d\"></th></tr></thead><tbody>\n", out);
    for (size_t i = 0; i < count; i++)
        write_row(out, view, &lines[i]);
    fputs("</tbody></table></div>\n</section>\n", out);
    free(lines);
    return LB_OK;
}
