/* Counts what the memory accesses of a launch cost a warp: wavefronts of shared memory, sectors and
 * lines of global memory, and the minimum that accesses of their width can cost.
 *
 * The accesses of a lane are logged while it runs. At the end, the accesses of a warp's lanes
 * are combined into instructions. Accesses belong to the same instruction when they come from
 * the same place in the source, the same number of collectives and barriers came before them,
 * and they are the same iteration since the last of these. */
#include "internal.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace simt
{

namespace
{

constexpr size_t vector_bytes = 16; /* the widest access of a lane */
constexpr size_t looked_back = 8;   /* latest accesses that may be parts of the same vector */

using address_set = std::set<uintptr_t>;

uintptr_t number(const unsigned char *address)
{
    return reinterpret_cast<uintptr_t>(address);
}

/* The compiler announces the elements of a vector one by one. An access next to one that this
 * lane has just made, within the same 16 bytes, is therefore a part of it. */
bool extends(counted_access &last, const counted_access &more)
{
    if (last.write != more.write || last.strong != more.strong || last.meetings != more.meetings)
        return false;
    if (number(last.address) / vector_bytes != number(more.address) / vector_bytes)
        return false;
    if (more.address == last.address + last.bytes) {
        last.bytes += more.bytes;
        return true;
    }
    if (last.address == more.address + more.bytes) {
        last.address = more.address;
        last.bytes += more.bytes;
        return true;
    }
    return false;
}

/* True for a repeated read of the same words in a waiting loop. How often it repeats depends on
 * the schedule, so it is counted once. */
bool is_poll(const thread &t, const counted_access &a)
{
    if (!a.strong || a.write)
        return false;
    for (auto it = t.counted.rbegin(); it != t.counted.rend() && it->meetings == a.meetings; ++it)
        if (it->strong && !it->write && a.address >= it->address &&
            a.address < it->address + it->bytes)
            return true;
    return false;
}

/* Returns the distinct units of `unit` bytes that the accesses touch. */
address_set touched(const std::vector<counted_access> &lanes, size_t unit)
{
    address_set units;
    for (const counted_access &a : lanes)
        for (uintptr_t at = number(a.address) / unit;
             at <= (number(a.address) + a.bytes - 1) / unit; at++)
            units.insert(at);
    return units;
}

uint64_t divided_up(uint64_t value, uint64_t by)
{
    return (value + by - 1) / by;
}

/* Returns how many lanes are served at once: a warp with 4 bytes per lane, half of it with 8, a
 * quarter with 16. */
unsigned lanes_at_once(const std::vector<counted_access> &lanes)
{
    unsigned most = 4;
    for (const counted_access &a : lanes)
        most = std::max(most, a.bytes);
    return most <= 4 ? warp_lanes : most <= 8 ? warp_lanes / 2 : warp_lanes / 4;
}

/* Each of 32 banks delivers one word per wavefront. Several lanes may read the same word. */
uint64_t wavefronts(const std::vector<counted_access> &lanes)
{
    uint64_t in_bank[32] = {}, most = 0;
    for (uintptr_t word : touched(lanes, 4))
        most = std::max(most, ++in_bank[word % 32]);
    return most;
}

void count_instruction(const std::vector<counted_access> &lanes, bool shared, access_cost &cost)
{
    unsigned at_once = lanes_at_once(lanes);
    std::map<unsigned, std::vector<counted_access>> groups;
    for (const counted_access &a : lanes)
        groups[a.lane / at_once].push_back(a);
    cost.instructions++;
    if (!shared) {
        uint64_t sectors = touched(lanes, 32).size();
        cost.units += sectors;
        cost.ideal += divided_up(touched(lanes, 1).size(), 32);
    }
    for (const auto &group : groups) {
        if (shared) {
            cost.units += wavefronts(group.second);
            cost.ideal++;
        } else {
            cost.lines += touched(group.second, 128).size();
            cost.lines_ideal += divided_up(touched(group.second, 1).size(), 128);
        }
    }
}

void add_costs(std::map<std::string, access_cost> &to,
               const std::map<std::string, access_cost> &from)
{
    for (const auto &c : from) {
        access_cost &sum = to[c.first];
        sum.instructions += c.second.instructions;
        sum.units += c.second.units, sum.ideal += c.second.ideal;
        sum.lines += c.second.lines, sum.lines_ideal += c.second.lines_ideal;
    }
}

/* Only the first block is counted. It has no padding and represents all blocks. */
bool is_counted()
{
    return state.config.count && self && current()->home->id == 0;
}

} // namespace

void outcome::add(const outcome &more)
{
    findings.insert(findings.end(), more.findings.begin(), more.findings.end());
    add_costs(costs, more.costs);
    for (const auto &c : more.collectives)
        collectives[c.first] += c.second;
}

void count_access(const void *address, size_t bytes, bool write, bool strong, uint32_t place)
{
    if (!is_counted())
        return;
    thread &t = *current();
    if (!in_arena(address))
        return;
    counted_access a = {static_cast<const unsigned char *>(address),
                        place,
                        t.meetings,
                        static_cast<unsigned>(bytes),
                        t.lane,
                        write,
                        strong};
    if (is_poll(t, a))
        return;
    size_t looked = 0;
    for (auto it = t.counted.rbegin(); it != t.counted.rend() && looked < looked_back;
         ++it, looked++)
        if (extends(*it, a))
            return;
    t.counted.push_back(a);
}

void count_meeting(const char *name)
{
    if (!is_counted())
        return;
    thread &t = *current();
    t.meetings++;
    if (t.lane == 0)
        state.result.collectives[name]++;
}

/* Adds up the costs for each kind of memory and access. What the lanes of a warp did together is
 * one instruction. */
void count_finish()
{
    if (!state.config.count)
        return;
    using key = std::tuple<uint32_t, uint32_t, uint32_t>; /* place, meetings, turn */
    for (const auto &w : state.blocks.front().warps) {
        std::map<key, std::vector<counted_access>> instructions;
        for (const thread *t : w->lanes) {
            std::map<std::pair<uint32_t, uint32_t>, uint32_t> turns;
            if (!t)
                continue;
            for (const counted_access &a : t->counted) {
                uint32_t place = 2 * a.place + a.write; /* a copy reads and writes */
                instructions[key(place, a.meetings, turns[{place, a.meetings}]++)].push_back(a);
            }
        }
        for (const auto &i : instructions) {
            const counted_access &a = i.second.front();
            const allocation *in = find_allocation(a.address);
            bool shared = in && in->owner;
            std::string kind = std::string(shared ? "shared " : "global ") +
                               (a.write ? "store" : "load") + (a.strong ? " strong" : "");
            count_instruction(i.second, shared, state.result.costs[kind]);
        }
    }
}

} // namespace simt
