/* order.cpp: causality order, kept as vector clocks.
 *
 * It follows PTX ISA, "Memory Consistency Model". A barrier orders all threads that meet at it.
 * A release pattern at a location (a releasing write, or a fence and then a strong write) orders
 * what came before it before what follows an acquire pattern (an acquiring read, or a strong
 * read and then a fence) that observes it, if the scope that each names reaches the other
 * ("Morally strong operations", "Release and Acquire Patterns"). Order is transitive whatever
 * the scopes on the way ("Causality order"). Loads never release. Weak accesses order nothing. */
#include "internal.h"

#include <unordered_map>

namespace simt
{

namespace
{

/* What was released at each canonical address. */
std::unordered_map<const unsigned char *, std::vector<release>> locations;

/* Returns the narrowest scope that contains both blocks. */
scope distance(const block *a, const block *b)
{
    if (a == b)
        return scope::cta;
    return a->cluster == b->cluster ? scope::cluster : scope::gpu;
}

scope lesser(scope a, scope b)
{
    return a < b ? a : b;
}

actor plain_actor(thread *t, int strong, bool update = false)
{
    return {t->id, t->now.seen.of(t->id), t, false, strong, update};
}

void check_strong(unsigned char *place, size_t bytes, strong_order order, site at)
{
    actor by = plain_actor(current(), static_cast<int>(order.reach), order.kind == strong::update);
    shadow_access(place, bytes, order.kind != strong::load, by, place_of(at));
}

} // namespace

bool scope_includes(scope s, const block *a, const block *b)
{
    return distance(a, b) <= s;
}

void order_begin()
{
    locations.clear();
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
    if (group.empty())
        return;
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
    if (id < 0) {
        id = static_cast<int>(state.agent_count++);
        t->agent_time[static_cast<int>(kind)] = 0;
    }
    return {static_cast<unsigned>(id), ++t->agent_time[static_cast<int>(kind)]};
}

void add_release(std::vector<release> &to, scope reach, const block *by, const clock &known)
{
    for (release &r : to) {
        if (r.reach == reach && r.by == by) {
            r.known.join_all(known);
            return;
        }
    }
    to.push_back({reach, by, known});
}

void release_at(thread *t, std::vector<release> &to, scope s, bool releases)
{
    if (releases)
        add_release(to, s, t->home, t->now);
    for (int f = 0; f < scope_count; f++) {
        if (!t->released[f].seen.empty())
            add_release(to, lesser(static_cast<scope>(f), s), t->home, t->released[f]);
    }
    if (releases)
        tick(t);
}

void acquire_at(thread *t, const std::vector<release> &from, scope s, bool acquires)
{
    for (const release &r : from) {
        if (!scope_includes(r.reach, r.by, t->home) || !scope_includes(s, t->home, r.by))
            continue;
        if (acquires) {
            t->now.join_all(r.known);
        } else {
            scope needed = distance(t->home, r.by);
            t->observed[static_cast<int>(needed)].join_all(r.known);
        }
    }
}

void strong_begin(const void *address, size_t bytes, strong_order order, site at)
{
    if (!self)
        return;
    current()->waits_at = at;
    yield(at);
    if (state.config.count)
        count_access(address, bytes, order.kind == strong::store, true, place_of(at));
    if (!state.check)
        return;
    thread *t = current();
    unsigned char *place = canonical(address);
    /* Acquire first: a release-acquire chain on a location orders its own accesses. */
    if (order.kind != strong::store)
        acquire_at(t, locations[place], order.reach, order.acquire);
    check_strong(place, bytes, order, at);
}

void strong_end(const void *address, strong_order order, bool changed)
{
    if (order.kind == strong::load)
        return;
    if (changed)
        progress();
    if (!self || !state.check)
        return;
    std::vector<release> &here = locations[canonical(address)];
    if (order.kind == strong::store)
        here.clear(); /* a store ends the release sequences of others; an update continues them */
    release_at(current(), here, order.reach, order.release);
}

void fence(scope s)
{
    if (!self || !state.check)
        return;
    thread *t = current();
    for (int level = 0; level <= static_cast<int>(s); level++) {
        t->now.join_all(t->observed[level]);
        t->observed[level] = clock();
    }
    for (int level = 0; level <= static_cast<int>(s); level++)
        t->released[level] = t->now;
    tick(t);
}

void weak_access(const void *address, size_t bytes, bool write, site at)
{
    if (self && state.config.count)
        count_access(address, bytes, write, false, place_of(at));
    if (self && state.check)
        shadow_access(canonical(address), bytes, write, plain_actor(current(), -1), place_of(at));
}

} // namespace simt
