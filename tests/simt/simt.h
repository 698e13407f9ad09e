/* Runs CUDA kernel source on the host, with one fiber per CUDA thread and all blocks resident.
 *
 * This header is for tests: memory, launches and findings. Kernels use the headers in device/. Only
 * one launch runs at the same time, on the calling thread; nothing here is thread-safe. */
#ifndef LB_SIMT_H
#define LB_SIMT_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>
#include <vector_types.h>

namespace simt
{

/* A line of kernel source. As a default argument, here() returns the caller's line. */
struct site {
    const char *file;
    int line;
    static site here(const char *file = __builtin_FILE(), int line = __builtin_LINE())
    {
        return {file, line};
    }
};

/* Bytes of memory. */
struct span {
    unsigned char *begin;
    size_t bytes;
};

/* The global memory that a launch changed. */
using written = std::vector<span>;

struct launch_config {
    const char *kernel; /* name for reports */
    dim3 grid = {1, 1, 1};
    dim3 block = {1, 1, 1};
    size_t shared_bytes = 0; /* dynamic shared memory per block */
    unsigned cluster = 1;    /* consecutive blocks per cluster */
    uint64_t seed = 0;  /* 0: round robin; else a random schedule, the same for the same seed */
    bool count = false; /* count what accesses cost; needs kernels compiled for check mode */
    /* With programmatic dependent launch, this launch begins before the one before has written what
     * is in *follows: its threads find poison there until all have called grid_dependency_wait, and
     * may write nothing before. nullptr: the launch begins after the one before. */
    const written *follows = nullptr;
    written *leaves = nullptr;    /* receives what this launch changes; may be *follows */
    const span *memory = nullptr; /* [memory_count] global memory beside device_allocate's */
    size_t memory_count = 0;
};

/* What the emulator finds. Wrong results are for the test to find. */
enum class fault {
    race,          /* two unordered accesses, of which one is a write */
    uninitialised, /* read of poison */
    bounds,        /* outside every allocation */
    remote_start,  /* a peer's shared memory before it is known to run */
    remote_exit,   /* a peer's shared memory after, or not ordered before, its exit */
    early,         /* a launch that follows another writes before that has ended */
    deadlock,      /* all threads wait */
    livelock,      /* all threads spin */
    misuse,        /* divergent barrier, bad mask, broken mbarrier, copy never waited for */
};

const char *fault_name(fault kind);

struct finding {
    fault kind;
    std::string text; /* kernel, address, thread and source line of both accesses */
};

/* What the accesses of one kind cost the warps of the first block, and the minimum that they could
 * cost. */
struct access_cost {
    uint64_t instructions = 0;     /* per warp */
    uint64_t units = 0, ideal = 0; /* shared memory: wavefronts; global: sectors of 32 bytes */
    /* Global: lines of 128 bytes per group of lanes that is served at once. */
    uint64_t lines = 0, lines_ideal = 0;
};

struct outcome {
    std::vector<finding> findings;            /* one for each kind and pair of source lines */
    std::map<std::string, access_cost> costs; /* where counted: "shared load", ... */
    std::map<std::string, uint64_t>
        collectives; /* barriers, shuffles and matrix products per warp */

    bool ok() const
    {
        return findings.empty();
    }
    bool has(fault kind) const;
    std::string text() const;      /* all findings, one per line */
    void add(const outcome &more); /* adds the outcome of a later launch */
};

/* Whether the kernels of this program were compiled for check mode, with the compiler's
 * thread-sanitizer calls. It follows from the build, so that no test checks for races by mistake
 * without them. */
#ifdef __SANITIZE_THREAD__
constexpr bool check_mode = true;
#else
constexpr bool check_mode = false;
#endif

outcome launch_kernel(const launch_config &config, bool check, const std::function<void()> &kernel);

inline outcome launch(const launch_config &config, const std::function<void()> &kernel)
{
    return launch_kernel(config, check_mode && !config.count, kernel);
}

/* Allocates global memory, poisoned with 0xff (NaN in every float type), with red zones around it.
 * device_reset frees all of it. */
void *device_allocate(size_t bytes, const char *name, bool initialised);
void device_reset();

/* Allocates an array [count] of poison. */
template <class T> T *device_array(size_t count, const char *name)
{
    return static_cast<T *>(device_allocate(count * sizeof(T), name, false));
}

/* Allocates a copy of values. */
template <class T> T *device_copy(const std::vector<T> &values, const char *name)
{
    T *copy = static_cast<T *>(device_allocate(values.size() * sizeof(T), name, true));
    for (size_t i = 0; i < values.size(); i++)
        copy[i] = values[i];
    return copy;
}

} // namespace simt

#endif
