/* The limit that control groups set on this process's memory. */
#ifndef LB_CGROUP_H
#define LB_CGROUP_H

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that this process's control group and those above it still allow: the least of limit minus
 * use, where page cache that was not used of late counts as free. INFINITY where none has a limit.
 * Both versions of control groups are looked at, at their usual places below root: "" is this
 * system's. */
double lb_cgroup_room(const char *root);

#ifdef __cplusplus
}
#endif
#endif
