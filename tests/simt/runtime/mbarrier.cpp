/* mbarrier.cpp: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
 *
 * The state of a barrier lies outside the program's memory. The eight bytes of the object hold a
 * number that shows whether they were initialised by mbarrier.init and not overwritten since. */
#include "internal.h"

#include <cstring>
#include <unordered_map>

namespace simt
{

namespace
{

constexpr int64_t count_limit = (1 << 20) - 1; /* of arrivals and of tx-count, as in the manual */

/* What one block has released, with a scope. */
struct release {
    scope reach;
    const block *by;
    clock known;
};

struct mbarrier {
    uint64_t cookie = 0;
    unsigned expected = 0;                     /* arrivals per phase */
    int64_t pending = 0;                       /* arrivals this phase still waits for */
    int64_t bytes = 0;                         /* tx-count */
    uint64_t phase = 0;                        /* the current one */
    std::vector<release> gathering, completed; /* by arrivals of this phase and the previous one */
};

std::unordered_map<const void *, mbarrier> barriers;
uint64_t cookies;

mbarrier &find(const void *barrier, site at)
{
    uint64_t stored;
    memcpy(&stored, barrier, sizeof stored);
    auto found = barriers.find(barrier);
    if (found == barriers.end() || found->second.cookie != stored)
        fail(at, "%s is no initialised mbarrier, or was overwritten",
             address_name(barrier).c_str());
    return found->second;
}

/* Every use of the object must be ordered after its initialisation. */
void check_ordered(const void *barrier, site at)
{
    if (!state.check)
        return;
    thread *t = current();
    actor by = {t->id, t->now.seen.of(t->id), t, false, static_cast<int>(scope::cluster), false};
    shadow_access(barrier, sizeof(uint64_t), false, by, place_of(at));
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

void complete_phase_if_due(mbarrier &b)
{
    if (b.pending || b.bytes)
        return;
    b.phase++;
    b.pending = b.expected;
    b.completed = std::move(b.gathering);
    b.gathering.clear();
}

} // namespace

void mbarrier_begin()
{
    barriers.clear();
    cookies = 0x6d626172ull << 32; /* "mbar" */
}

void mbarrier_init(void *barrier, unsigned count, site at)
{
    if (count == 0 || count > count_limit)
        fail(at, "mbarrier.init: count %u", count);
    check_alignment(barrier, sizeof(uint64_t), "mbarrier.init", at);
    if (find_allocation(barrier)->owner != current()->home)
        fail(at, "mbarrier.init: %s is not shared memory of this block",
             address_name(barrier).c_str());
    weak_access(barrier, sizeof(uint64_t), true, at);
    mbarrier b;
    b.cookie = ++cookies;
    b.expected = count;
    b.pending = count;
    memcpy(barrier, &b.cookie, sizeof b.cookie);
    barriers[barrier] = std::move(b);
}

void mbarrier_check_use(const void *barrier, site at)
{
    find(barrier, at);
    check_ordered(barrier, at);
}

void mbarrier_arrive_expect(void *barrier, unsigned bytes, site at)
{
    yield(at);
    mbarrier &b = find(barrier, at);
    check_ordered(barrier, at);
    b.bytes += bytes;
    if (b.bytes > count_limit)
        fail(at, "mbarrier: tx-count %lld exceeds its range", static_cast<long long>(b.bytes));
    if (b.pending == 0)
        fail(at, "mbarrier: one arrives, but the phase waits for none");
    if (state.check) {
        add_release(b.gathering, scope::cta, current()->home, current()->now);
        tick(current());
    }
    b.pending--;
    complete_phase_if_due(b);
    progress();
}

void mbarrier_complete(const void *barrier, const copy &done)
{
    mbarrier &b = barriers[barrier];
    if (b.expected == 0) {
        report(fault::misuse,
               "a copy by " + thread_name(done.issuer) + " completes on " + address_name(barrier) +
                   ", which is no mbarrier any more",
               0, 0);
        return;
    }
    if (state.check)
        add_release(b.gathering, scope::cluster, done.issuer->home, done.known);
    b.bytes -= static_cast<int64_t>(done.bytes);
    complete_phase_if_due(b);
}

bool mbarrier_test(const void *barrier, unsigned parity, scope s, site at)
{
    yield(at);
    mbarrier &b = find(barrier, at);
    if (find_allocation(barrier)->owner != current()->home)
        fail(at, "mbarrier wait: a block can wait on its own objects only");
    if ((b.phase & 1) == (parity & 1))
        return false;
    check_ordered(barrier, at); /* checked once per wait, since a wait polls often */
    for (const release &r : b.completed)
        if (scope_includes(r.reach, r.by, current()->home) &&
            scope_includes(s, current()->home, r.by))
            current()->now.join_all(r.known);
    return true;
}

} // namespace simt
