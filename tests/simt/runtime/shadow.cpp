/* shadow.cpp: remembers the last accesses to every byte, and reports when the next one races.
 *
 * It follows FastTrack (Flanagan and Freund, PLDI 2009): it keeps the last write as one epoch, and
 * the reads since then as one epoch while they are ordered. Reads that are not ordered are kept as
 * a set, without those that a later read is ordered after. A strong access does not replace all
 * accesses before it, because a later access may be morally strong with it and yet race with an
 * earlier one. Strong writes are therefore kept as a set too. Four bytes share a cell until an
 * access touches only some of them. */
#include "internal.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

namespace simt
{

namespace
{

struct mark {
    uint32_t time; /* 0: none */
    uint16_t agent;
    signed strong : 3; /* -1: weak, else the scope */
    bool asynchronous : 1;
    unsigned offset : 4; /* of the whole access within its 16 bytes */
    unsigned width : 5;  /* bytes of the whole access, modulo 32 */
    uint32_t place;
};
static_assert(sizeof(mark) == 12, "one lies in every cell twice");

struct more_marks {
    std::vector<mark> writes, reads;
};

struct cell {
    uint32_t launch; /* marks of earlier launches are ignored */
    bool initialised;
    mark write;       /* the last one */
    mark read;        /* likewise */
    more_marks *more; /* earlier accesses that could still race; nullptr: none */
};

struct word {
    cell whole;
    cell *bytes;         /* [4] once an access was narrower than the word */
    uint32_t allocation; /* index; 0: none */
};

constexpr size_t word_bytes = 4;
word *shadow;

/* A load that needs memory that does not change. */
struct read_only_load {
    const unsigned char *address;
    size_t bytes;
    uint32_t place;
    const thread *by;
};
std::vector<read_only_load> read_only_loads; /* of this launch */

/* One access while its cells are checked. */
struct visit {
    const actor &by;
    bool write;
    uint32_t place;
    const unsigned char *address;
    mark left; /* the mark that the access leaves in each cell */
};

std::string access_name(const visit &v)
{
    std::string name = v.by.strong >= 0 ? "strong " : "";
    name += v.by.update ? "update" : v.write ? "write" : "read";
    return name + (v.by.asynchronous ? " (asynchronous copy)" : "");
}

const thread *thread_of(unsigned agent)
{
    if (agent < state.thread_count)
        return &state.threads[agent];
    for (const thread &t : state.threads)
        for (int id : t.agent_id)
            if (id == static_cast<int>(agent))
                return &t;
    return nullptr;
}

void report_pair(fault kind, const char *what, const visit &v, const mark &other)
{
    report(kind,
           access_name(v) + " of " + address_name(v.address) + " by " + thread_name(v.by.who) +
               " at {1}, " + what + " by " + thread_name(thread_of(other.agent)) + " at {2}",
           v.place, other.place);
}

void report_one(fault kind, const char *what, const visit &v)
{
    report(kind,
           access_name(v) + " of " + address_name(v.address) + " by " + thread_name(v.by.who) +
               " at {1}: " + what,
           v.place, 0);
}

bool same_bytes(const mark &a, const mark &b)
{
    return a.offset == b.offset && a.width == b.width;
}

/* PTX ISA, "Morally strong operations": each operation is in the scope of the other, and both
 * access the same bytes. */
bool both_strong(const mark &m, const visit &v)
{
    if (m.strong < 0 || v.by.strong < 0 || !same_bytes(m, v.left))
        return false;
    const block *a = thread_of(m.agent)->home, *b = v.by.who->home;
    return scope_includes(static_cast<scope>(m.strong), a, b) &&
           scope_includes(static_cast<scope>(v.by.strong), b, a);
}

bool ordered(const mark &m, const visit &v, const times &known)
{
    return (m.agent == v.by.agent && !m.asynchronous) || m.time <= known.of(m.agent) ||
           both_strong(m, v);
}

/* Returns false when the accesses race. */
bool check_against_write(const mark &m, const visit &v)
{
    const clock &now = v.by.who->now;
    /* To overwrite what an asynchronous copy wrote, it is enough that the copy is over. */
    const times &known = v.write && m.asynchronous ? now.over() : now.seen;
    if (!ordered(m, v, known)) {
        report_pair(fault::race, "unordered with a write", v, m);
        return false;
    }
    return true;
}

void check_against_writes(const cell &c, const visit &v)
{
    if (c.write.time && !check_against_write(c.write, v))
        return;
    for (size_t i = 0; c.more && i < c.more->writes.size(); i++)
        if (!check_against_write(c.more->writes[i], v))
            return;
}

void check_against_reads(const cell &c, const visit &v)
{
    const times &known = v.by.who->now.over();
    if (c.read.time && !ordered(c.read, v, known))
        report_pair(fault::race, "unordered with a read", v, c.read);
    if (!c.more)
        return;
    for (const mark &m : c.more->reads) {
        if (!ordered(m, v, known)) {
            report_pair(fault::race, "unordered with a read", v, m);
            return;
        }
    }
}

bool precedes(const mark &old, const visit &v)
{
    return old.agent == v.by.agent ||
           (!v.by.asynchronous && old.time <= v.by.who->now.seen.of(old.agent));
}

/* Whether every operation that is morally strong with the new access is also morally strong with
 * the old one. If the old one also precedes the new one, then everything that will race with the
 * old access will race with the new one too, so the old mark is not needed. (Between accesses of
 * different blocks, their scopes make exceptions.) */
bool as_strong(const mark &old, const visit &v)
{
    return v.by.strong < 0 || (old.strong >= v.by.strong && same_bytes(old, v.left));
}

/* Drops the marks in `one` and `more` for which `keep` is false. */
template <class Keep> void sift(mark &one, std::vector<mark> *more, Keep keep)
{
    if (one.time && !keep(one))
        one.time = 0;
    if (!more || more->empty())
        return;
    size_t kept = 0;
    for (const mark &m : *more)
        if (keep(m))
            (*more)[kept++] = m;
    more->resize(kept);
}

void add(cell &c, mark &one, std::vector<mark> more_marks::*more, const mark &m)
{
    if (one.time) {
        if (!c.more)
            c.more = new more_marks;
        (c.more->*more).push_back(one);
    }
    one = m;
}

void forget(cell &c)
{
    c.write.time = c.read.time = 0;
    delete c.more;
    c.more = nullptr;
}

void drop_reads(cell &c, const visit &v)
{
    sift(c.read, c.more ? &c.more->reads : nullptr,
         [&](const mark &old) { return !precedes(old, v) || !as_strong(old, v); });
}

void add_read(cell &c, const visit &v)
{
    drop_reads(c, v);
    add(c, c.read, &more_marks::reads, v.left);
}

/* A weak write races with every access that is not ordered with it, so no earlier mark is
 * needed. */
void add_write(cell &c, const visit &v)
{
    if (v.by.strong < 0) {
        forget(c);
    } else {
        drop_reads(c, v);
        sift(c.write, c.more ? &c.more->writes : nullptr,
             [&](const mark &old) { return !precedes(old, v) || !as_strong(old, v); });
    }
    add(c, c.write, &more_marks::writes, v.left);
    c.initialised = true;
}

void visit_cell(cell &c, const visit &v)
{
    if (c.launch != state.number) {
        c.launch = state.number;
        forget(c);
    }
    check_against_writes(c, v);
    if ((!v.write || v.by.update) && !c.initialised)
        report_one(fault::uninitialised, "nothing was written there", v);
    if (v.write) {
        check_against_reads(c, v);
        add_write(c, v);
    } else {
        add_read(c, v);
    }
}

void split(word &w)
{
    w.bytes = new cell[word_bytes];
    for (size_t i = 0; i < word_bytes; i++) {
        w.bytes[i] = w.whole;
        if (w.whole.more)
            w.bytes[i].more = new more_marks(*w.whole.more);
    }
    delete w.whole.more;
    w.whole.more = nullptr;
}

mark mark_of(const unsigned char *address, size_t bytes, const actor &by, uint32_t place)
{
    mark m;
    m.time = by.time;
    m.agent = static_cast<uint16_t>(by.agent);
    m.strong = by.strong;
    m.asynchronous = by.asynchronous;
    m.offset = reinterpret_cast<uintptr_t>(address) % 16;
    m.width = bytes % 32;
    m.place = place;
    return m;
}

void check_remote(const block *owner, const visit &v)
{
    if (owner->live == 0)
        report_one(fault::remote_exit, "its block has exited", v);
    for (unsigned i = 0; i < state.block_threads; i++)
        if (v.by.who->now.seen.of(owner->first + i))
            return;
    report_one(fault::remote_start, "its block is not known to have started", v);
}

/* Returns the place of a write of this launch to the byte; 0: there is none. */
uint32_t written_at(const unsigned char *byte)
{
    size_t at = static_cast<size_t>(byte - arena);
    const word &w = shadow[at / word_bytes];
    const cell &c = w.bytes ? w.bytes[at % word_bytes] : w.whole;
    return c.launch == state.number && c.write.time ? c.write.place : 0;
}

bool written_before(const unsigned char *byte)
{
    for (size_t i = 0; state.config.follows && i < state.config.follows->size(); i++) {
        const span &s = (*state.config.follows)[i];
        if (byte >= s.begin && byte < s.begin + s.bytes)
            return true;
    }
    return false;
}

void reset_word(word &w, bool initialised, uint32_t allocation)
{
    delete w.whole.more;
    if (w.bytes)
        for (size_t i = 0; i < word_bytes; i++)
            delete w.bytes[i].more;
    delete[] w.bytes;
    w = word();
    w.whole.initialised = initialised;
    w.allocation = allocation;
}

} // namespace

void shadow_begin()
{
    read_only_loads.clear();
    if (!shadow) {
        void *memory =
            mmap(nullptr, arena_bytes / word_bytes * sizeof(word), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            perror("simt: shadow memory");
            exit(2);
        }
        shadow = static_cast<word *>(memory);
    }
    size_t cleared = 0;
    for (size_t i = 1; i < allocations.size(); i++) {
        allocation &a = allocations[i];
        size_t begin = static_cast<size_t>(a.begin - arena) / word_bytes;
        size_t end = begin + (a.bytes + word_bytes - 1) / word_bytes;
        if (!a.shadowed) {
            for (size_t w = cleared; w < begin; w++)
                reset_word(shadow[w], false, 0);
            for (size_t w = begin; w < end; w++)
                reset_word(shadow[w], a.initialised, static_cast<uint32_t>(i));
            a.shadowed = true;
        }
        cleared = end;
    }
    size_t zone = cleared + 64; /* end of the red zone behind the last allocation */
    for (size_t w = cleared; w < zone && w < arena_bytes / word_bytes; w++)
        reset_word(shadow[w], false, 0);
}

void load_read_only(const void *address, size_t bytes, site at)
{
    const auto *byte = static_cast<const unsigned char *>(address);
    if (self && state.check && in_arena(byte))
        read_only_loads.push_back({byte, bytes, place_of(at), current()});
}

void shadow_end()
{
    for (const read_only_load &load : read_only_loads)
        for (size_t i = 0; i < load.bytes; i++) {
            const unsigned char *byte = load.address + i;
            uint32_t writer = written_at(byte);
            if (!writer && !written_before(byte))
                continue;
            report(fault::misuse,
                   "read-only load (ld.global.nc) of " + address_name(byte) + " by " +
                       thread_name(load.by) + " at {1}, which " +
                       (writer ? "this launch writes at {2}" : "the launch before has written"),
                   load.place, writer);
            break;
        }
}

void shadow_initialise(const span &bytes, bool initialised)
{
    for (size_t i = 0; i < bytes.bytes; i++) {
        word &w = shadow[static_cast<size_t>(bytes.begin + i - arena) / word_bytes];
        if (!w.bytes)
            split(w);
        w.bytes[static_cast<size_t>(bytes.begin + i - arena) % word_bytes].initialised =
            initialised;
    }
}

void shadow_access(const void *begin, size_t bytes, bool write, const actor &by, uint32_t place)
{
    const auto *address = static_cast<const unsigned char *>(begin);
    if (!in_arena(address))
        return; /* it is on the thread's stack or in the test's host memory, as arguments are */
    visit v = {by, write, place, address, mark_of(address, bytes, by, place)};
    size_t first = static_cast<size_t>(address - arena), end = first + bytes;
    const allocation &in = allocations[shadow[first / word_bytes].allocation];
    if (in.bytes == 0 || address + bytes > in.begin + in.bytes) {
        report_one(fault::bounds, "outside every allocation", v);
        return;
    }
    if (in.owner && in.owner != by.who->home)
        check_remote(in.owner, v);
    for (size_t i = first; i < end;) {
        word &w = shadow[i / word_bytes];
        size_t offset = i % word_bytes;
        v.address = arena + i;
        if (offset == 0 && end - i >= word_bytes && !w.bytes) {
            visit_cell(w.whole, v);
            i += word_bytes;
            continue;
        }
        if (!w.bytes)
            split(w);
        visit_cell(w.bytes[offset], v);
        i++;
    }
}

/* Reports accesses by other blocks that are not ordered before this block's exit: on a device
 * they could come after it. */
void shadow_block_exit(block *b)
{
    clock end = state.threads[b->first].now;
    for (unsigned i = 1; i < state.block_threads; i++)
        end.join_all(state.threads[b->first + i].now);
    auto late = [&](const mark &m) {
        return m.time > end.over().of(m.agent) && thread_of(m.agent)->home != b;
    };
    auto look = [&](const cell &c, const unsigned char *address) {
        if (c.launch != state.number)
            return;
        const mark *m = late(c.write) ? &c.write : late(c.read) ? &c.read : nullptr;
        if (c.more)
            for (const auto *marks : {&c.more->writes, &c.more->reads})
                for (size_t i = 0; !m && i < marks->size(); i++)
                    m = late((*marks)[i]) ? &(*marks)[i] : nullptr;
        if (m)
            report(fault::remote_exit,
                   format("block %u exits, and an access of ", b->id) + address_name(address) +
                       " by " + thread_name(thread_of(m->agent)) + " at {1} is not ordered before",
                   m->place, 0);
    };
    for (const allocation &a : allocations) {
        if (a.owner != b)
            continue;
        size_t begin = static_cast<size_t>(a.begin - arena) / word_bytes;
        for (size_t w = begin; w < begin + (a.bytes + word_bytes - 1) / word_bytes; w++) {
            look(shadow[w].whole, arena + w * word_bytes);
            for (size_t i = 0; shadow[w].bytes && i < word_bytes; i++)
                look(shadow[w].bytes[i], arena + w * word_bytes + i);
        }
    }
}

} // namespace simt
