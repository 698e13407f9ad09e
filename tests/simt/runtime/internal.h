/* What the files of the runtime share. Tests include simt.h instead, and kernels include the
 * headers in device/. */
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

/* A copy that a thread has started and that has not been waited for. */
struct copy {
    unsigned char *to = nullptr;
    const unsigned char *from =
        nullptr;             /* nullptr: the source has already been read into `value` */
    size_t bytes = 0;        /* of the source or, where it is nullptr, of `value` */
    size_t zero_bytes = 0;   /* how many bytes behind them become zero */
    unsigned char value[16]; /* the longest copy */
    thread *issuer = nullptr;
    const void *barrier = nullptr; /* completes on this mbarrier; nullptr: it is in a group */
    epoch accesses = {};           /* as an event of the issuer's agents */
    clock known;                   /* what the mbarrier passes on (signal_clock) */
};

/* Copies in program order: those of committed groups, and those still open. */
struct copy_groups {
    std::deque<std::vector<copy>> committed;
    std::vector<copy> open;
};

/* The kinds of asynchronous work of a thread. Each is an agent with its own clock, because
 * waiting for one kind does not order another. */
enum class agent { copy, tracked, count };

/* One access of a lane, logged when a launch counts accesses. */
struct counted_access {
    const unsigned char *address;
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
    bool followed = false; /* it has called grid_dependency_wait */
    copy_groups copies;
    int agent_id[static_cast<int>(agent::count)] = {-1, -1}; /* -1: not in use */
    uint32_t agent_time[static_cast<int>(agent::count)] = {};
    bool cluster_arrived = false;    /* it arrived at a cluster barrier and has not waited yet */
    unsigned cluster_generation = 0; /* of the cluster barrier when it arrived */
    uint32_t meetings = 0; /* collectives and barriers so far, when accesses are counted */
    std::vector<counted_access> counted;
    clock now; /* everything that happens before the next access */
};

/* A warp, and its collective in progress. There are two meetings, because a fast lane may enter the
 * next collective before a slow lane has read this one. */
struct warp {
    uint32_t alive = 0, ready = 0;
    unsigned turn = 0;   /* with seed 0: the lane that is tried first */
    bool queued = false; /* it is in the scheduler's list */
    thread *lanes[warp_lanes] = {};
    collective what = {};
    site at = {};
    std::vector<thread *> waiting;
    unsigned generation = 0;
    meeting met[2];
};

/* A barrier of a block (bar.sync) or a cluster. */
struct barrier {
    std::vector<thread *> waiting;
    unsigned expected = 0; /* of a block: threads that it takes; 0: all */

    unsigned arrived = 0, generation = 0; /* of a cluster, whose threads arrive and wait later */
    clock gathered;                       /* what the threads knew that arrived */
    clock last_gathered;                  /* the same of the generation before */
};

constexpr unsigned named_barriers = 16;

struct block {
    unsigned id = 0, cluster = 0, live = 0, first = 0; /* first: id of its first thread */
    unsigned char *shared = nullptr;
    barrier barriers[named_barriers];
    std::vector<std::unique_ptr<warp>> warps;
};

/* The launch that is running. */
struct launch_state {
    launch_config config;
    outcome result;
    bool check = false;
    unsigned thread_count = 0, live = 0, block_threads = 0;
    unsigned agent_count = 0; /* threads and the asynchronous agents that they have used so far */
    std::vector<thread> threads;
    std::vector<block> blocks;
    std::vector<barrier> clusters;
    std::vector<thread *> following; /* threads in grid_dependency_wait */
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
void met();                           /* threads met at a barrier or in a collective */
[[noreturn]] void abandon(fault kind, const std::string &text); /* ends the launch */

/* barrier.cpp */
void recheck_barriers(thread *gone);

/* memory.cpp */
struct allocation {
    unsigned char *begin;
    size_t bytes;
    std::string name;
    block *owner; /* the block of shared memory; nullptr for global memory */
    bool initialised;
    bool shadowed; /* its shadow is set up */
};
extern std::vector<allocation> allocations; /* by ascending address; [0] means none */
constexpr size_t arena_bytes = size_t{512} << 20;
extern unsigned char *arena;
inline bool in_arena(const void *address)
{
    const unsigned char *byte = static_cast<const unsigned char *>(address);
    return byte >= arena && byte < arena + arena_bytes;
}
const allocation *find_allocation(const void *address);
void allocate_shared(block *b, size_t bytes);
void free_shared(size_t mark);
size_t allocation_mark();
void check_red_zones();

/* order.cpp: which accesses are ordered after which */
void order_begin();
void order_together(const std::vector<thread *> &group);
void tick(thread *t);
epoch agent_epoch(thread *t, agent kind);
/* An access of the running thread is about to be made. reach: its scope, or -1 where it is weak. */
void announce(const void *address, size_t bytes, strong kind, int reach, uint32_t place);
bool scope_includes(scope s, const block *a, const block *b);

/* shadow.cpp */
struct actor {
    unsigned agent;    /* thread id, or an asynchronous agent's */
    uint32_t time;     /* its clock */
    thread *who;       /* the thread, or the agent's issuer */
    bool asynchronous; /* an agent's access */
    int strong;        /* -1: weak, else the scope */
    bool update;       /* it reads and writes in one access */
};
void shadow_begin();
void shadow_end(); /* checks what only the end of a launch can tell */
void shadow_access(const void *address, size_t bytes, bool write, const actor &by, uint32_t place);
void shadow_block_exit(block *b);
void shadow_initialise(const span &bytes, bool initialised); /* what device_allocate returned */

/* mbarrier.cpp */
void mbarrier_begin();
void mbarrier_complete(const void *barrier, const copy &done);
void mbarrier_check_use(const void *barrier, site at);

/* async.cpp */
void async_begin();
void deliver_sometimes(); /* at a yield; with seeds for early copies, some may land */
void deliver_when_idle(); /* when all threads spin */
void deliver_rest();      /* when the kernel is over */
void read_all_sources();  /* of all copies that have been started */
void check_no_copies(thread *leaving);

/* follow.cpp: launches that begin before the one before has ended */
void follow_begin();
void follow_end();
void check_followed(const thread *leaving);

/* count.cpp: has an effect only when the launch asks for counts */
void count_access(const void *address, size_t bytes, bool write, bool strong, uint32_t place);
void count_meeting(const char *name);
void count_finish();

/* report.cpp */
uint32_t place_of(site at);
uint32_t place_of(const void *program_counter);
std::string place_name(uint32_t place);
std::string thread_name(const thread *t);
std::string address_name(const void *address);
std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));
void report(fault kind, const std::string &text, uint32_t place, uint32_t other);
void name_places(); /* replaces program counters in all findings by source lines */

} // namespace simt

#endif
