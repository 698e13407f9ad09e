/* How CPUs share cores, caches and nodes: read from folders that are laid out like Linux's. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/cpu_affinity.h"
#include "host/cpu_topology.h"
#include "tests/helpers/scratch_folder.h"

static bool refuses_affinity;

/* Stands in for the C library's, and refuses as Linux does where it has more CPUs than the set. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    if (refuses_affinity) {
        errno = EINVAL;
        return -1;
    }
    long bytes = syscall(SYS_sched_getaffinity, pid, size, set);
    if (bytes < 0)
        return -1;
    memset((char *)set + bytes, 0, size - (size_t)bytes);
    return 0;
}

/* Writes a line to a file below the scratch folder, and makes the folders above it. */
static void put(const char *name, const char *line)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s", scratch_path(name));
    for (char *slash = path + strlen(scratch_folder()) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", line);
    assert_int_equal(fclose(file), 0);
}

static void put_cpu(int cpu, const char *siblings, const char *cache)
{
    char name[128];
    snprintf(name, sizeof(name), "cpu/cpu%d/topology/thread_siblings_list", cpu);
    put(name, siblings);
    snprintf(name, sizeof(name), "cpu/cpu%d/cache/index3/shared_cpu_list", cpu);
    put(name, cache);
    snprintf(name, sizeof(name), "cpu/cpu%d/cache/index3/size", cpu);
    put(name, "16384K");
}

/* Four cores with two hyper-threads each, two per cache; each cache is a node of its own. */
static void put_machine(void)
{
    static const char *const siblings[] = {"0,4", "1,5", "2,6", "3,7"};
    put("cpu/possible", "0-7");
    put("node/possible", "0-1");
    for (int cpu = 0; cpu < 8; cpu++)
        put_cpu(cpu, siblings[cpu % 4], cpu % 4 < 2 ? "0-1,4-5" : "2-3,6-7");
    put("node/node0/cpulist", "0-1,4-5");
    put("node/node1/cpulist", "2-3,6-7");
}

static void assert_order(const struct lb_cpu_topology *t, const int *cpus, size_t count)
{
    assert_int_equal(t->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(t->places[i].cpu, cpus[i]);
}

static void cores_come_before_their_hyper_threads(void **state)
{
    static const int order[] = {4, 5, 6, 7, 0, 1, 2, 3};
    struct lb_cpu_topology t;
    (void)state;
    put_machine();
    lb_cpu_topology_read(scratch_folder(), NULL, &t);
    assert_order(&t, order, 8);
    assert_true(t.known && t.cores == 4 && t.domains == 2 && t.nodes == 2);
    assert_true(t.domain_bytes == 16 << 20);
    assert_true(t.places[2].core == 2 && t.places[2].domain == 2 && t.places[2].node == 1);
    assert_true(t.places[3].sibling == 0 && t.places[4].sibling == 1);
}

static void only_usable_cpus_count(void **state)
{
    static const int order[] = {5, 6, 1};
    bool usable[LB_CPU_MAX] = {[1] = true, [5] = true, [6] = true};
    struct lb_cpu_topology t;
    (void)state;
    put_machine();
    lb_cpu_topology_read(scratch_folder(), usable, &t);
    assert_order(&t, order, 3);
    assert_true(t.cores == 2 && t.domains == 2);
}

/* As in containers that hide /sys. */
static void without_the_systems_word_each_cpu_is_a_core(void **state)
{
    static const int order[] = {3, 9};
    bool usable[LB_CPU_MAX] = {[3] = true, [9] = true};
    struct lb_cpu_topology t;
    (void)state;
    lb_cpu_topology_read(scratch_folder(), usable, &t);
    assert_order(&t, order, 2);
    assert_true(!t.known && t.cores == 2 && t.domains == 1 && t.nodes == 1);
    assert_true(isnan(t.domain_bytes) != 0);
}

static void a_machine_without_third_level_cache_has_a_domain_per_node(void **state)
{
    struct lb_cpu_topology t;
    (void)state;
    put("cpu/cpu0/topology/thread_siblings_list", "0");
    put("cpu/cpu1/topology/thread_siblings_list", "1");
    put("node/node0/cpulist", "0");
    put("node/node1/cpulist", "1");
    lb_cpu_topology_read(scratch_folder(), NULL, &t);
    assert_true(t.known && t.count == 2 && t.domains == 2 && t.nodes == 2);
}

static void this_machine_has_the_cpus_that_the_thread_may_use(void **state)
{
    struct lb_cpu_topology all, one;
    char text[64];
    (void)state;
    lb_cpu_topology_here(&all);
    assert_true(all.count >= 1 && all.cores >= 1 && all.cores <= all.count);
    lb_pin(1, text, sizeof(text));
    lb_cpu_topology_here(&one);
    lb_unpin();
    assert_int_equal(one.count, 1);
    /* A case gets the last of the cores, not the first, which serves most interrupts. */
    assert_int_equal(one.places[0].cpu, all.places[all.cores - 1].cpu);
}

static void where_the_system_does_not_say_the_thread_may_use_all_cpus(void **state)
{
    struct lb_cpu_topology t;
    (void)state;
    refuses_affinity = true;
    lb_cpu_topology_here(&t);
    refuses_affinity = false;
    assert_true(t.count >= 1 && t.cores >= 1 && t.domains >= 1 && t.nodes >= 1);
}

static void threads_have_the_third_level_caches_of_their_domains(void **state)
{
    struct lb_cpu_topology t;
    (void)state;
    lb_cpu_topology_make(16, 8, 2, 1, 32e6, &t); /* four cores of two threads share a cache */
    assert_true(lb_cpu_topology_l3_bytes(&t, 1) == 32e6);
    assert_true(lb_cpu_topology_l3_bytes(&t, 4) == 32e6);
    assert_true(lb_cpu_topology_l3_bytes(&t, 5) == 64e6);
    assert_true(lb_cpu_topology_l3_bytes(&t, 16) == 64e6);
    t.domain_bytes = (double)NAN;
    assert_true(isnan(lb_cpu_topology_l3_bytes(&t, 5)));
}

static void the_record_has_the_counts(void **state)
{
    struct lb_cpu_topology t;
    (void)state;
    lb_cpu_topology_make(16, 8, 2, 1, 32e6, &t);
    json_t *object = lb_cpu_topology_to_json(&t);
    char *text = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
    assert_string_equal(text, "{\"from_system\":true,\"l3_bytes\":32000000.0,\"l3_domains\":2,"
                              "\"numa_nodes\":1,\"physical_cores\":8,\"threads_per_core\":2}");
    free(text);
    json_decref(object);
}

int main(void)
{
#define FILES(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        FILES(cores_come_before_their_hyper_threads),
        FILES(only_usable_cpus_count),
        FILES(without_the_systems_word_each_cpu_is_a_core),
        FILES(a_machine_without_third_level_cache_has_a_domain_per_node),
        cmocka_unit_test(this_machine_has_the_cpus_that_the_thread_may_use),
        cmocka_unit_test(where_the_system_does_not_say_the_thread_may_use_all_cpus),
        cmocka_unit_test(threads_have_the_third_level_caches_of_their_domains),
        cmocka_unit_test(the_record_has_the_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
