/* Writing text into XML, and JUnit documents. */
#include "base/xml.h"

#include <string.h>

void lb_xml_text(const char *text, FILE *out)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        switch (c) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\t': fputs("&#9;", out); break;
        case '\n': fputs("&#10;", out); break;
        default: fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
        }
    }
}

/* Writes an element with the text, unless that is empty. */
static void write_output(const char *text, FILE *out)
{
    if (!text[0])
        return;
    fputs("<system-out>", out);
    lb_xml_text(text, out);
    fputs("</system-out>", out);
}

static void write_case(const struct lb_junit_case *c, FILE *out)
{
    fputs("    <testcase classname=\"bench-lstm.", out);
    lb_xml_text(c->group, out);
    fputs("\" name=\"", out);
    lb_xml_text(c->name, out);
    fprintf(out, "\" time=\"%.9f\">", c->seconds);
    if (c->element) {
        fprintf(out, "<%s message=\"", c->element);
        lb_xml_text(c->message, out);
        fputs("\"/>", out);
    } else {
        write_output(c->message, out);
    }
    fputs("</testcase>\n", out);
}

void lb_junit_write(const char *suite, const char *to, size_t count,
                    void (*describe)(const void *user, size_t index, struct lb_junit_case *c),
                    const void *user, const char *output, FILE *out)
{
    static const char *const elements[] = {"failure", "error", "skipped"};
    static const char *const names[] = {"failures", "errors", "skipped"};
    size_t counts[3] = {0};
    double seconds = 0;
    for (size_t i = 0; i < count; i++) {
        struct lb_junit_case c = {.element = NULL};
        describe(user, i, &c);
        seconds += c.seconds;
        for (int e = 0; e < 3 && c.element; e++)
            counts[e] += strcmp(c.element, elements[e]) == 0;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"", out);
    lb_xml_text(suite, out);
    fputs(to ? " to " : "", out);
    lb_xml_text(to ? to : "", out);
    fprintf(out, "\" tests=\"%zu\"", count);
    for (int e = 0; e < 3; e++)
        fprintf(out, " %s=\"%zu\"", names[e], counts[e]);
    fprintf(out, " time=\"%.9f\">\n", seconds);
    for (size_t i = 0; i < count; i++) {
        struct lb_junit_case c = {.element = NULL};
        describe(user, i, &c);
        write_case(&c, out);
    }
    write_output(output, out);
    fputs("  </testsuite>\n</testsuites>\n", out);
}
