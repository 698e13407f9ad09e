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

struct mbarrier {
    uint64_t cookie = 0;
    unsigned expected = 0;                     /* arrivals per phase */
    int64_t pending = 0;                       /* arrivals this phase still waits for */
    int64_t bytes = 0;                         /* tx-count */
    uint64_t phase = 0;                        /* the current one */
    std::vector<release> gathering, completed; /* by arrivals of this phase and the previous one */
};

std::unordered_map<unsigned char *, mbarrier> barriers;
uint64_t cookies;

mbarrier &find(unsigned char *at_byte, site at)
{
    uint64_t stored;
    memcpy(&stored, live_address(at_byte), sizeof stored);
    auto found = barriers.find(at_byte);
    if (found == barriers.end() || found->second.cookie != stored)
        fail(at, "%s is no initialised mbarrier, or was overwritten",
             address_name(at_byte).c_str());
    return found->second;
}

/* Every use of the object must be ordered after its initialisation. */
void check_ordered(unsigned char *at_byte, site at)
{
    if (!state.check)
        return;
    thread *t = current();
    actor by = {t->id, t->now.seen.of(t->id), t, false, static_cast<int>(scope::cluster), false};
    shadow_access(at_byte, sizeof(uint64_t), false, by, place_of(at));
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
    if (reinterpret_cast<uintptr_t>(barrier) % sizeof(uint64_t))
        fail(at, "mbarrier.init: the object is not aligned to 8 bytes");
    unsigned char *byte = canonical(barrier);
    if (find_allocation(byte)->owner != current()->home)
        fail(at, "mbarrier.init: %s is not shared memory of this block",
             address_name(byte).c_str());
    weak_access(barrier, sizeof(uint64_t), true, at);
    mbarrier b;
    b.cookie = ++cookies;
    b.expected = count;
    b.pending = count;
    memcpy(barrier, &b.cookie, sizeof b.cookie);
    barriers[byte] = std::move(b);
}

void mbarrier_check_use(unsigned char *at_byte, site at)
{
    find(at_byte, at);
    check_ordered(at_byte, at);
}

void mbarrier_expect(uint32_t barrier, unsigned bytes, site at)
{
    mbarrier &b = find(arena + barrier, at);
    check_ordered(arena + barrier, at);
    b.bytes += bytes;
    if (b.bytes > count_limit)
        fail(at, "mbarrier: tx-count %lld exceeds its range", static_cast<long long>(b.bytes));
}

void mbarrier_arrive(uint32_t barrier, unsigned count, scope s, site at)
{
    yield(at);
    mbarrier &b = find(arena + barrier, at);
    check_ordered(arena + barrier, at);
    if (count > b.pending)
        fail(at, "mbarrier: %u arrive, but the phase waits for %lld", count,
             static_cast<long long>(b.pending));
    if (state.check) {
        add_release(b.gathering, s, current()->home, current()->now);
        tick(current());
    }
    b.pending -= count;
    complete_phase_if_due(b);
    progress();
}

void mbarrier_complete(unsigned char *barrier, const copy &done)
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
    unsigned char *byte = canonical(barrier);
    mbarrier &b = find(byte, at);
    if (find_allocation(byte)->owner != current()->home)
        fail(at, "mbarrier wait: a block can wait on its own objects only");
    if ((b.phase & 1) == (parity & 1))
        return false;
    check_ordered(byte, at); /* checked once per wait, since a wait polls often */
    if (state.check)
        acquire_at(current(), b.completed, s, true);
    return true;
}

} // namespace simt
