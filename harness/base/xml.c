/* Writing text into XML, and the counts of a JUnit test suite. */
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

void lb_junit_count(struct lb_junit_counts *counts, const char *element, size_t cases)
{
    counts->tests += cases;
    if (!element)
        return;
    counts->failures += strcmp(element, "failure") == 0 ? cases : 0;
    counts->errors += strcmp(element, "error") == 0 ? cases : 0;
    counts->skipped += strcmp(element, "skipped") == 0 ? cases : 0;
}

void lb_junit_attributes(const struct lb_junit_counts *counts, FILE *out)
{
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\"", counts->tests,
            counts->failures, counts->errors, counts->skipped);
}
