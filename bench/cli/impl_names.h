/* Names of implementations and variants: from what a user writes to what the program has. */
#ifndef LB_IMPL_NAMES_H
#define LB_IMPL_NAMES_H

#include "cli/selection.h"
#include "model/registry.h"

/* An implementation in one variant. Both strings belong to the registry that it was found in, or
 * are static. */
struct lb_named_impl {
    const char *name;
    const char *variant; /* "": the default */
};

/* A list without repetitions. */
struct lb_named_impls {
    struct lb_named_impl *items; /* [count], owned */
    size_t count;
};

/* Finds an implementation by its name and a variant's. An empty variant, the default's own name and
 * "auto" all mean the default. LB_INVALID: there is none; err begins with origin and suggests the
 * closest name, or lists all of them. */
enum lb_status lb_named_impl_find(const struct lb_registry *registry, const char *origin,
                                  const char *name, const char *variant, struct lb_named_impl *impl,
                                  struct lb_error *err);

/* The same for "name" or "name:variant". */
enum lb_status lb_named_impl_parse(const struct lb_registry *registry, const char *origin,
                                   const char *word, struct lb_named_impl *impl,
                                   struct lb_error *err);

/* The implementations that --impl chose: the variant that a choice names, or every variant where it
 * names none. Without --impl, every variant of every implementation. On failure (LB_INVALID,
 * LB_OOM) impls is empty. */
enum lb_status lb_named_impls_resolve(const struct lb_selection *selection,
                                      const struct lb_registry *registry,
                                      struct lb_named_impls *impls, struct lb_error *err);

void lb_named_impls_free(struct lb_named_impls *impls); /* accepts a zeroed one */

bool lb_named_impls_contain(const struct lb_named_impls *impls, struct lb_named_impl impl);

#endif
