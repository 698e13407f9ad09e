/* The strip of a row's samples: how many there are at which distance from the median. */
#include <math.h>

#include "html/sections.h"

enum { BINS = 41, MIDDLE = BINS / 2, STRIP_HEIGHT = 16 };

void lb_html_strip(FILE *out, const struct lb_row *row)
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
                fprintf(
                    out, "M%d %dv-%.3g", 2 * b + 1, STRIP_HEIGHT + 1,
                    fmax(2, fmin(STRIP_HEIGHT, STRIP_HEIGHT * (double)counts[b] / (double)most)));
        fputs("\"/>", out);
    }
    fputs("</svg>", out);
}
