/* The host's memory space, and how much memory the host has. */
#include "device/host_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "host/cgroup.h"
#include "host/process.h"

void lb_poison(void *memory, size_t bytes)
{
    if (memory)
        memset(memory, 0xff, bytes); /* all bits set: NaN in every dtype */
}

/* The band behind a block: no plausible numbers, and no constant byte. */
static const unsigned char *band_behind(void)
{
    static unsigned char band[LB_GUARD_BEHIND];
    for (size_t i = 0; band[0] == 0 && i < LB_GUARD_BEHIND; i++)
        band[LB_GUARD_BEHIND - 1 - i] = (unsigned char)((0xa5 ^ (i * 7)) | 1);
    return band;
}

/* The band before a block begins with its size in bytes and, as a check, the inverted size, and
 * continues as the other band. */
static void make_before(unsigned char before[LB_GUARD_BEFORE], size_t bytes)
{
    const size_t twice[2] = {bytes, ~bytes};
    memcpy(before, band_behind(), LB_GUARD_BEFORE);
    memcpy(before, twice, sizeof(twice));
}

enum lb_status lb_guard_write(lb_copy *upload, void *memory, size_t bytes, struct lb_error *err)
{
    unsigned char before[LB_GUARD_BEFORE];
    make_before(before, bytes);
    LB_CHECK(upload((char *)memory - LB_GUARD_BEFORE, before, LB_GUARD_BEFORE, err));
    return upload((char *)memory + bytes, band_behind(), LB_GUARD_BEHIND, err);
}

const char *lb_guard_overrun(lb_copy *download, const void *memory)
{
    const char *start = memory;
    unsigned char before[LB_GUARD_BEFORE], expected[LB_GUARD_BEFORE], behind[LB_GUARD_BEHIND];
    size_t bytes;
    if (!memory || download(before, start - LB_GUARD_BEFORE, LB_GUARD_BEFORE, NULL) != LB_OK)
        return NULL;
    memcpy(&bytes, before, sizeof(bytes));
    make_before(expected, bytes);
    if (memcmp(before, expected, LB_GUARD_BEFORE) != 0)
        return "before its start";
    return download(behind, start + bytes, LB_GUARD_BEHIND, NULL) == LB_OK &&
                   memcmp(behind, band_behind(), LB_GUARD_BEHIND) != 0
               ? "past its end"
               : NULL;
}

enum { ALIGNMENT = 256, HUGE_PAGE = 2 << 20, LARGE = 2 * HUGE_PAGE };

static enum lb_status host_copy(void *to, const void *from, size_t bytes, struct lb_error *err)
{
    (void)err;
    if (bytes > 0)
        memcpy(to, from, bytes);
    return LB_OK;
}

#ifdef __SANITIZE_ADDRESS__
enum { BEFORE = 0, BEHIND = 0 };
#define HOST_OVERRUN NULL
#else
enum { BEFORE = LB_GUARD_BEFORE, BEHIND = LB_GUARD_BEHIND };
#define HOST_OVERRUN host_overrun

static const char *host_overrun(const void *memory)
{
    return lb_guard_overrun(host_copy, memory);
}
#endif

/* Asks for huge pages, so that neither the physical place of small pages nor walks of page tables
 * decide how fast a case is: an LSTM of one row that reads 16 MiB of weights per step was 3 to 9 %
 * faster on them. `whole` is aligned to HUGE_PAGE. Where the system has none, nothing changes. */
static void ask_for_huge_pages(void *whole, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    size_t pages = bytes - bytes % (size_t)sysconf(_SC_PAGESIZE);
    /* Memory that the heap used before may still be in small pages, which are given back first. */
    (void)madvise(whole, pages, MADV_DONTNEED);
    (void)madvise(whole, pages, MADV_HUGEPAGE);
#else
    (void)whole, (void)bytes;
#endif
}

static enum lb_status host_allocate(size_t bytes, void **out, struct lb_error *err)
{
    void *whole;
    *out = NULL;
    if (bytes == 0)
        return LB_OK;
    if (bytes > SIZE_MAX - BEFORE - BEHIND ||
        posix_memalign(&whole, bytes < LARGE ? ALIGNMENT : HUGE_PAGE, BEFORE + bytes + BEHIND) !=
            0) {
        char size[32];
        lb_format_bytes((double)bytes, size);
        return lb_fail(err, LB_OOM, "allocating %s of host memory failed", size);
    }
    if (bytes >= LARGE)
        ask_for_huge_pages(whole, BEFORE + bytes + BEHIND);
    *out = (char *)whole + BEFORE;
    return BEHIND > 0 ? lb_guard_write(host_copy, *out, bytes, err) : LB_OK;
}

static void host_release(void *memory)
{
    if (memory)
        free((char *)memory - BEFORE);
}

static enum lb_status host_poison(void *to, size_t bytes, struct lb_error *err)
{
    (void)err;
    lb_poison(to, bytes);
    return LB_OK;
}

static enum lb_status host_hash(const void *memory, size_t bytes, uint64_t *hash,
                                struct lb_error *err)
{
    (void)err;
    *hash = lb_hash_bytes(*hash, memory, bytes);
    return LB_OK;
}

static enum lb_status host_synchronize(struct lb_error *err)
{
    (void)err;
    return LB_OK;
}

const struct lb_space lb_host_space = {
    .name = "host",
    .allocate = host_allocate,
    .release = host_release,
    .upload = host_copy,
    .download = host_copy,
    .poison = host_poison,
    .hash = host_hash,
    .synchronize = host_synchronize,
    .available = lb_host_available,
    .overrun = HOST_OVERRUN,
};

/* A "Name:   123 kB" line of /proc/meminfo in bytes; 0 when it is not there. */
static double meminfo(const char *name)
{
    return fmax(0, 1024 * lb_read_number("/proc/meminfo", name)); /* fmax passes over NaN */
}

static double limit_bytes; /* of this process; 0: none */

void lb_host_limit(double bytes)
{
    limit_bytes = bytes;
}

double lb_host_available(void)
{
    double available = fmin(meminfo("MemAvailable:"), lb_cgroup_room(""));
    if (limit_bytes > 0)
        available = fmin(available, fmax(limit_bytes - lb_resident_bytes(getpid()), 0));
    return available;
}

double lb_host_total(void)
{
    return meminfo("MemTotal:");
}
