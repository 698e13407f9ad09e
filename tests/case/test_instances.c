/* Several instances of a stream: each is verified, on CPUs and a thread of its own, and none takes
 * a sample before all are ready or after one has enough. */
#define _GNU_SOURCE /* cpu_set_t */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/fake_gpu/fake_device.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_cpu_ref;

enum { INSTANCES = 2, SAMPLES = 200, NEVER = 1 << 30 };

/* What the two states of cpu_ref did, by the order of their creation. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t destroyed;
    int created, gone;       /* how many states were created and destroyed */
    int calls[INSTANCES];    /* of forward */
    int first_before_second; /* calls of the first when the second was created */
    pthread_t threads[INSTANCES];
    cpu_set_t cpus[INSTANCES];
    bool apart; /* a call came from another thread than create */

    int wrong_from; /* the second state's results are wrong from this call on */
    bool no_second; /* its creation fails */
    bool waits;     /* its calls wait for the end of the first one, once that takes samples */

    bool on_device;
    void *streams[INSTANCES];
} seen;

struct state {
    _Alignas(64) int index;
    _Alignas(64) char inner[];
};

static void *inner_of(void *self)
{
    return ((struct state *)self)->inner;
}

static enum lb_status create(void *self, const struct lb_problem *problem,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    struct state *state = self;
    const int i = state->index = seen.created++;
    seen.threads[i] = pthread_self();
    seen.streams[i] = config->stream;
    sched_getaffinity(0, sizeof(seen.cpus[i]), &seen.cpus[i]);
    pthread_mutex_lock(&seen.mutex);
    seen.first_before_second = seen.calls[0];
    pthread_mutex_unlock(&seen.mutex);
    if (i > 0 && seen.no_second)
        return lb_fail(err, LB_FAILED, "there is no second");
    return lb_impl_cpu_ref.create(state->inner, problem, config, err);
}

static enum lb_status sizes(void *self, struct lb_sizes *needed, struct lb_error *err)
{
    return lb_impl_cpu_ref.sizes(inner_of(self), needed, err);
}

static enum lb_status prepare(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err)
{
    return lb_impl_cpu_ref.prepare(inner_of(self), buffers, weights, err);
}

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    const int i = ((struct state *)self)->index;
    enum lb_status st = lb_impl_cpu_ref.forward(inner_of(self), io, err);
    pthread_mutex_lock(&seen.mutex);
    seen.apart |= !pthread_equal(seen.threads[i], pthread_self());
    if (++seen.calls[i] >= seen.wrong_from && i > 0)
        *(float *)io->y += 1;
    while (seen.waits && i > 0 && seen.calls[i] < 2 * 256 + SAMPLES &&
           seen.calls[0] > seen.first_before_second && seen.gone == 0)
        pthread_cond_wait(&seen.destroyed, &seen.mutex);
    pthread_mutex_unlock(&seen.mutex);
    return st;
}

static void destroy(void *self)
{
    lb_impl_cpu_ref.destroy(inner_of(self));
    pthread_mutex_lock(&seen.mutex);
    seen.gone++;
    pthread_cond_broadcast(&seen.destroyed);
    pthread_mutex_unlock(&seen.mutex);
}

static struct lb_row run(const char *text, uint32_t traits)
{
    struct lb_impl impl = lb_impl_cpu_ref;
    struct lb_run_options options = {.seed = 1, .sampler = lb_sampler_defaults()};
    struct lb_row row;
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 || CPU_COUNT(&cpus) < INSTANCES)
        skip();
    impl.traits = traits;
    impl.memory = seen.on_device ? LB_DEVICE : LB_HOST;
    impl.state_size = sizeof(struct state) + lb_impl_cpu_ref.state_size;
    impl.create = create;
    impl.sizes = sizes;
    impl.prepare = prepare;
    impl.forward = forward;
    impl.backward = NULL;
    impl.describe = NULL;
    impl.destroy = destroy;
    impl.update = NULL;
    options.sampler.max_samples = SAMPLES;
    trial_case_run(&impl, text, &options, &row);
    return row;
}

#define STREAM "cpu_ref/T1_B1_I3_H4/f32/infer/stream"
#define TWO    STREAM "/x2/th2"

static void expect(const char *text, uint32_t traits, enum lb_verdict verdict, const char *reason)
{
    struct lb_row row = run(text, traits);
    if (row.verdict != verdict || !strstr(row.reason, reason))
        fail_msg("%s: %s", lb_verdict_name(row.verdict), row.reason);
    lb_row_free(&row);
}

static int begin(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    pthread_mutex_init(&seen.mutex, NULL);
    pthread_cond_init(&seen.destroyed, NULL);
    seen.wrong_from = NEVER;
    return 0;
}

TEST_WITH(samples_begin_when_all_are_ready_and_end_with_the_first, begin, NULL)
{
    seen.waits = true;
    struct lb_row row = run(TWO, LB_DETERMINISTIC | LB_INSTANCES);
    assert_string_equal(row.reason, "");
    assert_int_equal(row.verdict, LB_VERDICT_OK);
    assert_int_equal(row.c.instances, INSTANCES);
    assert_int_equal(row.c.threads, INSTANCES);
    assert_int_equal(row.block_count, INSTANCES);
    assert_int_equal(row.blocks[0] == SAMPLES || row.blocks[1] == SAMPLES, true);
    assert_true(row.blocks[0] < SAMPLES || row.blocks[1] < SAMPLES);
    assert_true(seen.calls[0] > seen.first_before_second + (int)row.blocks[0]);
    lb_row_free(&row);
}

TEST_WITH(each_has_a_thread_and_a_cpu_of_its_own, begin, NULL)
{
    cpu_set_t both;
    expect(TWO, LB_INSTANCES, LB_VERDICT_OK, "");
    CPU_AND(&both, &seen.cpus[0], &seen.cpus[1]);
    assert_int_equal(CPU_COUNT(&seen.cpus[0]), 1);
    assert_int_equal(CPU_COUNT(&seen.cpus[1]), 1);
    assert_int_equal(CPU_COUNT(&both), 0);
    assert_false(seen.apart);
    assert_false(pthread_equal(seen.threads[0], seen.threads[1]));
}

TEST_WITH(each_is_verified, begin, NULL)
{
    seen.wrong_from = 1;
    expect(TWO, LB_INSTANCES, LB_VERDICT_WRONG, "y");
}

/* The verified calls, two times 256, are right. */
TEST_WITH(later_calls_of_each_are_checked, begin, NULL)
{
    seen.wrong_from = 2 * 256 + 1;
    expect(TWO, LB_INSTANCES, LB_VERDICT_WRONG, "in call 5");
}

TEST_WITH(nobody_waits_for_one_that_fails, begin, NULL)
{
    seen.no_second = true;
    expect(TWO, LB_INSTANCES, LB_VERDICT_ERROR, "there is no second");
}

/* ---- On a device, whose fake serves one thread at a time. ------------------------------------ */

static pthread_mutex_t device_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local char own_stream;
static _Thread_local bool has_entered;

#define IN_TURN(function, parameters, arguments)            \
    static enum lb_status function##_in_turn parameters     \
    {                                                       \
        pthread_mutex_lock(&device_mutex);                  \
        enum lb_status st = fake_device.function arguments; \
        pthread_mutex_unlock(&device_mutex);                \
        return st;                                          \
    }

IN_TURN(upload, (void *to, const void *from, size_t bytes, struct lb_error *err),
        (to, from, bytes, err))
IN_TURN(download, (void *to, const void *from, size_t bytes, struct lb_error *err),
        (to, from, bytes, err))
IN_TURN(fill, (void *to, int byte, size_t bytes, struct lb_error *err), (to, byte, bytes, err))
IN_TURN(hash, (const void *memory, size_t bytes, uint64_t *hash, struct lb_error *err),
        (memory, bytes, hash, err))
IN_TURN(synchronize, (struct lb_error * err), (err))

static enum lb_status enter_device(struct lb_error *err)
{
    (void)err;
    has_entered = true;
    return LB_OK;
}

static void *stream_of_thread(void)
{
    return has_entered ? &own_stream : NULL;
}

TEST_WITH(each_has_a_stream_of_the_device, begin, NULL)
{
    fake_device_install(FAKE_NONE);
    fake_device_share_memory();
    struct lb_device_api device = fake_device;
    device.enter = enter_device;
    device.stream = stream_of_thread;
    device.upload = upload_in_turn;
    device.download = download_in_turn;
    device.fill = fill_in_turn;
    device.hash = hash_in_turn;
    device.synchronize = synchronize_in_turn;
    device.clock_begin = NULL;
    lb_device_use(&device);
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
    seen.on_device = true;
    expect(TWO, LB_INSTANCES, LB_VERDICT_OK, "");
    assert_null(seen.streams[0]);
    assert_non_null(seen.streams[1]);
    assert_false(seen.apart);
    lb_device_use(NULL);
}

TEST_WITH(shares_of_threads_are_equal, begin, NULL)
{
    expect(STREAM "/x2/th3", LB_INSTANCES, LB_VERDICT_UNSUPPORTED, "threads 3");
    expect(TWO, 0, LB_VERDICT_UNSUPPORTED, "can't overlap");
    expect(STREAM "/x1024/th1024", LB_INSTANCES, LB_VERDICT_UNSUPPORTED, "CPU of its own");
}
