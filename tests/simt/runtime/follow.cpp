/* follow.cpp: launches that begin before the one before has ended (programmatic dependent launch).
 *
 * A launch that follows another begins here when that one has run, but finds poison where it wrote,
 * as if nothing had been written yet. The first call of grid_dependency_wait by the last thread
 * brings the bytes back. What threads wrote until then, the launch before could have read or
 * overwritten. */
#include "internal.h"

#include <cstring>

namespace simt
{

namespace
{

constexpr unsigned char poison = 0xff;
constexpr size_t stretch = 256; /* bytes that are compared at once */

/* A copy of some memory. */
struct copied {
    span of;
    std::vector<unsigned char> bytes;
};

std::vector<copied> hidden; /* what the launch before wrote, until it is shown */
std::vector<copied> before; /* all global memory as threads found it at first */

copied copy_of(const span &s)
{
    return {s, std::vector<unsigned char>(s.begin, s.begin + s.bytes)};
}

std::vector<copied> copy_of_global_memory()
{
    std::vector<copied> all;
    for (const allocation &a : allocations)
        if (!a.owner && a.bytes)
            all.push_back(copy_of({a.begin, a.bytes}));
    for (size_t i = 0; i < state.config.memory_count; i++)
        all.push_back(copy_of(state.config.memory[i]));
    return all;
}

/* Returns the bytes that differ from a copy made before, as few spans as possible. */
written changed_since(const std::vector<copied> &copies)
{
    written changes;
    for (const copied &c : copies) {
        for (size_t i = 0; i < c.bytes.size(); i++) {
            if (i % stretch == 0 && i + stretch <= c.bytes.size() &&
                memcmp(c.of.begin + i, &c.bytes[i], stretch) == 0) {
                i += stretch - 1;
                continue;
            }
            if (c.of.begin[i] == c.bytes[i])
                continue;
            unsigned char *at = c.of.begin + i;
            if (!changes.empty() && changes.back().begin + changes.back().bytes == at)
                changes.back().bytes++;
            else
                changes.push_back({at, 1});
        }
    }
    return changes;
}

void set_initialised(const span &s, bool initialised)
{
    if (state.check && in_arena(s.begin))
        shadow_initialise(s, initialised);
}

void hide(const written &bytes)
{
    for (const span &s : bytes) {
        hidden.push_back(copy_of(s));
        memset(s.begin, poison, s.bytes);
        set_initialised(s, false);
    }
}

void show()
{
    for (const copied &c : hidden) {
        memcpy(c.of.begin, c.bytes.data(), c.bytes.size());
        set_initialised(c.of, true);
    }
    hidden.clear();
}

void check_nothing_was_written(site at)
{
    for (const span &s : changed_since(before)) {
        report(fault::early,
               "written before griddepcontrol.wait at " + place_name(place_of(at)) + ": " +
                   (in_arena(s.begin) ? address_name(s.begin) : "global memory"),
               0, 0);
        return;
    }
}

/* Ends the wait of all threads. Copies that were started before may have read their source. */
void end_wait(site at)
{
    read_all_sources();
    check_nothing_was_written(at);
    show();
    before = copy_of_global_memory();
    progress();
    for (thread *t : state.following)
        if (t != current())
            make_ready(t);
    state.following.clear();
}

} // namespace

void follow_begin()
{
    hidden.clear();
    before.clear();
    if (state.config.follows)
        hide(*state.config.follows);
    if (state.config.follows || state.config.leaves)
        before = copy_of_global_memory();
}

void follow_end()
{
    show(); /* where the launch was abandoned */
    if (state.config.leaves)
        *state.config.leaves = changed_since(before);
    before.clear();
}

void grid_dependency_wait(site at)
{
    thread *t = current();
    if (!state.config.follows || t->followed)
        return;
    t->followed = true;
    state.following.push_back(t);
    if (state.following.size() == state.thread_count)
        end_wait(at);
    else
        wait("griddepcontrol.wait", at);
}

/* Were no thread to wait, then the launch could end before the one before it. The emulator asks it
 * of every thread. */
void check_followed(const thread *leaving)
{
    if (state.config.follows && !leaving->followed)
        abandon(fault::misuse, thread_name(leaving) + " ends without griddepcontrol.wait");
}

} // namespace simt
