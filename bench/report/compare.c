/* Comparing two runs case by case, and the comparison as Markdown, JUnit XML and JSON. */
#include "report/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/xml.h"
#include "record/environment.h"
#include "stats/anomalies.h"

/* Appends to the note of a pair, or to the notes of a comparison. */
#define NOTE(pair, ...) lb_append((pair)->note, sizeof((pair)->note), __VA_ARGS__)
#define NOTES(all, ...) lb_append((all)->notes, sizeof((all)->notes), __VA_ARGS__)

static const char *const change_names[LB_CHANGE_COUNT] = {
    "broken", "slower", "gone", "inconclusive",  "faster",
    "mended", "new",    "same", "still failing", "not run"};

const char *lb_change_name(enum lb_change change)
{
    return change_names[change];
}

bool lb_change_is_regression(enum lb_change change)
{
    return change == LB_CHANGE_BROKEN || change == LB_CHANGE_SLOWER;
}

struct lb_compare_options lb_compare_defaults(void)
{
    return (struct lb_compare_options){
        .judgement = {.margin = 0.02, .level = 0.01}, .base_name = "", .now_name = ""};
}

static bool is_common(const struct lb_pair *pair)
{
    return pair->base && pair->now && lb_row_is_timed(pair->base) && lb_row_is_timed(pair->now);
}

/* Adds a pair for each high percentile that both rows of the pair have. */
static void add_percentiles(struct lb_run_comparison *comparison, const struct lb_pair *pair)
{
    for (int i = LB_P99; i < LB_PERCENTILES && is_common(pair); i++) {
        if (!isfinite(lb_row_time(pair->base, i).ns) || !isfinite(lb_row_time(pair->now, i).ns))
            continue;
        struct lb_pair *added = &comparison->pairs[comparison->count++];
        *added = *pair;
        added->percentile = i;
        lb_append(added->id, sizeof(added->id), " %s", lb_percentile_name(i));
    }
}

/* The text by which a case is looked up in the other run. sides: each run is one side of --ab, and
 * the problem is looked up. */
static void print_key(const struct lb_row *row, bool sides, char id[LB_ROW_ID_SIZE])
{
    struct lb_row key = {.c = row->c, .label = row->label};
    if (sides)
        key.c.impl[0] = key.c.variant[0] = '\0';
    lb_row_print_id(&key, id);
}

/* Fills the pairs with the cases of both runs: those of base in their order, then those that only
 * the new run has. */
static void match(const struct lb_run *base, const struct lb_run *now,
                  const struct lb_compare_options *options, struct lb_run_comparison *comparison)
{
    bool sides = comparison->unit == LB_UNIT_BLOCK && json_object_get(base->header, "side");
    json_t *index = json_object();
    char id[LB_ROW_ID_SIZE];
    const size_t each = LB_PERCENTILES - LB_P99 + 1; /* the median and two percentiles */
    struct lb_pair *pairs =
        lb_needed(calloc((base->count + now->count) * each + 1, sizeof(*pairs)));
    comparison->pairs = pairs;
    comparison->further =
        lb_needed(calloc(base->count * options->base_count + 1, sizeof(*comparison->further)));
    for (size_t i = 0; i < base->count; i++) {
        struct lb_pair *pair = &pairs[comparison->count++];
        pair->base = &base->rows[i];
        pair->further = &comparison->further[i * options->base_count];
        print_key(pair->base, sides, pair->id);
        json_object_set_new(index, pair->id, json_integer((json_int_t)i));
    }
    for (size_t r = 0; r < options->base_count; r++)
        for (size_t i = 0; i < options->bases[r].count; i++) {
            print_key(&options->bases[r].rows[i], sides, id);
            const json_t *found = json_object_get(index, id);
            if (found)
                pairs[json_integer_value(found)].further[r] = &options->bases[r].rows[i];
        }
    for (size_t i = 0; i < now->count; i++) {
        print_key(&now->rows[i], sides, id);
        const json_t *found = json_object_get(index, id);
        size_t at = found ? (size_t)json_integer_value(found) : comparison->count++;
        memcpy(pairs[at].id, id, sizeof(id));
        pairs[at].now = &now->rows[i];
    }
    for (size_t i = 0, count = comparison->count; i < count; i++) {
        pairs[i].percentile = LB_MEDIAN;
        if (comparison->unit != LB_UNIT_BLOCK)
            add_percentiles(comparison, &pairs[i]);
    }
    for (size_t i = 0; i < comparison->count; i++) {
        pairs[i].shift.estimate = NAN;
        comparison->common += is_common(&pairs[i]);
    }
    json_decref(index);
}

/* The change of a case that does not have a time in both runs, and why. */
static enum lb_change judge_untimed(struct lb_pair *pair)
{
    const struct lb_row *base = pair->base, *now = pair->now;
    bool had = base && lb_row_is_timed(base), has = now && lb_row_is_timed(now);
    bool failed = base && lb_verdict_is_failure(base->verdict);
    bool fails = now && lb_verdict_is_failure(now->verdict);
    if (has && !base)
        return LB_CHANGE_NEW;
    if (base && now && lb_verdict_has_samples(base->verdict) &&
        lb_verdict_has_samples(now->verdict)) {
        const struct lb_row *suspect = had ? now : base;
        NOTE(pair, "%s: %s: %s", had ? "now" : "before", lb_verdict_name(suspect->verdict),
             suspect->reason);
        return LB_CHANGE_INCONCLUSIVE;
    }
    if (has) {
        NOTE(pair, "before: %s: %s", lb_verdict_name(base->verdict), base->reason);
        return LB_CHANGE_MENDED;
    }
    if (now && now->verdict == LB_VERDICT_OK)
        NOTE(pair, "ok, but without a time");
    else if (now)
        NOTE(pair, "%s: %s", lb_verdict_name(now->verdict), now->reason);
    else if (had || failed)
        NOTE(pair, "no row in the new run");
    if (fails)
        return failed ? LB_CHANGE_STILL_FAILING : LB_CHANGE_BROKEN;
    return had ? LB_CHANGE_GONE : LB_CHANGE_NOT_RUN;
}

/* Writes the logarithms of the case's medians in all runs of the base to logs [base_count + 1].
 * Returns how many runs have one. */
static size_t base_times(const struct lb_pair *pair, const struct lb_compare_options *options,
                         double *logs)
{
    size_t count = 0;
    logs[count++] = log(pair->base->median_ns);
    for (size_t r = 0; r < options->base_count; r++) {
        const struct lb_row *row = pair->further[r];
        if (row && lb_row_is_timed(row))
            logs[count++] = log(row->median_ns);
    }
    return count;
}

/* The sum of squares of values [n] about their mean. */
static double sum_of_squares(const double *values, size_t n)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return squares;
}

/* Learns how much runs of the same code differ from the further runs of the base. scratch
 * [base_count + 1] */
static struct lb_spread spread_between_runs(const struct lb_run_comparison *comparison,
                                            const struct lb_compare_options *options,
                                            double *scratch)
{
    double squares = 0;
    size_t df = 0, fewest = SIZE_MAX;
    for (size_t i = 0; options->base_count > 0 && i < comparison->count; i++) {
        size_t runs =
            comparison->pairs[i].percentile == LB_MEDIAN && is_common(&comparison->pairs[i])
                ? base_times(&comparison->pairs[i], options, scratch)
                : 0;
        if (runs < 2)
            continue; /* the other cases tell the spread, also for this one */
        squares += sum_of_squares(scratch, runs);
        df += runs - 1;
        fewest = runs < fewest ? runs : fewest;
    }
    return df > 0 ? (struct lb_spread){sqrt(squares / (double)df), fewest - 1}
                  : (struct lb_spread){0, 0};
}

/* The logarithms of the times of a row's units, in memory of their own. For runs, the row of the
 * base has those of the further runs too. */
static double *unit_times(const struct lb_pair *pair, const struct lb_row *row, enum lb_unit unit,
                          const struct lb_compare_options *options, size_t *count)
{
    bool one = unit == LB_UNIT_RUN || (unit == LB_UNIT_PROCESS && row->process_count < 2);
    double *logs = lb_needed(malloc((lb_row_units(row) + options->base_count + 1) * sizeof(*logs)));
    *count = one ? 1 : lb_row_units(row);
    logs[0] = lb_row_time(row, pair->percentile).ns;
    if (!one)
        lb_row_unit_times(row, lb_percentile_share(pair->percentile), logs);
    for (size_t i = 0; i < *count; i++)
        logs[i] = log(logs[i]);
    if (unit == LB_UNIT_RUN && row == pair->base)
        *count = base_times(pair, options, logs);
    return logs;
}

/* What a row itself shows of its disturbance, as the square of a relative deviation: by its samples
 * and by other programs on its CPUs. The interval of the median says too little where the machine
 * was slow for most of the samples. Since that only makes calls longer, the shortest one tells how
 * far the median may be off. */
static double disturbance(const struct lb_row *row, int percentile)
{
    const struct lb_percentile time = lb_row_time(row, percentile);
    double half = (time.hi_ns - time.lo_ns) / 2 / time.ns;
    double by_samples = isfinite(half) ? half : row->spread_within;
    double by_others = row->others_share;
    if (percentile == LB_MEDIAN)
        by_samples = fmax(by_samples, (row->median_ns - row->min_ns) / 2 / row->median_ns);
    return (isfinite(by_samples) ? by_samples * by_samples : 0) +
           (isfinite(by_others) ? by_others * by_others : 0);
}

/* The spread of single processes of this pair. The fixed loop took both times around the same work,
 * so that its difference is the machine's. */
static struct lb_spread assume_spread(const struct lb_pair *pair)
{
    double machine = log(lb_row_mean_reference(pair->now) / lb_row_mean_reference(pair->base));
    double more = disturbance(pair->base, pair->percentile) +
                  disturbance(pair->now, pair->percentile) +
                  (isfinite(machine) ? machine * machine : 0);
    return (struct lb_spread){sqrt(LB_PROCESS_SPREAD * LB_PROCESS_SPREAD + more / 2),
                              LB_PROCESS_SPREAD_DF};
}

/* Fills in the units of a pair that has a time in both runs; the caller frees base and now. */
static void find_units(struct lb_run_comparison *comparison, struct lb_pair *pair,
                       const struct lb_compare_options *options, struct lb_contrast *c)
{
    enum lb_unit unit = comparison->unit;
    /* The runs of the base do not show how much a percentile scatters, and the time of fewer
     * processes scatters more than theirs. */
    if (unit == LB_UNIT_RUN &&
        (pair->percentile != LB_MEDIAN || pair->now->process_count < pair->base->process_count))
        unit = LB_UNIT_PROCESS;
    c->paired = unit == LB_UNIT_BLOCK;
    c->base = unit_times(pair, pair->base, unit, options, &c->base_count);
    c->now = unit_times(pair, pair->now, unit, options, &c->now_count);
    if (unit == LB_UNIT_RUN)
        c->spread = comparison->spread;
    if (unit == LB_UNIT_PROCESS &&
        (c->base_count < LB_SHIFT_MIN_UNITS || c->now_count < LB_SHIFT_MIN_UNITS)) {
        c->spread = assume_spread(pair);
        pair->assumed_spread = c->spread.deviation;
        comparison->assumed++;
    }
    if (unit == LB_UNIT_RUN && c->base_count >= 2)
        c->spread.deviation =
            fmax(c->spread.deviation,
                 sqrt(sum_of_squares(c->base, c->base_count) / (double)(c->base_count - 1)));
}

/* Writes why a pair of interleaved rows has too few blocks. */
static void note_blocks(struct lb_pair *pair)
{
    size_t n = pair->base_units, m = pair->now_units;
    if (n != m)
        NOTE(pair, "%zu blocks against %zu: interleaved blocks must form pairs", n, m);
    else
        NOTE(pair, "too few to tell: %zu pairs of blocks, at least %d are needed, %s gives enough",
             n, LB_SHIFT_MIN_PAIRS,
             pair->now->process_count > 1 ? "--processes 15" : "--benchmark_repetitions=60");
}

/* Appends to the note in which run the times drifted. Drifting samples are not independent, so the
 * interval may be too narrow. Of interleaved runs, whose drift is the same on both sides, nothing
 * is said. */
static void note_drift(struct lb_pair *pair)
{
    bool base = pair->base->flags & LB_ANOMALY_DRIFT, now = pair->now->flags & LB_ANOMALY_DRIFT;
    if (base || now)
        NOTE(pair, "%stimes drift in %s", pair->note[0] ? "; " : "",
             !now    ? "the base run"
             : !base ? "the new run"
                     : "both runs");
}

/* Takes over what was found out of a pair's times. */
static void conclude(struct lb_run_comparison *comparison, struct lb_pair *pair,
                     const struct lb_contrast *c)
{
    static const enum lb_change changes[] = {
        [LB_OUTCOME_UNDECIDED] = LB_CHANGE_INCONCLUSIVE,
        [LB_OUTCOME_SLOWER] = LB_CHANGE_SLOWER,
        [LB_OUTCOME_FASTER] = LB_CHANGE_FASTER,
        [LB_OUTCOME_SAME] = LB_CHANGE_SAME,
    };
    pair->change = changes[c->outcome];
    pair->base_units = c->base_count;
    pair->now_units = c->now_count;
    pair->compared = c->tested;
    pair->shift = c->shift;
    pair->adjusted_p = c->adjusted_p;
    comparison->compared += c->tested;
    if (c->tested)
        NOTE(pair, "%s", c->reason);
    else
        note_blocks(pair);
    if (c->tested && comparison->unit != LB_UNIT_BLOCK)
        note_drift(pair);
}

/* Compares all pairs that have a time in both runs. */
static void compare_times(struct lb_run_comparison *comparison,
                          const struct lb_compare_options *options)
{
    size_t count = 0;
    struct lb_contrast *cases = lb_needed(calloc(comparison->common + 1, sizeof(*cases)));
    double *scratch = lb_needed(malloc((options->base_count + 1) * sizeof(*scratch)));
    if (comparison->unit != LB_UNIT_BLOCK)
        comparison->spread = spread_between_runs(comparison, options, scratch);
    if (comparison->spread.deviation > 0)
        comparison->unit = LB_UNIT_RUN;
    for (size_t i = 0; i < comparison->count; i++)
        if (is_common(&comparison->pairs[i]))
            find_units(comparison, &comparison->pairs[i], options, &cases[count++]);
    lb_judge_cases(cases, count, &options->judgement);
    count = 0;
    for (size_t i = 0; i < comparison->count; i++)
        if (is_common(&comparison->pairs[i]))
            conclude(comparison, &comparison->pairs[i], &cases[count++]);
    for (size_t i = 0; i < comparison->common; i++) {
        free((double *)cases[i].base);
        free((double *)cases[i].now);
    }
    free(scratch);
    free(cases);
}

/* Says which units are compared. */
static void note_basis(struct lb_run_comparison *comparison, const struct lb_compare_options *how)
{
    if (comparison->unit == LB_UNIT_RUN)
        snprintf(comparison->basis, sizeof(comparison->basis),
                 "Runs of the same code differ by %.2g %% (standard deviation, from %zu runs of "
                 "the base), which is allowed for.",
                 100 * comparison->spread.deviation, how->base_count + 1);
    else if (comparison->unit == LB_UNIT_PROCESS && comparison->common > 0 &&
             comparison->assumed == 0)
        snprintf(comparison->basis, sizeof(comparison->basis),
                 "Runs of the same code may differ by more than their processes show, which is "
                 "not allowed for: give --compare three or more runs of the base.");
}

/* Notes when a run is incomplete. */
static void note_file(struct lb_run_comparison *comparison, const char *which,
                      const struct lb_run *run)
{
    if (!run->finished || run->interrupted || run->torn)
        NOTES(comparison, "The %s run was cut short%s: it has %zu rows.\n", which,
              run->torn ? " in the middle of a line" : "", run->count);
}

static void note_runs(const struct lb_run *base, const struct lb_run *now,
                      struct lb_run_comparison *comparison)
{
    char libraries[256];
    const json_t *before = json_object_get(base->header, "environment");
    const json_t *after = json_object_get(now->header, "environment");
    if (lb_environment_differs(before, after, comparison->environments,
                               sizeof(comparison->environments)))
        NOTES(comparison,
              "DIFFERENT ENVIRONMENTS (%s): a difference may be the machine's, not the code's.\n",
              comparison->environments);
    if (lb_libraries_differ(before, after, libraries, sizeof(libraries)))
        NOTES(comparison, "Libraries differ: %s.\n", libraries);
    note_file(comparison, "base", base);
    note_file(comparison, "new", now);
    if (comparison->common == 0)
        NOTES(comparison, "No case has a time in both runs: there is nothing to compare.\n");
}

/* Notes for how many cases the spread was assumed, what that can show, and what shows more. */
static void note_assumed(struct lb_run_comparison *comparison)
{
    const size_t assumed = comparison->assumed;
    double most = 0;
    for (size_t i = 0; i < comparison->count; i++)
        most = fmax(most, comparison->pairs[i].assumed_spread);
    if (assumed > 0)
        NOTES(comparison,
              "%zu case%s too few processes to show how much they differ: a deviation of %.0f to "
              "%.0f %% is assumed, so that only large changes can be told from chance. Add "
              "--processes 15 to both sweeps%s.\n",
              assumed, assumed == 1 ? " has" : "s have", 100 * LB_PROCESS_SPREAD, 100 * most,
              comparison->unit == LB_UNIT_RUN ? ""
                                              : ", or give --compare several runs of the base");
}

/* The smallest p-value that so many units per side, or so many pairs, can reach after the
 * correction, when no other case differs. */
static double least_p(const struct lb_run_comparison *comparison, size_t units)
{
    return (double)comparison->compared * (comparison->unit == LB_UNIT_BLOCK
                                               ? lb_shift_paired_least_p(units)
                                               : lb_shift_least_p(units, units));
}

/* Notes when a single slowdown can't become significant after the correction for many cases. */
static void note_power(struct lb_run_comparison *comparison)
{
    bool paired = comparison->unit == LB_UNIT_BLOCK, processes = !paired;
    size_t units = SIZE_MAX, needed = 1;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct lb_pair *pair = &comparison->pairs[i];
        processes = processes || (pair->now && pair->now->process_count > 1);
        size_t fewer = pair->base_units < pair->now_units ? pair->base_units : pair->now_units;
        if (pair->compared && pair->assumed_spread == 0 && fewer < units)
            units = fewer;
    }
    if (units == SIZE_MAX || comparison->unit == LB_UNIT_RUN ||
        least_p(comparison, units) <= comparison->judgement.level)
        return;
    while (least_p(comparison, needed) > comparison->judgement.level)
        needed++;
    NOTES(
        comparison,
        "With %zu %s, one slowdown alone can't be told from chance (cases: %zu): %s%zu would do.\n",
        units, paired ? "pairs" : "units per side", comparison->compared,
        processes ? "--processes " : "--benchmark_repetitions=", needed);
}

/* Says the outcome in one line. */
static void note_verdict(struct lb_run_comparison *comparison)
{
    const size_t *n = comparison->counts, size = sizeof(comparison->verdict);
    const char *word = "No regression found", *comma = "";
    char *text = comparison->verdict;
    if (n[LB_CHANGE_SLOWER] + n[LB_CHANGE_BROKEN] > 0)
        word = "REGRESSION";
    else if (comparison->common == 0)
        word = "Nothing to compare";
    else if (n[LB_CHANGE_INCONCLUSIVE] > 0)
        word = "No regression shown, but not all is decided";
    snprintf(text, size, "%s: %zu case%s: ", word, comparison->count,
             comparison->count == 1 ? "" : "s");
    for (int c = 0; c < LB_CHANGE_COUNT; c++)
        if (n[c] > 0) {
            lb_append(text, size, "%s%zu %s", comma, n[c], lb_change_name((enum lb_change)c));
            comma = ", ";
        }
    lb_append(text, size, " (margin %.3g %%).", 100 * comparison->judgement.margin);
}

static int by_severity(const void *a, const void *b)
{
    const struct lb_pair *p = a, *q = b;
    if (p->change != q->change)
        return p->change < q->change ? -1 : 1;
    if (p->compared != q->compared)
        return p->compared ? -1 : 1;
    if (p->compared && p->shift.estimate != q->shift.estimate)
        return p->shift.estimate > q->shift.estimate ? -1 : 1;
    return strcmp(p->id, q->id);
}

/* Takes back the slowdowns that options->again does not show. */
static enum lb_status confirm(const struct lb_run *base, const struct lb_compare_options *options,
                              struct lb_run_comparison *comparison, struct lb_error *err)
{
    struct lb_run_comparison second;
    struct lb_compare_options once = *options;
    once.again = NULL;
    LB_CHECK(lb_compare_runs(base, options->again, &once, &second, err));
    for (size_t i = 0; i < comparison->count; i++) {
        struct lb_pair *pair = &comparison->pairs[i];
        size_t k = 0;
        if (pair->change != LB_CHANGE_SLOWER)
            continue;
        while (k < second.count && strcmp(second.pairs[k].id, pair->id) != 0)
            k++;
        if (k < second.count && lb_change_is_regression(second.pairs[k].change))
            continue;
        pair->change = LB_CHANGE_INCONCLUSIVE;
        snprintf(pair->note, sizeof(pair->note), "slower in one of two sweeps; in the other: %s",
                 k < second.count ? lb_change_name(second.pairs[k].change) : "no row");
    }
    lb_run_comparison_free(&second);
    return LB_OK;
}

enum lb_status lb_compare_runs(const struct lb_run *base, const struct lb_run *now,
                               const struct lb_compare_options *options,
                               struct lb_run_comparison *comparison, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const json_t *mark = json_object_get(base->header, "interleaved");
    bool interleaved =
        json_is_string(mark) && json_equal(mark, json_object_get(now->header, "interleaved"));
    *comparison = (struct lb_run_comparison){
        .unit = interleaved ? LB_UNIT_BLOCK : LB_UNIT_PROCESS,
        .judgement = options->judgement,
    };
    for (size_t i = 0; i < options->base_count + 2; i++) {
        const struct lb_run *run = i == 0 ? base : i == 1 ? now : &options->bases[i - 2];
        if (run->doubt[0]) /* it is only half there */
            return lb_fail(err, LB_INVALID, "%s: it can't be compared", run->doubt);
    }
    match(base, now, options, comparison);
    compare_times(comparison, options);
    for (size_t i = 0; i < comparison->count; i++) {
        struct lb_pair *pair = &comparison->pairs[i];
        if (!is_common(pair))
            pair->change = judge_untimed(pair);
    }
    if (options->again)
        st = confirm(base, options, comparison, err);
    for (size_t i = 0; i < comparison->count; i++)
        comparison->counts[comparison->pairs[i].change]++;
    qsort(comparison->pairs, comparison->count, sizeof(*comparison->pairs), by_severity);
    snprintf(comparison->base_name, sizeof(comparison->base_name), "%s", options->base_name);
    snprintf(comparison->now_name, sizeof(comparison->now_name), "%s", options->now_name);
    lb_clean_text(comparison->base_name);
    lb_clean_text(comparison->now_name);
    note_verdict(comparison);
    note_basis(comparison, options);
    note_runs(base, now, comparison);
    note_power(comparison);
    note_assumed(comparison);
    size_t length = strlen(comparison->notes);
    if (length > 0 && comparison->notes[length - 1] == '\n')
        comparison->notes[length - 1] = '\0';
    if (st != LB_OK)
        lb_run_comparison_free(comparison);
    return st;
}

void lb_run_comparison_free(struct lb_run_comparison *comparison)
{
    free(comparison->pairs);
    free(comparison->further);
    *comparison = (struct lb_run_comparison){0};
}

/* Reports */

void lb_format_change(const struct lb_pair *pair, char change[32], char interval[64])
{
    change[0] = interval[0] = '\0';
    if (isfinite(pair->shift.estimate))
        snprintf(change, 32, "%+.1f %%", 100 * expm1(pair->shift.estimate));
    if (pair->compared)
        snprintf(interval, 64, "%+.1f to %+.1f %%", 100 * expm1(pair->shift.lo95),
                 100 * expm1(pair->shift.hi95));
}

void lb_markdown_cell(char *text)
{
    for (; *text; text++)
        if (strchr("|<>`\n\r", *text))
            *text = ' ';
}

/* Markdown that is being written: bytes so far, and cases that were left out. */
struct markdown {
    FILE *out;
    size_t written, left_out;
};

/* Writes the text, unless too little room for the closing lines would be left below the limit. */
static bool __attribute__((format(printf, 2, 3))) put(struct markdown *md, const char *format, ...)
{
    const size_t room = 600;
    char text[2048];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (md->written + strlen(text) + room > LB_MARKDOWN_LIMIT)
        return false;
    fputs(text, md->out);
    md->written += strlen(text);
    return true;
}

/* Formats the time in us; "-" when there is none. */
static void format_time(const struct lb_row *row, int percentile, char text[32])
{
    snprintf(text, 32, "-");
    if (row && lb_row_is_timed(row))
        snprintf(text, 32, "%.4g", lb_row_time(row, percentile).ns / 1e3);
}

/* Writes one line of the table. Case texts need no escapes, but notes may contain anything. */
static bool put_line(struct markdown *md, const struct lb_pair *pair)
{
    char change[32], interval[64], note[sizeof(pair->note)], base[32], now[32];
    memcpy(note, pair->note, sizeof(note));
    lb_markdown_cell(note);
    format_time(pair->base, pair->percentile, base);
    format_time(pair->now, pair->percentile, now);
    lb_format_change(pair, change, interval);
    return put(md, "| %s | `%s` | %s | %s | %s | %s | %s |\n", lb_change_name(pair->change),
               pair->id, change, interval, base, now, note);
}

/* Writes the table of pairs [first, last). */
static void put_table(struct markdown *md, const struct lb_pair *pairs, size_t first, size_t last)
{
    bool fits = put(md, "| verdict | case | change | 95 %% interval | base us | new us | |\n"
                        "|---|---|---:|---:|---:|---:|---|\n");
    for (; first < last && fits; first += fits)
        fits = put_line(md, &pairs[first]);
    md->left_out += last - first;
}

void lb_report_markdown(const struct lb_run_comparison *comparison, FILE *out)
{
    struct markdown md = {.out = out};
    size_t worst = 0;
    char base[401] = "", now[401] = "";
    lb_append(base, sizeof(base), "%s", comparison->base_name);
    lb_append(now, sizeof(now), "%s", comparison->now_name);
    put(&md, "### %s\n\nBase `%s`, new `%s`.%s\n\n", comparison->verdict, base, now,
        comparison->unit == LB_UNIT_BLOCK ? " The runs took turns in one process." : "");
    if (comparison->notes[0])
        put(&md, "> **Note.** %s\n\n", comparison->notes);
    if (comparison->basis[0])
        put(&md, "%s\n\n", comparison->basis);
    while (worst < comparison->count && lb_change_is_regression(comparison->pairs[worst].change))
        worst++;
    if (worst > 0)
        put_table(&md, comparison->pairs, 0, worst);
    if (worst < comparison->count) {
        if (put(&md, "\n<details><summary>The other %zu case%s</summary>\n\n",
                comparison->count - worst, comparison->count - worst == 1 ? "" : "s")) {
            put_table(&md, comparison->pairs, worst, comparison->count);
            fputs("\n</details>\n", out);
        } else {
            md.left_out += comparison->count - worst;
        }
    }
    if (md.left_out > 0)
        fprintf(out,
                "\n%zu cases, the least severe ones, are left out here; the JSON report has all.\n",
                md.left_out);
    fprintf(
        out,
        "\nslower, faster: significant by Benjamini-Hochberg at %.3g %% over %zu compared cases, "
        "and beyond the margin; same: two one-sided tests place the change within the margin.\n",
        100 * comparison->judgement.level, comparison->compared);
}

/* Describes the pair in one line, for the message of a failure or the output of a passed test. */
static void describe(const struct lb_pair *pair, char *text, size_t size)
{
    char change[32], interval[64];
    lb_format_change(pair, change, interval);
    snprintf(text, size, "%s", lb_change_name(pair->change));
    if (pair->compared)
        lb_append(text, size, ": %s (%s), %.4g us before, %.4g us now, adjusted p %.2g", change,
                  interval, lb_row_time(pair->base, pair->percentile).ns / 1e3,
                  lb_row_time(pair->now, pair->percentile).ns / 1e3, pair->adjusted_p);
    if (pair->note[0])
        lb_append(text, size, "%s%s", pair->compared ? "; " : ": ", pair->note);
}

/* The JUnit element of a case; NULL: passed. With strict, cases that make --compare --strict exit
 * with code 4 are failures. */
static const char *junit_element(enum lb_change change, bool strict)
{
    bool open = change == LB_CHANGE_INCONCLUSIVE || change == LB_CHANGE_GONE;
    if (lb_change_is_regression(change) || (strict && open))
        return "failure";
    bool skipped = change == LB_CHANGE_GONE || change == LB_CHANGE_NOT_RUN ||
                   change == LB_CHANGE_STILL_FAILING;
    return skipped ? "skipped" : NULL;
}

/* What a document of JUnit is made of. */
struct junit {
    const struct lb_run_comparison *comparison;
    bool strict;
};

static void describe_case(const void *user, size_t index, struct lb_junit_case *c)
{
    const struct junit *junit = user;
    const struct lb_pair *pair = &junit->comparison->pairs[index];
    c->group = "compare";
    snprintf(c->name, sizeof(c->name), "%s", pair->id);
    if (pair->now && lb_row_is_timed(pair->now))
        c->seconds = lb_row_time(pair->now, pair->percentile).ns / 1e9;
    c->element = junit_element(pair->change, junit->strict);
    describe(pair, c->message, sizeof(c->message));
}

void lb_report_junit(const struct lb_run_comparison *comparison, bool strict, FILE *out)
{
    const struct junit junit = {comparison, strict};
    lb_junit_write(comparison->base_name, comparison->now_name, comparison->count, describe_case,
                   &junit, comparison->notes, out);
}

void lb_json_write(json_t *document, FILE *out)
{
    json_dumpf(document, out, JSON_INDENT(2));
    fputc('\n', out);
    json_decref(document);
}

static json_t *number_or_null(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *pair_json(const struct lb_pair *pair)
{
    const struct lb_shift *s = &pair->shift;
    bool c = pair->compared, timed = isfinite(s->estimate);
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:s}", "case", pair->id, "change",
        lb_change_name(pair->change), "ratio", number_or_null(timed, exp(s->estimate)), "ratio_lo",
        number_or_null(c, exp(s->lo95)), "ratio_hi", number_or_null(c, exp(s->hi95)), "p",
        number_or_null(c, s->p), "adjusted_p", number_or_null(c, pair->adjusted_p),
        "base_median_ns",
        number_or_null(pair->base, pair->base ? lb_row_time(pair->base, pair->percentile).ns : 0),
        "new_median_ns",
        number_or_null(pair->now, pair->now ? lb_row_time(pair->now, pair->percentile).ns : 0),
        "base_units", (json_int_t)pair->base_units, "new_units", (json_int_t)pair->now_units,
        "note", pair->note);
}

json_t *lb_report_json(const struct lb_run_comparison *comparison)
{
    json_t *cases = json_array(), *counts = json_object();
    for (size_t i = 0; i < comparison->count; i++)
        json_array_append_new(cases, pair_json(&comparison->pairs[i]));
    for (int c = 0; c < LB_CHANGE_COUNT; c++)
        json_object_set_new(counts, lb_change_name((enum lb_change)c),
                            json_integer((json_int_t)comparison->counts[c]));
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:b, s:s, s:s, s:s, s:f, s:o, s:o}", "verdict",
                     comparison->verdict, "base", comparison->base_name, "new",
                     comparison->now_name, "margin", comparison->judgement.margin, "level",
                     comparison->judgement.level, "interleaved", comparison->unit == LB_UNIT_BLOCK,
                     "environments_differ_in", comparison->environments, "notes", comparison->notes,
                     "basis", comparison->basis, "run_spread", comparison->spread.deviation,
                     "counts", counts, "cases", cases);
}
