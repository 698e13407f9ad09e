/* The plan: the cases that a selection stands for, in the order in which they run. */
#include "cli/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/suggest.h"
#include "base/text.h"
#include "support/texts.h"

/* The values that an axis takes for the current line. */
struct span {
    const int64_t *values; /* [count]; points to single or into the selection */
    size_t count, at;
    int64_t single;
};

struct planner {
    const struct lb_selection *selection;
    const struct lb_registry *registry;
    struct lb_named_impl *impls; /* [impl_count] what --impl chose, each once; owned */
    size_t impl_count;
    struct span spans[LB_AXIS_COUNT];
    struct lb_case c; /* with the current value of each span */
    size_t combinations;
    struct lb_plan *plan;
    json_t *seen; /* its keys are the texts of the plan's cases; owned */
    struct lb_error *err;
};

void lb_plan_free(struct lb_plan *plan)
{
    free(plan->cases);
    *plan = (struct lb_plan){0};
}

enum lb_status lb_named_impl_parse(const struct lb_registry *registry, const char *origin,
                                   const char *word, struct lb_named_impl *impl,
                                   struct lb_error *err)
{
    const struct lb_impl_entry *found;
    struct lb_hint hint = {0};
    struct lb_error why;
    char name[512];
    snprintf(name, sizeof(name), "%s", word);
    char *colon = strchr(name, ':');
    const char *variant = colon ? colon + 1 : "";
    if (colon)
        *colon = '\0';
    if (lb_registry_require(registry, name, &found, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "%.150s: %.400s", origin, why.text);
    *impl = (struct lb_named_impl){found->name, ""};
    if (!*variant || strcmp(variant, "auto") == 0)
        return LB_OK;
    if (!found->variants)
        return lb_fail(err, LB_INVALID, "%.150s: %s:%s: %s has no variants", origin, found->name,
                       variant, found->name);
    for (size_t i = 0; found->variants[i]; i++) {
        lb_hint_add(&hint, variant, found->variants[i]);
        if (strcmp(found->variants[i], variant) == 0) {
            impl->variant = i > 0 ? found->variants[i] : "";
            return LB_OK;
        }
    }
    return lb_fail(err, LB_INVALID, "%.150s: no variant %s:%s; %s", origin, found->name, variant,
                   hint.text);
}

static bool is_chosen(const struct planner *p, struct lb_named_impl impl)
{
    for (size_t i = 0; i < p->impl_count; i++)
        if (strcmp(p->impls[i].name, impl.name) == 0 &&
            strcmp(p->impls[i].variant, impl.variant) == 0)
            return true;
    return false;
}

/* Chooses it, but once: "--impl cudnn,cudnn:auto" is each variant of cudnn once. */
static void choose(struct planner *p, struct lb_named_impl impl)
{
    if (is_chosen(p, impl))
        return;
    p->impls = lb_room(p->impls, p->impl_count, sizeof(*p->impls));
    p->impls[p->impl_count++] = impl;
}

static void choose_variants(struct planner *p, const struct lb_impl_entry *found)
{
    choose(p, (struct lb_named_impl){found->name, ""});
    for (size_t i = 1; found->variants && found->variants[0] && found->variants[i]; i++)
        choose(p, (struct lb_named_impl){found->name, found->variants[i]});
}

/* The variants that --impl names, or every variant where it names none. */
static enum lb_status choose_impls(struct planner *p)
{
    for (size_t i = 0; p->selection->impl_count == 0 && i < p->registry->count; i++)
        choose_variants(p, &p->registry->impl_entries[i]);
    for (size_t i = 0; i < p->selection->impl_count; i++) {
        char word[2 * LB_NAME_SIZE];
        for (const char *list = p->selection->impls[i]; lb_next_item(&list, word, sizeof(word));) {
            struct lb_named_impl impl;
            LB_CHECK(lb_named_impl_parse(p->registry, "--impl", word, &impl, p->err));
            if (strchr(word, ':'))
                choose(p, impl);
            else
                choose_variants(p, lb_registry_find(p->registry, impl.name));
        }
    }
    return LB_OK;
}

static enum lb_status add_case(struct planner *p, struct lb_named_impl impl)
{
    struct lb_plan *plan = p->plan;
    char text[LB_CASE_ID_SIZE];
    if (plan->count == LB_PLAN_MAX_CASES)
        return lb_fail(p->err, LB_INVALID,
                       "more than %d cases: narrow an axis, or use --where or --impl",
                       LB_PLAN_MAX_CASES);
    plan->cases = lb_room(plan->cases, plan->count, sizeof(*plan->cases));
    struct lb_case *c = &plan->cases[plan->count];
    *c = p->c;
    snprintf(c->impl, sizeof(c->impl), "%s", impl.name);
    snprintf(c->variant, sizeof(c->variant), "%s", impl.variant);
    lb_case_print(c, text);
    if (!json_object_get(p->seen, text)) {
        json_object_set_new(p->seen, text, json_true());
        plan->count++;
    }
    return LB_OK;
}

/* Sets the values of each axis: the line's own value where it gives one, else those of the
 * selection. given: LB_GIVEN, the fields that the line has. False when an axis rules the line out.
 */
static bool set_spans(struct planner *p, const struct lb_case *c, unsigned given)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++) {
        const struct lb_axis *axis = &p->selection->axes[i];
        struct span *span = &p->spans[i];
        bool fixed = given >> i & 1;
        *span = (struct span){.values = &span->single, .count = 1};
        if (axis->count && !fixed) {
            span->values = axis->values;
            span->count = axis->count;
            continue;
        }
        span->single = lb_axis_get(c, (enum lb_axis_id)i);
        if (i == LB_AXIS_INPUT && !fixed)
            span->single = 0; /* stands for H */
        bool allowed =
            axis->count == 0 || (i == LB_AXIS_PROJECTION && c->problem.cell != LB_CELL_PROJECTION);
        for (size_t k = 0; k < axis->count && !allowed; k++)
            allowed = axis->values[k] == span->single;
        if (!allowed)
            return false;
    }
    return true;
}

/* Moves the axes to their next combination, the last axis fastest. False after the last
 * combination, when all are back at their first value. */
static bool advance(struct planner *p)
{
    for (size_t i = LB_AXIS_COUNT; i-- > 0;) {
        struct span *span = &p->spans[i];
        if (++span->at < span->count)
            return true;
        span->at = 0;
    }
    return false;
}

/* Fits P to the current cell: 0 without a projection, and H/4 where no P is given. False for the
 * second and later values of -P without a projection, which would repeat the first. */
static bool settle_projection(struct planner *p)
{
    struct lb_problem *problem = &p->c.problem;
    if (problem->cell != LB_CELL_PROJECTION) {
        problem->projection = 0;
        return p->spans[LB_AXIS_PROJECTION].at == 0;
    }
    if (problem->projection == 0)
        problem->projection =
            problem->hidden / 4 < INT32_MAX ? (int32_t)(problem->hidden / 4) : INT32_MAX;
    if (problem->projection == 0)
        problem->projection = 1;
    return true;
}

/* -P without a case of the cell projection would have no effect. */
static enum lb_status check_projection(const struct lb_selection *selection, struct lb_error *err)
{
    const struct lb_axis *cell = &selection->axes[LB_AXIS_CELL];
    bool projects = selection->axes[LB_AXIS_PROJECTION].count == 0;
    for (size_t i = 0; i < cell->count; i++)
        projects |= cell->values[i] == LB_CELL_PROJECTION;
    for (size_t i = 0; i < selection->cases.count; i++)
        projects |= selection->cases.lines[i].c.problem.cell == LB_CELL_PROJECTION;
    return projects ? LB_OK
                    : lb_fail(err, LB_INVALID,
                              "-P: no case has the cell projection; add --cell projection");
}

static enum lb_status count_combinations(struct planner *p, size_t impl_count)
{
    size_t product = impl_count;
    bool overflow = false;
    for (size_t i = 0; i < LB_AXIS_COUNT; i++)
        overflow |= __builtin_mul_overflow(product, p->spans[i].count, &product);
    overflow |= __builtin_add_overflow(p->combinations, product, &p->combinations);
    if (overflow || p->combinations > LB_PLAN_MAX_COMBINATIONS)
        return lb_fail(p->err, LB_INVALID,
                       "more than %d combinations of axes, cases and implementations: narrow one",
                       LB_PLAN_MAX_COMBINATIONS);
    return LB_OK;
}

static enum lb_status expand(struct planner *p, const struct lb_named_impl *impls,
                             size_t impl_count)
{
    struct lb_problem *problem = &p->c.problem;
    if (impl_count == 0)
        return LB_OK;
    LB_CHECK(count_combinations(p, impl_count));
    do {
        bool holds = true;
        struct lb_error why;
        for (size_t i = 0; i < LB_AXIS_COUNT; i++)
            lb_axis_set(&p->c, (enum lb_axis_id)i, p->spans[i].values[p->spans[i].at]);
        if (!settle_projection(p))
            continue;
        if (problem->input == 0)
            problem->input = problem->hidden;
        for (size_t i = 0; i < p->selection->filter_count && holds; i++)
            LB_CHECK(lb_filter_matches(p->selection->filters[i], problem, &holds, p->err));
        if (!holds) {
            p->plan->filtered += impl_count;
        } else if (lb_case_check(&p->c, &why) != LB_OK) {
            if (p->plan->left_out == 0)
                p->plan->because = why;
            p->plan->left_out += impl_count;
        } else {
            for (size_t i = 0; i < impl_count; i++)
                LB_CHECK(add_case(p, impls[i]));
        }
    } while (advance(p));
    return LB_OK;
}

static enum lb_status expand_line(struct planner *p, const struct lb_case_line *line)
{
    const struct lb_named_impl *impls = p->impls;
    size_t impl_count = p->impl_count;
    struct lb_named_impl own;
    if (line->given & LB_GIVEN_IMPL) {
        char origin[256];
        lb_case_line_origin(&p->selection->cases, line, origin, sizeof(origin));
        LB_CHECK(lb_named_impl_parse(p->registry, origin, LB_IMPL_LABEL(&line->c), &own, p->err));
        impls = &own;
        impl_count = is_chosen(p, own) ? 1 : 0;
    }
    p->c = line->c;
    if (impl_count && set_spans(p, &line->c, line->given))
        LB_CHECK(expand(p, impls, impl_count));
    else
        p->plan->filtered++;
    return LB_OK;
}

static enum lb_status expand_grid(struct planner *p)
{
    static const enum lb_axis_id needed[] = {LB_AXIS_SEQ_LEN, LB_AXIS_BATCH, LB_AXIS_HIDDEN};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (p->selection->axes[needed[i]].count == 0)
            return lb_fail(p->err, LB_INVALID,
                           "%s is missing: a grid needs -T, -B and -H; or give --cases or --case",
                           lb_axis_table[needed[i]].flag);
    p->c = lb_case_defaults();
    struct lb_case defaults = p->c;
    set_spans(p, &defaults, 0);
    return expand(p, p->impls, p->impl_count);
}

size_t lb_plan_print_problem(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
{
    struct lb_case plain = lb_case_defaults();
    plain.problem = c->problem;
    return lb_case_print(&plain, text);
}

/* Moves the cases of one problem together, to where the first of them stood; otherwise the order
 * stays. */
static void group_problems(struct lb_plan *plan)
{
    json_t *problems = json_object(); /* from their texts to the indices of their first cases */
    size_t n = plan->count;
    /* [n] index of the problem's first case; [n] of a group, at its first case */
    size_t *group = lb_needed(calloc(n, sizeof(*group)));
    size_t *next_index = lb_needed(calloc(n, sizeof(*next_index)));
    struct lb_case *sorted = lb_needed(calloc(n, sizeof(*sorted)));
    for (size_t i = 0; i < n; i++) {
        char text[LB_CASE_ID_SIZE];
        lb_plan_print_problem(&plan->cases[i], text);
        group[i] = lb_json_number(problems, text, i);
        next_index[group[i]]++;
    }
    for (size_t i = 0, next = 0; i < n; i++) { /* from group sizes to group starts */
        size_t size = next_index[i];
        next_index[i] = next;
        next += size;
    }
    for (size_t i = 0; i < n; i++)
        sorted[next_index[group[i]]++] = plan->cases[i];
    struct lb_case *unsorted = plan->cases;
    plan->cases = sorted;
    json_decref(problems);
    free(unsorted);
    free(next_index);
    free(group);
}

enum lb_status lb_plan_build(const struct lb_selection *selection,
                             const struct lb_registry *registry, struct lb_plan *plan,
                             struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct planner p = {
        .selection = selection,
        .registry = registry,
        .plan = plan,
        .seen = json_object(),
        .err = err,
    };
    *plan = (struct lb_plan){0};
    LB_TRY(check_projection(selection, err));
    LB_TRY(choose_impls(&p));
    if (selection->cases.count == 0)
        LB_TRY(expand_grid(&p));
    for (size_t i = 0; i < selection->cases.count; i++)
        LB_TRY(expand_line(&p, &selection->cases.lines[i]));
    if (selection->cases.count > 1 && plan->count > 1)
        group_problems(plan);
done:
    json_decref(p.seen);
    free(p.impls);
    if (st != LB_OK)
        lb_plan_free(plan);
    return st;
}
