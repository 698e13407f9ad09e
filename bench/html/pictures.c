/* gnuplot's pictures in the report: drawn into a scratch folder and embedded as they are. */
#include <stdlib.h>
#include <string.h>

#include "html/scratch_folder.h"
#include "html/view.h"
#include "html/writer.h"

enum { GNUPLOT_LIMIT_S = 120, OPEN_PAGES = 4 /* of a kind; more are folded away */ };

/* The groups of pictures on the page, and their kinds. */
static const struct {
    const char *title, *about;
    const char *kinds[4];
} sections[] = {
    {"Speed-up",
     "Each cell is one problem: how many times as fast as the baseline. = means tied, as the "
     "intervals overlap; × failed; grey did not run; – is not in this run.",
     {"speedup-b", "speedup-t"}},
    {"Time per step", "", {"time-h", "time-b", "time-t"}},
    {"Rate", "", {"roofline"}},
    {"Training compared with inference", "", {"training"}},
    {"Precisions compared", "", {"precision", "error"}},
    {"Memory", "", {"memory"}},
};

/* The number of an attribute like width="640" in an SVG's first tag; 0 where there is none. */
static int svg_size(const char *svg, const char *attribute)
{
    const char *start = strstr(svg, "<svg"), *end = start ? strchr(start, '>') : NULL;
    const char *at = end ? strstr(start, attribute) : NULL;
    if (!at || at > end)
        return 0;
    long size = strtol(at + strlen(attribute), NULL, 10);
    return size > 0 && size < 100000 ? (int)size : 0;
}

/* Embeds one form of a page's picture, if its file can be read: a source of a <picture>, or its
 * <img>. False when there is none. */
static bool write_image(FILE *out, const char *folder, const struct lb_plot_page *page, bool narrow)
{
    char name[sizeof(page->name) + 16], *svg = NULL;
    size_t size;
    snprintf(name, sizeof(name), "%s%s.svg", page->name, narrow ? "-narrow" : "");
    if (lb_html_read(folder, name, &svg, &size, NULL) != LB_OK)
        return false;
    int width = svg_size(svg, " width=\""), height = svg_size(svg, " height=\"");
    fputs(narrow ? "<source media=\"(max-width: 720px)\" srcset=\"" : "<img alt=\"", out);
    if (!narrow) {
        lb_html_text(out, page->heading);
        fputs("\" loading=\"lazy\" src=\"", out);
    }
    fputs("data:image/svg+xml;base64,", out);
    lb_html_base64(out, svg, size);
    fputc('"', out);
    if (width > 0 && height > 0)
        fprintf(out, " width=\"%d\" height=\"%d\"", width, height);
    fputs(">\n", out);
    free(svg);
    return true;
}

static void write_figure(FILE *out, const char *folder, const struct lb_plot_page *page)
{
    fprintf(out, "<figure id=\"%s\">\n<figcaption><h4>", page->name);
    lb_html_text(out, page->heading);
    fputs("</h4><p>", out);
    lb_html_text(out, page->reading);
    fputs("</p></figcaption>\n<picture>", out);
    write_image(out, folder, page, true);
    bool shown = write_image(out, folder, page, false);
    fputs("</picture>\n", out);
    if (!shown)
        fputs("<p class=\"warning\">This picture could not be read.</p>\n", out);
    fputs("</figure>\n", out);
}

/* Writes the line of the notes that says why the kind has no pictures. */
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

/* Writes the pages of a kind. Those that compare several implementations come first, so that the
 * least interesting ones are folded away. */
static void write_kind(FILE *out, const char *folder, const struct lb_plot_pages *pages,
                       const char *kind)
{
    size_t written = 0;
    for (size_t k = 0; k < 2 * pages->count; k++) {
        size_t i = k % pages->count;
        bool alone = pages->items[i].lines == 1;
        if (strcmp(pages->items[i].kind, kind) != 0 || alone != (k >= pages->count))
            continue;
        if (written++ == OPEN_PAGES)
            fputs("</div>\n<details class=\"more\"><summary>More pictures of this kind</summary>\n"
                  "<div class=\"figures\">\n",
                  out);
        else if (written == 1)
            fputs("<div class=\"figures\">\n", out);
        write_figure(out, folder, &pages->items[i]);
    }
    if (written > 0)
        fputs(written > OPEN_PAGES ? "</div></details>\n" : "</div>\n", out);
}

static bool has_lower_bound(const struct lb_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->rows[i].floor_ns > 0)
            return true;
    return false;
}

static void write_section(FILE *out, const struct lb_html_view *view, size_t section)
{
    fprintf(out, "<h3>%s</h3>\n", sections[section].title);
    if (sections[section].about[0])
        fprintf(out, "<p class=\"note\">%s</p>\n", sections[section].about);
    if (strcmp(sections[section].kinds[0], "time-h") == 0)
        fprintf(out, "<p class=\"note\">%s</p>\n",
                has_lower_bound(view->run)
                    ? "The dotted line is the lower bound (floor): the least time that any "
                      "implementation could take on this device, one step after another."
                    : "This run has no lower bounds. After bench-lstm --ceilings, new runs have "
                      "them.");
    for (const char *const *kind = sections[section].kinds; *kind; kind++) {
        write_kind(out, view->scratch, &view->pages, *kind);
        write_note(out, view->notes, *kind);
    }
}

enum lb_status lb_html_draw(struct lb_html_view *view, struct lb_error *err)
{
    enum lb_status st = lb_scratch_folder_create(view->scratch, sizeof(view->scratch), err);
    if (st != LB_OK) {
        view->scratch[0] = '\0';
        return st;
    }
    struct lb_error why;
    struct lb_plot_report report;
    const struct lb_plot_options options = {
        .folder = view->scratch,
        .scripts = view->shared,
        .baseline = view->baseline[0] ? view->baseline : "none",
        .kinds = view->kinds,
        .time_limit_s = GNUPLOT_LIMIT_S,
        .for_page = true,
        .pages = &view->pages,
    };
    st = lb_plot(view->run, &options, &report, &why);
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
        lb_scratch_folder_remove(view->scratch);
    view->scratch[0] = '\0';
}

enum lb_status lb_html_pictures(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    (void)err;
    if (view->pages.count == 0) {
        static const char start[] = "no pictures: ";
        bool said = strncmp(view->notes, start, strlen(start)) == 0;
        fputs("<p class=\"note\">", out);
        lb_html_format(out, "There are none: %s.",
                       said ? view->notes + strlen(start) : "no kind has anything to show");
        fputs("</p>\n", out);
        for (const char *const *kind = lb_plot_kinds; *kind; kind++)
            write_note(out, view->notes, *kind);
        return LB_OK;
    }
    for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++)
        write_section(out, view, s);
    return LB_OK;
}
