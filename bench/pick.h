/* Names of implementations and variants, as people write them, to those that there are. */
#ifndef LB_PICK_H
#define LB_PICK_H

#include "registry.h"
#include "selection.h"

/* What a plan needs to know of an implementation. */
struct lb_plan_entry {
    const char *name;
    const char *const *variants; /* NULL-terminated, the default first; NULL: none */
};

/* The entries of the registry: *entries [registry->count] is the caller's to free. LB_OOM. */
enum lb_status lb_plan_entries(const struct lb_registry *registry, struct lb_plan_entry **entries,
                               struct lb_error *err);

/* An implementation that cases run on; both strings are the entry's own or static. */
struct lb_pick {
    const char *name;
    const char *variant; /* "": the default */
};

struct lb_picks {
    struct lb_pick *items; /* [count], owned */
    size_t count;
};

/* The one implementation and variant of that name; an empty variant, the default's own name and
 * "auto" all mean the default. LB_INVALID: there is none; err begins with origin and names the
 * nearest, or what there is. */
enum lb_status lb_pick_find(const struct lb_plan_entry *entries, size_t entry_count,
                            const char *origin, const char *name, const char *variant,
                            struct lb_pick *pick, struct lb_error *err);

/* The same of "name" or "name:variant" and a registry. */
enum lb_status lb_pick_word(const struct lb_registry *registry, const char *origin,
                            const char *word, struct lb_pick *pick, struct lb_error *err);

/* What --impl chose: of each choice the variant it names, or all of them; every variant of every
 * entry where nothing was chosen. On failure (LB_INVALID, LB_OOM) picks is empty. */
enum lb_status lb_picks_resolve(const struct lb_selection *selection,
                                const struct lb_plan_entry *entries, size_t entry_count,
                                struct lb_picks *picks, struct lb_error *err);

void lb_picks_free(struct lb_picks *picks); /* accepts a zeroed one */

bool lb_picks_have(const struct lb_picks *picks, struct lb_pick pick);

#endif
