/* Results as text on the terminal: the table of a sweep, and the GPU kernels of a row. */
#include "plot/grouped_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "support/texts.h"

/* When a row uses more than this share of its tolerance, the table says how much; likewise when its
 * error is that many times what its dtype gives (error_ratio). */
static const double NEAR_MISS = 0.5, LARGER_ERROR = 2;

/* Half the interval over the median, above which the second digit of the median is uncertain. */
static const double NOISY = 0.05;

/* What all rows of the group share: "T16_B1_I64_H64/f32/infer/th2", and the device where devices
 * are shown apart. */
static void print_problem(FILE *out, const struct lb_run *run, const struct lb_group *group)
{
    const struct lb_row *row = group->candidates[0].row;
    bool apart = row->label && !row->beside;
    fprintf(out, "\n%s%s%s\n", LB_PROBLEM_TEXT(&row->c), apart ? " on " : "",
            apart ? row->label : "");
    if (row->c.timing == LB_STREAMING)
        fprintf(out, "  %-20s %9s %9s %9s %9s\n", "latency of a call", "median", "p99", "p99.9",
                isfinite(lb_row_deadline(run, row)) ? "too late" : "longest");
}

/* Whether a row of the group has a time per update. */
static bool has_updates(const struct lb_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (isfinite(group->candidates[i].row->update_ns))
            return true;
    return false;
}

/* Writes how much of the tolerance an ok row uses, how its error compares, and its warning. */
static void describe(const struct lb_row *row, char *text, size_t size)
{
    text[0] = '\0';
    if (row->tolerance_used > NEAR_MISS)
        lb_append(text, size, "%.0f %% of the tolerance used", 100 * row->tolerance_used);
    if (row->error_ratio > LARGER_ERROR)
        lb_append(text, size, "%serror %.2g, %.2g times what %s gives", text[0] ? "; " : "",
                  row->err_norm, row->error_ratio, lb_dtype_name(row->c.problem.dtype));
    if (row->c.timing == LB_STREAMING && isnan(lb_row_time(row, LB_P999).ns))
        lb_append(text, size,
                  "%s%zu calls are too few for %sp99.9 (3,688 calls): a longer --case-time allows "
                  "more",
                  text[0] ? "; " : "", row->samples,
                  isnan(lb_row_time(row, LB_P99).ns) ? "p99 (368 calls) and " : "");
    lb_append(text, size, "%s%s", text[0] && row->warning[0] ? "; " : "", row->warning);
}

static const char *rank_words(const struct lb_candidate *it)
{
    if (!lb_row_has_interval(it->row))
        return it->row->process_count > 1 ? "< 6 processes" : "too few samples";
    return it->rank == LB_RANK_FASTEST ? "* fastest"
           : it->rank == LB_RANK_TIED  ? "= fastest, tied"
                                       : "ok";
}

/* Half the interval of the median over it; NaN where it has none. */
static double half_interval(const struct lb_row *row)
{
    return (row->median_hi_ns - row->median_lo_ns) / 2 / row->median_ns;
}

/* Appends the row of a stream: its name, its median, two percentiles, and the share of calls that
 * took longer than the deadline or, without one, the longest call. */
static void append_latencies(char *line, size_t size, const char *name, const struct lb_row *row,
                             double deadline_ns)
{
    char late[32];
    snprintf(late, sizeof(late), "%.2f %%", 100 * lb_row_share_above(row, deadline_ns));
    lb_append(line, size, "  %-20s %9s %9s %9s %9s  ", name, LB_NS_TEXT(row->median_ns),
              LB_NS_TEXT(lb_row_time(row, LB_P99).ns), LB_NS_TEXT(lb_row_time(row, LB_P999).ns),
              isfinite(deadline_ns) ? late : LB_NS_TEXT(lb_row_longest(row)));
}

/* A problem's rows have a column more where one of them has a time per update. The others are then
 * narrower, so that a line still fits 80 columns. Those of a stream have percentiles in place of
 * the interval and the speed-up. Notes have lines of their own. base: the baseline's median, or
 * NaN; updates: whether a row has a time per update. */
static void print_times(FILE *out, const struct lb_grouped_run *grouped,
                        const struct lb_candidate *it, double base, bool updates)
{
    const struct lb_row *row = it->row;
    const char *name = grouped->series[it->series].name;
    const char *median = LB_NS_TEXT(row->median_ns);
    char spread[32] = "-", ratio[32] = "-", notes[512];
    char line[1024] = "";
    bool bold = it->rank != LB_RANK_NONE && lb_has_style(out);
    describe(row, notes, sizeof(notes));
    double half = half_interval(row);
    if (isfinite(half))
        snprintf(spread, sizeof(spread), half < 0.9995 ? "%.1f %%" : "%.0f %%", 100 * half);
    if (isfinite(base))
        snprintf(ratio, sizeof(ratio), "%.2fx", base / row->median_ns);
    if (row->c.timing == LB_STREAMING)
        append_latencies(line, sizeof(line), name, row, lb_row_deadline(grouped->run, row));
    else if (updates)
        lb_append(line, sizeof(line), "  %-19s %9s  +-%6s %8s %10s  ", name, median, spread, ratio,
                  LB_NS_TEXT(row->update_ns));
    else
        lb_append(line, sizeof(line), "  %-27s %10s  +-%7s %9s  ", name, median, spread, ratio);
    lb_append(line, sizeof(line), "%s%s", rank_words(it), half > NOISY ? " ~" : "");
    fprintf(out, "%s%s%s\n", bold ? "\033[1m" : "", line, bold ? "\033[0m" : "");
    if (notes[0]) {
        int column = fprintf(out, "      ");
        lb_print_wrapped(out, column, notes);
        fputc('\n', out);
    }
}

static void print_verdict(FILE *out, const char *name, const struct lb_row *row)
{
    char text[LB_ROW_TEXT_SIZE + 32];
    const bool suspect = row->verdict == LB_VERDICT_SUSPECT;
    const char *mark = suspect ? "? " : lb_verdict_is_failure(row->verdict) ? "! " : "";
    snprintf(text, sizeof(text), "%s%s: %s", mark, lb_verdict_name(row->verdict), row->reason);
    int column = fprintf(out, suspect ? "  %-27s %10s  " : "  %-27s %s", name,
                         suspect ? LB_NS_TEXT(row->median_ns) : "");
    lb_print_wrapped(out, column, text);
    fputc('\n', out);
}

/* The object under the key, which is added when there is none. */
static json_t *member(json_t *object, const char *key)
{
    json_t *found = json_object_get(object, key);
    if (!found)
        json_object_set_new(object, key, found = json_object());
    return found;
}

/* Prints one line per reason: "absent: cudnn (5 variants), cuda_naive: the reason". */
static void print_absent(FILE *out, const struct lb_run *run)
{
    json_t *reasons = json_object(), *impls, *variants;
    const char *reason, *impl;
    for (const struct lb_row *row = run->rows; row < run->rows + run->count; row++)
        if (row->verdict == LB_VERDICT_ABSENT)
            json_object_set_new(member(member(reasons, row->reason), row->c.impl), row->c.variant,
                                json_true());
    if (json_object_size(reasons) > 0)
        fprintf(out, "\n");
    json_object_foreach(reasons, reason, impls)
    {
        char text[4096 + LB_ROW_TEXT_SIZE] = "";
        json_object_foreach(impls, impl, variants)
        {
            lb_append(text, sizeof(text), "%s%s", text[0] ? ", " : "", impl);
            if (json_object_size(variants) > 1)
                lb_append(text, sizeof(text), " (%zu variants)", json_object_size(variants));
        }
        lb_append(text, sizeof(text), ": %s", reason);
        lb_print_wrapped(out, fprintf(out, "absent: "), text);
        fputc('\n', out);
    }
    json_decref(reasons);
}

/* Explains the marks that the table has. */
static void explain_marks(FILE *out, const struct lb_grouped_run *grouped)
{
    bool noisy = false, tied = false, few_processes = false, updates = false;
    for (size_t i = 0; i < grouped->count; i++) {
        const struct lb_group *group = &grouped->groups[i];
        updates |= has_updates(group);
        for (size_t k = 0; k < group->timed; k++) {
            const struct lb_candidate *it = &group->candidates[k];
            noisy |= half_interval(it->row) > NOISY;
            tied |= it->rank == LB_RANK_TIED;
            few_processes |= strcmp(rank_words(it), "< 6 processes") == 0;
        }
    }
    if (tied || few_processes || noisy || updates)
        fprintf(out, "\n");
    if (updates)
        fprintf(out, "last time: of one update of the weights, beyond the call (update_ns)\n");
    if (tied)
        fprintf(out, "= tied with the fastest of its problem: their intervals overlap\n");
    if (few_processes)
        fprintf(out, "< 6 processes: too few for an interval; --processes 15 gives enough\n");
    if (noisy)
        fprintf(out, "~ noisy: half the interval is above %.0f %% of the median\n", 100 * NOISY);
}

static void print_counts(FILE *out, const struct lb_run *run)
{
    size_t counts[LB_VERDICT_COUNT] = {0};
    for (size_t i = 0; i < run->count; i++)
        counts[run->rows[i].verdict]++;
    fprintf(out, "\n%zu case%s", run->count, run->count == 1 ? "" : "s");
    const char *separator = ": ";
    for (int v = 0; v < LB_VERDICT_COUNT; v++) {
        if (counts[v] == 0)
            continue;
        fprintf(out, "%s%zu %s%s", separator, counts[v], lb_verdict_name((enum lb_verdict)v),
                lb_verdict_is_failure((enum lb_verdict)v) ? "!" : "");
        separator = ", ";
    }
    fprintf(out, "\n");
}

static void print_group(FILE *out, const struct lb_grouped_run *grouped,
                        const struct lb_group *group)
{
    const struct lb_candidate *base = lb_group_timed(group, grouped->baseline_series);
    double base_ns = base ? base->row->median_ns : (double)NAN;
    bool updates = has_updates(group);
    print_problem(out, grouped->run, group);
    for (size_t i = 0; i < group->count; i++) {
        const struct lb_candidate *it = &group->candidates[i];
        if (i < group->timed)
            print_times(out, grouped, it, base_ns, updates);
        else if (it->row->verdict != LB_VERDICT_ABSENT)
            print_verdict(out, grouped->series[it->series].name, it->row);
    }
}

void lb_table_print_problems(FILE *out, const struct lb_grouped_run *grouped, char *baseline)
{
    const size_t count = grouped->run->count;
    const struct lb_group **groups = lb_needed(calloc(count + 1, sizeof(*groups))); /* by row */
    for (size_t i = 0; i < grouped->count; i++)
        groups[grouped->groups[i].first] = &grouped->groups[i];
    if (strcmp(grouped->baseline, baseline) != 0 && grouped->baseline[0]) {
        fprintf(out, "%sMedian time of a call with half its 95 %% interval; speed-up over %s.\n",
                baseline[0] ? "\n" : "", grouped->baseline);
        memcpy(baseline, grouped->baseline, sizeof(grouped->baseline));
    }
    for (size_t i = 0; i < count; i++)
        if (groups[i])
            print_group(out, grouped, groups[i]);
    free(groups);
}

/* Prints the throughput and p99 of all splits of a case's threads, and names that with most calls
 * per second, of those whose p99 is known to be within the deadline where there is one. splits:
 * from the number of instances to the index of the row. */
static void print_splits(FILE *out, const struct lb_run *run, const char *id, json_t *splits)
{
    const struct lb_row *best = NULL;
    const char *instances;
    json_t *index;
    json_object_foreach(splits, instances, index)
    {
        const struct lb_row *row = &run->rows[json_integer_value(index)];
        const double deadline = lb_row_deadline(run, row);
        const bool late = isfinite(deadline) && !(lb_row_time(row, LB_P99).ns <= deadline);
        if (!late && (!best || lb_row_calls_per_s(row) > lb_row_calls_per_s(best)))
            best = row;
    }
    fprintf(out, "\n%s by instances\n  %9s %8s %15s %10s\n", id, "instances", "threads", "calls/s",
            "p99");
    json_object_foreach(splits, instances, index)
    {
        const struct lb_row *row = &run->rows[json_integer_value(index)];
        fprintf(out, "  %9s %8d %15.4g %10s%s\n", instances, row->c.threads / row->c.instances,
                lb_row_calls_per_s(row), LB_NS_TEXT(lb_row_time(row, LB_P99).ns),
                row == best ? "  * best split" : "");
    }
}

/* The splits of each case that ran with several numbers of instances. */
static void print_all_splits(FILE *out, const struct lb_run *run)
{
    json_t *cases = json_object(), *splits;
    const char *id;
    for (size_t i = 0; i < run->count; i++) {
        struct lb_row alone = run->rows[i];
        char instances[16];
        if (alone.c.timing != LB_STREAMING || !lb_row_is_timed(&alone))
            continue;
        snprintf(instances, sizeof(instances), "%d", alone.c.instances);
        alone.c.instances = 1;
        json_object_set_new(member(cases, LB_ROW_ID(&alone)), instances,
                            json_integer((json_int_t)i));
    }
    json_object_foreach(cases, id, splits)
    {
        if (json_object_size(splits) > 1)
            print_splits(out, run, id, splits);
    }
    json_decref(cases);
}

void lb_table_print_summary(FILE *out, const struct lb_grouped_run *grouped)
{
    print_all_splits(out, grouped->run);
    print_absent(out, grouped->run);
    explain_marks(out, grouped);
    print_counts(out, grouped->run);
}

void lb_table_print(FILE *out, const struct lb_grouped_run *grouped)
{
    char baseline[2 * LB_NAME_SIZE] = "";
    lb_table_print_problems(out, grouped, baseline);
    lb_table_print_summary(out, grouped);
}

/* Kernels */

static void print_sizes(FILE *out, const char *name, const json_int_t sizes[3])
{
    fprintf(out, "%s %lldx%lldx%lld", name, sizes[0], sizes[1], sizes[2]);
}

static void print_kernel(FILE *out, const struct lb_kernel *kernel)
{
    fprintf(out, "      %5lld x %s\n", kernel->count, kernel->name);
    fprintf(out, "              %s, longest %s; tensor cores: %s; ", LB_NS_TEXT(kernel->total_ns),
            LB_NS_TEXT(kernel->longest_ns), lb_tensor_cores_name(kernel->tensor_cores));
    print_sizes(out, "grid", kernel->grid);
    print_sizes(out, ", block", kernel->block);
    print_sizes(out, ", cluster", kernel->cluster);
    fprintf(out, ", %lld registers, %lld bytes shared\n", kernel->registers, kernel->shared_bytes);
}

void lb_kernels_print(FILE *out, const struct lb_row *row)
{
    const struct lb_kernels *kernels = &row->kernels;
    char sentence[160];
    lb_kernels_sentence(kernels, sentence, sizeof(sentence));
    if (!sentence[0]) {
        fprintf(out, "    kernels  unknown: %s\n",
                row->kernels_reason[0] ? row->kernels_reason : "not traced");
        return;
    }
    fprintf(out, "    kernels  %s %s\n", LB_IMPL_LABEL(&row->c), sentence);
    for (size_t i = 0; i < kernels->count; i++)
        print_kernel(out, &kernels->items[i]);
    fprintf(out, "      of %s, no kernel ran for %s; the longest gap was %s\n",
            LB_NS_TEXT(kernels->span_ns), LB_NS_TEXT(kernels->gap_ns),
            LB_NS_TEXT(kernels->longest_gap_ns));
    if (row->warning[0])
        fprintf(out, "      warning: %s\n", row->warning);
}
