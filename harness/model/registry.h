/* Which implementations there are: those of the built-in table, and plug-ins. */
#ifndef LB_REGISTRY_H
#define LB_REGISTRY_H

#include "api/impl.h"

/* One line of the generated built-in table; the last has a NULL name. */
struct lb_registration {
    const char *name;
    const char *const *variants; /* NULL: none */
    const struct lb_impl *impl;  /* NULL: not built */
    const char *absent;          /* why it was not built */
};

extern const struct lb_registration lb_impl_table[];

/* What the program knows of one implementation. Strings are owned by the entry. */
struct lb_impl_entry {
    char *name;
    char *summary;
    char **variants; /* NULL-terminated; NULL: none */
    enum lb_memory memory;
    uint32_t traits;
    const struct lb_impl *impl; /* NULL: not built, or its plug-in is not loaded here */
    char *absent;               /* why a built-in has no impl; NULL otherwise */
    char *plugin;               /* path of the shared object; NULL for a built-in */
};

struct lb_registry {
    struct lb_impl_entry *entries;
    size_t count;
};

/* Fills the registry from the table. LB_INVALID when a row breaks the contract (name, abi, missing
 * slot), LB_OOM. */
enum lb_status lb_registry_create(const struct lb_registration *table, struct lb_registry *out,
                                  struct lb_error *err);
void lb_registry_destroy(struct lb_registry *registry); /* accepts a zeroed one */

/* Adds a copy of the entry, strings included; impl may be NULL. LB_INVALID when the name is taken
 * or is the old one of a renamed implementation; LB_OOM. */
enum lb_status lb_registry_add(struct lb_registry *registry, const struct lb_impl_entry *entry,
                               struct lb_error *err);

/* A built-in implementation that had another name. Records that hold the old name are read under
 * the new one; on a command line and for a plug-in the old name is refused. */
struct lb_renamed_impl {
    const char *was, *is;
    const char *since; /* the date, as YYYY-MM-DD */
};

/* NULL when no implementation was ever called that. */
const struct lb_renamed_impl *lb_impl_renamed(const char *name);

/* Copies a text that begins with an implementation's name, such as "cpu_blas:auto" or
 * "cpu_blas/T25_B16_H512", into out [size] with the name that the implementation has now. */
void lb_impl_rename_text(const char *text, char *out, size_t size);

/* NULL when there is none of that name. */
const struct lb_impl_entry *lb_registry_find(const struct lb_registry *registry, const char *name);

/* Finds the implementation, or fails with LB_INVALID: err gives the new name of a renamed one, else
 * suggests the most similar name. */
enum lb_status lb_registry_require(const struct lb_registry *registry, const char *name,
                                   const struct lb_impl_entry **entry, struct lb_error *err);

/* Loads a plug-in into this process and checks it against the contract: symbol lb_plugin, abi,
 * name, slots. *impl is a copy with this program's number and slots, NULL where the plug-in's
 * number has none; like the library, which may have registered something at exit, it stays for
 * good. LB_INVALID names the file and what is wrong; LB_OOM. */
enum lb_status lb_plugin_load(const char *path, const struct lb_impl **impl, struct lb_error *err);

/* LB_INVALID when the struct, which has all slots of LB_IMPL_ABI, breaks the contract. */
enum lb_status lb_impl_check(const struct lb_impl *impl, struct lb_error *err);

/* The place's variant: the named one of variants, the first where name is empty, NULL where there
 * are none. LB_INVALID when the name is not among them. */
enum lb_status lb_resolve_variant(const char *const *variants, const char *name,
                                  const char **variant, struct lb_error *err);

#endif
