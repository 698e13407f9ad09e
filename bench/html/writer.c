/* Writing HTML: text and numbers as they may stand in it. */
#include "html/writer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "support/terminal.h"

void lb_html_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default:
            /* Control characters are no HTML. */
            fputc((unsigned char)*text < ' ' && *text != '\n' ? ' ' : *text, out);
        }
    }
}

void lb_html_format(FILE *out, const char *format, ...)
{
    char text[4000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    lb_html_text(out, text);
}

/* As on the terminal, but for the micro sign. */
void lb_html_ns(FILE *out, double ns)
{
    char text[32];
    lb_format_ns(ns, text);
    char *micro = strstr(text, "us");
    if (micro)
        fprintf(out, "%.*sµs", (int)(micro - text), text);
    else
        fputs(text, out);
}

enum lb_status lb_html_read(const char *folder, const char *name, char **text, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t size = strlen(folder) + strlen(name) + 2, used = 0, room = 1 << 16;
    char *path = malloc(size), *content = malloc(room);
    FILE *in = NULL;
    *text = NULL;
    if (!path || !content)
        LB_TRY(lb_fail(err, LB_OOM, "%s: out of memory", name));
    snprintf(path, size, "%s/%s", folder, name);
    in = fopen(path, "r");
    if (!in)
        LB_TRY(lb_fail(err, LB_IO, "%s: %s", path, strerror(errno)));
    for (size_t n; (n = fread(content + used, 1, room - used - 1, in)) > 0;) {
        used += n;
        if (room - used > 1)
            continue;
        char *grown = realloc(content, 2 * room);
        if (!grown)
            LB_TRY(lb_fail(err, LB_OOM, "%s: out of memory", path));
        content = grown;
        room *= 2;
    }
    if (ferror(in))
        LB_TRY(lb_fail(err, LB_IO, "%s: %s", path, strerror(errno)));
    content[used] = '\0';
    *text = content;
    content = NULL;
done:
    if (in)
        fclose(in);
    free(content);
    free(path);
    return st;
}

enum lb_status lb_html_file(FILE *out, const char *folder, const char *name, struct lb_error *err)
{
    char *text;
    enum lb_status st = lb_html_read(folder, name, &text, err);
    if (st == LB_OK)
        fputs(text, out);
    free(text);
    return st;
}
