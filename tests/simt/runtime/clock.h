/* clock.h: vector clocks. Their index is the id of a thread or, above all threads, of an
 * asynchronous agent.
 *
 * A clock consists of up to two vectors, because the memory model asks two questions:
 *   seen    Which accesses are ordered before the thread's next one? It may read and overwrite
 *           their data.
 *   reads   Which accesses are known to be over? These are more than `seen`: what a thread knew
 *           when it sent data by st.async is over once the data have arrived, although the
 *           complete-tx of an asynchronous operation orders only that operation (PTX ISA, "Program
 *           Order: Asynchronous Operations"). The thread may overwrite what was read, but it may
 *           not read what was written.
 * An empty `reads` means the same as `seen`: most kernels do not need it. */
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
    times seen, reads;

    const times &over() const
    {
        return reads.empty() ? seen : reads;
    }

    /* Orders this clock after `earlier`. */
    void join_all(const clock &earlier)
    {
        if (!reads.empty() || !earlier.reads.empty()) {
            if (reads.empty())
                reads = seen;
            join(reads, earlier.over());
        }
        join(seen, earlier.seen);
    }
};

} // namespace simt

#endif
