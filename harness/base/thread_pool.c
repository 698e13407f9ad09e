/* Threads that share work which falls into independent parts. They are started when they are first
 * needed, sleep in between, and end with the process. */
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST = 16, LOOKS = 4000 /* before a thread sleeps: some tens of microseconds */ };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t begins;
    size_t started; /* threads besides the caller's */
    void (*work)(void *user, size_t part, size_t parts);
    void *user;
    size_t parts;
    atomic_size_t round; /* of calls; a change is the sign to look at the fields above */
    atomic_size_t next;  /* part to take */
    atomic_size_t left;  /* threads that have not ended this round */
} crew = {.lock = PTHREAD_MUTEX_INITIALIZER, .begins = PTHREAD_COND_INITIALIZER};

size_t lb_thread_pool_size(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    return CPU_COUNT(&set) < MOST ? (size_t)CPU_COUNT(&set) : MOST;
}

static void take_parts(void)
{
    for (size_t part; (part = atomic_fetch_add(&crew.next, 1)) < crew.parts;)
        crew.work(crew.user, part, crew.parts);
}

/* Returns once the round is another than seen. */
static size_t wait_for_round(size_t seen)
{
    for (int i = 0; i < LOOKS; i++)
        if (atomic_load(&crew.round) != seen)
            return atomic_load(&crew.round);
    pthread_mutex_lock(&crew.lock);
    while (atomic_load(&crew.round) == seen)
        pthread_cond_wait(&crew.begins, &crew.lock);
    pthread_mutex_unlock(&crew.lock);
    return atomic_load(&crew.round);
}

/* argument: the round that was over when the thread was started. */
static void *serve(void *argument)
{
    size_t seen = (size_t)argument;
    for (;;) {
        seen = wait_for_round(seen);
        take_parts();
        atomic_fetch_sub(&crew.left, 1);
    }
    return NULL;
}

/* Has one thread less than size beside the caller's, as far as the system gives them. */
static void start(size_t size)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (crew.started + 1 < size &&
           pthread_create(&thread, &attributes, serve, (void *)atomic_load(&crew.round)) == 0)
        crew.started++;
    pthread_attr_destroy(&attributes);
}

void lb_thread_pool_run(void (*work)(void *user, size_t part, size_t parts), void *user,
                        size_t parts)
{
    start(parts);
    pthread_mutex_lock(&crew.lock);
    crew.work = work;
    crew.user = user;
    crew.parts = parts;
    atomic_store(&crew.next, 0);
    atomic_store(&crew.left, crew.started);
    atomic_fetch_add(&crew.round, 1);
    pthread_cond_broadcast(&crew.begins);
    pthread_mutex_unlock(&crew.lock);
    take_parts();
    while (atomic_load(&crew.left) > 0)
        sched_yield();
}
