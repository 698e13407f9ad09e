/* How CPUs share cores, caches and nodes, and which of them serve which device: read from folders
 * that are laid out like Linux's. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/cpu_affinity.h"
#include "host/cpu_topology.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

/* Writes a line to a file below the scratch folder. */
static void put(const char *name, const char *line)
{
    char text[128];
    snprintf(text, sizeof(text), "%s\n", line);
    scratch_write(name, text);
}

/* Four cores with two hyper-threads each, two per cache; each cache is a node of its own. */
static void put_machine(void)
{
    static const char *const files[] = {"topology/thread_siblings_list",
                                        "cache/index3/shared_cpu_list", "cache/index3/size"};
    static const char *const siblings[] = {"0,4", "1,5", "2,6", "3,7"};
    static const char *const caches[] = {"0-1,4-5", "2-3,6-7"};
    put("cpu/possible", "0-7");
    put("node/possible", "0-1");
    for (int cpu = 0; cpu < 8; cpu++)
        for (int i = 0; i < 3; i++) {
            char name[128];
            snprintf(name, sizeof(name), "cpu/cpu%d/%s", cpu, files[i]);
            put(name, i == 0 ? siblings[cpu % 4] : i == 1 ? caches[cpu % 4 / 2] : "16384K");
        }
    put("node/node0/cpulist", caches[0]);
    put("node/node1/cpulist", caches[1]);
}

/* Two fast cores with hyper-threads, and two small ones, as Linux lists them on Intel's CPUs. */
static void put_hybrid(void)
{
    static const char *const siblings[] = {"0-1", "0-1", "2-3", "2-3", "4", "5"};
    for (int cpu = 0; cpu < 6; cpu++) {
        char name[128];
        snprintf(name, sizeof(name), "system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        put(name, siblings[cpu]);
    }
    put("cpu_atom/cpus", "4-5");
}

/* The small cores first, as Arm's numbers often are; those of CPUs 2 and 3 differ in clock. */
static void put_capacities(void)
{
    static const char *const capacities[] = {"446", "446", "980", "1024"};
    char name[64];
    for (int cpu = 0; cpu < 4; cpu++) {
        snprintf(name, sizeof(name), "cpu/cpu%d/cpu_capacity", cpu);
        put(name, capacities[cpu]);
        snprintf(name, sizeof(name), "cpu/cpu%d/topology/thread_siblings_list", cpu);
        put(name, (const char[]){(char)('0' + cpu), '\0'});
    }
}

static void put_no_third_level_cache(void)
{
    put("cpu/cpu0/topology/thread_siblings_list", "0");
    put("cpu/cpu1/topology/thread_siblings_list", "1");
    put("node/node0/cpulist", "0");
    put("node/node1/cpulist", "1");
}

TEST(cores_come_before_their_hyper_threads_and_only_usable_cpus_count)
{
    static const struct {
        void (*put)(void);  /* NULL: as in containers that hide /sys, nothing says how CPUs share */
        const char *usable; /* NULL: all */
        size_t count, cores, domains, nodes;
        int order[8], takes[8]; /* of threads; of cases with one CPU more each */
        const char *folder;
    } cases[] = {
        {put_machine, NULL, 8, 4, 2, 2, {4, 5, 6, 7, 0, 1, 2, 3}, {7, 6, 5, 4, 3, 2, 1, 0}, "."},
        {put_machine, "1,5-6", 3, 2, 2, 2, {5, 6, 1}, {6, 5, 1}, "."},
        {NULL, "3,9", 2, 2, 1, 1, {3, 9}, {9, 3}, "."},
        {put_no_third_level_cache, NULL, 2, 2, 2, 2, {0, 1}, {1, 0}, "."},
        {put_hybrid, NULL, 6, 4, 1, 1, {1, 3, 0, 2, 4, 5}, {3, 1, 2, 0, 5, 4}, "system"},
        {put_capacities, NULL, 4, 4, 1, 1, {2, 3, 0, 1}, {3, 2, 1, 0}, "."},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool usable[LB_CPU_MAX];
        struct lb_cpu_topology t;
        scratch_setup(state);
        if (cases[i].put)
            cases[i].put();
        if (cases[i].usable)
            assert_true(lb_cpu_list_read(cases[i].usable, usable));
        lb_cpu_topology_read(scratch_path(cases[i].folder), cases[i].usable ? usable : NULL, &t);
        assert_true(t.known == (cases[i].put != NULL) && t.count == cases[i].count);
        assert_true(t.cores == cases[i].cores && t.domains == cases[i].domains);
        assert_int_equal(t.nodes, cases[i].nodes);
        for (size_t k = 0; k < t.count; k++) {
            bool taken[LB_CPU_MAX], before[LB_CPU_MAX];
            lb_cpu_topology_take(&t, k, before);
            lb_cpu_topology_take(&t, k + 1, taken);
            assert_int_equal(t.places[k].cpu, cases[i].order[k]);
            assert_true(taken[cases[i].takes[k]] && !before[cases[i].takes[k]]);
        }
        assert_true(cases[i].put == put_machine ? t.domain_bytes == 16 << 20
                                                : isnan(t.domain_bytes));
        if (i == 0) {
            assert_true(t.places[2].core == 2 && t.places[2].domain == 2 && t.places[2].node == 1);
            assert_true(t.places[3].sibling == 0 && t.places[4].sibling == 1);
        }
        scratch_teardown(state);
    }
}

TEST(this_machine_has_the_cpus_that_the_thread_may_use)
{
    struct lb_cpu_topology all, one;
    char text[64];
    lb_cpu_topology_here(&all);
    assert_true(all.count >= 1 && all.cores >= 1 && all.cores <= all.count);
    lb_pin(1, 0, text, sizeof(text));
    lb_cpu_topology_here(&one);
    lb_unpin();
    assert_int_equal(one.count, 1);
    /* A case gets the last of the cores, not the first, which serves most interrupts. */
    assert_int_equal(one.places[0].cpu, all.places[all.cores - 1].cpu);
}

/* As the C library's on Arm, where it knows no cache. */
static bool knows_no_cache;

__typeof__(sysconf) __real_sysconf, __wrap_sysconf;

long __wrap_sysconf(int name)
{
    bool cache = name >= _SC_LEVEL1_ICACHE_SIZE && name <= _SC_LEVEL4_CACHE_LINESIZE;
    return knows_no_cache && cache ? 0 : __real_sysconf(name);
}

TEST(caches_that_the_c_library_does_not_know_have_the_size_that_linux_says)
{
    for (int level = 1; level <= 3; level++) {
        char path[64], line[32];
        double kib = 0;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size",
                 level == 1 ? 0 : level);
        lb_read_line(path, "", line, sizeof(line));
        sscanf(line, "%lfK", &kib);
        knows_no_cache = true;
        double bytes = (double)lb_cpu_cache_bytes(level), largest = (double)lb_host_cache_bytes();
        knows_no_cache = false;
        assert_true(bytes == kib * 1024);
        assert_true(largest >= bytes || level == 1);
    }
}

TEST(threads_have_the_third_level_caches_of_their_domains)
{
    struct lb_cpu_topology t;
    lb_cpu_topology_make(16, 8, 2, 1, 32e6, &t); /* four cores of two threads share a cache */
    assert_true(lb_cpu_topology_l3_bytes(&t, 1) == 32e6);
    assert_true(lb_cpu_topology_l3_bytes(&t, 4) == 32e6);
    assert_true(lb_cpu_topology_l3_bytes(&t, 5) == 64e6);
    assert_true(lb_cpu_topology_l3_bytes(&t, 16) == 64e6);
    t.domain_bytes = (double)NAN;
    assert_true(isnan(lb_cpu_topology_l3_bytes(&t, 5)));
}

/* Two sockets of 8 cores with two hardware threads each: CPU n and n + 16 are one core. Devices
 * 0 to 2 are at node 0, device 3 at node 1. */
static void put_server(void)
{
    static const char *const devices[][2] = {{"0000:01:00.0", "0"},
                                             {"0000:02:00.0", "0"},
                                             {"0000:03:00.0", "0"},
                                             {"0000:81:00.0", "1"},
                                             {"0000:99:00.0", "-1"}};
    char name[128], pair[16];
    for (int cpu = 0; cpu < 32; cpu++) {
        snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        snprintf(pair, sizeof(pair), "%d,%d", cpu % 16, cpu % 16 + 16);
        put(name, pair);
    }
    put("sys/devices/system/node/node0/cpulist", "0-7,16-23");
    put("sys/devices/system/node/node1/cpulist", "8-15,24-31");
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/numa_node", devices[i][0]);
        put(name, devices[i][1]);
    }
}

static const char *const server[] = {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0",
                                     "0000:81:00.0"};

/* 2 of 3 devices are of unknown nodes, so that all CPUs count as one node. */
static const char *const unknown[] = {"0000:99:00.0", "", "0000:77:00.0"};

TEST_WITH(devices_share_out_the_whole_cores_of_their_node, scratch_setup, scratch_teardown)
{
    static const struct {
        const char *allowed, *const *addresses;
        size_t count;
        const char *lists[4];
        bool shared[4];
    } cases[] = {
        {"0-31", server, 4, {"0-1,16-17", "2-4,18-20", "5-7,21-23", "8-15,24-31"}, {false}},
        {"0-31", server, 2, {"0-3,16-19", "4-7,20-23"}, {false}},
        {"1-4,18,9", server, 4, {"1", "2,18", "3-4", "9"}, {false}}, /* no more than is allowed */
        {"0,16,1,8", server, 4, {"0-1,16", "0-1,16", "0-1,16", "8"}, {true, true, true, false}},
        {"0-2", unknown, 3, {"0", "1", "2"}, {false}},
        {"0-3", &server[2], 2, {"0-1", "2-3"}, {false}}, /* node 1 has none of these */
    };
    put_server();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_device_cpus cpus[4];
        assert_int_equal(lb_divide_cpus(scratch_folder(), cases[i].allowed, cases[i].addresses,
                                        cases[i].count, cpus, NULL),
                         LB_OK);
        for (size_t k = 0; k < cases[i].count; k++) {
            assert_string_equal(cpus[k].list, cases[i].lists[k]);
            assert_int_equal(cpus[k].shared, cases[i].shared[k]);
        }
    }
}

TEST(a_process_is_bound_to_a_list)
{
    char before[LB_CPU_LIST_SIZE], first[LB_CPU_LIST_SIZE], now[LB_CPU_LIST_SIZE];
    lb_allowed_cpus(before);
    assert_true(before[0]);
    snprintf(first, sizeof(first), "%d", atoi(before));
    assert_true(lb_bind_cpus(first));
    assert_false(lb_bind_cpus("0-+1") || lb_bind_cpus("0- 1") || lb_bind_cpus("0-"));
    lb_allowed_cpus(now);
    assert_string_equal(now, first);
    assert_true(lb_bind_cpus(before));
    lb_allowed_cpus(now);
    assert_string_equal(now, before);
}
