/* --cross-check: the differences between implementations and precisions on the same problem. */
#include "commands/commands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/tensor_files.h"
#include "support/texts.h"

enum { MOST_IN_MATRIX = 16, PRECISION_SIZE = 24, SETTINGS_SIZE = 128 };

/* The output y of one implementation in one precision. */
struct output {
    /* "cudnn:standard/f32/tf32", then the settings of the run: "/graph" */
    char name[2 * LB_NAME_SIZE + PRECISION_SIZE + SETTINGS_SIZE];
    char precision[PRECISION_SIZE]; /* "f32", "f32/tf32", "given" */
    enum lb_dtype dtype;
    size_t first; /* index of the first output of its precision */
    struct lb_sequence_file *y;
};

/* The largest difference between two outputs. */
struct difference {
    double max_abs;
    size_t at; /* index of the element */
};

/* The outputs for one problem. */
struct check {
    const struct lb_session *session;
    char path[256]; /* of the file that a worker writes y to */
    struct lb_sequence_file *given;
    struct output *outputs;          /* [count]; the last one is the given one, if any */
    size_t count, failed, elsewhere; /* elsewhere: cases that can't run here */
    struct difference *all;          /* [count, count] between outputs i > j */
    double largest;                  /* of y; 1 where all outputs are 0, and so are equal */
    bool compared;                   /* the outputs of some problem */
    bool differs;                    /* the given output, by more than rounding explains */
};

static const struct difference *between(const struct check *check, size_t i, size_t j)
{
    return &check->all[i > j ? i * check->count + j : j * check->count + i];
}

static struct difference difference_of(const struct lb_sequence_file *a,
                                       const struct lb_sequence_file *b)
{
    struct difference found = {0, 0};
    size_t count = (size_t)(a->seq_len * a->batch * a->width);
    for (size_t i = 0; i < count; i++) {
        double difference = fabs(a->values[i] - b->values[i]);
        if (difference > found.max_abs)
            found = (struct difference){difference, i};
    }
    return found;
}

static enum lb_status run_case(struct check *check, const struct lb_case *c, struct lb_error *err)
{
    const struct lb_impl_entry *impl_entry = lb_registry_find(check->session->registry, c->impl);
    const struct lb_job job = {
        .c = c, .seed = check->session->options->seed, .outputs = check->path};
    struct lb_row row = {0};
    struct output *output = &check->outputs[check->count];
    const struct lb_problem *p = &c->problem;
    struct lb_case plain = lb_case_defaults(); /* whose text that of c begins with */
    plain.problem = *p;
    const char *settings = LB_PROBLEM_TEXT(c) + strlen(LB_PROBLEM_TEXT(&plain));
    bool ieee = p->math == LB_IEEE;
    output->dtype = p->dtype;
    snprintf(output->precision, sizeof(output->precision), "%s%s%s", lb_dtype_name(p->dtype),
             ieee ? "" : "/", ieee ? "" : lb_math_name(p->math));
    snprintf(output->name, sizeof(output->name), "%s/%s%.127s", LB_IMPL_LABEL(c), output->precision,
             settings);
    enum lb_status st = lb_pool_run(check->session->pool, impl_entry, &job, &row, err);
    if (st == LB_OK && lb_verdict_has_samples(row.verdict)) { /* a suspect y counts as well */
        st = lb_sequence_file_read(check->path, false, &output->y, err);
        check->count += st == LB_OK;
    } else if (st == LB_OK &&
               (lb_verdict_is_failure(row.verdict) || row.verdict == LB_VERDICT_OOM)) {
        fprintf(stderr, "%s is not compared: %s: %s\n", output->name, lb_verdict_name(row.verdict),
                row.reason);
        check->failed += lb_verdict_is_failure(row.verdict);
    } else if (st == LB_OK)
        check->elsewhere++;
    lb_row_free(&row);
    return st;
}

static enum lb_status add_given(struct check *check, const struct lb_problem *p,
                                struct lb_error *err)
{
    struct output *output = &check->outputs[check->count];
    struct lb_sequence_file *given = check->given;
    if (!given)
        return LB_OK;
    if (given->seq_len != p->seq_len || given->batch != p->batch ||
        given->width != p->directions * lb_h_size(p))
        return lb_fail(err, LB_INVALID,
                       "--outputs: y is T %lld, B %lld, D*H %lld there, and %lld, %lld, %lld here",
                       (long long)given->seq_len, (long long)given->batch, (long long)given->width,
                       (long long)p->seq_len, (long long)p->batch,
                       (long long)(p->directions * lb_h_size(p)));
    *output = (struct output){.name = "--outputs", .precision = "given", .dtype = given->dtype};
    output->y = given;
    check->given = NULL;
    check->count++;
    return LB_OK;
}

/* Where there are too many outputs for a table of all pairs: differences from the given output or,
 * without one, from the first. */
static void print_list(const struct check *check)
{
    size_t last = check->count - 1;
    size_t from = strcmp(check->outputs[last].precision, "given") == 0 ? last : 0;
    printf("difference from %s (choose fewer with --impl and --dtype for a table of all pairs):\n",
           check->outputs[from].name);
    for (size_t i = 0; i < check->count; i++)
        if (i != from)
            printf("  %-28s %7.1e\n", check->outputs[i].name,
                   between(check, i, from)->max_abs / check->largest);
}

static void print_matrix(const struct check *check)
{
    int width = 9;
    for (size_t i = 0; i < check->count; i++)
        width = (int)fmax(width, (double)strlen(check->outputs[i].name));
    printf("     %-*s", width, "");
    for (size_t j = 0; j + 1 < check->count; j++)
        printf("     [%2zu]", j + 1);
    puts("");
    for (size_t i = 0; i < check->count; i++) {
        printf("[%2zu] %-*s", i + 1, i > 0 ? width : 0, check->outputs[i].name);
        for (size_t j = 0; j < i; j++)
            printf("  %7.1e", between(check, i, j)->max_abs / check->largest);
        puts("");
    }
}

/* The pair that is furthest apart, of the precisions whose first outputs are p and q. */
static bool find_furthest(const struct check *check, size_t p, size_t q, size_t pair[2])
{
    bool found = false;
    for (size_t i = 0; i < check->count; i++)
        for (size_t j = 0; j < i; j++) {
            size_t a = check->outputs[i].first, b = check->outputs[j].first;
            bool fits = (a == p && b == q) || (a == q && b == p);
            if (fits && (!found || between(check, i, j)->max_abs >
                                       between(check, pair[0], pair[1])->max_abs)) {
                found = true;
                pair[0] = i;
                pair[1] = j;
            }
        }
    return found;
}

static void print_furthest(const struct check *check, size_t p, size_t q)
{
    size_t pair[2], B = (size_t)check->outputs[0].y->batch;
    size_t W = (size_t)check->outputs[0].y->width;
    double largest = check->largest;
    int exponent;
    char both[2 * PRECISION_SIZE + 8];
    if (!find_furthest(check, p, q, pair))
        return;
    const struct output *a = &check->outputs[pair[0]], *b = &check->outputs[pair[1]];
    struct difference worst = *between(check, pair[0], pair[1]);
    enum lb_dtype coarser =
        lb_dtype_roundoff(a->dtype) > lb_dtype_roundoff(b->dtype) ? a->dtype : b->dtype;
    snprintf(both, sizeof(both), "%s and %s", check->outputs[p].precision,
             check->outputs[q].precision);
    frexp(largest, &exponent); /* it is 0.5 to 1 times 2^exponent */
    double ulp = ldexp(lb_dtype_roundoff(coarser), exponent);
    printf("%-15s  %7.1e  %7.1e  %7.1f of %-4s  %s, %s", both, worst.max_abs / largest,
           worst.max_abs, worst.max_abs / ulp, lb_dtype_name(coarser), b->name, a->name);
    if (worst.max_abs > 0)
        printf(" at t %zu, b %zu, column %zu", worst.at / W / B, worst.at / W % B, worst.at % W);
    puts("");
}

/* Whether the given output, the last one, is as near to one of the others as right outputs of that
 * one's precision are to each other. */
static bool judge_given(const struct check *check)
{
    size_t last = check->count - 1, nearest = 0;
    double least = INFINITY, limit = 0;
    bool beyond = false; /* what rounding to one of the precisions explains */
    for (size_t i = 0; i < last; i++) {
        const struct output *a = &check->outputs[i], *given = &check->outputs[last];
        size_t pair[2];
        bool several = find_furthest(check, a->first, a->first, pair);
        double apart = several ? between(check, pair[0], pair[1])->max_abs / check->largest : 0;
        double roundoff = fmax(lb_dtype_roundoff(a->dtype), lb_dtype_roundoff(given->dtype));
        /* How far two right outputs of its precision may be apart: 32 times the roundoff of the
         * coarser dtype, or 8 times as far as those of this run are. */
        double bound = fmax(32 * roundoff, 8 * apart);
        double ratio = between(check, last, i)->max_abs / check->largest / bound;
        beyond |= ratio > 1;
        if (ratio < least) {
            least = ratio;
            limit = bound;
            nearest = i;
        }
    }
    const struct output *output = &check->outputs[nearest];
    printf("\n--outputs %s: %.1e of the largest of y from %s, where rounding to %s explains %.1e\n",
           least > 1 ? "DIFFERS"
           : beyond  ? "agrees, but not in every precision"
                     : "agrees",
           least * limit, output->name, output->precision, limit);
    if (least > 1)
        puts("Compare the order of gates and of batch and time (--batch-first), the activations, "
             "the biases and the precision, such as TF32.");
    return least <= 1;
}

static void print_problem(struct check *check, const struct lb_case *c)
{
    struct lb_case plain = lb_case_defaults();
    plain.problem = c->problem;
    plain.problem.math = LB_IEEE;
    const char *text = LB_PROBLEM_TEXT(&plain);
    char pass[32];
    const struct lb_problem *p = &c->problem;
    double largest = 0;
    check->all = lb_needed(calloc(check->count * check->count, sizeof(*check->all)));
    snprintf(pass, sizeof(pass), "/%s", lb_pass_name(p->pass));
    for (size_t i = 0; i < check->count; i++) {
        struct output *output = &check->outputs[i];
        output->first = 0;
        while (strcmp(check->outputs[output->first].precision, output->precision) != 0)
            output->first++;
        largest = fmax(largest, check->outputs[i].y->max_abs);
        for (size_t j = 0; j < i; j++)
            check->all[i * check->count + j] =
                difference_of(check->outputs[i].y, check->outputs[j].y);
    }
    /* without the precision and the way of running, in which the cases differ */
    printf("%.*s%s: y is [%lld, %lld, %lld], and at most %.3g\n", (int)strcspn(text, "/"), text,
           strstr(text, pass), (long long)p->seq_len, (long long)p->batch,
           (long long)(p->directions * lb_h_size(p)), largest);
    check->largest = largest > 0 ? largest : 1;
    puts("largest difference between two outputs, over the largest of y:\n");
    if (check->count > MOST_IN_MATRIX)
        print_list(check);
    else
        print_matrix(check);
    printf("\n%-15s  %-7s  %-7s  %-15s  between\n", "furthest apart", "over y", "by", "ulps");
    for (size_t k = 0; k < check->count; k++) /* each pair of precisions */
        for (size_t n = k; n < check->count; n++)
            if (check->outputs[k].first == k && (n == k || check->outputs[n].first == n))
                print_furthest(check, k, n);
    if (strcmp(check->outputs[check->count - 1].precision, "given") == 0)
        check->differs |= !judge_given(check);
    if (check->elsewhere > 0)
        printf("\n%zu more case%s can't run here; --list with the same cases says why\n",
               check->elsewhere, check->elsewhere == 1 ? "" : "s");
    free(check->all);
}

static void forget_outputs(struct check *check)
{
    for (size_t i = 0; i < check->count; i++)
        lb_sequence_file_free(check->outputs[i].y);
    check->count = check->elsewhere = 0;
}

/* Runs the cases of one problem in all precisions one after another, and compares their outputs. */
static enum lb_status check_problems(struct check *check, const struct lb_plan *plan,
                                     bool *done_cases, struct lb_error *err)
{
    const struct lb_options *options = check->session->options;
    enum lb_status st = LB_OK;
    struct lb_progress progress;
    struct lb_error why;
    lb_progress_start(&progress, plan->count);
    for (size_t first = 0; first < plan->count; first++) {
        if (done_cases[first])
            continue;
        if (options->outputs &&
            lb_sequence_file_read(options->outputs, options->given_files.batch_first, &check->given,
                                  &why) != LB_OK)
            LB_TRY(lb_fail(err, LB_INVALID, "--outputs %.480s", why.text));
        for (size_t i = first; i < plan->count; i++) {
            struct lb_case other = plan->cases[i]; /* in the precision of the first */
            other.problem.dtype = plan->cases[first].problem.dtype;
            other.problem.math = plan->cases[first].problem.math;
            if (done_cases[i] || !lb_case_same_problem(&plan->cases[first], &other))
                continue;
            lb_progress_case(&progress, LB_CASE_TEXT(&plan->cases[i]));
            LB_TRY(run_case(check, &plan->cases[i], err));
            lb_progress_done(&progress, false, false);
            done_cases[i] = true;
        }
        LB_TRY(add_given(check, &plan->cases[first].problem, err));
        lb_progress_clear(&progress);
        if (check->count > 1)
            print_problem(check, &plan->cases[first]);
        check->compared |= check->count > 1;
        forget_outputs(check);
    }
done:
    lb_progress_clear(&progress);
    lb_sequence_file_free(check->given);
    return st;
}

enum lb_status lb_cross_check(const struct lb_session *session, const struct lb_plan *plan,
                              int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct check check = {.session = session};
    const char *named = getenv("TMPDIR");
    snprintf(check.path, sizeof(check.path), "%s/bench-lstm-XXXXXX",
             named && named[0] ? named : "/tmp");
    if (!lb_is_utf8(check.path))
        return lb_fail(err, LB_INVALID, "TMPDIR %s: the path must be UTF-8", named);
    int file = mkstemp(check.path);
    if (file < 0)
        return lb_fail(err, LB_IO, "%s: %s; set TMPDIR to a folder that can be written", check.path,
                       strerror(errno));
    close(file);
    bool *done_cases = lb_needed(calloc(plan->count, sizeof(*done_cases)));
    check.outputs = lb_needed(calloc(plan->count + 1, sizeof(*check.outputs)));
    LB_TRY(check_problems(&check, plan, done_cases, err));
    *exit_code = check.failed > 0 || check.differs ? LB_EXIT_FAILED
                 : check.compared                  ? LB_EXIT_FINE
                                                   : LB_EXIT_NOTHING;
    if (!check.compared)
        fprintf(stderr,
                "bench-lstm: fewer than two cases run here, so that there is nothing to compare; "
                "--list says why\n");
done:
    unlink(check.path);
    forget_outputs(&check);
    free(check.outputs);
    free(done_cases);
    return st;
}
