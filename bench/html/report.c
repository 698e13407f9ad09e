/* The report: reads the runs, and writes the parts of the page in their order. */
#include "html/report.h"

#include "base/atomic_file.h"
#include "html/sections.h"
#include "html/writer.h"
#include "record/environment.h"
#include "support/share_path.h"

static void write_counts(FILE *out, const struct lb_html_view *view)
{
    fprintf(out, "<p class=\"counts\"><strong>%zu</strong> cases on <strong>%zu</strong> problems",
            view->run->count, view->groups.count);
    for (int v = 0; v < LB_VERDICT_COUNT; v++)
        if (view->verdicts[v] > 0)
            fprintf(out, " · <span class=\"%s\">%zu %s</span>",
                    v == LB_VERDICT_OK                          ? "ok"
                    : lb_verdict_is_failure((enum lb_verdict)v) ? "bad"
                                                                : "none",
                    view->verdicts[v], lb_verdict_name((enum lb_verdict)v));
    fputs("</p>\n", out);
}

/* The title and what stands above the answer. */
static void write_top(FILE *out, const struct lb_html_view *view, bool compared)
{
    char machine[1024];
    const json_t *header = view->run->header;
    const char *started = json_string_value(json_object_get(header, "started"));
    lb_environment_line(json_object_get(header, "environment"), machine, sizeof(machine));
    fputs("<header>\n<h1>LSTM benchmark</h1>\n<p>", out);
    lb_html_format(out, "%s. Run of %.10s.", machine, started ? started : "an unknown day");
    fputs("</p>\n", out);
    write_counts(out, view);
    const struct lb_run *run = view->run;
    if (!run->finished || run->interrupted)
        fputs("<p class=\"warning\">This run is not whole: it was stopped or cut off, and what "
              "follows is about the rows that there are.</p>\n",
              out);
    if (run->count == 0)
        fputs("<p class=\"warning\">This run has no rows.</p>\n", out);
    else if (view->baseline_series == view->series.count) {
        fputs("<p class=\"warning\">", out);
        lb_html_format(out,
                       view->baseline[0] ? "The baseline %s is not in this run, so there are no "
                                           "speed-ups over it."
                                         : "No case has a time%s, so there is no baseline.",
                       view->baseline);
        fputs("</p>\n", out);
    }
    fputs("<nav><a href=\"#answer\">Fastest</a> ", out);
    if (compared)
        fputs("<a href=\"#changes\">What changed</a> ", out);
    fputs("<a href=\"#machine\">Machine</a> ", out);
    lb_html_picture_links(out, view);
    fputs("<a href=\"#cases\">All cases</a> <a href=\"#missing\">Did not run</a> "
          "<a href=\"#method\">Method</a>",
          out);
    fputs("</nav>\n</header>\n<main>\n", out);
}

static enum lb_status write_head(FILE *out, const struct lb_html_view *view, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>LSTM benchmark: ",
          out);
    lb_html_text(out, view->path);
    fputs("</title>\n<style>\n", out);
    LB_TRY(lb_html_file(out, view->shared, "report.css", err));
    fputs("</style>\n</head>\n<body>\n", out);
done:
    return st;
}

/* The runs named before the last, each against it. */
static enum lb_status write_comparisons(FILE *out, const struct lb_html_view *view,
                                        const struct lb_options *options, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (options->run_count > 0)
        fputs("<div id=\"changes\">\n", out);
    for (size_t i = 0; i < options->run_count && st == LB_OK; i++)
        st = lb_html_compare(out, view, i > 0 ? options->runs[i - 1] : options->run,
                             options->margin, err);
    if (options->run_count > 0)
        fputs("</div>\n", out);
    return st;
}

struct page {
    const struct lb_html_view *view;
    const struct lb_options *options;
};

/* lb_file_writer */
static enum lb_status write_page(FILE *out, const void *user, struct lb_error *err)
{
    const struct page *page = user;
    const struct lb_html_view *view = page->view;
    const struct lb_options *options = page->options;
    enum lb_status st = LB_OK;
    LB_TRY(write_head(out, view, err));
    write_top(out, view, options->run_count > 0);
    LB_TRY(lb_html_headline(out, view, err));
    LB_TRY(write_comparisons(out, view, options, err));
    lb_html_machine(out, view);
    LB_TRY(lb_html_pictures(out, view, err));
    LB_TRY(lb_html_cases(out, view, err));
    LB_TRY(lb_html_missing(out, view, err));
    LB_TRY(lb_html_file(out, view->shared, "report-method.html", err));
    fputs("</main>\n<footer>", out);
    lb_html_format(out, "Written by bench-lstm %s (%s) from %s.", lb_version(), lb_commit(),
                   view->path);
    fputs("</footer>\n<script>\n", out);
    LB_TRY(lb_html_file(out, view->shared, "report.js", err));
    fputs("</script>\n</body>\n</html>\n", out);
done:
    return st;
}

/* The run that is reported: the newest, which is named last. */
static const char *last_run(const struct lb_options *options)
{
    return options->run_count > 0 ? options->runs[options->run_count - 1] : options->run;
}

static enum lb_status look(const struct lb_run *run, const struct lb_options *options,
                           struct lb_html_view *view, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const char *baseline = options->baseline;
    if (!baseline)
        baseline = json_string_value(json_object_get(run->header, "baseline"));
    view->run = run;
    lb_choose_baseline(run, baseline, view->baseline);
    LB_TRY(lb_series_collect(run, &view->series, err));
    LB_TRY(lb_groups_create(run, &view->series, &view->groups, err));
    view->baseline_series = lb_series_baseline(&view->series, view->baseline);
    for (size_t i = 0; i < run->count; i++)
        view->verdicts[run->rows[i].verdict]++;
done:
    return st;
}

enum lb_status lb_html_report(const struct lb_options *options, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run run = {0};
    struct lb_html_view view = {.path = last_run(options)};
    char shared[4300];
    LB_TRY(lb_share_path("plots", shared, sizeof(shared), err));
    view.shared = shared;
    LB_TRY(lb_run_read(view.path, &run, err));
    LB_TRY(look(&run, options, &view, err));
    LB_TRY(lb_html_draw(&view, err));
    LB_TRY(lb_write_file_atomically(options->out, write_page, &(struct page){&view, options}, err));
done:
    lb_html_clean(&view);
    lb_groups_free(&view.groups);
    lb_series_free(&view.series);
    lb_run_free(&run);
    return st;
}
