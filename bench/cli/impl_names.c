/* Names of implementations and variants, as a user writes them. */
#include "cli/impl_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

/* Names in a message: "cpu_ref, cpu_simd"; cut where the buffer ends. */
struct name_list {
    char text[256];
    size_t used;
};

static void add_name(struct name_list *list, const char *name)
{
    size_t room = sizeof(list->text) - list->used;
    int length = snprintf(list->text + list->used, room, "%s%s", list->used ? ", " : "", name);
    list->used += (size_t)length < room ? (size_t)length : room - 1;
}

static enum lb_status fail_no_impl(const struct lb_available_impl *available,
                                   size_t available_count, const char *origin, const char *name,
                                   struct lb_error *err)
{
    const char *suggestion = NULL;
    size_t distance = SIZE_MAX;
    struct name_list known = {0};
    for (size_t i = 0; i < available_count; i++) {
        if (lb_is_closer(name, available[i].name, &distance))
            suggestion = available[i].name;
        add_name(&known, available[i].name);
    }
    if (suggestion)
        return lb_fail(err, LB_INVALID, "%.150s: no implementation '%s'; did you mean %s?", origin,
                       name, suggestion);
    return lb_fail(
        err, LB_INVALID,
        "%.150s: no implementation '%s'; there are %s; --plugin and --framework add others", origin,
        name, known.text);
}

static enum lb_status fail_no_variant(const struct lb_available_impl *found, const char *origin,
                                      const char *variant, struct lb_error *err)
{
    if (!found->variants)
        return lb_fail(err, LB_INVALID, "%.150s: %s:%s: %s has no variants", origin, found->name,
                       variant, found->name);
    const char *suggestion = lb_suggest(variant, found->variants);
    if (suggestion)
        return lb_fail(err, LB_INVALID, "%.150s: no variant %s:%s; did you mean %s:%s?", origin,
                       found->name, variant, found->name, suggestion);
    struct name_list known = {0};
    for (size_t i = 0; found->variants[i]; i++)
        add_name(&known, found->variants[i]);
    return lb_fail(err, LB_INVALID, "%.150s: no variant %s:%s; there are %s", origin, found->name,
                   variant, known.text);
}

static const struct lb_available_impl *find_available(const struct lb_available_impl *available,
                                                      size_t available_count, const char *name)
{
    for (size_t i = 0; i < available_count; i++)
        if (strcmp(available[i].name, name) == 0)
            return &available[i];
    return NULL;
}

enum lb_status lb_named_impl_find(const struct lb_available_impl *available, size_t available_count,
                                  const char *origin, const char *name, const char *variant,
                                  struct lb_named_impl *impl, struct lb_error *err)
{
    const struct lb_available_impl *found = find_available(available, available_count, name);
    if (!found)
        return fail_no_impl(available, available_count, origin, name, err);
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

enum lb_status lb_available_impls(const struct lb_registry *registry,
                                  struct lb_available_impl **available, struct lb_error *err)
{
    *available = calloc(registry->count + 1, sizeof(**available));
    if (!*available)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < registry->count; i++)
        (*available)[i] =
            (struct lb_available_impl){registry->impl_entries[i].name,
                                       (const char *const *)registry->impl_entries[i].variants};
    return LB_OK;
}

enum lb_status lb_named_impl_parse(const struct lb_registry *registry, const char *origin,
                                   const char *word, struct lb_named_impl *impl,
                                   struct lb_error *err)
{
    char name[512];
    struct lb_available_impl *available;
    enum lb_status st = lb_available_impls(registry, &available, err);
    if (st != LB_OK)
        return st;
    snprintf(name, sizeof(name), "%s", word);
    char *colon = strchr(name, ':');
    if (colon)
        *colon = '\0';
    st = lb_named_impl_find(available, registry->count, origin, name, colon ? colon + 1 : "", impl,
                            err);
    free(available);
    return st;
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
static enum lb_status add_impl(struct lb_named_impls *impls, struct lb_named_impl impl,
                               struct lb_error *err)
{
    if (lb_named_impls_contain(impls, impl))
        return LB_OK;
    struct lb_named_impl *grown = realloc(impls->items, (impls->count + 1) * sizeof(*grown));
    if (!grown)
        return lb_fail(err, LB_OOM, "out of memory");
    impls->items = grown;
    grown[impls->count++] = impl;
    return LB_OK;
}

static enum lb_status add_variants(struct lb_named_impls *impls,
                                   const struct lb_available_impl *found, struct lb_error *err)
{
    enum lb_status st = add_impl(impls, (struct lb_named_impl){found->name, ""}, err);
    if (!found->variants || !found->variants[0])
        return st;
    for (size_t i = 1; found->variants[i] && st == LB_OK; i++)
        st = add_impl(impls, (struct lb_named_impl){found->name, found->variants[i]}, err);
    return st;
}

enum lb_status lb_named_impls_resolve(const struct lb_selection *selection,
                                      const struct lb_available_impl *available,
                                      size_t available_count, struct lb_named_impls *impls,
                                      struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *impls = (struct lb_named_impls){0};
    for (size_t i = 0; selection->impl_count == 0 && i < available_count; i++)
        LB_TRY(add_variants(impls, &available[i], err));
    for (size_t i = 0; i < selection->impl_count; i++) {
        const struct lb_impl_choice *choice = &selection->impls[i];
        struct lb_named_impl impl = {0};
        LB_TRY(lb_named_impl_find(available, available_count, "--impl", choice->name,
                                  choice->variant, &impl, err));
        if (choice->variant[0])
            LB_TRY(add_impl(impls, impl, err));
        else
            LB_TRY(
                add_variants(impls, find_available(available, available_count, choice->name), err));
    }
done:
    if (st != LB_OK)
        lb_named_impls_free(impls);
    return st;
}
