/* What the faulty plug-ins share. Each is cpu_ref, some of whose functions it replaces; the
 * compile-time name FAULT says what it does wrong. */
#ifndef LB_FAULTY_H
#define LB_FAULTY_H

#include <string.h>
#include <time.h>

#include "impl.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

extern const struct lb_impl lb_impl_cpu_ref;
const struct lb_impl *lb_plugin(uint32_t abi);

/* cpu_ref under another name. */
static inline struct lb_impl cpu_ref_as(const char *name, const char *summary)
{
    struct lb_impl impl = lb_impl_cpu_ref;
    impl.name = name;
    impl.summary = summary;
    return impl;
}

/* Bytes of a call's tensors. */
struct tensor_bytes {
    size_t element, x, y, state; /* state: h0, c0, hn or cn */
};

static inline struct tensor_bytes tensor_bytes_of(const struct lb_problem *p)
{
    size_t size = lb_dtype_size(p->dtype), rows = (size_t)(p->seq_len * p->batch);
    size_t wide = (size_t)(p->directions * p->hidden);
    return (struct tensor_bytes){
        .element = size,
        .x = rows * (size_t)p->input * size,
        .y = rows * wide * size,
        .state = (size_t)(p->layers * p->batch) * wide * size,
    };
}

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void compute_until(double end)
{
    while (now() < end)
        continue;
}

#endif
