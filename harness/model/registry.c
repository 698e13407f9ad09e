/* The registry: built-in implementations and plug-ins. */
#include "model/registry.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/suggest.h"
#include "model/case.h"

static enum lb_status check_variants(const struct lb_impl *impl, struct lb_error *err)
{
    const char *const *variants = impl->variants;
    if (variants && variants[0] && strcmp(variants[0], "auto") != 0)
        return lb_fail(err, LB_INVALID, "%s: the first variant must be auto", impl->name);
    for (size_t i = 0; variants && variants[i]; i++) {
        if (i == LB_VARIANTS_MAX)
            return lb_fail(err, LB_INVALID, "%s: it has more than %d variants", impl->name,
                           LB_VARIANTS_MAX);
        if (!lb_is_name(variants[i], strlen(variants[i])))
            return lb_fail(err, LB_INVALID, "%s: variant '%s': allowed are a-z, 0-9 and _",
                           impl->name, variants[i]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(variants[i], variants[k]) == 0)
                return lb_fail(err, LB_INVALID, "%s: variant '%s' is listed twice", impl->name,
                               variants[i]);
    }
    return LB_OK;
}

/* The name of the first required slot that is not set; NULL when all are. */
static const char *missing_slot(const struct lb_impl *impl)
{
    const struct {
        const char *name;
        bool set;
    } slots[] = {
        {"summary", impl->summary != NULL},   {"state_size", impl->state_size > 0},
        {"supports", impl->supports != NULL}, {"create", impl->create != NULL},
        {"sizes", impl->sizes != NULL},       {"prepare", impl->prepare != NULL},
        {"forward", impl->forward != NULL},   {"destroy", impl->destroy != NULL},
    };
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        if (!slots[i].set)
            return slots[i].name;
    return NULL;
}

enum lb_status lb_impl_check(const struct lb_impl *impl, struct lb_error *err)
{
    if (impl->abi != LB_IMPL_ABI)
        return lb_fail(err, LB_INVALID, "built for interface %u, this program has %u", impl->abi,
                       LB_IMPL_ABI);
    if (impl->struct_bytes != sizeof(struct lb_impl))
        return lb_fail(err, LB_INVALID,
                       "built with a struct lb_impl of %zu bytes, this program has %zu",
                       impl->struct_bytes, sizeof(struct lb_impl));
    if (!impl->name || !lb_is_name(impl->name, strlen(impl->name)))
        return lb_fail(err, LB_INVALID, "name '%s': allowed are 1 to %d of a-z, 0-9 and _",
                       impl->name ? impl->name : "(null)", LB_NAME_SIZE - 1);
    const char *missing = missing_slot(impl);
    if (missing)
        return lb_fail(err, LB_INVALID, "%s: it does not set %s, which is required", impl->name,
                       missing);
    if (impl->backward && !impl->gradients)
        return lb_fail(err, LB_INVALID, "%s: backward needs gradients", impl->name);
    return check_variants(impl, err);
}

static void free_impl_entry(struct lb_impl_entry *impl_entry)
{
    for (size_t i = 0; impl_entry->variants && impl_entry->variants[i]; i++)
        free(impl_entry->variants[i]);
    free(impl_entry->variants);
    free(impl_entry->name);
    free(impl_entry->summary);
    free(impl_entry->absent);
    free(impl_entry->plugin);
}

static char *copy_text(const char *text)
{
    return text ? lb_needed(strdup(text)) : NULL;
}

static char **copy_variants(char *const *variants)
{
    size_t n = 0;
    if (!variants)
        return NULL;
    while (variants[n])
        n++;
    char **copy = lb_needed(calloc(n + 1, sizeof(*copy)));
    for (size_t i = 0; i < n; i++)
        copy[i] = copy_text(variants[i]);
    return copy;
}

enum lb_status lb_registry_add(struct lb_registry *registry, const struct lb_impl_entry *impl_entry,
                               struct lb_error *err)
{
    if (lb_registry_find(registry, impl_entry->name))
        return lb_fail(err, LB_INVALID, "%s: there already is an implementation of that name",
                       impl_entry->name);
    registry->impl_entries =
        lb_room(registry->impl_entries, registry->count, sizeof(*registry->impl_entries));
    struct lb_impl_entry *added = &registry->impl_entries[registry->count++];
    *added = *impl_entry;
    added->name = copy_text(impl_entry->name);
    added->summary = copy_text(impl_entry->summary);
    added->absent = copy_text(impl_entry->absent);
    added->plugin = copy_text(impl_entry->plugin);
    added->variants = copy_variants(impl_entry->variants);
    return LB_OK;
}

enum lb_status lb_registry_create(const struct lb_registration *table, struct lb_registry *out,
                                  struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *out = (struct lb_registry){0};
    for (const struct lb_registration *row = table; row->name; row++) {
        const struct lb_impl *impl = row->impl;
        struct lb_impl_entry impl_entry = {
            .name = (char *)row->name,
            .summary = (char *)(impl ? impl->summary : row->absent),
            .variants = (char **)row->variants,
            .memory = impl ? impl->memory : LB_HOST,
            .traits = impl ? impl->traits : 0,
            .impl = impl,
            .absent = (char *)row->absent,
            .library = row->library,
        };
        if (impl)
            LB_TRY(lb_impl_check(impl, err));
        LB_TRY(lb_registry_add(out, &impl_entry, err));
    }
done:
    if (st != LB_OK)
        lb_registry_destroy(out);
    return st;
}

void lb_registry_destroy(struct lb_registry *registry)
{
    for (size_t i = 0; i < registry->count; i++)
        free_impl_entry(&registry->impl_entries[i]);
    free(registry->impl_entries);
    *registry = (struct lb_registry){0};
}

const struct lb_impl_entry *lb_registry_find(const struct lb_registry *registry, const char *name)
{
    for (size_t i = 0; i < registry->count; i++)
        if (strcmp(registry->impl_entries[i].name, name) == 0)
            return &registry->impl_entries[i];
    return NULL;
}

enum lb_status lb_registry_require(const struct lb_registry *registry, const char *name,
                                   const struct lb_impl_entry **impl_entry, struct lb_error *err)
{
    struct lb_hint hint = {0};
    *impl_entry = lb_registry_find(registry, name);
    if (*impl_entry)
        return LB_OK;
    for (size_t i = 0; i < registry->count; i++)
        lb_hint_add(&hint, name, registry->impl_entries[i].name);
    return lb_fail(err, LB_INVALID, "no implementation '%s'; %s%s", name, hint.text,
                   hint.distance ? "" : "; --plugin and --framework add others");
}

enum lb_status lb_impl_supports(const struct lb_impl *impl, const struct lb_problem *problem,
                                const struct lb_exec_config *config, struct lb_error *why)
{
    if (problem->cell != LB_CELL_STANDARD && !(impl->cells & 1u << problem->cell))
        return lb_fail(why, LB_UNSUPPORTED, "cell %s: %s needs the standard cell",
                       lb_cell_name((enum lb_cell_kind)problem->cell), impl->name);
    if (problem->dtype == LB_INT8 && !(impl->traits & LB_QUANTISES))
        return lb_fail(why, LB_UNSUPPORTED, "dtype int8: %s has no LSTM in int8", impl->name);
    if (problem->dtype == LB_INT8 && (problem->pass != LB_INFER || problem->act != LB_ACT_TANH ||
                                      problem->cell != LB_CELL_STANDARD))
        return lb_fail(why, LB_UNSUPPORTED,
                       "dtype int8 goes with pass infer, act-tanh and the standard cell");
    return impl->supports(problem, config, why);
}

/* Opens the shared object. dlopen searches the system's folders for a name without a slash, so a
 * file of that name in the working directory comes first. NULL, with the loader's reason. */
static void *open_plugin(const char *path, struct lb_error *err)
{
    char file[PATH_MAX];
    bool here = !strchr(path, '/') && access(path, F_OK) == 0;
    snprintf(file, sizeof(file), "%s%s", here ? "./" : "", path);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    const char *reason = dlerror(); /* mostly begins with the file's name */
    size_t length = strlen(file);
    if (strncmp(reason, file, length) == 0 && strncmp(reason + length, ": ", 2) == 0)
        reason += length + 2;
    lb_fail(err, LB_INVALID, "--plugin %s: %s", path, reason);
    return NULL;
}

enum lb_status lb_plugin_load(const char *path, const struct lb_impl **impl, struct lb_error *err)
{
    typedef const struct lb_impl *plugin_function(uint32_t abi);
    void *library = open_plugin(path, err);
    if (!library)
        return LB_INVALID;
    plugin_function *plugin = NULL;
    *(void **)&plugin = dlsym(library, "lb_plugin"); /* POSIX's way to get a function */
    if (!plugin)
        return lb_fail(err, LB_INVALID, "--plugin %s: it has no function lb_plugin", path);
    *impl = plugin(LB_IMPL_ABI);
    if (!*impl)
        return lb_fail(err, LB_INVALID, "--plugin %s: it does not offer interface %u", path,
                       LB_IMPL_ABI);
    struct lb_error why;
    enum lb_status st = lb_impl_check(*impl, &why);
    return st == LB_OK ? LB_OK : lb_fail(err, st, "--plugin %s: %.300s", path, why.text);
}

enum lb_status lb_resolve_variant(const char *const *variants, const char *name,
                                  const char **variant, struct lb_error *err)
{
    *variant = NULL;
    if (!variants || !variants[0])
        return name[0] ? lb_fail(err, LB_INVALID, "it has no variants, so there is no '%s'", name)
                       : LB_OK;
    for (size_t i = 0; variants[i]; i++)
        if (strcmp(variants[i], name) == 0)
            *variant = variants[i];
    if (!name[0])
        *variant = variants[0];
    return *variant ? LB_OK : lb_fail(err, LB_INVALID, "there is no variant '%s'", name);
}
