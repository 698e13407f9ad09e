/* The process's threads: independent parts, and step loops with barriers.
 *
 * A call raises the pool's call word, and a barrier is a counter of arrivals and a phase word: the
 * thread that arrives last opens the next phase. To wait for a word to change a thread polls it
 * some thousand times and then sleeps on a condition variable. A step's work is over sooner than
 * that, but where other programs hold the CPUs, polling on would only slow down the thread that is
 * waited for. */
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum {
    MAX_THREADS = 256,
    MAX_PART_THREADS = 16, /* for independent parts: beyond it the oracle's GEMMs gain little */
    SPIN_LIMIT = 4000      /* polls before a thread sleeps: some 50 us */
};

/* A value that threads wait on. Each word has sleepers of its own, so that a barrier does not wake
 * the threads that wait for the next call. */
struct word {
    atomic_uint value, sleepers;
    pthread_cond_t changed;
};

struct member {
    size_t thread;
    unsigned call; /* value of the call word when the thread was started */
    pthread_t id;
};

static struct {
    /* call is the number of calls so far, times MAX_THREADS, plus how many threads the latest one
     * has, so that a thread which is not needed sees that it is not. */
    struct word call, phase;
    atomic_uint arrived; /* threads that have reached the barrier */
    size_t threads;      /* of the latest call */
    size_t started;      /* threads that live, the caller's counted */
    pthread_mutex_t mutex;
    void (*work)(void *arg, size_t thread);
    void *arg;
    struct member members[MAX_THREADS];
} pool = {
    .call.changed = PTHREAD_COND_INITIALIZER,
    .phase.changed = PTHREAD_COND_INITIALIZER,
    .threads = 1,
    .started = 1,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
};

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
static unsigned wait_for_change(struct word *word, unsigned before)
{
    unsigned now;
    for (int i = 0; i < SPIN_LIMIT; i++) {
        now = atomic_load_explicit(&word->value, memory_order_acquire);
        if (now != before)
            return now;
        relax();
    }
    pthread_mutex_lock(&pool.mutex);
    atomic_fetch_add(&word->sleepers, 1);
    while ((now = atomic_load(&word->value)) == before)
        pthread_cond_wait(&word->changed, &pool.mutex);
    atomic_fetch_sub(&word->sleepers, 1);
    pthread_mutex_unlock(&pool.mutex);
    return now;
}

static void change(struct word *word, unsigned value)
{
    /* The store comes before the look for sleepers, so no thread falls asleep unseen. */
    atomic_store(&word->value, value);
    if (atomic_load(&word->sleepers) == 0)
        return;
    pthread_mutex_lock(&pool.mutex);
    pthread_cond_broadcast(&word->changed);
    pthread_mutex_unlock(&pool.mutex);
}

/* Returns when all threads of the latest call have called it. */
static void barrier(void)
{
    unsigned before = atomic_load(&pool.phase.value);
    size_t threads =
        pool.threads; /* read first: once all have arrived another call may change it */
    if (atomic_fetch_add(&pool.arrived, 1) + 1 < threads) {
        wait_for_change(&pool.phase, before);
        return;
    }
    atomic_store(&pool.arrived, 0);
    change(&pool.phase, before + 1);
}

static void *serve(void *arg)
{
    struct member *member = arg;
    unsigned call = member->call;
    for (;;) {
        call = wait_for_change(&pool.call, call);
        if (member->thread >= call % MAX_THREADS)
            continue;
        pool.work(pool.arg, member->thread);
        barrier();
    }
    return NULL;
}

/* Starts threads until so many live, the caller's counted; they may run where the caller may.
 * Returns the error number of the first that does not start, else 0. */
static int start_threads(size_t threads)
{
    for (; pool.started < threads; pool.started++) {
        struct member *member = &pool.members[pool.started];
        member->thread = pool.started;
        member->call = atomic_load(&pool.call.value);
        int failed = pthread_create(&member->id, NULL, serve, member);
        if (failed)
            return failed;
        pthread_detach(member->id);
    }
    return 0;
}

/* Calls work(arg, thread) on so many threads, which have been started. */
static void run_on(size_t threads, void (*work)(void *arg, size_t thread), void *arg)
{
    if (threads < 2) {
        work(arg, 0);
        return;
    }
    pool.work = work;
    pool.arg = arg;
    pool.threads = threads;
    unsigned calls = atomic_load(&pool.call.value) / MAX_THREADS + 1;
    change(&pool.call, calls * MAX_THREADS + (unsigned)threads);
    work(arg, 0);
    barrier();
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

void lb_thread_pool_run(void (*work)(void *user, size_t part, size_t parts), void *user,
                        size_t parts)
{
    struct parts all = {.work = work, .user = user, .count = parts};
    size_t threads = parts < MAX_THREADS ? parts : MAX_THREADS - 1;
    start_threads(threads);
    run_on(threads < pool.started ? threads : pool.started, take_parts, &all);
}

/* Pinned threads. */

struct lb_pinned_threads {
    size_t threads;
    cpu_set_t cpus; /* what the caller could use before it was pinned */
};

static struct lb_pinned_threads the_pinned;

static void pin(pthread_t id, size_t cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(id, sizeof(one), &one); /* if refused, the scheduler decides */
}

enum lb_status lb_pinned_threads_open(int threads, struct lb_pinned_threads **out,
                                      struct lb_error *err)
{
    struct lb_pinned_threads *pinned = &the_pinned;
    *out = NULL;
    if (threads >= MAX_THREADS)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: at most %d are allowed", threads,
                       MAX_THREADS - 1);
    if (pthread_getaffinity_np(pthread_self(), sizeof(pinned->cpus), &pinned->cpus) != 0)
        CPU_ZERO(&pinned->cpus);
    if (CPU_COUNT(&pinned->cpus) < threads)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this process may use only %d CPUs",
                       threads, CPU_COUNT(&pinned->cpus));
    int failed = start_threads((size_t)threads);
    if (failed)
        return lb_fail(err, LB_FAILED, "starting thread %zu: %s", pool.started, strerror(failed));
    pinned->threads = (size_t)threads;
    pool.members[0].id = pthread_self();
    for (size_t cpu = 0, thread = 0; thread < pinned->threads && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &pinned->cpus))
            pin(pool.members[thread++].id, cpu);
    *out = pinned;
    return LB_OK;
}

void lb_pinned_threads_close(struct lb_pinned_threads *pinned)
{
    for (size_t i = 0; pinned && i < pinned->threads; i++)
        pthread_setaffinity_np(pool.members[i].id, sizeof(pinned->cpus), &pinned->cpus);
}

void lb_pinned_threads_run(struct lb_pinned_threads *pinned, void (*work)(void *arg, size_t thread),
                           void *arg)
{
    run_on(pinned ? pinned->threads : 1, work, arg);
}

void lb_pinned_threads_barrier(struct lb_pinned_threads *pinned)
{
    if (pinned)
        barrier();
}
