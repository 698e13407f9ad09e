/* Which cases a command line chose: axes, implementations, --where expressions, case texts and
 * files. */
#include "cli/selection.h"

#include <stdlib.h>
#include <string.h>

static const char *const dtypes[] = {"f64", "f32", "f16", "bf16", NULL};
static const char *const passes[] = {"infer", "forward", "backward", "train", NULL};
static const char *const maths[] = {"ieee", "tf32", "half", NULL};
static const char *const raggeds[] = {"full", "ragged", NULL};
static const char *const acts[] = {"tanh", "relu", NULL};
static const char *const cells[] = {
    "standard", "layernorm", "recurrent-dropout", "projection", "peephole", "residual", NULL};
static const char *const launches[] = {"stream", "graph", NULL};
static const char *const caches[] = {"hot", "cold", NULL};
static const char *const timings[] = {"isolated", "batched", NULL};

const struct lb_axis_info lb_axis_table[LB_AXIS_COUNT] = {
    [LB_AXIS_SEQ_LEN] = {"-T", "sequence length", NULL, INT64_MAX, 0},
    [LB_AXIS_INPUT] = {"-I", "input", NULL, INT64_MAX, LB_GIVEN_INPUT},
    [LB_AXIS_HIDDEN] = {"-H", "hidden", NULL, INT64_MAX, 0},
    [LB_AXIS_LAYERS] = {"-L", "layers", NULL, INT64_MAX, LB_GIVEN_LAYERS},
    [LB_AXIS_DIRECTIONS] = {"-D", "directions", NULL, 2, LB_GIVEN_DIRECTIONS},
    [LB_AXIS_BATCH] = {"-B", "batch", NULL, INT64_MAX, 0},
    [LB_AXIS_DTYPE] = {"--dtype", "dtype", dtypes, 0, LB_GIVEN_DTYPE},
    [LB_AXIS_PASS] = {"--pass", "pass", passes, 0, LB_GIVEN_PASS},
    [LB_AXIS_MATH] = {"--math", "math", maths, 0, LB_GIVEN_MATH},
    [LB_AXIS_RAGGED] = {"--ragged", "ragged", raggeds, 0, LB_GIVEN_RAGGED},
    [LB_AXIS_ACT] = {"--act", "act", acts, 0, LB_GIVEN_ACT},
    [LB_AXIS_CELL] = {"--cell", "cell", cells, 0, LB_GIVEN_CELL},
    [LB_AXIS_PROJECTION] = {"-P", "projection", NULL, INT32_MAX, LB_GIVEN_CELL},
    [LB_AXIS_LAUNCH] = {"--launch", "launch", launches, 0, LB_GIVEN_LAUNCH},
    [LB_AXIS_CACHE] = {"--cache", "cache", caches, 0, LB_GIVEN_CACHE},
    [LB_AXIS_TIMING] = {"--timing", "timing", timings, 0, LB_GIVEN_TIMING},
    [LB_AXIS_THREADS] = {"--threads", "threads", NULL, LB_MAX_THREADS, LB_GIVEN_THREADS},
};

int64_t lb_axis_get(const struct lb_case *c, enum lb_axis_id axis)
{
    const struct lb_problem *p = &c->problem;
    switch (axis) {
    case LB_AXIS_SEQ_LEN: return p->seq_len;
    case LB_AXIS_INPUT: return p->input;
    case LB_AXIS_HIDDEN: return p->hidden;
    case LB_AXIS_LAYERS: return p->layers;
    case LB_AXIS_DIRECTIONS: return p->directions;
    case LB_AXIS_BATCH: return p->batch;
    case LB_AXIS_DTYPE: return (int64_t)p->dtype;
    case LB_AXIS_PASS: return (int64_t)p->pass;
    case LB_AXIS_MATH: return (int64_t)p->math;
    case LB_AXIS_RAGGED: return p->ragged;
    case LB_AXIS_ACT: return (int64_t)p->act;
    case LB_AXIS_CELL: return p->cell;
    case LB_AXIS_PROJECTION: return p->projection;
    case LB_AXIS_LAUNCH: return (int64_t)c->launch;
    case LB_AXIS_CACHE: return (int64_t)c->cache;
    case LB_AXIS_TIMING: return (int64_t)c->timing;
    default: return c->threads;
    }
}

void lb_axis_set(struct lb_case *c, enum lb_axis_id axis, int64_t value)
{
    struct lb_problem *p = &c->problem;
    switch (axis) {
    case LB_AXIS_SEQ_LEN: p->seq_len = value; break;
    case LB_AXIS_INPUT: p->input = value; break;
    case LB_AXIS_HIDDEN: p->hidden = value; break;
    case LB_AXIS_LAYERS: p->layers = value; break;
    case LB_AXIS_DIRECTIONS: p->directions = value; break;
    case LB_AXIS_BATCH: p->batch = value; break;
    case LB_AXIS_DTYPE: p->dtype = (enum lb_dtype)value; break;
    case LB_AXIS_PASS: p->pass = (enum lb_pass)value; break;
    case LB_AXIS_MATH: p->math = (enum lb_math)value; break;
    case LB_AXIS_RAGGED: p->ragged = value != 0; break;
    case LB_AXIS_ACT: p->act = (enum lb_act)value; break;
    case LB_AXIS_CELL: p->cell = (uint8_t)value; break;
    case LB_AXIS_PROJECTION: p->projection = (int32_t)value; break;
    case LB_AXIS_LAUNCH: c->launch = (enum lb_launch)value; break;
    case LB_AXIS_CACHE: c->cache = (enum lb_cache)value; break;
    case LB_AXIS_TIMING: c->timing = (enum lb_timing)value; break;
    default: c->threads = (int)value; break;
    }
}

void lb_selection_free(struct lb_selection *selection)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++)
        lb_axis_free(&selection->axes[i]);
    free(selection->impls);
    free(selection->filters);
    lb_case_list_free(&selection->cases);
    *selection = (struct lb_selection){0};
}

/* Copies text[0..length) to name. False when it is empty or too long. */
static bool copy_name(char name[LB_NAME_SIZE], const char *text, size_t length)
{
    if (length == 0 || length >= LB_NAME_SIZE)
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return true;
}

/* Reads impl[:variant][,...]. Whether such an implementation exists is checked when the plan is
 * built, because plug-ins may come later on the command line. */
static enum lb_status take_impls(struct lb_selection *s, const char *value, struct lb_error *err)
{
    for (const char *at = value;; at++) {
        size_t length = strcspn(at, ","), name_length = strcspn(at, ":,");
        struct lb_impl_choice choice = {0};
        bool fine = copy_name(choice.name, at, name_length);
        if (fine && name_length < length)
            fine = copy_name(choice.variant, at + name_length + 1, length - name_length - 1);
        if (!fine)
            return lb_fail(err, LB_INVALID,
                           "--impl %.80s: column %td: allowed are names such as cpu_ref or "
                           "cudnn:auto, commas between",
                           *value ? value : "''", at - value + 1);
        struct lb_impl_choice *grown = realloc(s->impls, (s->impl_count + 1) * sizeof(*s->impls));
        if (!grown)
            return lb_fail(err, LB_OOM, "--impl: out of memory");
        s->impls = grown;
        grown[s->impl_count++] = choice;
        at += length;
        if (!*at)
            return LB_OK;
    }
}

static enum lb_status take_filter(struct lb_selection *s, const char *value, struct lb_error *err)
{
    struct lb_filter *grown = realloc(s->filters, (s->filter_count + 1) * sizeof(*s->filters));
    if (!grown)
        return lb_fail(err, LB_OOM, "--where: out of memory");
    s->filters = grown;
    enum lb_status st = lb_filter_compile(value, &grown[s->filter_count], err);
    if (st == LB_OK)
        s->filter_count++;
    return st;
}

enum lb_status lb_selection_take(struct lb_selection *s, const char *flag, const char *value,
                                 struct lb_error *err)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++) {
        const struct lb_axis_info *info = &lb_axis_table[i];
        if (strcmp(flag, info->flag) != 0)
            continue;
        if (info->words)
            return lb_axis_add_words(&s->axes[i], flag, info->words, value, err);
        struct lb_axis_numbers allowed = {flag, info->what, info->max};
        return lb_axis_add_numbers(&s->axes[i], &allowed, value, err);
    }
    if (strcmp(flag, "--impl") == 0)
        return take_impls(s, value, err);
    if (strcmp(flag, "--where") == 0)
        return take_filter(s, value, err);
    if (strcmp(flag, "--case") == 0)
        return lb_case_list_add(&s->cases, flag, value, err);
    if (strcmp(flag, "--cases") == 0)
        return lb_case_list_read(&s->cases, value, err);
    return lb_fail(err, LB_INVALID, "%s: it selects no cases", flag);
}
