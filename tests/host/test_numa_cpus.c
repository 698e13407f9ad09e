/* CPUs of devices, on machines that are made up as a folder with a /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "host/numa_cpus.h"
#include "tests/helpers/scratch_folder.h"

static const char *root;

/* Writes a line into a file below the root, and makes its folders. */
static void put(const char *text, const char *format, int number, const char *address)
{
    char path[600];
    size_t used = (size_t)snprintf(path, sizeof(path), "%s", root);
    if (address)
        snprintf(path + used, sizeof(path) - used, format, address);
    else
        snprintf(path + used, sizeof(path) - used, format, number);
    for (char *at = path + used + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        mkdir(path, 0777);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", text);
    fclose(file);
}

static void put_node(int node, const char *cpus)
{
    put(cpus, "/sys/devices/system/node/node%d/cpulist", node, NULL);
}

static void put_device(const char *address, const char *node)
{
    put(node, "/sys/bus/pci/devices/%s/numa_node", 0, address);
}

/* Two sockets of 8 cores with two hardware threads each: CPU n and n + 16 are one core. Devices
 * 0 to 2 are at node 0, device 3 at node 1. */
static int make_server(void **state)
{
    char pair[16];
    if (scratch_setup(state) != 0)
        return -1;
    root = scratch_folder();
    for (int cpu = 0; cpu < 32; cpu++) {
        snprintf(pair, sizeof(pair), "%d,%d", cpu % 16, cpu % 16 + 16);
        put(pair, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu, NULL);
    }
    put_node(0, "0-7,16-23");
    put_node(1, "8-15,24-31");
    put_device("0000:01:00.0", "0");
    put_device("0000:02:00.0", "0");
    put_device("0000:03:00.0", "0");
    put_device("0000:81:00.0", "1");
    put_device("0000:99:00.0", "-1");
    return 0;
}

static const char *const server[] = {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0",
                                     "0000:81:00.0"};

/* 2 of 3 devices are of unknown nodes, so that all CPUs count as one node. */
static const char *const unknown[] = {"0000:99:00.0", "", "0000:77:00.0"};

static void devices_share_out_the_whole_cores_of_their_node(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_device_cpus cpus[4];
        assert_int_equal(
            lb_divide_cpus(root, cases[i].allowed, cases[i].addresses, cases[i].count, cpus, NULL),
            LB_OK);
        for (size_t k = 0; k < cases[i].count; k++) {
            assert_string_equal(cpus[k].list, cases[i].lists[k]);
            assert_int_equal(cpus[k].shared, cases[i].shared[k]);
        }
    }
}

static void a_process_is_bound_to_a_list(void **state)
{
    char before[LB_CPU_LIST_SIZE], first[LB_CPU_LIST_SIZE], now[LB_CPU_LIST_SIZE];
    (void)state;
    lb_allowed_cpus(before);
    assert_true(before[0]);
    snprintf(first, sizeof(first), "%d", atoi(before));
    assert_true(lb_bind_cpus(first));
    lb_allowed_cpus(now);
    assert_string_equal(now, first);
    assert_true(lb_bind_cpus(before));
    lb_allowed_cpus(now);
    assert_string_equal(now, before);
}

static void what_is_no_list_is_refused(void **state)
{
    static const char *const bad[] = {"", "x", "-1", "3-1", "1,", "0-", "0-99999", "1 2"};
    struct lb_device_cpus cpus[1];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(lb_bind_cpus(bad[i]));
        assert_int_equal(lb_divide_cpus(root, bad[i], server, 1, cpus, NULL), LB_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_share_out_the_whole_cores_of_their_node),
        cmocka_unit_test(a_process_is_bound_to_a_list),
        cmocka_unit_test(what_is_no_list_is_refused),
    };
    return cmocka_run_group_tests(tests, make_server, scratch_teardown);
}
