/* Names of implementations and variants, as people write them, to those that there are. */
#ifndef LB_IMPL_NAMES_H
#define LB_IMPL_NAMES_H

#include "cli/selection.h"
#include "model/registry.h"

/* What a plan needs to know of an implementation. */
struct lb_available_impl {
    const char *name;
    const char *const *variants; /* NULL-terminated, the default first; NULL: none */
};

/* The entries of the registry: *entries [registry->count] is the caller's to free. LB_OOM. */
enum lb_status lb_available_impls(const struct lb_registry *registry,
                                  struct lb_available_impl **entries, struct lb_error *err);

/* An implementation that cases run on; both strings are the entry's own or static. */
struct lb_named_impl {
    const char *name;
    const char *variant; /* "": the default */
};

struct lb_named_impls {
    struct lb_named_impl *items; /* [count], owned */
    size_t count;
};

/* The one implementation and variant of that name; an empty variant, the default's own name and
 * "auto" all mean the default. LB_INVALID: there is none; err begins with origin and names the
 * nearest, or what there is. */
enum lb_status lb_named_impl_find(const struct lb_available_impl *entries, size_t entry_count,
                                  const char *origin, const char *name, const char *variant,
                                  struct lb_named_impl *named, struct lb_error *err);

/* The same of "name" or "name:variant" and a registry. */
enum lb_status lb_named_impl_parse(const struct lb_registry *registry, const char *origin,
                                   const char *word, struct lb_named_impl *named,
                                   struct lb_error *err);

/* What --impl chose: of each choice the variant it names, or all of them; every variant of every
 * entry where nothing was chosen. On failure (LB_INVALID, LB_OOM) named_impls is empty. */
enum lb_status lb_named_impls_resolve(const struct lb_selection *selection,
                                      const struct lb_available_impl *entries, size_t entry_count,
                                      struct lb_named_impls *named_impls, struct lb_error *err);

void lb_named_impls_free(struct lb_named_impls *named_impls); /* accepts a zeroed one */

bool lb_named_impls_contain(const struct lb_named_impls *named_impls, struct lb_named_impl named);

#endif
