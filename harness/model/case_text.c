/* Reading and printing the text form of a case. */
#include "model/case.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum lb_status lb_parse_int(const char *text, size_t length, int64_t min, int64_t *value,
                            struct lb_error *err)
{
    int64_t sum = 0;
    size_t i = 0;
    for (; i < length && isdigit((unsigned char)text[i]); i++)
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, text[i] - '0', &sum))
            return lb_fail(err, LB_INVALID, "%.*s: a number must be below 2^63", (int)length, text);
    if (i == 0 || i < length)
        return lb_fail(err, LB_INVALID, "'%.*s' is not a whole number of %" PRId64 " or more",
                       (int)length, text, min);
    if (sum < min)
        return lb_fail(err, LB_INVALID, "%" PRId64 ": must be %" PRId64 " or more", sum, min);
    *value = sum;
    return LB_OK;
}

/* The words that may follow the sizes in a case text, and what each of them sets. */
static const struct word {
    const char *text;
    enum lb_given field;
    int value;
} words[] = {
    {"f64", LB_GIVEN_DTYPE, LB_F64},
    {"f32", LB_GIVEN_DTYPE, LB_F32},
    {"f16", LB_GIVEN_DTYPE, LB_F16},
    {"bf16", LB_GIVEN_DTYPE, LB_BF16},
    {"int8", LB_GIVEN_DTYPE, LB_INT8},
    {"infer", LB_GIVEN_PASS, LB_INFER},
    {"forward", LB_GIVEN_PASS, LB_FORWARD},
    {"backward", LB_GIVEN_PASS, LB_BACKWARD},
    {"train", LB_GIVEN_PASS, LB_TRAIN},
    {"ieee", LB_GIVEN_MATH, LB_IEEE},
    {"tf32", LB_GIVEN_MATH, LB_TF32},
    {"half", LB_GIVEN_MATH, LB_HALF},
    {"ragged", LB_GIVEN_RAGGED, 1},
    {"full", LB_GIVEN_RAGGED, 0},
    {"act-tanh", LB_GIVEN_ACT, LB_ACT_TANH},
    {"act-relu", LB_GIVEN_ACT, LB_ACT_RELU},
    {"cell-standard", LB_GIVEN_CELL, LB_CELL_STANDARD},
    {"cell-layernorm", LB_GIVEN_CELL, LB_CELL_LAYERNORM},
    {"cell-recurrent-dropout", LB_GIVEN_CELL, LB_CELL_RECURRENT_DROPOUT},
    {"cell-peephole", LB_GIVEN_CELL, LB_CELL_PEEPHOLE},
    {"cell-residual", LB_GIVEN_CELL, LB_CELL_RESIDUAL},
    {"graph", LB_GIVEN_LAUNCH, LB_GRAPH},
    {"hot", LB_GIVEN_CACHE, LB_HOT},
    {"cold", LB_GIVEN_CACHE, LB_COLD},
    {"isolated", LB_GIVEN_TIMING, LB_ISOLATED},
    {"batched", LB_GIVEN_TIMING, LB_BATCHED},
    {"stream", LB_GIVEN_TIMING, LB_STREAMING},
};

static void apply_word(struct lb_case *c, enum lb_given field, int value)
{
    switch (field) {
    case LB_GIVEN_DTYPE: c->problem.dtype = (enum lb_dtype)value; break;
    case LB_GIVEN_PASS: c->problem.pass = (enum lb_pass)value; break;
    case LB_GIVEN_MATH: c->problem.math = (enum lb_math)value; break;
    case LB_GIVEN_RAGGED: c->problem.ragged = value != 0; break;
    case LB_GIVEN_ACT: c->problem.act = (enum lb_act)value; break;
    case LB_GIVEN_CELL: c->problem.cell = (uint8_t)value; break;
    case LB_GIVEN_LAUNCH: c->launch = (enum lb_launch)value; break;
    case LB_GIVEN_CACHE: c->cache = (enum lb_cache)value; break;
    default: c->timing = (enum lb_timing)value; break;
    }
}

/* A part of the text that is being read: length characters from at on. */
struct part {
    const char *at;
    size_t length;
};

static struct part next_part(const char **cursor, char separator)
{
    struct part part = {*cursor, strcspn(*cursor, (char[]){separator, '\0'})};
    *cursor = part.at + part.length;
    return part;
}

static bool is_name(struct part part)
{
    if (part.length == 0 || part.length >= LB_NAME_SIZE)
        return false;
    for (size_t i = 0; i < part.length; i++) {
        char ch = part.at[i];
        if (!(ch >= 'a' && ch <= 'z') && !(ch >= '0' && ch <= '9') && ch != '_')
            return false;
    }
    return true;
}

static void copy_name(char name[LB_NAME_SIZE], struct part part)
{
    memcpy(name, part.at, part.length);
    name[part.length] = '\0';
}

/* Reads impl[:variant]. *mistake follows the text, so that after a failure it is where the mistake
 * is; so in the other readers. */
static enum lb_status parse_impl(struct part part, struct lb_case *c, unsigned *given,
                                 const char **mistake, struct lb_error *err)
{
    const char *colon = memchr(part.at, ':', part.length);
    struct part name = {part.at, colon ? (size_t)(colon - part.at) : part.length};
    *mistake = part.at;
    if (!is_name(name))
        return lb_fail(err, LB_INVALID,
                       "'%.*s' is neither an implementation's name (a-z, 0-9, _) nor sizes such as "
                       "T25_B16_I512_H512",
                       (int)part.length, part.at);
    copy_name(c->impl, name);
    *given |= LB_GIVEN_IMPL;
    if (!colon)
        return LB_OK;
    struct part variant = {colon + 1, part.length - name.length - 1};
    *mistake = colon + 1;
    if (!is_name(variant))
        return lb_fail(err, LB_INVALID, "'%.*s' is not a variant's name (a-z, 0-9, _)",
                       (int)variant.length, variant.at);
    *given |= LB_GIVEN_VARIANT;
    if (variant.length != 4 || memcmp(variant.at, "auto", 4) != 0)
        copy_name(c->variant, variant);
    return LB_OK;
}

/* Reads the number after a size's letter. */
static enum lb_status parse_size(char letter, const char *text, size_t length, int64_t *size,
                                 const char **mistake, struct lb_error *err)
{
    *mistake = text;
    enum lb_status st = lb_parse_int(text, length, 1, size, err);
    if (st == LB_OK && letter == 'D' && *size > 2)
        st = lb_fail(err, LB_INVALID, "%" PRId64 ": directions must be 1 or 2", *size);
    if (st == LB_OK && letter == 'P' && *size > INT32_MAX)
        st = lb_fail(err, LB_INVALID, "%" PRId64 ": P must be below 2^31", *size);
    return st;
}

/* Reads T_B_I_H[_P][_L][_D], in any order. */
static enum lb_status parse_sizes(struct part part, struct lb_problem *p, unsigned *given,
                                  const char **mistake, struct lb_error *err)
{
    static const char letters[] = "TBIHPLD";
    static const unsigned bits[] = {
        0, 0, LB_GIVEN_INPUT, 0, LB_GIVEN_CELL, LB_GIVEN_LAYERS, LB_GIVEN_DIRECTIONS};
    int64_t projection = 0;
    int64_t *const fields[] = {&p->seq_len, &p->batch,  &p->input,     &p->hidden,
                               &projection, &p->layers, &p->directions};
    const char *end = part.at + part.length;

    for (const char *at = part.at;; at++) {
        size_t length = (size_t)(end - at);
        const char *stop = memchr(at, '_', length);
        if (stop)
            length = (size_t)(stop - at);
        const char *letter = length ? memchr(letters, *at, sizeof(letters) - 1) : NULL;
        *mistake = at;
        if (!letter)
            return lb_fail(err, LB_INVALID,
                           "'%.*s': a size is T, B, I, H, P, L or D and a number, as in "
                           "T25_B16_H512",
                           (int)length, at);
        size_t k = (size_t)(letter - letters);
        bool seen = bits[k] ? (*given & bits[k]) != 0 : *fields[k] != 0;
        if (seen)
            return lb_fail(err, LB_INVALID, "%c is given twice", *letter);
        enum lb_status st = parse_size(*letter, at + 1, length - 1, fields[k], mistake, err);
        if (st != LB_OK)
            return st;
        *given |= bits[k];
        at += length;
        if (at == end)
            break;
    }
    *mistake = part.at;
    if (!p->seq_len || !p->batch || !p->hidden)
        return lb_fail(err, LB_INVALID, "T, B and H must be given, as in T25_B16_H512");
    if (!(*given & LB_GIVEN_INPUT))
        p->input = p->hidden;
    p->projection = (int32_t)projection;
    p->cell = projection ? LB_CELL_PROJECTION : LB_CELL_STANDARD;
    return LB_OK;
}

/* The words that end with a number: thN, rateN and xN. */
static const struct numbered_word {
    const char *text, *what;
    enum lb_given field;
    int most;
    size_t offset; /* in a case, of an int */
} numbered_words[] = {
    {"th", "threads", LB_GIVEN_THREADS, LB_MAX_THREADS, offsetof(struct lb_case, threads)},
    {"rate", "calls per second", LB_GIVEN_RATE, LB_MAX_RATE, offsetof(struct lb_case, rate)},
    {"x", "instances", LB_GIVEN_INSTANCES, LB_MAX_THREADS, offsetof(struct lb_case, instances)},
};

/* Reads such a word. *bit becomes its field, and stays as it is for any other word. */
static enum lb_status parse_numbered(struct part part, struct lb_case *c, unsigned *bit,
                                     struct lb_error *err)
{
    for (size_t i = 0; i < sizeof(numbered_words) / sizeof(numbered_words[0]); i++) {
        const struct numbered_word *word = &numbered_words[i];
        size_t length = strlen(word->text);
        int64_t number = 0;
        if (part.length <= length || memcmp(part.at, word->text, length) != 0 ||
            !isdigit((unsigned char)part.at[length]))
            continue;
        enum lb_status st = lb_parse_int(part.at + length, part.length - length, 0, &number, err);
        if (st != LB_OK)
            return st;
        if (number < 1 || number > word->most)
            return lb_fail(err, LB_INVALID, "%s%" PRId64 ": %s must be 1 to %d", word->text, number,
                           word->what, word->most);
        *(int *)(void *)((char *)c + word->offset) = (int)number;
        *bit = word->field;
    }
    return LB_OK;
}

static enum lb_status parse_word(struct part part, struct lb_case *c, unsigned *given,
                                 struct lb_error *err)
{
    unsigned bit = 0;
    LB_CHECK(parse_numbered(part, c, &bit, err));
    for (size_t i = 0; !bit && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].text) == part.length &&
            memcmp(words[i].text, part.at, part.length) == 0) {
            apply_word(c, words[i].field, words[i].value);
            bit = words[i].field;
        }
    }
    if (!bit)
        return lb_fail(
            err, LB_INVALID,
            "'%.*s': allowed are a dtype (f64 f32 f16 bf16 int8), a pass (infer forward "
            "backward train), tf32, half, ragged, act-relu, cell-NAME (layernorm peephole "
            "recurrent-dropout residual; projection is a size, as in H512_P128), graph, "
            "cold, batched, stream, rateN, xN, thN",
            (int)part.length, part.at);
    if (*given & bit)
        return lb_fail(err, LB_INVALID, "'%.*s': its field is given twice", (int)part.length,
                       part.at);
    *given |= bit;
    return LB_OK;
}

/* True when the part holds sizes rather than a name: names have no capital letters. */
static bool looks_like_sizes(struct part part)
{
    return part.length > 0 && isupper((unsigned char)part.at[0]);
}

enum lb_status lb_case_parse(const char *text, struct lb_case *out, unsigned *given, int *column,
                             struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_case c = lb_case_defaults();
    unsigned seen = 0;
    const char *cursor = text, *mistake = text;

    struct part part = next_part(&cursor, '/');
    if (!looks_like_sizes(part)) {
        LB_TRY(parse_impl(part, &c, &seen, &mistake, err));
        if (*cursor == '/')
            cursor++;
        part = next_part(&cursor, '/');
        if (!looks_like_sizes(part)) {
            mistake = part.at;
            LB_TRY(lb_fail(err, LB_INVALID,
                           "sizes such as T25_B16_I512_H512 must follow the implementation"));
        }
    }
    LB_TRY(parse_sizes(part, &c.problem, &seen, &mistake, err));
    while (*cursor == '/') {
        cursor++;
        part = next_part(&cursor, '/');
        mistake = part.at;
        LB_TRY(parse_word(part, &c, &seen, err));
    }
    mistake = text;
    LB_TRY(lb_case_check(&c, err));
    *out = c;
    if (given)
        *given = seen;
done:
    if (st != LB_OK && column)
        *column = (int)(mistake - text) + 1;
    return st;
}

static void add_problem(char text[LB_CASE_ID_SIZE], const struct lb_case *c)
{
    const struct lb_problem *p = &c->problem;
    lb_append(text, LB_CASE_ID_SIZE, "T%" PRId64 "_B%" PRId64 "_I%" PRId64 "_H%" PRId64, p->seq_len,
              p->batch, p->input, p->hidden);
    if (p->projection != 0)
        lb_append(text, LB_CASE_ID_SIZE, "_P%d", p->projection);
    if (p->layers != 1)
        lb_append(text, LB_CASE_ID_SIZE, "_L%" PRId64, p->layers);
    if (p->directions != 1)
        lb_append(text, LB_CASE_ID_SIZE, "_D%" PRId64, p->directions);
    lb_append(text, LB_CASE_ID_SIZE, "/%s/%s", lb_dtype_name(p->dtype), lb_pass_name(p->pass));
    if (p->math != LB_IEEE)
        lb_append(text, LB_CASE_ID_SIZE, "/%s", lb_math_name(p->math));
    if (p->ragged)
        lb_append(text, LB_CASE_ID_SIZE, "/ragged");
    if (p->act != LB_ACT_TANH)
        lb_append(text, LB_CASE_ID_SIZE, "/act-%s", lb_act_name(p->act));
    if (p->cell != LB_CELL_STANDARD && p->cell != LB_CELL_PROJECTION)
        lb_append(text, LB_CASE_ID_SIZE, "/cell-%s", lb_cell_name((enum lb_cell_kind)p->cell));
    if (c->launch != LB_STREAM)
        lb_append(text, LB_CASE_ID_SIZE, "/%s", lb_launch_name(c->launch));
    if (c->cache != LB_HOT)
        lb_append(text, LB_CASE_ID_SIZE, "/%s", lb_cache_name(c->cache));
    if (c->timing != LB_ISOLATED)
        lb_append(text, LB_CASE_ID_SIZE, "/%s", lb_timing_name(c->timing));
    if (c->rate != 0)
        lb_append(text, LB_CASE_ID_SIZE, "/rate%d", c->rate);
    if (c->instances != 1)
        lb_append(text, LB_CASE_ID_SIZE, "/x%d", c->instances);
    if (c->threads != 1)
        lb_append(text, LB_CASE_ID_SIZE, "/th%d", c->threads);
}

size_t lb_case_print_problem(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
{
    text[0] = '\0';
    add_problem(text, c);
    return strlen(text);
}

size_t lb_case_print(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
{
    text[0] = '\0';
    if (c->impl[0])
        lb_append(text, LB_CASE_ID_SIZE, "%s%s%s/", c->impl, c->variant[0] ? ":" : "", c->variant);
    add_problem(text, c);
    return strlen(text);
}
