/* async.cpp: copies that run beside the thread that started them.
 *
 * For the race detector, a copy happens where it starts and is done by an agent of its issuer. An
 * access to its bytes that is not ordered after its completion is a race. The data move at another
 * time. With even seeds, 0 included, they move as late as allowed: when a thread waits for them or
 * all threads spin. With odd seeds they move at once or at a random moment. */
#include "internal.h"

#include <algorithm>
#include <cstring>

namespace simt
{

void check_alignment(const void *address, size_t bytes, const char *what, site at)
{
    if (reinterpret_cast<uintptr_t>(address) % bytes)
        fail(at, "%s: address %s is not aligned to %zu bytes", what, address_name(address).c_str(),
             bytes);
}

namespace
{

std::vector<copy> in_flight; /* copies that an mbarrier waits for, in no order */

bool early_seed()
{
    return state.config.seed % 2 == 1;
}

void take_source(copy &c)
{
    if (!c.from)
        return;
    memcpy(c.value, c.from, c.bytes);
    c.from = nullptr;
}

void move_data(copy &c)
{
    const allocation *in = find_allocation(c.to);
    if (in->owner && in->owner->live == 0) {
        report(fault::remote_exit,
               format("an asynchronous copy by %s lands in ", thread_name(c.issuer).c_str()) +
                   address_name(c.to) + ", whose block has exited",
               0, 0);
        return;
    }
    take_source(c);
    memcpy(c.to, c.value, c.bytes);
    memset(c.to + c.bytes, 0, c.zero_bytes);
    if (c.barrier)
        mbarrier_complete(c.barrier, c);
    progress();
}

void land(size_t i)
{
    copy c = std::move(in_flight[i]);
    in_flight[i] = std::move(in_flight.back());
    in_flight.pop_back();
    move_data(c);
}

/* Checks a copy for races, as part of the issuer's program order. */
void check_copy(copy &c, agent kind, site at)
{
    if (!state.check)
        return;
    thread *t = c.issuer;
    uint32_t place = place_of(at);
    c.accesses = agent_epoch(t, kind);
    actor by = {c.accesses.agent, c.accesses.time, t, true, -1, false};
    if (c.from)
        shadow_access(c.from, c.bytes, false, by, place);
    shadow_access(c.to, c.bytes + c.zero_bytes, true, by, place);
}

/* What a wait on the mbarrier learns from the completion: this copy is done and its data are
 * visible. All earlier accesses that the issuer knew of are over too, but the completion does
 * not make them visible (see clock.h). */
clock signal_clock(const copy &c)
{
    clock known;
    known.seen.raise(c.accesses);
    known.reads = c.issuer->now.over();
    known.reads.raise(c.accesses);
    tick(c.issuer);
    return known;
}

copy make_copy(void *to, const void *from, size_t bytes)
{
    copy c;
    c.to = static_cast<unsigned char *>(to);
    c.from = static_cast<const unsigned char *>(from);
    c.bytes = bytes;
    c.issuer = current();
    return c;
}

void start_tracked(copy c, uint32_t barrier, site at)
{
    c.barrier = arena + barrier;
    mbarrier_check_use(c.barrier, at);
    check_copy(c, agent::tracked, at);
    if (state.check)
        c.known = signal_clock(c);
    if (early_seed() && random_bits() % 2)
        move_data(c);
    else
        in_flight.push_back(std::move(c));
}

/* Completes all copies of a group that a thread waits for, in any order. */
void finish_group(std::vector<copy> &group)
{
    thread *t = current();
    if (state.config.seed)
        for (size_t i = group.size(); i > 1; i--)
            std::swap(group[i - 1], group[random_bits() % i]);
    for (copy &c : group) {
        if (c.bytes + c.zero_bytes)
            move_data(c);
        if (!state.check)
            continue;
        if (t->now.reads.empty())
            t->now.reads = t->now.seen;
        t->now.seen.raise(c.accesses);
        t->now.reads.raise(c.accesses);
    }
}

void wait_for(copy_groups &groups, unsigned keep)
{
    while (groups.committed.size() > keep) {
        std::vector<copy> &group = groups.committed.front();
        finish_group(group);
        group.clear();
        if (groups.open.empty())
            groups.open.swap(group); /* whose memory is used again */
        groups.committed.pop_front();
    }
}

void commit(copy_groups &groups)
{
    groups.committed.push_back(std::move(groups.open));
    groups.open.clear();
}

/* A copy that was done early stays in its group, with nothing left to move, so that a wait for
 * the group still orders it. */
void start_in_group(copy_groups &groups, copy c)
{
    if (early_seed() && random_bits() % 2) {
        move_data(c);
        c.bytes = c.zero_bytes = 0;
    }
    groups.open.push_back(std::move(c));
}

} // namespace

void async_begin()
{
    in_flight.clear();
    mbarrier_begin();
}

void deliver_sometimes()
{
    if (!in_flight.empty() && early_seed() && random_bits() % 4 == 0)
        land(random_bits() % in_flight.size());
}

void deliver_when_idle()
{
    size_t count = in_flight.size();
    if (count && state.config.seed) /* some land now, in any order, the others later */
        count -= random_bits() % (count / 2 + 1);
    for (; count; count--)
        land(state.config.seed ? random_bits() % in_flight.size() : 0);
}

void deliver_rest()
{
    while (!in_flight.empty())
        land(0);
}

void read_all_sources()
{
    for (thread &t : state.threads) {
        for (auto &group : t.copies.committed)
            for (copy &c : group)
                take_source(c);
        for (copy &c : t.copies.open)
            take_source(c);
    }
    for (copy &c : in_flight)
        take_source(c);
}

void check_no_copies(thread *leaving)
{
    bool unread = !leaving->copies.open.empty();
    for (const auto &group : leaving->copies.committed)
        unread = unread || !group.empty();
    if (unread)
        abandon(fault::misuse, thread_name(leaving) + " exits with copies it never waited for");
}

void copy_async(void *to, const void *from, size_t bytes, size_t zero_bytes, site at)
{
    check_alignment(to, bytes + zero_bytes, "cp.async", at);
    check_alignment(from, bytes + zero_bytes, "cp.async", at);
    if (state.config.count) {
        count_access(to, bytes + zero_bytes, true, false, place_of(at));
        if (bytes > 0)
            count_access(from, bytes, false, false, place_of(at));
    }
    copy c = make_copy(to, from, bytes);
    c.zero_bytes = zero_bytes;
    check_copy(c, agent::copy, at);
    start_in_group(current()->copies, std::move(c));
}

void copy_async_commit()
{
    commit(current()->copies);
}

void copy_async_wait(unsigned keep)
{
    wait_for(current()->copies, keep);
}

void store_async(uint32_t to, const void *value, size_t bytes, uint32_t barrier, site at)
{
    check_alignment(arena + to, bytes, "st.async", at);
    copy c = make_copy(arena + to, nullptr, bytes);
    memcpy(c.value, value, bytes);
    start_tracked(std::move(c), barrier, at);
}

} // namespace simt
