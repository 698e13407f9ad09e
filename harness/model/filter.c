/* Filters: evaluating an integer expression over a problem's sizes while it is read. */
#include "model/filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "model/case.h"

/* Binary operators. A higher level binds more tightly. A text that begins with another one, such as
 * <= and <, stands before it. */
static const struct operation {
    const char *text;
    int level;
    char code; /* the operator, or with `negates` the one whose result it turns round */
    bool negates;
} operations[] = {
    {"||", 1, '|', false}, {"&&", 2, '&', false}, {"==", 3, '=', false}, {"!=", 3, '=', true},
    {"<=", 4, '>', true},  {">=", 4, '<', true},  {"<", 4, '<', false},  {">", 4, '>', false},
    {"+", 5, '+', false},  {"-", 5, '-', false},  {"*", 6, '*', false},  {"/", 6, '/', false},
    {"%", 6, '%', false},
};

enum { MAX_DEPTH = 64 }; /* of nested parentheses and unary operators */

/* The expression that is read, and the position in it. */
struct reader {
    const char *text, *at;
    const struct lb_problem *problem; /* NULL: only the syntax is checked */
    bool skipped; /* the value does not matter, so that no operation of it can fail */
    int depth;
    struct lb_error *err;
};

static enum lb_status refuse(const struct reader *r, const char *message)
{
    return lb_fail(r->err, LB_INVALID, "--where '%.200s': column %td: %s", r->text,
                   r->at - r->text + 1, message);
}

static void skip_blanks(struct reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

/* Sets *a to *a op b. Returns what is wrong, or NULL. */
static const char *apply(char code, int64_t *a, int64_t b)
{
    bool overflow = false;
    if ((code == '/' || code == '%') && b == 0)
        return "division by zero";
    switch (code) {
    case '*': overflow = __builtin_mul_overflow(*a, b, a); break;
    case '+': overflow = __builtin_add_overflow(*a, b, a); break;
    case '-': overflow = __builtin_sub_overflow(*a, b, a); break;
    case '/':
        overflow = *a == INT64_MIN && b == -1;
        *a = overflow ? 0 : *a / b;
        break;
    case '%': *a = b == -1 ? 0 : *a % b; break;
    case '<': *a = *a < b; break;
    case '>': *a = *a > b; break;
    case '=': *a = *a == b; break;
    case '&': *a = *a && b; break;
    case '|': *a = *a || b; break;
    }
    return overflow ? "overflow" : NULL;
}

/* Sets *a to *a op b, where the operator stands at that place. */
static enum lb_status evaluate(const struct reader *r, const char *at, char code, int64_t *a,
                               int64_t b)
{
    const char *wrong = apply(code, a, b);
    const struct lb_problem *p = r->problem;
    if (!wrong || r->skipped)
        return LB_OK;
    return lb_fail(r->err, LB_INVALID,
                   "--where '%.200s': column %td: %s at T%" PRId64 "_B%" PRId64 "_I%" PRId64
                   "_H%" PRId64 "_L%" PRId64 "_D%" PRId64,
                   r->text, at - r->text + 1, wrong, p->seq_len, p->batch, p->input, p->hidden,
                   p->layers, p->directions);
}

static int64_t size_of(const struct lb_problem *p, char letter)
{
    switch (letter) {
    case 'T': return p->seq_len;
    case 'B': return p->batch;
    case 'I': return p->input;
    case 'H': return p->hidden;
    case 'P': return lb_h_size(p);
    case 'L': return p->layers;
    default: return p->directions;
    }
}

static enum lb_status read_binary(struct reader *r, int level, int64_t *value);

/* Reads a number, a size, or an expression in parentheses. */
static enum lb_status read_operand(struct reader *r, int64_t *value)
{
    size_t digits = strspn(r->at, "0123456789");
    if (digits > 0) {
        if (lb_parse_int(r->at, digits, 0, value, NULL) != LB_OK)
            return refuse(r, "a number must be below 2^63");
        r->at += digits;
        return LB_OK;
    }
    if (*r->at && strchr("TBIHPLD", *r->at) && !isalnum((unsigned char)r->at[1])) {
        *value = r->problem ? size_of(r->problem, *r->at) : 0;
        r->at++;
        return LB_OK;
    }
    if (*r->at != '(')
        return refuse(r, "expected a number, one of T B I H P L D, or (");
    r->at++;
    LB_CHECK(read_binary(r, 1, value));
    if (*r->at != ')')
        return refuse(r, "expected an operator (+ - * / % < <= > >= == != && ||) or )");
    r->at++;
    return LB_OK;
}

static enum lb_status read_unary(struct reader *r, int64_t *value)
{
    skip_blanks(r);
    if (r->depth == MAX_DEPTH)
        return refuse(r, "the expression is nested too deeply");
    r->depth++;
    const char *start = r->at;
    if (*start == '!' || *start == '-') {
        int64_t operand;
        r->at++;
        LB_CHECK(read_unary(r, &operand));
        *value = 0;
        LB_CHECK(evaluate(r, start, *start == '!' ? '=' : '-', value, operand));
    } else {
        LB_CHECK(read_operand(r, value));
    }
    r->depth--;
    skip_blanks(r);
    return LB_OK;
}

static const struct operation *find_operation(const char *at)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        if (strncmp(at, operations[i].text, strlen(operations[i].text)) == 0)
            return &operations[i];
    return NULL;
}

/* Reads operands that are joined by operators of at least the level. The right side of each
 * operator takes in only operators of a higher level, so that operators of one level are evaluated
 * from left to right. */
static enum lb_status read_binary(struct reader *r, int level, int64_t *value)
{
    LB_CHECK(read_unary(r, value));
    const struct operation *op;
    while ((op = find_operation(r->at)) && op->level >= level) {
        const char *start = r->at;
        const bool skipped = r->skipped;
        int64_t right;
        r->skipped |= (op->code == '&' && !*value) || (op->code == '|' && *value);
        r->at += strlen(op->text);
        LB_CHECK(read_binary(r, op->level + 1, &right));
        r->skipped = skipped;
        LB_CHECK(evaluate(r, start, op->code, value, right));
        *value = op->negates ? !*value : *value;
    }
    return LB_OK;
}

static enum lb_status read_whole(struct reader *r, int64_t *value)
{
    r->skipped = !r->problem;
    LB_CHECK(read_binary(r, 1, value));
    if (*r->at == '=' || *r->at == '&' || *r->at == '|')
        return refuse(r, "write == to compare, && for and, || for or");
    if (*r->at)
        return refuse(r, "expected an operator (+ - * / % < <= > >= == != && ||) or the end");
    return LB_OK;
}

enum lb_status lb_filter_check(const char *text, struct lb_error *err)
{
    int64_t value;
    return read_whole(&(struct reader){.text = text, .at = text, .err = err}, &value);
}

enum lb_status lb_filter_matches(const char *text, const struct lb_problem *problem, bool *matches,
                                 struct lb_error *err)
{
    struct reader r = {.text = text, .at = text, .problem = problem, .err = err};
    int64_t value = 0;
    enum lb_status st = read_whole(&r, &value);
    *matches = value != 0;
    return st;
}
