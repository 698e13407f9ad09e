/* Numbers as people read them. */
#include "support/number_text.h"

#include <math.h>
#include <stdio.h>

void lb_format_ns(double ns, char text[32])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    if (!isfinite(ns)) {
        snprintf(text, 32, "-");
        return;
    }
    while (ns >= 999.5 && unit < 3) {
        ns /= 1000;
        unit++;
    }
    int digits = ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2;
    snprintf(text, 32, "%.*f %s", digits, ns, units[unit]);
}

void lb_format_ratio(double ratio, char text[32])
{
    int digits = ratio >= 99.95 ? 0 : ratio >= 9.995 ? 1 : ratio >= 0.0995 ? 2 : 3;
    if (isfinite(ratio))
        snprintf(text, 32, "%.*f", digits, ratio);
    else
        snprintf(text, 32, "–");
}
