/* The limit that control groups set on this process's memory. */
#ifndef LB_CGROUP_H
#define LB_CGROUP_H

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that this process may still allocate: the smallest of limit minus use over its control
 * group and all groups above it, where page cache that was not used recently counts as free.
 * INFINITY where no group has a limit. Reads both versions of control groups at their usual places
 * below root; root
 * "" is this system. */
double lb_cgroup_room(const char *root);

#ifdef __cplusplus
}
#endif
#endif
