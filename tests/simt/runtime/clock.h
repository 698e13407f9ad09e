/* clock.h: vector clocks. Their index is the id of a thread or, above all threads, of an
 * asynchronous agent.
 *
 * A clock consists of up to three vectors, because the memory model asks three questions:
 *   seen    Which accesses are ordered before the thread's next one? It may read and overwrite
 *           their data.
 *   reads   Which accesses are known to be over? These are more than `seen`: what a thread knew
 *           when it sent data by st.async is over once the data have arrived, although the
 *           complete-tx of an asynchronous operation orders only that operation (PTX ISA, "Program
 *           Order: Asynchronous Operations"). The thread may overwrite what was read, but it may
 *           not read what was written.
 *   fenced  Which generic accesses has a fence.proxy.async of this block made visible to the async
 *           proxy?
 * An empty `reads` means the same as `seen`, and an empty `fenced` means none: most kernels need
 * neither. */
#ifndef LB_SIMT_CLOCK_H
#define LB_SIMT_CLOCK_H

#include <cstdint>
#include <vector>

namespace simt
{

struct epoch {
    unsigned agent;
    uint32_t time;
};

/* The agents from first to end - 1. */
struct agents {
    unsigned first, end;
};
constexpr agents every_agent = {0, ~0u};

using times = std::vector<uint32_t>;

inline uint32_t time_of(const times &t, unsigned agent)
{
    return agent < t.size() ? t[agent] : 0;
}

inline void join(times &into, const times &from)
{
    if (into.size() < from.size())
        into.resize(from.size());
    for (size_t i = 0; i < from.size(); i++)
        into[i] = into[i] < from[i] ? from[i] : into[i];
}

inline void raise(times &into, epoch e)
{
    if (into.size() <= e.agent)
        into.resize(e.agent + 1);
    if (into[e.agent] < e.time)
        into[e.agent] = e.time;
}

struct clock {
    times seen, reads, fenced;

    const times &over() const
    {
        return reads.empty() ? seen : reads;
    }

    /* Orders this clock after `earlier`. Of its proxy fences, it takes over only those for
     * accesses by the agents in `fences`. */
    void join_all(const clock &earlier, agents fences)
    {
        if (!reads.empty() || !earlier.reads.empty()) {
            if (reads.empty())
                reads = seen;
            join(reads, earlier.over());
        }
        join(seen, earlier.seen);
        unsigned end = static_cast<unsigned>(earlier.fenced.size());
        for (unsigned a = fences.first; a < end && a < fences.end; a++)
            raise(fenced, {a, earlier.fenced[a]});
    }
};

} // namespace simt

#endif
