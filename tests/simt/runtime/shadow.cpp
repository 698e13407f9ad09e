/* shadow.cpp: what was done last to every byte, and whether the next access may do its own.
 *
 * After FastTrack (Flanagan and Freund, PLDI 2009): the last write as one epoch, the reads since
 * as one epoch while they are ordered. Reads that are not are kept as the set of those that no
 * later read is ordered after. Four bytes share a cell until an access takes only some of them. */
#include "internal.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

namespace simt
{

namespace
{

struct mark {
    uint32_t time = 0; /* 0: none */
    uint16_t agent = 0;
    int8_t strong = -1;
    bool asynchronous = false;
    uint32_t place = 0;
};

struct cell {
    uint32_t launch; /* marks of earlier launches count for nothing */
    bool initialised;
    mark write;
    mark read;
    std::vector<mark> *more_reads;
};

struct word {
    cell whole;
    cell *bytes;         /* four, once some access was narrower than the word */
    uint32_t allocation; /* index; 0: none */
};

constexpr size_t word_bytes = 4;
word *shadow;

/* All that one access needs while it looks at its cells. */
struct visit {
    const actor &by;
    bool write;
    uint32_t place;
    const unsigned char *address;
};

std::string access_name(const visit &v)
{
    std::string name = v.by.strong >= 0 ? "strong " : "";
    name += v.write ? "write" : "read";
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

bool both_strong(const mark &m, const visit &v)
{
    if (m.strong < 0 || v.by.strong < 0)
        return false;
    const block *a = thread_of(m.agent)->home, *b = v.by.who->home;
    return scope_includes(static_cast<scope>(m.strong), a, b) &&
           scope_includes(static_cast<scope>(v.by.strong), b, a);
}

bool ordered(const mark &m, const visit &v, const times &known)
{
    return (m.agent == v.by.agent && !m.asynchronous) || m.time <= time_of(known, m.agent) ||
           both_strong(m, v);
}

void check_against_write(const mark &m, const visit &v)
{
    const clock &now = v.by.who->now;
    /* Overwriting what an asynchronous copy brought needs to know only that it is over. */
    const times &known = v.write && m.asynchronous ? now.over() : now.seen;
    if (!ordered(m, v, known)) {
        report_pair(fault::race, "unordered with a write", v, m);
        return;
    }
    if (v.by.async_proxy && !m.asynchronous && m.time > time_of(now.fenced, m.agent))
        report_pair(fault::proxy, "no fence.proxy.async after the write", v, m);
}

void check_against_reads(cell &c, const visit &v)
{
    const times &known = v.by.who->now.over();
    if (c.read.time && !ordered(c.read, v, known))
        report_pair(fault::race, "unordered with a read", v, c.read);
    if (!c.more_reads)
        return;
    for (const mark &m : *c.more_reads) {
        if (!ordered(m, v, known)) {
            report_pair(fault::race, "unordered with a read", v, m);
            break;
        }
    }
    delete c.more_reads;
    c.more_reads = nullptr;
}

/* Adds a read and drops those it is ordered after: whoever is ordered after it is after them. */
void add_read(cell &c, const visit &v, const mark &m)
{
    const times &known = v.by.who->now.seen;
    auto covered = [&](const mark &old) {
        return old.time == 0 || (old.agent == m.agent) ||
               (!m.asynchronous && old.time <= time_of(known, old.agent));
    };
    if (c.more_reads) {
        std::vector<mark> &reads = *c.more_reads;
        size_t kept = 0;
        for (const mark &old : reads)
            if (!covered(old))
                reads[kept++] = old;
        reads.resize(kept);
    }
    if (covered(c.read)) {
        c.read = m;
    } else {
        if (!c.more_reads)
            c.more_reads = new std::vector<mark>;
        c.more_reads->push_back(m);
    }
}

void visit_cell(cell &c, const visit &v)
{
    if (c.launch != state.number) {
        c.launch = state.number;
        c.write = c.read = mark();
        delete c.more_reads;
        c.more_reads = nullptr;
    }
    mark m;
    m.time = v.by.time;
    m.agent = static_cast<uint16_t>(v.by.agent);
    m.strong = static_cast<int8_t>(v.by.strong);
    m.asynchronous = v.by.asynchronous;
    m.place = v.place;
    if (c.write.time)
        check_against_write(c.write, v);
    if (!v.write) {
        if (!c.initialised)
            report_one(fault::uninitialised, "nothing was written there", v);
        add_read(c, v, m);
        return;
    }
    check_against_reads(c, v);
    c.write = m;
    c.read = mark();
    c.initialised = true;
}

void split(word &w)
{
    w.bytes = new cell[word_bytes];
    for (size_t i = 0; i < word_bytes; i++) {
        w.bytes[i] = w.whole;
        if (w.whole.more_reads)
            w.bytes[i].more_reads = new std::vector<mark>(*w.whole.more_reads);
    }
    delete w.whole.more_reads;
    w.whole.more_reads = nullptr;
}

void check_remote(const block *owner, const visit &v)
{
    if (owner->live == 0)
        report_one(fault::remote_exit, "its block has exited", v);
    for (unsigned i = 0; i < state.block_threads; i++)
        if (time_of(v.by.who->now.seen, owner->first + i))
            return;
    report_one(fault::remote_start, "its block is not known to have started", v);
}

void reset_word(word &w, bool initialised, uint32_t allocation)
{
    delete w.whole.more_reads;
    if (w.bytes)
        for (size_t i = 0; i < word_bytes; i++)
            delete w.bytes[i].more_reads;
    delete[] w.bytes;
    w = word();
    w.whole.initialised = initialised;
    w.allocation = allocation;
}

} // namespace

void shadow_begin()
{
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
    size_t zone = cleared + 64; /* the last red zone */
    for (size_t w = cleared; w < zone && w < arena_bytes / word_bytes; w++)
        reset_word(shadow[w], false, 0);
}

void shadow_access(const unsigned char *address, size_t bytes, bool write, const actor &by,
                   uint32_t place)
{
    if (!in_arena(address))
        return; /* the thread's own stack, or the test's host memory: arguments */
    state.result.accesses++;
    visit v = {by, write, place, address};
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

/* A peer's access that the owner's exit does not wait for may come after it. */
void shadow_block_exit(block *b)
{
    clock end = state.threads[b->first].now;
    for (unsigned i = 1; i < state.block_threads; i++)
        end.join_all(state.threads[b->first + i].now, every_agent);
    auto late = [&](const mark &m) {
        return m.time > time_of(end.over(), m.agent) && thread_of(m.agent)->home != b;
    };
    auto look = [&](const cell &c, const unsigned char *address) {
        if (c.launch != state.number)
            return;
        const mark *m = late(c.write) ? &c.write : late(c.read) ? &c.read : nullptr;
        for (size_t i = 0; c.more_reads && !m && i < c.more_reads->size(); i++)
            m = late((*c.more_reads)[i]) ? &(*c.more_reads)[i] : nullptr;
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
