/* Plug-ins that are fast by not working, leave work out of the timed calls, compute with less
 * precision than they say, use more of the machine than they are given, or bend the checker. Tests
 * check that each fault is found. */
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "faulty.h"

enum fault {
    none,
    idle_from_third,     /* calls do nothing from the third one on */
    idle_backward,       /* backward calls do nothing from the third one on */
    cached_result,       /* copies the results of the first call */
    same_pointers,       /* returns at once when all pointers are those of the previous call */
    cached_by_pointer,   /* copies the results of the first call with the same x */
    cached_by_contents,  /* the same by the first numbers of x: correct, and impossibly fast */
    cached_and_slow,     /* the same, slowly: in an eighth of the time that computing takes */
    memo_half,           /* the same, in half of that time */
    memo_garbage,        /* answers an x that it has not seen with the results of the last call */
    memo_state,          /* looks up results by c0 alone */
    finishes_in_check,   /* forward does nothing, and check, which is not timed, does its work */
    uses_more_cpus,      /* computes beside a thread that runs on other CPUs */
    thread_per_call,     /* each call starts a thread that computes as well, on any CPU */
    child_computes,      /* a child process computes beside the calls */
    own_memory,          /* allocates 64 MiB that it does not ask the harness for, and is right */
    wrong_5_to_9,        /* one number is wrong in calls 5 to 9 */
    wrong_in_100,        /* one number is wrong in one of a hundred calls */
    writes_inputs,       /* adds to the last number of x after it was used */
    writes_weights,      /* changes a canonical weight after it was used */
    writes_weights_late, /* the same in the tenth call, through a pointer that it kept */
    bends_rounding,      /* rounds upward, so that computed tolerances could become too wide */
    slow_start,          /* the first hundred calls are three times slower */
    unsupported_late,    /* says from the fifth call on that it does not support the case */
    changing_bits,       /* says that it is deterministic, and changes a last bit now and then */
    leaks_memory,        /* keeps 64 KiB in every call */
    leaks_descriptors,   /* leaves a file open in every second call */
    leaks_threads,       /* starts a thread that never ends in every second call, up to 60 */
    dw_late,         /* gradients are kept outside the gradients buffer and converted from there */
    dw_timer,        /* a thread writes the gradients 2 ms after backward has returned */
    dw_unbuffered,   /* keeps gradients in memory of its own, and works on them in gradients */
    y_timer,         /* a thread writes the last eighth of y 0.4 ms after forward has returned */
    bwd_in_fwd,      /* the forward before backward, which is not timed, does the work of both */
    forgets_reserve, /* a forward that follows a forward does not fill the reserve */
    keep_pointers,   /* prepare keeps pointers, and the first call converts the weights */
    f16_as_bf16,     /* results of f16 have the precision of bf16 */
    operations_as_bf16, /* likewise, and it says that it rounds the results of all operations */
    int8_weights        /* the weights are rounded to 8 bits */
};

static const enum fault fault = FAULT;

enum { SEEN = 64, KEY = 64, RESULTS = 3 };

/* The state of the case that was created last. */
static struct state {
    const struct lb_problem *problem;
    struct tensor_bytes bytes;
    struct lb_buffers buffers;
    size_t gradients_bytes, reserve_bytes;
    size_t calls, backwards;
    double computed_ns;          /* the least CPU time that a computed call took */
    bool unfinished;             /* of finishes_in_check: the last call, `before` */
    struct lb_forward_io before; /* the last call */
    float *weight;               /* a canonical one */
    struct lb_weights weights;   /* of keep_pointers, whose tables are copied */
    bool followed;               /* a backward came after the last forward */
    void *gradients;             /* of dw_late and dw_unbuffered */
    struct seen {
        const void *x;
        char key[KEY]; /* what x, or c0, began with */
        void *results[RESULTS];
    } seen[SEEN];
    size_t seen_count;
    struct lb_backward_io backward[2]; /* of bwd_in_fwd, by its buffer of inputs */
    size_t backward_count;
    void *memory;
    pid_t child;
} state;

/* The CPU time of this thread in ns, to which other programs add nothing. */
static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Starts a thread on all CPUs but the one that this thread runs on; returns 0, or an error. */
static int start_elsewhere(pthread_t *thread, void *(*work)(void *))
{
    pthread_attr_t attributes;
    cpu_set_t others;
    memset(&others, 0xff, sizeof(others));
    CPU_CLR((size_t)sched_getcpu(), &others);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof(others), &others);
    int failed = pthread_create(thread, &attributes, work, NULL);
    pthread_attr_destroy(&attributes);
    return failed;
}

/* What uses_more_cpus runs beside its calls. */
static pthread_t helper;
static atomic_bool helper_ends;

static void *help(void *unused)
{
    volatile size_t count = 0;
    while (!helper_ends)
        count++;
    return unused;
}

static void stop_helper(void)
{
    helper_ends = true;
    pthread_join(helper, NULL);
    helper_ends = false;
}

static pid_t start_child(void)
{
    cpu_set_t all;
    pid_t child = fork();
    if (child != 0)
        return child;
    memset(&all, 0xff, sizeof(all));
    sched_setaffinity(0, sizeof(all), &all);
    compute_until(INFINITY);
    _exit(0);
}

static enum lb_status create(void *self, const struct lb_problem *p,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    state = (struct state){.problem = p, .bytes = tensor_bytes_of(p)};
    if (fault == own_memory && (state.memory = malloc(64 << 20)))
        memset(state.memory, 1, 64 << 20);
    if (fault == child_computes)
        state.child = start_child();
    if (fault == uses_more_cpus)
        start_elsewhere(&helper, help);
    if (fault == bends_rounding) {
        fesetround(FE_UPWARD);
#ifdef __SSE__
        _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    }
    return lb_impl_cpu_ref.create(self, p, config, err);
}

static enum lb_status sizes(void *self, struct lb_sizes *out, struct lb_error *err)
{
    enum lb_status st = lb_impl_cpu_ref.sizes(self, out, err);
    state.gradients_bytes = out->gradients;
    state.reserve_bytes = out->reserve;
    if (fault == dw_unbuffered)
        out->gradients = 0;
    return st;
}

/* A copy of a table of pointers to the weights of the one layer and direction. */
static const void *const *copy_table(const void *const *table)
{
    const void **copy = malloc(sizeof(*copy));
    *copy = table[0];
    return copy;
}

static void round_to_8_bits(void *weights, size_t count)
{
    double *values = malloc(count * sizeof(*values)), largest = 0;
    lb_load(state.problem->dtype, weights, values, count);
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(values[i]));
    for (size_t i = 0; i < count; i++)
        values[i] = round(values[i] / largest * 127) * largest / 127;
    lb_store(state.problem->dtype, weights, values, count);
    free(values);
}

static enum lb_status prepare_rounded(void *self, const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err)
{
    const size_t H = (size_t)state.problem->hidden, I = (size_t)state.problem->input;
    const size_t ih_bytes = 4 * H * I * state.bytes.element;
    const size_t hh_bytes = 4 * H * H * state.bytes.element;
    void *w_ih = memcpy(malloc(ih_bytes), weights->w_ih[0], ih_bytes);
    void *w_hh = memcpy(malloc(hh_bytes), weights->w_hh[0], hh_bytes);
    round_to_8_bits(w_ih, 4 * H * I);
    round_to_8_bits(w_hh, 4 * H * H);
    const void *ih = w_ih, *hh = w_hh;
    const struct lb_weights rounded = {&ih, &hh, weights->b_ih, weights->b_hh, weights->w_cell};
    enum lb_status st = lb_impl_cpu_ref.prepare(self, buffers, &rounded, err);
    free(w_ih);
    free(w_hh);
    return st;
}

static enum lb_status prepare(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err)
{
    state.buffers = *buffers;
    if (fault == keep_pointers) {
        state.weights =
            (struct lb_weights){copy_table(weights->w_ih), copy_table(weights->w_hh),
                                copy_table(weights->b_ih), copy_table(weights->b_hh), NULL};
        return LB_OK;
    }
    if (fault == int8_weights)
        return prepare_rounded(self, buffers, weights, err);
    if (fault == dw_unbuffered && state.gradients_bytes > 0)
        state.buffers.gradients = state.gradients = malloc(state.gradients_bytes);
    enum lb_status st = lb_impl_cpu_ref.prepare(self, &state.buffers, weights, err);
    memcpy(&state.weight, &weights->w_hh[0], sizeof(state.weight));
    if (fault == writes_weights)
        *state.weight += 1;
    return st;
}

static void results_of(const struct lb_forward_io *io, void *results[RESULTS])
{
    results[0] = io->y, results[1] = io->hn, results[2] = io->cn;
}

static size_t result_bytes(int i)
{
    return i == 0 ? state.bytes.y : state.bytes.state;
}

/* What a call's results are looked up by. */
static void key_of(const struct lb_forward_io *io, char key[KEY])
{
    const bool by_state = fault == memo_state;
    size_t bytes = by_state ? state.bytes.state : state.bytes.x;
    memset(key, 0, KEY);
    memcpy(key, by_state ? io->c0 : io->x, bytes < KEY ? bytes : KEY);
}

/* The faults that copy the results of an earlier call, and in which part of the time of computing.
 */
static const struct lookup {
    enum fault fault;
    double share;
} lookups[] =
    {
        {cached_result, 0},       {cached_by_pointer, 0}, {cached_by_contents, 0},
        {cached_and_slow, 0.125}, {memo_half, 0.5},       {memo_garbage, 0.25},
        {memo_state, 0.25}, /* not so fast that no machine could compute it */
};

static const struct lookup *lookup_of_fault(void)
{
    for (size_t i = 0; i < sizeof(lookups) / sizeof(lookups[0]); i++)
        if (lookups[i].fault == fault)
            return &lookups[i];
    return NULL;
}

/* Copies the results of an earlier call, where the fault does that. Returns whether it did. */
static bool looked_up(const struct lb_forward_io *io, double start)
{
    const struct lookup *lookup = lookup_of_fault();
    const struct seen *found = NULL;
    void *results[RESULTS];
    char key[KEY];
    key_of(io, key);
    for (size_t i = 0; lookup && i < state.seen_count && !found; i++) {
        const struct seen *seen = &state.seen[i];
        if (fault == cached_result ||
            (fault == cached_by_pointer ? seen->x == io->x : memcmp(seen->key, key, KEY) == 0))
            found = seen;
    }
    if (fault == memo_garbage && !found && state.seen_count > 1)
        found = &state.seen[state.seen_count - 1];
    if (!found)
        return false;
    results_of(io, results);
    for (int i = 0; i < RESULTS; i++)
        memcpy(results[i], found->results[i], result_bytes(i));
    compute_until(start + state.computed_ns * lookup->share);
    return true;
}

static void remember(const struct lb_forward_io *io)
{
    void *results[RESULTS];
    if (!lookup_of_fault() || state.seen_count == SEEN)
        return;
    struct seen *seen = &state.seen[state.seen_count++];
    seen->x = io->x;
    key_of(io, seen->key);
    results_of(io, results);
    for (int i = 0; i < RESULTS; i++)
        seen->results[i] = memcpy(malloc(result_bytes(i)), results[i], result_bytes(i));
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
    numbers[state.bytes.x / state.bytes.element - 1] *= -1;
}

static void round_to_bf16(void *tensor, size_t bytes)
{
    size_t count = bytes / 2;
    double *values = malloc(count * sizeof(*values));
    char *half = malloc(bytes);
    lb_load(LB_F16, tensor, values, count);
    lb_store(LB_BF16, half, values, count);
    lb_load(LB_BF16, half, values, count);
    lb_store(LB_F16, tensor, values, count);
    free(half);
    free(values);
}

/* Spoils the results of a call that was computed. */
static void spoil(const struct lb_forward_io *io)
{
    size_t call = state.calls, last = state.bytes.y / state.bytes.element - 1;
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
    if ((fault == f16_as_bf16 || fault == operations_as_bf16) && state.problem->dtype == LB_F16)
        round_to_bf16(io->y, state.bytes.y);
    if (fault == forgets_reserve && !state.followed && call > 2)
        memset(state.buffers.reserve, 0, state.reserve_bytes);
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
    static void *volatile kept; /* or the compiler would leave both calls out */
    pthread_t thread;
    if (fault == leaks_memory && (kept = malloc(65536)))
        memset(kept, (int)state.calls, 65536);
    if (fault == leaks_descriptors && state.calls % 2 == 0)
        (void)!dup(2);
    if (fault == leaks_threads && state.calls % 2 == 0 && state.calls <= 120 &&
        pthread_create(&thread, NULL, sleep_on, NULL) == 0)
        pthread_detach(thread);
}

/* What a thread writes after a call has returned. */
static struct late {
    void *to, *from;
    size_t bytes;
    long after_ns;
} late;

static void *write_late(void *unused)
{
    struct timespec wait = {.tv_nsec = late.after_ns};
    nanosleep(&wait, NULL);
    memcpy(late.to, late.from, late.bytes);
    free(late.from);
    return unused;
}

/* Takes [bytes] at `to` back to what they were, and lets a thread write them again later. */
static void postpone(void *to, const void *before, size_t bytes, long after_ns)
{
    static pthread_t thread;
    static bool started;
    if (started)
        pthread_join(thread, NULL);
    late = (struct late){to, memcpy(malloc(bytes), to, bytes), bytes, after_ns};
    memcpy(to, before, bytes);
    started = pthread_create(&thread, NULL, write_late, NULL) == 0;
}

static void *compute_as_well(void *unused)
{
    compute_until(now() + state.computed_ns);
    return unused;
}

/* Runs forward beside another thread that takes as long. */
static enum lb_status forward_with_help(void *self, const struct lb_forward_io *io,
                                        struct lb_error *err)
{
    pthread_t thread;
    if (start_elsewhere(&thread, compute_as_well) != 0)
        return lb_fail(err, LB_FAILED, "no thread");
    enum lb_status st = lb_impl_cpu_ref.forward(self, io, err);
    pthread_join(thread, NULL);
    return st;
}

/* Computes a call. */
static enum lb_status compute(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    const size_t tail = state.bytes.y / 8 + 1;
    char *end = (char *)io->y + state.bytes.y - tail;
    void *before = fault == y_timer ? memcpy(malloc(tail), end, tail) : NULL;
    double start = cpu_now();
    if (fault == keep_pointers && state.calls == 1)
        lb_impl_cpu_ref.prepare(self, &state.buffers, &state.weights, err);
    enum lb_status st = fault == thread_per_call && state.computed_ns > 0
                            ? forward_with_help(self, io, err)
                            : lb_impl_cpu_ref.forward(self, io, err);
    double took = cpu_now() - start;
    if (state.computed_ns == 0 || took < state.computed_ns)
        state.computed_ns = took;
    if (fault == slow_start && state.calls <= 100)
        compute_until(now() + 2 * took);
    remember(io);
    if (before)
        postpone(end, before, tail, 400000);
    free(before);
    return st;
}

static const struct lb_backward_io *backward_of(const void *x)
{
    for (size_t i = 0; i < state.backward_count; i++)
        if (state.backward[i].x == x)
            return &state.backward[i];
    return NULL;
}

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    size_t call = ++state.calls;
    bool same = memcmp(&state.before, io, sizeof(*io)) == 0;
    if (fault == writes_inputs && state.before.x)
        flip(state.before.x);
    state.before = *io;
    state.unfinished = fault == finishes_in_check;
    if ((fault == idle_from_third && call >= 3) || (fault == same_pointers && call >= 3 && same) ||
        state.unfinished || looked_up(io, now()))
        return LB_OK;
    if (fault == unsupported_late && call >= 5)
        return lb_fail(err, LB_UNSUPPORTED, "not today");
    enum lb_status st = compute(self, io, err);
    spoil(io);
    leak();
    state.followed = false;
    if (fault == bwd_in_fwd && backward_of(io->x))
        st = lb_impl_cpu_ref.backward(self, backward_of(io->x), err);
    return st;
}

static enum lb_status backward(void *self, const struct lb_backward_io *io, struct lb_error *err)
{
    state.followed = true;
    if (fault == idle_backward && ++state.backwards >= 3)
        return LB_OK;
    if (fault == bwd_in_fwd && state.problem->pass == LB_BACKWARD) {
        if (backward_of(io->x))
            return LB_OK;
        state.backward[state.backward_count++ % 2] = *io;
    }
    size_t bytes = state.gradients_bytes;
    void *before = fault == dw_timer ? memcpy(malloc(bytes), state.buffers.gradients, bytes) : NULL;
    enum lb_status st = lb_impl_cpu_ref.backward(self, io, err);
    if (before)
        postpone(state.buffers.gradients, before, bytes, 2000000);
    free(before);
    if (fault == dw_late) {
        state.gradients = realloc(state.gradients, bytes);
        memcpy(state.gradients, state.buffers.gradients, bytes);
        memset(state.buffers.gradients, 0, bytes);
    }
    return st;
}

static enum lb_status gradients(void *self, const struct lb_gradients *out, struct lb_error *err)
{
    if (fault == dw_late)
        memcpy(state.buffers.gradients, state.gradients, state.gradients_bytes);
    /* As much work as two forwards, half of a training step. */
    for (double start = cpu_now();
         fault == dw_unbuffered && cpu_now() - start < 2 * state.computed_ns;)
        continue;
    enum lb_status st = lb_impl_cpu_ref.gradients(self, out, err);
    if (fault == dw_late)
        memset(state.buffers.gradients, 0, state.gradients_bytes);
    return st;
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
    for (size_t i = 0; i < state.seen_count; i++)
        for (int k = 0; k < RESULTS; k++)
            free(state.seen[i].results[k]);
    state.seen_count = 0;
    if (state.child > 0 && kill(state.child, SIGKILL) == 0)
        waitpid(state.child, NULL, 0);
    state.child = 0;
    free(state.gradients);
    free(state.memory);
    state.gradients = state.memory = NULL;
    lb_impl_cpu_ref.destroy(self);
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    static struct lb_impl impl;
    impl =
        cpu_ref_as("cheats_" TEXT(FAULT), "cpu_ref with a way to be fast or right without working");
    impl.abi = abi;
    if (fault == forgets_reserve || fault == f16_as_bf16 || fault == operations_as_bf16 ||
        fault == int8_weights)
        impl.traits &= ~(uint32_t)LB_DETERMINISTIC; /* or other bits would reveal it */
    if (fault == operations_as_bf16)
        impl.traits |= LB_ROUNDS_OPERATIONS;
    impl.create = create;
    impl.sizes = sizes;
    impl.prepare = prepare;
    impl.forward = forward;
    impl.backward = backward;
    impl.gradients = gradients;
    impl.check = fault == finishes_in_check ? check : impl.check;
    impl.destroy = destroy;
    return &impl;
}
