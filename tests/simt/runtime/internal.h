/* What the files of the runtime share. Tests use simt.h, and kernels the headers in device/. */
#ifndef LB_SIMT_INTERNAL_H
#define LB_SIMT_INTERNAL_H

#include "../device/calls.h"
#include "../simt.h"
#include "clock.h"

#include <deque>
#include <memory>

namespace simt
{

struct block;
struct thread;
struct warp;

/* A copy that a thread has started and that has not been waited for. Addresses are canonical. */
struct copy {
    unsigned char *to = nullptr;
    unsigned char *from = nullptr; /* nullptr: the source was read, into value */
    size_t bytes = 0;              /* of the source; of the value where there is no source */
    size_t zero_bytes = 0;         /* tail of the destination to fill with zeros */
    std::vector<unsigned char> value;
    bool source_read = false; /* and the issuer has waited for that */
    thread *issuer = nullptr;
    unsigned char *barrier = nullptr; /* mbarrier to tell; nullptr: a group waits */
    epoch read = {}, write = {};      /* as events of the issuer's agents */
    clock known;                      /* for the barrier: see signal_clock in async.cpp */
};

/* Copies in program order: those of committed groups, and those still open. */
struct copy_groups {
    std::deque<std::vector<copy>> committed;
    std::vector<copy> open;
};

/* The kinds of asynchronous work of a thread. Each is an agent with its own clock, because waiting
 * for one kind does not order another. Bulk stores are two kinds: reading the source and writing
 * can be waited for apart. */
enum class agent { copy, bulk_read, bulk_write, tracked, count };

/* One access of a lane, where they are counted. */
struct counted_access {
    unsigned char *address; /* canonical */
    uint32_t place, meetings;
    unsigned bytes, lane;
    bool write, strong;
};

struct thread : identity {
    void *stack = nullptr;
    block *home = nullptr;
    warp *in_warp = nullptr;
    unsigned id = 0;
    const char *waits_for = nullptr; /* nullptr: ready or running */
    site waits_at = {};
    bool done = false;
    copy_groups copies, bulk;
    int agent_id[static_cast<int>(agent::count)] = {-1, -1, -1, -1}; /* -1: not in use */
    uint32_t agent_time[static_cast<int>(agent::count)] = {};
    bool cluster_arrived = false;    /* at a cluster barrier, and has not waited yet */
    unsigned cluster_generation = 0; /* the one it arrived at */
    uint32_t meetings = 0;           /* collectives and barriers so far, where they are counted */
    std::vector<counted_access> counted;
    clock now;                   /* happens-before: all that precedes the next access */
    clock released[scope_count]; /* by the last fence of at least this scope */
    clock observed[scope_count]; /* by relaxed reads; a fence of the scope makes it `now` */
};

/* One collective in progress: the lanes of a mask, their operands and results. There are two
 * generations, because a fast lane may enter the next collective before a slow lane has read this
 * one. */
struct exchange {
    uint32_t mask = 0, arrived = 0;
    unsigned generation = 0;
    unsigned unread = 0; /* lanes that were released and have not read the results yet */
    collective what = {};
    site at = {};
    std::vector<thread *> waiting;
    meeting met[2];
};

struct warp {
    uint32_t alive = 0, ready = 0;
    unsigned turn = 0;   /* lane to look at first, seed 0 */
    bool queued = false; /* in the scheduler's list */
    thread *lanes[warp_lanes] = {};
    std::vector<std::unique_ptr<exchange>> exchanges;
};

/* bar.sync, cluster and grid barriers. */
struct barrier {
    std::vector<thread *> waiting;
    unsigned arrived = 0;    /* threads in waiting, and threads that arrived without waiting */
    unsigned expected = 0;   /* named barriers only */
    clock gathered;          /* of threads that arrived without waiting */
    clock last_gathered;     /* of the generation before; cluster barriers only */
    unsigned generation = 0; /* cluster barriers only */
};

constexpr unsigned named_barriers = 16;

struct block {
    unsigned id = 0, cluster = 0, live = 0, first = 0; /* first: id of its first thread */
    unsigned char *dynamic_shared = nullptr;
    unsigned char *static_shared = nullptr; /* its copy while another block is resident */
    barrier barriers[named_barriers];
    std::vector<std::unique_ptr<warp>> warps;
};

/* The launch under way. */
struct launch_state {
    launch_config config;
    outcome result;
    bool check = false;
    unsigned thread_count = 0, live = 0, block_threads = 0;
    unsigned agent_count = 0; /* threads, and their asynchronous agents so far */
    std::vector<thread> threads;
    std::vector<block> blocks;
    std::vector<barrier> clusters;
    barrier grid;
    uint64_t random_state = 0;
    unsigned accesses_to_preemption = 0;
    uint32_t number = 0; /* of this launch, never 0 */
};

extern launch_state state;

inline thread *current()
{
    return static_cast<thread *>(self);
}

/* schedule.cpp */
uint64_t random_bits();
void make_ready(thread *t);
void wait(const char *what, site at); /* returns once somebody makes current ready */
void progress();                      /* memory changed: a spinning thread may see it */
void met();                           /* threads met at a barrier or in a collective */
[[noreturn]] void abandon(fault kind, const std::string &text); /* ends the launch */

/* barrier.cpp */
void recheck_barriers(thread *gone);

/* memory.cpp */
struct allocation {
    unsigned char *begin;
    size_t bytes;
    std::string name;
    block *owner; /* shared memory: its block */
    bool initialised;
    bool shadowed; /* its shadow is set up */
};
extern std::vector<allocation> allocations; /* by rising address; [0] stands for none */
constexpr size_t arena_bytes = size_t{512} << 20;
extern unsigned char *arena;
bool in_arena(const void *address);
unsigned char *canonical(const void *address);         /* one address for each byte, any block */
unsigned char *live_address(unsigned char *canonical); /* where the byte is right now */
const allocation *find_allocation(const unsigned char *canonical);
void allocate_shared(block *b, size_t dynamic_bytes);
void free_shared(size_t mark);
size_t allocation_mark();
void make_resident(block *b);
void restore_static_shared();
void check_red_zones();

/* order.cpp: who is ordered after whom */
void order_begin();
void order_together(const std::vector<thread *> &group);
void order_after(thread *t, const clock &earlier, const block *by); /* by: nullptr for several */
void tick(thread *t);
epoch agent_epoch(thread *t, agent kind);
bool scope_includes(scope s, const block *a, const block *b);

/* What a release published at an address: by which block, and with which scope. */
struct release {
    scope reach;
    const block *by;
    clock known;
};
void add_release(std::vector<release> &to, scope reach, const block *by, const clock &known);
void release_at(thread *t, std::vector<release> &to, scope s, bool release);
void acquire_at(thread *t, const std::vector<release> &from, scope s, bool acquire);

/* shadow.cpp */
struct actor {
    unsigned agent;    /* thread id, or an asynchronous agent's */
    uint32_t time;     /* its clock */
    thread *who;       /* the thread, or the agent's issuer */
    bool asynchronous; /* an agent's access */
    bool async_proxy;  /* bulk copies */
    int strong;        /* -1: weak, else the scope */
    bool update;       /* a write of what it has read, as one access */
};
void shadow_begin();
void shadow_access(const unsigned char *canonical, size_t bytes, bool write, const actor &by,
                   uint32_t place);
void shadow_block_exit(block *b);

/* mbarrier.cpp */
void mbarrier_begin();
void mbarrier_complete(unsigned char *barrier, const copy &done);
void mbarrier_check_use(unsigned char *barrier, bool async_proxy, site at);

/* async.cpp */
void async_begin();
void deliver_sometimes(); /* at a yield: seeds of the early kind let something land */
void deliver_when_idle(); /* all spin */
void deliver_rest();      /* the kernel is over */
void check_no_copies(thread *leaving);

/* count.cpp: nothing happens unless the launch asks for it */
void count_access(const void *address, size_t bytes, bool write, bool strong, uint32_t place);
void count_meeting(const char *name);
void count_finish();

/* report.cpp */
uint32_t place_of(site at);
uint32_t place_of(const void *program_counter);
std::string place_name(uint32_t place);
std::string thread_name(const thread *t);
std::string address_name(const unsigned char *canonical);
std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));
void report(fault kind, const std::string &text, uint32_t place, uint32_t other);
void name_places(); /* replaces program counters in all findings by source lines */

} // namespace simt

#endif
