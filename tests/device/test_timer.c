/* Cold caches: the CPUs on which they are flushed. */
#include <sched.h>

#include "device/timer.h"
#include "host/cpu_affinity.h"
#include "tests/helpers/test.h"

/* The CPUs that were visited, in order. */
struct visits {
    int cpus[64];
    bool last[64];
    int count;
};

static void note(void *user, bool last)
{
    struct visits *v = user;
    v->cpus[v->count] = sched_getcpu();
    v->last[v->count++] = last;
}

static cpu_set_t mask(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    return set;
}

/* Pins the case to two CPUs, and then binds the calling thread to the first of them, as an
 * implementation may. */
static void bind_to_one_of_two(cpu_set_t *two, cpu_set_t *one)
{
    char text[64];
    size_t cpu = 0;
    lb_pin(2, 0, text, sizeof(text));
    *two = mask();
    if (CPU_COUNT(two) != 2)
        skip();
    while (!CPU_ISSET(cpu, two))
        cpu++;
    CPU_ZERO(one);
    CPU_SET(cpu, one);
    assert_int_equal(sched_setaffinity(0, sizeof(*one), one), 0);
}

TEST(every_cpu_of_the_case_is_visited_and_the_current_one_last)
{
    cpu_set_t two, one, seen, after;
    struct visits v = {.count = 0};
    bind_to_one_of_two(&two, &one);
    lb_visit_cpus(note, &v);
    after = mask();
    lb_unpin();
    assert_int_equal(v.count, 2);
    CPU_ZERO(&seen);
    for (int i = 0; i < v.count; i++)
        CPU_SET((size_t)v.cpus[i], &seen);
    assert_true(CPU_EQUAL(&seen, &two));
    assert_true(CPU_EQUAL(&after, &one));
    assert_true(CPU_ISSET((size_t)v.cpus[1], &one) && v.last[1]);
}

TEST(where_nothing_is_pinned_only_the_current_cpu_is_visited)
{
    struct visits v = {.count = 0};
    lb_unpin();
    lb_visit_cpus(note, &v);
    assert_true(v.count == 1 && v.last[0]);
}

static enum lb_status nothing(void *user, struct lb_error *err)
{
    (void)user, (void)err;
    return LB_OK;
}

TEST(a_cold_sample_flushes_from_every_cpu)
{
    cpu_set_t two, one;
    struct lb_timer timer;
    double ns;
    bind_to_one_of_two(&two, &one);
    assert_int_equal(lb_timer_create(LB_HOST, true, &timer, NULL), LB_OK);
    unsigned char *flush = timer.flush;
    memset(flush, 0, timer.flush_bytes);
    assert_int_equal(lb_timer_measure(&timer, nothing, NULL, 1, &ns, NULL), LB_OK);
    lb_unpin();
    assert_int_equal(flush[0], 2); /* one write per CPU */
    assert_true(flush[(timer.flush_bytes - 1) / 64 * 64] >= 1);
    lb_timer_destroy(&timer);
}
