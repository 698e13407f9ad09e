/* Filling a template: text in which {{name}} stands for a part that a function writes. */
#ifndef LB_HTML_TEMPLATE_H
#define LB_HTML_TEMPLATE_H

#include <stddef.h>
#include <stdio.h>

#include "api/status.h"

struct lb_html_part {
    const char *name;
    enum lb_status (*write)(FILE *out, const void *user, struct lb_error *err);
};

/* Writes the pattern, a template, with each {{name}} replaced by what that part writes. What a part
 * writes is not searched for names. LB_INVALID: the template names a part that is not among
 * parts [count]; else the first failure of a part. */
enum lb_status lb_html_fill(FILE *out, const char *pattern, const struct lb_html_part *parts,
                            size_t count, const void *user, struct lb_error *err);

#endif
