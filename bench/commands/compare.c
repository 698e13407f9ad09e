/* --compare: two runs, a verdict on each case, and an exit code. */
#include "commands/commands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/compare.h"
#include "support/texts.h"

enum {
    TABLE_REST = 40 /* lines for cases that are neither a regression nor new, gone or mended */
};

/* Lists all regressions and all cases that came or went, and a screenful of others. */
static void print_table(const struct lb_run_comparison *comparison)
{
    size_t shown = 0;
    bool style = lb_has_style(stdout);
    if (comparison->notes[0])
        printf("%s%s%s\n\n", style ? "\033[1m" : "", comparison->notes, style ? "\033[0m" : "");
    if (comparison->basis[0])
        printf("%s\n\n", comparison->basis);
    printf("base %s\nnew  %s\n\n", comparison->base_name, comparison->now_name);
    printf("%-13s %9s  %-18s %10s %10s  %s\n", "verdict", "change", "95 % interval", "base", "new",
           "case");
    for (size_t i = 0; i < comparison->count; i++) {
        const struct lb_pair *pair = &comparison->pairs[i];
        enum lb_change change = pair->change;
        bool regression = lb_change_is_regression(change);
        bool always = regression || change == LB_CHANGE_GONE || change == LB_CHANGE_MENDED ||
                      change == LB_CHANGE_NEW;
        if (!always && ++shown > TABLE_REST)
            continue;
        char percent[32], interval[64];
        const char *start = !style                       ? ""
                            : regression                 ? "\033[31m"
                            : change == LB_CHANGE_FASTER ? "\033[32m"
                                                         : "";
        double before = pair->base ? lb_row_time(pair->base, pair->percentile).ns : (double)NAN;
        double after = pair->now ? lb_row_time(pair->now, pair->percentile).ns : (double)NAN;
        lb_format_change(pair, percent, interval);
        printf("%s%-13s %9s  %-18s %10s %10s  %s%s%s%s\n", start, lb_change_name(change), percent,
               interval, LB_NS_TEXT(before), LB_NS_TEXT(after), pair->id, pair->note[0] ? "  " : "",
               pair->note, start[0] ? "\033[0m" : "");
    }
    if (shown > TABLE_REST)
        printf("... and %zu more: --format json has every case\n", shown - TABLE_REST);
    printf("\n%s\n", comparison->verdict);
}

static int exit_code_of(const struct lb_run_comparison *comparison, bool strict)
{
    if (comparison->counts[LB_CHANGE_BROKEN] + comparison->counts[LB_CHANGE_SLOWER] > 0)
        return LB_EXIT_REGRESSION;
    if (comparison->common == 0)
        return LB_EXIT_NOTHING;
    if (comparison->compared == 0)
        return LB_EXIT_INCONCLUSIVE; /* too few processes to find a change */
    size_t open = comparison->counts[LB_CHANGE_INCONCLUSIVE] + comparison->counts[LB_CHANGE_GONE];
    return strict && open > 0 ? LB_EXIT_INCONCLUSIVE : LB_EXIT_FINE;
}

enum lb_status lb_compare_print(const struct lb_run *runs, size_t count, const char *base_name,
                                const char *now_name, const struct lb_options *options,
                                int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run_comparison comparison = {0};
    struct lb_compare_options how = lb_compare_defaults();
    const char *format = options->format;
    how.base_name = base_name;
    how.now_name = now_name;
    how.judgement.margin = options->margin;
    how.bases = runs + 1;
    how.base_count = count - 2;
    how.again = options->confirm ? &runs[count] : NULL;
    LB_TRY(lb_compare_runs(&runs[0], &runs[count - 1], &how, &comparison, err));
    if (strcmp(format, "markdown") == 0)
        lb_report_markdown(&comparison, stdout);
    else if (strcmp(format, "junit") == 0)
        lb_report_junit(&comparison, options->strict, stdout);
    else if (strcmp(format, "json") == 0)
        lb_json_write(lb_report_json(&comparison), stdout);
    else
        print_table(&comparison);
    if (fflush(stdout) != 0)
        LB_TRY(lb_fail(err, LB_IO, "stdout: %s", strerror(errno)));
    if (strcmp(format, "table") != 0)
        fprintf(stderr, "%s%s%s%s%s\n", comparison.notes, comparison.notes[0] ? "\n" : "",
                comparison.basis, comparison.basis[0] ? "\n" : "", comparison.verdict);
    *exit_code = exit_code_of(&comparison, options->strict);
done:
    lb_run_comparison_free(&comparison);
    return st;
}

enum lb_status lb_compare_command(const struct lb_options *options, int *exit_code,
                                  struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t named = options->word_count, count = named + (options->confirm ? 1 : 0);
    struct lb_run *runs = lb_needed(calloc(count, sizeof(*runs)));
    for (size_t i = 0; i < count; i++)
        LB_TRY(lb_run_read(i < named ? options->words[i] : options->confirm, &runs[i], err));
    lb_run_arrange(runs, count, options->by); /* the same labels in all of them */
    st = lb_compare_print(runs, named, options->words[0], options->words[named - 1], options,
                          exit_code, err);
done:
    for (size_t i = 0; i < count; i++)
        lb_run_free(&runs[i]);
    free(runs);
    return st;
}
