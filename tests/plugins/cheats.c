/* Plug-ins that are fast by not working, or that bend the checker; the compile-time name FAULT
 * says how. Everything else is cpu_ref's. Tests check that each fault is found. */
#define _GNU_SOURCE /* cpu_set_t, pthread_setaffinity_np */
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "impl.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

enum fault {
    none,
    idle_from_third,    /* calls do nothing from the third one on */
    idle_backward,      /* backward calls do nothing from the third one on */
    cached_result,      /* copies the results of the first call */
    same_pointers,      /* returns at once when all pointers are those of the previous call */
    cached_by_pointer,  /* copies the results of the first call with the same x */
    cached_by_contents, /* the same by the first numbers of x: correct, and impossibly fast */
    cached_and_slow,    /* the same, slowly: in an eighth of the time that computing takes */
    finishes_in_check,  /* forward does nothing, and check, which is not timed, does its work */
    uses_more_cpus, /* computes beside a thread that is not bound to the CPUs that --threads gives
                     */
    wrong_5_to_9,   /* one number is wrong in calls 5 to 9 */
    wrong_in_100,   /* one number is wrong in one of a hundred calls */
    writes_inputs,  /* adds to the last number of x after it was used */
    writes_weights, /* changes a canonical weight after it was used */
    writes_weights_late, /* the same in the tenth call, through a pointer that it kept */
    bends_rounding,      /* rounds upward, so that computed tolerances could become too wide */
    slow_start,          /* the first hundred calls are three times slower */
    unsupported_late,    /* says from the fifth call on that it does not support the case */
    changing_bits,       /* says that it is deterministic, and changes a last bit now and then */
    leaks_memory,        /* keeps 64 KiB in every call */
    leaks_descriptors,   /* leaves a file open in every second call */
    leaks_threads        /* starts a thread that never ends in every second call, up to 60 */
};

static const enum fault fault = FAULT;

extern const struct lb_impl lb_impl_cpu_ref;
const struct lb_impl *lb_plugin(uint32_t abi);

enum { MEMORIES = 4 };

/* The state of the case that was created last. */
static struct state {
    size_t calls, backwards;
    size_t y_bytes, state_bytes, x_bytes, element;
    double computed_ns; /* how long the fastest computed call took */
    bool unfinished;    /* of finishes_in_check: the last call, `before` */
    struct lb_forward_io before;
    float *weight; /* a canonical one */
    struct memory {
        const void *x;
        char start[16]; /* of what x held */
        char *y, *hn, *cn;
    } memories[MEMORIES];
    size_t memory_count;
} state;

/* What uses_more_cpus runs beside its calls: a thread on the other CPUs of the machine. */
static pthread_t helper;
static atomic_bool helper_ends;

static void *help(void *unused)
{
    volatile size_t count = 0;
    while (!helper_ends)
        count++;
    return unused;
}

static void start_helper(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof(all));
    CPU_CLR((size_t)sched_getcpu(), &all);
    helper_ends = false;
    if (pthread_create(&helper, NULL, help, NULL) == 0)
        pthread_setaffinity_np(helper, sizeof(all), &all);
}

static void stop_helper(void)
{
    helper_ends = true;
    pthread_join(helper, NULL);
}

static enum lb_status create(void *self, const struct lb_problem *p,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    size_t size = lb_dtype_size(p->dtype);
    state = (struct state){
        .y_bytes = (size_t)(p->seq_len * p->batch * p->directions * p->hidden) * size,
        .x_bytes = (size_t)(p->seq_len * p->batch * p->input) * size,
        .state_bytes = (size_t)(p->layers * p->directions * p->batch * p->hidden) * size,
        .element = size,
    };
    if (fault == uses_more_cpus)
        start_helper();
    if (fault == bends_rounding) {
        fesetround(FE_UPWARD);
#ifdef __SSE__
        _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    }
    return lb_impl_cpu_ref.create(self, p, config, err);
}

static enum lb_status prepare(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err)
{
    enum lb_status st = lb_impl_cpu_ref.prepare(self, buffers, weights, err);
    memcpy(&state.weight, &weights->w_hh[0], sizeof(state.weight));
    if (fault == writes_weights)
        *state.weight += 1;
    return st;
}

static void copy(const struct memory *from, const struct lb_forward_io *io)
{
    memcpy(io->y, from->y, state.y_bytes);
    memcpy(io->hn, from->hn, state.state_bytes);
    memcpy(io->cn, from->cn, state.state_bytes);
}

static void remember(const struct lb_forward_io *io)
{
    if (state.memory_count == MEMORIES)
        return;
    struct memory *memory = &state.memories[state.memory_count++];
    memory->x = io->x;
    memcpy(memory->start, io->x, sizeof(memory->start));
    memory->y = malloc(state.y_bytes);
    memory->hn = malloc(state.state_bytes);
    memory->cn = malloc(state.state_bytes);
    memcpy(memory->y, io->y, state.y_bytes);
    memcpy(memory->hn, io->hn, state.state_bytes);
    memcpy(memory->cn, io->cn, state.state_bytes);
}

/* Copies the results instead of computing them, where the fault does that. Returns whether it
 * did. */
static bool copied_result(const struct lb_forward_io *io)
{
    for (size_t i = 0; i < state.memory_count; i++) {
        const struct memory *memory = &state.memories[i];
        if (fault == cached_result || (fault == cached_by_pointer && memory->x == io->x) ||
            ((fault == cached_by_contents || fault == cached_and_slow) &&
             memcmp(memory->start, io->x, sizeof(memory->start)) == 0)) {
            copy(memory, io);
            return true;
        }
    }
    return false;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void wait_until(double end)
{
    while (now() < end)
        continue;
}

/* Adds to the number at index of a tensor of f32. */
static void add(const void *tensor, size_t index, float value)
{
    float *numbers;
    memcpy(&numbers, &tensor, sizeof(numbers));
    numbers[index] += value;
}

/* Changes the sign of x's last number. */
static void flip(const void *x)
{
    float *numbers;
    memcpy(&numbers, &x, sizeof(numbers));
    numbers[state.x_bytes / state.element - 1] *= -1;
}

/* Spoils the results of a call that was computed. */
static void spoil(const struct lb_forward_io *io)
{
    size_t call = state.calls, last = state.y_bytes / state.element - 1;
    if ((fault == wrong_5_to_9 && call >= 5 && call <= 9) ||
        (fault == wrong_in_100 && call % 100 == 50))
        add(io->y, last, 1);
    if (fault == changing_bits && call % 7 == 0)
        ((char *)io->y)[0] ^= 1;
    if (fault == bends_rounding)
        for (size_t i = 0; i <= last; i++)
            add(io->y, i, 3.5e-7F);
    if (fault == writes_inputs)
        flip(io->x);
    if (fault == writes_weights_late && call == 10)
        *state.weight = 1;
}

static void *sleep_on(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

static void leak(void)
{
    static void *kept;
    pthread_t thread;
    if (fault == leaks_memory && (kept = malloc(65536)))
        memset(kept, (int)state.calls, 65536);
    if (fault == leaks_descriptors && state.calls % 2 == 0)
        (void)!dup(2);
    if (fault == leaks_threads && state.calls % 2 == 0 && state.calls <= 120 &&
        pthread_create(&thread, NULL, sleep_on, NULL) == 0)
        pthread_detach(thread);
}

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    size_t call = ++state.calls;
    bool same = memcmp(&state.before, io, sizeof(*io)) == 0;
    if (fault == writes_inputs && state.before.x)
        flip(state.before.x);
    state.before = *io;
    if ((fault == idle_from_third && call >= 3) || (fault == same_pointers && call >= 3 && same))
        return LB_OK;
    double start = now();
    if (copied_result(io)) {
        if (fault == cached_and_slow)
            wait_until(start + state.computed_ns / 8);
        return LB_OK;
    }
    if (fault == finishes_in_check) {
        state.unfinished = true;
        return LB_OK;
    }
    if (fault == unsupported_late && call >= 5)
        return lb_fail(err, LB_UNSUPPORTED, "not today");
    enum lb_status st = lb_impl_cpu_ref.forward(self, io, err);
    if (state.computed_ns == 0 || now() - start < state.computed_ns)
        state.computed_ns = now() - start;
    if (fault == slow_start && call <= 100)
        wait_until(now() + 2 * (now() - start));
    spoil(io);
    leak();
    remember(io);
    return st;
}

static enum lb_status backward(void *self, const struct lb_backward_io *io, struct lb_error *err)
{
    if (fault == idle_backward && ++state.backwards >= 3)
        return LB_OK;
    return lb_impl_cpu_ref.backward(self, io, err);
}

static enum lb_status check(const void *self, struct lb_error *err)
{
    void *own;
    memcpy(&own, &self, sizeof(own));
    if (!state.unfinished)
        return LB_OK;
    state.unfinished = false;
    return lb_impl_cpu_ref.forward(own, &state.before, err);
}

static void destroy(void *self)
{
    if (fault == uses_more_cpus)
        stop_helper();
    for (size_t i = 0; i < state.memory_count; i++) {
        free(state.memories[i].y);
        free(state.memories[i].hn);
        free(state.memories[i].cn);
    }
    state.memory_count = 0;
    lb_impl_cpu_ref.destroy(self);
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    static struct lb_impl impl;
    impl = lb_impl_cpu_ref;
    impl.abi = abi;
    impl.name = "cheats_" TEXT(FAULT);
    impl.summary = "cpu_ref with a way to be fast or right without working";
    impl.create = create;
    impl.prepare = prepare;
    impl.forward = forward;
    impl.backward = backward;
    if (fault == finishes_in_check)
        impl.check = check;
    impl.destroy = destroy;
    return &impl;
}
