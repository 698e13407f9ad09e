/* What did not run and why: the rows without a time, one line per verdict and reason. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "html/view.h"
#include "html/writer.h"

enum { MOST_REASONS = 100, MOST_EXAMPLES = 3 };

/* Failures first, then by verdict, reason, implementation and order in the run. */
static int compare_rows(const void *a, const void *b)
{
    const struct lb_row *p = *(const struct lb_row *const *)a;
    const struct lb_row *q = *(const struct lb_row *const *)b;
    bool fails = lb_verdict_is_failure(p->verdict);
    if (fails != lb_verdict_is_failure(q->verdict))
        return fails ? -1 : 1;
    if (p->verdict != q->verdict)
        return p->verdict < q->verdict ? -1 : 1;
    int order = strcmp(p->reason, q->reason);
    if (!order)
        order = strcmp(p->c.impl, q->c.impl);
    if (!order)
        order = strcmp(p->c.variant, q->c.variant);
    return order ? order : (p > q) - (p < q);
}

static bool same_reason(const struct lb_row *p, const struct lb_row *q)
{
    return p->verdict == q->verdict && strcmp(p->reason, q->reason) == 0;
}

/* Writes the implementations of the rows, each once; rows of one implementation are adjacent. */
static void write_labels(FILE *out, const struct lb_row *const *rows, size_t count)
{
    char last[2 * LB_NAME_SIZE] = "", label[2 * LB_NAME_SIZE];
    for (size_t i = 0; i < count; i++) {
        lb_impl_label(&rows[i]->c, label);
        if (strcmp(label, last) == 0)
            continue;
        fputs(i ? ", " : "", out);
        lb_html_text(out, label);
        memcpy(last, label, sizeof(last));
    }
}

/* Writes some of the problems; for absent rows none, since the reason does not depend on them. */
static void write_examples(FILE *out, const struct lb_row *const *rows, size_t count)
{
    char text[LB_CASE_ID_SIZE];
    if (rows[0]->verdict == LB_VERDICT_ABSENT)
        return;
    fputs("<div class=\"examples\">", out);
    for (size_t i = 0; i < count && i < MOST_EXAMPLES; i++) {
        lb_case_print_problem(&rows[i]->c, text);
        fputs(i ? ", <code>" : "<code>", out);
        lb_html_text(out, text);
        fputs("</code>", out);
    }
    if (count > MOST_EXAMPLES)
        fprintf(out, " and %zu more", count - MOST_EXAMPLES);
    fputs("</div>", out);
}

static void write_reason(FILE *out, const struct lb_row *const *rows, size_t count)
{
    const struct lb_row *row = rows[0];
    fprintf(out,
            "<tr class=\"%s\"><td><span class=\"verdict\">%s</span></td><td class=\"n\">%zu</td>"
            "<td>",
            lb_verdict_is_failure(row->verdict) ? "bad" : "none", lb_verdict_name(row->verdict),
            count);
    lb_html_text(out, row->reason[0] ? row->reason : "no reason was recorded");
    write_examples(out, rows, count);
    fputs("</td><td>", out);
    write_labels(out, rows, count);
    fputs("</td></tr>\n", out);
}

static void write_reasons(FILE *out, const struct lb_row *const *rows, size_t count)
{
    size_t reasons = 0, left_out = 0;
    fputs("<table class=\"reasons\"><thead><tr><th scope=\"col\">Verdict</th>"
          "<th scope=\"col\" class=\"n\">Cases</th><th scope=\"col\">Why</th>"
          "<th scope=\"col\">Implementations</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && same_reason(rows[i], rows[end]);)
            end++;
        if (reasons++ < MOST_REASONS)
            write_reason(out, rows + i, end - i);
        else
            left_out += end - i;
    }
    fputs("</tbody></table>\n", out);
    if (left_out > 0)
        fprintf(out, "<p class=\"note\">%zu more cases, with other reasons, are left out.</p>\n",
                left_out);
}

/* Writes how many planned cases have no row. */
static void write_unreached(FILE *out, const struct lb_run *run)
{
    size_t planned = json_array_size(json_object_get(run->header, "cases"));
    if (planned > run->count)
        fprintf(out,
                "<p>%zu of the %zu planned cases have no row: the run ended before them.</p>\n",
                planned - run->count, planned);
}

enum lb_status lb_html_not_run(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    const struct lb_run *run = view->run;
    size_t count = 0;
    const struct lb_row **rows = malloc((run->count + 1) * sizeof(*rows));
    if (!rows)
        return lb_fail(err, LB_OOM, "out of memory for %zu rows", run->count);
    for (size_t i = 0; i < run->count; i++)
        if (run->rows[i].verdict != LB_VERDICT_OK)
            rows[count++] = &run->rows[i];
    write_unreached(out, run);
    if (count == 0) {
        fputs("<p>Every case ran and agreed with the oracle.</p>\n", out);
    } else {
        qsort(rows, count, sizeof(*rows), compare_rows);
        fprintf(out, "<p>%zu of %zu case%s %s no time. Failures come first.</p>\n", count,
                run->count, run->count == 1 ? "" : "s", count == 1 ? "has" : "have");
        write_reasons(out, rows, count);
    }
    free(rows);
    return LB_OK;
}
