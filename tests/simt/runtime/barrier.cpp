/* barrier.cpp: barriers of block and cluster, and the collectives of a warp. */
#include "internal.h"

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
    if (state.check)
        order_together(b.waiting);
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

bool complete(const warp &w)
{
    return !w.waiting.empty() &&
           w.waiting.size() == static_cast<size_t>(__builtin_popcount(w.alive));
}

void finish_exchange(warp &w)
{
    meeting &met = w.met[w.generation++ & 1];
    met.lanes = w.alive;
    if (w.what.finish && w.alive != ~0u)
        fail(w.at, "%s: lanes %08x have exited", w.what.name, ~w.alive);
    if (w.what.finish)
        w.what.finish(met.slots);
    if (state.check && w.what.orders_memory)
        order_together(w.waiting);
    wake(w.waiting);
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
    if (!b.waiting.empty() && b.expected != count)
        fail(at, "barrier %u: count %u, but others came with %u", id, count, b.expected);
    if (count == 0 && !b.waiting.empty() && !same_site(b.waiting[0]->waits_at, at))
        fail(at, "__syncthreads diverges: others wait at %s",
             place_name(place_of(b.waiting[0]->waits_at)).c_str());
    b.expected = count;
    b.waiting.push_back(current());
    if (b.waiting.size() == (count ? count : home->live)) {
        let_go(b);
        shuffle_after_barrier(at);
    } else {
        wait("__syncthreads", at);
    }
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

const meeting &warp_exchange(const void *operand, size_t bytes, const collective &what, site at)
{
    count_meeting(what.name);
    warp &w = *current()->in_warp;
    if (w.waiting.empty()) {
        w.what = what;
        w.at = at;
    } else if (!same_text(w.what.name, what.name) || !same_site(w.at, at)) {
        fail(at, "%s meets %s at %s in one warp", what.name, w.what.name,
             place_name(place_of(w.at)).c_str());
    }
    meeting &met = w.met[w.generation & 1];
    if (bytes)
        memcpy(met.slots[current()->lane].bytes, operand, bytes);
    w.waiting.push_back(current());
    if (complete(w)) {
        finish_exchange(w);
        shuffle_after_barrier(at);
    } else {
        wait(what.name, at);
    }
    return met;
}

/* Releases the barriers that waited only for the thread that has exited. */
void recheck_barriers(thread *gone)
{
    block *home = gone->home;
    barrier &whole = home->barriers[0];
    if (whole.expected == 0 && !whole.waiting.empty() && whole.waiting.size() == home->live)
        let_go(whole);
    barrier &cluster = state.clusters[home->cluster];
    if (gone->cluster_arrived && gone->cluster_generation == cluster.generation)
        cluster.arrived--;
    if (cluster.arrived && cluster.arrived == live_in_cluster(home->cluster))
        let_go_cluster(cluster);
    if (complete(*gone->in_warp))
        finish_exchange(*gone->in_warp);
}

} // namespace simt
