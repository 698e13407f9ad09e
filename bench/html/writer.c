/* Writing text, numbers and files into HTML and into JSON inside HTML. */
#include "html/writer.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "support/terminal.h"

void lb_html_text(FILE *out, const char *text)
{
    for (size_t length; *text; text += length) {
        length = lb_character_bytes(text);
        if (length != 1) { /* a folder's name need not be UTF-8, but the page must be */
            fprintf(out, "%.*s", length ? (int)length : 1, length ? text : "?");
            length += length == 0;
            continue;
        }
        switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default:
            /* HTML has no control characters. */
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

void lb_html_ns(FILE *out, double ns)
{
    char text[32];
    lb_format_ns(ns, text);
    char *micro = strstr(text, "us"); /* the terminal has no micro sign */
    if (micro)
        fprintf(out, "%.*sµs", (int)(micro - text), text);
    else
        fputs(text, out);
}

void lb_html_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9)) {
            fprintf(out, "\\u20%02x", at[2] - 0x80);
            at += 2;
        } else if (*at < ' ' || strchr("<>&\"\\\177", *at)) {
            fprintf(out, "\\u%04x", *at);
        } else {
            fputc(*at, out);
        }
    }
    fputc('"', out);
}

void lb_html_json_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.9g", value);
    else
        fputs("null", out);
}

void lb_html_base64(FILE *out, const char *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t group = 0;
        size_t count = size - i < 3 ? size - i : 3;
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (k < count ? (unsigned char)bytes[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            fputc(k <= count ? digits[group >> (18 - 6 * k) & 63] : '=', out);
    }
}

static enum lb_status read_all(FILE *in, const char *path, char **bytes, size_t *size,
                               struct lb_error *err)
{
    size_t used = 0, room = 1 << 16;
    char *content = malloc(room);
    for (size_t n; content && (n = fread(content + used, 1, room - used - 1, in)) > 0;) {
        used += n;
        if (room - used > 1)
            continue;
        char *grown = realloc(content, 2 * room);
        if (!grown)
            free(content);
        content = grown;
        room *= 2;
    }
    if (!content)
        return lb_fail(err, LB_OOM, "%s: out of memory", path);
    if (ferror(in)) {
        free(content);
        return lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    }
    content[used] = '\0';
    *bytes = content;
    *size = used;
    return LB_OK;
}

enum lb_status lb_html_read(const char *folder, const char *name, char **bytes, size_t *size,
                            struct lb_error *err)
{
    char path[4600];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    *bytes = NULL;
    *size = 0;
    FILE *in = fopen(path, "rb");
    if (!in)
        return lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    enum lb_status st = read_all(in, path, bytes, size, err);
    fclose(in);
    return st;
}
