/* clock.h: vector clocks. Index: thread id, or past these an asynchronous agent's.
 *
 * A clock here is up to three vectors, because the memory model has three questions:
 *   seen    which accesses are ordered before mine (for reading and overwriting data)
 *   reads   which accesses are known to be over. More than seen: what a thread knew when it sent
 *           data by st.async is over once the data are there, though the complete-tx of an
 *           asynchronous operation orders nothing but that operation (PTX ISA, "Program Order:
 *           Asynchronous Operations"). Enough to overwrite what was read, too little to read.
 *   fenced  which generic accesses a fence.proxy.async of this block has made ready for the
 *           async proxy
 * An empty `reads` means "as seen", an empty `fenced` nothing: most kernels need neither. */
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

/* Agents [first, end). */
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

    /* After earlier; proxy fences only as far as they concern accesses of `fences`. */
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
