/* Chooses which thread runs next, and runs a launch from start to end. */
#include "fiber.h"
#include "internal.h"

#include <algorithm>
#include <cstdarg>
#include <map>

namespace simt
{

launch_state state;
identity *self;
dim3 grid_size, block_size;
unsigned cluster_size;

namespace
{

std::vector<warp *> ready_warps; /* warps that had a ready lane when they were added */
unsigned cursor;                 /* with seed 0: position of the round robin over ready_warps */
warp *last_warp;
void *main_stack;
uint64_t polls;    /* yields since memory last changed or threads met */
uint64_t meetings; /* barriers and collectives since memory last changed */
const std::function<void()> *kernel_body;
/* A barrier counts as progress, but a loop that spins around a barrier must be found too. */
constexpr uint64_t meetings_per_thread = 64;

warp *choose_warp(bool leave)
{
    bool random = state.config.seed != 0;
    /* The next thread is usually of the same warp, because its lanes share cache lines and
     * static shared memory and will meet at the next shuffle. Now and then it is of another
     * warp, so that warps overtake one another. */
    if (!leave && last_warp && last_warp->ready && (!random || random_bits() % 32))
        return last_warp;
    while (!ready_warps.empty()) {
        size_t i = (random ? random_bits() : cursor++) % ready_warps.size();
        warp *w = ready_warps[i];
        if (w->ready)
            return w;
        w->queued = false;
        ready_warps[i] = ready_warps.back();
        ready_warps.pop_back();
    }
    return nullptr;
}

thread *choose(bool leave)
{
    warp *w = choose_warp(leave);
    if (!w)
        return nullptr;
    unsigned turn = (state.config.seed ? random_bits() : w->turn) % warp_lanes;
    uint32_t turned = turn ? w->ready >> turn | w->ready << (warp_lanes - turn) : w->ready;
    unsigned lane = (static_cast<unsigned>(__builtin_ctz(turned)) + turn) % warp_lanes;
    w->ready &= ~(1u << lane);
    w->turn = lane + 1;
    last_warp = w;
    return w->lanes[lane];
}

/* Switches from the running fiber to the next one, or to the main program when no thread is
 * ready. save: receives the stack pointer of the running fiber. */
void go(void **save, bool leave)
{
    thread *next = choose(leave);
    if (next && save == &next->stack)
        return;
    self = next;
    simt_switch(save, next ? next->stack : main_stack);
}

std::string waiting_threads()
{
    std::map<std::string, std::pair<unsigned, std::string>> places;
    for (const thread &t : state.threads) {
        if (t.done)
            continue;
        std::string what = t.waits_for ? t.waits_for : "spinning";
        what += t.waits_at.file ? " at " + place_name(place_of(t.waits_at)) : "";
        auto &entry = places[what];
        if (entry.first++ == 0)
            entry.second = thread_name(&t);
    }
    std::string text;
    for (const auto &p : places)
        text += format("\n    %u in %s, first %s", p.second.first, p.first.c_str(),
                       p.second.second.c_str());
    return text;
}

void check_livelock()
{
    polls++;
    /* All threads spin. Copies that are delayed as long as possible must complete now. */
    if (polls % (state.live + 16) == 0)
        deliver_when_idle();
    /* Threads are chosen fairly, so by now every ready thread has run many times without
     * changing anything: the launch would never end. */
    if (polls < 2000 + 100 * static_cast<uint64_t>(state.live))
        return;
    abandon(fault::livelock, format("%u threads left, and those that run only spin:", state.live) +
                                 waiting_threads());
}

void thread_main()
{
    (*kernel_body)();
    thread *t = current();
    check_no_copies(t);
    check_followed(t);
    t->done = true;
    t->in_warp->alive &= ~(1u << t->lane);
    t->home->live--;
    state.live--;
    progress();
    if (state.check && t->home->live == 0)
        shadow_block_exit(t->home);
    recheck_barriers(t);
    void *gone;
    go(&gone, false);
    __builtin_unreachable();
}

void make_thread(block &b, unsigned i)
{
    const dim3 &size = state.config.block;
    const dim3 &grid = state.config.grid;
    thread &t = state.threads[b.first + i];
    t.id = b.first + i;
    t.home = &b;
    t.lane = i % warp_lanes;
    if (t.lane == 0)
        b.warps.push_back(std::make_unique<warp>());
    t.in_warp = b.warps.back().get();
    t.in_warp->alive |= 1u << t.lane;
    t.in_warp->lanes[t.lane] = &t;
    t.thread_index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    t.block_index = {b.id % grid.x, b.id / grid.x % grid.y, b.id / grid.x / grid.y};
    t.stack = fiber_stack(t.id, thread_main);
    make_ready(&t);
}

void make_blocks()
{
    const launch_config &c = state.config;
    unsigned blocks = c.grid.x * c.grid.y * c.grid.z;
    state.block_threads = c.block.x * c.block.y * c.block.z;
    state.thread_count = state.agent_count = state.live = blocks * state.block_threads;
    state.threads = std::vector<thread>(state.thread_count);
    state.blocks = std::vector<block>(blocks);
    state.clusters = std::vector<barrier>(blocks / c.cluster);
    for (unsigned b = 0; b < blocks; b++) {
        block &made = state.blocks[b];
        made.id = b;
        made.cluster = b / c.cluster;
        made.live = state.block_threads;
        made.first = b * state.block_threads;
        allocate_shared(&made, c.shared_bytes);
        for (unsigned i = 0; i < state.block_threads; i++)
            make_thread(made, i);
    }
}

void run_all()
{
    go(&main_stack, true); /* returns when no thread is ready or the launch was abandoned */
    self = nullptr;
    if (state.live && state.result.ok())
        report(fault::deadlock, format("%u threads wait:", state.live) + waiting_threads(), 0, 0);
    if (state.live == 0)
        deliver_rest();
}

} // namespace

uint64_t random_bits()
{
    uint64_t &x = state.random_state; /* xorshift64 (Marsaglia 2003) */
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x >> 8; /* the low bits are less random */
}

void make_ready(thread *t)
{
    t->waits_for = nullptr;
    warp *w = t->in_warp;
    w->ready |= 1u << t->lane;
    if (!w->queued) {
        w->queued = true;
        ready_warps.push_back(w);
    }
}

void wait(const char *what, site at)
{
    thread *t = current();
    t->waits_for = what;
    t->waits_at = at;
    go(&t->stack, false);
}

void progress()
{
    polls = 0;
    meetings = 0;
}

void met()
{
    if (++meetings < 2000 + meetings_per_thread * state.thread_count)
        polls = 0;
}

void yield(site at)
{
    thread *t = current();
    t->waits_at = at;
    check_livelock();
    deliver_sometimes();
    make_ready(t);
    go(&t->stack, true);
}

void abandon(fault kind, const std::string &text)
{
    report(kind, text, 0, 0);
    ready_warps.clear();
    void *gone;
    self = nullptr;
    simt_switch(&gone, main_stack);
    __builtin_unreachable();
}

void fail(site at, const char *text, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    abandon(fault::misuse, std::string(line) + " at " + place_name(place_of(at)) + " by " +
                               thread_name(current()));
}

unsigned linear_block()
{
    return current()->home->id;
}

unsigned linear_thread()
{
    return current()->id - current()->home->first;
}

outcome launch_kernel(const launch_config &config, bool check, const std::function<void()> &kernel)
{
    static uint32_t launches;
    state = launch_state();
    state.config = config;
    state.check = check;
    state.number = ++launches;
    state.random_state = config.seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du;
    if (config.cluster == 0 || config.grid.x * config.grid.y * config.grid.z % config.cluster) {
        report(fault::misuse, "the grid is not a whole number of clusters", 0, 0);
        name_places();
        return std::move(state.result);
    }
    grid_size = config.grid;
    block_size = config.block;
    cluster_size = config.cluster;
    kernel_body = &kernel;
    ready_warps.clear();
    cursor = 0;
    progress();
    last_warp = nullptr;
    async_begin();
    size_t mark = allocation_mark();
    make_blocks();
    if (check) {
        order_begin();
        shadow_begin();
    }
    follow_begin();
    run_all();
    if (check)
        shadow_end();
    follow_end();
    count_finish();
    check_red_zones();
    free_shared(mark);
    name_places();
    return std::move(state.result);
}

} // namespace simt
