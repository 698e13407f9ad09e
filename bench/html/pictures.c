/* The pictures of the report: drawn by gnuplot into a scratch folder, and put into the page. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "html/sections.h"
#include "html/writer.h"
#include "plot/plot.h"

enum { GNUPLOT_LIMIT_S = 120, OPEN_PAGES = 4 /* of a kind; the others are folded */ };

/* The page's sections, and the kinds of pictures in each. */
static const struct {
    const char *id, *title, *link, *about;
    const char *kinds[4];
} sections[] = {
    {"speedup",
     "Speed-up",
     "Speed-up",
     "A cell is one problem: how many times as fast as the baseline. A = says that the intervals "
     "overlap, so which one is faster is open; × failed; grey did not run; – is not in this run.",
     {"speedup-b", "speedup-t"}},
    {"time", "Time a step", "Time a step", "", {"time-h", "time-b", "time-t"}},
    {"roofline", "Rates", "Rates", "", {"roofline"}},
    {"training", "Training against inference", "Training", "", {"training"}},
    {"precision", "Precision against precision", "Precision", "", {"precision"}},
    {"memory", "Memory", "Memory", "", {"memory"}},
};

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

/* One form of a page's picture, in a division of that class. */
static enum lb_status write_form(FILE *out, const char *folder, const struct lb_plot_page *page,
                                 const char *form, struct lb_error *err)
{
    char name[160], *svg;
    bool narrow = strcmp(form, "narrow") == 0;
    snprintf(name, sizeof(name), "%s%s.svg", page->name, narrow ? "-narrow" : "");
    enum lb_status st = lb_html_read(folder, name, &svg, err);
    if (st != LB_OK)
        return st;
    fprintf(out, "<div class=\"%s\">", form);
    lb_html_svg(out, svg, page->heading);
    fputs("</div>\n", out);
    free(svg);
    return LB_OK;
}

static enum lb_status write_figure(FILE *out, const char *folder, const struct lb_plot_page *page,
                                   struct lb_error *err)
{
    enum lb_status st = LB_OK;
    fprintf(out, "<figure id=\"%s\">\n<figcaption><h3>", page->name);
    lb_html_text(out, page->heading);
    fputs("</h3><p>", out);
    lb_html_text(out, page->reading);
    fputs("</p></figcaption>\n", out);
    LB_TRY(write_form(out, folder, page, "wide", err));
    LB_TRY(write_form(out, folder, page, "narrow", err));
    fputs("</figure>\n", out);
done:
    return st;
}

/* The line of the notes that is about the kind: why there is none. */
static void write_note(FILE *out, const char *notes, const char *kind)
{
    size_t length = strlen(kind);
    for (const char *line = notes; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, kind, length) == 0 && line[length] == ':') {
            fputs("<p class=\"note\">", out);
            lb_html_format(out, "%.*s.", (int)strcspn(line, "\n"), line);
            fputs("</p>\n", out);
        }
    }
}

/* Pages with something to choose between come first: what is folded away is of less interest. */
static enum lb_status write_kind(FILE *out, const char *folder, const struct lb_plot_pages *pages,
                                 const char *kind, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t written = 0;
    for (size_t k = 0; k < 2 * pages->count; k++) {
        size_t i = k % pages->count;
        bool alone = pages->items[i].lines == 1;
        if (strcmp(pages->items[i].kind, kind) != 0 || alone != (k >= pages->count))
            continue;
        if (written++ == OPEN_PAGES)
            fputs("</div>\n<details class=\"more\"><summary>More of these</summary>\n"
                  "<div class=\"figures\">\n",
                  out);
        else if (written == 1)
            fputs("<div class=\"figures\">\n", out);
        LB_TRY(write_figure(out, folder, &pages->items[i], err));
    }
    if (written > 0)
        fputs(written > OPEN_PAGES ? "</div></details>\n" : "</div>\n", out);
done:
    return st;
}

static bool has_lower_bound(const struct lb_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->rows[i].floor_ns > 0)
            return true;
    return false;
}

static void write_about(FILE *out, const struct lb_html_view *view, size_t section)
{
    bool floor = has_lower_bound(view->run);
    fprintf(out, "<section id=\"%s\">\n<h2>%s</h2>\n", sections[section].id,
            sections[section].title);
    if (sections[section].about[0])
        fprintf(out, "<p class=\"note\">%s</p>\n", sections[section].about);
    if (strcmp(sections[section].id, "time") == 0)
        fprintf(out, "<p class=\"note\">%s</p>\n",
                floor ? "The dotted line is the floor: the least time that any implementation "
                        "could take on this GPU, its steps one after another."
                      : "No floor is known for this run: its cases ran on a CPU, or on a GPU that "
                        "the floor model does not know, so nothing is said about how far these "
                        "times are from the least possible.");
}

enum lb_status lb_html_draw(struct lb_html_view *view, struct lb_error *err)
{
    const char *scratch = getenv("TMPDIR");
    snprintf(view->scratch, sizeof(view->scratch), "%.200s/bench-lstm-XXXXXX",
             scratch && scratch[0] ? scratch : "/tmp");
    if (!mkdtemp(view->scratch)) {
        enum lb_status st = lb_fail(err, LB_IO, "%s: a folder for pictures can't be made: %s",
                                    view->scratch, strerror(errno));
        view->scratch[0] = '\0';
        return st;
    }
    struct lb_error why;
    struct lb_plot_report report;
    const struct lb_plot_options options = {
        .folder = view->scratch,
        .scripts = view->shared,
        .baseline = view->baseline[0] ? view->baseline : "none",
        .time_limit_s = GNUPLOT_LIMIT_S,
        .for_page = true,
        .pages = &view->pages,
    };
    enum lb_status st = lb_plot(view->run, &options, &report, &why);
    if (st == LB_INTERRUPTED)
        return st;
    if (st == LB_OK) {
        snprintf(view->notes, sizeof(view->notes), "%s", report.notes);
    } else {
        lb_plot_pages_free(&view->pages);
        snprintf(view->notes, sizeof(view->notes), "no pictures: %s", why.text);
    }
    return LB_OK;
}

void lb_html_clean(struct lb_html_view *view)
{
    lb_plot_pages_free(&view->pages);
    if (view->scratch[0])
        remove_folder(view->scratch);
    view->scratch[0] = '\0';
}

void lb_html_picture_links(FILE *out, const struct lb_html_view *view)
{
    for (size_t s = 0; view->pages.count > 0 && s < sizeof(sections) / sizeof(sections[0]); s++)
        fprintf(out, "<a href=\"#%s\">%s</a> ", sections[s].id, sections[s].link);
}

enum lb_status lb_html_pictures(FILE *out, const struct lb_html_view *view, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (view->pages.count == 0) {
        fputs("<section id=\"pictures\">\n<h2>Pictures</h2>\n<p class=\"note\">", out);
        static const char start[] = "no pictures: ";
        bool known = strncmp(view->notes, start, strlen(start)) == 0;
        lb_html_format(out, "There are none: %s.", view->notes + (known ? strlen(start) : 0));
        fputs("</p>\n</section>\n", out);
        return LB_OK;
    }
    for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++) {
        write_about(out, view, s);
        for (const char *const *kind = sections[s].kinds; *kind; kind++) {
            LB_TRY(write_kind(out, view->scratch, &view->pages, *kind, err));
            write_note(out, view->notes, *kind);
        }
        fputs("</section>\n", out);
    }
done:
    return st;
}
