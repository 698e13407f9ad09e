/* order.cpp: causality order, kept as vector clocks.
 *
 * It follows PTX ISA, "Memory Consistency Model", for what kernels use. A barrier orders all
 * threads that meet at it, and a wait for asynchronous copies or on an mbarrier what completed it.
 * Strong accesses are relaxed ones, which order nothing. */
#include "internal.h"

namespace simt
{

bool scope_includes(scope s, const block *a, const block *b)
{
    if (a == b)
        return true;
    return a->cluster == b->cluster ? s >= scope::cluster : s >= scope::gpu;
}

void order_begin()
{
    for (thread &t : state.threads)
        t.now.seen.raise({t.id, 1});
}

/* Advances the thread's own clock, so that what it does next is not part of what it has released
 * so far. */
void tick(thread *t)
{
    const epoch next = {t->id, t->now.seen.of(t->id) + 1};
    t->now.seen.raise(next);
    if (!t->now.reads.empty())
        t->now.reads.raise(next);
}

void order_together(const std::vector<thread *> &group)
{
    clock all = group[0]->now;
    for (thread *t : group)
        all.join_all(t->now);
    all.seen.share_own();
    all.reads.share_own();
    for (thread *t : group) {
        t->now.adopt(all);
        tick(t);
    }
}

epoch agent_epoch(thread *t, agent kind)
{
    int &id = t->agent_id[static_cast<int>(kind)];
    if (id < 0)
        id = static_cast<int>(state.agent_count++);
    return {static_cast<unsigned>(id), ++t->agent_time[static_cast<int>(kind)]};
}

void announce(const void *address, size_t bytes, strong kind, int reach, uint32_t place)
{
    if (state.config.count)
        count_access(address, bytes, kind == strong::store, reach >= 0, place);
    if (!state.check)
        return;
    thread *t = current();
    actor by = {t->id, t->now.seen.of(t->id), t, false, reach, kind == strong::update};
    shadow_access(address, bytes, kind != strong::load, by, place);
}

void strong_access(const void *address, size_t bytes, strong kind, scope s, site at)
{
    yield(at);
    announce(address, bytes, kind, static_cast<int>(s), place_of(at));
}

void weak_access(const void *address, size_t bytes, bool write, site at)
{
    announce(address, bytes, write ? strong::store : strong::load, -1, place_of(at));
}

} // namespace simt
