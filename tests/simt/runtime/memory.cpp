/* memory.cpp: the arena that stands for global memory and for all blocks' shared memory. */
#include "internal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace simt
{

std::vector<allocation> allocations;
unsigned char *arena;

namespace
{

constexpr size_t red_zone_bytes = 256;
constexpr size_t alignment = 128;
constexpr unsigned char poison = 0xff;
size_t arena_top;

void begin()
{
    if (arena)
        return;
    void *memory = mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("simt: arena");
        exit(2);
    }
    arena = static_cast<unsigned char *>(memory);
    device_reset();
}

unsigned char *allocate(size_t bytes, const std::string &name, block *owner, bool initialised)
{
    begin();
    size_t start = (arena_top + red_zone_bytes + alignment - 1) / alignment * alignment;
    if (start + bytes + red_zone_bytes > arena_bytes) {
        fprintf(stderr, "simt: %s: %zu bytes do not fit in the arena of %zu\n", name.c_str(), bytes,
                arena_bytes);
        exit(2);
    }
    memset(arena + arena_top, poison, start + bytes + red_zone_bytes - arena_top);
    allocations.push_back({arena + start, bytes, name, owner, initialised, false});
    arena_top = start + bytes;
    return arena + start;
}

void check_zone(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++) {
        if (*from == poison)
            continue;
        report(fault::bounds, "a write landed outside, at " + address_name(from), 0, 0);
        return;
    }
}

} // namespace

void *device_allocate(size_t bytes, const char *name, bool initialised)
{
    return allocate(bytes, name, nullptr, initialised);
}

void device_reset()
{
    allocations.assign(1, {arena, 0, "nothing", nullptr, false, true});
    arena_top = 0;
}

const allocation *find_allocation(const void *address)
{
    auto above = std::upper_bound(
        allocations.begin() + 1, allocations.end(), address,
        [](const void *at, const allocation &a) { return at < static_cast<void *>(a.begin); });
    return &above[-1];
}

size_t allocation_mark()
{
    begin();
    return allocations.size();
}

void allocate_shared(block *b, size_t bytes)
{
    b->shared = allocate(bytes, format("shared memory of block %u", b->id), b, false);
}

void free_shared(size_t mark)
{
    const allocation &last = allocations[mark - 1];
    arena_top = static_cast<size_t>(last.begin + last.bytes - arena);
    allocations.resize(mark);
}

void check_red_zones()
{
    for (size_t i = 1; i < allocations.size(); i++) {
        const allocation &a = allocations[i];
        bool last = i + 1 == allocations.size();
        check_zone(a.begin - red_zone_bytes, a.begin);
        check_zone(a.begin + a.bytes,
                   last ? a.begin + a.bytes + red_zone_bytes : allocations[i + 1].begin);
    }
}

void *dynamic_shared()
{
    return current()->home->shared;
}

uint32_t shared_address(const void *address)
{
    return static_cast<uint32_t>(static_cast<const unsigned char *>(address) - arena);
}

uint32_t map_shared_address(uint32_t address, unsigned rank, site at)
{
    block *home = current()->home;
    if (rank >= cluster_size)
        fail(at, "rank %u of a cluster of %u", rank, cluster_size);
    block *peer = &state.blocks[home->id - home->id % cluster_size + rank];
    unsigned char *byte = arena + address;
    if (find_allocation(byte)->owner != home)
        fail(at, "%s is not shared memory of this block", address_name(byte).c_str());
    if (peer->live == 0)
        abandon(fault::remote_exit,
                format("block %u has exited when its memory is mapped at ", peer->id) +
                    place_name(place_of(at)));
    return static_cast<uint32_t>(peer->shared + (byte - home->shared) - arena);
}

} // namespace simt
