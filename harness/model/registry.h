/* The registry: which implementations there are, from the built-in table and from plug-ins. */
#ifndef LB_REGISTRY_H
#define LB_REGISTRY_H

#include "api/impl.h"

struct lb_shared_library; /* host/shared_library.h */

/* One row of the built-in table, which CMake generates; the last row has a NULL name. */
struct lb_registration {
    const char *name;
    const char *const *variants;       /* NULL: none */
    const struct lb_impl *impl;        /* NULL: not built */
    const char *absent;                /* why it was not built */
    struct lb_shared_library *library; /* that its cases need and a worker loads; NULL: none */
};

extern const struct lb_registration lb_impl_table[];

enum { LB_VARIANTS_MAX = 63 /* of one implementation */ };

/* What the program knows about one implementation. It owns its strings. */
struct lb_impl_entry {
    char *name;
    char *summary;
    char **variants; /* NULL-terminated; NULL: none */
    enum lb_memory memory;
    uint32_t traits;
    const struct lb_impl *impl; /* NULL: not built, or a plug-in that only workers load */
    char *absent;               /* why a built-in one can't run: it was not built, or its library
                                   can't be loaded; else NULL */
    char *plugin;               /* path of the shared object; NULL for a built-in */
    struct lb_shared_library *library; /* as in the table */
};

struct lb_registry {
    struct lb_impl_entry *impl_entries;
    size_t count;
};

/* Fills the registry from the table. LB_INVALID when a row violates the contract (name, abi,
 * missing slot). */
enum lb_status lb_registry_create(const struct lb_registration *table, struct lb_registry *out,
                                  struct lb_error *err);
void lb_registry_destroy(struct lb_registry *registry); /* accepts a zeroed one */

/* Adds a copy of the entry, strings included; impl may be NULL. LB_INVALID when the name is
 * taken. */
enum lb_status lb_registry_add(struct lb_registry *registry, const struct lb_impl_entry *impl_entry,
                               struct lb_error *err);

/* NULL when there is none of that name. */
const struct lb_impl_entry *lb_registry_find(const struct lb_registry *registry, const char *name);

/* Finds the implementation, or fails with LB_INVALID: err suggests the most similar name, or lists
 * all. */
enum lb_status lb_registry_require(const struct lb_registry *registry, const char *name,
                                   const struct lb_impl_entry **impl_entry, struct lb_error *err);

/* Loads a plug-in into this process and checks it against the contract: symbol lb_plugin, abi, size
 * of the struct, name, slots, at most LB_VARIANTS_MAX variants. *impl is the plug-in's own struct.
 * The library is never unloaded, because it may have registered functions that run at exit.
 * LB_INVALID: err names the file and what is wrong. */
enum lb_status lb_plugin_load(const char *path, const struct lb_impl **impl, struct lb_error *err);

/* Checks an implementation's struct. LB_INVALID: err says how it violates the contract. */
enum lb_status lb_impl_check(const struct lb_impl *impl, struct lb_error *err);

/* Whether an implementation can run the problem: what its supports answers, once it is known to
 * compute the problem's cell. LB_UNSUPPORTED with the reason. */
enum lb_status lb_impl_supports(const struct lb_impl *impl, const struct lb_problem *problem,
                                const struct lb_exec_config *config, struct lb_error *why);

/* Sets *variant to the member of variants (NULL-terminated, or NULL) with that name; an empty name
 * stands for the first one, or for NULL when there are none. LB_INVALID: there is none of that
 * name. */
enum lb_status lb_resolve_variant(const char *const *variants, const char *name,
                                  const char **variant, struct lb_error *err);

#endif
