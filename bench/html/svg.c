/* gnuplot's SVG inside the page: cut down to what is seen, with names of its own and the page's
 * colours. A page holds many, and browsers pay by the element: groups that say nothing go, marks of
 * a line become one path, and a label's group becomes its text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "html/sections.h"
#include "html/writer.h"

/* Colours of plots/style.gp that follow the page's light or dark; report.css defines them. */
static const struct {
    int rgb;
    const char *variable;
} page_colors[] = {
    {0x222222, "ink"}, {0x6b6b6b, "faint"}, {0xe3e3e3, "hair"}, {0x0072b2, "c1"},
    {0xd55e00, "c2"},  {0x009e73, "c3"},    {0xcc79a7, "c4"},   {0xe69f00, "c5"},
    {0x56b4e9, "c6"},  {0x000000, "c7"},    {0x7f7f7f, "c8"},
};

/* Attributes that say what holds anyway: report.css has the same for all drawings. */
static const char *const needless[] = {
    "fill=\"none\"",           "stroke=\"currentColor\"",   "stroke-width=\"1.00\"",
    "stroke-width=\"0.80\"",   "color=\"black\"",           "color=\"#FFFFFF\"",
    "stroke-linecap=\"butt\"", "stroke-linejoin=\"miter\"", "font-family=\"sans-serif\"",
    "class=\"gridline\"",      "font-size=\"11.00\"",
};

enum { PLUS = -1 };

/* gnuplot's marks, gpPt0 and so on, as corners of a path at size 1; none: a circle. */
static const struct mark {
    int corners;
    bool filled; /* else drawn with strokes, two of them through the middle where it is a plus */
    double at[5][2];
} marks[] = {
    [0] = {PLUS, false, {{0}}},
    [3] = {4, false, {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}}},
    [4] = {4, true, {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}}},
    [5] = {0, false, {{0}}},
    [6] = {0, true, {{0}}},
    [7] = {3, false, {{0, -1.33}, {-1.33, 0.67}, {1.33, 0.67}}},
    [8] = {3, true, {{0, -1.33}, {-1.33, 0.67}, {1.33, 0.67}}},
    [9] = {3, false, {{0, 1.33}, {-1.33, -0.67}, {1.33, -0.67}}},
    [10] = {3, true, {{0, 1.33}, {-1.33, -0.67}, {1.33, -0.67}}},
    [11] = {4, false, {{0, -1.414}, {1.414, 0}, {0, 1.414}, {-1.414, 0}}},
    [12] = {4, true, {{0, -1.414}, {1.414, 0}, {0, 1.414}, {-1.414, 0}}},
    [13] = {5,
            false,
            {{0, 1.33}, {1.265, 0.411}, {0.782, -1.067}, {-0.782, -1.076}, {-1.265, 0.411}}},
    [14] = {5,
            true,
            {{0, 1.33}, {1.265, 0.411}, {0.782, -1.067}, {-0.782, -1.076}, {-1.265, 0.411}}},
};

enum { MARKS = sizeof(marks) / sizeof(marks[0]), DEEPEST = 32 };

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

/* A value up to its quote, colours as the page's. */
static void write_value(FILE *out, const char *at, const char *end)
{
    while (at < end) {
        if (starts(at, "rgb(")) {
            at = write_color(out, at);
        } else if (starts(at, "#FFFFFF")) { /* what clears the paper around a mark */
            fputs("var(--paper)", out);
            at += strlen("#FFFFFF");
        } else {
            fputc(*at++, out);
        }
    }
}

static bool is_needless(const char *attribute)
{
    for (size_t i = 0; i < sizeof(needless) / sizeof(needless[0]); i++)
        if (starts(attribute, needless[i]))
            return true;
    return starts(attribute, "id=\"");
}

/* Writes the attributes of a tag that tell something, if there is an out, and returns how many. */
static size_t write_attributes(FILE *out, const char *at, const char *end)
{
    size_t kept = 0;
    for (;;) {
        at += strspn(at, " \n\t");
        const char *equals = strchr(at, '=');
        if (at >= end || !equals || equals >= end)
            return kept;
        const char *open = equals + 1 + strspn(equals + 1, " ");
        const char *close = strchr(open + 1, *open);
        if (!close || close > end)
            return kept;
        if (!is_needless(at)) {
            if (out) {
                fprintf(out, " %.*s=\"", (int)strcspn(at, " ="), at);
                write_value(out, open + 1, close);
                fputc('"', out);
            }
            kept++;
        }
        at = close + 1;
    }
}

/* A mark's place, scale and colour from a <use>; false where it is none of the known. */
static bool read_mark(const char *at, int *number, double place[3], const char **color)
{
    char *end;
    if (!starts(at, "<use xlink:href='#gpPt"))
        return false;
    *number = (int)strtol(at + strlen("<use xlink:href='#gpPt"), &end, 10);
    if (*number < 0 || *number == 1 || *number == 2 || *number >= MARKS ||
        !starts(end, "' transform='translate("))
        return false;
    place[0] = strtod(end + strlen("' transform='translate("), &end);
    place[1] = strtod(end + 1, &end);
    if (!starts(end, ") scale("))
        return false;
    place[2] = strtod(end + strlen(") scale("), &end);
    *color = strstr(end, "color='");
    return *color != NULL;
}

/* The marks of one kind and colour that follow one another, as one path. */
static const char *write_marks(FILE *out, const char *at)
{
    int first, number;
    double place[3];
    const char *color, *first_color;
    read_mark(at, &first, place, &first_color);
    first_color += strlen("color='");
    size_t length = strcspn(first_color, "'");
    fputs("<path d=\"", out);
    while (read_mark(at, &number, place, &color) && number == first &&
           strncmp(color + strlen("color='"), first_color, length + 1) == 0) {
        double x = place[0], y = place[1], s = place[2];
        const struct mark *mark = &marks[number];
        for (int i = 0; i < mark->corners; i++)
            fprintf(out, "%c%.1f %.1f", i ? 'L' : 'M', x + s * mark->at[i][0],
                    y + s * mark->at[i][1]);
        if (mark->corners == 0)
            fprintf(out, "M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0", x - s, y, s, s,
                    2 * s, s, s, -2 * s);
        if (mark->corners == PLUS)
            fprintf(out, "M%.1f %.1fh%.1fM%.1f %.1fv%.1f", x - s, y, 2 * s, x, y - s, 2 * s);
        else
            fputc('z', out);
        at = behind(at, "/>");
        at += strspn(at, " \n\t");
    }
    fputs(marks[first].filled ? "\" stroke=\"none\" fill=\"" : "\" stroke=\"", out);
    write_value(out, first_color, first_color + length);
    fputs("\"/>", out);
    return at;
}

/* What begins here and is left out: returns what follows it, or at itself. */
static const char *skip(const char *at)
{
    static const struct {
        const char *from, *to;
    } parts[] = {{"<title>", "</title>"},
                 {"<desc>", "</desc>"},
                 {"<defs>", "</defs>"},
                 {"<rect x=\"0\" y=\"0\"", "/>"},
                 {"<use xlink:href='#gpDot'", "/>"}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (starts(at, parts[i].from))
            return behind(at + strlen(parts[i].from), parts[i].to);
    if (starts(at, "<g ")) { /* a group of nothing */
        const char *content = behind(at, ">");
        content += strspn(content, " \n\t");
        if (starts(content, "</g>"))
            return content + strlen("</g>");
    }
    return at;
}

/* A group's beginning: nothing where it says nothing; a text where that is all it holds. *dropped:
 * its end is to be dropped too. */
static const char *write_group(FILE *out, const char *at, bool *dropped)
{
    const char *end = strchr(at, '>');
    const char *content = end + 1 + strspn(end + 1, " \n\t");
    const char *attributes = at + strlen("<g");
    const char *text = behind(content, "</text>");
    text += strspn(text, " \n\t");
    *dropped = true;
    if (starts(content, "<text>") && starts(text, "</g>")) {
        fputs("<text", out);
        write_attributes(out, attributes, end);
        fputc('>', out);
        return content + strlen("<text>");
    }
    *dropped = write_attributes(NULL, attributes, end) == 0;
    if (!*dropped) {
        fputs("<g", out);
        write_attributes(out, attributes, end);
        fputc('>', out);
    }
    return content;
}

/* Any other tag. */
static const char *write_tag(FILE *out, const char *at)
{
    const char *end = strchr(at, '>');
    if (!end)
        return at + strlen(at);
    size_t name = strcspn(at, " >\n\t");
    bool closed = end[-1] == '/';
    fwrite(at, 1, name, out);
    write_attributes(out, at + name, end - closed);
    fputs(closed ? "/>" : ">", out);
    return end + 1;
}

static void write_body(FILE *out, const char *at)
{
    bool dropped[DEEPEST] = {false};
    size_t depth = 0;
    int number;
    double place[3];
    const char *color;
    while (*at && !starts(at, "</svg>")) {
        const char *next = skip(at);
        if (next != at) {
            at = next;
        } else if (read_mark(at, &number, place, &color)) {
            at = write_marks(out, at);
        } else if (starts(at, "<g ") && depth < DEEPEST) {
            at = write_group(out, at, &dropped[depth++]);
        } else if (starts(at, "</g>") && depth > 0) {
            if (!dropped[--depth])
                fputs("</g>", out);
            at += strlen("</g>");
        } else if (*at == '<') {
            at = write_tag(out, at);
        } else if (*at == '\n' || *at == '\t') {
            at += strspn(at, "\n\t ");
        } else {
            fputc(*at++, out);
        }
    }
}

void lb_html_svg(FILE *out, const char *svg, const char *title)
{
    const char *box = strstr(svg, "viewBox=\"0 0 ");
    char *end = NULL;
    double width = box ? strtod(box + strlen("viewBox=\"0 0 "), &end) : 0;
    double height = end ? strtod(end, NULL) : 0;
    fprintf(out, "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" role=\"img\" aria-label=\"", width,
            height, width);
    lb_html_text(out, title);
    fputs("\">", out);
    write_body(out, box ? behind(box, ">") : "");
    fputs("</svg>\n", out);
}
