/* A device without hardware, for tests. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#endif
#include "fake_device.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "device/streams.h"
#include "queue.h"

/* Each block of device memory is a mapping of its own that ends at an inaccessible page. The
 * device can use it while it works. The host never can, unless it shares the memory. */
struct block {
    char *memory, *mapping;
    size_t bytes, mapped;
    struct block *next;
};

static struct {
    enum fake_fault fault;
    struct fake_counts counts;
    int clock_events; /* counts.events when the clocks were read first */
    bool capturing, lost;
    bool timed, stopped; /* since the fault was planted */
    bool shared;         /* the host may use the memory */
    bool hollow;         /* addresses have no memory behind them */
    double started_ns;
    bool holding, expired; /* a hold is enqueued with no stop yet; the last one was too short */
    bool start_waits;      /* the start event comes after that hold */
    double launching_ns;   /* time of the launches during that hold */
    struct block *blocks;
    struct lb_device_info info;
} fake;

enum {
    ALIGNMENT = 256, /* and no more, which is what cudaMalloc guarantees */
    LARGE = 8 << 20  /* bytes of a block from which on only its ends are written when it is
                      * allocated: protecting pages that were written is what takes time */
};

static const struct lb_device_info usual = {.name = "Fake GPU",
                                            .uuid = "GPU-fake",
                                            .major = 9,
                                            .sm_count = 132,
                                            .memory_bytes = 256 << 20,
                                            .l2_bytes = 1 << 20,
                                            .shared_bytes = 227 << 10};

static void protect_block(const struct block *block, int protection)
{
    if (!fake.shared && !fake.hollow)
        (void)mprotect(block->mapping, block->mapped, protection);
}

static void protect(int protection)
{
    for (const struct block *block = fake.blocks; block; block = block->next)
        protect_block(block, protection);
}

/* The device works from enter() to leave(). */
static void enter(void)
{
    protect(PROT_READ | PROT_WRITE);
}

static void leave(void)
{
    protect(PROT_NONE);
}

/* ---- Work that follows a wrong pointer ------------------------------------------------------ */

static sigjmp_buf before_work;

static void on_fault(int signal_number)
{
    siglongjmp(before_work, signal_number);
}

enum lb_status fake_device_lose(struct lb_error *err)
{
    fake.lost = true;
    return lb_fail(err, LB_FAILED, "an illegal memory access was encountered");
}

/* Runs everything that is enqueued. A memory fault of the host while it runs is a fault of the
 * device. An empty queue returns at once, because changing the protection of all memory takes
 * longer than most work. */
static enum lb_status run_enqueued(struct lb_error *err)
{
    struct sigaction fault = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, segv, bus;
    enum lb_status st;
    if (fake_queue_is_empty())
        return LB_OK;
    enter();
    sigaction(SIGSEGV, &fault, &segv);
    sigaction(SIGBUS, &fault, &bus);
    if (sigsetjmp(before_work, 0) == 0)
        st = fake_queue_run(err);
    else
        st = fake_device_lose(err);
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    leave();
    return st;
}

bool fake_device_strikes(enum fake_fault fault)
{
    if (fake.fault != fault)
        return false;
    fake.fault = FAKE_NONE;
    return true;
}

bool fake_device_capturing(void)
{
    return fake.capturing;
}

const struct lb_device_info *fake_device_info(void)
{
    return &fake.info;
}

void fake_device_be(const struct lb_device_info *info)
{
    fake.info = *info;
}

bool fake_device_hollow(void)
{
    return fake.hollow;
}

void fake_device_hollow_out(void)
{
    fake.hollow = true;
}

/* Returns the block of the device's memory that contains this address; NULL when there is none. */
static const struct block *block_of(const char *address)
{
    for (const struct block *block = fake.blocks; block; block = block->next)
        if (address >= block->memory && address < block->memory + block->bytes)
            return block;
    return NULL;
}

void fake_device_each_block(void (*visit)(void *memory, size_t bytes, void *context), void *context)
{
    for (const struct block *block = fake.blocks; block; block = block->next)
        visit(block->memory, block->bytes, context);
}

bool fake_device_holds(const void *memory, size_t bytes)
{
    const struct block *block = block_of(memory);
    return block && bytes <= (size_t)(block->memory + block->bytes - (const char *)memory);
}

/* ---- Copies and fills within the device's memory -------------------------------------------- */

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

/* fake_work */
static enum lb_status run_copy(const void *arguments, struct lb_error *err)
{
    const struct copy *c = arguments;
    (void)err;
    if (!fake.hollow)
        memcpy(c->to, c->from, c->bytes);
    return LB_OK;
}

enum lb_status fake_enqueue_copy(void *stream, void *to, const void *from, size_t bytes,
                                 struct lb_error *err)
{
    const struct copy c = {to, from, bytes};
    return fake_device_holds(to, bytes) && fake_device_holds(from, bytes)
               ? fake_enqueue(stream, run_copy, &c, sizeof(c), err)
               : lb_fail(err, LB_FAILED, "copying: invalid argument");
}

struct fill {
    void *to;
    int byte;
    size_t bytes;
};

/* fake_work */
static enum lb_status run_fill(const void *arguments, struct lb_error *err)
{
    const struct fill *fill = arguments;
    (void)err;
    if (!fake.hollow)
        memset(fill->to, fill->byte, fill->bytes);
    return LB_OK;
}

enum lb_status fake_enqueue_fill(void *stream, void *to, int byte, size_t bytes,
                                 struct lb_error *err)
{
    const struct fill fill = {to, byte, bytes};
    return fake_device_holds(to, bytes) ? fake_enqueue(stream, run_fill, &fill, sizeof(fill), err)
                                        : lb_fail(err, LB_FAILED, "filling: invalid argument");
}

/* Returns the elements [rows, columns] of a matrix whose rows are ld apart. The caller frees them.
 */
static double *widen(enum lb_dtype dtype, const void *from, int64_t rows, int64_t columns,
                     int64_t ld)
{
    double *to = malloc((size_t)(rows * columns) * sizeof(*to));
    if (!to)
        abort();
    for (int64_t i = 0; i < rows; i++)
        lb_load(dtype, (const char *)from + (size_t)(i * ld) * lb_dtype_size(dtype),
                to + i * columns, (size_t)columns);
    return to;
}

enum lb_status fake_gemm(const struct lb_gemm *g, struct lb_error *err)
{
    (void)err;
    fake.counts.gemms++;
    if (g->k < 1)
        return LB_OK;
    double *a =
        widen(g->in, g->a, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k, g->lda);
    double *b =
        widen(g->in, g->b, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n, g->ldb);
    double *row = malloc((size_t)g->n * sizeof(*row));
    if (!row)
        abort();
    for (int64_t i = 0; i < g->m; i++) {
        char *c = (char *)g->c + (size_t)(i * g->ldc) * lb_dtype_size(g->out);
        memset(row, 0, (size_t)g->n * sizeof(*row));
        if (g->accumulate)
            lb_load(g->out, c, row, (size_t)g->n);
        for (int64_t k = 0; k < g->k; k++)
            for (int64_t j = 0; j < g->n; j++)
                row[j] += a[g->transpose_a ? k * g->m + i : i * g->k + k] *
                          b[g->transpose_b ? j * g->k + k : k * g->n + j];
        lb_store(g->out, c, row, (size_t)g->n);
    }
    free(row);
    free(b);
    free(a);
    return LB_OK;
}

/* ---- The device's functions ----------------------------------------------------------------- */

static enum lb_status fake_open(int ordinal, struct lb_device_info *info, struct lb_error *err)
{
    if (fake.fault == FAKE_ABSENT)
        return lb_fail(err, LB_ABSENT, "the fake device is told to be absent");
    *info = fake.info;
    info->ordinal = ordinal;
    return LB_OK;
}

static void *fake_stream(void)
{
    return NULL;
}

/* Called by what is not allowed during a capture, which then fails. Otherwise it first runs all
 * enqueued work. */
static enum lb_status outside_capture(const char *what, struct lb_error *err)
{
    if (fake.lost)
        return lb_fail(err, LB_FAILED, "%s: an illegal memory access was encountered", what);
    if (fake.capturing)
        return lb_fail(err, LB_FAILED, "%s in a graph capture", what);
    struct lb_error why = {""};
    enum lb_status st = run_enqueued(&why);
    return st == LB_OK
               ? LB_OK
               : lb_fail(err, st, "%s%s%s", fake.lost ? what : "", fake.lost ? ": " : "", why.text);
}

static double fake_available(void)
{
    return fake.fault == FAKE_OOM ? 1024 : fake.info.memory_bytes - fake.counts.bytes;
}

static enum lb_status fake_allocate(size_t bytes, void **out, struct lb_error *err)
{
    *out = NULL;
    if (outside_capture("allocating", err) != LB_OK)
        return LB_FAILED;
    if (fake.fault == FAKE_OOM_LATE || (double)bytes + fake.counts.bytes > fake.info.memory_bytes)
        return lb_fail(err, LB_OOM, "allocating %zu bytes of fake memory: out of memory", bytes);
    size_t page = (size_t)sysconf(_SC_PAGESIZE),
           room = (bytes + ALIGNMENT - 1) & -(size_t)ALIGNMENT;
    size_t mapped = (room + page - 1) & -page;
    struct block *block = malloc(sizeof(*block));
    char *mapping =
        mmap(NULL, mapped + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!block || mapping == MAP_FAILED) {
        free(block);
        return lb_fail(err, LB_OOM, "out of host memory for fake memory");
    }
    *block = (struct block){mapping + mapped - room, mapping, bytes, mapped, fake.blocks};
    if (!fake.hollow) {
        (void)mprotect(mapping, mapped, PROT_READ | PROT_WRITE);
        size_t ends = mapped < LARGE ? mapped : LARGE / 2;
        memset(mapping, 0xff, ends); /* unwritten memory is NaN */
        memset(mapping + mapped - ends, 0xff, ends);
    }
    fake.blocks = block;
    protect_block(block, PROT_NONE);
    fake.counts.allocations++;
    fake.counts.bytes += (double)bytes;
    *out = block->memory;
    return LB_OK;
}

/* Runs the work of all streams. */
static void flush_enqueued(void)
{
    if (fake.lost)
        return;
    fake_queue_join();
    (void)run_enqueued(NULL);
}

static void free_block(struct block *block)
{
    munmap(block->mapping, block->mapped + (size_t)sysconf(_SC_PAGESIZE));
    free(block);
}

static void fake_release(void *memory)
{
    struct block **at = &fake.blocks;
    if (!memory)
        return;
    flush_enqueued();
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    struct block *block = *at;
    if (!block)
        abort(); /* the driver would report an invalid pointer, but no caller reads that */
    *at = block->next;
    fake.counts.allocations--;
    fake.counts.bytes -= (double)block->bytes;
    free_block(block);
}

/* Copies between host and device. `device` must be the device's address, or the copy is refused. */
static enum lb_status copy(void *to, const void *from, const void *device, size_t bytes,
                           struct lb_error *err)
{
    enum lb_status st = outside_capture("copying", err);
    if (st != LB_OK)
        return st;
    if (!fake_device_holds(device, bytes) || fake_device_holds(device == to ? from : to, 0))
        return lb_fail(err, LB_FAILED, "copying: invalid argument");
    const struct block *block = block_of(device);
    protect_block(block, PROT_READ | PROT_WRITE);
    if (!fake.hollow)
        memcpy(to, from, bytes);
    else if (device == from)
        memset(to, 0, bytes);
    protect_block(block, PROT_NONE);
    return LB_OK;
}

static void hang_if(bool hung)
{
    while (hung)
        pause();
}

static enum lb_status fake_upload(void *to, const void *from, size_t bytes, struct lb_error *err)
{
    hang_if(fake.fault == FAKE_HANG_UPLOAD);
    return copy(to, from, to, bytes, err);
}

static enum lb_status fake_download(void *to, const void *from, size_t bytes, struct lb_error *err)
{
    hang_if(fake.fault == FAKE_HANG_RECHECK && fake.timed);
    return copy(to, from, from, bytes, err);
}

static enum lb_status fake_fill(void *to, int byte, size_t bytes, struct lb_error *err)
{
    fake.counts.fills++;
    enum lb_status st = fake_enqueue_fill(NULL, to, byte, bytes, err);
    /* A host that shares the memory writes there without waiting, so the fill must run now. */
    return st == LB_OK && fake.shared && !fake.capturing ? fake_queue_run(err) : st;
}

static enum lb_status fake_hash(const void *memory, size_t bytes, uint64_t *hash,
                                struct lb_error *err)
{
    enum lb_status st = outside_capture("hashing", err);
    if (st != LB_OK)
        return st;
    hang_if(fake.fault == FAKE_HANG_HASH || (fake.fault == FAKE_HANG_RECHECK && fake.timed));
    if (!fake_device_holds(memory, bytes))
        return lb_fail(err, LB_FAILED, "hashing: invalid argument");
    enter();
    *hash = lb_hash_bytes(*hash, memory, bytes);
    leave();
    return LB_OK;
}

static enum lb_status fake_overflow(const void *memory, size_t count, uint64_t *found,
                                    struct lb_error *err)
{
    enum lb_status st = outside_capture("checking for overflow", err);
    if (st != LB_OK)
        return st;
    if (!fake_device_holds(memory, 2 * count))
        return lb_fail(err, LB_FAILED, "checking for overflow: invalid argument");
    enter();
    *found = 0;
    for (size_t i = 0; i < count; i++)
        *found += (((const uint16_t *)memory)[i] & 0x7c00) == 0x7c00;
    leave();
    return LB_OK;
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
    fake.start_waits = fake.holding;
    return st;
}

static enum lb_status fake_hold(struct lb_error *err)
{
    enum lb_status st = outside_capture("holding the stream", err);
    fake.counts.holds++;
    fake.holding = true;
    fake.expired = fake.fault == FAKE_HOLD_EXPIRES;
    fake.launching_ns = 0;
    return st;
}

static bool fake_held(void)
{
    return !fake.expired;
}

static enum lb_status fake_clock_begin(struct lb_error *err)
{
    fake.counts.clocks++;
    fake.clock_events = fake.counts.events;
    return outside_capture("reading the clocks", err);
}

/* Without any timed work in between there is no mean clock. */
static enum lb_status fake_clock_end(double *mhz, struct lb_error *err)
{
    fake.counts.clocks++;
    *mhz = fake.counts.events > fake.clock_events ? FAKE_SM_MHZ : (double)NAN;
    return outside_capture("reading the clocks", err);
}

/* When a hold ends, the device has waited for all launches, and so it has at an event behind the
 * hold. */
static void end_hold(void)
{
    if (!fake.holding)
        return;
    fake.holding = false;
    if (fake.start_waits && fake.expired)
        fake.started_ns = fake_clock_ns();
    fake_clock_add(fake.launching_ns);
    if (fake.start_waits && !fake.expired)
        fake.started_ns = fake_clock_ns();
}

static enum lb_status fake_stop(double *ns, struct lb_error *err)
{
    end_hold();
    enum lb_status st = fake_synchronize(err);
    fake.counts.events++;
    *ns = fake_clock_ns() - fake.started_ns + FAKE_EVENTS_NS;
    if (fake.fault == FAKE_SLOW_FIRST && !fake.stopped)
        *ns += FAKE_SLOW_NS;
    fake.stopped = true;
    return st;
}

static enum lb_status fake_reference(double *ns, struct lb_error *err)
{
    *ns = FAKE_REFERENCE_NS;
    return outside_capture("timing fixed work", err);
}

static enum lb_status fake_capture_begin(struct lb_error *err)
{
    enum lb_status st = run_enqueued(err);
    if (st == LB_OK)
        st = fake_capture_open(err);
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
    if (fake.holding)
        fake.launching_ns += FAKE_LAUNCH_NS;
    else
        fake_clock_add(FAKE_LAUNCH_NS);
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
    .available = fake_available,
    .upload = fake_upload,
    .download = fake_download,
    .fill = fake_fill,
    .hash = fake_hash,
    .overflow = fake_overflow,
    .synchronize = fake_synchronize,
    .start = fake_start,
    .stop = fake_stop,
    .reference = fake_reference,
    .hold = fake_hold,
    .held = fake_held,
    .clock_begin = fake_clock_begin,
    .clock_end = fake_clock_end,
    .capture_begin = fake_capture_begin,
    .capture_end = fake_capture_end,
    .replay = fake_replay,
    .graph_release = fake_graph_free,
    .lost = fake_lost,
};

void fake_device_install(enum fake_fault fault)
{
    struct block *block = fake.blocks;
    while (block) { /* what was kept until the end of the process that the fake stood for */
        struct block *next = block->next;
        free_block(block);
        block = next;
    }
    memset(&fake, 0, sizeof(fake));
    fake.fault = fault;
    fake.info = usual;
    fake_queue_reset();
    lb_device_use(&fake_device);
}

void fake_device_break(enum fake_fault fault)
{
    fake.fault = fault;
    fake.timed = fake.stopped = false;
}

void fake_device_share_memory(void)
{
    enter();
    fake.shared = true;
}

const struct fake_counts *fake_device_counts(void)
{
    return &fake.counts;
}
