/* Threads for independent parts, and for step loops with barriers.
 *
 * A call raises the pool's call word. A barrier is a phase word and counters of arrivals: one for
 * the threads of each domain, which share a cache, and one for the domains, so that few arrivals
 * have to cross from cache to cache. The thread that arrives last opens the next phase. To wait for
 * a word to change a thread polls it some thousand times, longer than a step takes, and then sleeps
 * on a condition variable, since polling on would slow down a thread that has no CPU. */
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    MAX_THREADS = LB_MAX_PINNED_THREADS + 1,
    MAX_PART_THREADS = 16, /* for independent parts: beyond it the oracle's GEMMs gain little */
    SPIN_LIMIT = 4000      /* polls before a thread sleeps: some 50 us */
};

/* A value that threads wait on. A barrier does not wake those that sleep on another word. */
struct word {
    alignas(128) atomic_uint value;
    atomic_uint sleepers;
    pthread_cond_t changed;
};

struct member {
    struct pool *pool;
    size_t thread;
    unsigned call; /* value of the call word when the thread was started */
    pthread_t id;
};

/* Arrivals, in a cache line that no other counter shares. */
struct counter {
    alignas(128) atomic_uint arrived;
};

/* A thread's place in a barrier. Counters and phases have the index of the first thread that uses
 * them. */
struct place {
    size_t domain, domain_size; /* the domain's first thread and its number of threads */
    size_t group, domains; /* the first of the threads that meet, and their number of domains */
};

/* The barriers of one kind, with one element per thread. */
struct barriers {
    struct place places[MAX_THREADS];
    struct counter in_domain[MAX_THREADS], across[MAX_THREADS]; /* by domain, by group */
    struct word phases[MAX_THREADS];                            /* by group */
};

/* The barriers of all threads of a call, and those of teams. */
enum { ALL, TEAMS, KINDS };

struct pool {
    /* call is the number of calls so far, times MAX_THREADS, plus how many threads the latest one
     * has, so that a thread which is not needed sees that it is not. 0 threads: all end. */
    struct word call;
    struct barriers barriers[KINDS];
    bool ready;     /* the locks are initialised */
    size_t started; /* threads that live, without the caller's */
    int spin_limit; /* polls before a thread sleeps */
    pthread_mutex_t mutex;
    void (*work)(void *arg, size_t thread);
    void *arg;
    struct member members[MAX_THREADS];
};

static _Thread_local size_t own_thread; /* 0 on every thread that calls */

/* Leaves the core's execution units to its other hardware thread while this one polls. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Returns the word's value once it is no longer `before`. */
static unsigned wait_for_change(struct pool *pool, struct word *word, unsigned before)
{
    unsigned now;
    for (int i = pool->spin_limit; i > 0; i--) {
        now = atomic_load_explicit(&word->value, memory_order_acquire);
        if (now != before)
            return now;
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&word->sleepers, 1);
    while ((now = atomic_load(&word->value)) == before)
        pthread_cond_wait(&word->changed, &pool->mutex);
    atomic_fetch_sub(&word->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
    return now;
}

static void change(struct pool *pool, struct word *word, unsigned value)
{
    /* The store comes before the look for sleepers, so no thread falls asleep unseen. */
    atomic_store(&word->value, value);
    if (atomic_load(&word->sleepers) == 0)
        return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&word->changed);
    pthread_mutex_unlock(&pool->mutex);
}

/* Counts an arrival; returns whether it is the last of `count`. */
static bool arrive_last(struct counter *counter, size_t count)
{
    if (atomic_fetch_add(&counter->arrived, 1) + 1 < count)
        return false;
    /* First, since a released thread may arrive again at once. */
    atomic_store(&counter->arrived, 0);
    return true;
}

/* Waits until all threads of the group have called it. Everything is read before the thread
 * arrives, because once all have arrived another call may change the places. */
static void meet(struct pool *pool, int kind)
{
    struct barriers *barriers = &pool->barriers[kind];
    const struct place own = barriers->places[own_thread];
    struct word *phase = &barriers->phases[own.group];
    unsigned before = atomic_load(&phase->value);
    if (arrive_last(&barriers->in_domain[own.domain], own.domain_size) &&
        (own.domains == 1 || arrive_last(&barriers->across[own.group], own.domains)))
        change(pool, phase, before + 1);
    else
        wait_for_change(pool, phase, before);
}

/* Makes `count` threads from `first` on a group. pinned: where all threads run; NULL: the group is
 * one domain. */
static void form_group(struct barriers *barriers, size_t first, size_t count,
                       const struct lb_pinned_place *pinned)
{
    size_t domains = 0;
    for (size_t from = first, to; from < first + count; from = to) {
        for (to = from + 1; to < first + count; to++)
            if (pinned && pinned[to].domain != pinned[from].domain)
                break;
        for (size_t thread = from; thread < to; thread++)
            barriers->places[thread] =
                (struct place){.domain = from, .domain_size = to - from, .group = first};
        domains++;
    }
    for (size_t thread = first; thread < first + count; thread++)
        barriers->places[thread].domains = domains;
}

static void *serve(void *arg)
{
    struct member *member = arg;
    struct pool *pool = member->pool;
    unsigned call = member->call;
    own_thread = member->thread;
    while ((call = wait_for_change(pool, &pool->call, call)) % MAX_THREADS > 0) {
        if (member->thread >= call % MAX_THREADS)
            continue;
        pool->work(pool->arg, member->thread);
        meet(pool, ALL);
    }
    return NULL;
}

/* Starts threads until the pool has `threads`, the caller's counted. Returns the error number of
 * the first that does not start, else 0. */
static int start_threads(struct pool *pool, size_t threads)
{
    if (!pool->ready) {
        pthread_cond_init(&pool->call.changed, NULL);
        pthread_mutex_init(&pool->mutex, NULL);
        for (size_t i = 0; i < KINDS * MAX_THREADS; i++)
            pthread_cond_init(&pool->barriers[i % KINDS].phases[i / KINDS].changed, NULL);
        pool->ready = true;
    }
    while (pool->started + 1 < threads) {
        struct member *member = &pool->members[pool->started + 1];
        *member = (struct member){pool, pool->started + 1, atomic_load(&pool->call.value), 0};
        int failed = pthread_create(&member->id, NULL, serve, member);
        if (failed)
            return failed;
        pool->started++;
    }
    return 0;
}

/* Lets as many threads of the pool as that work, or end with 0. */
static void call_threads(struct pool *pool, size_t threads)
{
    unsigned calls = atomic_load(&pool->call.value) / MAX_THREADS + 1;
    change(pool, &pool->call, calls * MAX_THREADS + (unsigned)threads);
}

/* Calls work(arg, thread) on `threads` threads, which have been started. */
static void run_on(struct pool *pool, size_t threads, void (*work)(void *arg, size_t thread),
                   void *arg)
{
    if (threads < 2) {
        work(arg, 0);
        return;
    }
    pool->work = work;
    pool->arg = arg;
    call_threads(pool, threads);
    work(arg, 0);
    meet(pool, ALL);
}

/* Independent parts. */

size_t lb_thread_pool_size(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    return CPU_COUNT(&set) < MAX_PART_THREADS ? (size_t)CPU_COUNT(&set) : MAX_PART_THREADS;
}

struct parts {
    void (*work)(void *user, size_t part, size_t parts);
    void *user;
    size_t count;
    atomic_size_t next; /* the part to take next */
};

/* The work of one thread: takes parts until none is left. */
static void take_parts(void *arg, size_t thread)
{
    struct parts *parts = arg;
    (void)thread;
    for (size_t part; (part = atomic_fetch_add(&parts->next, 1)) < parts->count;)
        parts->work(parts->user, part, parts->count);
}

static struct pool parts_pool = {.spin_limit = SPIN_LIMIT};

size_t lb_thread_pool_started(void)
{
    return parts_pool.started;
}

void lb_thread_pool_run(void (*work)(void *user, size_t part, size_t parts), void *user,
                        size_t parts)
{
    struct pool *pool = &parts_pool;
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    struct parts all = {.work = work, .user = user, .count = parts};
    if (atomic_flag_test_and_set(&taken)) {
        take_parts(&all, 0);
        return;
    }
    size_t threads = parts < MAX_THREADS ? parts : MAX_THREADS - 1;
    start_threads(pool, threads);
    threads = threads < pool->started + 1 ? threads : pool->started + 1;
    form_group(&pool->barriers[ALL], 0, threads, NULL);
    run_on(pool, threads, take_parts, &all);
    atomic_flag_clear(&taken);
}

/* Pinned threads. */

struct lb_pinned_threads {
    struct pool pool;
    size_t threads;
    struct lb_pinned_place places[MAX_THREADS];
    cpu_set_t cpus; /* what the caller could use before it was pinned */
};

/* Gives the threads the CPUs that the caller may use, one after another. */
static enum lb_status take_own_cpus(struct lb_pinned_threads *pinned, struct lb_error *err)
{
    size_t thread = 0;
    if (CPU_COUNT(&pinned->cpus) < (int)pinned->threads)
        return lb_fail(err, LB_UNSUPPORTED, "threads %zu: this process may use only %d of the CPUs",
                       pinned->threads, CPU_COUNT(&pinned->cpus));
    for (int cpu = 0; cpu < CPU_SETSIZE && thread < pinned->threads; cpu++)
        if (CPU_ISSET((size_t)cpu, &pinned->cpus))
            pinned->places[thread++] = (struct lb_pinned_place){.cpu = cpu};
    return LB_OK;
}

/* How often a thread polls: not at all where two threads have the same CPU. */
static int spin_limit_of(const struct lb_pinned_threads *pinned)
{
    cpu_set_t taken;
    CPU_ZERO(&taken);
    for (size_t i = 0; i < pinned->threads; i++)
        CPU_SET((size_t)pinned->places[i].cpu, &taken);
    return (size_t)CPU_COUNT(&taken) < pinned->threads ? 0 : SPIN_LIMIT;
}

enum lb_status lb_pinned_threads_open(int threads, const struct lb_pinned_place *places,
                                      struct lb_pinned_threads **out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_pinned_threads *pinned = NULL;
    *out = NULL;
    if (threads > LB_MAX_PINNED_THREADS)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: at most %d are allowed", threads,
                       LB_MAX_PINNED_THREADS);
    pinned = lb_needed(aligned_alloc(alignof(struct lb_pinned_threads), sizeof(*pinned)));
    memset(pinned, 0, sizeof(*pinned));
    pthread_getaffinity_np(pthread_self(), sizeof(pinned->cpus), &pinned->cpus);
    pinned->threads = (size_t)threads;
    if (places)
        memcpy(pinned->places, places, pinned->threads * sizeof(*places));
    else
        LB_TRY(take_own_cpus(pinned, err));
    pinned->pool.spin_limit = spin_limit_of(pinned);
    int failed = start_threads(&pinned->pool, pinned->threads);
    if (failed)
        LB_TRY(lb_fail(err, LB_FAILED, "starting thread %zu: %s", pinned->pool.started + 1,
                       strerror(failed)));
    pinned->pool.members[0].id = pthread_self();
    for (size_t i = 0; i < pinned->threads; i++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)pinned->places[i].cpu, &one);
        /* If this is refused, the scheduler decides. */
        pthread_setaffinity_np(pinned->pool.members[i].id, sizeof(one), &one);
    }
    form_group(&pinned->pool.barriers[ALL], 0, pinned->threads, pinned->places);
    lb_pinned_threads_divide(pinned, pinned->threads);
    *out = pinned;
    pinned = NULL;
done:
    lb_pinned_threads_close(pinned);
    return st;
}

void lb_pinned_threads_divide(struct lb_pinned_threads *pinned, size_t size)
{
    for (size_t first = 0; pinned && first < pinned->threads; first += size)
        form_group(&pinned->pool.barriers[TEAMS], first,
                   pinned->threads - first < size ? pinned->threads - first : size, pinned->places);
}

void lb_pinned_threads_close(struct lb_pinned_threads *pinned)
{
    if (!pinned)
        return;
    call_threads(&pinned->pool, 0);
    for (size_t i = 1; i <= pinned->pool.started; i++)
        pthread_join(pinned->pool.members[i].id, NULL);
    pthread_setaffinity_np(pthread_self(), sizeof(pinned->cpus), &pinned->cpus);
    free(pinned);
}

void lb_pinned_threads_run(struct lb_pinned_threads *pinned, void (*work)(void *arg, size_t thread),
                           void *arg)
{
    if (pinned)
        run_on(&pinned->pool, pinned->threads, work, arg);
    else
        work(arg, 0);
}

void lb_pinned_threads_barrier(struct lb_pinned_threads *pinned)
{
    if (pinned)
        meet(&pinned->pool, ALL);
}

void lb_pinned_threads_team_barrier(struct lb_pinned_threads *pinned)
{
    if (pinned)
        meet(&pinned->pool, TEAMS);
}
