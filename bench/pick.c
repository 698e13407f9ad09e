/* Names of implementations and variants, as people write them, to those that there are. */
#include "pick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"

/* Names in a message: "cpu_ref, cpu_blas"; cut where the text ends. */
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

static enum lb_status fail_no_impl(const struct lb_plan_entry *entries, size_t entry_count,
                                   const char *origin, const char *name, struct lb_error *err)
{
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;
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

static enum lb_status fail_no_variant(const struct lb_plan_entry *entry, const char *origin,
                                      const char *variant, struct lb_error *err)
{
    if (!entry->variants)
        return lb_fail(err, LB_INVALID, "%.150s: %s:%s: %s has no variants", origin, entry->name,
                       variant, entry->name);
    const char *nearest = lb_nearest(variant, entry->variants);
    if (nearest)
        return lb_fail(err, LB_INVALID, "%.150s: no variant %s:%s; did you mean %s:%s?", origin,
                       entry->name, variant, entry->name, nearest);
    struct name_list known = {0};
    for (size_t i = 0; entry->variants[i]; i++)
        add_name(&known, entry->variants[i]);
    return lb_fail(err, LB_INVALID, "%.150s: no variant %s:%s; there are %s", origin, entry->name,
                   variant, known.text);
}

static const struct lb_plan_entry *find_entry(const struct lb_plan_entry *entries,
                                              size_t entry_count, const char *name)
{
    for (size_t i = 0; i < entry_count; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

enum lb_status lb_pick_find(const struct lb_plan_entry *entries, size_t entry_count,
                            const char *origin, const char *name, const char *variant,
                            struct lb_pick *pick, struct lb_error *err)
{
    const struct lb_plan_entry *entry = find_entry(entries, entry_count, name);
    if (!entry)
        return fail_no_impl(entries, entry_count, origin, name, err);
    *pick = (struct lb_pick){entry->name, ""};
    if (!*variant || strcmp(variant, "auto") == 0)
        return LB_OK;
    for (size_t i = 0; entry->variants && entry->variants[i]; i++) {
        if (strcmp(entry->variants[i], variant) == 0) {
            if (i > 0)
                pick->variant = entry->variants[i];
            return LB_OK;
        }
    }
    return fail_no_variant(entry, origin, variant, err);
}

enum lb_status lb_plan_entries(const struct lb_registry *registry, struct lb_plan_entry **entries,
                               struct lb_error *err)
{
    *entries = calloc(registry->count + 1, sizeof(**entries));
    if (!*entries)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < registry->count; i++)
        (*entries)[i] = (struct lb_plan_entry){registry->entries[i].name,
                                               (const char *const *)registry->entries[i].variants};
    return LB_OK;
}

enum lb_status lb_pick_word(const struct lb_registry *registry, const char *origin,
                            const char *word, struct lb_pick *pick, struct lb_error *err)
{
    char name[512];
    struct lb_plan_entry *entries;
    enum lb_status st = lb_plan_entries(registry, &entries, err);
    if (st != LB_OK)
        return st;
    snprintf(name, sizeof(name), "%s", word);
    char *colon = strchr(name, ':');
    if (colon)
        *colon = '\0';
    st = lb_pick_find(entries, registry->count, origin, name, colon ? colon + 1 : "", pick, err);
    free(entries);
    return st;
}

void lb_picks_free(struct lb_picks *picks)
{
    free(picks->items);
    *picks = (struct lb_picks){0};
}

bool lb_picks_have(const struct lb_picks *picks, struct lb_pick pick)
{
    for (size_t i = 0; i < picks->count; i++)
        if (strcmp(picks->items[i].name, pick.name) == 0 &&
            strcmp(picks->items[i].variant, pick.variant) == 0)
            return true;
    return false;
}

/* Once only: "--impl cudnn,cudnn:auto" is each variant of cudnn. */
static enum lb_status add_pick(struct lb_picks *picks, struct lb_pick pick, struct lb_error *err)
{
    if (lb_picks_have(picks, pick))
        return LB_OK;
    struct lb_pick *grown = realloc(picks->items, (picks->count + 1) * sizeof(*grown));
    if (!grown)
        return lb_fail(err, LB_OOM, "out of memory");
    picks->items = grown;
    grown[picks->count++] = pick;
    return LB_OK;
}

static enum lb_status add_variants(struct lb_picks *picks, const struct lb_plan_entry *entry,
                                   struct lb_error *err)
{
    enum lb_status st = add_pick(picks, (struct lb_pick){entry->name, ""}, err);
    if (!entry->variants || !entry->variants[0])
        return st;
    for (size_t i = 1; entry->variants[i] && st == LB_OK; i++)
        st = add_pick(picks, (struct lb_pick){entry->name, entry->variants[i]}, err);
    return st;
}

enum lb_status lb_picks_resolve(const struct lb_selection *selection,
                                const struct lb_plan_entry *entries, size_t entry_count,
                                struct lb_picks *picks, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *picks = (struct lb_picks){0};
    for (size_t i = 0; selection->impl_count == 0 && i < entry_count; i++)
        LB_TRY(add_variants(picks, &entries[i], err));
    for (size_t i = 0; i < selection->impl_count; i++) {
        const struct lb_impl_choice *choice = &selection->impls[i];
        struct lb_pick pick = {0};
        LB_TRY(lb_pick_find(entries, entry_count, "--impl", choice->name, choice->variant, &pick,
                            err));
        if (choice->variant[0])
            LB_TRY(add_pick(picks, pick, err));
        else
            LB_TRY(add_variants(picks, find_entry(entries, entry_count, choice->name), err));
    }
done:
    if (st != LB_OK)
        lb_picks_free(picks);
    return st;
}
