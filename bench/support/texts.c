/* Texts of cases, rows and numbers for people. */
#include "support/texts.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"

const char *lb_case_text(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
{
    lb_case_print(c, text);
    return text;
}

const char *lb_problem_text(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
{
    lb_case_print_problem(c, text);
    return text;
}

const char *lb_row_id(const struct lb_row *row, char id[LB_ROW_ID_SIZE])
{
    lb_row_print_id(row, id);
    return id;
}

const char *lb_impl_label(const struct lb_case *c, char label[2 * LB_NAME_SIZE])
{
    snprintf(label, 2 * LB_NAME_SIZE, "%s%s%s", c->impl, c->variant[0] ? ":" : "", c->variant);
    return label;
}

const char *lb_ns_text(double ns, char text[32])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    if (!isfinite(ns))
        return "-";
    while (ns >= 999.5 && unit < 3) {
        ns /= 1000;
        unit++;
    }
    int digits = ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2;
    snprintf(text, 32, "%.*f %s", digits, ns, units[unit]);
    return text;
}

const char *lb_bytes_text(double bytes, char text[32])
{
    lb_format_bytes(bytes, text);
    return text;
}
