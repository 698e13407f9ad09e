/* The plain table of all cases that have a time, for readers without JavaScript. */
#include <inttypes.h>
#include <math.h>

#include "html/view.h"
#include "html/writer.h"
#include "support/terminal.h"

static void write_time(FILE *out, double ns)
{
    fputs("<td class=n>", out);
    lb_html_ns(out, ns);
}

/* Whether a case has a time per update of the weights. */
static bool view_has_updates(const struct lb_html_view *view)
{
    for (size_t i = 0; i < view->groups.count; i++)
        for (size_t k = 0; k < view->groups.items[i].count; k++)
            if (isfinite(view->groups.items[i].candidates[k].row->update_ns))
                return true;
    return false;
}

/* Writes one case; base is the baseline's row at the same problem, or NULL. */
static void write_row(FILE *out, const struct lb_html_view *view, const struct lb_candidate *it,
                      const struct lb_row *base)
{
    const struct lb_row *row = it->row;
    const struct lb_problem *p = &row->c.problem;
    char setting[256], ratio[32];
    lb_page_heading(row, setting, sizeof(setting));
    fputs("<tr><td>", out);
    lb_html_text(out, view->series.items[it->series].name);
    fprintf(out,
            "<td class=n>%" PRId64 "<td class=n>%" PRId64 "<td class=n>%" PRId64
            "<td class=n>%" PRId64 "<td>%s",
            p->seq_len, p->batch, p->input, p->hidden, setting);
    write_time(out, row->median_ns);
    if (isfinite(row->median_lo_ns))
        fprintf(out, " ±%.1f %%", 50 * (row->median_hi_ns - row->median_lo_ns) / row->median_ns);
    write_time(out, row->median_ns / (double)p->seq_len);
    lb_format_ratio(base ? base->median_ns / row->median_ns : (double)NAN, ratio);
    fprintf(out, "<td class=n>%s", ratio);
    if (view_has_updates(view))
        write_time(out, row->update_ns);
    if (isfinite(row->err_norm))
        fprintf(out, "<td class=n>%.1e", row->err_norm);
    else
        fputs("<td class=n>–", out);
    fputs("</tr>\n", out);
}

enum lb_status lb_html_plain_table(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    (void)err;
    fputs("<table class=\"plain\"><thead><tr><th scope=\"col\">Implementation</th>"
          "<th scope=\"col\" class=\"n\">T</th><th scope=\"col\" class=\"n\">B</th>"
          "<th scope=\"col\" class=\"n\">I</th><th scope=\"col\" class=\"n\">H</th>"
          "<th scope=\"col\">Setting</th><th scope=\"col\" class=\"n\">Median</th>"
          "<th scope=\"col\" class=\"n\">Per step</th><th scope=\"col\" class=\"n\">Speed-up",
          out);
    if (view->baseline_series < view->series.count)
        lb_html_format(out, " over %s", view->baseline);
    if (view_has_updates(view))
        fputs("</th><th scope=\"col\" class=\"n\">Update", out);
    fputs("</th><th scope=\"col\" class=\"n\">Error</th></tr></thead><tbody>\n", out);
    for (size_t i = 0; i < view->groups.count; i++) {
        const struct lb_group *group = &view->groups.items[i];
        const struct lb_row *base = lb_group_timed(group, view->baseline_series);
        for (size_t k = 0; k < group->count; k++)
            if (lb_row_is_timed(group->candidates[k].row))
                write_row(out, view, &group->candidates[k], base);
    }
    fputs("</tbody></table>\n", out);
    return LB_OK;
}
