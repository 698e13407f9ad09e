/* Cases: names, defaults, rules, equality. */
#include "model/case.h"

#include <inttypes.h>
#include <string.h>

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
    static const char *const names[LB_TIMING_COUNT] = {"isolated", "batched"};
    return names[timing];
}

struct lb_case lb_case_defaults(void)
{
    return (struct lb_case){
        .problem = {.layers = 1, .directions = 1, .dtype = LB_F32, .pass = LB_INFER},
        .threads = 1,
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
    enum lb_status st = check_cell(p, err);
    if (st != LB_OK)
        return st;
    if (c->timing == LB_BATCHED && c->cache == LB_COLD)
        return lb_fail(err, LB_INVALID,
                       "batched timing keeps caches hot: it does not go with cold");
    if (c->timing == LB_BATCHED && p->pass == LB_BACKWARD)
        return lb_fail(
            err, LB_INVALID,
            "backward needs a fresh forward before each call: it is timed isolated only");
    return LB_OK;
}

bool lb_case_same_problem(const struct lb_case *a, const struct lb_case *b)
{
    const struct lb_problem *p = &a->problem, *q = &b->problem;
    return p->seq_len == q->seq_len && p->batch == q->batch && p->input == q->input &&
           p->hidden == q->hidden && p->layers == q->layers && p->directions == q->directions &&
           p->dtype == q->dtype && p->pass == q->pass && p->math == q->math && p->act == q->act &&
           p->ragged == q->ragged && p->cell == q->cell && p->projection == q->projection;
}

bool lb_case_same(const struct lb_case *a, const struct lb_case *b)
{
    return lb_case_same_problem(a, b) && a->launch == b->launch && a->cache == b->cache &&
           a->timing == b->timing && a->threads == b->threads && strcmp(a->impl, b->impl) == 0 &&
           strcmp(a->variant, b->variant) == 0;
}

/* Spreads a value over all bits, so that neighbouring sizes do not get neighbouring hashes. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
    return hash ^ hash >> 29;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = mix(hash, (unsigned char)*text);
    return mix(hash, 0);
}

uint64_t lb_case_hash_problem(const struct lb_case *c)
{
    const struct lb_problem *p = &c->problem;
    const int64_t fields[] = {
        p->seq_len,    p->batch,          p->input,         p->hidden,        p->layers,
        p->directions, (int64_t)p->dtype, (int64_t)p->pass, (int64_t)p->math, (int64_t)p->act,
        p->ragged,     p->cell,           p->projection};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        hash = mix(hash, (uint64_t)fields[i]);
    return hash;
}

uint64_t lb_case_hash(const struct lb_case *c)
{
    uint64_t hash = lb_case_hash_problem(c);
    hash = mix(hash, (uint64_t)c->launch);
    hash = mix(hash, (uint64_t)c->cache);
    hash = mix(hash, (uint64_t)c->timing);
    hash = mix(hash, (uint64_t)c->threads);
    return mix_text(mix_text(hash, c->impl), c->variant);
}
