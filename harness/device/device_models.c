/* The devices that are known by name, with their sources, and the reader of files that describe
 * others. */
#include "device/device_models.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "host/machine_file.h"

struct model {
    const char *word; /* of the device's own name: "H100" */
    struct lb_device_info info;
    struct lb_machine machine;
};

/* ---- The table ----------------------------------------------------------------------------------
 *
 * Sources of each device, all by NVIDIA; rates are dense, without sparsity.
 *   v100      Tesla V100 GPU Architecture, whitepaper WP-08608-001
 *   t4        Turing GPU Architecture, whitepaper WP-09183-001; T4 datasheet
 *   a100      A100 Tensor Core GPU Architecture, whitepaper; A100 80GB datasheet
 *   rtx3090   Ampere GA102 GPU Architecture, whitepaper 2.1
 *   rtx4090   Ada GPU Architecture, whitepaper 2.1
 *   l4, l40s  L4 and L40S datasheets; Ada GPU Architecture for rates per SM
 *   h100      H100 Tensor Core GPU Architecture, whitepaper; H100 SXM datasheet
 *   h200      H200 SXM datasheet
 *   b200      HGX B200 in the Blackwell datasheet
 *   gb200     GB200 NVL72 in the Blackwell datasheet, divided by its 72 GPUs
 *   rtx5090   RTX Blackwell GPU Architecture, whitepaper 1.1
 *
 * Sources of each figure.
 *   compute capability, shared_bytes, 32 banks of 4 bytes (shared_bytes_clock), the largest
 *     cluster: CUDA programming guide, and the tuning guides of Hopper and Blackwell for clusters
 *     of 16, which only sm_90 and sm_100 form.
 *   flops_clock: the rate of the source divided by SMs and boost clock. Where f16 products with
 *     f16 sums are twice as fast (GeForce), f16 has that rate, because a lower bound must not be
 *     too high. bf16 and tf32 have f32's rate where the tensor cores do not support them.
 *   clock_max_hz: the boost clock, or the highest clock that NVML reports (a100, h100, h200);
 *     clock_hz: the clock seen in long runs (h100, h200), else the boost clock.
 *   l2_bytes_s: RRZE-HPC/gpu-benches: gpu-l2-cache for a100, h100, h200; gpu-l2-stream of the A40
 *     and L40 for rtx3090, rtx4090 and l40s, whose chips they share, by their clocks, and half
 *     of the L40's for l4, which has half of its memory controllers. v100: 2048 bytes per clock
 *     (A100 whitepaper). t4: "Dissecting the NVidia Turing T4 GPU via Microbenchmarking" (Jia
 *     and others). rtx5090: chipsandcheese.com, "Blackwell: Nvidia's Massive GPU". b200, gb200:
 *     no published figure was found, so the ports of all SMs together are used.
 *   l2_clocks: the latency of a store plus that of a load. gpu-latency of gpu-benches: 212 clocks
 *     on a V100, 206 and 377 (near and far half) on an A100, 250 on an A40, 274 on an L40. 264 and
 *     470 on Hopper (HPMLL's benchmark), 188 on a T4 (Jia and others), 130 ns on rtx5090's chip and
 *     150 ns on a B200 (chipsandcheese.com).
 *   l2_bytes_clock: the width of an SM's port; measurements by gpu-benches come close to it.
 *   peer_clocks, peer_bytes_clock: "Dissecting the NVIDIA Hopper Architecture" (HPMLL): 181 to 213
 *     clocks to a peer's shared memory, 33 to one's own; 3.27 TB/s between all SMs together. No
 *     published figures were found for Blackwell, so it has Hopper's.
 *   node_ns: gpu-benches measured 1.26 to 1.37 us on an H200, which is used for all devices. */

#define MIB(count) ((double)(count) * (1 << 20))
#define KIB(count) ((double)(count) * (1 << 10))

/* The figures that all devices share. */
#define SM \
    .shared_bytes_clock = 128, .l2_bytes_clock = 64, .node_ns = 1260, .register_bytes = KIB(192)

#define CLOCK(hz) .clock_hz = (hz), .clock_max_hz = (hz)

/* Flops per clock and SM. */
#define FLOPS(f64, f32, f16, bf16, tf32)                                                       \
    .flops_clock = {[LB_F64] = (f64), [LB_F32] = (f32), [LB_F16] = (f16), [LB_BF16] = (bf16)}, \
    .tf32_flops_clock = (tf32)

#define CLUSTERS(most) .cluster = (most), .peer_clocks = 233, .peer_bytes_clock = 14

#define HOPPER_SXM                                                                       \
    SM, CLUSTERS(16), .clock_hz = 1.755e9, .clock_max_hz = 1.98e9, .l2_bytes_s = 5.5e12, \
                      .l2_clocks = 730, FLOPS(256, 256, 4096, 4096, 2048)

static const struct model models[] = {
    {"A100",
     {.name = "NVIDIA A100-SXM4-80GB",
      .major = 8,
      .minor = 0,
      .sm_count = 108,
      .memory_bytes = 80e9,
      .l2_bytes = MIB(40),
      .shared_bytes = KIB(163)},
     {.name = "a100",
      SM,
      CLOCK(1.41e9),
      .memory_bytes_s = 2.04e12,
      .l2_bytes_s = 4.5e12,
      .l2_clocks = 600,
      FLOPS(128, 128, 2048, 2048, 1024)}},
    {"H100",
     {.name = "NVIDIA H100 80GB HBM3",
      .major = 9,
      .minor = 0,
      .sm_count = 132,
      .memory_bytes = 80e9,
      .l2_bytes = MIB(50),
      .shared_bytes = KIB(227)},
     {.name = "h100", HOPPER_SXM, .memory_bytes_s = 3.35e12}},
    {"H200",
     {.name = "NVIDIA H200",
      .major = 9,
      .minor = 0,
      .sm_count = 132,
      .memory_bytes = 141e9,
      .l2_bytes = MIB(50),
      .shared_bytes = KIB(227)},
     {.name = "h200", HOPPER_SXM, .memory_bytes_s = 4.8e12}},
    {"B200",
     {.name = "NVIDIA B200",
      .major = 10,
      .minor = 0,
      .sm_count = 148,
      .memory_bytes = 180e9,
      .l2_bytes = MIB(126),
      .shared_bytes = KIB(227)},
     {.name = "b200",
      SM,
      CLUSTERS(16),
      CLOCK(1.965e9),
      .memory_bytes_s = 7.7e12,
      .l2_bytes_s = 18.6e12,
      .l2_clocks = 590,
      FLOPS(128, 256, 8192, 8192, 4096)}},
    {"GB200",
     {.name = "NVIDIA GB200",
      .major = 10,
      .minor = 0,
      .sm_count = 148,
      .memory_bytes = 186e9,
      .l2_bytes = MIB(126),
      .shared_bytes = KIB(227)},
     {.name = "gb200",
      SM,
      CLUSTERS(16),
      CLOCK(2.062e9),
      .memory_bytes_s = 8e12,
      .l2_bytes_s = 19.5e12,
      .l2_clocks = 620,
      FLOPS(128, 256, 8192, 8192, 4096)}},
    {"V100",
     {.name = "Tesla V100-SXM2-32GB",
      .major = 7,
      .minor = 0,
      .sm_count = 80,
      .memory_bytes = 32e9,
      .l2_bytes = MIB(6),
      .shared_bytes = KIB(96)},
     {.name = "v100",
      SM,
      CLOCK(1.53e9),
      .memory_bytes_s = 0.9e12,
      .l2_bytes_s = 3.13e12,
      .l2_clocks = 424,
      FLOPS(64, 128, 1024, 128, 128)}},
    {"T4",
     {.name = "Tesla T4",
      .major = 7,
      .minor = 5,
      .sm_count = 40,
      .memory_bytes = 16e9,
      .l2_bytes = MIB(4),
      .shared_bytes = KIB(64)},
     {.name = "t4",
      SM,
      CLOCK(1.59e9),
      .memory_bytes_s = 0.32e12,
      .l2_bytes_s = 1.27e12,
      .l2_clocks = 376,
      FLOPS(4, 128, 1024, 128, 128)}},
    {"RTX 3090",
     {.name = "NVIDIA GeForce RTX 3090",
      .major = 8,
      .minor = 6,
      .sm_count = 82,
      .memory_bytes = 24e9,
      .l2_bytes = MIB(6),
      .shared_bytes = KIB(99)},
     {.name = "rtx3090",
      SM,
      CLOCK(1.695e9),
      .memory_bytes_s = 0.936e12,
      .l2_bytes_s = 3.1e12,
      .l2_clocks = 501,
      FLOPS(4, 256, 1024, 512, 256)}},
    {"RTX 4090",
     {.name = "NVIDIA GeForce RTX 4090",
      .major = 8,
      .minor = 9,
      .sm_count = 128,
      .memory_bytes = 24e9,
      .l2_bytes = MIB(72),
      .shared_bytes = KIB(99)},
     {.name = "rtx4090",
      SM,
      CLOCK(2.52e9),
      .memory_bytes_s = 1.008e12,
      .l2_bytes_s = 6e12,
      .l2_clocks = 547,
      FLOPS(4, 256, 1024, 512, 256)}},
    {"RTX 5090",
     {.name = "NVIDIA GeForce RTX 5090",
      .major = 12,
      .minor = 0,
      .sm_count = 170,
      .memory_bytes = 32e9,
      .l2_bytes = MIB(96),
      .shared_bytes = KIB(99)},
     {.name = "rtx5090",
      SM,
      CLUSTERS(8),
      CLOCK(2.407e9),
      .memory_bytes_s = 1.792e12,
      .l2_bytes_s = 8.7e12,
      .l2_clocks = 626,
      FLOPS(4, 256, 1024, 512, 256)}},
    {"L4",
     {.name = "NVIDIA L4",
      .major = 8,
      .minor = 9,
      .sm_count = 58,
      .memory_bytes = 24e9,
      .l2_bytes = MIB(48),
      .shared_bytes = KIB(99)},
     {.name = "l4",
      SM,
      CLOCK(2.04e9),
      .memory_bytes_s = 0.3e12,
      .l2_bytes_s = 2.4e12,
      .l2_clocks = 547,
      FLOPS(4, 256, 1024, 1024, 512)}},
    {"L40S",
     {.name = "NVIDIA L40S",
      .major = 8,
      .minor = 9,
      .sm_count = 142,
      .memory_bytes = 48e9,
      .l2_bytes = MIB(96),
      .shared_bytes = KIB(99)},
     {.name = "l40s",
      SM,
      CLOCK(2.52e9),
      .memory_bytes_s = 0.864e12,
      .l2_bytes_s = 6e12,
      .l2_clocks = 547,
      FLOPS(4, 256, 1024, 1024, 512)}},
};

enum { MODEL_COUNT = sizeof(models) / sizeof(models[0]) };

/* The device of the file that was read last; word is NULL when no file was read. */
static struct model described;

/* ---- Names --------------------------------------------------------------------------------------
 */

/* Whether the device's name contains the model's word as a whole word. For a GeForce, further
 * words behind it ("Ti", "D", "Laptop GPU") mean another device. */
static bool names(const struct model *model, const char *device)
{
    size_t length = strlen(model->word);
    bool whole_rest = strncmp(model->word, "RTX", 3) == 0;
    for (const char *at = strstr(device, model->word); at; at = strstr(at + 1, model->word)) {
        char before = at == device ? ' ' : at[-1], after = at[length];
        if (!isalnum((unsigned char)before) &&
            (whole_rest ? after == '\0' : !isalnum((unsigned char)after)))
            return true;
    }
    return false;
}

static const struct model *find_model(const char *name)
{
    for (int i = 0; i < MODEL_COUNT; i++)
        if (strcmp(models[i].machine.name, name) == 0)
            return &models[i];
    return NULL;
}

bool lb_machine_matches(const char *name, const struct lb_device_info *device)
{
    const struct model *model = find_model(name);
    return model && names(model, device->name);
}

/* Lists the models by their words in device names ("H100") or by their short names. */
static void list_models(bool words, char *list, size_t size)
{
    size_t used = 0;
    list[0] = '\0';
    for (int i = 0; i < MODEL_COUNT && used < size; i++)
        used += (size_t)snprintf(list + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 words ? models[i].word : models[i].machine.name);
}

enum lb_status lb_machine_of(const struct lb_device_info *device, struct lb_machine *machine,
                             struct lb_error *err)
{
    char known[256];
    if (described.word && strcmp(described.word, device->name) == 0) {
        *machine = described.machine;
        return LB_OK;
    }
    for (int i = 0; i < MODEL_COUNT; i++)
        if (names(&models[i], device->name)) {
            *machine = models[i].machine;
            return LB_OK;
        }
    list_models(true, known, sizeof(known));
    return lb_fail(err, LB_UNSUPPORTED, "%s: the model of the lower bound has figures for %s only",
                   device->name, known);
}

/* ---- Files --------------------------------------------------------------------------------------
 */

/* Reads "8.9" into the compute capability of a struct lb_device_info, whose `major` is at `to`. */
static bool read_capability(const char *value, void *to)
{
    int major, minor;
    char behind;
    struct lb_device_info *info = (void *)((char *)to - offsetof(struct lb_device_info, major));
    if (sscanf(value, "%2d.%1d%c", &major, &minor, &behind) != 2 || major < 1 || minor < 0)
        return false;
    info->major = major;
    info->minor = minor;
    return true;
}

#define INFO(field)    offsetof(struct model, info.field)
#define MACHINE(field) offsetof(struct model, machine.field)

static const struct lb_machine_key keys[] = {
    {"name", LB_NAME, INFO(name), NULL, NULL},
    {"compute_capability", LB_OTHER, INFO(major), read_capability,
     "a compute capability, such as 8.9"},
    {"sm_count", LB_WHOLE, INFO(sm_count), NULL, NULL},
    {"memory_bytes", LB_REAL, INFO(memory_bytes), NULL, NULL},
    {"l2_bytes", LB_REAL, INFO(l2_bytes), NULL, NULL},
    {"shared_bytes", LB_REAL, INFO(shared_bytes), NULL, NULL},
    {"clock_hz", LB_REAL, MACHINE(clock_hz), NULL, NULL},
    {"clock_max_hz", LB_REAL, MACHINE(clock_max_hz), NULL, NULL},
    {"memory_bytes_s", LB_REAL, MACHINE(memory_bytes_s), NULL, NULL},
    {"l2_bytes_s", LB_REAL, MACHINE(l2_bytes_s), NULL, NULL},
    {"f64_flops_clock", LB_REAL, MACHINE(flops_clock[LB_F64]), NULL, NULL},
    {"f32_flops_clock", LB_REAL, MACHINE(flops_clock[LB_F32]), NULL, NULL},
    {"f16_flops_clock", LB_REAL, MACHINE(flops_clock[LB_F16]), NULL, NULL},
    {"bf16_flops_clock", LB_REAL, MACHINE(flops_clock[LB_BF16]), NULL, NULL},
    {"tf32_flops_clock", LB_REAL, MACHINE(tf32_flops_clock), NULL, NULL},
    {"shared_bytes_clock", LB_REAL, MACHINE(shared_bytes_clock), NULL, NULL},
    {"l2_bytes_clock", LB_REAL, MACHINE(l2_bytes_clock), NULL, NULL},
    {"peer_bytes_clock", LB_REAL_OR_ZERO, MACHINE(peer_bytes_clock), NULL, NULL},
    {"peer_clocks", LB_REAL_OR_ZERO, MACHINE(peer_clocks), NULL, NULL},
    {"l2_clocks", LB_REAL, MACHINE(l2_clocks), NULL, NULL},
    {"node_ns", LB_REAL, MACHINE(node_ns), NULL, NULL},
    {"register_bytes", LB_REAL, MACHINE(register_bytes), NULL, NULL},
    {"cluster", LB_WHOLE_OR_ZERO, MACHINE(cluster), NULL, NULL},
};

static bool take_model(const char *name, void *description)
{
    const struct model *model = find_model(name);
    if (model)
        *(struct model *)description = *model;
    return model != NULL;
}

/* Checks what a single line cannot show. */
static enum lb_status check_whole(const char *path, const struct lb_machine *m,
                                  struct lb_error *err)
{
    if (m->clock_hz > m->clock_max_hz)
        return lb_fail(err, LB_INVALID, "%.300s: clock_hz is above clock_max_hz", path);
    if (m->cluster > 0 && !(m->peer_bytes_clock > 0 && m->peer_clocks > 0))
        return lb_fail(err, LB_INVALID,
                       "%.300s: cluster = %d needs peer_bytes_clock and peer_clocks above 0", path,
                       m->cluster);
    return LB_OK;
}

static enum lb_status read_file(const char *path, struct lb_error *err)
{
    char known[256];
    enum lb_status st = LB_OK;
    struct model model = {.word = NULL};
    list_models(false, known, sizeof(known));
    const struct lb_machine_kind kind = {.noun = "device",
                                         .keys = keys,
                                         .key_count = sizeof(keys) / sizeof(keys[0]),
                                         .known = known,
                                         .example = "h100",
                                         .like = take_model};
    LB_TRY(lb_machine_file_read(path, &kind, &model, err));
    LB_TRY(check_whole(path, &model.machine, err));
    described = model;
    described.word = described.machine.name = described.info.name;
done:
    return st;
}

enum lb_status lb_device_model(const char *name, struct lb_device_info *info, struct lb_error *err)
{
    char known[256];
    const struct model *model = find_model(name);
    if (!model && strpbrk(name, "./")) {
        enum lb_status st = read_file(name, err);
        if (st != LB_OK)
            return st;
        model = &described;
    }
    list_models(false, known, sizeof(known));
    if (!model)
        return lb_fail(err, LB_INVALID,
                       "'%.200s': no device of that name is known; there are %s, and the path of a "
                       "file, with a / or a ., describes another one",
                       name, known);
    *info = model->info;
    info->modelled = true;
    return LB_OK;
}
