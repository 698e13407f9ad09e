/* What changed from each earlier run to the one that is reported. */
#include <math.h>

#include "html/view.h"
#include "html/writer.h"
#include "report/compare.h"
#include "report/compare_report.h"

enum { MOST_PAIRS = 200 /* cases that are no regression; all regressions are shown */ };

static const char *const marks[LB_CHANGE_COUNT] = {
    [LB_CHANGE_BROKEN] = "✗",  [LB_CHANGE_SLOWER] = "▼", [LB_CHANGE_INCONCLUSIVE] = "?",
    [LB_CHANGE_FASTER] = "▲",  [LB_CHANGE_SAME] = "=",   [LB_CHANGE_GONE] = "○",
    [LB_CHANGE_MENDED] = "✓",  [LB_CHANGE_NEW] = "+",    [LB_CHANGE_STILL_FAILING] = "✗",
    [LB_CHANGE_NOT_RUN] = "–",
};

static void write_time(FILE *out, const struct lb_row *row)
{
    fputs("<td class=\"n\">", out);
    if (row && lb_row_is_timed(row))
        lb_html_ns(out, row->median_ns);
    else
        fputs(row ? lb_verdict_name(row->verdict) : "–", out);
    fputs("</td>", out);
}

static void write_pair(FILE *out, const struct lb_pair *pair)
{
    const char *name = lb_change_name(pair->change);
    bool good = pair->change == LB_CHANGE_FASTER || pair->change == LB_CHANGE_MENDED;
    fprintf(out, "<tr class=\"%s\"><td><span class=\"verdict\">%s %s</span></td><td class=\"n\">",
            lb_change_is_regression(pair->change) ? "bad"
            : good                                ? "ok"
                                                  : "none",
            marks[pair->change], name);
    if (pair->compared)
        fprintf(out, "%+.1f %% <small>(%+.1f to %+.1f)</small>", 100 * expm1(pair->shift.estimate),
                100 * expm1(pair->shift.lo95), 100 * expm1(pair->shift.hi95));
    else
        fputs("–", out);
    fputs("</td>", out);
    write_time(out, pair->base);
    write_time(out, pair->now);
    fputs("<td><code>", out);
    lb_html_text(out, pair->id);
    fputs("</code>", out);
    if (pair->note[0]) {
        fputs(" <small>", out);
        lb_html_text(out, pair->note);
        fputs("</small>", out);
    }
    fputs("</td></tr>\n", out);
}

static void write_pairs(FILE *out, const struct lb_run_comparison *comparison)
{
    size_t shown = 0, left_out = 0;
    fputs("<table class=\"reasons\"><thead><tr><th scope=\"col\">Verdict</th>"
          "<th scope=\"col\" class=\"n\">Change of time, 95 % interval</th>"
          "<th scope=\"col\" class=\"n\">Before</th><th scope=\"col\" class=\"n\">Now</th>"
          "<th scope=\"col\">Case</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < comparison->count; i++) {
        bool regression = lb_change_is_regression(comparison->pairs[i].change);
        if (regression || ++shown <= MOST_PAIRS)
            write_pair(out, &comparison->pairs[i]);
        else
            left_out++;
    }
    fputs("</tbody></table>\n", out);
    if (left_out > 0)
        fprintf(out,
                "<p class=\"note\">%zu more cases, none of them a regression, are left out: "
                "<code>--compare</code> lists them.</p>\n",
                left_out);
}

static enum lb_status write_comparison(FILE *out, const struct lb_html_view *view,
                                       const char *base_path, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run base = {0};
    struct lb_run_comparison comparison = {0};
    struct lb_compare_options how = lb_compare_defaults();
    char verdict[512];
    how.judgement.margin = view->margin;
    LB_TRY(lb_run_read_by(base_path, view->by, &base, err));
    LB_TRY(lb_html_go_on(view, err));
    LB_TRY(lb_compare_runs(&base, view->run, &how, &comparison, err));
    lb_report_verdict(&comparison, verdict, sizeof(verdict));
    fputs("<section class=\"compare\">\n<h2>Against ", out);
    lb_html_text(out, base_path);
    fputs("</h2>\n<p class=\"lead\">", out);
    lb_html_text(out, verdict);
    fputs("</p>\n", out);
    if (comparison.notes[0]) {
        fputs("<p class=\"warning\">", out);
        lb_html_text(out, comparison.notes);
        fputs("</p>\n", out);
    }
    if (comparison.basis[0]) {
        fputs("<p class=\"note\">", out);
        lb_html_text(out, comparison.basis);
        fputs("</p>\n", out);
    }
    write_pairs(out, &comparison);
    fprintf(
        out,
        "<p class=\"note\">Above 0 %% is slower. Slower and faster mean by more than %g %%, "
        "significant at %g %% over all cases together; same means within %g %%.</p>\n</section>\n",
        100 * comparison.judgement.margin, 100 * comparison.judgement.level, 100 * comparison.judgement.margin);
done:
    lb_run_comparison_free(&comparison);
    lb_run_free(&base);
    return st;
}

enum lb_status lb_html_changes(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    enum lb_status st = LB_OK;
    if (view->base_count > 0)
        fputs("<div id=\"changes\">\n", out);
    for (size_t i = 0; i < view->base_count && st == LB_OK; i++)
        st = write_comparison(out, view, view->bases[i], err);
    if (view->base_count > 0)
        fputs("</div>\n", out);
    return st;
}
