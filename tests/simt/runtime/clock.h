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

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace simt
{

struct epoch {
    unsigned agent;
    uint32_t time;
};

/* One vector. Copies share their entries until they learn something else, but for the entry of one
 * agent, mostly the thread whose vector it is: threads that have met at a barrier have all entries
 * in common but their own. */
class times
{
  public:
    bool empty() const
    {
        return own_.time == 0 && !entries_;
    }

    uint32_t of(unsigned agent) const
    {
        return agent == own_.agent ? own_.time : shared(agent);
    }

    void raise(epoch e)
    {
        if (e.time <= of(e.agent))
            return;
        if (own_.time == 0 || own_.agent == e.agent)
            own_ = e;
        else
            set_entry(e);
    }

    /* Makes all entries common ones, for others to adopt. */
    void share_own()
    {
        if (own_.time)
            set_entry(own_);
        own_ = {0, 0};
    }

    /* Joins a vector that has been joined with this one, and shared. */
    void adopt(const times &later)
    {
        entries_ = later.entries_;
    }

    void join(const times &from)
    {
        if (from.entries_ && from.entries_ != entries_)
            join_entries(from.entries_);
        raise(from.own_);
        if (own_.time)
            own_.time = std::max(own_.time, shared(own_.agent));
    }

  private:
    using vector_pointer = std::shared_ptr<std::vector<uint32_t>>;
    vector_pointer entries_;
    epoch own_ = {0, 0}; /* time 0: none */

    uint32_t shared(unsigned agent) const
    {
        return entries_ && agent < entries_->size() ? (*entries_)[agent] : 0;
    }

    void set_entry(epoch e)
    {
        std::vector<uint32_t> &to = unshare();
        to.resize(std::max<size_t>(to.size(), e.agent + 1));
        to[e.agent] = e.time;
    }

    std::vector<uint32_t> &unshare()
    {
        if (!entries_ || entries_.use_count() > 1)
            entries_ = std::make_shared<std::vector<uint32_t>>(entries_ ? *entries_
                                                                        : std::vector<uint32_t>());
        return *entries_;
    }

    void join_entries(const vector_pointer &from)
    {
        size_t size = from->size(), both = entries_ ? std::min(entries_->size(), size) : 0;
        if (both < size || entries_.use_count() > 1) {
            uint32_t less = both < size, more = entries_ && entries_->size() > both;
            for (size_t i = 0; i < both; i++) {
                less |= (*entries_)[i] < (*from)[i];
                more |= (*entries_)[i] > (*from)[i];
            }
            if (!more)
                entries_ = from;
            if (!less || !more)
                return;
        }
        std::vector<uint32_t> &to = unshare();
        to.resize(std::max(to.size(), size));
        for (size_t i = 0; i < size; i++)
            to[i] = std::max(to[i], (*from)[i]);
    }
};

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
            reads.join(earlier.over());
        }
        seen.join(earlier.seen);
    }

    /* The same where `later` has been joined with this clock, and its entries are shared. */
    void adopt(const clock &later)
    {
        if (reads.empty() && !later.reads.empty())
            reads = seen;
        seen.adopt(later.seen);
        reads.adopt(later.reads);
    }
};

} // namespace simt

#endif
