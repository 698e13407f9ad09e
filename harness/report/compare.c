/* Comparing two runs case by case. */
#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/environment.h"
#include "stats/anomalies.h"
#include "stats/multiple_testing.h"
#include "stats/order_stats.h"
#include "stats/student.h"

#define LOW_QUANTILE 0.1

enum { LEAST_DF = 4 }; /* degrees of freedom from which on spreads between runs are compared */

static const struct lb_time_basis medians = {.low = false};

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
    return (struct lb_compare_options){.margin = 0.02, .level = 0.01};
}

/* Appends a sentence to the notes, as far as there is room. */
static void add_note(struct lb_run_comparison *comparison, const char *note)
{
    size_t used = strlen(comparison->notes);
    snprintf(comparison->notes + used, sizeof(comparison->notes) - used, "%s%s", used ? "\n" : "",
             note);
}

enum lb_status lb_log_times(const struct lb_row *row, const struct lb_time_basis *basis,
                            double *logs, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t units = lb_row_units(row);
    double *references = malloc((units + 1) * sizeof(*references));
    if (!references)
        return lb_fail(err, LB_OOM, "out of memory for %zu units", units);
    LB_TRY(lb_row_unit_times(row, basis->low ? LOW_QUANTILE : 0.5, logs, err));
    if (basis->corrected && !lb_row_unit_references(row, references))
        LB_TRY(lb_fail(err, LB_INVALID, "the fixed loop was not timed around each unit"));
    for (size_t i = 0; i < units; i++)
        logs[i] = log(logs[i]) - (basis->corrected ? log(references[i]) : 0);
done:
    free(references);
    return st;
}

/* The same in memory of its own, which the caller frees; NULL when that fails. */
static double *log_units(const struct lb_row *row, const struct lb_time_basis *basis)
{
    double *logs = malloc((lb_row_units(row) + 1) * sizeof(*logs));
    if (logs && lb_log_times(row, basis, logs, NULL) == LB_OK)
        return logs;
    free(logs);
    return NULL;
}

double lb_run_spread_by(const struct lb_run_spread *spread, const struct lb_time_basis *basis)
{
    if (basis->low)
        return basis->corrected ? spread->low_corrected : spread->low_raw;
    return basis->corrected ? spread->corrected : spread->raw;
}

/* Whether the fixed loop was timed around all units of the row. */
static bool has_references(const struct lb_row *row)
{
    double *references = malloc((lb_row_units(row) + 1) * sizeof(*references));
    bool known = references && lb_row_unit_references(row, references);
    free(references);
    return known;
}

/* How many units a row has when it is compared with the other. Blocks are never compared with
 * processes: against several processes, one process is one unit, however many blocks it has. */
static size_t units_beside(const struct lb_row *row, const struct lb_row *other)
{
    return other->process_count >= 2 && row->process_count < 2 ? 1 : lb_row_units(row);
}

/* Writes why so few units can't be compared; false when they can. */
static bool note_units(struct lb_pair *pair, bool interleaved)
{
    size_t n = pair->base_units, m = pair->now_units;
    bool processes = pair->base->process_count >= 2 || pair->now->process_count >= 2;
    const char *plural = processes ? "es" : "s";
    pair->note[0] = '\0';
    if (interleaved && n != m)
        snprintf(pair->note, sizeof(pair->note),
                 "%zu blocks against %zu: interleaved blocks must form pairs", n, m);
    else if (interleaved && n < LB_SHIFT_MIN_PAIRS)
        snprintf(pair->note, sizeof(pair->note),
                 "too few to tell: %zu pairs of blocks, at least %d are needed, "
                 "--benchmark_repetitions=60 gives enough",
                 n, LB_SHIFT_MIN_PAIRS);
    else if (!interleaved && (n < LB_SHIFT_MIN_UNITS || m < LB_SHIFT_MIN_UNITS))
        snprintf(pair->note, sizeof(pair->note),
                 "too few to tell: %zu %s%s against %zu, at least %d each are needed, "
                 "--processes 15 gives enough",
                 n, processes ? "process" : "block", n == 1 ? "" : plural, m, LB_SHIFT_MIN_UNITS);
    return pair->note[0] != '\0';
}

/* lb_compare_rows by any basis. */
static bool compare_rows(struct lb_pair *pair, bool interleaved, const struct lb_time_basis *basis)
{
    struct lb_error why = {"out of memory"};
    size_t n = pair->base_units = units_beside(pair->base, pair->now);
    size_t m = pair->now_units = units_beside(pair->now, pair->base);
    enum lb_status st = LB_OK;
    pair->compared = false;
    if (note_units(pair, interleaved))
        return false;
    double *base = log_units(pair->base, basis), *now = log_units(pair->now, basis);
    if (!base || !now) {
        st = LB_OOM;
    } else if (interleaved) {
        for (size_t i = 0; i < n; i++)
            now[i] -= base[i];
        st = lb_shift_paired(now, n, &pair->shift, &why);
    } else {
        st = lb_shift(base, n, now, m, &pair->shift, &why);
    }
    if (st != LB_OK)
        snprintf(pair->note, sizeof(pair->note), "%.200s", why.text);
    free(base);
    free(now);
    pair->compared = st == LB_OK;
    return pair->compared;
}

bool lb_compare_rows(struct lb_pair *pair, bool interleaved)
{
    return compare_rows(pair, interleaved, &medians);
}

/* The change of a pair that has a shift and an adjusted p-value. */
static enum lb_change judge(const struct lb_pair *pair, const struct lb_compare_options *options)
{
    double margin = log1p(options->margin);
    bool differs = pair->adjusted_p <= options->level;
    if (differs && pair->shift.estimate > margin)
        return LB_CHANGE_SLOWER;
    if (differs && pair->shift.estimate < -margin)
        return LB_CHANGE_FASTER;
    if (pair->shift.lo90 > -margin && pair->shift.hi90 < margin)
        return LB_CHANGE_SAME;
    return LB_CHANGE_INCONCLUSIVE;
}

/* Writes why a pair is inconclusive although it has a shift. */
static void explain_doubt(struct lb_pair *pair, const struct lb_compare_options *options)
{
    bool passes = fabs(pair->shift.estimate) > log1p(options->margin);
    bool differs = pair->adjusted_p <= options->level;
    snprintf(pair->note, sizeof(pair->note), "%s",
             passes    ? "the estimate is beyond the margin, but chance can't be ruled out"
             : differs ? "the times differ, but perhaps by less than the margin"
                       : "the interval reaches beyond the margin");
}

/* Appends to the note in which run the times drifted. Drifting samples are not independent, so the
 * interval may be too narrow. It is not called for interleaved runs, whose drift is the same on
 * both sides. */
static void note_drift(struct lb_pair *pair)
{
    bool base = pair->base->flags & LB_ANOMALY_DRIFT, now = pair->now->flags & LB_ANOMALY_DRIFT;
    size_t used = strlen(pair->note);
    if (base || now)
        snprintf(pair->note + used, sizeof(pair->note) - used, "%stimes drift %s", used ? "; " : "",
                 base && now ? "in both runs"
                 : base      ? "in the base run"
                             : "in the new run");
}

/* Removes an incomplete UTF-8 character from the end of a text that was cut to size. */
static void trim_character(char *text)
{
    size_t length = strlen(text), back = 0;
    while (back < length && back < 3 && (text[length - 1 - back] & 0xc0) == 0x80)
        back++;
    unsigned char lead = back < length ? (unsigned char)text[length - 1 - back] : 0;
    size_t expected = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (expected > back)
        text[length - 1 - back] = '\0';
}

/* The change of a case that does not have a time in both runs. */
static enum lb_change judge_untimed(struct lb_pair *pair)
{
    const struct lb_row *base = pair->base, *now = pair->now;
    bool had = base && lb_row_is_timed(base), has = now && lb_row_is_timed(now);
    bool failed = base && lb_verdict_is_failure(base->verdict);
    bool fails = now && lb_verdict_is_failure(now->verdict);
    if (has && !base)
        return LB_CHANGE_NEW;
    if (has) {
        snprintf(pair->note, sizeof(pair->note), "before: %s: %.200s",
                 lb_verdict_name(base->verdict), base->reason);
        trim_character(pair->note);
        return LB_CHANGE_MENDED;
    }
    if (now && now->verdict != LB_VERDICT_OK)
        snprintf(pair->note, sizeof(pair->note), "%s: %.200s", lb_verdict_name(now->verdict),
                 now->reason);
    if (now && now->verdict == LB_VERDICT_OK)
        snprintf(pair->note, sizeof(pair->note), "ok, but without a time");
    trim_character(pair->note);
    if (fails)
        return failed ? LB_CHANGE_STILL_FAILING : LB_CHANGE_BROKEN;
    if (had || failed) {
        if (!now)
            snprintf(pair->note, sizeof(pair->note), "no row in the new run");
        return had ? LB_CHANGE_GONE : LB_CHANGE_NOT_RUN;
    }
    return LB_CHANGE_NOT_RUN;
}

/* The text by which a case is looked up in the other run. */
static void print_key(const struct lb_row *row, bool interleaved, char id[LB_ROW_ID_SIZE])
{
    struct lb_row key = {.c = row->c, .label = row->label};
    if (interleaved)
        key.c.impl[0] = key.c.variant[0] = '\0';
    lb_row_print_id(&key, id);
}

/* Fills pairs with the cases of both runs: those of base in their order, then those that only the
 * new run has. */
static enum lb_status match(const struct lb_run *base, const struct lb_run *now,
                            struct lb_run_comparison *comparison, struct lb_error *err)
{
    json_t *index = json_object();
    struct lb_pair *pairs = calloc(base->count + now->count + 1, sizeof(*pairs));
    bool done = index && pairs;
    comparison->pairs = pairs;
    for (size_t i = 0; done && i < base->count; i++) {
        struct lb_pair *pair = &pairs[comparison->count++];
        pair->base = &base->rows[i];
        print_key(&base->rows[i], comparison->interleaved, pair->id);
        done = json_object_set_new(index, pair->id, json_integer((json_int_t)i)) == 0;
    }
    for (size_t i = 0; done && i < now->count; i++) {
        char id[LB_ROW_ID_SIZE];
        print_key(&now->rows[i], comparison->interleaved, id);
        const json_t *found = json_object_get(index, id);
        struct lb_pair *pair =
            &pairs[found ? (size_t)json_integer_value(found) : comparison->count++];
        memcpy(pair->id, id, sizeof(id));
        pair->now = &now->rows[i];
    }
    json_decref(index);
    return done ? LB_OK : lb_fail(err, LB_OOM, "out of memory for %zu cases", base->count);
}

static bool is_common(const struct lb_pair *pair)
{
    return pair->base && pair->now && lb_row_is_timed(pair->base) && lb_row_is_timed(pair->now);
}

/* Whether the spread between runs alone can judge a pair whose units are too few. What --self-test
 * kept cannot: it is that of runs of several processes, whose median scatters less than a single
 * process does. The runs of the base can, unless the new run has fewer processes than they have. */
static bool runs_tell(const struct lb_run_comparison *comparison, const struct lb_pair *pair)
{
    return comparison->run_spread > 0 && comparison->run_count > 0 &&
           pair->now->process_count >= pair->base->process_count;
}

/* Whether the pair has one process on each side, and no runs of the base to be held against. */
static bool is_single(const struct lb_run_comparison *comparison, const struct lb_pair *pair)
{
    return is_common(pair) && !comparison->interleaved && pair->base->process_count < 2 &&
           pair->now->process_count < 2 && !runs_tell(comparison, pair);
}

/* Adjusts the p-values of all compared pairs that are single together, or of all others. Single
 * pairs get no verdict, so their p-values must not count in the correction of others: many low ones
 * would raise the level at which the others pass. */
static enum lb_status adjust(struct lb_run_comparison *comparison, bool single,
                             struct lb_error *err)
{
    size_t count = 0;
    double *p = malloc((comparison->count + 1) * sizeof(*p));
    if (!p)
        return lb_fail(err, LB_OOM, "out of memory for %zu p-values", comparison->count);
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->pairs[i].compared && is_single(comparison, &comparison->pairs[i]) == single)
            p[count++] = comparison->pairs[i].shift.p;
    enum lb_status st = lb_adjust(p, count, p, err);
    comparison->compared += count;
    for (size_t i = comparison->count; st == LB_OK && i-- > 0;)
        if (comparison->pairs[i].compared && is_single(comparison, &comparison->pairs[i]) == single)
            comparison->pairs[i].adjusted_p = p[--count];
    free(p);
    return st;
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

/* Notes when a run is incomplete. */
static void note_file(struct lb_run_comparison *comparison, const char *which,
                      const struct lb_run *run)
{
    char note[256];
    if (!run->finished || run->interrupted || run->torn) {
        snprintf(note, sizeof(note), "The %s run was cut short%s: it has %zu rows.", which,
                 run->torn ? " in the middle of a line" : "", run->count);
        add_note(comparison, note);
    }
}

/* The smallest p-value that so many units per side, or so many pairs, can reach. */
static double least_p(size_t units, bool interleaved)
{
    return interleaved ? lb_shift_paired_least_p(units) : lb_shift_least_p(units, units);
}

/* Notes when a single slowdown can't become significant after the correction for many cases. */
static void note_power(struct lb_run_comparison *comparison)
{
    bool paired = comparison->interleaved;
    size_t units = SIZE_MAX, needed = 1;
    char note[256];
    for (size_t i = 0; i < comparison->count; i++) {
        const struct lb_pair *pair = &comparison->pairs[i];
        if (!pair->compared)
            continue;
        units = pair->base_units < units ? pair->base_units : units;
        units = pair->now_units < units ? pair->now_units : units;
    }
    if (comparison->compared == 0 || comparison->single > 0 || comparison->run_spread > 0)
        return;
    double cases = (double)comparison->compared, level = comparison->level;
    if (least_p(units, paired) * cases <= level)
        return;
    while (least_p(needed, paired) * cases > level)
        needed++;
    char among[128] = "a slowdown can't be told from chance";
    if (comparison->compared > 1)
        snprintf(among, sizeof(among),
                 "one slowdown alone among %zu cases can't pass the correction for so many",
                 comparison->compared);
    snprintf(note, sizeof(note), "With %zu %s, %s: %s%zu would do.", units,
             paired ? "pairs" : "units per side", among,
             paired ? "--benchmark_repetitions=" : "--processes ", needed);
    add_note(comparison, note);
}

/* Notes what to add when cases have one process per run. */
static void note_single(struct lb_run_comparison *comparison)
{
    char note[256];
    if (comparison->single == 0)
        return;
    snprintf(
        note, sizeof(note),
        "%zu case%s one process per run, which tells no change from chance (addresses, "
        "clocks): add --processes 15 to both sweeps, or give --compare several runs of the base.",
        comparison->single, comparison->single == 1 ? " has" : "s have");
    add_note(comparison, note);
}

/* The logarithm of a row's time: the median of its units. */
static double log_time(const struct lb_row *row, const struct lb_time_basis *basis)
{
    size_t units = lb_row_units(row);
    double *values = log_units(row, basis), median = NAN;
    if (values && units > 0) {
        lb_sort(values, units);
        median = lb_median(values, units);
    }
    free(values);
    return median;
}

/* The variance of the units' logarithms; NaN for fewer than two units. */
static double unit_variance(const struct lb_row *row, const struct lb_time_basis *basis)
{
    size_t units = lb_row_units(row);
    double *values = units > 1 ? log_units(row, basis) : NULL, sum = 0, squares = 0;
    for (size_t i = 0; values && i < units; i++)
        sum += values[i];
    for (size_t i = 0; values && i < units; i++)
        squares += (values[i] - sum / (double)units) * (values[i] - sum / (double)units);
    double variance = values ? squares / (double)(units - 1) : (double)NAN;
    free(values);
    return variance;
}

static bool same_label(const struct lb_row *a, const struct lb_row *b)
{
    return a->label && b->label ? strcmp(a->label, b->label) == 0 : a->label == b->label;
}

/* The row of the case and label in the run that has a time; NULL when there is none. */
static const struct lb_row *find_row(const struct lb_run *run, const struct lb_row *row)
{
    for (size_t i = 0; i < run->count; i++)
        if (lb_case_same(&run->rows[i].c, &row->c) && same_label(&run->rows[i], row))
            return lb_row_is_timed(&run->rows[i]) ? &run->rows[i] : NULL;
    return NULL;
}

/* What the runs of the base say of one case: how many have a time, their mean logarithm, and the
 * sum of squares about it. */
struct base_times {
    size_t runs;
    double mean, squares;
};

static struct base_times times_of_bases(const struct lb_pair *pair,
                                        const struct lb_compare_options *options,
                                        const struct lb_time_basis *basis)
{
    double first = log_time(pair->base, basis);
    struct base_times times = {.runs = 1, .mean = first};
    for (size_t r = 0; r < options->base_count; r++) {
        const struct lb_row *row = find_row(&options->bases[r], pair->base);
        if (!row || (basis->corrected && !has_references(row)))
            continue;
        double value = log_time(row, basis), delta = value - times.mean;
        times.mean += delta / (double)++times.runs; /* Welford's way to a variance */
        times.squares += delta * (value - times.mean);
    }
    return times;
}

/* How much runs of the same code differ by one basis, and how that is known. */
struct known_spread {
    double deviation; /* standard deviation of the logarithms; 0: not known */
    size_t df;        /* degrees of freedom */
    size_t runs;      /* of the base from which it is known; 0: from --self-test */
};

/* Learns the spread between runs from the further runs of the base, else takes what --self-test
 * kept. Cases of a run share what is special about the run, so they add no degrees of freedom. */
static struct known_spread spread_between_runs(const struct lb_run_comparison *comparison,
                                               const struct lb_compare_options *options,
                                               const struct lb_time_basis *basis)
{
    double squares = 0, learnt = lb_run_spread_by(&options->learnt, basis);
    size_t df = 0, fewest = SIZE_MAX;
    for (size_t i = 0; options->base_count > 0 && i < comparison->count; i++) {
        if (!is_common(&comparison->pairs[i]))
            continue;
        struct base_times times = times_of_bases(&comparison->pairs[i], options, basis);
        if (times.runs < 2)
            continue; /* the other cases tell the spread, also for this one */
        squares += times.squares;
        df += times.runs - 1;
        fewest = times.runs < fewest ? times.runs : fewest;
    }
    if (df > 0)
        return (struct known_spread){sqrt(squares / (double)df), fewest - 1, fewest};
    if (learnt > 0 && options->learnt.df > 0)
        return (struct known_spread){learnt, options->learnt.df, 0};
    return (struct known_spread){0};
}

/* The variance of what a row says of its case: of the mean of its units, and between runs where
 * that is known. NaN where neither is. */
static double row_variance(const struct lb_row *row, const struct lb_time_basis *basis,
                           double run_deviation)
{
    double units = unit_variance(row, basis) / (double)lb_row_units(row);
    double runs = run_deviation * run_deviation;
    return runs > 0 ? (isnan(units) ? 0 : units) + runs : units;
}

/* By which factor a change of basis changes the uncertainty of times: the geometric mean of the
 * ratio of standard deviations over all rows of cases that both runs have. The shift between the
 * runs plays no part in it, so that a choice by it favours no verdict. NaN where it is not known.
 */
static double spread_ratio(const struct lb_run_comparison *comparison,
                           const struct lb_compare_options *options,
                           const struct lb_time_basis *from, const struct lb_time_basis *to)
{
    struct known_spread before = spread_between_runs(comparison, options, from);
    struct known_spread after = spread_between_runs(comparison, options, to);
    double sum = 0;
    size_t rows = 0;
    /* The lower of two spreads that few runs show is too low by chance. */
    bool known = before.df >= LEAST_DF && after.df >= LEAST_DF;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct lb_row *both[] = {comparison->pairs[i].base, comparison->pairs[i].now};
        for (size_t s = 0; is_common(&comparison->pairs[i]) && s < 2; s++) {
            double old = row_variance(both[s], from, known ? before.deviation : 0);
            double new = row_variance(both[s], to, known ? after.deviation : 0);
            if (!(old > 0) || !(new > 0))
                continue;
            sum += log(new / old) / 2;
            rows++;
        }
    }
    return rows > 0 ? exp(sum / (double)rows) : (double)NAN;
}

/* Whether a condition holds for all rows of cases that both runs have. */
static bool all_rows(const struct lb_run_comparison *comparison,
                     bool (*holds)(const struct lb_row *row))
{
    for (size_t i = 0; i < comparison->count; i++) {
        const struct lb_pair *pair = &comparison->pairs[i];
        if (is_common(pair) && (!holds(pair->base) || !holds(pair->now)))
            return false;
    }
    return true;
}

static bool has_low_quantile(const struct lb_row *row)
{
    return lb_row_least_samples(row) >= LB_LOW_SAMPLES;
}

/* Whether the spread between runs is known by one basis and not by the other, as in what an older
 * --self-test kept: with the other nothing would be allowed for. */
static bool loses_spread(const struct lb_run_comparison *comparison,
                         const struct lb_compare_options *options, const struct lb_time_basis *from,
                         const struct lb_time_basis *to)
{
    return spread_between_runs(comparison, options, from).deviation > 0 &&
           !(spread_between_runs(comparison, options, to).deviation > 0);
}

/* Decides whether 10 % quantiles are compared instead of medians. */
static void choose_quantile(struct lb_run_comparison *comparison,
                            const struct lb_compare_options *options)
{
    const struct lb_time_basis low = {.low = true};
    if (comparison->common == 0 || comparison->interleaved ||
        !all_rows(comparison, has_low_quantile) ||
        loses_spread(comparison, options, &medians, &low))
        return;
    double ratio = spread_ratio(comparison, options, &medians, &low);
    comparison->times.low = ratio <= 1 - LB_LOW_GAIN;
    if (comparison->times.low)
        snprintf(comparison->basis, sizeof(comparison->basis),
                 "The 10 %% quantiles of each process's samples are compared: they scatter %.2f "
                 "times as much as the medians, as where other programs disturb many samples. They "
                 "do not show a change that slows only the slower calls down. ",
                 ratio);
}

/* Decides whether times are divided by those of the fixed loop. */
static void choose_correction(struct lb_run_comparison *comparison,
                              const struct lb_compare_options *options)
{
    size_t used = strlen(comparison->basis), room = sizeof(comparison->basis) - used;
    struct lb_time_basis corrected = comparison->times;
    corrected.corrected = true;
    if (comparison->common == 0 || comparison->interleaved)
        return;
    bool known = all_rows(comparison, has_references);
    if (known && loses_spread(comparison, options, &comparison->times, &corrected)) {
        snprintf(comparison->basis + used, room,
                 "Times are as measured: how much runs differ in times divided by those of the "
                 "fixed loop is not known.");
        return;
    }
    double ratio =
        known ? spread_ratio(comparison, options, &comparison->times, &corrected) : (double)NAN;
    comparison->times.corrected = ratio < 1;
    if (isnan(ratio))
        snprintf(comparison->basis + used, room,
                 "Times are as measured: the speed of the machine is not known for %s.",
                 known ? "more than one process" : "all of them");
    else
        snprintf(comparison->basis + used, room,
                 "Times are %s: dividing them by the fixed loop's changes their scatter by a "
                 "factor of %.2f.",
                 comparison->times.corrected ? "divided by those of the fixed loop around them"
                                             : "as measured",
                 ratio);
}

/* Sets the spread between runs that is allowed for. */
static void choose_run_spread(struct lb_run_comparison *comparison,
                              const struct lb_compare_options *options)
{
    size_t used = strlen(comparison->basis);
    if (comparison->common == 0 || comparison->interleaved)
        return;
    struct known_spread known = spread_between_runs(comparison, options, &comparison->times);
    comparison->run_spread = known.deviation;
    comparison->run_df = known.df;
    comparison->run_count = known.runs;
    snprintf(comparison->basis + used, sizeof(comparison->basis) - used, "%sRuns of the same code",
             used ? " " : "");
    used = strlen(comparison->basis);
    if (known.deviation > 0 && known.runs > 0)
        snprintf(
            comparison->basis + used, sizeof(comparison->basis) - used,
            " differ by %.2g %% (standard deviation, from %zu runs of the base), which is allowed "
            "for.",
            100 * known.deviation, known.runs);
    else if (known.deviation > 0)
        snprintf(
            comparison->basis + used, sizeof(comparison->basis) - used,
            " differ by %.2g %% (standard deviation, kept by --self-test on this machine), which "
            "is allowed for.",
            100 * known.deviation);
    else
        snprintf(comparison->basis + used, sizeof(comparison->basis) - used,
                 " may differ by more than their processes show, which is not allowed for: give "
                 "--compare three or more runs of the base, or run --self-test once.");
}

/* Widens an interval to at least the half width about the estimate. */
static void widen(double estimate, double half, double *lo, double *hi)
{
    *lo = fmin(*lo, estimate - half);
    *hi = fmax(*hi, estimate + half);
}

/* Holds a pair against the spread between runs as well. A pair whose units were too few is judged
 * by that alone where it can be. */
static void compare_by_run(struct lb_run_comparison *comparison, struct lb_pair *pair,
                           const struct lb_compare_options *options)
{
    struct base_times times = times_of_bases(pair, options, &comparison->times);
    double own = times.runs > 2 ? sqrt(times.squares / (double)(times.runs - 1)) : 0;
    double error = fmax(comparison->run_spread, own) * sqrt(1 + 1 / (double)times.runs);
    double shift = log_time(pair->now, &comparison->times) - times.mean;
    double p = lb_student_p(shift / error, comparison->run_df);
    bool few = !pair->compared || pair->base->process_count < 2 || pair->now->process_count < 2;
    if (!pair->compared && !runs_tell(comparison, pair))
        return;
    if (few && runs_tell(comparison, pair)) {
        pair->shift = (struct lb_shift){
            .estimate = shift, .lo95 = shift, .hi95 = shift, .lo90 = shift, .hi90 = shift, .p = p};
        pair->note[0] = '\0';
        pair->compared = true;
    }
    double estimate = pair->shift.estimate;
    widen(estimate, error * lb_student_quantile(0.05, comparison->run_df), &pair->shift.lo95,
          &pair->shift.hi95);
    widen(estimate, error * lb_student_quantile(0.10, comparison->run_df), &pair->shift.lo90,
          &pair->shift.hi90);
    pair->shift.p = fmax(pair->shift.p, p);
}

/* Compares all pairs that have a time in both runs. */
static void compare_pairs(struct lb_run_comparison *comparison,
                          const struct lb_compare_options *options)
{
    choose_quantile(comparison, options);
    choose_correction(comparison, options);
    choose_run_spread(comparison, options);
    for (size_t i = 0; i < comparison->count; i++) {
        struct lb_pair *pair = &comparison->pairs[i];
        if (!is_common(pair))
            continue;
        compare_rows(pair, comparison->interleaved, &comparison->times);
        if (comparison->run_spread > 0)
            compare_by_run(comparison, pair, options);
        comparison->single += is_single(comparison, pair);
    }
}

static void note_runs(const struct lb_run *base, const struct lb_run *now,
                      struct lb_run_comparison *comparison)
{
    char note[512], libraries[256];
    if (lb_environment_differs(json_object_get(base->header, "environment"),
                               json_object_get(now->header, "environment"),
                               comparison->environments, sizeof(comparison->environments))) {
        snprintf(note, sizeof(note),
                 "DIFFERENT ENVIRONMENTS (%s): a difference may be the machine's, not the code's.",
                 comparison->environments);
        add_note(comparison, note);
    }
    if (lb_libraries_differ(json_object_get(base->header, "environment"),
                            json_object_get(now->header, "environment"), libraries,
                            sizeof(libraries))) {
        snprintf(note, sizeof(note), "Libraries differ: %s.", libraries);
        add_note(comparison, note);
    }
    note_file(comparison, "base", base);
    note_file(comparison, "new", now);
    if (comparison->common == 0)
        add_note(comparison, "No case has a time in both runs: there is nothing to compare.");
}

/* Whether both headers have the same "interleaved". */
static bool are_interleaved(const struct lb_run *base, const struct lb_run *now)
{
    const json_t *a = json_object_get(base->header, "interleaved");
    return json_is_string(a) && json_equal(a, json_object_get(now->header, "interleaved"));
}

/* No comparison rests on a run that is only half there. */
static enum lb_status check_sound(const struct lb_run *run, struct lb_error *err)
{
    return run->doubt[0] ? lb_fail(err, LB_INVALID, "%s: it can't be compared", run->doubt) : LB_OK;
}

enum lb_status lb_compare_runs(const struct lb_run *base, const struct lb_run *now,
                               const struct lb_compare_options *options,
                               struct lb_run_comparison *comparison, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *comparison = (struct lb_run_comparison){
        .interleaved = are_interleaved(base, now),
        .margin = options->margin,
        .level = options->level,
    };
    if (!(options->margin > 0 && options->margin < 10) ||
        !(options->level > 0 && options->level < 0.5))
        return lb_fail(err, LB_INVALID,
                       "margin %g, level %g: they must be above 0, and below 10 and 0.5",
                       options->margin, options->level);
    LB_TRY(check_sound(base, err));
    LB_TRY(check_sound(now, err));
    for (size_t i = 0; i < options->base_count; i++)
        LB_TRY(check_sound(&options->bases[i], err));
    LB_TRY(match(base, now, comparison, err));
    for (size_t i = 0; i < comparison->count; i++) {
        struct lb_pair *pair = &comparison->pairs[i];
        comparison->common += is_common(pair);
        pair->change = is_common(pair) ? LB_CHANGE_INCONCLUSIVE : judge_untimed(pair);
    }
    compare_pairs(comparison, options);
    LB_TRY(adjust(comparison, false, err));
    LB_TRY(adjust(comparison, true, err));
    for (size_t i = 0; i < comparison->count; i++) {
        struct lb_pair *pair = &comparison->pairs[i];
        if (pair->compared && !is_single(comparison, pair))
            pair->change = judge(pair, options);
        if (pair->compared && is_single(comparison, pair))
            snprintf(pair->note, sizeof(pair->note), "one process per run can't tell");
        else if (pair->compared && pair->change == LB_CHANGE_INCONCLUSIVE)
            explain_doubt(pair, options);
        if (pair->compared && !comparison->interleaved)
            note_drift(pair);
        comparison->counts[pair->change]++;
    }
    qsort(comparison->pairs, comparison->count, sizeof(*comparison->pairs), by_severity);
    note_runs(base, now, comparison);
    note_power(comparison);
    note_single(comparison);
done:
    if (st != LB_OK)
        lb_run_comparison_free(comparison);
    return st;
}

/* The pair with that text; NULL when there is none. */
static const struct lb_pair *find_pair(const struct lb_run_comparison *comparison, const char *id)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (strcmp(comparison->pairs[i].id, id) == 0)
            return &comparison->pairs[i];
    return NULL;
}

void lb_run_comparison_confirm(struct lb_run_comparison *comparison,
                               const struct lb_run_comparison *again)
{
    for (size_t i = 0; i < comparison->count; i++) {
        struct lb_pair *pair = &comparison->pairs[i];
        const struct lb_pair *other =
            pair->change == LB_CHANGE_SLOWER ? find_pair(again, pair->id) : NULL;
        if (pair->change != LB_CHANGE_SLOWER || (other && lb_change_is_regression(other->change)))
            continue;
        snprintf(pair->note, sizeof(pair->note), "slower in one of two sweeps; in the other: %s",
                 other ? lb_change_name(other->change) : "no row");
        comparison->counts[pair->change]--;
        pair->change = LB_CHANGE_INCONCLUSIVE;
        comparison->counts[pair->change]++;
    }
    qsort(comparison->pairs, comparison->count, sizeof(*comparison->pairs), by_severity);
}

void lb_run_comparison_free(struct lb_run_comparison *comparison)
{
    free(comparison->pairs);
    *comparison = (struct lb_run_comparison){0};
}
