/* The numbers that are derived from a row's samples, and the merging of blocks into a row. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"
#include "stats/anomalies.h"
#include "stats/order_stats.h"

#define MAD_TO_SIGMA 1.4826 /* standard deviation over MAD of a normal distribution */

/* Sorts a copy of values [n] into scratch [n]. */
static void sort_into(const double *values, size_t n, double *scratch)
{
    if (n > 0)
        memcpy(scratch, values, n * sizeof(*values));
    lb_sort(scratch, n);
}

/* The spread of sorted [n] relative to its median; NaN for fewer than 2 values. */
static double relative_spread(const double *sorted, size_t n)
{
    return n > 1 ? MAD_TO_SIGMA * lb_mad(sorted, n) / lb_median(sorted, n) : (double)NAN;
}

/* How many samples the unit has; *first_block is its first block and moves on to the next unit. */
static size_t unit_samples(const struct lb_row *row, size_t unit, size_t *first_block)
{
    if (row->process_count < 2)
        return row->blocks[unit];
    size_t count = 0;
    for (size_t b = 0; b < row->processes[unit]; b++)
        count += row->blocks[(*first_block)++];
    return count;
}

size_t lb_row_units(const struct lb_row *row)
{
    size_t units = row->process_count >= 2 ? row->process_count : row->block_count;
    size_t filled = 0, block = 0;
    for (size_t i = 0; i < units; i++)
        filled += unit_samples(row, i, &block) > 0;
    return filled;
}

enum lb_status lb_row_unit_times(const struct lb_row *row, double *times, struct lb_error *err)
{
    size_t units = row->process_count >= 2 ? row->process_count : row->block_count;
    size_t first = 0, block = 0;
    double *scratch = malloc((row->samples + 1) * sizeof(*scratch));
    if (!scratch)
        return lb_fail(err, LB_OOM, "out of memory for %zu samples", row->samples);
    for (size_t i = 0; i < units; i++) {
        size_t count = unit_samples(row, i, &block);
        sort_into(row->samples_ns + first, count, scratch);
        if (count > 0)
            *times++ = lb_median(scratch, count);
        first += count;
    }
    free(scratch);
    return LB_OK;
}

/* The relative spread of samples within a block, as the median over all blocks; scratch
 * [samples + blocks]. */
static double spread_within(const struct lb_row *row, double *scratch)
{
    double *spreads = scratch + row->samples;
    size_t first = 0, count = 0;
    for (size_t b = 0; b < row->block_count; first += row->blocks[b++]) {
        sort_into(row->samples_ns + first, row->blocks[b], scratch);
        if (row->blocks[b] > 1)
            spreads[count++] = relative_spread(scratch, row->blocks[b]);
    }
    lb_sort(spreads, count);
    return lb_median(spreads, count);
}

/* Computes the spread of the units' medians and, when the units are processes, the median with its
 * interval. medians [blocks] is scratch. */
static enum lb_status summarize_units(struct lb_row *row, double *medians, struct lb_error *err)
{
    size_t units = lb_row_units(row);
    enum lb_status st = lb_row_unit_times(row, medians, err);
    if (st != LB_OK)
        return st;
    lb_sort(medians, units);
    row->spread_between = relative_spread(medians, units);
    if (row->process_count < 2)
        return LB_OK;
    row->median_ns = lb_median(medians, units);
    row->median_lo_ns = row->median_hi_ns = NAN;
    lb_median_interval(medians, units, 0.95, &row->median_lo_ns, &row->median_hi_ns);
    return LB_OK;
}

/* A right result in less than the lower bound shows that the machine's figures are too low, as when
 * other programs ran while its ceilings were measured. Such a bound is dropped. */
static void compare_to_floor(struct lb_row *row)
{
    if (row->verdict == LB_VERDICT_OK && row->median_ns < row->floor_ns) {
        row->floor_ns = row->chain_ns = NAN;
        lb_row_warn(row, "it took less time than its lower bound, which is dropped, because the "
                         "ceilings measured for this machine are too low");
    }
    row->floor_multiple = row->median_ns / row->floor_ns;
}

enum lb_status lb_row_summarize(struct lb_row *row, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_anomalies anomalies;
    size_t n = row->samples;
    row->min_ns = row->median_ns = row->median_lo_ns = row->median_hi_ns = NAN;
    row->floor_multiple = NAN;
    row->p5_ns = row->p95_ns = row->mad_ns = NAN;
    row->outliers_mild = row->outliers_severe = row->spread_within = row->spread_between = NAN;
    row->flags = 0;
    if (n == 0)
        return LB_OK;

    double *sorted = malloc((n + row->block_count) * sizeof(*sorted));
    if (!sorted)
        return lb_fail(err, LB_OOM, "out of memory for %zu samples", n);
    sort_into(row->samples_ns, n, sorted);
    row->min_ns = sorted[0];
    row->median_ns = lb_median(sorted, n);
    row->p5_ns = lb_quantile(sorted, n, 0.05);
    row->p95_ns = lb_quantile(sorted, n, 0.95);
    row->mad_ns = lb_mad(sorted, n);
    /* With too few samples it fails and the bounds stay unknown, as they should. */
    lb_median_interval(sorted, n, 0.95, &row->median_lo_ns, &row->median_hi_ns);
    row->spread_within = spread_within(row, sorted);
    LB_TRY(summarize_units(row, sorted, err));
    compare_to_floor(row);
    LB_TRY(lb_find_anomalies(row->samples_ns, n, row->blocks, row->block_count, &anomalies, err));
    row->flags = anomalies.flags;
    row->outliers_mild = (double)anomalies.mild;
    row->outliers_severe = (double)anomalies.severe;
done:
    free(sorted);
    return st;
}

void lb_row_warn(struct lb_row *row, const char *warning)
{
    if (warning[0] && !strstr(row->warning, warning))
        lb_row_append(&row->warning, "%s%s", row->warning[0] ? "; " : "", warning);
}

void lb_row_suspect(struct lb_row *row, const char *format, ...)
{
    char reason[LB_ROW_TEXT_SIZE];
    va_list arguments;
    if (!lb_verdict_has_samples(row->verdict))
        return;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    row->verdict = LB_VERDICT_SUSPECT;
    if (!strstr(row->reason, reason))
        lb_row_append(&row->reason, "%s%s", row->reason[0] ? "; " : "", reason);
}

static double latest(double before, double now)
{
    return isnan(now) ? before : now;
}

/* Merges everything of a later block but its samples, which are appended afterwards. */
static void merge_numbers(struct lb_row *row, const struct lb_row *block)
{
    double before = (double)row->samples, more = (double)block->samples;
    if (before + more > 0)
        row->calls_per_sample =
            (row->calls_per_sample * before + block->calls_per_sample * more) / (before + more);
    row->err_max_abs = fmax(row->err_max_abs, block->err_max_abs);
    row->err_max_rel = fmax(row->err_max_rel, block->err_max_rel);
    row->err_norm = fmax(row->err_norm, block->err_norm);
    row->tolerance_used = fmax(row->tolerance_used, block->tolerance_used);
    row->error_ratio = fmax(row->error_ratio, block->error_ratio);
    row->gradient_err_norm = fmax(row->gradient_err_norm, block->gradient_err_norm);
    row->loss_scale = fmin(row->loss_scale, block->loss_scale);
    row->overflow_share = fmax(row->overflow_share, block->overflow_share);
    row->overflow_check_ns = fmin(row->overflow_check_ns, block->overflow_check_ns);
    row->checked_calls += block->checked_calls;
    row->peak_bytes = fmax(row->peak_bytes, block->peak_bytes);
    row->update_ns = fmin(row->update_ns, block->update_ns);
    row->elapsed_ns += block->elapsed_ns;
    row->others_share = fmax(row->others_share, block->others_share);
    row->verify_ns += block->verify_ns;
    row->stop_reason = block->stop_reason;
    row->sm_mhz = latest(row->sm_mhz, block->sm_mhz);
    row->memory_mhz = latest(row->memory_mhz, block->memory_mhz);
    row->temperature_c = latest(row->temperature_c, block->temperature_c);
    if (isnan(block->floor_ns)) /* its warning says why */
        row->floor_ns = row->chain_ns = NAN;
    lb_row_warn(row, block->warning);
    if (block->verdict == LB_VERDICT_SUSPECT)
        lb_row_suspect(row, "%s", block->reason);
}

/* Appends the blocks of `other`; processes: each of its processes becomes one of the row, else they
 * belong to the row's latest. */
static enum lb_status append_blocks(struct lb_row *row, const struct lb_row *other, bool processes,
                                    struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t sample = 0, block = 0;
    for (size_t p = 0; p < other->process_count; p++) {
        if (processes)
            LB_TRY(lb_row_add_process(row, err));
        for (size_t b = 0; b < other->processes[p]; b++, block++) {
            LB_TRY(lb_row_add_block(row, other->samples_ns + sample, other->blocks[block], err));
            lb_row_set_reference(row, other->reference_ns[block]);
            sample += other->blocks[block];
        }
    }
    st = lb_row_summarize(row, err);
done:
    return st;
}

/* A deterministic implementation must give the same bits in every block, and so in every process.
 * True when a block contradicts the row, which then is the block's with the verdict wrong. */
static bool bits_differ(const struct lb_row *row, struct lb_row *block)
{
    if (!(row->deterministic > 0) || row->hash == 0 || block->hash == 0 || row->hash == block->hash)
        return false;
    block->verdict = LB_VERDICT_WRONG;
    lb_row_print(
        &block->reason,
        "says it is deterministic, but a later block of samples gave other bits (hash %016" PRIx64
        ") than the first (%016" PRIx64 ")",
        block->hash, row->hash);
    lb_row_drop_samples(block);
    return true;
}

enum lb_status lb_row_merge(struct lb_row *row, struct lb_row *block, bool first, bool new_process,
                            struct lb_error *err)
{
    if (!first && !lb_verdict_has_samples(row->verdict))
        return LB_OK;
    if (first || !lb_verdict_has_samples(block->verdict) || bits_differ(row, block)) {
        lb_row_free(row);
        *row = *block;
        *block = (struct lb_row){0};
        return LB_OK;
    }
    merge_numbers(row, block);
    return append_blocks(row, block, new_process, err);
}

static bool did_not_run(const struct lb_row *row)
{
    return row->verdict == LB_VERDICT_SKIPPED || row->verdict == LB_VERDICT_ABSENT;
}

enum lb_status lb_row_pool(struct lb_row *row, struct lb_row *other, struct lb_error *err)
{
    if (did_not_run(other) || (!lb_verdict_has_samples(row->verdict) && !did_not_run(row)))
        return LB_OK;
    if (did_not_run(row) || !lb_verdict_has_samples(other->verdict)) {
        lb_row_free(row);
        *row = *other;
        *other = (struct lb_row){0};
        return LB_OK;
    }
    merge_numbers(row, other);
    return append_blocks(row, other, true, err);
}

/* A row's mean time of the fixed loop, and the group of rows that it is compared within. */
struct loop_time {
    struct lb_row *row;
    double ns;
};

static int compare_loop_times(const void *a, const void *b)
{
    const struct loop_time *first = a, *second = b;
    if (first->row->environment != second->row->environment)
        return first->row->environment < second->row->environment ? -1 : 1;
    int impl = strcmp(first->row->c.impl, second->row->c.impl);
    return impl != 0 ? impl : (first->ns > second->ns) - (first->ns < second->ns);
}

static bool is_same_group(const struct lb_row *a, const struct lb_row *b)
{
    return a->environment == b->environment && strcmp(a->c.impl, b->c.impl) == 0;
}

/* The mean time of the fixed loop around the row's blocks; NaN where it is not known for all. */
static double mean_reference(const struct lb_row *row)
{
    double sum = 0;
    for (size_t block = 0; block < row->block_count; block++)
        sum += row->reference_ns[block];
    return row->block_count > 0 ? sum / (double)row->block_count : (double)NAN;
}

/* Sets the slowdown of a group of rows, whose times [count] are sorted; scratch [count]. */
static void judge_group(const struct loop_time *times, size_t count, double *scratch)
{
    if (count < LB_SLOWDOWN_ROWS)
        return;
    for (size_t i = 0; i < count; i++)
        scratch[i] = times[i].ns;
    double median = lb_median(scratch, count);
    for (size_t i = 0; i < count; i++) {
        struct lb_row *row = times[i].row;
        char warning[160];
        row->slowdown = times[i].ns / median;
        snprintf(warning, sizeof(warning),
                 "the machine was %.0f %% slower while it was measured than in most of the run",
                 100 * (row->slowdown - 1));
        if (row->slowdown > LB_SLOW_MACHINE)
            lb_row_warn(row, warning);
    }
}

enum lb_status lb_rows_find_slowdowns(struct lb_row *rows, size_t count, struct lb_error *err)
{
    size_t known = 0;
    struct loop_time *times = malloc((count + 1) * sizeof(*times));
    double *scratch = malloc((count + 1) * sizeof(*scratch));
    enum lb_status st = LB_OK;
    if (!times || !scratch)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory for %zu rows", count));
    for (size_t i = 0; i < count; i++) {
        double ns = lb_row_is_timed(&rows[i]) ? mean_reference(&rows[i]) : (double)NAN;
        rows[i].slowdown = NAN;
        if (isfinite(ns))
            times[known++] = (struct loop_time){&rows[i], ns};
    }
    qsort(times, known, sizeof(*times), compare_loop_times);
    for (size_t first = 0, next; first < known; first = next) {
        for (next = first + 1; next < known && is_same_group(times[first].row, times[next].row);)
            next++;
        judge_group(times + first, next - first, scratch);
    }
done:
    free(scratch);
    free(times);
    return st;
}
