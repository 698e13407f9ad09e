/* Names of implementations and variants, as people write them, to those that there are. */
#include "cli/impl_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

/* Names in a message: "cpu_ref, cpu_simd"; cut where the text ends. */
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

static enum lb_status fail_no_impl(const struct lb_available_impl *entries, size_t entry_count,
                                   const char *origin, const char *name, struct lb_error *err)
{
    const struct lb_renamed_impl *renamed = lb_impl_renamed(name);
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;
    if (renamed)
        return lb_fail(err, LB_INVALID, "%.150s: no implementation '%s': it is called %s since %s",
                       origin, name, renamed->is, renamed->since);
    struct name_list known = {0};
    for (size_t i = 0; i < entry_count; i++) {
        if (lb_is_nearer(name, entries[i].name, &distance))
            nearest = entries[i].name;
        add_name(&known, entries[i].name);
    }
    if (nearest)
        return lb_fail(err, LB_INVALID, "%.150s: no implementation '%s'; did you mean %s?", origin,
                       name, nearest);
    return lb_fail(err, LB_INVALID, "%.150s: no implementation '%s'; there are %s", origin, name,
                   known.text);
}

static enum lb_status fail_no_variant(const struct lb_available_impl *entry, const char *origin,
                                      const char *variant, struct lb_error *err)
{
    if (!entry->variants)
        return lb_fail(err, LB_INVALID, "%.150s: %s:%s: %s has no variants", origin, entry->name,
                       variant, entry->name);
    const char *nearest = lb_suggest(variant, entry->variants);
    if (nearest)
        return lb_fail(err, LB_INVALID, "%.150s: no variant %s:%s; did you mean %s:%s?", origin,
                       entry->name, variant, entry->name, nearest);
    struct name_list known = {0};
    for (size_t i = 0; entry->variants[i]; i++)
        add_name(&known, entry->variants[i]);
    return lb_fail(err, LB_INVALID, "%.150s: no variant %s:%s; there are %s", origin, entry->name,
                   variant, known.text);
}

static const struct lb_available_impl *find_entry(const struct lb_available_impl *entries,
                                                  size_t entry_count, const char *name)
{
    for (size_t i = 0; i < entry_count; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

enum lb_status lb_named_impl_find(const struct lb_available_impl *entries, size_t entry_count,
                                  const char *origin, const char *name, const char *variant,
                                  struct lb_named_impl *named, struct lb_error *err)
{
    const struct lb_available_impl *entry = find_entry(entries, entry_count, name);
    if (!entry)
        return fail_no_impl(entries, entry_count, origin, name, err);
    *named = (struct lb_named_impl){entry->name, ""};
    if (!*variant || strcmp(variant, "auto") == 0)
        return LB_OK;
    for (size_t i = 0; entry->variants && entry->variants[i]; i++) {
        if (strcmp(entry->variants[i], variant) == 0) {
            if (i > 0)
                named->variant = entry->variants[i];
            return LB_OK;
        }
    }
    return fail_no_variant(entry, origin, variant, err);
}

enum lb_status lb_available_impls(const struct lb_registry *registry,
                                  struct lb_available_impl **entries, struct lb_error *err)
{
    *entries = calloc(registry->count + 1, sizeof(**entries));
    if (!*entries)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < registry->count; i++)
        (*entries)[i] = (struct lb_available_impl){
            registry->entries[i].name, (const char *const *)registry->entries[i].variants};
    return LB_OK;
}

enum lb_status lb_named_impl_parse(const struct lb_registry *registry, const char *origin,
                                   const char *word, struct lb_named_impl *named,
                                   struct lb_error *err)
{
    char name[512];
    struct lb_available_impl *entries;
    enum lb_status st = lb_available_impls(registry, &entries, err);
    if (st != LB_OK)
        return st;
    snprintf(name, sizeof(name), "%s", word);
    char *colon = strchr(name, ':');
    if (colon)
        *colon = '\0';
    st = lb_named_impl_find(entries, registry->count, origin, name, colon ? colon + 1 : "", named,
                            err);
    free(entries);
    return st;
}

void lb_named_impls_free(struct lb_named_impls *named_impls)
{
    free(named_impls->items);
    *named_impls = (struct lb_named_impls){0};
}

bool lb_named_impls_contain(const struct lb_named_impls *named_impls, struct lb_named_impl named)
{
    for (size_t i = 0; i < named_impls->count; i++)
        if (strcmp(named_impls->items[i].name, named.name) == 0 &&
            strcmp(named_impls->items[i].variant, named.variant) == 0)
            return true;
    return false;
}

/* Once only: "--impl cudnn,cudnn:auto" is each variant of cudnn. */
static enum lb_status add_named_impl(struct lb_named_impls *named_impls, struct lb_named_impl named,
                                     struct lb_error *err)
{
    if (lb_named_impls_contain(named_impls, named))
        return LB_OK;
    struct lb_named_impl *grown =
        realloc(named_impls->items, (named_impls->count + 1) * sizeof(*grown));
    if (!grown)
        return lb_fail(err, LB_OOM, "out of memory");
    named_impls->items = grown;
    grown[named_impls->count++] = named;
    return LB_OK;
}

static enum lb_status add_variants(struct lb_named_impls *named_impls,
                                   const struct lb_available_impl *entry, struct lb_error *err)
{
    enum lb_status st = add_named_impl(named_impls, (struct lb_named_impl){entry->name, ""}, err);
    if (!entry->variants || !entry->variants[0])
        return st;
    for (size_t i = 1; entry->variants[i] && st == LB_OK; i++)
        st = add_named_impl(named_impls, (struct lb_named_impl){entry->name, entry->variants[i]},
                            err);
    return st;
}

enum lb_status lb_named_impls_resolve(const struct lb_selection *selection,
                                      const struct lb_available_impl *entries, size_t entry_count,
                                      struct lb_named_impls *named_impls, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *named_impls = (struct lb_named_impls){0};
    for (size_t i = 0; selection->impl_count == 0 && i < entry_count; i++)
        LB_TRY(add_variants(named_impls, &entries[i], err));
    for (size_t i = 0; i < selection->impl_count; i++) {
        const struct lb_impl_choice *choice = &selection->impls[i];
        struct lb_named_impl named = {0};
        LB_TRY(lb_named_impl_find(entries, entry_count, "--impl", choice->name, choice->variant,
                                  &named, err));
        if (choice->variant[0])
            LB_TRY(add_named_impl(named_impls, named, err));
        else
            LB_TRY(add_variants(named_impls, find_entry(entries, entry_count, choice->name), err));
    }
done:
    if (st != LB_OK)
        lb_named_impls_free(named_impls);
    return st;
}
