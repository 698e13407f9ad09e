/* What is not left behind in a process is not named, and others' use of the CPUs is told from the
 * process's own. tests/broken finds and names what plug-ins leave behind. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/cpu_load.h"
#include "support/leftovers.h"
#include "support/subprocess.h"
#include "tests/helpers/test.h"

static struct lb_process_reading *reading(void)
{
    struct lb_process_reading *state = lb_needed(calloc(1, sizeof(*state)));
    lb_process_read_resources(state);
    lb_process_read_settings(state);
    return state;
}

/* Asserts that nothing is left behind since the reading, but for descriptors that are allowed. */
static void assert_unchanged(const struct lb_process_reading *before, bool descriptors)
{
    const struct lb_leftovers_allowed allowed = {.bytes = 1 << 20, .descriptors = descriptors};
    struct lb_process_reading *after = reading();
    char text[256] = "";
    lb_leftovers_append(before, after, &allowed, text, sizeof(text));
    assert_string_equal(text, "");
    free(after);
}

TEST(pipes_are_allowed_where_libraries_may_keep_them)
{
    int ends[2];
    struct lb_process_reading *before = reading();
    assert_int_equal(pipe(ends), 0);
    assert_unchanged(before, true);
    close(ends[0]);
    close(ends[1]);
    free(before);
}

static void *end_at_once(void *unused)
{
    return unused;
}

/* The system lists a thread for a moment after it was joined. */
TEST(joined_threads_are_not_counted)
{
    struct lb_process_reading *before = reading();
    for (int i = 0; i < 5000; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, end_at_once, NULL), 0);
        pthread_join(thread, NULL);
        assert_unchanged(before, false);
    }
    free(before);
}

TEST(children_are_ended)
{
    assert_int_equal(lb_end_children(0), 0);
    pid_t brief = fork();
    if (brief == 0)
        _exit(0);
    assert_int_equal(lb_end_children(5), 0); /* it ends by itself */
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    assert_int_equal(lb_end_children(0.01), 1);
    assert_int_equal(kill(child, 0), -1);
}

/* A second on two CPUs. The mutants: without the process's own time taken off, its own work
 * would be others'; without the ticks, a short case would always be noisy. */
TEST(others_are_told_from_the_process_itself)
{
    static const struct {
        double seconds, busy_s, own_s, delay_s, throttled_s;
        int threads;
        double share;
    } cases[] = {
        {1, 1.04, 1, 0, 0, 1, 0},       /* alone: what is left over are ticks */
        {1, 2, 1, 0, 0, 2, 0.48},       /* another program on the other CPU */
        {1, 2, 2, 0, 0, 2, 0},          /* two threads of its own */
        {0.02, 0.04, 0.02, 0, 0, 1, 0}, /* too short to tell */
        {1, NAN, 1, 0.3, NAN, 1, 0.3},  /* its only thread waited for a CPU */
        {1, NAN, 1, 0.3, NAN, 4, 0},    /* perhaps for its own threads */
        {1, 1, 1, 0, 0.25, 1, 0.25},    /* throttled */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct lb_cpu_load before = {.at_ns = 5e9, .busy_ns = 7e9, .cpus = 2};
        const struct lb_cpu_load after = {
            .at_ns = 5e9 + 1e9 * cases[i].seconds,
            .busy_ns = 7e9 + 1e9 * cases[i].busy_s,
            .own_ns = 1e9 * cases[i].own_s,
            .delay_ns = 1e9 * cases[i].delay_s,
            .throttled_ns = 1e9 * cases[i].throttled_s,
            .cpus = 2,
            .threads = cases[i].threads,
        };
        assert_true(fabs(lb_cpu_load_others(&before, &after) - cases[i].share) < 1e-9);
    }
}
