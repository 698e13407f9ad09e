/* What did not run and why: the rows without a time, by reason. */
#include <stdlib.h>
#include <string.h>

#include "html/sections.h"
#include "html/writer.h"

enum { MOST_REASONS = 60, MOST_EXAMPLES = 3 };

/* Failures first, then by verdict, implementation and reason, in the order of the run. */
static int compare_rows(const void *a, const void *b)
{
    const struct lb_row *p = *(const struct lb_row *const *)a;
    const struct lb_row *q = *(const struct lb_row *const *)b;
    bool fails = lb_verdict_is_failure(p->verdict);
    if (fails != lb_verdict_is_failure(q->verdict))
        return fails ? -1 : 1;
    if (p->verdict != q->verdict)
        return p->verdict < q->verdict ? -1 : 1;
    int order = strcmp(p->c.impl, q->c.impl);
    if (!order)
        order = strcmp(p->c.variant, q->c.variant);
    if (!order)
        order = strcmp(p->reason, q->reason);
    return order ? order : (p > q) - (p < q);
}

static bool same_reason(const struct lb_row *p, const struct lb_row *q)
{
    return p->verdict == q->verdict && strcmp(p->c.impl, q->c.impl) == 0 &&
           strcmp(p->c.variant, q->c.variant) == 0 && strcmp(p->reason, q->reason) == 0;
}

static void write_reason(FILE *out, const struct lb_row *const *rows, size_t count)
{
    char label[2 * LB_NAME_SIZE], text[LB_CASE_ID_SIZE];
    const struct lb_row *row = rows[0];
    lb_impl_label(&row->c, label);
    fprintf(out, "<tr class=\"%s\"><td><span class=\"verdict\">%s</span></td><td>",
            lb_verdict_is_failure(row->verdict) ? "bad" : "none", lb_verdict_name(row->verdict));
    lb_html_text(out, label);
    fprintf(out, "</td><td class=\"n\">%zu</td><td>", count);
    lb_html_text(out, row->reason[0] ? row->reason : "no reason was recorded");
    size_t most =
        row->verdict == LB_VERDICT_ABSENT ? 0 : MOST_EXAMPLES; /* problems do not matter */
    fputs("<div class=\"examples\">", out);
    for (size_t i = 0; i < count && i < most; i++) {
        lb_case_print_problem(&rows[i]->c, text);
        fputs(i ? ", <code>" : "<code>", out);
        lb_html_text(out, text);
        fputs("</code>", out);
    }
    if (most > 0 && count > most)
        fprintf(out, " and %zu more", count - most);
    fputs("</div></td></tr>\n", out);
}

static void write_reasons(FILE *out, const struct lb_row *const *rows, size_t count)
{
    size_t reasons = 0;
    fputs("<table class=\"reasons\"><thead><tr><th scope=\"col\">Verdict</th>"
          "<th scope=\"col\">Implementation</th><th scope=\"col\">Cases</th>"
          "<th scope=\"col\">Why</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && same_reason(rows[i], rows[end]);)
            end++;
        if (reasons++ < MOST_REASONS)
            write_reason(out, rows + i, end - i);
    }
    fputs("</tbody></table>\n", out);
    if (reasons > MOST_REASONS)
        fprintf(out, "<p class=\"note\">%zu more reasons are in the table of cases.</p>\n",
                reasons - MOST_REASONS);
}

/* Cases of the plan that the run has no row of. */
static void write_unreached(FILE *out, const struct lb_run *run)
{
    size_t planned = json_array_size(json_object_get(run->header, "cases"));
    if (planned > run->count)
        fprintf(out,
                "<p>%zu of the %zu planned cases have no row: the run ended before them.</p>\n",
                planned - run->count, planned);
}

enum lb_status lb_html_missing(FILE *out, const struct lb_html_view *view, struct lb_error *err)
{
    const struct lb_run *run = view->run;
    size_t count = 0;
    const struct lb_row **rows = malloc((run->count + 1) * sizeof(*rows));
    if (!rows)
        return lb_fail(err, LB_OOM, "out of memory for %zu rows", run->count);
    for (size_t i = 0; i < run->count; i++)
        if (run->rows[i].verdict != LB_VERDICT_OK)
            rows[count++] = &run->rows[i];
    fputs("<section id=\"missing\">\n<h2>What did not run, and why</h2>\n", out);
    write_unreached(out, run);
    if (count == 0) {
        fputs("<p>Every case ran and agreed with the oracle.</p>\n", out);
    } else {
        qsort(rows, count, sizeof(*rows), compare_rows);
        fprintf(out,
                "<p>%zu of %zu cases have no time. Failures come first; the others could not run "
                "here.</p>\n",
                count, run->count);
        write_reasons(out, rows, count);
    }
    fputs("</section>\n", out);
    free(rows);
    return LB_OK;
}
