/* From what a command line chooses to the cases that it stands for, and their shards. */
#include "cli/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/suggest.h"
#include "base/text.h"
#include "case/probe.h"
#include "support/share_path.h"
#include "support/texts.h"

/* ---- The selection ---- */

void lb_selection_free(struct lb_selection *selection)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++)
        lb_axis_free(&selection->axes[i]);
    free(selection->impls);
    free(selection->filters);
    lb_case_list_free(&selection->cases);
    *selection = (struct lb_selection){0};
}

/* Adds the cases of a file or, where there is no such file, those of the builtin set of that name.
 * A folder does not count as a file, because runs may have the name of a set. */
static enum lb_status take_cases(struct lb_selection *s, const char *name, struct lb_error *err)
{
    char folder[4096], path[4500];
    struct lb_hint hint = {0};
    struct stat found;
    bool there = stat(name, &found) == 0;
    bool is_file = there && !S_ISDIR(found.st_mode);
    if (!is_file && !strchr(name, '/') &&
        lb_share_path("cases", folder, sizeof(folder), NULL) == LB_OK) {
        snprintf(path, sizeof(path), "%s/%.255s.txt", folder, name);
        if (access(path, F_OK) == 0) {
            name = path;
        } else if (!there) {
            lb_hint_add_files(&hint, name, folder, ".txt");
            return lb_fail(err, LB_INVALID, "--cases %.200s: no such file or set; %s", name,
                           hint.text);
        }
    }
    return lb_case_list_read(&s->cases, name, err);
}

enum lb_status lb_selection_take(struct lb_selection *s, const char *flag, const char *value,
                                 struct lb_error *err)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++) {
        if (strcmp(flag, lb_axis_table[i].flag) == 0)
            return lb_axis_add(&s->axes[i], &lb_axis_table[i], value, err);
    }
    if (strcmp(flag, "--impl") == 0) { /* plug-ins that it names may come later */
        s->impls = lb_room(s->impls, s->impl_count, sizeof(*s->impls));
        s->impls[s->impl_count++] = value;
        return LB_OK;
    }
    if (strcmp(flag, "--where") == 0) {
        s->filters = lb_room(s->filters, s->filter_count, sizeof(*s->filters));
        s->filters[s->filter_count++] = value;
        return lb_filter_check(value, err);
    }
    if (strcmp(flag, "--case") == 0)
        return lb_case_list_add(&s->cases, flag, value, err);
    if (strcmp(flag, "--cases") == 0)
        return take_cases(s, value, err);
    return lb_fail(err, LB_INVALID, "%s: it selects no cases", flag);
}

/* ---- The plan ---- */

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
    double combinations;
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

/* The line's own value of each axis where it gives one, else those of the selection. given:
 * LB_GIVEN. False: an axis rules the line out. */
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

/* Moves to the next combination of the axes, the last axis fastest. False: all axes are at their
 * first value again. */
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

/* P is 0 without a projection, and H/4 where none is given. False: it would repeat the first P. */
static bool settle_projection(struct planner *p)
{
    struct lb_problem *problem = &p->c.problem;
    if (problem->cell != LB_CELL_PROJECTION) {
        problem->projection = 0;
        return p->spans[LB_AXIS_PROJECTION].at == 0;
    }
    if (problem->projection == 0)
        problem->projection = (int32_t)fmin(fmax((double)problem->hidden / 4, 1), INT32_MAX);
    return true;
}

static enum lb_status expand(struct planner *p, const struct lb_named_impl *impls,
                             size_t impl_count)
{
    struct lb_problem *problem = &p->c.problem;
    double product = (double)impl_count;
    if (impl_count == 0)
        return LB_OK;
    for (size_t i = 0; i < LB_AXIS_COUNT; i++)
        product *= (double)p->spans[i].count;
    p->combinations += product;
    if (p->combinations > LB_PLAN_MAX_COMBINATIONS)
        return lb_fail(p->err, LB_INVALID,
                       "more than %d combinations of axes, cases and implementations: narrow one",
                       LB_PLAN_MAX_COMBINATIONS);
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

/* Prints the text that all cases of the problem (lb_case_same_problem) have in common, which has
 * no implementation and no way of running it. Returns its length. */
static size_t print_problem(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
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
        print_problem(&plan->cases[i], text);
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
    static const enum lb_axis_id needed[] = {LB_AXIS_SEQ_LEN, LB_AXIS_BATCH, LB_AXIS_HIDDEN};
    enum lb_status st = LB_OK;
    bool grid = selection->cases.count == 0;
    struct planner p = {.selection = selection,
                        .registry = registry,
                        .plan = plan,
                        .seen = json_object(),
                        .err = err};
    *plan = (struct lb_plan){0};
    const struct lb_axis *cell = &selection->axes[LB_AXIS_CELL];
    bool projects = selection->axes[LB_AXIS_PROJECTION].count == 0;
    for (size_t i = 0; i < cell->count; i++)
        projects |= cell->values[i] == LB_CELL_PROJECTION;
    for (size_t i = 0; i < selection->cases.count; i++)
        projects |= selection->cases.lines[i].c.problem.cell == LB_CELL_PROJECTION;
    if (!projects)
        LB_TRY(
            lb_fail(err, LB_INVALID, "-P: no case has the cell projection; add --cell projection"));
    LB_TRY(choose_impls(&p));
    for (size_t i = 0; grid && i < sizeof(needed) / sizeof(needed[0]); i++)
        if (selection->axes[needed[i]].count == 0)
            LB_TRY(lb_fail(err, LB_INVALID,
                           "%s is missing: a grid needs -T, -B and -H; or give --cases or --case",
                           lb_axis_table[needed[i]].flag));
    if (grid) {
        p.c = lb_case_defaults();
        set_spans(&p, &p.c, 0);
        LB_TRY(expand(&p, p.impls, p.impl_count));
    }
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

/* ---- Shards, for several machines or several devices ---- */

/* A problem of the plan. Work is counted in whole milliseconds, so that machines whose
 * floating-point sums differ in the last bits compute the same totals. */
struct problem {
    uint64_t hash;   /* of its case text without the parts that differ between its cases */
    int64_t work_ms; /* of all its cases */
    int shard;       /* from 0 */
};

double lb_predict_seconds(const struct lb_case *c, double rate,
                          const struct lb_sampler_options *sampler)
{
    double call = lb_problem_flops(&c->problem) / rate + 1e-6 * (double)c->problem.seq_len;
    /* The sampler takes 50 ms to max_ns, or up to 3 max_ns until it has six samples. Usual are 1.5
     * times min_samples. */
    const double most = sampler->max_ns / 1e9;
    double sampling = fmax(1.5 * (double)sampler->min_samples * call, 0.05);
    if (c->timing == LB_STREAMING)
        sampling = (double)sampler->max_samples * fmax(call, c->rate > 0 ? 1.0 / c->rate : 0);
    sampling = fmax(fmin(sampling, most), fmin(6 * call, 3 * most + call));
    int chunks;
    lb_case_whole(c, &chunks);
    double preparation = 2 * chunks * call + 0.02; /* verified calls; a guess for the rest */
    return fmin(sampling + preparation, LB_PREDICTED_MAX_S);
}

enum lb_status lb_shard_parse(const char *text, int *index, int *count, struct lb_error *err)
{
    const char *slash = strchr(text, '/');
    int64_t i = 0, n = 0;
    if (!slash || lb_parse_int(text, (size_t)(slash - text), 1, &i, NULL) != LB_OK ||
        lb_parse_int(slash + 1, strlen(slash + 1), 1, &n, NULL) != LB_OK || i > n ||
        n > LB_SHARD_MAX_COUNT)
        return lb_fail(
            err, LB_INVALID,
            "--shard %.40s: it takes I/N, part I of N, with I from 1 to N and N up to %d", text,
            LB_SHARD_MAX_COUNT);
    *index = (int)i;
    *count = (int)n;
    return LB_OK;
}

/* Sorts the longest problems first, and equally long ones by hash. The hash is unrelated to the
 * order of the plan, so that neighbours in a grid go to different shards. */
static int by_work(const void *a, const void *b)
{
    const struct problem *p = *(struct problem *const *)a, *q = *(struct problem *const *)b;
    if (p->work_ms != q->work_ms)
        return p->work_ms > q->work_ms ? -1 : 1;
    if (p->hash != q->hash)
        return p->hash < q->hash ? -1 : 1;
    return (p > q) - (p < q);
}

/* Fills problems [*count, at most case_count] and problem_of [case_count], their numbers. One rate
 * is assumed for every implementation, because machines may have different ones. */
static void find_problems(const struct lb_case *cases, size_t case_count,
                          const struct lb_sampler_options *sampler, struct problem *problems,
                          size_t *count, size_t *problem_of)
{
    json_t *seen = json_object(); /* from the texts of problems to their numbers */
    *count = 0;
    for (size_t i = 0; i < case_count; i++) {
        const struct lb_case *c = &cases[i];
        char text[LB_CASE_ID_SIZE];
        size_t length = print_problem(c, text);
        problem_of[i] = lb_json_number(seen, text, *count);
        struct problem *problem = &problems[problem_of[i]];
        problem->hash = lb_hash_bytes(0, text, length);
        *count += problem_of[i] == *count;
        double seconds = lb_predict_seconds(c, LB_CPU_FLOPS_S * c->threads, sampler);
        problem->work_ms += (int64_t)ceil(1e3 * seconds - 1e-6); /* 853.0000000000001 is 853 */
    }
    json_decref(seen);
}

/* Gives each problem to the shard with the least work so far. work_ms [shards] */
static void assign(struct problem *problems, size_t count, int64_t *work_ms, int shards)
{
    struct problem **sorted = lb_needed(calloc(count + 1, sizeof(struct problem *)));
    for (size_t i = 0; i < count; i++)
        sorted[i] = &problems[i];
    qsort(sorted, count, sizeof(struct problem *), by_work);
    for (size_t i = 0; i < count; i++) {
        int least = 0;
        for (int s = 1; s < shards; s++)
            if (work_ms[s] < work_ms[least])
                least = s;
        sorted[i]->shard = least;
        work_ms[least] += sorted[i]->work_ms;
    }
    free(sorted);
}

enum lb_status lb_shard_keep(const char *shard, const struct lb_sampler_options *sampler,
                             struct lb_plan *plan, struct lb_error *err)
{
    struct lb_shard *cut = &plan->shard;
    size_t count, kept = 0;
    LB_CHECK(lb_shard_parse(shard, &cut->index, &cut->count, err));
    struct problem *problems = lb_needed(calloc(plan->count + 1, sizeof(*problems)));
    size_t *problem_of = lb_needed(calloc(plan->count + 1, sizeof(*problem_of)));
    int64_t *work_ms = lb_needed(calloc((size_t)cut->count, sizeof(*work_ms)));
    find_problems(plan->cases, plan->count, sampler, problems, &count, problem_of);
    assign(problems, count, work_ms, cut->count);
    cut->plan_count = plan->count;
    for (int s = 0; s < cut->count; s++) {
        cut->plan_s += (double)work_ms[s] / 1e3;
        cut->longest_s = fmax(cut->longest_s, (double)work_ms[s] / 1e3);
    }
    cut->own_s = (double)work_ms[cut->index - 1] / 1e3;
    for (size_t i = 0; i < plan->count; i++) {
        const struct lb_case c = plan->cases[i];
        int own = problems[problem_of[i]].shard;
        char text[LB_CASE_ID_SIZE];
        size_t length = lb_case_print(&c, text);
        cut->plan_hash = lb_hash_bytes(cut->plan_hash + (uint64_t)own, text, length);
        cut->threads = c.threads > cut->threads ? c.threads : cut->threads;
        if (own == cut->index - 1)
            plan->cases[kept++] = c;
    }
    plan->count = kept;
    free(work_ms);
    free(problem_of);
    free(problems);
    return LB_OK;
}

enum lb_status lb_devices_parse(const char *text, int *devices, size_t *count, struct lb_error *err)
{
    char item[16];
    *count = 0;
    if (strcmp(text, "all") == 0)
        return LB_OK;
    for (const char *list = text; lb_next_item(&list, item, sizeof(item));) {
        int64_t number;
        bool fine = lb_parse_int(item, strlen(item), 0, &number, NULL) == LB_OK &&
                    number <= LB_MAX_DEVICE && *count < LB_MAX_DEVICES;
        for (size_t i = 0; fine && i < *count; i++)
            fine = devices[i] != number;
        if (!fine)
            return lb_fail(err, LB_INVALID,
                           "--devices %.80s: it takes all, or up to %d different numbers of GPUs "
                           "from 0 to %d, such as 0,1,2,3",
                           text, LB_MAX_DEVICES, LB_MAX_DEVICE);
        devices[(*count)++] = (int)number;
    }
    return LB_OK;
}
