/* Comparing two runs case by case. */
#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/environment.h"
#include "stats/anomalies.h"
#include "stats/multiple_testing.h"

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

/* The logarithms of the unit medians, which the caller frees; NULL when memory runs out. */
static double *log_units(const struct lb_row *row)
{
    size_t units = lb_row_units(row);
    double *values = malloc((units + 1) * sizeof(*values));
    if (!values || lb_row_unit_medians(row, values, NULL) != LB_OK) {
        free(values);
        return NULL;
    }
    for (size_t i = 0; i < units; i++)
        values[i] = log(values[i]);
    return values;
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
                 "too few to tell: %zu %s against %zu, at least %d each are needed, --processes 15 "
                 "gives "
                 "enough",
                 n, processes ? "processes" : "blocks of one process", m, LB_SHIFT_MIN_UNITS);
    return pair->note[0] != '\0';
}

bool lb_compare_rows(struct lb_pair *pair, bool interleaved)
{
    struct lb_error why = {"out of memory"};
    size_t n = pair->base_units = units_beside(pair->base, pair->now);
    size_t m = pair->now_units = units_beside(pair->now, pair->base);
    enum lb_status st = LB_OK;
    pair->compared = false;
    if (note_units(pair, interleaved))
        return false;
    double *base = log_units(pair->base), *now = log_units(pair->now);
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
    if (has)
        return base ? LB_CHANGE_MENDED : LB_CHANGE_NEW;
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
static void print_key(const struct lb_case *c, bool interleaved, char id[LB_CASE_ID_SIZE])
{
    struct lb_case key = *c;
    if (interleaved)
        key.impl[0] = key.variant[0] = '\0';
    lb_case_print(&key, id);
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
        print_key(&base->rows[i].c, comparison->interleaved, pair->id);
        done = json_object_set_new(index, pair->id, json_integer((json_int_t)i)) == 0;
    }
    for (size_t i = 0; done && i < now->count; i++) {
        char id[LB_CASE_ID_SIZE];
        print_key(&now->rows[i].c, comparison->interleaved, id);
        const json_t *found = json_object_get(index, id);
        struct lb_pair *pair =
            &pairs[found ? (size_t)json_integer_value(found) : comparison->count++];
        memcpy(pair->id, id, sizeof(id));
        pair->now = &now->rows[i];
    }
    json_decref(index);
    return done ? LB_OK : lb_fail(err, LB_OOM, "out of memory for %zu cases", base->count);
}

/* Adjusts the p-values of all compared pairs together. */
static enum lb_status adjust(struct lb_run_comparison *comparison, struct lb_error *err)
{
    size_t count = 0;
    double *p = malloc((comparison->count + 1) * sizeof(*p));
    if (!p)
        return lb_fail(err, LB_OOM, "out of memory for %zu p-values", comparison->count);
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->pairs[i].compared)
            p[count++] = comparison->pairs[i].shift.p;
    enum lb_status st = lb_adjust(p, count, p, err);
    comparison->compared = count;
    for (size_t i = comparison->count; st == LB_OK && i-- > 0;)
        if (comparison->pairs[i].compared)
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
    if (comparison->compared == 0)
        return;
    double cases = (double)comparison->compared, level = comparison->level;
    if (least_p(units, paired) * cases <= level)
        return;
    while (least_p(needed, paired) * cases > level)
        needed++;
    snprintf(note, sizeof(note),
             "With %zu %s, one slowdown alone among %zu cases can't pass the correction for so "
             "many: %s%zu would do.",
             units, paired ? "pairs" : "units per side", comparison->compared,
             paired ? "--benchmark_repetitions=" : "--processes ", needed);
    add_note(comparison, note);
}

/* Notes when verdicts are based on blocks of a single process per side. */
static void note_blocks(struct lb_run_comparison *comparison)
{
    size_t by_blocks = 0;
    char note[256];
    for (size_t i = 0; i < comparison->count; i++)
        by_blocks += comparison->pairs[i].compared && comparison->pairs[i].base->process_count < 2;
    if (by_blocks == 0 || comparison->interleaved)
        return;
    snprintf(note, sizeof(note),
             "%zu cases were compared by blocks of one process per side: what is random about a "
             "process (addresses, clocks) may look like a change. Use --processes 15 to rule that "
             "out.",
             by_blocks);
    add_note(comparison, note);
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
    LB_TRY(match(base, now, comparison, err));
    for (size_t i = 0; i < comparison->count; i++) {
        struct lb_pair *pair = &comparison->pairs[i];
        bool both =
            pair->base && pair->now && lb_row_is_timed(pair->base) && lb_row_is_timed(pair->now);
        comparison->common += both;
        pair->change = LB_CHANGE_INCONCLUSIVE;
        if (!both)
            pair->change = judge_untimed(pair);
        else
            lb_compare_rows(pair, comparison->interleaved);
    }
    LB_TRY(adjust(comparison, err));
    for (size_t i = 0; i < comparison->count; i++) {
        struct lb_pair *pair = &comparison->pairs[i];
        if (pair->compared)
            pair->change = judge(pair, options);
        if (pair->compared && pair->change == LB_CHANGE_INCONCLUSIVE)
            explain_doubt(pair, options);
        if (pair->compared && !comparison->interleaved)
            note_drift(pair);
        comparison->counts[pair->change]++;
    }
    qsort(comparison->pairs, comparison->count, sizeof(*comparison->pairs), by_severity);
    note_runs(base, now, comparison);
    note_power(comparison);
    note_blocks(comparison);
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
