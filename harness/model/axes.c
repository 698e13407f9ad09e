/* Axes: lists of numbers or words that a command line gives. */
#include "model/axes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/suggest.h"

void lb_axis_free(struct lb_axis *axis)
{
    free(axis->values);
    *axis = (struct lb_axis){0};
}

/* The text that is being read, and the position in it. */
struct reader {
    const char *text, *at;
    const struct lb_axis_info *info;
    struct lb_axis *axis;
    struct lb_error *err;
};

/* Fails with "FLAG TEXT: message", and with the column unless that is the first. */
__attribute__((format(printf, 2, 3))) static enum lb_status refuse(const struct reader *r,
                                                                   const char *format, ...)
{
    char message[256], column[40] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (r->at > r->text)
        snprintf(column, sizeof(column), "column %td: ", r->at - r->text + 1);
    return lb_fail(r->err, LB_INVALID, "%s %.80s%s: %s%s", r->info->flag, *r->text ? r->text : "''",
                   strlen(r->text) > 80 ? "..." : "", column, message);
}

static enum lb_status append(const struct reader *r, int64_t value)
{
    struct lb_axis *axis = r->axis;
    if (axis->count == LB_AXIS_MAX_VALUES)
        return refuse(r, "more than %d values", LB_AXIS_MAX_VALUES);
    axis->values = lb_room(axis->values, axis->count, sizeof(*axis->values));
    axis->values[axis->count++] = value;
    return LB_OK;
}

/* Reads a number that ends at a comma, a colon or the end of the text. */
static enum lb_status read_number(struct reader *r, const char *what, int64_t min, int64_t max,
                                  int64_t *value)
{
    size_t length = strcspn(r->at, ",:"), digits = strspn(r->at, "0123456789");
    char limits[64];
    lb_describe_limits(limits, min, max);
    if (length == 0)
        return refuse(r, "a number is missing: %s must be %s", what, limits);
    if (digits != length)
        return refuse(r, "'%.*s' is not a whole number: %s must be %s",
                      (int)(length < 40 ? length : 40), r->at, what, limits);
    if (lb_parse_int(r->at, length, 0, value, NULL) != LB_OK)
        return refuse(r, "%s must be below 2^63", what);
    if (*value < min || *value > max)
        return refuse(r, "%s must be %s", what, limits);
    r->at += length;
    return LB_OK;
}

/* Adds first, and what adding step ('+') or multiplying by it ('x') makes of it, up to last. */
static enum lb_status add_range(const struct reader *r, int64_t first, int64_t last, char kind,
                                int64_t step)
{
    bool overflow = false;
    for (int64_t value = first; !overflow && value <= last;
         overflow = kind == '+' ? __builtin_add_overflow(value, step, &value)
                                : __builtin_mul_overflow(value, step, &value))
        LB_CHECK(append(r, value));
    return LB_OK;
}

/* 64 | 64:512:+64 | 64:1024:x2 */
static enum lb_status add_number(struct reader *r)
{
    const struct lb_axis_info *info = r->info;
    struct reader start = *r; /* messages about a whole range give the column of its beginning */
    int64_t first = 0, last = 0, step = 1;
    LB_CHECK(read_number(r, info->what, 1, info->max, &first));
    if (*r->at != ':')
        return append(r, first);
    r->at++;
    LB_CHECK(read_number(r, info->what, 1, info->max, &last));
    if (first > last)
        return refuse(&start, "empty range: %" PRId64 " is above %" PRId64, first, last);
    const char *step_at = r->at;
    char kind = *step_at == ':' ? step_at[1] : '\0';
    if (kind != '+' && kind != 'x')
        return refuse(r,
                      "a range needs a step: %" PRId64 ":%" PRId64 ":+64 adds, "
                      "%" PRId64 ":%" PRId64 ":x2 multiplies",
                      first, last, first, last);
    r->at += 2;
    LB_CHECK(kind == '+' ? read_number(r, "step", 1, INT64_MAX, &step)
                         : read_number(r, "factor", 2, INT64_MAX, &step));
    if (*r->at == ':')
        return refuse(r, "':' after a range: write 64:512:+64 or 64:1024:x2, commas between");
    return add_range(&start, first, last, kind, step);
}

static enum lb_status add_word(struct reader *r)
{
    size_t length = strcspn(r->at, ",");
    char word[64];
    struct lb_hint hint = {0};
    snprintf(word, sizeof(word), "%.*s", (int)(length < 63 ? length : 63), r->at);
    for (size_t i = 0; r->info->words[i]; i++) {
        if (strcmp(r->info->words[i], word) == 0) {
            r->at += length;
            return append(r, (int64_t)i);
        }
        lb_hint_add(&hint, word, r->info->words[i]);
    }
    return refuse(r, "there is no '%s'; %s", word, hint.text);
}

enum lb_status lb_axis_add(struct lb_axis *axis, const struct lb_axis_info *info, const char *text,
                           struct lb_error *err)
{
    struct reader r = {text, text, info, axis, err};
    size_t count = axis->count;
    enum lb_status st;
    do
        st = info->words ? add_word(&r) : add_number(&r);
    while (st == LB_OK && *r.at++ == ',');
    if (st != LB_OK)
        axis->count = count;
    return st;
}
