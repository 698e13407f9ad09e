/* The report: reads the runs, and fills the template of the page with its parts. */
#include "html/report_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic_file.h"
#include "html/template.h"
#include "html/view.h"
#include "html/writer.h"
#include "record/environment.h"
#include "record/run_devices.h"
#include "support/share_path.h"
#include "support/terminal.h"

static void write_counts(FILE *out, const struct lb_html_view *view)
{
    fprintf(out,
            "<p class=\"counts\"><span><strong>%zu</strong> cases</span> "
            "<span><strong>%zu</strong> problems</span>",
            view->run->count, view->groups.count);
    for (int v = 0; v < LB_VERDICT_COUNT; v++)
        if (view->verdicts[v] > 0)
            fprintf(out, " <span class=\"%s\"><strong>%zu</strong> %s</span>",
                    v == LB_VERDICT_OK                          ? "ok"
                    : lb_verdict_is_failure((enum lb_verdict)v) ? "bad"
                                                                : "none",
                    view->verdicts[v], lb_verdict_name((enum lb_verdict)v));
    fputs("</p>\n", out);
}

static void write_warnings(FILE *out, const struct lb_html_view *view)
{
    const struct lb_run *run = view->run;
    if (!run->finished || run->interrupted)
        fputs("<p class=\"warning\">This run is incomplete: it was stopped or cut off. The page "
              "shows the rows that it has.</p>\n",
              out);
    if (run->doubt[0]) {
        fputs("<p class=\"warning\">The run's file is not sound: ", out);
        lb_html_text(out, run->doubt);
        fputs(". No comparison rests on it.</p>\n", out);
    }
    if (run->count == 0) {
        fputs("<p class=\"warning\">This run has no rows.</p>\n", out);
    } else if (view->baseline_series == view->series.count) {
        fputs("<p class=\"warning\">", out);
        lb_html_format(out,
                       view->baseline[0] ? "The baseline %s is not in this run, so there are no "
                                           "speed-ups over it."
                                         : "No case has a time%s, so there is no baseline.",
                       view->baseline);
        fputs("</p>\n", out);
    }
}

enum lb_status lb_html_header(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    char machine[1024];
    const json_t *header = view->run->header;
    const char *started = json_string_value(json_object_get(header, "started"));
    (void)err;
    lb_run_machine_line(view->run, machine, sizeof(machine));
    fputs("<p class=\"machine\">", out);
    lb_html_format(out, "%s. Run of %.10s.", machine, started ? started : "an unknown day");
    fputs("</p>\n", out);
    write_counts(out, view);
    write_warnings(out, view);
    return LB_OK;
}

static enum lb_status write_path(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    (void)err;
    lb_html_text(out, view->path);
    return LB_OK;
}

static enum lb_status write_changes_link(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    (void)err;
    if (view->base_count > 0)
        fputs("<a href=\"#changes\">What changed</a>", out);
    return LB_OK;
}

static enum lb_status write_program(FILE *out, const void *user, struct lb_error *err)
{
    (void)user, (void)err;
    lb_html_format(out, "bench-lstm %s (%s)", lb_version(), lb_commit());
    return LB_OK;
}

static enum lb_status write_shared(FILE *out, const struct lb_html_view *view, const char *name,
                                   struct lb_error *err)
{
    char *text;
    size_t size;
    enum lb_status st = lb_html_read(view->shared, name, &text, &size, err);
    if (st == LB_OK)
        fwrite(text, 1, size, out);
    free(text);
    return st;
}

static enum lb_status write_style(FILE *out, const void *user, struct lb_error *err)
{
    return write_shared(out, user, "report.css", err);
}

static enum lb_status write_script(FILE *out, const void *user, struct lb_error *err)
{
    return write_shared(out, user, "report.js", err);
}

/* The parts that plots/report.html names. */
static const struct lb_html_part parts[] = {
    {"path", write_path},
    {"style", write_style},
    {"header", lb_html_header},
    {"changes_link", write_changes_link},
    {"headline", lb_html_headline},
    {"changes", lb_html_changes},
    {"plain_table", lb_html_plain_table},
    {"not_run", lb_html_not_run},
    {"pictures", lb_html_pictures},
    {"machine", lb_html_machine},
    {"program", write_program},
    {"data", lb_html_data},
    {"script", write_script},
};

/* lb_file_writer */
static enum lb_status write_page(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    char *template = NULL;
    size_t size;
    enum lb_status st = LB_OK;
    LB_TRY(lb_html_read(view->shared, "report.html", &template, &size, err));
    LB_TRY(lb_html_fill(out, template, parts, sizeof(parts) / sizeof(parts[0]), view, err));
    st = lb_html_go_on(view, err);
done:
    free(template);
    return st;
}

static enum lb_status look(const struct lb_run *run, const struct lb_options *options,
                           struct lb_html_view *view, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const char *baseline = options->baseline;
    if (!baseline)
        baseline = json_string_value(json_object_get(run->header, "baseline"));
    view->run = run;
    view->margin = options->margin;
    view->kinds = options->plots;
    LB_TRY(lb_plot_check_kinds("--plots", options->plots, err));
    lb_choose_baseline(run, baseline, view->baseline);
    LB_TRY(lb_series_collect(run, &view->series, err));
    LB_TRY(lb_groups_create(run, &view->series, &view->groups, err));
    view->baseline_series = lb_series_baseline(&view->series, view->baseline);
    for (size_t i = 0; i < run->count; i++)
        view->verdicts[run->rows[i].verdict]++;
done:
    return st;
}

enum lb_status lb_html_go_on(const struct lb_html_view *view, struct lb_error *err)
{
    return *view->stop ? lb_fail(err, LB_INTERRUPTED, "interrupted before the page was written")
                       : LB_OK;
}

enum lb_status lb_html_report(const struct lb_options *options, const volatile sig_atomic_t *stop,
                              struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run run = {0};
    struct lb_html_view view = {.path = options->run, .stop = stop};
    const char **bases = calloc(options->run_count + 1, sizeof(*bases));
    char shared[4300];
    if (!bases)
        return lb_fail(err, LB_OOM, "out of memory for %zu runs", options->run_count);
    /* The newest run, which is named last, is reported; all others are compared with it. */
    for (size_t i = 0; i < options->run_count; i++) {
        bases[view.base_count++] = view.path;
        view.path = options->runs[i];
    }
    view.bases = bases;
    LB_TRY(lb_share_path("plots", shared, sizeof(shared), err));
    view.shared = shared;
    view.by = options->by;
    LB_TRY(lb_run_read_by(view.path, options->by, &run, err));
    LB_TRY(lb_html_go_on(&view, err));
    lb_warn(run.doubt);
    LB_TRY(look(&run, options, &view, err));
    LB_TRY(lb_html_draw(&view, err));
    LB_TRY(lb_write_file_atomically(options->out, write_page, &view, err));
done:
    lb_html_clean(&view);
    lb_groups_free(&view.groups);
    lb_series_free(&view.series);
    lb_run_free(&run);
    free(bases);
    return st;
}
