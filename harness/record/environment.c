/* The environment of a run: machine, system, build. */
#include "record/environment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.h"
#include "build_info.h"
#include "device/host_memory.h"
#include "device/nvml.h"
#include "host/cpu_topology.h"

const char *lb_version(void)
{
    return LB_VERSION;
}

const char *lb_commit(void)
{
    return LB_COMMIT_DIRTY ? LB_COMMIT "+changes" : LB_COMMIT;
}

/* The value of the first "key : value" line of /proc/cpuinfo with that key; "" when there is none.
 * text: room for the line. */
static char *cpuinfo(const char *key, char *text, size_t size)
{
    lb_read_line("/proc/cpuinfo", key, text, size);
    return text + strspn(text, " \t:");
}

/* The name of the CPU's model. Linux has none for Arm's CPUs, but the numbers of maker and part. */
static void cpu_name(char *name, size_t size)
{
    char text[256];
    snprintf(name, size, "%s", cpuinfo("model name", text, sizeof(text)));
    const char *maker = name[0] ? "" : cpuinfo("CPU implementer", text, sizeof(text));
    if (maker[0]) {
        snprintf(name, size, "CPU implementer %s", maker);
        lb_append(name, size, ", part %s", cpuinfo("CPU part", text, sizeof(text)));
    }
}

/* The SIMD instruction sets that matter for LSTMs, from the CPU's flags, in the system's order. */
static void simd_names(char *names, size_t size)
{
    static const struct {
        const char *flag, *name;
    } units[] = {
        {"sse4_2", "sse4.2"},     {"avx2", "avx2"},       {"fma", "fma"},
        {"f16c", "f16c"},         {"avx512f", "avx512f"}, {"avx512_bf16", "avx512-bf16"},
        {"amx_bf16", "amx-bf16"}, {"asimd", "neon"},      {"sve", "sve"},
    };
    char text[8192], *flags = cpuinfo("flags", text, sizeof(text));
    if (!flags[0])
        flags = cpuinfo("Features", text, sizeof(text));
    names[0] = '\0';
    for (char *flag = strtok(flags, " "); flag; flag = strtok(NULL, " "))
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
            if (strcmp(flag, units[i].flag) == 0)
                lb_append(names, size, "%s%s", names[0] ? " " : "", units[i].name);
}

static json_t *text_or_null(const char *text)
{
    json_t *value = text && text[0] ? json_string(text) : NULL;
    return value ? value : json_null();
}

json_t *lb_environment(json_t *libraries)
{
    char cpu[256], simd[256], governor[64], system[512] = "", host[256] = "";
    struct utsname name;
    struct lb_cpu_topology topology;
    lb_read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "", governor,
                 sizeof(governor));
    lb_cpu_topology_here(&topology);
    cpu_name(cpu, sizeof(cpu));
    simd_names(simd, sizeof(simd));
    gethostname(host, sizeof(host) - 1);
    if (uname(&name) == 0)
        snprintf(system, sizeof(system), "%s %s %s", name.sysname, name.release, name.machine);

    return json_pack(
        "{s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:o, s:s, s:s, s:b, s:s, s:s, s:s, s:O}",
        "host", text_or_null(host), "cpu", text_or_null(cpu), "cores",
        (json_int_t)sysconf(_SC_NPROCESSORS_CONF), "threads",
        (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "topology", lb_cpu_topology_to_json(&topology),
        "simd", text_or_null(simd), "governor", text_or_null(governor), "cache_bytes",
        (json_int_t)lb_host_cache_bytes(), "memory_bytes", (json_int_t)lb_host_total(), "system",
        text_or_null(system), "version", LB_VERSION, "commit", LB_COMMIT, "dirty", LB_COMMIT_DIRTY,
        "compiler", LB_COMPILER, "flags", LB_FLAGS, "build_type", LB_BUILD_TYPE, "libraries",
        libraries);
}

void lb_environment_line(const json_t *environment, char *line, size_t size)
{
    char memory[32] = "";
    double bytes = json_number_value(json_object_get(environment, "memory_bytes"));
    if (bytes > 0)
        lb_format_bytes(bytes, memory);
    const json_t *gpu = json_object_get(environment, "gpu");
    snprintf(line, size, "%s%s%s, %d threads%s%s, %s",
             gpu ? lb_json_text(gpu, "name", "unknown") : "", gpu ? "; " : "",
             lb_json_text(environment, "cpu", "unknown"),
             (int)json_integer_value(json_object_get(environment, "threads")),
             memory[0] ? ", " : "", memory, lb_json_text(environment, "system", "unknown"));
}

/* The keys, up to a NULL, that the object has, in a new object. */
static json_t *pick(const json_t *object, const char *const *keys)
{
    json_t *picked = json_object();
    for (; *keys; keys++)
        if (json_object_get(object, *keys))
            json_object_set(picked, *keys, json_object_get(object, *keys));
    return picked;
}

bool lb_environment_differs(const json_t *a, const json_t *b, char *what, size_t size)
{
    static const char *const keys[] = {"host",     "cpu",      "threads",    "simd",
                                       "governor", "compiler", "build_type", "flags"};
    /* Another GPU of the same kind is as good. */
    static const char *const of_gpu[] = {
        "name", "compute", "memory_bytes", "driver", "cuda_driver", "cuda_runtime", NULL};
    json_t *gpu = pick(json_object_get(a, "gpu"), of_gpu);
    json_t *other_gpu = pick(json_object_get(b, "gpu"), of_gpu);
    what[0] = '\0';
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]);
        if (x != y && !json_equal(x, y)) /* equal pointers: both lack the key */
            lb_append(what, size, "%s%s", what[0] ? ", " : "", keys[i]);
    }
    if (!json_equal(gpu, other_gpu))
        lb_append(what, size, "%sgpu", what[0] ? ", " : "");
    json_decref(gpu);
    json_decref(other_gpu);
    return what[0] != '\0';
}

json_t *lb_environment_identity(const json_t *environment)
{
    static const char *const keys[] = {"host",     "cpu",    "cores",      "threads",   "simd",
                                       "governor", "system", "version",    "commit",    "dirty",
                                       "compiler", "flags",  "build_type", "libraries", NULL};
    static const char *const of_gpu[] = {"name",        "uuid",         "driver",
                                         "cuda_driver", "cuda_runtime", NULL};
    const json_t *gpu = json_object_get(environment, "gpu");
    json_t *identity = pick(environment, keys);
    if (gpu)
        json_object_set_new(identity, "gpu", pick(gpu, of_gpu));
    return identity;
}

json_t *lb_environment_kind(const json_t *environment)
{
    static const char *const keys[] = {"version", "commit",     "dirty",     "compiler",
                                       "flags",   "build_type", "libraries", NULL};
    char device[256];
    lb_environment_device(environment, device, sizeof(device));
    json_t *kind = pick(environment, keys);
    json_object_set_new(kind, "device", json_string(device));
    return kind;
}

void lb_environment_device(const json_t *environment, char *name, size_t size)
{
    const json_t *gpu = json_object_get(environment, "gpu");
    if (gpu)
        snprintf(name, size, "%s", lb_json_text(gpu, "name", "unknown"));
    else
        snprintf(name, size, "%s, %d threads", lb_json_text(environment, "cpu", "unknown"),
                 (int)json_integer_value(json_object_get(environment, "threads")));
}

void lb_environment_node(const json_t *environment, char *name, size_t size)
{
    const char *uuid = lb_json_text(json_object_get(environment, "gpu"), "uuid", "");
    snprintf(name, size, "%s%s%.12s", lb_json_text(environment, "host", "unknown"),
             uuid[0] ? " " : "", uuid);
}

bool lb_libraries_differ(const json_t *a, const json_t *b, char *what, size_t size)
{
    const json_t *before = json_object_get(a, "libraries"),
                 *after = json_object_get(b, "libraries");
    const char *name;
    json_t *version;
    what[0] = '\0';
    json_object_foreach((json_t *)after, name, version)
    {
        const json_t *was = json_object_get(before, name);
        if (was && !json_equal(was, version))
            lb_append(what, size, "%s%s %s to %s", what[0] ? ", " : "", name,
                      lb_json_text(before, name, "unknown"), lb_json_text(after, name, "unknown"));
    }
    return what[0] != '\0';
}

/* "13.0" from CUDA's 13000; null from 0. */
static json_t *version_json(int version)
{
    return version > 0 ? json_sprintf("%d.%d", version / 1000, version % 1000 / 10) : json_null();
}

/* CUDA's 13000 from "13.0"; 0 when the key is missing. */
static int version_of(const json_t *object, const char *key)
{
    int major = 0, minor = 0;
    const char *text = json_string_value(json_object_get(object, key));
    return text && sscanf(text, "%d.%d", &major, &minor) == 2 ? 1000 * major + 10 * minor : 0;
}

json_t *lb_device_to_json(const struct lb_device_info *info)
{
    struct lb_gpu_state state;
    lb_nvml_read(info->uuid, &state);
    json_t *driver = lb_nvml_driver()[0] ? json_string(lb_nvml_driver()) : json_null();
    json_t *clock = isfinite(state.sm_max_mhz) ? json_real(state.sm_max_mhz) : json_null();
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:i, s:f, s:f, s:f, s:o, s:o, s:o, s:o}",
                     "name", info->name, "uuid", info->uuid, "pci", info->pci, "ordinal",
                     info->ordinal, "visible", info->visible, "compute",
                     json_sprintf("%d.%d", info->major, info->minor), "sm_count", info->sm_count,
                     "memory_bytes", info->memory_bytes, "l2_bytes", info->l2_bytes, "shared_bytes",
                     info->shared_bytes, "cuda_driver", version_json(info->driver), "cuda_runtime",
                     version_json(info->runtime), "driver", driver, "clock_max_mhz", clock);
}

void lb_device_from_json(const json_t *object, struct lb_device_info *info)
{
    const char *name = "", *uuid = "", *pci = "", *compute = "";
    *info = (struct lb_device_info){.driver = version_of(object, "cuda_driver"),
                                    .runtime = version_of(object, "cuda_runtime")};
    json_unpack((json_t *)object, "{s?s, s?s, s?s, s?s, s?i, s?i, s?i, s?F, s?F, s?F}", "name",
                &name, "uuid", &uuid, "pci", &pci, "compute", &compute, "ordinal", &info->ordinal,
                "visible", &info->visible, "sm_count", &info->sm_count, "memory_bytes",
                &info->memory_bytes, "l2_bytes", &info->l2_bytes, "shared_bytes",
                &info->shared_bytes);
    snprintf(info->name, sizeof(info->name), "%s", name);
    snprintf(info->uuid, sizeof(info->uuid), "%s", uuid);
    snprintf(info->pci, sizeof(info->pci), "%s", pci);
    if (sscanf(compute, "%d.%d", &info->major, &info->minor) != 2)
        info->major = info->minor = 0;
}
