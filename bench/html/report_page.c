/* The report: reads the runs, and fills the template of the page with its parts. */
#include "html/report_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/text.h"
#include "base/xml.h"
#include "html/page_data.h"
#include "plot/table.h"
#include "record/environment.h"
#include "record/run_devices.h"
#include "support/share_path.h"
#include "support/terminal.h"

/* What the parts are written from. */
struct page {
    const struct lb_page_source *source;
    char folder[4300]; /* of the template, the style and the script */
    const volatile sig_atomic_t *stop;
};

/* Returns a whole file of the page's folder, followed by a zero byte, which the caller frees; NULL
 * with the reason in err. */
static char *read_file(const struct page *page, const char *name, struct lb_error *err)
{
    char path[4400], *text = NULL;
    snprintf(path, sizeof(path), "%s/%s", page->folder, name);
    FILE *in = fopen(path, "rb");
    long size = in && fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
    if (size >= 0 && (text = calloc(1, (size_t)size + 1)) != NULL) {
        rewind(in);
        if (fread(text, 1, (size_t)size, in) != (size_t)size) {
            free(text);
            text = NULL;
        }
    }
    if (!text)
        lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    if (in)
        fclose(in);
    return text;
}

static enum lb_status write_file(FILE *out, const struct page *page, const char *name,
                                 struct lb_error *err)
{
    char *text = read_file(page, name, err);
    if (!text)
        return LB_IO;
    fputs(text, out);
    free(text);
    return LB_OK;
}

/* Writes JSON that is safe inside <script>: no character in it is markup. */
static enum lb_status write_data(FILE *out, const struct page *page, struct lb_error *err)
{
    json_t *data = lb_page_data(page->source, err);
    if (!data)
        return LB_OOM;
    char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    json_decref(data);
    if (!text)
        return lb_fail(err, LB_OOM, "out of memory for the page");
    for (const char *at = text; *at; at++) {
        if (strchr("<>&", *at)) /* in strings alone */
            fprintf(out, "\\u%04x", *at);
        else
            fputc(*at, out);
    }
    free(text);
    return LB_OK;
}

/* Writes the terminal's table, for readers without JavaScript. */
static enum lb_status write_table(FILE *out, const struct page *page, struct lb_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return lb_fail(err, LB_OOM, "out of memory for the page");
    enum lb_status st = lb_table_print(memory, page->source->grouped, err);
    fclose(memory);
    for (char *line = text, *end; st == LB_OK && *line; line = end) {
        end = line + strcspn(line, "\n");
        bool more = *end == '\n';
        *end = '\0';
        lb_xml_text(line, out);
        fputc('\n', out);
        end += more;
    }
    free(text);
    return st;
}

/* Writes the part that the template names. */
static enum lb_status write_part(FILE *out, const struct page *page, const char *name,
                                 struct lb_error *err)
{
    if (strcmp(name, "style") == 0)
        return write_file(out, page, "report.css", err);
    if (strcmp(name, "script") == 0)
        return write_file(out, page, "report.js", err);
    if (strcmp(name, "data") == 0)
        return write_data(out, page, err);
    if (strcmp(name, "table") == 0)
        return write_table(out, page, err);
    char path[4096]; /* need not be UTF-8, but the page must be */
    snprintf(path, sizeof(path), "%s", page->source->path);
    lb_clean_text(path);
    if (strcmp(name, "program") == 0)
        fprintf(out, "bench-lstm %s (%s)", lb_version(), lb_commit());
    else if (strcmp(name, "path") == 0)
        lb_xml_text(path, out);
    else
        return lb_fail(err, LB_INVALID, "the page's template names an unknown part {{%s}}", name);
    return LB_OK;
}

/* lb_file_writer: fills the template, in which {{name}} stands for a part. */
static enum lb_status write_page(FILE *out, const void *user, struct lb_error *err)
{
    const struct page *page = user;
    enum lb_status st = LB_OK;
    char *template = read_file(page, "report.html", err), *at = template;
    if (!template)
        return LB_IO;
    for (char *open; (open = strstr(at, "{{"));) {
        char *name = open + 2, *close = strstr(name, "}}");
        if (!close)
            LB_TRY(lb_fail(err, LB_INVALID, "the page's template has a {{ without }}"));
        fwrite(at, 1, (size_t)(open - at), out);
        *close = '\0';
        LB_TRY(write_part(out, page, name, err));
        at = close + 2;
    }
    fputs(at, out);
    if (*page->stop)
        st = lb_fail(err, LB_INTERRUPTED, "interrupted before the page was written");
done:
    free(template);
    return st;
}

/* Reads the runs [count + 1] that are named, of which the last is reported. */
static enum lb_status read_runs(const struct lb_options *options, struct lb_run *runs,
                                const char **paths, const volatile sig_atomic_t *stop,
                                struct lb_error *err)
{
    for (size_t i = 0; i <= options->run_count; i++) {
        paths[i] = i == 0 ? options->run : options->runs[i - 1];
        enum lb_status st = lb_run_read_by(paths[i], options->by, &runs[i], err);
        if (st != LB_OK)
            return st;
        lb_warn(runs[i].doubt);
        if (*stop)
            return lb_fail(err, LB_INTERRUPTED, "interrupted before the page was written");
    }
    return LB_OK;
}

enum lb_status lb_html_report(const struct lb_options *options, const volatile sig_atomic_t *stop,
                              struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t last = options->run_count;
    struct lb_grouped_run grouped = {0};
    struct lb_run *runs = calloc(last + 1, sizeof(*runs));
    const struct lb_run **bases = calloc(last + 1, sizeof(struct lb_run *));
    const char **paths = calloc(last + 1, sizeof(*paths));
    if (!runs || !bases || !paths)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory for %zu runs", last + 1));
    LB_TRY(read_runs(options, runs, paths, stop, err));
    LB_TRY(lb_group_run(&runs[last], options->baseline, &grouped, err));
    for (size_t i = 0; i < last; i++)
        bases[i] = &runs[i];
    const struct lb_page_source source = {.grouped = &grouped,
                                          .path = paths[last],
                                          .bases = bases,
                                          .base_paths = paths,
                                          .base_count = last,
                                          .margin = options->margin};
    struct page page = {.source = &source, .stop = stop};
    LB_TRY(lb_share_path("plots", page.folder, sizeof(page.folder), err));
    LB_TRY(lb_write_file_atomically(options->out, write_page, &page, err));
done:
    lb_grouped_run_free(&grouped);
    for (size_t i = 0; runs && i <= last; i++)
        lb_run_free(&runs[i]);
    free(runs);
    free(bases);
    free(paths);
    return st;
}
