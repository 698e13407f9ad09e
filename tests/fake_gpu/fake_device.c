/* A device that is host memory, for tests. */
#include "fake_device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue.h"

static struct {
    enum fake_fault fault;
    struct fake_counts counts;
    bool capturing, lost;
    bool timed; /* since the fault was planted */
    double started_ns;
} fake;

/* Every block has its size in front, and stays aligned. */
enum { HEADER = 256 };
static const double all_bytes = 256 << 20;

static enum lb_status fake_open(int ordinal, struct lb_device_info *info, struct lb_error *err)
{
    if (fake.fault == FAKE_ABSENT)
        return lb_fail(err, LB_ABSENT, "the fake device is told to be absent");
    *info = (struct lb_device_info){.name = "Fake GPU",
                                    .uuid = "GPU-fake",
                                    .ordinal = ordinal,
                                    .major = 9,
                                    .sm_count = 132,
                                    .memory_bytes = all_bytes,
                                    .l2_bytes = 1 << 20,
                                    .shared_bytes = 227 << 10};
    return LB_OK;
}

static void *fake_stream(void)
{
    return NULL;
}

/* What must not happen between the begin and the end of a capture; else all work that is enqueued
 * before it is done. */
static enum lb_status outside_capture(const char *what, struct lb_error *err)
{
    if (fake.lost)
        return lb_fail(err, LB_FAILED, "%s: an illegal memory access was encountered", what);
    if (fake.capturing)
        return lb_fail(err, LB_FAILED, "%s in a graph capture", what);
    return fake_queue_run(err);
}

static enum lb_status fake_memory(double *free_bytes, double *total_bytes, struct lb_error *err)
{
    (void)err;
    *total_bytes = all_bytes;
    *free_bytes = fake.fault == FAKE_OOM ? 1024 : all_bytes - fake.counts.bytes;
    return LB_OK;
}

static enum lb_status fake_allocate(size_t bytes, void **out, struct lb_error *err)
{
    *out = NULL;
    if (outside_capture("allocating", err) != LB_OK)
        return LB_FAILED;
    if (fake.fault == FAKE_OOM_LATE || (double)bytes + fake.counts.bytes > all_bytes)
        return lb_fail(err, LB_OOM, "allocating %zu bytes of fake memory: out of memory", bytes);
    char *block = NULL;
    if (posix_memalign((void **)&block, HEADER, bytes + HEADER) != 0)
        return lb_fail(err, LB_OOM, "out of host memory for fake memory");
    memcpy(block, &bytes, sizeof(bytes));
    memset(block + HEADER, 0xff, bytes); /* what nobody wrote is NaN */
    fake.counts.allocations++;
    fake.counts.bytes += (double)bytes;
    *out = block + HEADER;
    return LB_OK;
}

static void fake_release(void *memory)
{
    size_t bytes;
    if (!memory)
        return;
    char *block = (char *)memory - HEADER;
    fake_queue_flush();
    memcpy(&bytes, block, sizeof(bytes));
    fake.counts.allocations--;
    fake.counts.bytes -= (double)bytes;
    free(block);
}

static void hang_if(bool hung)
{
    while (hung)
        pause();
}

static enum lb_status fake_upload(void *to, const void *from, size_t bytes, struct lb_error *err)
{
    hang_if(fake.fault == FAKE_HANG_UPLOAD);
    enum lb_status st = outside_capture("copying", err);
    if (st == LB_OK)
        memcpy(to, from, bytes);
    return st;
}

static enum lb_status fake_download(void *to, const void *from, size_t bytes, struct lb_error *err)
{
    hang_if(fake.fault == FAKE_HANG_RECHECK && fake.timed);
    enum lb_status st = outside_capture("copying", err);
    if (st == LB_OK)
        memcpy(to, from, bytes);
    return st;
}

static enum lb_status fake_fill(void *to, int byte, size_t bytes, struct lb_error *err)
{
    enum lb_status st = outside_capture("filling", err);
    if (st == LB_OK)
        memset(to, byte, bytes);
    fake_clock_add(FAKE_FILL_NS);
    fake.counts.fills++;
    return st;
}

static enum lb_status fake_synchronize(struct lb_error *err)
{
    fake.counts.waits++;
    hang_if(fake.fault == FAKE_HANG);
    if (fake.fault == FAKE_ILLEGAL_ADDRESS)
        fake.lost = true;
    return outside_capture("waiting for the device", err);
}

static enum lb_status fake_start(struct lb_error *err)
{
    enum lb_status st = outside_capture("starting the clock", err);
    fake.counts.events++;
    fake.timed = true;
    fake.started_ns = fake_clock_ns();
    return st;
}

static enum lb_status fake_stop(double *ns, struct lb_error *err)
{
    enum lb_status st = fake_synchronize(err);
    fake.counts.events++;
    *ns = fake_clock_ns() - fake.started_ns + FAKE_EVENTS_NS;
    return st;
}

static enum lb_status fake_capture_begin(struct lb_error *err)
{
    enum lb_status st = fake_capture_open(err);
    fake.capturing = st == LB_OK;
    return st;
}

static enum lb_status fake_capture_end(void **graph, struct lb_error *err)
{
    enum lb_status st = fake_capture_close(graph, err);
    fake.capturing = false;
    if (st == LB_OK && fake.fault == FAKE_NO_CAPTURE) {
        fake_graph_free(*graph);
        *graph = NULL;
        st = lb_fail(err, LB_FAILED, "capturing a graph: operation not permitted");
    }
    fake.counts.captures += st == LB_OK;
    return st;
}

static enum lb_status fake_replay(void *graph, struct lb_error *err)
{
    fake.counts.replays++;
    return fake_enqueue_graph(graph, err);
}

static bool fake_lost(void)
{
    return fake.lost;
}

const struct lb_device_api fake_device = {
    .open = fake_open,
    .stream = fake_stream,
    .allocate = fake_allocate,
    .release = fake_release,
    .memory = fake_memory,
    .upload = fake_upload,
    .download = fake_download,
    .fill = fake_fill,
    .synchronize = fake_synchronize,
    .start = fake_start,
    .stop = fake_stop,
    .capture_begin = fake_capture_begin,
    .capture_end = fake_capture_end,
    .replay = fake_replay,
    .graph_release = fake_graph_free,
    .lost = fake_lost,
};

void fake_device_install(enum fake_fault fault)
{
    memset(&fake, 0, sizeof(fake));
    fake.fault = fault;
    fake_queue_reset();
    lb_device_use(&fake_device);
}

void fake_device_break(enum fake_fault fault)
{
    fake.fault = fault;
    fake.timed = false;
}

const struct fake_counts *fake_device_counts(void)
{
    return &fake.counts;
}
