/* The GPU in records. */
#include "record/device_record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/nvml.h"

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

void lb_device_line(const struct lb_device_info *info, char *line, size_t size)
{
    char memory[32];
    lb_format_bytes(info->memory_bytes, memory);
    snprintf(line, size, "%s, %d SMs, %s", info->name, info->sm_count, memory);
}
