/* The headline, in sentences: which implementation is fastest where, and by how much. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "html/view.h"
#include "html/writer.h"
#include "plot/fastest_regions.h"
#include "report/cell_price.h"
#include "stats/order_stats.h"
#include "support/terminal.h"

static const char letters[LB_SIZE_COUNT] = {'T', 'B', 'I', 'H'};

enum { MOST_EXCEPTIONS = 3 };

/* Counts of problems in a region, by how its chosen implementation does. */
struct tally {
    size_t problems;
    size_t alone;  /* no other implementation has a time */
    size_t clear;  /* fastest, by more than noise */
    size_t tied;   /* tied with the fastest */
    size_t unsure; /* fastest, but by less than the range of samples without an interval */
    size_t beaten; /* another one is faster */
    size_t absent; /* it has no time */
    struct spread {
        double low, middle, high;
        size_t count;           /* of problems; 0: there is nothing to compare with */
    } over_baseline, over_next; /* speed-ups; over_baseline is empty for the baseline itself */
    bool baseline_is_next;      /* the runner-up is the baseline in every problem */
};

static void plural(FILE *out, size_t count, const char *word)
{
    fprintf(out, "%zu %s%s", count, word, count == 1 ? "" : "s");
}

/* Whom the series is compared with in a group: the runner-up, or the baseline. NULL where that has
 * no time. */
static const struct lb_row *other_row(const struct lb_html_view *view, const struct lb_group *group,
                                      size_t series, bool next)
{
    if (next)
        return lb_group_runner_up(group, series);
    return series == view->baseline_series ? NULL : lb_group_timed(group, view->baseline_series);
}

/* The spread of speed-ups in the region. ratios [region->count] is scratch. */
static struct spread spread_of(const struct lb_html_view *view, const struct lb_group *groups,
                               const struct lb_region *region, bool next, double *ratios)
{
    struct spread spread = {0};
    for (size_t i = 0; i < region->count; i++) {
        const struct lb_group *group = &groups[region->groups[i]];
        const struct lb_row *own = lb_group_timed(group, region->series);
        const struct lb_row *other = other_row(view, group, region->series, next);
        if (own && other)
            ratios[spread.count++] = other->median_ns / own->median_ns;
    }
    if (spread.count == 0)
        return spread;
    lb_sort(ratios, spread.count);
    spread.low = ratios[0];
    spread.middle = lb_median(ratios, spread.count);
    spread.high = ratios[spread.count - 1];
    return spread;
}

/* Whether the runner-up is the baseline in every problem that has one. */
static bool baseline_is_next(const struct lb_html_view *view, const struct lb_group *groups,
                             const struct lb_region *region)
{
    for (size_t i = 0; i < region->count; i++) {
        const struct lb_group *group = &groups[region->groups[i]];
        const struct lb_row *runner_up = lb_group_runner_up(group, region->series);
        if (runner_up && runner_up != lb_group_timed(group, view->baseline_series))
            return false;
    }
    return true;
}

static void count_problems(const struct lb_group *groups, const struct lb_region *region,
                           struct tally *tally)
{
    for (size_t i = 0; i < region->count; i++) {
        const struct lb_group *group = &groups[region->groups[i]];
        const struct lb_row *own = lb_group_timed(group, region->series);
        const struct lb_row *runner_up = lb_group_runner_up(group, region->series);
        tally->problems++;
        if (!own)
            tally->absent++;
        else if (!runner_up)
            tally->alone++;
        else if (own == group->best && lb_rows_apart(own, runner_up))
            tally->clear++;
        else if (own == group->best &&
                 !(lb_row_has_interval(own) && lb_row_has_interval(runner_up)))
            tally->unsure++;
        else if (lb_group_leads(group, own))
            tally->tied++;
        else
            tally->beaten++;
    }
}

/* ratios [region->count] is scratch. */
static struct tally count_region(const struct lb_html_view *view, const struct lb_group *groups,
                                 const struct lb_region *region, double *ratios)
{
    struct tally tally = {.baseline_is_next = baseline_is_next(view, groups, region)};
    count_problems(groups, region, &tally);
    tally.over_baseline = spread_of(view, groups, region, false, ratios);
    tally.over_next = spread_of(view, groups, region, true, ratios);
    return tally;
}

/* "for B ≤ 8 and H ≥ 256": the sizes that occur on this side of each cut. */
static void write_sizes(FILE *out, const struct lb_group *groups, const struct lb_region *region)
{
    const char *separator = " for ";
    for (size_t k = 0; k < LB_SIZE_COUNT; k++) {
        int64_t least = INT64_MAX, most = 0;
        for (size_t i = 0; i < region->count; i++) {
            int64_t size = groups[region->groups[i]].sizes[k];
            least = size < least ? size : least;
            most = size > most ? size : most;
        }
        bool above = region->low[k] > 0, below = region->high[k] < INT64_MAX;
        if (!above && !below)
            continue;
        fputs(separator, out);
        separator = " and ";
        if (least == most)
            fprintf(out, "%c = %" PRId64, letters[k], least);
        else if (above && below)
            fprintf(out, "%c %" PRId64 " to %" PRId64, letters[k], least, most);
        else
            fprintf(out, "%c %s %" PRId64, letters[k], above ? "≥" : "≤", above ? least : most);
    }
}

/* Writes "1.08 to 1.94 times as fast as onednn (median 1.25)". */
static void write_spread(FILE *out, const struct spread *spread, const char *other_name)
{
    char low[32], middle[32], high[32];
    lb_format_ratio(spread->low, low);
    lb_format_ratio(spread->middle, middle);
    lb_format_ratio(spread->high, high);
    bool one = spread->count == 1 || strcmp(low, high) == 0;
    if (one)
        fprintf(out, "<strong>%s</strong> times as fast as ", middle);
    else
        fprintf(out, "<strong>%s to %s</strong> times as fast as ", low, high);
    lb_html_text(out, other_name);
    if (!one)
        fprintf(out, " (median %s)", middle);
}

static void write_ratios(FILE *out, const struct lb_html_view *view, const struct tally *tally)
{
    if (tally->over_baseline.count > 0) {
        fputs(", ", out);
        write_spread(out, &tally->over_baseline, view->baseline);
        if (tally->problems - tally->absent > tally->over_baseline.count)
            fprintf(out, " in the %zu problems where both have a time", tally->over_baseline.count);
        if (tally->baseline_is_next)
            return;
    }
    if (tally->over_next.count > 0) {
        fputs(tally->over_baseline.count > 0 ? " and " : ", ", out);
        write_spread(out, &tally->over_next, "the next best");
    }
}

/* Names problems of the region that another implementation wins or the chosen one has no time for.
 */
static void write_exceptions(FILE *out, const struct lb_html_view *view,
                             const struct lb_group *groups, const struct lb_region *region,
                             const struct tally *tally)
{
    size_t written = 0, all = tally->beaten + tally->absent;
    if (all == 0)
        return;
    fputs(" Exceptions: ", out);
    for (size_t i = 0; i < region->count && written < MOST_EXCEPTIONS; i++) {
        const struct lb_group *group = &groups[region->groups[i]];
        const struct lb_row *own = lb_group_row(group, region->series);
        if (own && lb_group_leads(group, own))
            continue;
        char ratio[32];
        const struct lb_series *winner =
            &view->series.items[lb_series_of(&view->series, group->best)];
        fprintf(out, "%sT%" PRId64 " B%" PRId64 " H%" PRId64 " (", written ? ", " : "",
                group->sizes[LB_SIZE_T], group->sizes[LB_SIZE_B], group->sizes[LB_SIZE_H]);
        lb_html_text(out, winner->name);
        if (own && lb_row_is_timed(own)) {
            lb_format_ratio(own->median_ns / group->best->median_ns, ratio);
            fprintf(out, " is %s times as fast", ratio);
        } else {
            fputs("; ", out);
            lb_html_text(out, view->series.items[region->series].name);
            fprintf(out, " %s%s", own ? "is " : "has no row",
                    own ? lb_verdict_name(own->verdict) : "");
        }
        fputc(')', out);
        written++;
    }
    if (all > written)
        fprintf(out, " and %zu more", all - written);
    fputc('.', out);
}

static void write_region(FILE *out, const struct lb_html_view *view, const struct lb_group *groups,
                         const struct lb_region *region, double *ratios)
{
    struct tally tally = count_region(view, groups, region, ratios);
    const struct lb_series *series = &view->series.items[region->series];
    size_t compared = tally.problems - tally.alone;
    fprintf(out, "<li><span class=\"dot c%d\"></span><strong>", series->color);
    lb_html_text(out, series->name);
    fputs("</strong>", out);
    write_sizes(out, groups, region);
    if (compared == 0) {
        fputs(": it is the only one with a time in ", out);
        plural(out, tally.alone, "problem");
        fputs(".", out);
    } else {
        fprintf(out, ": fastest in %zu of %zu", tally.clear + tally.tied + tally.unsure, compared);
        fputs(compared == 1 ? " problem" : " problems", out);
        write_ratios(out, view, &tally);
        fputc('.', out);
        if (tally.tied > 0) {
            fprintf(out, " In %zu of them it is tied with another: their intervals overlap.",
                    tally.tied);
        }
        if (tally.unsure > 0)
            fprintf(out,
                    " In %zu of them that is not certain: there are too few samples or processes "
                    "for an interval.",
                    tally.unsure);
        if (tally.alone > 0) {
            fprintf(out, " It is the only one with a time in %zu more.", tally.alone);
        }
    }
    write_exceptions(out, view, groups, region, &tally);
    fputs("</li>\n", out);
}

static enum lb_status write_setting(FILE *out, const struct lb_html_view *view,
                                    const struct lb_group *groups, size_t count,
                                    struct lb_error *err)
{
    struct lb_regions regions;
    char heading[256];
    enum lb_status st = LB_OK;
    double *ratios = malloc((count + 1) * sizeof(*ratios));
    if (!ratios)
        return lb_fail(err, LB_OOM, "out of memory for %zu problems", count);
    LB_TRY(lb_regions_find(groups, count, view->series.count, &regions, err));
    lb_page_heading(groups[0].candidates[0].row, heading, sizeof(heading));
    fputs("<div class=\"setting\"><h3>", out);
    lb_html_text(out, heading);
    fprintf(out, "</h3>\n<ul class=\"regions\">\n");
    for (size_t i = 0; i < regions.count; i++)
        write_region(out, view, groups, &regions.items[i], ratios);
    size_t untimed = count;
    for (size_t i = 0; i < regions.count; i++)
        untimed -= regions.items[i].count;
    if (untimed > 0) {
        fputs("<li>", out);
        plural(out, untimed, "problem");
        fprintf(out, " %s no time: see <a href=\"#not-run\">what did not run</a>.</li>\n",
                untimed == 1 ? "has" : "have");
    }
    fputs("</ul></div>\n", out);
    lb_regions_free(&regions);
done:
    free(ratios);
    return st;
}

/* Writes which implementation is fastest most often, among problems with at least two times. */
static void write_lead(FILE *out, const struct lb_html_view *view)
{
    size_t compared = 0, timed = 0, most = 0, leader = 0;
    size_t *wins = calloc(view->series.count + 1, sizeof(*wins));
    for (size_t i = 0; i < view->groups.count && wins; i++) {
        const struct lb_group *group = &view->groups.items[i];
        timed += group->timed > 0;
        if (group->timed < 2)
            continue;
        compared++;
        wins[lb_series_of(&view->series, group->best)]++;
    }
    for (size_t s = 0; s < view->series.count && wins; s++) {
        if (wins[s] > most) {
            most = wins[s];
            leader = s;
        }
    }
    free(wins);
    fputs("<p class=\"lead\">", out);
    if (timed == 0) {
        fputs("No case of this run has a time, so there is nothing to compare.", out);
    } else if (compared == 0) {
        fputs("No problem of this run has times of two implementations, so there is nothing to "
              "compare.",
              out);
    } else {
        lb_html_format(out, "%s has the smallest median time in ", view->series.items[leader].name);
        if (most == compared && most > 1)
            fprintf(out, "all %zu problems", compared);
        else if (compared == 1)
            fputs("the only problem", out);
        else
            fprintf(out, "%zu of the %zu problems", most, compared);
        fputs(" for which at least two implementations have a time.", out);
    }
    fputs("</p>\n", out);
}

/* Writes what leaving the standard cell costs; nothing when the run has no times of other cells. */
static enum lb_status write_cell_prices(FILE *out, const struct lb_run *run, struct lb_error *err)
{
    struct lb_cell_price *prices;
    size_t count;
    enum lb_status st = lb_cell_prices(run, &prices, &count, err);
    if (st == LB_OK && count > 0) {
        fputs("<p>What leaving the standard cell costs:</p>\n<ul class=\"cells\">\n", out);
        for (size_t i = 0; i < count; i++) {
            char text[256];
            lb_cell_price_text(&prices[i], text, sizeof(text));
            fputs("<li>", out);
            lb_html_format(out, "%s", text);
            fputs("</li>\n", out);
        }
        fputs("</ul>\n", out);
    }
    free(prices);
    return st;
}

enum lb_status lb_html_headline(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    enum lb_status st = LB_OK;
    const struct lb_groups *groups = &view->groups;
    write_lead(out, view);
    LB_TRY(write_cell_prices(out, view->run, err));
    fputs("<div class=\"settings\">\n", out);
    for (int alone = 0; alone < 2; alone++) { /* settings with a choice come first */
        for (size_t i = 0, end; i < groups->count; i = end) {
            bool compared = false;
            for (end = i; end < groups->count &&
                          strcmp(groups->items[end].page, groups->items[i].page) == 0;)
                compared |= groups->items[end++].timed > 1;
            if (compared == !alone)
                LB_TRY(write_setting(out, view, groups->items + i, end - i, err));
        }
    }
    fputs("</div>\n", out);
done:
    return st;
}
