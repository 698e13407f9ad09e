/* Student's t distribution. */
#include "stats/student.h"

#include <math.h>

#define HALF_PI 1.57079632679489661923

double lb_student_p(double t, size_t df)
{
    double angle = atan2(fabs(t), sqrt((double)df)), cosine = cos(angle);
    double term = df % 2 == 1 ? cosine : 1, sum = 0;
    for (size_t i = df % 2 == 1 ? 3 : 2; i <= df; i += 2) {
        sum += term;
        term *= cosine * cosine * (double)(i - 1) / (double)i;
    }
    double inside = df % 2 == 1 ? (angle + sin(angle) * sum) / HALF_PI : sin(angle) * sum;
    return fmax(0, 1 - inside);
}

double lb_student_quantile(double p, size_t df)
{
    double low = 0, high = 1;
    while (lb_student_p(high, df) > p && high < 1e300)
        high *= 2;
    for (int i = 0; i < 200 && low < high; i++) {
        double middle = low + (high - low) / 2;
        *(lb_student_p(middle, df) > p ? &low : &high) = middle;
    }
    return high;
}
