/* The thread pool: every part is done once, several sets of pinned threads work at once, and the
 * oracle's bits do not depend on how many threads there are. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/thread_pool.h"
#include "host/cpu_affinity.h"
#include "reference/reference.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

enum { PARTS = 4, ROUNDS = 3000 };

static void count_part(void *user, size_t part, size_t parts)
{
    atomic_int *counts = user;
    assert_true(part < parts);
    atomic_fetch_add(&counts[part], 1);
}

TEST(every_part_is_called_once_a_round)
{
    static atomic_int counts[PARTS];
    for (size_t round = 0; round < ROUNDS; round++) /* so many that threads sleep now and then */
        lb_thread_pool_run(count_part, counts, 1 + round % PARTS);
    for (size_t i = 0; i < PARTS; i++) {
        int expected = 0;
        for (size_t round = 0; round < ROUNDS; round++)
            expected += round % PARTS >= i;
        assert_int_equal(atomic_load(&counts[i]), expected);
    }
}

TEST(a_pinned_case_has_no_more_threads_than_cpus)
{
    char text[64];
    lb_pin(1, 0, text, sizeof(text));
    assert_int_equal(lb_thread_pool_size(), 1);
    lb_unpin();
    assert_true(lb_thread_pool_size() >= 1 && lb_thread_pool_size() <= 16);
}

TEST(more_threads_than_cpus_are_refused)
{
    static const char *const says[] = {"threads 255: this process may use only",
                                       "threads 256: at most 255 are allowed"};
    for (int i = sysconf(_SC_NPROCESSORS_ONLN) < 255 ? 0 : 1; i < 2; i++) {
        struct lb_pinned_threads *threads;
        struct lb_error err = {""};
        assert_int_equal(lb_pinned_threads_open(255 + i, NULL, &threads, &err), LB_UNSUPPORTED);
        assert_non_null(strstr(err.text, says[i]));
        assert_null(threads);
    }
}

struct meeting {
    struct lb_pinned_threads *pinned;
    int rounds[PARTS], missed;
};

/* Between two barriers each thread looks at another one: both are in the same round. */
static void meet(void *arg, size_t thread)
{
    struct meeting *meeting = arg;
    for (int i = 1; i <= 200; i++) {
        meeting->rounds[thread] = i;
        lb_pinned_threads_barrier(meeting->pinned);
        if (meeting->rounds[thread == 0 ? 1 : 0] != i)
            meeting->missed++;
        lb_pinned_threads_barrier(meeting->pinned);
    }
}

TEST(parts_and_pinned_threads_take_turns)
{
    static atomic_int counts[PARTS];
    struct meeting meeting = {.missed = 0};
    size_t size = lb_thread_pool_size();
    if (size < 2)
        skip();
    for (int round = 0; round < 50; round++) {
        lb_thread_pool_run(count_part, counts, PARTS);
        assert_int_equal(lb_pinned_threads_open(2, NULL, &meeting.pinned, NULL), LB_OK);
        assert_int_equal(lb_thread_pool_size(), 1); /* the caller is pinned */
        lb_pinned_threads_run(meeting.pinned, meet, &meeting);
        lb_pinned_threads_close(meeting.pinned);
        assert_int_equal(lb_thread_pool_size(), size);
        assert_int_equal(meeting.missed, 0);
    }
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(atomic_load(&counts[i]), 50);
}

static void *count_all_parts(void *counts)
{
    for (int round = 0; round < 500; round++)
        lb_thread_pool_run(count_part, counts, PARTS);
    return NULL;
}

TEST(two_callers_at_once_have_all_their_parts_done)
{
    static atomic_int counts[2][PARTS];
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, count_all_parts, counts[0]), 0);
    count_all_parts(counts[1]);
    pthread_join(other, NULL);
    for (size_t i = 0; i < 2; i++)
        for (size_t part = 0; part < PARTS; part++)
            assert_int_equal(atomic_load(&counts[i][part]), 500);
}

/* Each on a thread of its own: opens threads, works, and closes them. */
static void *work_apart(void *arg)
{
    static const struct lb_pinned_place places[PARTS];
    struct meeting *meeting = arg;
    for (int round = 0; round < 20; round++) {
        if (lb_pinned_threads_open(PARTS, places, &meeting->pinned, NULL) != LB_OK)
            return NULL;
        lb_pinned_threads_run(meeting->pinned, meet, meeting);
        lb_pinned_threads_close(meeting->pinned);
    }
    return arg;
}

TEST(sets_of_pinned_threads_do_not_meet_each_other)
{
    enum { SETS = 3 };
    struct meeting meetings[SETS] = {{.missed = 0}};
    pthread_t ids[SETS];
    for (size_t i = 0; i < SETS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, work_apart, &meetings[i]), 0);
    for (size_t i = 0; i < SETS; i++) {
        void *done = NULL;
        pthread_join(ids[i], &done);
        assert_ptr_equal(done, &meetings[i]);
        assert_int_equal(meetings[i].missed, 0);
    }
}

enum { MANY = 64, TEAM = 5, TEAM_ROUNDS = 20 };

struct crowd {
    struct lb_pinned_threads *pinned;
    int all[MANY], team[MANY];
    atomic_int missed;
};

/* Teams meet in different numbers of rounds, and all threads after that. */
static void meet_in_teams(void *arg, size_t thread)
{
    struct crowd *crowd = arg;
    size_t first = thread / TEAM * TEAM, size = MANY - first < TEAM ? MANY - first : TEAM;
    size_t next = first + (thread - first + 1) % size;
    int rounds = TEAM_ROUNDS + (int)(3 * first);
    for (int i = 1; i <= rounds; i++) {
        crowd->team[thread] = i;
        lb_pinned_threads_team_barrier(crowd->pinned);
        if (crowd->team[next] != i)
            atomic_fetch_add(&crowd->missed, 1);
        lb_pinned_threads_team_barrier(crowd->pinned);
    }
    for (int i = 1; i <= TEAM_ROUNDS; i++) {
        crowd->all[thread] = i;
        lb_pinned_threads_barrier(crowd->pinned);
        for (size_t other = 0; other < MANY; other++)
            if (crowd->all[other] != i)
                atomic_fetch_add(&crowd->missed, 1);
        lb_pinned_threads_barrier(crowd->pinned);
    }
}

/* 64 threads on the CPUs of this machine, in domains of three; the last team is smaller. */
TEST(threads_that_outnumber_the_cpus_meet)
{
    struct lb_pinned_place places[MANY];
    struct crowd crowd = {.missed = 0};
    int cpus = (int)lb_thread_pool_size();
    for (int i = 0; i < MANY; i++)
        places[i] = (struct lb_pinned_place){i % (cpus < MANY / 2 ? cpus : MANY / 2), i / 3};
    assert_int_equal(lb_pinned_threads_open(MANY, places, &crowd.pinned, NULL), LB_OK);
    lb_pinned_threads_divide(crowd.pinned, TEAM);
    for (int round = 0; round < 3; round++)
        lb_pinned_threads_run(crowd.pinned, meet_in_teams, &crowd);
    lb_pinned_threads_close(crowd.pinned);
    assert_int_equal(atomic_load(&crowd.missed), 0);
}

static struct lb_expected *expected_of(const char *text)
{
    struct lb_problem problem = trial_problem(text);
    struct lb_expected *expected = NULL;
    assert_int_equal(lb_expected_create(&problem, 0, 1, 3, NULL, 0, &expected, NULL), LB_OK);
    return expected;
}

TEST(the_oracles_bits_do_not_depend_on_threads)
{
    static const char *const problems[] = {"T5_B3_I65_H512/f32/train", "T3_B3_H600_D2/f16/infer"};
    char text[64];
    for (size_t i = 0; i < 2; i++) {
        struct lb_expected *shared = expected_of(problems[i]);
        lb_pin(1, 0, text, sizeof(text));
        struct lb_expected *alone = expected_of(problems[i]);
        lb_unpin();
        size_t states = (size_t)(alone->problem.directions * 3 * alone->problem.hidden);
        size_t outputs = (size_t)alone->problem.seq_len * states;
        assert_memory_equal(shared->net.y, alone->net.y, outputs * sizeof(double));
        assert_memory_equal(shared->net.cn, alone->net.cn, states * sizeof(double));
        if (alone->net.dh0) {
            enum { WEIGHTS = 4 * 512 * (65 + 512 + 1) };
            double *dw = malloc(2 * WEIGHTS * sizeof(*dw));
            assert_non_null(dw);
            assert_int_equal(lb_expected_gradients(shared, NULL, 0, dw, NULL), LB_OK);
            lb_pin(1, 0, text, sizeof(text));
            assert_int_equal(lb_expected_gradients(alone, NULL, 0, dw + WEIGHTS, NULL), LB_OK);
            lb_unpin();
            assert_memory_equal(shared->net.dh0, alone->net.dh0, states * sizeof(double));
            assert_memory_equal(dw, dw + WEIGHTS, WEIGHTS * sizeof(*dw));
            free(dw);
        }
        lb_expected_destroy(alone);
        lb_expected_destroy(shared);
    }
}
