/* Names of implementations and variants, as a user writes them. */
#include "cli/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/suggest.h"

static enum lb_status fail_no_variant(const struct lb_impl_entry *found, const char *origin,
                                      const char *variant, struct lb_error *err)
{
    struct lb_hint hint = {0};
    if (!found->variants)
        return lb_fail(err, LB_INVALID, "%.150s: %s:%s: %s has no variants", origin, found->name,
                       variant, found->name);
    for (size_t i = 0; found->variants[i]; i++)
        lb_hint_add(&hint, variant, found->variants[i]);
    return lb_fail(err, LB_INVALID, "%.150s: no variant %s:%s; %s", origin, found->name, variant,
                   hint.text);
}

enum lb_status lb_named_impl_find(const struct lb_registry *registry, const char *origin,
                                  const char *name, const char *variant, struct lb_named_impl *impl,
                                  struct lb_error *err)
{
    const struct lb_impl_entry *found;
    struct lb_error why;
    if (lb_registry_require(registry, name, &found, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "%.150s: %.400s", origin, why.text);
    *impl = (struct lb_named_impl){found->name, ""};
    if (!*variant || strcmp(variant, "auto") == 0)
        return LB_OK;
    for (size_t i = 0; found->variants && found->variants[i]; i++) {
        if (strcmp(found->variants[i], variant) == 0) {
            if (i > 0)
                impl->variant = found->variants[i];
            return LB_OK;
        }
    }
    return fail_no_variant(found, origin, variant, err);
}

enum lb_status lb_named_impl_parse(const struct lb_registry *registry, const char *origin,
                                   const char *word, struct lb_named_impl *impl,
                                   struct lb_error *err)
{
    char name[512];
    snprintf(name, sizeof(name), "%s", word);
    char *colon = strchr(name, ':');
    if (colon)
        *colon = '\0';
    return lb_named_impl_find(registry, origin, name, colon ? colon + 1 : "", impl, err);
}

void lb_named_impls_free(struct lb_named_impls *impls)
{
    free(impls->items);
    *impls = (struct lb_named_impls){0};
}

bool lb_named_impls_contain(const struct lb_named_impls *impls, struct lb_named_impl impl)
{
    for (size_t i = 0; i < impls->count; i++)
        if (strcmp(impls->items[i].name, impl.name) == 0 &&
            strcmp(impls->items[i].variant, impl.variant) == 0)
            return true;
    return false;
}

/* Adds it unless the list has it: "--impl cudnn,cudnn:auto" is each variant of cudnn once. */
static void add_impl(struct lb_named_impls *impls, struct lb_named_impl impl)
{
    if (lb_named_impls_contain(impls, impl))
        return;
    impls->items = lb_room(impls->items, impls->count, sizeof(*impls->items));
    impls->items[impls->count++] = impl;
}

static void add_variants(struct lb_named_impls *impls, const struct lb_impl_entry *found)
{
    add_impl(impls, (struct lb_named_impl){found->name, ""});
    for (size_t i = 1; found->variants && found->variants[0] && found->variants[i]; i++)
        add_impl(impls, (struct lb_named_impl){found->name, found->variants[i]});
}

enum lb_status lb_named_impls_resolve(const struct lb_selection *selection,
                                      const struct lb_registry *registry,
                                      struct lb_named_impls *impls, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *impls = (struct lb_named_impls){0};
    for (size_t i = 0; selection->impl_count == 0 && i < registry->count; i++)
        add_variants(impls, &registry->impl_entries[i]);
    for (size_t i = 0; i < selection->impl_count; i++) {
        const struct lb_impl_choice *choice = &selection->impls[i];
        struct lb_named_impl impl = {0};
        LB_TRY(lb_named_impl_find(registry, "--impl", choice->name, choice->variant, &impl, err));
        if (choice->variant[0])
            add_impl(impls, impl);
        else
            add_variants(impls, lb_registry_find(registry, choice->name));
    }
done:
    if (st != LB_OK)
        lb_named_impls_free(impls);
    return st;
}
