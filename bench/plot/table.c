/* The results of a sweep as a table on the terminal. */
#include "plot/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot/problem_groups.h"
#include "stats/anomalies.h"
#include "support/terminal.h"

/* When a row uses more than this share of its tolerance, the table says how much. */
static const double NEAR_MISS = 0.5;

/* A row with its sort keys. */
struct line {
    const struct lb_row *row;
    char problem[LB_ROW_ID_SIZE]; /* and the device, when devices are shown separately */
    size_t group;                 /* the lowest index of a row of the same problem */
    size_t index;                 /* of the row in the run */
};

void lb_impl_label(const struct lb_case *c, char label[2 * LB_NAME_SIZE])
{
    snprintf(label, 2 * LB_NAME_SIZE, "%s%s%s", c->impl, c->variant[0] ? ":" : "", c->variant);
}

static bool has_ok_row(const struct lb_run *run, const char *label)
{
    for (size_t i = 0; i < run->count; i++) {
        char of_row[2 * LB_NAME_SIZE];
        lb_impl_label(&run->rows[i].c, of_row);
        if (run->rows[i].verdict == LB_VERDICT_OK && strcmp(of_row, label) == 0)
            return true;
    }
    return false;
}

void lb_choose_baseline(const struct lb_run *run, const char *name, char baseline[2 * LB_NAME_SIZE])
{
    static const char *const usual[] = {"cudnn", "onednn", "cpu_ref"};
    baseline[0] = '\0';
    if (name) {
        size_t length = strlen(name); /* "cudnn:auto" is the default variant, labelled "cudnn" */
        if (length > 5 && strcmp(name + length - 5, ":auto") == 0)
            length -= 5;
        snprintf(baseline, 2 * LB_NAME_SIZE, "%.*s", (int)length, name);
        return;
    }
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (has_ok_row(run, usual[i])) {
            snprintf(baseline, 2 * LB_NAME_SIZE, "%s", usual[i]);
            return;
        }
    }
    for (size_t i = 0; i < run->count && !baseline[0]; i++)
        if (run->rows[i].verdict == LB_VERDICT_OK)
            lb_impl_label(&run->rows[i].c, baseline);
}

static void print_problem(const struct lb_row *row, char problem[LB_ROW_ID_SIZE])
{
    size_t length = lb_case_print_problem(&row->c, problem);
    if (row->label && !row->beside)
        snprintf(problem + length, LB_ROW_ID_SIZE - length, " on %s", row->label);
}

/* "impl:variant", and the device where devices are side by side. */
static void row_label(const struct lb_row *row, char label[2 * LB_NAME_SIZE + LB_LABEL_SIZE + 8])
{
    lb_impl_label(&row->c, label);
    size_t length = strlen(label);
    if (row->label && row->beside)
        snprintf(label + length, LB_LABEL_SIZE + 8, " on %s", row->label);
}

static int by_problem(const void *a, const void *b)
{
    const struct line *p = a, *q = b;
    int order = strcmp(p->problem, q->problem);
    return order ? order : (p->index > q->index) - (p->index < q->index);
}

/* Sorts groups in the order of the run, and within each group the fastest first and rows without
 * a time last. */
static int by_group(const void *a, const void *b)
{
    const struct line *p = a, *q = b;
    if (p->group != q->group)
        return p->group < q->group ? -1 : 1;
    double x = p->row->median_ns, y = q->row->median_ns;
    if (isfinite(x) && isfinite(y) && x != y)
        return x < y ? -1 : 1;
    if (isfinite(x) != isfinite(y))
        return isfinite(x) ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

static void sort_lines(struct line *lines, size_t count)
{
    qsort(lines, count, sizeof(*lines), by_problem);
    for (size_t i = 0; i < count; i++) {
        bool same = i > 0 && strcmp(lines[i].problem, lines[i - 1].problem) == 0;
        lines[i].group = same ? lines[i - 1].group : lines[i].index;
    }
    qsort(lines, count, sizeof(*lines), by_group);
}

/* Returns the baseline's median in the group that begins at lines[first]; NaN when it has none. */
static double baseline_median(const struct line *lines, size_t count, size_t first,
                              const char *baseline)
{
    for (size_t i = first; i < count && lines[i].group == lines[first].group; i++) {
        char label[2 * LB_NAME_SIZE];
        lb_impl_label(&lines[i].row->c, label);
        if (strcmp(label, baseline) == 0)
            return lines[i].row->median_ns;
    }
    return (double)NAN;
}

/* Whether a row of the group that begins at lines[first] has a time per update. */
static bool has_updates(const struct line *lines, size_t count, size_t first)
{
    for (size_t i = first; i < count && lines[i].group == lines[first].group; i++)
        if (isfinite(lines[i].row->update_ns))
            return true;
    return false;
}

/* Writes how much of the tolerance an ok row uses, its warning and its anomalies. Outliers are
 * only in the record, because most rows have some. */
static void describe(const struct lb_row *row, char *text, size_t size)
{
    char near[48] = "";
    if (row->tolerance_used > NEAR_MISS)
        snprintf(near, sizeof(near), ", %.0f %% of the tolerance used", 100 * row->tolerance_used);
    snprintf(text, size, "%s%s%s", near, row->warning[0] ? ", " : "", row->warning);
    for (size_t i = 0; i < LB_ANOMALY_COUNT; i++) {
        size_t used = strlen(text);
        if (row->flags & ~(unsigned)LB_ANOMALY_OUTLIERS & 1U << i)
            snprintf(text + used, size - used, ", %s", lb_anomaly_name(i));
    }
}

/* How a row compares with the other rows of its problem. */
enum rank {
    RANK_NONE, /* behind the fastest, not apart from it for sure, or the only one */
    RANK_FEW_SAMPLES,
    RANK_FEW_PROCESSES,
    RANK_FASTEST,
    RANK_TIED
};

/* Which marks the table uses, so that its last lines explain them. */
struct marks {
    bool shortened, tied, few_processes, updates;
};

/* A problem's rows have a column more where one of them has a time per update. The others are then
 * narrower, so that a line still fits 80 columns. */
static int print_numbers(char *line, size_t size, const char *label, const char *median,
                         const char *spread, const char *ratio, const char *update)
{
    if (!update)
        return snprintf(line, size, "  %-28s %10s  +-%7s %9s  ", label, median, spread, ratio);
    return snprintf(line, size, "  %-20s %9s  +-%6s %8s %10s  ", label, median, spread, ratio,
                    update);
}

/* What the rows of a problem are printed with. */
struct group_view {
    double base;  /* the baseline's median, or NaN */
    bool updates; /* a row has a time per update */
};

/* Notes that do not fit the terminal are replaced by a mark that the last lines explain. */
static void print_times(FILE *out, const struct lb_row *row, const struct group_view *view,
                        int columns, enum rank rank, struct marks *marks)
{
    static const char *const words[] = {[RANK_NONE] = "ok",
                                        [RANK_FEW_SAMPLES] = "too few samples",
                                        [RANK_FEW_PROCESSES] = "< 6 processes",
                                        [RANK_FASTEST] = "* fastest",
                                        [RANK_TIED] = "= fastest, tied"};
    char label[2 * LB_NAME_SIZE + LB_LABEL_SIZE + 8], median[32], spread[32] = "-", ratio[32] = "-";
    char update[32] = "-", notes[512], line[1024];
    bool bold = rank >= RANK_FASTEST && lb_has_style(out);
    row_label(row, label);
    lb_format_ns(row->median_ns, median);
    describe(row, notes, sizeof(notes));
    if (isfinite(row->median_lo_ns))
        snprintf(spread, sizeof(spread), "%.1f %%",
                 50 * (row->median_hi_ns - row->median_lo_ns) / row->median_ns);
    if (isfinite(view->base))
        snprintf(ratio, sizeof(ratio), "%.2fx", view->base / row->median_ns);
    if (isfinite(row->update_ns))
        lb_format_ns(row->update_ns, update);
    int length = print_numbers(line, sizeof(line), label, median, spread, ratio,
                               view->updates ? update : NULL);
    length += snprintf(line + length, sizeof(line) - (size_t)length, "%s", words[rank]);
    bool shortened = length + (int)strlen(notes) > columns;
    fprintf(out, "%s%s%s%s\n", bold ? "\033[1m" : "", line, shortened ? " ~" : notes,
            bold ? "\033[0m" : "");
    marks->shortened |= shortened;
    marks->tied |= rank == RANK_TIED;
    marks->few_processes |= rank == RANK_FEW_PROCESSES;
}

/* The rank of lines[i], a row with a time; first is the fastest of its problem. A row whose
 * interval overlaps that of the fastest is tied with it. A row without an interval cannot be
 * ranked, and a row that is not apart from one is not called the fastest. */
static enum rank rank_of(const struct line *lines, size_t count, size_t first, size_t i)
{
    size_t runners_up = 0, near = 0, ties = 0;
    if (!lb_row_has_interval(lines[i].row))
        return lines[i].row->process_count > 1 ? RANK_FEW_PROCESSES : RANK_FEW_SAMPLES;
    for (size_t k = first + 1; k < count && lines[k].group == lines[first].group; k++) {
        if (lines[k].row->verdict != LB_VERDICT_OK)
            continue;
        bool apart = lb_rows_apart(lines[k].row, lines[first].row);
        runners_up++;
        near += !apart;
        ties += !apart && lb_row_has_interval(lines[k].row);
    }
    if (runners_up == 0)
        return RANK_NONE;
    if (i == first)
        return ties > 0 ? RANK_TIED : near > 0 ? RANK_NONE : RANK_FASTEST;
    bool tied =
        lb_row_has_interval(lines[first].row) && !lb_rows_apart(lines[i].row, lines[first].row);
    return tied ? RANK_TIED : RANK_NONE;
}

static void print_verdict(FILE *out, const struct lb_row *row)
{
    char label[2 * LB_NAME_SIZE + LB_LABEL_SIZE + 8], text[LB_ROW_TEXT_SIZE + 32];
    row_label(row, label);
    const char *mark = lb_verdict_is_failure(row->verdict) ? "! " : "";
    snprintf(text, sizeof(text), "%s%s: %s", mark, lb_verdict_name(row->verdict), row->reason);
    int column = fprintf(out, "  %-28s ", label);
    lb_print_wrapped(out, column, text);
    fputc('\n', out);
}

enum { MOST_LABELS = 64 };

/* Lists the labels of rows that are absent for this reason, each once and at most MOST_LABELS. */
static size_t absent_labels(const struct lb_run *run, const char *reason,
                            char labels[MOST_LABELS][2 * LB_NAME_SIZE])
{
    size_t count = 0;
    for (size_t i = 0; i < run->count && count < MOST_LABELS; i++) {
        const struct lb_row *row = &run->rows[i];
        if (row->verdict != LB_VERDICT_ABSENT || strcmp(row->reason, reason) != 0)
            continue;
        size_t k = 0;
        lb_impl_label(&row->c, labels[count]);
        while (strcmp(labels[k], labels[count]) != 0)
            k++;
        count += k == count;
    }
    return count;
}

/* "cudnn (5 variants), cuda_naive". The variants of an implementation are adjacent. */
static void list_names(char labels[MOST_LABELS][2 * LB_NAME_SIZE], size_t count, char *text,
                       size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0, end; i < count && used < size; i = end) {
        size_t length = strcspn(labels[i], ":");
        for (end = i + 1; end < count; end++)
            if (strcspn(labels[end], ":") != length || strncmp(labels[i], labels[end], length) != 0)
                break;
        used += (size_t)snprintf(text + used, size - used, "%s%.*s", i > 0 ? ", " : "", (int)length,
                                 labels[i]);
        if (end > i + 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, " (%zu variants)", end - i);
    }
}

/* Prints one line per reason: which implementations are absent, and why. */
static void print_absent(FILE *out, const struct lb_run *run)
{
    char labels[MOST_LABELS][2 * LB_NAME_SIZE];
    const char *printed[8];
    size_t reasons = 0;
    for (size_t i = 0; i < run->count && reasons < sizeof(printed) / sizeof(printed[0]); i++) {
        const char *reason = run->rows[i].reason;
        size_t k = 0;
        while (k < reasons && strcmp(printed[k], reason) != 0)
            k++;
        if (run->rows[i].verdict != LB_VERDICT_ABSENT || k < reasons)
            continue;
        char text[MOST_LABELS * LB_NAME_SIZE + LB_ROW_TEXT_SIZE];
        list_names(labels, absent_labels(run, reason, labels), text, sizeof(text));
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, ": %s", reason);
        int column = fprintf(out, "%sabsent: ", reasons == 0 ? "\n" : "") - (reasons == 0);
        lb_print_wrapped(out, column, text);
        fputc('\n', out);
        printed[reasons++] = reason;
    }
}

static void print_counts(FILE *out, const struct lb_run *run, const struct marks *marks)
{
    size_t counts[LB_VERDICT_COUNT] = {0};
    if (marks->tied || marks->few_processes || marks->shortened || marks->updates)
        fprintf(out, "\n");
    if (marks->updates)
        fprintf(out, "last time: of one update of the weights, beyond the call (update_ns)\n");
    if (marks->tied)
        fprintf(out, "= tied with the fastest of its problem: their intervals overlap\n");
    if (marks->few_processes)
        fprintf(out, "< 6 processes: too few for an interval; --processes 15 gives enough\n");
    if (marks->shortened)
        fprintf(out, "~ noisy or near its tolerance: flags, warning, tolerance_used "
                     "in the record\n");
    for (size_t i = 0; i < run->count; i++)
        counts[run->rows[i].verdict]++;
    fprintf(out, "\n%zu case%s", run->count, run->count == 1 ? "" : "s");
    const char *separator = ": ";
    for (int v = 0; v < LB_VERDICT_COUNT; v++) {
        if (counts[v] == 0)
            continue;
        fprintf(out, "%s%zu %s%s", separator, counts[v], lb_verdict_name((enum lb_verdict)v),
                lb_verdict_is_failure((enum lb_verdict)v) ? "!" : "");
        separator = ", ";
    }
    fprintf(out, "\n");
}

enum lb_status lb_table_print(FILE *out, const struct lb_run *run, const char *baseline,
                              struct lb_error *err)
{
    struct marks marks = {false};
    int columns = lb_columns(out);
    struct line *lines = calloc(run->count + 1, sizeof(*lines));
    if (!lines)
        return lb_fail(err, LB_OOM, "out of memory for the table");
    for (size_t i = 0; i < run->count; i++) {
        lines[i].row = &run->rows[i];
        lines[i].index = i;
        print_problem(&run->rows[i], lines[i].problem);
    }
    sort_lines(lines, run->count);
    if (baseline[0])
        fprintf(out, "Median time of a call with half its 95 %% interval; speed-up over %s.\n",
                baseline);
    struct group_view view = {0};
    for (size_t i = 0, first = 0; i < run->count; i++) {
        if (i == 0 || lines[i].group != lines[i - 1].group) {
            first = i;
            view.base = baseline_median(lines, run->count, i, baseline);
            view.updates = has_updates(lines, run->count, i);
            marks.updates |= view.updates;
            fprintf(out, "\n%s\n", lines[i].problem);
        }
        if (lines[i].row->verdict == LB_VERDICT_ABSENT)
            continue;
        if (lines[i].row->verdict == LB_VERDICT_OK)
            print_times(out, lines[i].row, &view, columns, rank_of(lines, run->count, first, i),
                        &marks);
        else
            print_verdict(out, lines[i].row);
    }
    print_absent(out, run);
    print_counts(out, run, &marks);
    free(lines);
    return LB_OK;
}
