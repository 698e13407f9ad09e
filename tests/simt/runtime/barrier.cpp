/* barrier.cpp: barriers of block and cluster, and the collectives of a warp. */
#include "internal.h"

#include <algorithm>
#include <cstring>

namespace simt
{

namespace
{

void wake(std::vector<thread *> &group)
{
    met();
    for (thread *t : group)
        if (t != current())
            make_ready(t);
    group.clear();
}

void let_go(barrier &b)
{
    if (state.check) {
        order_together(b.waiting);
        for (thread *t : b.waiting)
            t->now.join_all(b.gathered);
        b.gathered = clock();
    }
    b.arrived = 0;
    wake(b.waiting);
}

/* Releases the threads of a cluster barrier. They see what the others did before they arrived,
 * but not what these did between arriving and waiting. */
void let_go_cluster(barrier &b)
{
    if (state.check) {
        for (thread *t : b.waiting)
            t->now.join_all(b.gathered);
        b.last_gathered = std::move(b.gathered);
        b.gathered = clock();
    }
    b.arrived = 0;
    b.generation++;
    wake(b.waiting);
}

/* In check mode, threads leave a barrier in any order. Otherwise the thread that arrived last
 * would always continue first. */
void shuffle_after_barrier(site at)
{
    if (state.check && state.config.seed)
        yield(at);
}

void enter(barrier &b, unsigned expected, const char *name, site at)
{
    b.waiting.push_back(current());
    b.arrived++;
    current()->waits_at = at;
    if (b.arrived == expected) {
        let_go(b);
        shuffle_after_barrier(at);
    } else {
        wait(name, at);
    }
}

unsigned live_in_cluster(unsigned cluster)
{
    unsigned live = 0;
    for (const block &b : state.blocks)
        live += b.cluster == cluster ? b.live : 0;
    return live;
}

bool same_text(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0; /* most calls pass the same literal */
}

bool same_site(site a, site b)
{
    return a.line == b.line && same_text(a.file, b.file);
}

exchange &exchange_of(warp &w, uint32_t mask)
{
    for (auto &e : w.exchanges)
        if (e->mask == mask)
            return *e;
    for (auto &e : w.exchanges)
        if (e->waiting.empty() && e->unread == 0) {
            e->mask = mask;
            return *e;
        }
    w.exchanges.push_back(std::make_unique<exchange>());
    w.exchanges.back()->mask = mask;
    return *w.exchanges.back();
}

/* Refuses a mask that overlaps another one in use: a lane waits for one mask at a time, so the
 * two could never both complete. */
void check_mask(const warp &w, uint32_t mask, const char *operation, site at)
{
    unsigned lane = current()->lane;
    if (!(mask >> lane & 1))
        fail(at, "%s: lane %u is not in its own mask %08x", operation, lane, mask);
    for (const auto &e : w.exchanges)
        if (e->mask != mask && !e->waiting.empty() && (e->mask & mask))
            fail(at, "%s with mask %08x meets %s with mask %08x at %s", operation, mask,
                 e->what.name, e->mask, place_name(place_of(e->at)).c_str());
}

bool complete(const warp &w, const exchange &e)
{
    return !e.waiting.empty() && e.arrived == (e.mask & w.alive);
}

void finish_exchange(exchange &e)
{
    meeting &met = e.met[e.generation++ & 1];
    met.lanes = e.arrived;
    if (e.what.finish && e.arrived != e.mask)
        fail(e.at, "%s: lanes %08x of its mask have exited", e.what.name, e.mask & ~e.arrived);
    if (e.what.finish)
        e.what.finish(met.slots);
    if (state.check && e.what.orders_memory)
        order_together(e.waiting);
    e.arrived = 0;
    e.unread = static_cast<unsigned>(e.waiting.size());
    wake(e.waiting);
}

} // namespace

void block_barrier(unsigned id, unsigned count, site at)
{
    count_meeting("barrier");
    block *home = current()->home;
    if (id >= named_barriers)
        fail(at, "barrier %u: a block has %u", id, named_barriers);
    barrier &b = home->barriers[id];
    if (count % warp_lanes)
        fail(at, "barrier %u: count %u is not a multiple of %u", id, count, warp_lanes);
    if (b.arrived && b.expected != count)
        fail(at, "barrier %u: count %u, but others came with %u", id, count, b.expected);
    if (count == 0 && !b.waiting.empty() && !same_site(b.waiting[0]->waits_at, at))
        fail(at, "__syncthreads diverges: others wait at %s",
             place_name(place_of(b.waiting[0]->waits_at)).c_str());
    b.expected = count;
    enter(b, count ? count : home->live, "__syncthreads", at);
}

void cluster_arrive(site at)
{
    barrier &b = state.clusters[current()->home->cluster];
    if (current()->cluster_arrived)
        fail(at, "barrier.cluster.arrive, and no wait since the last one");
    current()->cluster_arrived = true;
    if (state.check) {
        b.gathered.join_all(current()->now);
        tick(current());
    }
    current()->waits_at = at;
    current()->cluster_generation = b.generation;
    if (++b.arrived == live_in_cluster(current()->home->cluster))
        let_go_cluster(b);
}

void cluster_wait(site at)
{
    barrier &b = state.clusters[current()->home->cluster];
    if (!current()->cluster_arrived)
        fail(at, "barrier.cluster.wait, and no arrive before it");
    current()->cluster_arrived = false;
    if (b.generation == current()->cluster_generation) {
        b.waiting.push_back(current());
        wait("cluster barrier", at);
        return;
    }
    if (state.check)
        current()->now.join_all(b.last_gathered);
    shuffle_after_barrier(at);
}

const meeting &warp_exchange(uint32_t mask, const void *operand, size_t bytes,
                             const collective &what, site at)
{
    count_meeting(what.name);
    warp &w = *current()->in_warp;
    check_mask(w, mask, what.name, at);
    exchange &e = exchange_of(w, mask);
    if (e.waiting.empty()) {
        e.what = what;
        e.at = at;
    } else if (!same_text(e.what.name, what.name) || !same_site(e.at, at)) {
        fail(at, "%s meets %s at %s in one warp", what.name, e.what.name,
             place_name(place_of(e.at)).c_str());
    }
    meeting &met = e.met[e.generation & 1];
    if (bytes)
        memcpy(met.slots[current()->lane].bytes, operand, bytes);
    e.waiting.push_back(current());
    e.arrived |= 1u << current()->lane;
    if (complete(w, e)) {
        finish_exchange(e);
        shuffle_after_barrier(at);
    } else {
        wait(what.name, at);
    }
    e.unread--;
    return met;
}

/* Releases the barriers that waited only for the thread that has exited. */
void recheck_barriers(thread *gone)
{
    block *home = gone->home;
    barrier &whole = home->barriers[0];
    if (whole.expected == 0 && whole.arrived && whole.arrived == home->live)
        let_go(whole);
    barrier &cluster = state.clusters[home->cluster];
    if (gone->cluster_arrived && gone->cluster_generation == cluster.generation)
        cluster.arrived--;
    if (cluster.arrived && cluster.arrived == live_in_cluster(home->cluster))
        let_go_cluster(cluster);
    for (auto &e : gone->in_warp->exchanges)
        if (complete(*gone->in_warp, *e))
            finish_exchange(*e);
}

} // namespace simt
