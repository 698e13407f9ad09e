/* Filters: compiling and evaluating an integer expression over a problem's sizes. */
#include "model/filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "model/case.h"

enum code {
    CONSTANT,
    SIZE,
    NOT,
    NEGATE,
    MULTIPLY,
    DIVIDE,
    REMAINDER,
    ADD,
    SUBTRACT,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    EQUAL,
    NOT_EQUAL,
    AND,    /* when the top of the stack is 0: keep it and jump; else drop it */
    OR,     /* when the top of the stack is not 0: keep it and jump; else drop it */
    TO_BOOL /* the target of AND and OR */
};

/* Binary operators. A higher level binds more tightly. A text that begins with another one, such as
 * <= and <, stands before it. */
static const struct operation {
    const char *text;
    int level;
    enum code code;
} operations[] = {
    {"||", 1, OR},         {"&&", 2, AND},           {"==", 3, EQUAL},   {"!=", 3, NOT_EQUAL},
    {"<=", 4, LESS_EQUAL}, {">=", 4, GREATER_EQUAL}, {"<", 4, LESS},     {">", 4, GREATER},
    {"+", 5, ADD},         {"-", 5, SUBTRACT},       {"*", 6, MULTIPLY}, {"/", 6, DIVIDE},
    {"%", 6, REMAINDER},
};

static const char letters[] = "TBIHPLD";

enum { MAX_DEPTH = 64 }; /* of nested parentheses and unary operators */

struct compiler {
    struct lb_filter *out;
    const char *at; /* into out->text */
    int depth;
    struct lb_error *err;
};

static enum lb_status refuse(const struct compiler *c, const char *message)
{
    return lb_fail(c->err, LB_INVALID, "--where '%.200s': column %td: %s", c->out->text,
                   c->at - c->out->text + 1, message);
}

static void skip_blanks(struct compiler *c)
{
    while (isspace((unsigned char)*c->at))
        c->at++;
}

static enum lb_status emit(struct compiler *c, enum code code, const char *at, int64_t value)
{
    if (c->out->count == LB_FILTER_MAX_CODE)
        return refuse(c, "the expression has too many operators");
    int column = (int)(at - c->out->text) + 1;
    c->out->steps[c->out->count++] = (struct lb_filter_step){(int)code, column, value};
    return LB_OK;
}

static enum lb_status compile_binary(struct compiler *c, int level);

static enum lb_status compile_constant(struct compiler *c)
{
    const char *start = c->at;
    size_t length = strspn(start, "0123456789");
    int64_t value = 0;
    if (lb_parse_int(start, length, 0, &value, NULL) != LB_OK)
        return refuse(c, "a number must be below 2^63");
    c->at += length;
    return emit(c, CONSTANT, start, value);
}

/* Compiles a number, a size, or an expression in parentheses. */
static enum lb_status compile_operand(struct compiler *c)
{
    enum lb_status st = LB_OK;
    if (isdigit((unsigned char)*c->at))
        return compile_constant(c);
    const char *letter = *c->at ? strchr(letters, *c->at) : NULL;
    if (letter && !isalnum((unsigned char)c->at[1])) {
        c->at++;
        return emit(c, SIZE, c->at - 1, letter - letters);
    }
    if (*c->at != '(')
        return refuse(c, "expected a number, one of T B I H P L D, or (");
    c->at++;
    LB_TRY(compile_binary(c, 1));
    if (*c->at != ')')
        return refuse(c, "expected an operator (+ - * / % < <= > >= == != && ||) or )");
    c->at++;
done:
    return st;
}

static enum lb_status compile_unary(struct compiler *c)
{
    enum lb_status st = LB_OK;
    skip_blanks(c);
    if (c->depth == MAX_DEPTH)
        return refuse(c, "the expression is nested too deeply");
    c->depth++;
    if (*c->at == '!' || *c->at == '-') {
        const char *start = c->at++;
        LB_TRY(compile_unary(c));
        LB_TRY(emit(c, *start == '!' ? NOT : NEGATE, start, 0));
    } else {
        LB_TRY(compile_operand(c));
    }
    c->depth--;
    skip_blanks(c);
done:
    return st;
}

static const struct operation *find_operation(const char *at)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        if (strncmp(at, operations[i].text, strlen(operations[i].text)) == 0)
            return &operations[i];
    return NULL;
}

/* Compiles operands that are joined by operators of at least the level. The right side of each
 * operator takes in only operators of a higher level, so that operators of one level are evaluated
 * from left to right. */
static enum lb_status compile_binary(struct compiler *c, int level)
{
    enum lb_status st = LB_OK;
    LB_TRY(compile_unary(c));
    const struct operation *op;
    while ((op = find_operation(c->at)) && op->level >= level) {
        const char *start = c->at;
        bool jumps = op->code == AND || op->code == OR;
        size_t jump = c->out->count;
        if (jumps)
            LB_TRY(emit(c, op->code, start, 0));
        c->at += strlen(op->text);
        LB_TRY(compile_binary(c, op->level + 1));
        if (jumps)
            c->out->steps[jump].value = (int64_t)c->out->count;
        LB_TRY(emit(c, jumps ? TO_BOOL : op->code, start, 0));
    }
done:
    return st;
}

enum lb_status lb_filter_compile(const char *text, struct lb_filter *out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t length = strlen(text);
    if (length >= LB_FILTER_MAX_TEXT)
        return lb_fail(err, LB_INVALID, "--where '%.60s...': at most %d characters are allowed",
                       text, LB_FILTER_MAX_TEXT - 1);
    memcpy(out->text, text, length + 1);
    out->count = 0;
    struct compiler c = {.out = out, .at = out->text, .err = err};
    LB_TRY(compile_binary(&c, 1));
    if (*c.at == '=' || *c.at == '&' || *c.at == '|')
        return refuse(&c, "write == to compare, && for and, || for or");
    if (*c.at)
        return refuse(&c, "expected an operator (+ - * / % < <= > >= == != && ||) or the end");
done:
    return st;
}

/* Sets *a to *a op b. False when the result does not fit 64 bits. For DIVIDE and REMAINDER the
 * caller has checked that b is not 0. */
static bool apply(enum code code, int64_t *a, int64_t b)
{
    switch (code) {
    case MULTIPLY: return !__builtin_mul_overflow(*a, b, a);
    case ADD: return !__builtin_add_overflow(*a, b, a);
    case SUBTRACT: return !__builtin_sub_overflow(*a, b, a);
    case DIVIDE:
        if (*a == INT64_MIN && b == -1)
            return false;
        *a /= b;
        return true;
    case REMAINDER: *a = b == -1 ? 0 : *a % b; return true;
    case LESS: *a = *a < b; return true;
    case LESS_EQUAL: *a = *a <= b; return true;
    case GREATER: *a = *a > b; return true;
    case GREATER_EQUAL: *a = *a >= b; return true;
    case EQUAL: *a = *a == b; return true;
    default: *a = *a != b; return true;
    }
}

static enum lb_status fail_at(const struct lb_filter *filter, const struct lb_filter_step *step,
                              const char *what, const struct lb_problem *p, struct lb_error *err)
{
    return lb_fail(err, LB_INVALID,
                   "--where '%.200s': column %d: %s at T%" PRId64 "_B%" PRId64 "_I%" PRId64
                   "_H%" PRId64 "_L%" PRId64 "_D%" PRId64,
                   filter->text, step->column, what, p->seq_len, p->batch, p->input, p->hidden,
                   p->layers, p->directions);
}

enum lb_status lb_filter_matches(const struct lb_filter *filter, const struct lb_problem *problem,
                                 bool *matches, struct lb_error *err)
{
    const struct lb_problem *p = problem;
    const int64_t sizes[] = {p->seq_len,   p->batch,  p->input,     p->hidden,
                             lb_h_size(p), p->layers, p->directions};
    int64_t stack[LB_FILTER_MAX_CODE] = {0}; /* a step pushes at most one value */
    size_t top = 0;                          /* values on the stack */

    for (size_t i = 0; i < filter->count; i++) {
        const struct lb_filter_step *step = &filter->steps[i];
        int64_t *last = stack + top - (top > 0);
        switch ((enum code)step->code) {
        case CONSTANT: stack[top++] = step->value; break;
        case SIZE: stack[top++] = sizes[step->value]; break;
        case NOT: *last = !*last; break;
        case TO_BOOL: *last = *last != 0; break;
        case NEGATE:
            if (__builtin_sub_overflow(0, *last, last))
                return fail_at(filter, step, "overflow", p, err);
            break;
        case AND:
        case OR:
            if ((*last != 0) == (step->code == OR))
                i = (size_t)step->value - 1; /* the loop adds 1 */
            else
                top--;
            break;
        default:
            top--;
            if (*last == 0 && (step->code == DIVIDE || step->code == REMAINDER))
                return fail_at(filter, step, "division by zero", p, err);
            if (!apply((enum code)step->code, &stack[top - 1], *last))
                return fail_at(filter, step, "overflow", p, err);
        }
    }
    *matches = stack[0] != 0;
    return LB_OK;
}
