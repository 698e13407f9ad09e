/* Drawings inside the page: gnuplot's SVG cut down and given the page's colours, and strips of
 * samples. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "html.h"
#include "report_parts.h"

/* Colours of plots/style.gp that follow the page's light or dark; report.css defines them. */
static const struct {
    int rgb;
    const char *variable;
} page_colors[] = {
    {0x222222, "ink"}, {0x6b6b6b, "faint"}, {0xe3e3e3, "hair"}, {0x0072b2, "c1"}, {0xd55e00, "c2"},
    {0x009e73, "c3"},  {0xcc79a7, "c4"},    {0xe69f00, "c5"},   {0x56b4e9, "c6"}, {0x000000, "c7"},
    {0x7f7f7f, "c8"},
};

/* Attributes of every group that say what holds anyway, or what the page decides. */
static const char *const needless[] = {
    " stroke-linecap=\"butt\"",      " stroke-linejoin=\"miter\"", " color=\"black\"",
    " font-family=\"sans-serif\"", " class=\"gridline\"",
};

static bool starts(const char *at, const char *with)
{
    return strncmp(at, with, strlen(with)) == 0;
}

/* Behind the next occurrence of the text; the end where there is none. */
static const char *behind(const char *at, const char *text)
{
    const char *found = strstr(at, text);
    return found ? found + strlen(text) : at + strlen(at);
}

/* rgb(R, G, B) at the start: writes the page's colour or #RRGGBB and returns what follows. */
static const char *write_color(FILE *out, const char *at)
{
    int rgb = 0;
    char *end = (char *)at + strlen("rgb");
    for (int i = 0; i < 3; i++)
        rgb = rgb * 256 + (int)(strtol(end + 1, &end, 10) & 255);
    for (size_t i = 0; i < sizeof(page_colors) / sizeof(page_colors[0]); i++) {
        if (page_colors[i].rgb == rgb) {
            fprintf(out, "var(--%s)", page_colors[i].variable);
            return behind(end, ")");
        }
    }
    fprintf(out, "#%06x", (unsigned)rgb);
    return behind(end, ")");
}

/* An id or a reference to one in single quotes, with the prefix before it. */
static const char *write_name(FILE *out, const char *attribute, const char *mark,
                              const char *prefix, const char *at)
{
    const char *end = strchr(at, '\'');
    int length = end ? (int)(end - at) : 0;
    fprintf(out, " %s=\"%s%s-%.*s\"", attribute, mark, prefix, length, at);
    return end ? end + 1 : at;
}

/* What begins here and is left out: returns what follows it, or at itself. */
static const char *skip(const char *at)
{
    static const struct {
        const char *from, *to;
    } parts[] = {{"<title>", "</title>"},
                 {"<desc>", "</desc>"},
                 {"<filter ", "</filter>"},
                 {"<rect x=\"0\" y=\"0\"", "/>"},
                 {" id=\"", "\""}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (starts(at, parts[i].from))
            return behind(at + strlen(parts[i].from), parts[i].to);
    for (size_t i = 0; i < sizeof(needless) / sizeof(needless[0]); i++)
        if (starts(at, needless[i]))
            return at + strlen(needless[i]);
    if (starts(at, "<g ")) { /* a group of nothing */
        const char *content = behind(at, ">");
        content += strspn(content, " \n\t");
        if (starts(content, "</g>"))
            return content + strlen("</g>");
    }
    return at;
}

static void write_body(FILE *out, const char *at, const char *prefix)
{
    while (*at && !starts(at, "</svg>")) {
        const char *next = skip(at);
        if (next != at) {
            at = next;
        } else if (starts(at, "rgb(")) {
            at = write_color(out, at);
        } else if (starts(at, " id='")) {
            at = write_name(out, "id", "", prefix, at + strlen(" id='"));
        } else if (starts(at, " xlink:href='#")) {
            at = write_name(out, "href", "#", prefix, at + strlen(" xlink:href='#"));
        } else if (starts(at, " color='#FFFFFF'")) { /* what clears the paper around a mark */
            fputs(" color=\"var(--paper)\"", out);
            at += strlen(" color='#FFFFFF'");
        } else if (*at == '\n' || *at == '\t') {
            at += strspn(at, "\n\t ");
            if (*at != '<' && *at != '\0')
                fputc(' ', out);
        } else {
            fputc(*at++, out);
        }
    }
}

void lb_report_svg(FILE *out, const char *svg, const char *prefix, const char *title)
{
    const char *box = strstr(svg, "viewBox=\"0 0 ");
    char *end = NULL;
    double width = box ? strtod(box + strlen("viewBox=\"0 0 "), &end) : 0;
    double height = end ? strtod(end, NULL) : 0;
    fprintf(out, "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" role=\"img\" aria-label=\"", width,
            height, width);
    lb_html_text(out, title);
    fputs("\">", out);
    write_body(out, box ? behind(box, ">") : "", prefix);
    fputs("</svg>\n", out);
}

/* Strips */

enum { BINS = 41, MIDDLE = BINS / 2, STRIP_HEIGHT = 16 };

void lb_report_strip(FILE *out, const struct lb_row *row)
{
    size_t counts[BINS] = {0}, most = 1, outside = 0;
    for (size_t i = 0; i < row->samples; i++) {
        double away = 100 * (row->samples_ns[i] / row->median_ns - 1); /* percent: a bin each */
        outside += !(fabs(away) <= MIDDLE + 0.5);
        int bin = MIDDLE + (int)round(fmax(-MIDDLE, fmin(MIDDLE, away)));
        counts[bin]++;
    }
    for (int b = 1; b < BINS - 1; b++)
        most = counts[b] > most ? counts[b] : most;
    fprintf(out,
            "<svg class=strip viewBox=\"0 0 %d %d\" role=img aria-label=\"%zu samples, %zu of them "
            "more than %d %% from the median\"><path class=mid d=\"M%d 0v%d\"/><path d=\"",
            2 * BINS, STRIP_HEIGHT + 2, row->samples, outside, MIDDLE, 2 * MIDDLE + 1,
            STRIP_HEIGHT + 2);
    for (int b = 1; b < BINS - 1; b++)
        if (counts[b] > 0)
            fprintf(out, "M%d %dv-%.3g", 2 * b + 1, STRIP_HEIGHT + 1,
                    fmax(2, STRIP_HEIGHT * (double)counts[b] / (double)most));
    fputs("\"/>", out);
    if (counts[0] + counts[BINS - 1] > 0) {
        fputs("<path class=far d=\"", out);
        for (int b = 0; b < BINS; b += BINS - 1)
            if (counts[b] > 0)
                fprintf(out, "M%d %dv-%.3g", 2 * b + 1, STRIP_HEIGHT + 1,
                        fmax(2, fmin(STRIP_HEIGHT, STRIP_HEIGHT * (double)counts[b] / (double)most)));
        fputs("\"/>", out);
    }
    fputs("</svg>", out);
}
