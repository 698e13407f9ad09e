/* Threads that share the steps of one call.
 *
 * A barrier is a counter of arrivals and a phase; who arrives last opens the next phase. Waiting
 * means to look at the phase some thousand times, then to sleep on a condition variable: a step's
 * work is over sooner, but where other programs hold the CPUs, spinning on would only slow down the
 * thread that is waited for. */
#include "impls/cpu_simd/cpu_team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_THREADS = 256, LOOKS = 4000 /* some 50 us */ };

struct member {
    size_t thread;
    unsigned call; /* the last one before it was started */
    pthread_t id;
};

struct lb_team {
    size_t threads; /* of the open team */
    size_t started; /* members that live, the caller's thread counted */
    /* Words that are waited on: call is how many there were, times MOST_THREADS, plus how many
     * threads the last one has; so a member left out sees that it is. */
    atomic_uint call, phase;
    atomic_uint arrived, sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void (*work)(void *arg, size_t thread);
    void *arg;
    cpu_set_t cpus; /* what the caller could use before it was pinned */
    struct member members[MOST_THREADS];
};

static struct lb_team the_team = {
    .threads = 1,
    .started = 1,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
};

/* Leaves the core's units to its other thread while this one looks. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Returns the word's value once it is no longer `before`. */
static unsigned wait_for_change(struct lb_team *team, atomic_uint *word, unsigned before)
{
    unsigned now;
    for (int i = 0; i < LOOKS; i++) {
        now = atomic_load_explicit(word, memory_order_acquire);
        if (now != before)
            return now;
        relax();
    }
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&team->sleepers, 1);
    while ((now = atomic_load(word)) == before)
        pthread_cond_wait(&team->changed, &team->mutex);
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->mutex);
    return now;
}

static void change(struct lb_team *team, atomic_uint *word, unsigned value)
{
    atomic_store(word, value); /* before looking for sleepers: none falls asleep unseen */
    if (atomic_load(&team->sleepers) == 0)
        return;
    pthread_mutex_lock(&team->mutex);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->mutex);
}

void lb_team_meet(struct lb_team *team)
{
    if (!team)
        return;
    unsigned before = atomic_load(&team->phase);
    if (atomic_fetch_add(&team->arrived, 1) + 1 < team->threads) {
        wait_for_change(team, &team->phase, before);
        return;
    }
    atomic_store(&team->arrived, 0);
    change(team, &team->phase, before + 1);
}

static void *serve(void *arg)
{
    struct lb_team *team = &the_team;
    struct member *member = arg;
    unsigned call = member->call;
    for (;;) {
        call = wait_for_change(team, &team->call, call);
        if (member->thread >= call % MOST_THREADS)
            continue;
        team->work(team->arg, member->thread);
        lb_team_meet(team);
    }
    return NULL;
}

void lb_team_run(struct lb_team *team, void (*work)(void *arg, size_t thread), void *arg)
{
    if (!team) {
        work(arg, 0);
        return;
    }
    team->work = work;
    team->arg = arg;
    unsigned count = atomic_load(&team->call) / MOST_THREADS + 1;
    change(team, &team->call, count * MOST_THREADS + (unsigned)team->threads);
    work(arg, 0);
    lb_team_meet(team);
}

static void pin(pthread_t id, size_t cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(id, sizeof(one), &one); /* where it is refused, the scheduler places */
}

static enum lb_status start_members(struct lb_team *team, size_t threads, struct lb_error *err)
{
    for (; team->started < threads; team->started++) {
        struct member *member = &team->members[team->started];
        member->thread = team->started;
        member->call = atomic_load(&team->call);
        int failed = pthread_create(&member->id, NULL, serve, member);
        if (failed)
            return lb_fail(err, LB_FAILED, "starting thread %zu: %s", member->thread,
                           strerror(failed));
        pthread_detach(member->id);
    }
    return LB_OK;
}

enum lb_status lb_team_open(int threads, struct lb_team **out, struct lb_error *err)
{
    struct lb_team *team = &the_team;
    enum lb_status st = LB_OK;
    *out = NULL;
    if (threads >= MOST_THREADS)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: at most %d", threads, MOST_THREADS - 1);
    if (pthread_getaffinity_np(pthread_self(), sizeof(team->cpus), &team->cpus) != 0)
        CPU_ZERO(&team->cpus);
    if (CPU_COUNT(&team->cpus) < threads)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this process may use %d CPUs", threads,
                       CPU_COUNT(&team->cpus));
    LB_TRY(start_members(team, (size_t)threads, err));
    team->members[0].id = pthread_self();
    team->threads = (size_t)threads;
    for (size_t cpu = 0, thread = 0; thread < (size_t)threads && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &team->cpus))
            pin(team->members[thread++].id, cpu);
    *out = team;
done:
    return st;
}

void lb_team_close(struct lb_team *team)
{
    if (team)
        pthread_setaffinity_np(pthread_self(), sizeof(team->cpus), &team->cpus);
}
