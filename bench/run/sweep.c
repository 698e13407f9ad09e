/* The sweep: runs a plan case by case and records every outcome. */
#include "run/sweep.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "model/case_set.h"
#include "cli/shard.h"
#include "host/numa_cpus.h"
#include "record/run_devices.h"
#include "report/canaries.h"
#include "run/derived_outputs.h"
#include "run/device_query.h"
#include "run/gbench.h"
#include "run/hang_count.h"
#include "run/run_settings.h"
#include "support/cpu_load.h"
#include "support/progress.h"
#include "support/terminal.h"

enum {
    CHUNK = 256, /* cases given to Google Benchmark at a time: registration is quadratic */
    CANARY_NS = 500000000, /* sampling time of a canary, at most, but never more than a case's */
    CANARY_ROUNDS = 3,     /* of the canaries with --devices, alone and beside busy neighbours */
    PROCESSES_CHUNK = 32   /* with --processes: an interruption loses what a chunk has measured */
};

/* Cases that run together on one device: a chunk of the plan, or a problem with --devices. */
struct batch {
    const struct lb_case *cases; /* [count] */
    size_t count;
    struct lb_row *rows; /* [count] each repetition adds a block to its row */
    int *rounds;         /* [count] repetitions done */
};

/* Runs cases on one device, in workers of its own. Without --devices there is one runner. */
struct runner {
    struct sweep *sweep;
    struct lb_pool *pool;
    struct batch batch;               /* the cases that it runs now */
    const struct lb_run_place *place; /* of its rows; NULL without --devices */
    /* With --devices: */
    struct lb_run_place own; /* what place points at */
    json_t *gpu;             /* the device's record; owned */
    struct lb_device_cpus cpus;
    char warning[200];    /* that it is slower or faster than the others; "" */
    struct lb_error lost; /* why it can't be used any more; "" while it can */
    pthread_t thread;
};

/* Times of canaries, with the number of the runner as their node. */
struct canary_times {
    struct lb_canary_time *items; /* [count]; id points into sweep.canary_ids */
    size_t count;
};

/* A sweep that runs. With --devices, one thread per device runs cases, and lock guards what they
 * share: file, progress, hang_counts, err, the canaries' times, and the problems that are left. */
struct sweep {
    const struct lb_session *session;
    struct lb_settings settings;
    struct lb_run_file file;
    struct lb_progress progress;
    struct lb_hang_counts hang_counts;
    double start_ns;
    const struct lb_case *cases; /* [count] still to run */
    size_t count;
    struct runner main;        /* the one that runs without --devices, and cases of the host */
    struct lb_row rows[CHUNK]; /* of its batch */
    int rounds[CHUNK];
    struct lb_error err;                      /* why the sweep can't continue; "" while it can */
    struct lb_case canaries[LB_CANARY_COUNT]; /* [canary_count] */
    char canary_ids[LB_CANARY_COUNT][LB_CASE_ID_SIZE];
    size_t canary_count;

    struct runner *runners; /* [runner_count] with --devices; owned */
    size_t runner_count;
    char allowed_cpus[LB_CPU_LIST_SIZE], spare_cpus[LB_CPU_LIST_SIZE]; /* of the program; those that
                                                                          no device got, or "" */
    pthread_mutex_t lock;
    bool all_started;           /* the threads of all runners */
    pthread_barrier_t together; /* of all runners */
    struct canary_times alone, busy;
    struct lb_deal deal;      /* cases that run on a device */
    size_t next_problem;      /* the first one that nobody has taken */
    struct batch *given_back; /* [given_back_count] what lost devices left; owned */
    size_t given_back_count;
    size_t working;              /* runners that run a problem */
    pthread_cond_t problem_done; /* working has become less, or a problem was given back */
};

/* Whether the user asked the sweep to stop, or nobody can see any more what it says. */
static bool interrupted(const struct sweep *sweep)
{
    return (sweep->session->stop && *sweep->session->stop) || lb_reader_left(stderr);
}

/* Whether something failed that ends the sweep. */
static bool has_failed(struct sweep *sweep)
{
    pthread_mutex_lock(&sweep->lock);
    bool failed = sweep->err.text[0] != '\0';
    pthread_mutex_unlock(&sweep->lock);
    return failed;
}

/* Keeps the first failure that ends the sweep. An interruption is none: the user asked for it. */
static void note_failure(struct sweep *sweep, enum lb_status st, const struct lb_error *err)
{
    if (st == LB_OK || st == LB_INTERRUPTED)
        return;
    pthread_mutex_lock(&sweep->lock);
    if (!sweep->err.text[0])
        sweep->err = *err;
    pthread_mutex_unlock(&sweep->lock);
}

/* Whether so many cases of the variant have hung that no more of them are run. */
static bool reached_hang_limit(struct sweep *sweep, const struct lb_case *c)
{
    int limit = sweep->session->options->hang_limit;
    pthread_mutex_lock(&sweep->lock);
    bool reached = limit > 0 && lb_hang_counts_of(&sweep->hang_counts, c) >= limit;
    pthread_mutex_unlock(&sweep->lock);
    return reached;
}

static void count_hang(struct sweep *sweep, const struct lb_case *c)
{
    pthread_mutex_lock(&sweep->lock);
    lb_hang_counts_add(&sweep->hang_counts, c);
    pthread_mutex_unlock(&sweep->lock);
}

static bool out_of_time(const struct sweep *sweep)
{
    double elapsed_s = (lb_now_ns() - sweep->start_ns) / 1e9;
    return elapsed_s > sweep->session->options->time_budget_s;
}

/* Measures one block of one case in a worker; a case that is known not to run gets its verdict at
 * once. */
static enum lb_status run_block(struct runner *runner, const struct lb_case *c, bool first,
                                struct lb_row *block, struct lb_error *err)
{
    struct sweep *sweep = runner->sweep;
    const struct lb_session *session = sweep->session;
    const struct lb_impl_entry *impl_entry = lb_registry_find(session->registry, c->impl);
    const struct lb_job job = {
        .c = c,
        .seed = sweep->settings.seed,
        .sampler = sweep->settings.sampler,
        .kernels = sweep->settings.kernels && first,
        .loss_scale = sweep->settings.loss_scale,
        .dynamic_loss_scale = sweep->settings.dynamic_loss_scale,
    };
    enum lb_status st = LB_OK;
    *block = lb_row_make(c);
    if (!impl_entry) {
        block->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&block->reason, "this program has no %s", c->impl);
    } else if (impl_entry->absent) {
        block->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&block->reason, "%s", impl_entry->absent);
    } else if (first && out_of_time(sweep)) {
        block->verdict = LB_VERDICT_SKIPPED;
        lb_row_print(&block->reason, "the time budget of %.3g s ran out",
                     session->options->time_budget_s);
    } else if (reached_hang_limit(sweep, c)) {
        block->verdict = LB_VERDICT_SKIPPED;
        lb_row_print(&block->reason,
                     "%s%s%s has hung %d times: its other cases are not run (--hang-limit)",
                     c->impl, c->variant[0] ? ":" : "", c->variant, session->options->hang_limit);
    } else {
        LB_TRY(lb_pool_run(runner->pool, impl_entry, &job, block, err));
        if (block->verdict == LB_VERDICT_TIMEOUT)
            count_hang(sweep, c);
    }
done:
    return st;
}

/* Whether others used so much of its CPUs, or the machine was so slow, that the case is worth
 * measuring again. */
static bool is_noisy(const struct lb_row *row)
{
    return lb_row_is_timed(row) &&
           (row->others_share > LB_BUSY_SHARE || row->slowdown > LB_SLOW_MACHINE);
}

/* Adds a warning to the row of a case with a time when a limit stopped the case early. */
static void warn_of_early_stop(struct sweep *sweep, struct lb_row *row)
{
    const struct lb_settings *settings = &sweep->settings;
    const char *limit = reached_hang_limit(sweep, &row->c) ? "hang limit" : "time budget";
    size_t wanted = (size_t)settings->processes * (size_t)settings->repetitions;
    const char *separator = row->warning[0] ? "; " : "";
    if (row->verdict != LB_VERDICT_OK || row->block_count >= wanted)
        return;
    if (settings->processes > 1)
        lb_row_append(&row->warning, "%sthe %s left it %zu of %d processes", separator, limit,
                      row->process_count, settings->processes);
    else
        lb_row_append(&row->warning, "%sthe %s left it %zu of %d blocks", separator, limit,
                      row->block_count, settings->repetitions);
}

/* Adds a warning to the row of a case that was measured while others used its CPUs. */
static void warn_of_others(struct lb_row *row)
{
    char warning[128];
    snprintf(warning, sizeof(warning),
             "other programs used %.0f %% of its CPUs while it was measured",
             100 * row->others_share);
    if (lb_row_is_timed(row) && row->others_share > LB_BUSY_SHARE)
        lb_row_warn(row, warning);
}

/* --verbose: "ok           1.05 ms  cpu_ref/..." or "timeout  cpu_ref/...: the reason". */
static void say_result(const struct sweep *sweep, const struct lb_row *row)
{
    char id[LB_CASE_ID_SIZE], time[32], line[LB_CASE_ID_SIZE + LB_ROW_TEXT_SIZE + 64];
    lb_case_print(&row->c, id);
    lb_format_ns(row->median_ns, time);
    if (lb_row_is_timed(row))
        snprintf(line, sizeof(line), "%-11s %9s  %s", lb_verdict_name(row->verdict), time, id);
    else
        snprintf(line, sizeof(line), "%-11s %9s  %s: %s", lb_verdict_name(row->verdict), "", id,
                 row->reason);
    lb_clean_text(line);
    lb_progress_say(&sweep->progress, line);
}

/* Records a case that has all its blocks, or all that there was time for. */
static enum lb_status finish_case(struct runner *runner, size_t slot, struct lb_error *err)
{
    struct sweep *sweep = runner->sweep;
    struct lb_row *row = &runner->batch.rows[slot];
    warn_of_early_stop(sweep, row);
    warn_of_others(row);
    pthread_mutex_lock(&sweep->lock);
    if (sweep->session->options->verbose)
        say_result(sweep, row);
    enum lb_status st = lb_run_append_at(&sweep->file, row, runner->place, err);
    pthread_mutex_unlock(&sweep->lock);
    lb_row_free(row);
    *row = (struct lb_row){0};
    return st;
}

/* How often Google Benchmark calls each case: once per process with --processes, else once per
 * block. */
static int rounds_of(const struct lb_settings *settings)
{
    return settings->processes > 1 ? settings->processes : settings->repetitions;
}

/* One round of a case: a block, or all blocks of a fresh process. A case that did not run, or
 * failed, is not tried again. A case that has a block keeps it when time runs out or when other
 * cases of its variant hang. */
static enum lb_status run_round(struct runner *runner, size_t slot, struct lb_error *err)
{
    struct sweep *sweep = runner->sweep;
    const struct lb_settings *settings = &sweep->settings;
    const struct lb_case *c = &runner->batch.cases[slot];
    struct lb_row *row = &runner->batch.rows[slot];
    bool fresh = settings->processes > 1;
    enum lb_status st = LB_OK;
    for (int i = 0; i < (fresh ? settings->repetitions : 1); i++) {
        struct lb_row block = {0};
        bool first = runner->batch.rounds[slot] == 0 && i == 0;
        if (!first &&
            (row->verdict != LB_VERDICT_OK || out_of_time(sweep) || reached_hang_limit(sweep, c)))
            break;
        if (fresh && i == 0)
            lb_pool_renew(runner->pool);
        st = run_block(runner, c, first, &block, err);
        if (st == LB_OK)
            st = lb_row_merge(row, &block, first, fresh && i == 0, err);
        lb_row_free(&block);
        if (st != LB_OK)
            break;
    }
    return st;
}

static void show_case(struct sweep *sweep, const struct lb_case *c)
{
    char id[LB_CASE_ID_SIZE];
    lb_case_print(c, id);
    pthread_mutex_lock(&sweep->lock);
    lb_progress_case(&sweep->progress, id);
    pthread_mutex_unlock(&sweep->lock);
}

/* Counts a round that was run, and records its case after the last one. */
static enum lb_status end_round(struct runner *runner, size_t slot, struct lb_error *err)
{
    struct sweep *sweep = runner->sweep;
    enum lb_verdict verdict = runner->batch.rows[slot].verdict;
    bool last = ++runner->batch.rounds[slot] == rounds_of(&sweep->settings);
    enum lb_status st = last ? finish_case(runner, slot, err) : LB_OK;
    pthread_mutex_lock(&sweep->lock);
    lb_progress_done(&sweep->progress, last && lb_verdict_is_failure(verdict),
                     last && verdict == LB_VERDICT_SKIPPED);
    pthread_mutex_unlock(&sweep->lock);
    return st;
}

/* lb_gbench_call: one repetition of a case is one round. */
static double run_repetition(void *user, size_t slot)
{
    struct sweep *sweep = user;
    struct runner *runner = &sweep->main;
    struct lb_error err = {""};
    double seconds = -1;
    if (interrupted(sweep) || has_failed(sweep))
        return -1;
    show_case(sweep, &runner->batch.cases[slot]);
    enum lb_status st = run_round(runner, slot, &err);
    if (st == LB_OK && runner->batch.rows[slot].verdict == LB_VERDICT_OK)
        seconds = runner->batch.rows[slot].median_ns / 1e9;
    if (st == LB_OK)
        st = end_round(runner, slot, &err);
    note_failure(sweep, st, &err);
    return seconds;
}

/* Drops the rows of a batch that an interruption or a lost device left unfinished. */
static void drop_rows(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        lb_row_free(&batch->rows[i]);
        batch->rows[i] = (struct lb_row){0};
    }
}

static enum lb_status run_chunk(struct sweep *sweep, const struct lb_case *cases, size_t count,
                                struct lb_error *err)
{
    char ids[CHUNK][LB_CASE_ID_SIZE];
    const char *names[CHUNK];
    memset(sweep->rounds, 0, sizeof(sweep->rounds));
    sweep->main.batch = (struct batch){cases, count, sweep->rows, sweep->rounds};
    for (size_t i = 0; i < count; i++) {
        lb_case_print(&cases[i], ids[i]);
        names[i] = ids[i];
    }
    enum lb_status st = lb_gbench_run(names, count, run_repetition, sweep, err);
    drop_rows(&sweep->main.batch);
    return st;
}

/* Looks for a moment how much of the CPUs other programs use, and says it before a long sweep. */
static void warn_of_busy_machine(void)
{
    enum { LOOK_US = 100000 };
    struct lb_cpu_load before, after;
    lb_cpu_load_read(&before);
    usleep(LOOK_US);
    lb_cpu_load_read(&after);
    double others = lb_cpu_load_others(&before, &after);
    if (others > LB_BUSY_SHARE)
        fprintf(stderr,
                "warning: other programs use at least %.0f %% of the CPUs, so times will be noisy: "
                "stop them, or measure the noisy cases again later with --resume DIR "
                "--retry noisy\n",
                100 * others);
}

/* The canaries of a shard as its header has them, or with --devices those of a device. */
static enum lb_status choose_canaries(struct sweep *sweep, struct lb_error *err)
{
    const struct lb_registry *registry = sweep->session->registry;
    const json_t *texts = json_object_get(sweep->settings.shard, "canaries");
    enum lb_status st = LB_OK;
    if (texts) {
        for (size_t i = 0; i < json_array_size(texts) && i < LB_CANARY_COUNT; i++) {
            const char *text = json_string_value(json_array_get(texts, i));
            struct lb_case *c = &sweep->canaries[sweep->canary_count];
            LB_TRY(lb_case_parse(text ? text : "", c, NULL, NULL, err));
            const struct lb_impl_entry *impl_entry = lb_registry_find(registry, c->impl);
            /* else the run was begun by another build */
            sweep->canary_count += impl_entry && !impl_entry->absent;
        }
    } else if (sweep->runner_count > 0) {
        lb_canaries_choose(registry, true, 1, sweep->canaries);
        sweep->canary_count = LB_CANARY_COUNT;
    }
    for (size_t i = 0; i < sweep->canary_count; i++)
        lb_case_print(&sweep->canaries[i], sweep->canary_ids[i]);
done:
    return st;
}

/* Measures one canary, whatever is left of the time budget; when: "start", "busy" or "end". times
 * (NULL: nobody asks) receives its time. */
static enum lb_status run_canary(struct runner *runner, size_t number, const char *when,
                                 struct canary_times *times, struct lb_error *err)
{
    struct sweep *sweep = runner->sweep;
    const struct lb_case *c = &sweep->canaries[number];
    const struct lb_impl_entry *impl_entry = lb_registry_find(sweep->session->registry, c->impl);
    struct lb_row row = {0};
    struct lb_job job = {
        .c = c, .seed = sweep->settings.seed, .sampler = lb_sampler_defaults(), .loss_scale = 1};
    job.sampler.max_ns = fmin(CANARY_NS, sweep->settings.sampler.max_ns);
    enum lb_status st = lb_pool_run(runner->pool, impl_entry, &job, &row, err);
    if (st == LB_OK) {
        warn_of_others(&row);
        pthread_mutex_lock(&sweep->lock);
        st = lb_run_append_canary(&sweep->file, &row, runner->place, when, err);
        if (times && lb_row_is_timed(&row))
            times->items[times->count++] = (struct lb_canary_time){
                (size_t)(runner - sweep->runners), sweep->canary_ids[number], row.median_ns};
        pthread_mutex_unlock(&sweep->lock);
    }
    lb_row_free(&row);
    return st;
}

static enum lb_status run_canaries(struct runner *runner, const char *when,
                                   struct canary_times *times, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (size_t i = 0; i < runner->sweep->canary_count && !interrupted(runner->sweep); i++)
        LB_TRY(run_canary(runner, i, when, times, err));
done:
    return st == LB_INTERRUPTED ? LB_OK : st;
}

/* ---- Several devices ------------------------------------------------------------------------ */

static const char *gpu_text(const struct runner *runner, const char *key)
{
    const char *text = json_string_value(json_object_get(runner->gpu, key));
    return text ? text : "";
}

static int gpu_ordinal(const struct runner *runner)
{
    return (int)json_integer_value(json_object_get(runner->gpu, "ordinal"));
}

/* Runs function in one thread per device until all have ended. When a thread can't be started, the
 * sweep fails, and the threads that were started end before they do anything. */
static void run_on_all(struct sweep *sweep, void *(*function)(void *))
{
    size_t started = 0;
    pthread_mutex_lock(&sweep->lock); /* threads first wait for it, in may_begin */
    while (started < sweep->runner_count && pthread_create(&sweep->runners[started].thread, NULL,
                                                           function, &sweep->runners[started]) == 0)
        started++;
    sweep->all_started = started == sweep->runner_count;
    if (!sweep->all_started)
        lb_fail(&sweep->err, LB_FAILED, "--devices: a thread could not be started");
    pthread_mutex_unlock(&sweep->lock);
    for (size_t i = 0; i < started; i++)
        pthread_join(sweep->runners[i].thread, NULL);
}

/* Waits until all threads are started. Whether they were. */
static bool may_begin(struct sweep *sweep)
{
    pthread_mutex_lock(&sweep->lock);
    bool begins = sweep->all_started;
    pthread_mutex_unlock(&sweep->lock);
    return begins;
}

/* The thread of a device: runs each canary at the same time as all other devices. */
static void *run_busy_canaries(void *user)
{
    struct runner *runner = user;
    struct sweep *sweep = runner->sweep;
    struct lb_error err = {""};
    if (!may_begin(sweep))
        return NULL;
    for (size_t i = 0; i < CANARY_ROUNDS * sweep->canary_count; i++) {
        pthread_barrier_wait(&sweep->together);
        if (!interrupted(sweep) && !has_failed(sweep)) /* all threads reach all barriers */
            note_failure(sweep,
                         run_canary(runner, i % sweep->canary_count, "busy", &sweep->busy, &err),
                         &err);
    }
    lb_pool_renew(runner->pool); /* workers end with their thread */
    return NULL;
}

/* Says which devices are slower or faster than the others, and marks their rows. */
static enum lb_status judge_devices(struct sweep *sweep, struct lb_error *err)
{
    struct lb_canary_verdict verdicts[LB_MAX_DEVICES];
    size_t kinds[LB_MAX_DEVICES] = {0}, off = 0;
    for (size_t i = 0; i < sweep->runner_count; i++)
        while (strcmp(gpu_text(&sweep->runners[kinds[i]], "name"),
                      gpu_text(&sweep->runners[i], "name")) != 0)
            kinds[i]++;
    enum lb_status st = lb_canaries_judge(sweep->alone.items, sweep->alone.count, kinds,
                                          sweep->runner_count, verdicts, err);
    for (size_t i = 0; i < sweep->runner_count && st == LB_OK; i++) {
        struct runner *runner = &sweep->runners[i];
        if (!verdicts[i].off)
            continue;
        snprintf(runner->warning, sizeof(runner->warning),
                 "its device %.60s is %.0f %% %s than the median of %zu devices, by its canaries",
                 gpu_text(runner, "uuid"), 100 * fabs(expm1(verdicts[i].shift)),
                 verdicts[i].shift > 0 ? "slower" : "faster", verdicts[i].nodes);
        fprintf(stderr, "warning: device %d: %s; their spread is %.1f %%; its rows are marked\n",
                gpu_ordinal(runner), runner->warning, 100 * expm1(verdicts[i].spread));
        off++;
    }
    if (st == LB_OK && !sweep->session->options->quiet && sweep->runner_count < LB_CANARY_NODES)
        fprintf(stderr, "canaries  it takes %d devices to tell which of them is slow\n",
                LB_CANARY_NODES);
    else if (st == LB_OK && !sweep->session->options->quiet && off == 0)
        fprintf(stderr, "canaries  no device is slower or faster than the others\n");
    return st;
}

/* Says how much slower the devices are when all of them are busy. */
static enum lb_status compare_with_busy(struct sweep *sweep, struct lb_error *err)
{
    struct lb_canary_change changes[LB_MAX_DEVICES];
    size_t disturbed = 0, known = 0;
    bool quiet = sweep->session->options->quiet;
    enum lb_status st =
        lb_canaries_compare(sweep->alone.items, sweep->alone.count, sweep->busy.items,
                            sweep->busy.count, sweep->runner_count, changes, err);
    for (size_t i = 0; i < sweep->runner_count && st == LB_OK; i++) {
        const struct lb_canary_change *change = &changes[i];
        known += change->canaries > 0;
        disturbed += change->disturbed;
        if (change->disturbed || (change->canaries > 0 && !quiet))
            fprintf(stderr,
                    "%sdevice %d: its canaries take %.1f %% %s with all %zu devices busy than "
                    "alone; their spread is %.1f %%%s\n",
                    change->disturbed ? "warning: " : "canaries  ", gpu_ordinal(&sweep->runners[i]),
                    100 * fabs(expm1(change->shift)), change->shift < 0 ? "less" : "more",
                    sweep->runner_count, 100 * expm1(change->spread),
                    change->disturbed ? ": its neighbours disturb it, and --device measures alone"
                                      : "");
    }
    if (st == LB_OK && !quiet && disturbed == 0)
        fprintf(stderr, "canaries  %s\n",
                known > 0 ? "the devices do not disturb each other"
                          : "they have no time, so nothing is known of the devices");
    return st;
}

/* Runs the canaries on each device alone, and then on all at once. */
static enum lb_status begin_devices(struct sweep *sweep, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t most = sweep->runner_count * CANARY_ROUNDS * LB_CANARY_COUNT;
    sweep->alone.items = calloc(most, sizeof(*sweep->alone.items));
    sweep->busy.items = calloc(most, sizeof(*sweep->busy.items));
    if (!sweep->alone.items || !sweep->busy.items)
        return lb_fail(err, LB_OOM, "out of memory for canaries");
    for (size_t i = 0; i < sweep->runner_count; i++)
        for (int round = 0; round < CANARY_ROUNDS; round++)
            LB_TRY(run_canaries(&sweep->runners[i], "start", &sweep->alone, err));
    if (sweep->runner_count > 1)
        run_on_all(sweep, run_busy_canaries);
    if (interrupted(sweep) || has_failed(sweep) || sweep->runner_count < 2)
        return LB_OK;
    LB_TRY(judge_devices(sweep, err));
    LB_TRY(compare_with_busy(sweep, err));
done:
    return st;
}

/* Takes the next problem, or waits for one while other devices work, which may be lost and give
 * theirs back. False: there is none, or the sweep ends. */
static bool take_problem(struct sweep *sweep, struct batch *batch)
{
    const struct lb_deal *deal = &sweep->deal;
    bool taken = false, waits = true;
    pthread_mutex_lock(&sweep->lock);
    while (!taken && waits) {
        if (sweep->err.text[0] || interrupted(sweep)) {
            waits = false;
        } else if (sweep->given_back_count > 0) {
            *batch = sweep->given_back[--sweep->given_back_count];
            taken = true;
        } else if (sweep->next_problem < deal->problems) {
            size_t first = deal->starts[sweep->next_problem++];
            *batch = (struct batch){.cases = &deal->cases[first],
                                    .count = deal->starts[sweep->next_problem] - first};
            taken = true;
        } else if (sweep->working == 0) {
            waits = false;
        } else {
            pthread_cond_wait(&sweep->problem_done, &sweep->lock);
        }
    }
    sweep->working += taken;
    pthread_mutex_unlock(&sweep->lock);
    return taken;
}

/* Whether the device can't be used any more, after a case that failed in a way which may have cost
 * the device too; runner->lost is the reason then. A fresh process looks. */
static bool is_lost(struct runner *runner, enum lb_verdict verdict)
{
    json_t *gpu = NULL;
    if (verdict != LB_VERDICT_ERROR && verdict != LB_VERDICT_CRASH &&
        verdict != LB_VERDICT_TIMEOUT && verdict != LB_VERDICT_ABSENT)
        return false;
    lb_pool_renew(runner->pool);
    enum lb_status st = lb_pool_find_device(runner->pool, &gpu, &runner->lost);
    json_decref(gpu);
    if (st != LB_OK && st != LB_INTERRUPTED)
        return true;
    runner->lost.text[0] = '\0';
    return false;
}

/* Gives the cases of a lost device's problem to the others, but for those that have their row. The
 * case in slot failed with the device: its row stays, unless it could not begin. */
static enum lb_status give_back(struct runner *runner, size_t slot, struct lb_error *err)
{
    struct sweep *sweep = runner->sweep;
    struct batch *batch = &runner->batch;
    size_t first = (size_t)(batch->cases - sweep->deal.cases), left = 0;
    enum lb_status st = LB_OK;
    char text[600];
    if (batch->rows[slot].verdict != LB_VERDICT_ABSENT) {
        batch->rounds[slot] = rounds_of(&sweep->settings) - 1;
        st = end_round(runner, slot, err);
    }
    for (size_t i = 0; i < batch->count; i++)
        if (batch->rounds[i] < rounds_of(&sweep->settings))
            sweep->deal.cases[first + left++] = sweep->deal.cases[first + i];
    snprintf(text, sizeof(text),
             "warning: device %d is lost, and takes no more cases: %.400s; %zu case%s of its "
             "problem %s to other devices",
             gpu_ordinal(runner), runner->lost.text, left, left == 1 ? "" : "s",
             left == 1 ? "goes" : "go");
    lb_clean_text(text);
    pthread_mutex_lock(&sweep->lock);
    lb_progress_say(&sweep->progress, text);
    if (left > 0) /* once per device at most, as many as there is room for */
        sweep->given_back[sweep->given_back_count++] =
            (struct batch){.cases = &sweep->deal.cases[first], .count = left};
    pthread_mutex_unlock(&sweep->lock);
    return st;
}

/* Puts the numbers below count in random order. */
static void shuffle(size_t *order, size_t count, uint64_t *state)
{
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; i-- > 1;) {
        size_t k = (size_t)(lb_random_next(state) % (i + 1)), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
}

/* Runs one round of the case in the slot. False: the device was lost, or the sweep ends. */
static bool run_slot(struct runner *runner, size_t slot)
{
    struct sweep *sweep = runner->sweep;
    struct lb_error err = {""};
    struct lb_row *row = &runner->batch.rows[slot];
    bool failed_before = row->verdict != LB_VERDICT_OK;
    if (interrupted(sweep) || has_failed(sweep))
        return false;
    show_case(sweep, &runner->batch.cases[slot]);
    enum lb_status st = run_round(runner, slot, &err);
    bool lost = st == LB_OK && !failed_before && is_lost(runner, row->verdict);
    if (st == LB_OK)
        st = lost ? give_back(runner, slot, &err) : end_round(runner, slot, &err);
    note_failure(sweep, st, &err);
    return st == LB_OK && !lost;
}

/* Runs all cases of the runner's batch; several processes per case in random order, as
 * configure_gbench has it. */
static enum lb_status run_problem(struct runner *runner, struct lb_error *err)
{
    struct batch *batch = &runner->batch;
    const struct lb_settings *settings = &runner->sweep->settings;
    size_t rounds = (size_t)rounds_of(settings), *order = calloc(batch->count, sizeof(*order));
    uint64_t state = settings->seed ^ (uint64_t)lb_now_ns();
    bool goes_on = true;
    batch->rows = calloc(batch->count, sizeof(*batch->rows));
    batch->rounds = calloc(batch->count, sizeof(*batch->rounds));
    enum lb_status st = order && batch->rows && batch->rounds
                            ? LB_OK
                            : lb_fail(err, LB_OOM, "out of memory for %zu rows", batch->count);
    for (size_t i = 0; i < rounds * batch->count && st == LB_OK && goes_on; i++) {
        if (i % batch->count == 0)
            shuffle(order, batch->count, &state);
        goes_on = run_slot(runner, settings->processes > 1 ? order[i % batch->count] : i / rounds);
    }
    if (batch->rows)
        drop_rows(batch);
    free(batch->rows);
    free(batch->rounds);
    free(order);
    return st;
}

/* The thread of a device: runs problems while there are any. */
static void *serve_device(void *user)
{
    struct runner *runner = user;
    struct sweep *sweep = runner->sweep;
    struct lb_error err = {""};
    if (!may_begin(sweep))
        return NULL;
    while (!runner->lost.text[0] && take_problem(sweep, &runner->batch)) {
        note_failure(sweep, run_problem(runner, &err), &err);
        pthread_mutex_lock(&sweep->lock);
        sweep->working--;
        pthread_cond_broadcast(&sweep->problem_done);
        pthread_mutex_unlock(&sweep->lock);
    }
    if (!runner->lost.text[0] && !has_failed(sweep))
        note_failure(sweep, run_canaries(runner, "end", NULL, &err), &err);
    lb_pool_renew(runner->pool); /* workers end with their thread */
    return NULL;
}

/* Records the cases that no device is left for as skipped: --resume runs them. */
static enum lb_status skip_rest(struct sweep *sweep, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct batch batch;
    while (st == LB_OK && take_problem(sweep, &batch)) {
        sweep->working--;
        for (size_t i = 0; i < batch.count && st == LB_OK; i++) {
            struct lb_row row = lb_row_make(&batch.cases[i]);
            row.verdict = LB_VERDICT_SKIPPED;
            lb_row_print(&row.reason, "all devices were lost; the first: %.400s",
                         sweep->runners[0].lost.text);
            st = lb_run_append_at(&sweep->file, &row, sweep->runners[0].place, err);
            lb_row_free(&row);
            lb_progress_done(&sweep->progress, false, true);
        }
    }
    return st;
}

/* Ends the workers of all devices. */
static void close_runners(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->runner_count; i++) {
        lb_pool_destroy(sweep->runners[i].pool);
        json_decref(sweep->runners[i].gpu);
        sweep->runners[i].pool = NULL;
        sweep->runners[i].gpu = NULL;
    }
}

/* Gives each device CPUs of its own, and says which. */
static void divide_cpus(struct sweep *sweep)
{
    const char *addresses[LB_MAX_DEVICES];
    struct lb_device_cpus cpus[LB_MAX_DEVICES];
    struct lb_error why = {""};
    bool quiet = sweep->session->options->quiet;
    for (size_t i = 0; i < sweep->runner_count; i++)
        addresses[i] = gpu_text(&sweep->runners[i], "pci");
    lb_allowed_cpus(sweep->allowed_cpus);
    if (lb_divide_cpus("", sweep->allowed_cpus, addresses, sweep->runner_count, cpus,
                       sweep->spare_cpus, &why) != LB_OK) {
        fprintf(stderr, "warning: the devices share all CPUs: %s\n", why.text);
        return;
    }
    for (size_t i = 0; i < sweep->runner_count; i++) {
        struct runner *runner = &sweep->runners[i];
        char node[40] = "";
        runner->cpus = cpus[i];
        lb_pool_bind(runner->pool, runner->cpus.list);
        lb_pool_renew(runner->pool); /* its worker began elsewhere */
        if (cpus[i].node >= 0)
            snprintf(node, sizeof(node), " of NUMA node %d", cpus[i].node);
        if (!quiet || cpus[i].shared)
            fprintf(stderr, "%sdevice %d  %s, %s: CPUs %s%s%s\n", cpus[i].shared ? "warning: " : "",
                    gpu_ordinal(runner), gpu_text(runner, "name"), gpu_text(runner, "uuid"),
                    cpus[i].list, node,
                    cpus[i].shared ? ", which it shares, because there are fewer cores than devices"
                                   : "");
        if (i > 0 && strcmp(gpu_text(runner, "name"), gpu_text(&sweep->runners[0], "name")) != 0)
            fprintf(stderr,
                    "warning: device %d is of another kind than device %d: each case runs on one "
                    "of them, and there are no ratios between the kinds\n",
                    gpu_ordinal(runner), gpu_ordinal(&sweep->runners[0]));
    }
}

static enum lb_status open_runner(struct sweep *sweep, int device, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_error why = {""};
    struct runner *runner = &sweep->runners[sweep->runner_count++];
    struct lb_worker_limits limits = sweep->settings.limits;
    limits.device = device;
    runner->sweep = sweep;
    runner->own.warning = runner->warning;
    runner->place = &runner->own;
    LB_TRY(lb_pool_create(&limits, sweep->session->stop, &runner->pool, err));
    st = lb_pool_find_device(runner->pool, &runner->gpu, &why);
    if (st != LB_OK && st != LB_INTERRUPTED)
        st = lb_fail(err, LB_INVALID, "--devices: %.480s", why.text);
done:
    return st;
}

/* Opens the devices of --devices; none without it. LB_INVALID: one of them can't be used. */
static enum lb_status open_runners(struct sweep *sweep, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_settings *settings = &sweep->settings;
    bool all = sweep->session->options->devices && settings->device_count == 0;
    if (settings->device_count == 0 && !all)
        return LB_OK;
    sweep->runners = calloc(LB_MAX_DEVICES, sizeof(*sweep->runners));
    sweep->given_back = calloc(LB_MAX_DEVICES, sizeof(*sweep->given_back));
    if (!sweep->runners || !sweep->given_back)
        return lb_fail(err, LB_OOM, "out of memory for %d devices", LB_MAX_DEVICES);
    lb_pool_renew(sweep->session->pool); /* a worker there may hold a device */
    LB_TRY(open_runner(sweep, settings->devices[0], err));
    if (all) {
        json_int_t visible = json_integer_value(json_object_get(sweep->runners[0].gpu, "visible"));
        do
            settings->devices[settings->device_count] = (int)settings->device_count;
        while (++settings->device_count < LB_MAX_DEVICES &&
               (json_int_t)settings->device_count < visible);
    }
    while (sweep->runner_count < settings->device_count)
        LB_TRY(open_runner(sweep, settings->devices[sweep->runner_count], err));
    settings->limits.device = settings->devices[0];
    if (pthread_barrier_init(&sweep->together, NULL, (unsigned)sweep->runner_count) != 0)
        LB_TRY(lb_fail(err, LB_FAILED, "--devices: a barrier of threads could not be made"));
    divide_cpus(sweep);
done:
    return st;
}

/* Puts the environment of each device into a header or a resume line, and numbers them among those
 * of the run that is resumed; known: NULL for a new run. */
static enum lb_status describe_runners(struct sweep *sweep, json_t *known, json_t *object,
                                       struct lb_error *err)
{
    enum lb_status st = LB_OK;
    json_t *list = json_array();
    bool done = list != NULL;
    if (sweep->runner_count == 0) {
        json_decref(list);
        return LB_OK;
    }
    for (size_t i = 0; i < sweep->runner_count && done && st == LB_OK; i++) {
        struct runner *runner = &sweep->runners[i];
        json_t *environment = json_deep_copy(json_object_get(object, "environment"));
        runner->own.environment = i;
        lb_gpu_describe(runner->gpu, environment);
        if (known)
            st = lb_run_find_environment(known, environment, &runner->own.environment, err);
        done = json_array_append_new(list, environment) == 0;
    }
    done = done && json_object_set(object, "environment", json_array_get(list, 0)) == 0 &&
           json_object_set(object, "environments", list) == 0;
    json_decref(list);
    sweep->main.place = &sweep->runners[0].own;
    return done ? st : lb_fail(err, LB_OOM, "out of memory for the devices");
}

static bool runs_on_device(const struct sweep *sweep, const struct lb_case *c)
{
    const struct lb_impl_entry *impl_entry = lb_registry_find(sweep->session->registry, c->impl);
    return impl_entry && !impl_entry->absent && impl_entry->memory == LB_DEVICE;
}

/* Parts the cases: those of devices go to sweep->deal, the others to *host [*host_count], which the
 * caller frees. */
static enum lb_status part_cases(struct sweep *sweep, struct lb_case **host, size_t *host_count,
                                 struct lb_error *err)
{
    size_t on_device = 0;
    struct lb_case *device = calloc(sweep->count + 1, sizeof(*device));
    *host = calloc(sweep->count + 1, sizeof(**host));
    *host_count = 0;
    enum lb_status st =
        device && *host ? LB_OK : lb_fail(err, LB_OOM, "out of memory for %zu cases", sweep->count);
    for (size_t i = 0; i < sweep->count && st == LB_OK; i++) {
        if (runs_on_device(sweep, &sweep->cases[i]))
            device[on_device++] = sweep->cases[i];
        else
            (*host)[(*host_count)++] = sweep->cases[i];
    }
    if (st == LB_OK)
        st = lb_deal_create(device, on_device, &sweep->settings.sampler, &sweep->deal, err);
    free(device);
    return st;
}

static void start_clock(struct sweep *sweep)
{
    sweep->start_ns = lb_now_ns();
    lb_progress_start(&sweep->progress, sweep->count * (size_t)rounds_of(&sweep->settings));
    sweep->progress.quiet = sweep->session->options->quiet;
}

/* Runs these cases one after the other, in the workers of the program itself. */
static enum lb_status run_here(struct sweep *sweep, const struct lb_case *cases, size_t count,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t chunk = sweep->settings.processes > 1 ? PROCESSES_CHUNK : CHUNK;
    for (size_t first = 0; first < count && !interrupted(sweep); first += chunk) {
        size_t left = count - first;
        LB_TRY(run_chunk(sweep, &cases[first], left < chunk ? left : chunk, err));
        if (sweep->err.text[0])
            LB_TRY(lb_fail(err, LB_FAILED, "%s", sweep->err.text));
    }
done:
    return st;
}

/* Runs the cases of all devices, and then, with all devices at rest, those of the host. */
static enum lb_status run_on_devices(struct sweep *sweep, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_case *host = NULL;
    size_t host_count = 0;
    LB_TRY(part_cases(sweep, &host, &host_count, err));
    if (sweep->spare_cpus[0])
        lb_bind_cpus(sweep->spare_cpus);
    bool works = sweep->deal.count > 0 || sweep->settings.shard;
    if (works)
        LB_TRY(begin_devices(sweep, err));
    start_clock(sweep);
    if (works && !interrupted(sweep) && !has_failed(sweep))
        run_on_all(sweep, serve_device);
    LB_TRY(skip_rest(sweep, err));
    close_runners(sweep);
    if (sweep->err.text[0])
        LB_TRY(lb_fail(err, LB_FAILED, "%s", sweep->err.text));
    if (sweep->spare_cpus[0])
        lb_bind_cpus(sweep->allowed_cpus);
    st = run_here(sweep, host, host_count, err);
done:
    free(host);
    return st;
}

static enum lb_status run_all(struct sweep *sweep, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (sweep->count > 0)
        warn_of_busy_machine();
    LB_TRY(choose_canaries(sweep, err));
    if (sweep->runner_count > 0) {
        LB_TRY(run_on_devices(sweep, err));
    } else {
        LB_TRY(run_canaries(&sweep->main, "start", NULL, err));
        start_clock(sweep);
        LB_TRY(run_here(sweep, sweep->cases, sweep->count, err));
        st = run_canaries(&sweep->main, "end", NULL, err);
    }
done:
    lb_progress_end(&sweep->progress);
    return st;
}

static int exit_code_of(const struct lb_run *run)
{
    size_t ok = 0;
    for (size_t i = 0; i < run->count; i++) {
        if (lb_verdict_is_failure(run->rows[i].verdict))
            return LB_EXIT_FAILED;
        ok += run->rows[i].verdict == LB_VERDICT_OK;
    }
    bool empty_shard = run->count == 0 && json_object_get(run->header, "shard");
    return ok > 0 || empty_shard ? LB_EXIT_FINE : LB_EXIT_NOTHING;
}

/* Ends a line with the command that resumes the run: what only a command line may name, plug-ins
 * and the file to tune into, is given again. */
static void print_resume(const struct sweep *sweep, const char *folder, const char *more)
{
    const struct lb_options *options = sweep->session->options;
    char word[4 * 4096 + 4];
    lb_shell_word(folder, word, sizeof(word));
    fprintf(stderr, "bench-lstm --resume %s%s", word, more);
    for (size_t i = 0; i < options->plugin_count; i++) {
        lb_shell_word(options->plugins[i], word, sizeof(word));
        fprintf(stderr, " --plugin %s", word);
    }
    if (options->tuned) {
        lb_shell_word(options->tuned, word, sizeof(word));
        fprintf(stderr, " --tuned %s", word);
    }
    fprintf(stderr, "\n");
}

/* Says how many cases were measured while others used their CPUs or the machine was slow, which
 * those are, and what measures them again. */
static void say_noisy(const struct sweep *sweep, const struct lb_run *run, const char *folder)
{
    enum { NAMED = 10 };
    char id[LB_CASE_ID_SIZE];
    size_t noisy = 0;
    for (size_t i = 0; i < run->count; i++)
        noisy += is_noisy(&run->rows[i]);
    if (noisy == 0)
        return;
    fprintf(
        stderr,
        "noisy     %zu of %zu case%s %s measured while other programs used more than %.0f %% of "
        "%s CPUs, or while the machine was more than %.0f %% slower than in most of the run:\n",
        noisy, run->count, run->count == 1 ? "" : "s", noisy == 1 ? "was" : "were",
        100 * LB_BUSY_SHARE, noisy == 1 ? "its" : "their", 100 * (LB_SLOW_MACHINE - 1));
    for (size_t i = 0, named = 0; i < run->count && named < NAMED; i++) {
        if (!is_noisy(&run->rows[i]))
            continue;
        lb_case_print(&run->rows[i].c, id);
        if (run->rows[i].others_share > LB_BUSY_SHARE)
            fprintf(stderr, "          %s (others %.0f %%)\n", id, 100 * run->rows[i].others_share);
        else
            fprintf(stderr, "          %s (%.0f %% slower)\n", id,
                    100 * (run->rows[i].slowdown - 1));
        named++;
    }
    if (noisy > NAMED)
        fprintf(stderr, "          and %zu more\n", noisy - NAMED);
    fprintf(stderr, "          measure %s again with: ", noisy == 1 ? "it" : "them");
    print_resume(sweep, folder, " --retry noisy");
}

/* Runs the cases, closes the file and writes all other outputs from it. Failures from here on are
 * LB_FAILED, because cases have run. */
static enum lb_status run_and_finish(struct sweep *sweep, const char *folder, int *exit_code,
                                     struct lb_error *err)
{
    struct lb_run run = {0};
    enum lb_status st = run_all(sweep, err);
    /* Even a failed sweep finishes its file. What is reported then is why the sweep failed. */
    enum lb_status closed =
        lb_run_finish(&sweep->file, interrupted(sweep) || st != LB_OK, st == LB_OK ? err : NULL);
    lb_run_close(&sweep->file);
    if (st == LB_OK)
        st = closed;
    LB_TRY(st);
    LB_TRY(lb_run_read_by(folder, LB_BY_DEFAULT, &run, err));
    lb_warn(run.doubt);
    st = lb_derive_outputs(&run, folder, sweep->session->options, sweep->settings.baseline, err);
    say_noisy(sweep, &run, folder);
    bool stopped = interrupted(sweep); /* possibly while pictures were drawn */
    *exit_code = stopped ? LB_EXIT_INTERRUPTED : exit_code_of(&run);
    if (stopped) {
        fprintf(stderr, "interrupted; continue with: ");
        print_resume(sweep, folder, "");
    }
done:
    lb_run_free(&run);
    return st == LB_OK || st == LB_INTERRUPTED ? st : LB_FAILED;
}

enum lb_status lb_name_folder(const char *out, char *folder, size_t size, struct lb_error *err)
{
    if (out) {
        snprintf(folder, size, "%s", out);
        return LB_OK;
    }
    char stamp[64];
    time_t now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H-%M-%SZ", gmtime_r(&now, &utc));
    if (mkdir("bench-lstm-runs", 0777) != 0 && errno != EEXIST)
        return lb_fail(err, LB_INVALID, "bench-lstm-runs: %s; give a folder with --out",
                       strerror(errno));
    for (int i = 1; i < 100; i++) {
        snprintf(folder, size, "bench-lstm-runs/%s%s%.0d", stamp, i > 1 ? "-" : "", i > 1 ? i : 0);
        if (mkdir(folder, 0777) == 0)
            return LB_OK;
        if (errno != EEXIST)
            break;
    }
    return lb_fail(err, LB_INVALID, "%s: %s; give a folder with --out", folder, strerror(errno));
}

/* Hands the arguments in the settings to Google Benchmark. The processes of a case are spread over
 * its chunk in random order, so that a drift of the machine shows as a difference between them. */
static enum lb_status configure_gbench(const struct lb_settings *settings, struct lb_error *err)
{
    char repetitions[64], interleaving[] = "--benchmark_enable_random_interleaving=true";
    size_t count = settings->benchmark_count;
    char **all = calloc(count + 2, sizeof(*all));
    if (!all)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < count; i++)
        all[i] = settings->benchmark[i];
    if (settings->processes > 1) {
        snprintf(repetitions, sizeof(repetitions), "--benchmark_repetitions=%d",
                 rounds_of(settings));
        all[count++] = repetitions;
        all[count++] = interleaving;
    }
    enum lb_status st = lb_gbench_configure(count, all, err);
    free(all);
    return st;
}

/* Keeps the cases that Google Benchmark's filter matches, in place. */
static enum lb_status filter_cases(struct lb_case *cases, size_t *count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t kept = 0;
    char(*ids)[LB_CASE_ID_SIZE] = calloc(*count + 1, sizeof(*ids));
    const char **names = calloc(*count + 1, sizeof(*names));
    bool *keep = calloc(*count + 1, sizeof(*keep));
    if (!ids || !names || !keep) {
        st = lb_fail(err, LB_OOM, "out of memory");
        goto done;
    }
    for (size_t i = 0; i < *count; i++) {
        lb_case_print(&cases[i], ids[i]);
        names[i] = ids[i];
    }
    LB_TRY(lb_gbench_filter(names, *count, keep, err));
    for (size_t i = 0; i < *count; i++)
        if (keep[i])
            cases[kept++] = cases[i];
    *count = kept;
    if (kept == 0)
        st = lb_fail(err, LB_INVALID, "--benchmark_filter: no case matches");
done:
    free(keep);
    free(names);
    free(ids);
    return st;
}

enum lb_status lb_sweep_filter(const struct lb_options *options, struct lb_plan *plan,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_settings settings = {0};
    LB_TRY(lb_settings_from_options(options, &settings, err));
    LB_TRY(configure_gbench(&settings, err));
    if (options->benchmark_filter && plan->count > 0)
        LB_TRY(filter_cases(plan->cases, &plan->count, err));
done:
    lb_settings_free(&settings);
    return st;
}

/* Notes in the settings which part of a plan this is, and the canaries of its device. */
static enum lb_status note_shard(struct sweep *sweep, const struct lb_plan *plan,
                                 struct lb_error *err)
{
    const struct lb_shard *shard = &plan->shard;
    const struct lb_session *session = sweep->session;
    struct lb_settings *settings = &sweep->settings;
    bool device = session->gpu || sweep->runner_count > 0;
    struct lb_case canaries[LB_CANARY_COUNT];
    char hash[17];
    json_t *texts = json_array();
    if (shard->count == 0) {
        json_decref(texts);
        return LB_OK;
    }
    lb_canaries_choose(session->registry, device, shard->threads, canaries);
    for (size_t i = 0; i < LB_CANARY_COUNT; i++) {
        char text[LB_CASE_ID_SIZE];
        lb_case_print(&canaries[i], text);
        json_array_append_new(texts, json_string(text));
    }
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)shard->plan_hash);
    settings->shard =
        json_pack("{s:i, s:i, s:s, s:I, s:o}", "index", shard->index, "count", shard->count, "plan",
                  hash, "plan_cases", (json_int_t)shard->plan_count, "canaries", texts);
    return settings->shard ? LB_OK : lb_fail(err, LB_OOM, "out of memory for the shard");
}

static enum lb_status create_sweep(const struct lb_session *session, struct sweep **out,
                                   struct lb_error *err)
{
    struct sweep *sweep = *out = calloc(1, sizeof(*sweep));
    if (!sweep)
        return lb_fail(err, LB_OOM, "out of memory");
    sweep->session = session;
    sweep->main = (struct runner){.sweep = sweep, .pool = session->pool};
    pthread_mutex_init(&sweep->lock, NULL);
    pthread_cond_init(&sweep->problem_done, NULL);
    return LB_OK;
}

static void destroy_sweep(struct sweep *sweep)
{
    close_runners(sweep);
    lb_run_close(&sweep->file);
    lb_settings_free(&sweep->settings);
    lb_deal_free(&sweep->deal);
    free(sweep->alone.items);
    free(sweep->busy.items);
    free(sweep->given_back);
    free(sweep->runners);
    pthread_mutex_destroy(&sweep->lock);
    pthread_cond_destroy(&sweep->problem_done);
    free(sweep);
}

/* LB_INVALID when --devices has nothing to do. */
static enum lb_status check_devices(const struct sweep *sweep, const struct lb_plan *plan,
                                    struct lb_error *err)
{
    size_t i = 0;
    while (i < plan->count && !runs_on_device(sweep, &plan->cases[i]))
        i++;
    if (!sweep->session->options->devices || i < plan->count || plan->shard.count > 0)
        return LB_OK;
    return lb_fail(err, LB_INVALID,
                   "--devices: no case runs on a GPU: leave it out, or choose implementations that "
                   "do with --impl");
}

enum lb_status lb_sweep(const struct lb_session *session, const struct lb_plan *plan,
                        int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char folder[4096];
    json_t *header = NULL;
    struct sweep *sweep;
    if (create_sweep(session, &sweep, err) != LB_OK)
        return LB_OOM;
    sweep->cases = plan->cases;
    sweep->count = plan->count;
    LB_TRY(lb_settings_from_options(session->options, &sweep->settings, err));
    LB_TRY(open_runners(sweep, err));
    LB_TRY(check_devices(sweep, plan, err));
    LB_TRY(note_shard(sweep, plan, err));
    LB_TRY(lb_check_derived_outputs(session->options, err));
    LB_TRY(configure_gbench(&sweep->settings, err));
    LB_TRY(lb_settings_to_header(&sweep->settings, plan->cases, sweep->count, session->libraries,
                                 &header, err));
    lb_gpu_annotate(session, json_object_get(header, "environment"));
    LB_TRY(describe_runners(sweep, NULL, header, err));
    LB_TRY(lb_name_folder(session->options->out, folder, sizeof(folder), err));
    LB_TRY(lb_run_create(folder, header, &sweep->file, err));
    LB_TRY(run_and_finish(sweep, folder, exit_code, err));
done:
    json_decref(header);
    destroy_sweep(sweep);
    return st;
}

/* Whether the case of a row is run again: always when it was skipped, and as --retry and
 * --retry noisy say. */
static bool is_run_again(const struct lb_row *row, const struct lb_options *options)
{
    return row->verdict == LB_VERDICT_SKIPPED || (options->retry & 1U << row->verdict) ||
           (options->retry_noisy && is_noisy(row));
}

/* Drops the cases that the run has done, in place. Those that are run again are kept: when the run
 * is read, their new rows replace the old ones. *done_count: how many cases are done. */
static enum lb_status drop_done(const struct lb_run *run, const struct lb_options *options,
                                struct lb_case *cases, size_t *count, size_t *done_count,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_case_set seen = {0};
    size_t kept = 0, first, rows = 0;
    struct lb_case *all = calloc(run->count + *count + 1, sizeof(*all));
    if (!all)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < run->count; i++) {
        if (is_run_again(&run->rows[i], options))
            continue;
        all[rows] = run->rows[i].c;
        LB_TRY(lb_case_set_add(&seen, all, rows++, &first, err));
    }
    for (size_t i = 0; i < *count; i++) {
        size_t index = rows + i;
        all[index] = cases[i];
        LB_TRY(lb_case_set_add(&seen, all, index, &first, err));
        if (first == index)
            cases[kept++] = cases[i];
    }
    *count = kept;
    *done_count = rows;
done:
    lb_case_set_free(&seen);
    free(all);
    return st;
}

static void warn_of_other_environment(const struct lb_run *run, const json_t *now)
{
    char what[256];
    if (lb_environment_differs(json_object_get(run->header, "environment"), now, what,
                               sizeof(what)))
        fprintf(stderr,
                "warning: the run began in another environment (%s): do not compare its earlier "
                "times with the new ones\n",
                what);
}

/* The registry must have the implementations of the cases that are left. A plug-in that the run
 * loaded is code, and the run may be somebody else's: only the command line can name it. */
static enum lb_status check_known(const struct lb_session *session,
                                  const struct lb_settings *settings, const struct lb_case *cases,
                                  size_t count, struct lb_error *err)
{
    char names[300] = "";
    size_t i = 0;
    while (i < count && lb_registry_find(session->registry, cases[i].impl))
        i++;
    for (size_t k = 0; k < settings->plugin_count; k++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, " --plugin %s", settings->plugins[k]);
    }
    if (i == count || settings->plugin_count == 0)
        return LB_OK;
    return lb_fail(err, LB_INVALID,
                   "--resume: %s comes from a plug-in, which a run's file may not load by itself; "
                   "if you trust it, give it again:%s",
                   cases[i].impl, names);
}

/* Opens the run and prepares to continue it with its own settings. Writes nothing. */
static enum lb_status prepare_resume(struct lb_session *session, struct sweep *sweep,
                                     const char *folder, struct lb_run *run, struct lb_case **cases,
                                     struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_settings *settings = &sweep->settings;
    LB_TRY(lb_run_open(folder, &sweep->file, run, err));
    if (json_object_get(run->header, "interleaved"))
        LB_TRY(lb_fail(err, LB_INVALID,
                       "--resume %s: this run is one side of --ab, measured in turn with the other "
                       "side: run --ab again",
                       folder));
    if (json_is_true(json_object_get(run->header, "merged")))
        LB_TRY(lb_fail(
            err, LB_INVALID,
            "--resume %s: this run was merged from others: resume these, and merge again", folder));
    LB_TRY(lb_settings_from_run(run, session->options, settings, cases, &sweep->count, err));
    LB_TRY(lb_settings_tune(settings->tune, settings->tuned, err));
    lb_pool_limit(session->pool, &settings->limits);
    LB_TRY(configure_gbench(settings, err));
    if (lb_gpu_wanted(session, NULL))
        LB_TRY(lb_gpu_find(session, err));
done:
    return st;
}

/* The folder of a run that was named by its folder or, as other commands allow, by its run.jsonl.
 */
static void folder_of_run(const char *word, char *folder, size_t size)
{
    const char *slash = strrchr(word, '/');
    if (strcmp(slash ? slash + 1 : word, LB_RUN_FILE_NAME) != 0)
        snprintf(folder, size, "%s", word);
    else
        snprintf(folder, size, "%.*s", slash ? (int)(slash - word) + 1 : 1, slash ? word : ".");
}

/* Says how far the run is that goes on, and what is wrong with its file. */
static void say_left(const struct lb_options *options, const struct lb_run *run, const char *path,
                     size_t done_count, size_t left)
{
    char folder[4096];
    snprintf(folder, sizeof(folder), "%s", path);
    lb_clean_text(folder); /* its name may hold escape sequences */
    lb_warn(run->doubt);
    if (!options->quiet)
        fprintf(stderr, "%s: %zu %s done, %zu %s left to run\n", folder, done_count,
                done_count == 1 ? "case is" : "cases are", left,
                left == 1 ? "case is" : "cases are");
}

enum lb_status lb_sweep_resume(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    char folder[4096];
    enum lb_status st = LB_OK;
    struct lb_run run = {0};
    struct lb_case *cases = NULL;
    json_t *details = NULL;
    size_t done_count = 0;
    struct sweep *sweep;
    if (create_sweep(session, &sweep, err) != LB_OK)
        return LB_OOM;
    LB_TRY(lb_check_derived_outputs(session->options, err));
    folder_of_run(session->options->subject, folder, sizeof(folder));
    LB_TRY(prepare_resume(session, sweep, folder, &run, &cases, err));
    LB_TRY(open_runners(sweep, err));
    LB_TRY(lb_settings_to_resume(&sweep->settings, session->options, session->libraries, &details,
                                 err));
    lb_gpu_annotate(session, json_object_get(details, "environment"));
    LB_TRY(describe_runners(sweep, run.environments, details, err));
    warn_of_other_environment(&run, json_object_get(details, "environment"));
    LB_TRY(drop_done(&run, session->options, cases, &sweep->count, &done_count, err));
    LB_TRY(check_known(session, &sweep->settings, cases, sweep->count, err));
    LB_TRY(lb_run_resume(&sweep->file, details, err));
    sweep->file.rows = done_count;
    say_left(session->options, &run, folder, done_count, sweep->count);
    sweep->cases = cases;
    LB_TRY(run_and_finish(sweep, folder, exit_code, err));
done:
    lb_run_free(&run);
    json_decref(details);
    free(cases);
    destroy_sweep(sweep);
    return st;
}
