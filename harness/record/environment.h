/* What the numbers were measured on: machine, system, build. Recorded in every run's header. */
#ifndef LB_ENVIRONMENT_H
#define LB_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

/* A library's name and version as loaded, such as {"OpenBLAS", "0.3.21 ... SkylakeX"}. */
struct lb_library {
    const char *name;
    const char *version;
};

/* A new object with the keys host, cpu, cores, threads, simd, governor, cache_bytes, memory_bytes,
 * system, version, commit, dirty, compiler, flags, build_type, libraries {name: version}.
 * Who knows a GPU adds the keys gpu and ceilings. What the system does not say is null. libraries
 * ends with a NULL name. NULL: out of memory. */
json_t *lb_environment(const struct lb_library *libraries);

/* One line for people: "AMD EPYC, 2 threads, 23.4 GiB, Linux 6.1 x86_64". */
void lb_environment_line(const json_t *environment, char *line, size_t size);

/* Names what differs between two environments such that times can't be compared as they are, in
 * half a sentence ("cpu, threads"); false when nothing does. */
bool lb_environment_differs(const json_t *a, const json_t *b, char *what, size_t size);

/* Names the libraries that both know in different versions: "OpenBLAS 0.3.21 to 0.3.26"; false when
 * there are none. */
bool lb_libraries_differ(const json_t *a, const json_t *b, char *what, size_t size);

const char *lb_version(void); /* "0.1.0" */
const char *lb_commit(void);  /* twelve digits, "+changes" behind them when dirty */

#endif
