/* The device layer: which device this process has, and its memory as a space. */
#include "device/device.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"

#ifdef LB_HAVE_CUDA

static const struct lb_device_api *const built = &lb_device_cuda;

#else

static enum lb_status absent_open(int ordinal, struct lb_device_info *info, struct lb_error *err)
{
    (void)ordinal, (void)info;
    return lb_fail(err, LB_ABSENT, "this program was built without CUDA");
}

static const struct lb_device_api absent_device = {.open = absent_open};
static const struct lb_device_api *const built = &absent_device;

#endif

/* The device of this process. */
static struct {
    const struct lb_device_api *api; /* NULL: the built one */
    bool asked;                      /* status, info and why are set */
    enum lb_status status;
    struct lb_device_info info;
    struct lb_error why;
} current;

bool lb_has_nvidia_driver(void)
{
    static const char *const files[] = {"/dev/nvidiactl", "/proc/driver/nvidia/version",
                                        "/dev/nvmap" /* Tegra */, "/dev/dxg" /* WSL */};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (access(files[i], F_OK) == 0)
            return true;
    return false;
}

const struct lb_device_api *lb_device(void)
{
    return current.api ? current.api : built;
}

void lb_device_use(const struct lb_device_api *api)
{
    memset(&current, 0, sizeof(current));
    current.api = api;
}

enum lb_status lb_device_open(int ordinal, struct lb_error *err)
{
    if (!current.asked) {
        current.info = (struct lb_device_info){.ordinal = ordinal};
        current.status = lb_device()->open(ordinal, &current.info, &current.why);
        current.asked = true;
    }
    return current.status == LB_OK ? LB_OK : lb_fail(err, current.status, "%s", current.why.text);
}

void lb_device_assume(const struct lb_device_info *info, const char *absent)
{
    current.asked = true;
    current.status = info ? LB_OK : LB_ABSENT;
    if (info)
        current.info = *info;
    else
        snprintf(current.why.text, sizeof(current.why.text), "%s", absent);
}

const struct lb_device_info *lb_device_known(struct lb_error *why)
{
    if (current.asked && current.status == LB_OK)
        return &current.info;
    lb_fail(why, LB_ABSENT, "%s",
            current.asked ? current.why.text : "nothing has looked for a device yet");
    return NULL;
}

enum lb_status lb_device_needs(const struct lb_device_info *device, int major, const char *what,
                               struct lb_error *why)
{
    if (!device || device->major >= major)
        return LB_OK;
    const char *name = device->name[0] ? device->name : "device";
    return lb_fail(why, LB_UNSUPPORTED, "%s%sneeds compute capability %d.0, this is %s %s (%d.%d)",
                   what, what[0] ? " " : "", major,
                   strchr("AEIO", name[0]) || strncmp(name, "NV", 2) == 0 ? "an" : "a", name,
                   device->major, device->minor);
}

enum lb_status lb_device_warm_up(struct lb_error *err)
{
    enum { CALLS = 200 }; /* each takes 400000 cycles, a quarter of a millisecond */
    enum lb_status st = LB_OK;
    double ns;
    for (int i = 0; i < CALLS && st == LB_OK; i++)
        st = lb_device()->reference(&ns, err);
    return st;
}

/* What to do when a thread ends. */
struct ending {
    void (*end)(void *what);
    void *what;
    struct ending *next;
};

static pthread_key_t endings; /* of a thread: its latest request */
static int key_error;

static void end_all(void *first)
{
    for (struct ending *at = first, *next; at; at = next) {
        next = at->next;
        at->end(at->what);
        free(at);
    }
}

static void create_endings(void)
{
    key_error = pthread_key_create(&endings, end_all);
}

enum lb_status lb_at_thread_end(void (*end)(void *what), void *what, struct lb_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_endings);
    struct ending *ending = lb_needed(malloc(sizeof(*ending)));
    *ending = (struct ending){end, what, key_error ? NULL : pthread_getspecific(endings)};
    int error = key_error ? key_error : pthread_setspecific(endings, ending);
    if (error == 0)
        return LB_OK;
    free(ending);
    return lb_fail(err, LB_OOM, "noting what ends with a thread failed: %s", strerror(error));
}

double lb_mean_clock_mhz(const struct lb_clock_reading *from, const struct lb_clock_reading *to,
                         size_t count)
{
    double sum = 0;
    size_t read = 0;
    for (size_t i = 0; i < count; i++) {
        if (from[i].ns == 0 || to[i].ns <= from[i].ns || to[i].cycles <= from[i].cycles)
            continue;
        sum += 1e3 * (double)(to[i].cycles - from[i].cycles) / (double)(to[i].ns - from[i].ns);
        read++;
    }
    return read > 0 ? sum / (double)read : (double)NAN;
}

static enum lb_status space_allocate(size_t bytes, void **out, struct lb_error *err)
{
    const struct lb_device_api *device = lb_device();
    enum lb_status st = LB_OK;
    void *whole = NULL;
    *out = NULL;
    if (bytes == 0)
        return LB_OK;
    if (bytes > SIZE_MAX - LB_GUARD_BEFORE - LB_GUARD_BEHIND)
        return lb_fail(err, LB_OOM, "out of memory for a block of %zu bytes", bytes);
    LB_TRY(device->allocate(LB_GUARD_BEFORE + bytes + LB_GUARD_BEHIND, &whole, err));
    LB_TRY(lb_guard_write(device->upload, (char *)whole + LB_GUARD_BEFORE, bytes, err));
    *out = (char *)whole + LB_GUARD_BEFORE;
done:
    if (st != LB_OK && whole)
        device->release(whole);
    return st;
}

static void space_release(void *memory)
{
    if (memory)
        lb_device()->release((char *)memory - LB_GUARD_BEFORE);
}

static const char *space_overrun(const void *memory)
{
    return lb_guard_overrun(lb_device()->download, memory);
}

static enum lb_status space_upload(void *to, const void *host, size_t bytes, struct lb_error *err)
{
    return bytes == 0 ? LB_OK : lb_device()->upload(to, host, bytes, err);
}

static enum lb_status space_download(void *host, const void *from, size_t bytes,
                                     struct lb_error *err)
{
    return bytes == 0 ? LB_OK : lb_device()->download(host, from, bytes, err);
}

/* All bits set is NaN in every dtype. */
static enum lb_status space_poison(void *to, size_t bytes, struct lb_error *err)
{
    return bytes == 0 ? LB_OK : lb_device()->fill(to, 0xff, bytes, err);
}

static enum lb_status space_hash(const void *memory, size_t bytes, uint64_t *hash,
                                 struct lb_error *err)
{
    uint64_t added = 0;
    enum lb_status st = bytes == 0 ? LB_OK : lb_device()->hash(memory, bytes, &added, err);
    *hash =
        lb_hash_bytes(*hash, &added, sizeof(added)); /* so that equal blocks do not cancel out */
    return st;
}

static enum lb_status space_synchronize(struct lb_error *err)
{
    return lb_device()->synchronize(err);
}

static double space_available(void)
{
    return lb_device()->available();
}

const struct lb_space lb_device_space = {
    .name = "device",
    .allocate = space_allocate,
    .release = space_release,
    .upload = space_upload,
    .download = space_download,
    .poison = space_poison,
    .hash = space_hash,
    .synchronize = space_synchronize,
    .available = space_available,
    .overrun = space_overrun,
};
