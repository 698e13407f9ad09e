/* The files of a page: its data, and a script that holds settings, style and drawing commands. */
#include "plot/plot_page.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/run_devices.h"

/* Opens folder/name.suffix. */
static enum lb_status open_file(const char *folder, const char *name, const char *suffix,
                                const char *mode, FILE **file, struct lb_error *err)
{
    size_t size = strlen(folder) + strlen(name) + strlen(suffix) + 2;
    char *path = malloc(size);
    if (!path)
        return lb_fail(err, LB_OOM, "%s: out of memory", folder);
    snprintf(path, size, "%s/%s%s", folder, name, suffix);
    *file = fopen(path, mode);
    enum lb_status st = *file ? LB_OK : lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    free(path);
    return st;
}

void lb_page_quote(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', script);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, script);
    }
    fputc('\'', script);
}

void lb_page_text(struct lb_page *page, const char *name, const char *text)
{
    fprintf(page->script, "%s = ", name);
    lb_page_quote(page->script, text);
    fputc('\n', page->script);
}

/* The settings of the small print: the machine, the program, and the day of the run. */
static void write_source(struct lb_page *page, const struct lb_run *run)
{
    const json_t *environment = json_object_get(run->header, "environment");
    const char *version = json_string_value(json_object_get(environment, "version"));
    const char *commit = json_string_value(json_object_get(environment, "commit"));
    const char *started = json_string_value(json_object_get(run->header, "started"));
    char text[512];
    lb_run_machine_line(run, text, sizeof(text));
    lb_page_text(page, "machine", text);
    snprintf(text, sizeof(text), "bench-lstm %s%s%s%s%s%.10s", version ? version : "",
             commit ? " (" : "", commit ? commit : "", commit ? ")" : "",
             started ? ", run of " : "", started ? started : "");
    lb_page_text(page, "program", text);
}

enum lb_status lb_page_open(struct lb_plot_job *job, const char *kind, const char *suffix,
                            struct lb_page *page, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const char *name = page->about.name;
    *page = (struct lb_page){0};
    snprintf(page->about.kind, sizeof(page->about.kind), "%s", kind);
    snprintf(page->about.name, sizeof(page->about.name), "%s_%s", kind, suffix);
    LB_TRY(open_file(job->options->folder, name, ".dat", "w", &page->data, err));
    LB_TRY(open_file(job->options->folder, name, ".gp", "w", &page->script, err));
    fprintf(page->script,
            "# Draws %s.svg and %s.png from %s.dat. Edit it as you like, then run in this\n"
            "# folder: gnuplot %s.gp\n"
            "reset session\n",
            name, name, name, name);
    lb_page_text(page, "name", name);
    lb_page_text(page, "formats", job->options->for_page ? "svg narrow" : "svg png");
    fprintf(page->script, "words = %d\n", job->options->for_page ? 0 : 1);
    write_source(page, job->run);
done:
    if (st != LB_OK)
        lb_page_close(page);
    return st;
}

/* The length of the text's first line: all of a short text, else up to the last sentence end that
 * fits, else up to a space. */
static size_t line_break(const char *text)
{
    enum { LINE = 96 };
    size_t sentence = 0, space = 0;
    if (strlen(text) <= LINE)
        return strlen(text);
    for (size_t i = 1; i < LINE; i++) {
        if (text[i] == ' ')
            space = i;
        if (text[i] == ' ' && text[i - 1] == '.' && i > LINE / 3)
            sentence = i;
    }
    return sentence ? sentence : space;
}

void lb_page_words(struct lb_page *page, const char *heading, const char *reading)
{
    char first[512];
    snprintf(page->about.heading, sizeof(page->about.heading), "%s", heading);
    snprintf(page->about.reading, sizeof(page->about.reading), "%s", reading);
    size_t length = line_break(reading);
    snprintf(first, sizeof(first), "%.*s", (int)length, reading);
    lb_page_text(page, "heading", heading);
    lb_page_text(page, "reading", first);
    lb_page_text(page, "reading_more", reading[length] ? reading + length + 1 : "");
}

void lb_page_number(FILE *data, double value)
{
    if (isfinite(value))
        fprintf(data, " %.17g", value);
    else
        fputs(" nan", data);
}

void lb_page_series(struct lb_page *page, const struct lb_series_list *series)
{
    FILE *script = page->script;
    size_t n = series->count;
    fprintf(script, "array series_name[%zu] = [", n);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", script);
        lb_page_quote(script, series->items[i].name);
    }
    fprintf(script, "]\narray series_color[%zu] = [", n);
    for (size_t i = 0; i < n; i++)
        fprintf(script, "%s%d", i ? ", " : "", series->items[i].color);
    fprintf(script, "]\narray series_mark[%zu] = [", n);
    for (size_t i = 0; i < n; i++)
        fprintf(script, "%s%d", i ? ", " : "", series->items[i].mark);
    fprintf(script, "]\narray series_dash[%zu] = [", n);
    for (size_t i = 0; i < n; i++)
        fprintf(script, "%s%d", i ? ", " : "", series->items[i].dash);
    fputs("]\n", script);
}

void lb_page_legend(struct lb_page *page, const struct lb_series_list *series, const bool *shown,
                    size_t width)
{
    size_t longest = 0, count = 0;
    fputs("legend = '", page->script);
    for (size_t s = 0; s < series->count; s++) {
        if (!shown[s])
            continue;
        fprintf(page->script, "%s%zu", count++ ? " " : "", s + 1);
        if (strlen(series->items[s].name) > longest)
            longest = strlen(series->items[s].name);
    }
    page->about.lines = count;
    size_t each = 60 + 8 * longest, fitting = width / each;
    fprintf(page->script, "'\nlegend_width = %zu\nlegend_columns = %zu\n", each,
            fitting ? fitting : 1);
}

void lb_page_panels(struct lb_page *page, size_t panels, size_t columns)
{
    fprintf(page->script, "panels = %zu\ncolumns = %zu\n", panels, columns);
}

void lb_panel_title(const struct lb_point *point, const char *const *letters, char *title,
                    size_t size)
{
    char *at = title, *end = title + size;
    const char *separator = "";
    title[0] = '\0';
    for (size_t i = 0; i < 2; i++) {
        if (!letters[i])
            continue;
        at += snprintf(at, (size_t)(end - at), "%s%s = %" PRId64, separator, letters[i],
                       point->panel[i]);
        separator = ", ";
    }
    if (point->input)
        snprintf(at, (size_t)(end - at), "%sI = %" PRId64, separator, point->input);
}

enum lb_status lb_page_append(const char *folder, const char *name, FILE *out, struct lb_error *err)
{
    char part[4096];
    size_t n;
    FILE *in = NULL;
    enum lb_status st = open_file(folder, name, "", "r", &in, err);
    if (st != LB_OK)
        return st;
    fputc('\n', out);
    while ((n = fread(part, 1, sizeof(part), in)) > 0)
        fwrite(part, 1, n, out);
    if (ferror(in))
        st = lb_fail(err, LB_IO, "%s/%s: %s", folder, name, strerror(errno));
    fclose(in);
    return st;
}

static bool close_file(FILE **file)
{
    bool failed = ferror(*file) != 0;
    failed = fclose(*file) != 0 || failed;
    *file = NULL;
    return !failed;
}

/* Adds the page's script to the job, and its description where the caller wants descriptions. */
static enum lb_status add_page(struct lb_plot_job *job, const struct lb_page *page,
                               struct lb_error *err)
{
    struct lb_plot_pages *pages = job->options->pages;
    size_t size = strlen(page->about.name) + sizeof(".gp");
    char **scripts = realloc(job->scripts, (job->script_count + 1) * sizeof(*scripts));
    if (scripts)
        job->scripts = scripts;
    char *name = scripts ? malloc(size) : NULL;
    if (!name)
        return lb_fail(err, LB_OOM, "%s: out of memory", page->about.name);
    snprintf(name, size, "%s.gp", page->about.name);
    job->scripts[job->script_count++] = name;
    if (!pages)
        return LB_OK;
    struct lb_plot_page *items = realloc(pages->items, (pages->count + 1) * sizeof(*items));
    if (!items)
        return lb_fail(err, LB_OOM, "%s: out of memory", page->about.name);
    pages->items = items;
    items[pages->count++] = page->about;
    return LB_OK;
}

enum lb_status lb_page_finish(struct lb_plot_job *job, struct lb_page *page, const char *script,
                              struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(lb_page_append(job->options->scripts, "style.gp", page->script, err));
    LB_TRY(lb_page_append(job->options->scripts, script, page->script, err));
    bool written = close_file(&page->data);
    written = close_file(&page->script) && written;
    if (written)
        st = add_page(job, page, err);
    else
        st = lb_fail(err, LB_IO, "%s/%s: %s", job->options->folder, page->about.name,
                     strerror(errno));
done:
    lb_page_close(page);
    return st;
}

void lb_page_close(struct lb_page *page)
{
    if (page->data)
        fclose(page->data);
    if (page->script)
        fclose(page->script);
    page->data = page->script = NULL;
}
