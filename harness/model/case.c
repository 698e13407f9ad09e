/* Cases: their fields, defaults, rules and equality, and their text form. */
#include "model/case.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ---- Fields. -------------------------------------------------------------------------------- */

static const char *const dtypes[] = {"f64", "f32", "f16", "bf16", "int8", NULL};
static const char *const passes[] = {"infer", "forward", "backward", "train", NULL};
static const char *const maths[] = {"ieee", "tf32", "half", NULL};
static const char *const raggeds[] = {"full", "ragged", NULL};
static const char *const acts[] = {"tanh", "relu", NULL};
static const char *const cells[] = {
    "standard", "layernorm", "recurrent-dropout", "projection", "peephole", "residual", NULL};
static const char *const launches[] = {"stream", "graph", NULL};
static const char *const caches[] = {"hot", "cold", NULL};
static const char *const timings[] = {"isolated", "batched", "stream", NULL};

/* Where an axis has its field in a case: offset and size in bytes. */
#define FIELD(name) \
    .offset = offsetof(struct lb_case, name), .size = sizeof(((struct lb_case *)0)->name)

const struct lb_axis_info lb_axis_table[LB_AXIS_COUNT] = {
    [LB_AXIS_SEQ_LEN] = {"-T", "sequence length", "T", NULL, INT64_MAX, FIELD(problem.seq_len)},
    [LB_AXIS_INPUT] = {"-I", "input", "I", NULL, INT64_MAX, FIELD(problem.input)},
    [LB_AXIS_HIDDEN] = {"-H", "hidden", "H", NULL, INT64_MAX, FIELD(problem.hidden)},
    [LB_AXIS_LAYERS] = {"-L", "layers", "L", NULL, INT64_MAX, FIELD(problem.layers)},
    [LB_AXIS_DIRECTIONS] = {"-D", "directions", "D", NULL, 2, FIELD(problem.directions)},
    [LB_AXIS_BATCH] = {"-B", "batch", "B", NULL, INT64_MAX, FIELD(problem.batch)},
    [LB_AXIS_DTYPE] = {"--dtype", "dtype", "", dtypes, 0, FIELD(problem.dtype)},
    [LB_AXIS_PASS] = {"--pass", "pass", "", passes, 0, FIELD(problem.pass)},
    [LB_AXIS_MATH] = {"--math", "math", "", maths, 0, FIELD(problem.math)},
    [LB_AXIS_RAGGED] = {"--ragged", "ragged", "", raggeds, 0, FIELD(problem.ragged)},
    [LB_AXIS_ACT] = {"--act", "act", "act-", acts, 0, FIELD(problem.act)},
    [LB_AXIS_CELL] = {"--cell", "cell", "cell-", cells, 0, FIELD(problem.cell)},
    [LB_AXIS_PROJECTION] = {"-P", "projection", "P", NULL, INT32_MAX, FIELD(problem.projection)},
    [LB_AXIS_LAUNCH] = {"--launch", "launch", "", launches, 0, FIELD(launch)},
    [LB_AXIS_CACHE] = {"--cache", "cache", "", caches, 0, FIELD(cache)},
    [LB_AXIS_TIMING] = {"--timing", "timing", "", timings, 0, FIELD(timing)},
    [LB_AXIS_THREADS] = {"--threads", "threads", "th", NULL, LB_MAX_THREADS, FIELD(threads)},
    [LB_AXIS_RATE] = {"--rate", "calls per second", "rate", NULL, LB_MAX_RATE, FIELD(rate)},
    [LB_AXIS_INSTANCES] = {"--instances", "instances", "x", NULL, LB_MAX_THREADS, FIELD(instances)},
};

/* The axes in the order of a case text: sizes, what else makes the problem, and how it is run. */
enum { ALWAYS_PRINTED = 4, SIZES = 7, PROBLEM_FIELDS = 13 };
static const enum lb_axis_id text_order[LB_AXIS_COUNT] = {
    LB_AXIS_SEQ_LEN, LB_AXIS_BATCH,      LB_AXIS_INPUT,     LB_AXIS_HIDDEN, LB_AXIS_PROJECTION,
    LB_AXIS_LAYERS,  LB_AXIS_DIRECTIONS, LB_AXIS_DTYPE,     LB_AXIS_PASS,   LB_AXIS_MATH,
    LB_AXIS_RAGGED,  LB_AXIS_ACT,        LB_AXIS_CELL,      LB_AXIS_LAUNCH, LB_AXIS_CACHE,
    LB_AXIS_TIMING,  LB_AXIS_RATE,       LB_AXIS_INSTANCES, LB_AXIS_THREADS};

/* Machines are little-endian, and no field is negative, so fields of 1, 4 and 8 bytes are alike. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a number begins with its low bytes");

void lb_axis_set(struct lb_case *c, enum lb_axis_id axis, int64_t value)
{
    memcpy((char *)c + lb_axis_table[axis].offset, &value, lb_axis_table[axis].size);
}

int64_t lb_axis_get(const struct lb_case *c, enum lb_axis_id axis)
{
    int64_t value = 0;
    memcpy(&value, (const char *)c + lb_axis_table[axis].offset, lb_axis_table[axis].size);
    return value;
}

const char *lb_axis_word(const struct lb_case *c, enum lb_axis_id axis)
{
    return lb_axis_table[axis].words[lb_axis_get(c, axis)];
}

struct lb_case lb_case_defaults(void)
{
    return (struct lb_case){
        .problem = {.layers = 1, .directions = 1, .dtype = LB_F32, .pass = LB_INFER},
        .threads = 1,
        .instances = 1,
    };
}

/* The rules of cells other than the standard one. */
static enum lb_status check_cell(const struct lb_problem *p, struct lb_error *err)
{
    const char *name = lb_cell_name((enum lb_cell_kind)p->cell);
    if (p->cell == LB_CELL_PROJECTION && (p->projection < 1 || p->projection >= p->hidden))
        return lb_fail(err, LB_INVALID,
                       "cell projection: P must be from 1 to H - 1, and is %d for H%" PRId64,
                       p->projection, p->hidden);
    if (p->cell == LB_CELL_RESIDUAL && p->layers < 2)
        return lb_fail(err, LB_INVALID,
                       "cell residual adds a layer's input to the output of every "
                       "layer but the first: it needs L2 or more");
    if (p->cell != LB_CELL_STANDARD && p->act != LB_ACT_TANH)
        return lb_fail(err, LB_INVALID, "cell %s goes with act tanh, not %s", name,
                       lb_act_name(p->act));
    return LB_OK;
}

enum lb_status lb_case_check(const struct lb_case *c, struct lb_error *err)
{
    const struct lb_problem *p = &c->problem;
    if (p->math != LB_IEEE && p->dtype != LB_F32)
        return lb_fail(err, LB_INVALID, "math %s goes with dtype f32, not %s",
                       lb_math_name(p->math), lb_dtype_name(p->dtype));
    LB_CHECK(check_cell(p, err));
    if (c->timing == LB_BATCHED && c->cache == LB_COLD)
        return lb_fail(err, LB_INVALID,
                       "batched timing keeps caches hot: it does not go with cold");
    if (c->timing == LB_BATCHED && p->pass == LB_BACKWARD)
        return lb_fail(
            err, LB_INVALID,
            "backward needs a fresh forward before each call: it is timed isolated only");
    if (c->timing == LB_STREAMING && (p->pass != LB_INFER || p->directions != 1 || p->ragged))
        return lb_fail(err, LB_INVALID,
                       "timing stream carries the state from call to call: it goes with pass "
                       "infer, one direction and full lengths");
    if (c->rate != 0 && c->timing != LB_STREAMING)
        return lb_fail(err, LB_INVALID, "a rate goes with timing stream, not %s",
                       lb_axis_word(c, LB_AXIS_TIMING));
    if (c->instances > 1 && (c->timing != LB_STREAMING || c->cache == LB_COLD))
        return lb_fail(err, LB_INVALID,
                       "several instances go with timing stream and hot caches, not %s and %s",
                       lb_axis_word(c, LB_AXIS_TIMING), lb_axis_word(c, LB_AXIS_CACHE));
    return LB_OK;
}

/* Whether the first fields in the order of a case text are the same. */
static bool same_fields(const struct lb_case *a, const struct lb_case *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (lb_axis_get(a, text_order[i]) != lb_axis_get(b, text_order[i]))
            return false;
    return true;
}

bool lb_case_same_problem(const struct lb_case *a, const struct lb_case *b)
{
    return same_fields(a, b, PROBLEM_FIELDS);
}

bool lb_case_same(const struct lb_case *a, const struct lb_case *b)
{
    return same_fields(a, b, LB_AXIS_COUNT) && strcmp(a->impl, b->impl) == 0 &&
           strcmp(a->variant, b->variant) == 0;
}

/* ---- Reading. ------------------------------------------------------------------------------- */

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

const char *lb_describe_limits(char text[64], int64_t min, int64_t max)
{
    if (max == INT64_MAX)
        snprintf(text, 64, "%" PRId64 " or more", min);
    else
        snprintf(text, 64, "%" PRId64 " %s %" PRId64, min, max == min + 1 ? "or" : "to", max);
    return text;
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

bool lb_is_name(const char *text, size_t length)
{
    return length > 0 && length < LB_NAME_SIZE &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") >= length;
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
    if (!lb_is_name(name.at, name.length))
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
    if (!lb_is_name(variant.at, variant.length))
        return lb_fail(err, LB_INVALID, "'%.*s' is not a variant's name (a-z, 0-9, _)",
                       (int)variant.length, variant.at);
    *given |= LB_GIVEN_VARIANT;
    if (variant.length != 4 || memcmp(variant.at, "auto", 4) != 0)
        copy_name(c->variant, variant);
    return LB_OK;
}

/* Notes that the text gives the field of an axis. False where it did before. */
static bool give(enum lb_axis_id axis, unsigned *given)
{
    unsigned cell = LB_GIVEN(CELL) | LB_GIVEN(PROJECTION), bits = 1u << axis;
    if (bits & cell)
        bits = cell;
    bool first = !(*given & bits);
    *given |= bits;
    return first;
}

/* Reads the number behind an axis's letter or word. */
static enum lb_status parse_number(enum lb_axis_id axis, const char *text, size_t length,
                                   int64_t min, struct lb_case *c, struct lb_error *err)
{
    const struct lb_axis_info *info = &lb_axis_table[axis];
    int64_t number;
    char limits[64];
    LB_CHECK(lb_parse_int(text, length, min, &number, err));
    if (number < 1 || number > info->max)
        return lb_fail(err, LB_INVALID, "%s%" PRId64 ": %s must be %s", info->text, number,
                       info->what, lb_describe_limits(limits, 1, info->max));
    lb_axis_set(c, axis, number);
    return LB_OK;
}

/* Reads T_B_I_H[_P][_L][_D], in any order. */
static enum lb_status parse_sizes(struct part part, struct lb_case *c, unsigned *given,
                                  const char **mistake, struct lb_error *err)
{
    const unsigned needed = LB_GIVEN(SEQ_LEN) | LB_GIVEN(BATCH) | LB_GIVEN(HIDDEN);
    const char *at = part.at;
    do {
        size_t length = strcspn(at, "_/"), i = 0;
        *mistake = at;
        while (i < SIZES && *lb_axis_table[text_order[i]].text != *at)
            i++;
        if (i == SIZES)
            return lb_fail(err, LB_INVALID,
                           "'%.*s': a size is T, B, I, H, P, L or D and a number, as in "
                           "T25_B16_H512",
                           (int)length, at);
        if (!give(text_order[i], given))
            return lb_fail(err, LB_INVALID, "%c is given twice", *at);
        *mistake = at + 1;
        LB_CHECK(parse_number(text_order[i], at + 1, length - 1, 1, c, err));
        at += length;
    } while (*at++ == '_');
    *mistake = part.at;
    if ((*given & needed) != needed)
        return lb_fail(err, LB_INVALID, "T, B and H must be given, as in T25_B16_H512");
    if (!(*given & LB_GIVEN(INPUT)))
        c->problem.input = c->problem.hidden;
    c->problem.cell = c->problem.projection ? LB_CELL_PROJECTION : LB_CELL_STANDARD;
    return LB_OK;
}

/* Whether a text has a word for the value: "stream" is the timing, not the launch, and a size P
 * makes the cell projection. */
static bool has_word(enum lb_axis_id axis, int64_t value)
{
    return !(axis == LB_AXIS_LAUNCH && value == LB_STREAM) &&
           !(axis == LB_AXIS_CELL && value == LB_CELL_PROJECTION);
}

/* Reads the value of an axis, if the part is one: a word, or a word that ends with a number. */
static enum lb_status parse_value(enum lb_axis_id axis, struct part part, struct lb_case *c,
                                  bool *is_value, struct lb_error *err)
{
    const struct lb_axis_info *info = &lb_axis_table[axis];
    size_t before = strlen(info->text);
    *is_value = false;
    if (part.length <= before || memcmp(part.at, info->text, before) != 0)
        return LB_OK;
    const char *at = part.at + before;
    size_t length = part.length - before;
    for (int value = 0; info->words && info->words[value]; value++)
        if (has_word(axis, value) && strlen(info->words[value]) == length &&
            memcmp(info->words[value], at, length) == 0) {
            lb_axis_set(c, axis, value);
            *is_value = true;
        }
    if (info->words || !isdigit((unsigned char)*at))
        return LB_OK;
    *is_value = true;
    return parse_number(axis, at, length, 0, c, err);
}

/* Reads a word that follows the sizes. */
static enum lb_status parse_word(struct part part, struct lb_case *c, unsigned *given,
                                 struct lb_error *err)
{
    for (size_t i = SIZES; i < LB_AXIS_COUNT; i++) {
        bool is_value;
        LB_CHECK(parse_value(text_order[i], part, c, &is_value, err));
        if (!is_value)
            continue;
        return give(text_order[i], given)
                   ? LB_OK
                   : lb_fail(err, LB_INVALID, "'%.*s': its field is given twice", (int)part.length,
                             part.at);
    }
    return lb_fail(err, LB_INVALID,
                   "'%.*s': allowed are a dtype (f64 f32 f16 bf16 int8), a pass (infer forward "
                   "backward train), tf32, half, ragged, act-relu, cell-NAME (layernorm peephole "
                   "recurrent-dropout residual; projection is a size, as in H512_P128), graph, "
                   "cold, batched, stream, rateN, xN, thN",
                   (int)part.length, part.at);
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
    LB_TRY(parse_sizes(part, &c, &seen, &mistake, err));
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

/* ---- Printing. ------------------------------------------------------------------------------ */

size_t lb_case_print(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
{
    const struct lb_case defaults = lb_case_defaults();
    text[0] = '\0';
    if (c->impl[0])
        lb_append(text, LB_CASE_ID_SIZE, "%s%s%s/", c->impl, c->variant[0] ? ":" : "", c->variant);
    for (size_t i = 0; i < LB_AXIS_COUNT; i++) {
        enum lb_axis_id axis = text_order[i];
        const struct lb_axis_info *info = &lb_axis_table[axis];
        int64_t value = lb_axis_get(c, axis);
        bool always = i < ALWAYS_PRINTED || axis == LB_AXIS_DTYPE || axis == LB_AXIS_PASS;
        if ((!always && value == lb_axis_get(&defaults, axis)) || !has_word(axis, value))
            continue;
        const char *separator = i == 0 ? "" : i < SIZES ? "_" : "/";
        if (info->words)
            lb_append(text, LB_CASE_ID_SIZE, "%s%s%s", separator, info->text, info->words[value]);
        else
            lb_append(text, LB_CASE_ID_SIZE, "%s%s%" PRId64, separator, info->text, value);
    }
    return strlen(text);
}

size_t lb_case_print_problem(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
{
    struct lb_case problem = *c;
    problem.impl[0] = '\0';
    return lb_case_print(&problem, text);
}
