/* The limits that control groups set on this process's memory and CPU time, and the number of kills
 * for lack of memory. */
#ifndef LB_CGROUP_H
#define LB_CGROUP_H

/* Bytes that this process may still allocate: the smallest of limit minus use over its control
 * group and all groups above it, of both versions, where page cache that was not used recently
 * counts as free. INFINITY where no group has a limit. root: a folder with other files, for tests;
 * else "". */
double lb_cgroup_room(const char *root);

/* A number that rises when the kernel kills a process because memory ran out: the sum of the
 * counts of the machine, of this process's control group and of all groups above it; NaN where
 * there is none. root: as above. */
double lb_oom_kills(const char *root);

/* The share of periods in which a group ran out of its quota of CPU time: the largest over this
 * process's control group and all groups above it; NaN where none has a quota. root: as above. */
double lb_cgroup_throttled(const char *root);
#endif
