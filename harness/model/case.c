/* Cases: names, defaults, rules, equality. */
#include "model/case.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"

const char *lb_launch_name(enum lb_launch launch)
{
    static const char *const names[LB_LAUNCH_COUNT] = {"stream", "graph"};
    return names[launch];
}

const char *lb_cache_name(enum lb_cache cache)
{
    static const char *const names[LB_CACHE_COUNT] = {"hot", "cold"};
    return names[cache];
}

const char *lb_timing_name(enum lb_timing timing)
{
    static const char *const names[LB_TIMING_COUNT] = {"isolated", "batched", "stream"};
    return names[timing];
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
                       lb_timing_name(c->timing));
    if (c->instances > 1 && (c->timing != LB_STREAMING || c->cache == LB_COLD))
        return lb_fail(err, LB_INVALID,
                       "several instances go with timing stream and hot caches, not %s and %s",
                       lb_timing_name(c->timing), lb_cache_name(c->cache));
    return LB_OK;
}

/* All fields but the names, those of the problem first. */
enum { PROBLEM_FIELDS = 13, FIELDS = 19 };

struct key {
    int64_t fields[FIELDS];
};

static struct key key_of(const struct lb_case *c)
{
    const struct lb_problem *p = &c->problem;
    return (struct key){{p->seq_len, p->batch, p->input, p->hidden, p->layers, p->directions,
                         p->dtype, p->pass, p->math, p->act, p->ragged, p->cell, p->projection,
                         c->launch, c->cache, c->timing, c->threads, c->rate, c->instances}};
}

bool lb_case_same_problem(const struct lb_case *a, const struct lb_case *b)
{
    struct key x = key_of(a), y = key_of(b);
    return memcmp(x.fields, y.fields, PROBLEM_FIELDS * sizeof(*x.fields)) == 0;
}

bool lb_case_same(const struct lb_case *a, const struct lb_case *b)
{
    struct key x = key_of(a), y = key_of(b);
    return memcmp(&x, &y, sizeof(x)) == 0 && strcmp(a->impl, b->impl) == 0 &&
           strcmp(a->variant, b->variant) == 0;
}

uint64_t lb_case_hash_problem(const struct lb_case *c)
{
    struct key key = key_of(c);
    return lb_hash_bytes(0, key.fields, PROBLEM_FIELDS * sizeof(*key.fields));
}

uint64_t lb_case_hash(const struct lb_case *c)
{
    struct key key = key_of(c);
    uint64_t hash = lb_hash_bytes(0, &key, sizeof(key));
    hash = lb_hash_bytes(hash, c->impl, strlen(c->impl));
    return lb_hash_bytes(hash, c->variant, strlen(c->variant));
}
