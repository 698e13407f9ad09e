/* The settings of a sweep, kept in the header of its run. */
#include "sweep/run_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/given_files.h"
#include "base/text.h"
#include "base/tuned_choices.h"
#include "model/sequence_file.h"
#include "model/weights_file.h"
#include "support/framework_plugins.h"

void lb_settings_free(struct lb_settings *settings)
{
    for (size_t i = 0; settings->plugins && i < settings->plugin_count; i++)
        free(settings->plugins[i]);
    free(settings->plugins);
    free(settings->baseline);
    free(settings->tuned);
    free(settings->weights);
    free(settings->prefix);
    free(settings->inputs);
    json_decref(settings->shard);
    *settings = (struct lb_settings){0};
}

/* The absolute path, because a run may be resumed from another folder; also of a file that does not
 * exist yet. The caller's to free; NULL when memory runs out. */
static char *absolute_path(const char *path)
{
    char here[4096];
    char *real = realpath(path, NULL);
    if (real || path[0] == '/' || !getcwd(here, sizeof(here)))
        return real ? real : strdup(path);
    size_t size = strlen(here) + strlen(path) + 2;
    char *joined = malloc(size);
    if (joined)
        snprintf(joined, size, "%s/%s", here, path);
    return joined;
}

/* Copies a text, or makes it an absolute path; NULL stays NULL. */
static enum lb_status copy_text(const char *from, bool is_path, char **to, struct lb_error *err)
{
    *to = !from ? NULL : is_path ? absolute_path(from) : strdup(from);
    return *to || !from ? LB_OK : lb_fail(err, LB_OOM, "out of memory");
}

/* Sets the file of tuned choices. LB_INVALID: the record, which is JSON, could not keep its path.
 */
static enum lb_status set_tuned(struct lb_settings *settings, const char *path,
                                struct lb_error *err)
{
    enum lb_status st = copy_text(path, true, &settings->tuned, err);
    if (st != LB_OK)
        return st;
    json_t *text = json_string(settings->tuned);
    bool kept = text != NULL;
    json_decref(text);
    return kept ? LB_OK : lb_fail(err, LB_INVALID, "--tuned %s: the path must be UTF-8", path);
}

enum lb_status lb_settings_give(const struct lb_settings *settings, struct lb_error *err)
{
    const struct lb_given_files given = {
        .weights = settings->weights,
        .prefix = settings->prefix,
        .inputs = settings->inputs,
        .batch_first = settings->batch_first,
        .tune = settings->tune,
        .tuned = settings->tuned,
    };
    return lb_give_files(&given, err);
}

enum lb_status lb_settings_from_options(const struct lb_options *options,
                                        struct lb_settings *settings, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *settings = (struct lb_settings){
        .command = options->argv,
        .command_count = (size_t)options->argc,
        .seed = options->seed,
        .sampler = lb_options_sampler(options),
        .repetitions = options->repetitions,
        .loss_scale = options->loss_scale,
        .dynamic_loss_scale = options->dynamic_loss_scale,
        .kernels = options->kernels,
        .processes = options->processes > 1 ? options->processes : 1,
        .limits = {options->call_limit_s, options->memory_bytes, options->device},
        .tune = options->tune,
        .plugin_count = options->plugin_count,
    };
    settings->batch_first = options->batch_first;
    LB_TRY(copy_text(options->baseline, false, &settings->baseline, err));
    LB_TRY(copy_text(options->prefix, false, &settings->prefix, err));
    LB_TRY(copy_text(options->weights, true, &settings->weights, err));
    LB_TRY(copy_text(options->inputs, true, &settings->inputs, err));
    if (options->tuned)
        LB_TRY(set_tuned(settings, options->tuned, err));
    settings->plugins = calloc(options->plugin_count + 1, sizeof(*settings->plugins));
    if (!settings->plugins)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory"));
    for (size_t i = 0; i < options->plugin_count; i++)
        LB_TRY(copy_text(options->plugins[i], true, &settings->plugins[i], err));
done:
    if (st != LB_OK)
        lb_settings_free(settings);
    return st;
}

static json_t *string_array(char *const *strings, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        char *text = strdup(strings[i]); /* the command line may be in any encoding */
        if (text)
            lb_clean_text(text);
        json_array_append_new(array, text ? json_string(text) : json_null());
        free(text);
    }
    return array;
}

/* Adds which file, and a hash of what was in it; the object is taken over. */
static enum lb_status add_file(json_t *header, const char *key, json_t *object, uint64_t hash,
                               const char *path, struct lb_error *err)
{
    char text[32];
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)hash);
    return object && json_object_set_new(object, "hash", json_string(text)) == 0 &&
                   json_object_set_new(header, key, object) == 0
               ? LB_OK
               : lb_fail(err, LB_INVALID, "--%s %s: the path must be UTF-8", key, path);
}

/* The files that weights and x come from. */
static enum lb_status files_to_header(const struct lb_settings *settings, json_t *header,
                                      struct lb_error *err)
{
    const struct lb_weights_file *weights;
    const struct lb_sequence_file *x;
    enum lb_status st = LB_OK;
    LB_TRY(lb_weights_given(&weights, err));
    LB_TRY(lb_inputs_given(&x, err));
    if (weights && settings->weights)
        LB_TRY(add_file(header, "weights",
                        json_pack("{s:s, s:s}", "file", settings->weights, "prefix",
                                  settings->prefix ? settings->prefix : ""),
                        weights->hash, settings->weights, err));
    if (x && settings->inputs)
        LB_TRY(add_file(
            header, "inputs",
            json_pack("{s:s, s:b}", "file", settings->inputs, "batch_first", settings->batch_first),
            x->hash, settings->inputs, err));
done:
    return st;
}

/* Whether the file of the header's object still holds what it held. */
static enum lb_status check_file(const json_t *object, uint64_t now, const char *what,
                                 struct lb_error *err)
{
    const char *hash = json_string_value(json_object_get(object, "hash"));
    char text[32];
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)now);
    return hash && strcmp(text, hash) == 0
               ? LB_OK
               : lb_fail(err, LB_INVALID, "--resume: %s holds other %s than when the run began",
                         json_string_value(json_object_get(object, "file")), what);
}

/* The files back, for --resume. LB_INVALID when one holds something else by now. */
static enum lb_status files_from_header(const json_t *header, struct lb_settings *settings,
                                        struct lb_error *err)
{
    const json_t *weights = json_object_get(header, "weights");
    const json_t *inputs = json_object_get(header, "inputs");
    const struct lb_weights_file *given;
    const struct lb_sequence_file *x;
    enum lb_status st = LB_OK;
    LB_TRY(copy_text(json_string_value(json_object_get(weights, "file")), false, &settings->weights,
                     err));
    LB_TRY(copy_text(json_string_value(json_object_get(weights, "prefix")), false,
                     &settings->prefix, err));
    LB_TRY(copy_text(json_string_value(json_object_get(inputs, "file")), false, &settings->inputs,
                     err));
    settings->batch_first = json_is_true(json_object_get(inputs, "batch_first"));
    LB_TRY(lb_settings_give(settings, err));
    LB_TRY(lb_weights_given(&given, err));
    LB_TRY(lb_inputs_given(&x, err));
    if (given)
        LB_TRY(check_file(weights, given->hash, "weights", err));
    if (x)
        LB_TRY(check_file(inputs, x->hash, "inputs", err));
done:
    return st;
}

/* The environment, with the versions of the frameworks whose plug-ins the run uses. NULL when
 * memory runs out. */
static json_t *environment_json(const struct lb_settings *settings, json_t *libraries)
{
    json_t *environment = lb_environment(libraries);
    json_t *versions = json_object_get(environment, "libraries");
    for (size_t i = 0; i < settings->plugin_count; i++) {
        struct lb_framework_version found[LB_FRAMEWORK_LIBRARIES];
        size_t count = lb_framework_versions(settings->plugins[i], found);
        for (size_t k = 0; k < count; k++)
            json_object_set_new(versions, found[k].library, json_string(found[k].version));
    }
    return environment;
}

enum lb_status lb_settings_to_header(const struct lb_settings *settings,
                                     const struct lb_case *cases, size_t count, json_t *libraries,
                                     json_t **header, struct lb_error *err)
{
    const struct lb_sampler_options *sampler = &settings->sampler;
    const struct lb_worker_limits *limits = &settings->limits;
    json_t *texts = json_array();
    for (size_t i = 0; i < count; i++) {
        char id[LB_CASE_ID_SIZE];
        lb_case_print(&cases[i], id);
        json_array_append_new(texts, json_string(id));
    }
    *header = json_pack(
        "{s:o, s:I, s:{s:I, s:I, s:f, s:f}, s:i, s:i, s:f, s:s?, s:o, s:o}", "environment",
        environment_json(settings, libraries), "seed", (json_int_t)settings->seed, "sampler",
        "min_samples", (json_int_t)sampler->min_samples, "max_samples",
        (json_int_t)sampler->max_samples, "precision", sampler->precision, "max_ns",
        sampler->max_ns, "repetitions", settings->repetitions, "processes", settings->processes,
        "loss_scale", settings->loss_scale, "baseline", settings->baseline, "plugins",
        string_array(settings->plugins, settings->plugin_count), "cases", texts);
    json_t *more = json_pack("{s:f, s:f, s:i, s:b, s:s?}", "call_limit_s", limits->call_s,
                             "memory_bytes", limits->memory_bytes, "device", limits->device, "tune",
                             settings->tune, "tuned", settings->tuned);
    bool made = *header && more && json_object_update(*header, more) == 0;
    json_decref(more);
    if (!made) {
        json_decref(*header);
        *header = NULL;
        return lb_fail(err, LB_OOM, "out of memory for the header");
    }
    json_object_set_new(*header, "command",
                        string_array(settings->command, settings->command_count));
    if (settings->kernels)
        json_object_set_new(*header, "kernels", json_true());
    if (settings->dynamic_loss_scale)
        json_object_set_new(*header, "loss_scale_dynamic", json_true());
    if (settings->shard && json_object_set(*header, "shard", settings->shard) != 0)
        return lb_fail(err, LB_OOM, "out of memory for the header");
    return files_to_header(settings, *header, err);
}

enum lb_status lb_settings_to_resume(const struct lb_settings *settings,
                                     const struct lb_options *options, json_t *libraries,
                                     json_t **details, struct lb_error *err)
{
    *details = json_pack("{s:o, s:o}", "environment", environment_json(settings, libraries),
                         "command", string_array(options->argv, (size_t)options->argc));
    return *details ? LB_OK : lb_fail(err, LB_OOM, "out of memory for the resume line");
}

static enum lb_status read_plugins(const json_t *header, struct lb_settings *settings,
                                   struct lb_error *err)
{
    const json_t *array = json_object_get(header, "plugins");
    enum lb_status st = LB_OK;
    size_t count = json_array_size(array);
    settings->plugins = calloc(count + 1, sizeof(*settings->plugins));
    settings->plugin_count = settings->plugins ? count : 0;
    if (!settings->plugins)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const char *path = json_string_value(json_array_get(array, i));
        if (!path)
            LB_TRY(lb_fail(err, LB_INVALID, "header: plugins[%zu] must be a string", i));
        LB_TRY(copy_text(path, false, &settings->plugins[i], err));
    }
done:
    return st;
}

static enum lb_status read_cases(const json_t *header, struct lb_case **cases, size_t *count,
                                 struct lb_error *err)
{
    const json_t *array = json_object_get(header, "cases");
    enum lb_status st = LB_OK;
    *count = json_array_size(array);
    *cases = calloc(*count + 1, sizeof(**cases));
    if (!*cases)
        return lb_fail(err, LB_OOM, "out of memory for the cases");
    for (size_t i = 0; i < *count; i++) {
        struct lb_error why;
        const char *text = json_string_value(json_array_get(array, i));
        if (!text || lb_case_parse(text, &(*cases)[i], NULL, NULL, &why) != LB_OK)
            LB_TRY(lb_fail(err, LB_INVALID, "header: cases[%zu]: %.400s", i,
                           text ? why.text : "must be a string"));
    }
done:
    if (st != LB_OK) {
        free(*cases);
        *cases = NULL;
    }
    return st;
}

/* The limits of workers and tuning: each as the command line gives it, else as the run has it. */
static enum lb_status read_limits(const json_t *header, const struct lb_options *options,
                                  struct lb_settings *settings, struct lb_error *err)
{
    struct lb_worker_limits *limits = &settings->limits;
    const char *tuned = json_string_value(json_object_get(header, "tuned"));
    json_error_t why;
    int tune;
    if (json_unpack_ex((json_t *)(uintptr_t)header, &why, 0, "{s:F, s:F, s:i, s:b}", "call_limit_s",
                       &limits->call_s, "memory_bytes", &limits->memory_bytes, "device",
                       &limits->device, "tune", &tune) != 0)
        return lb_fail(err, LB_INVALID, "header: %s", why.text);
    if (lb_option_given(options, "--call-limit"))
        limits->call_s = options->call_limit_s;
    if (lb_option_given(options, "--memory"))
        limits->memory_bytes = options->memory_bytes;
    if (lb_option_given(options, "--device"))
        limits->device = options->device;
    if (!(limits->call_s > 0 && limits->call_s <= 1e8) ||
        !(limits->memory_bytes >= 0 && limits->memory_bytes <= 0x1p60) || limits->device < 0 ||
        limits->device > 1023)
        return lb_fail(err, LB_INVALID,
                       "call_limit_s must be above 0, up to 1e8, memory_bytes 0 or more, up to "
                       "2^60, device 0 to 1023");
    settings->tune = options->tune || tune;
    if (tuned && settings->tune && !options->tuned)
        return lb_fail(err, LB_INVALID,
                       "--resume: the run writes tuned choices into %.300s, which a run's file may "
                       "not name by itself: give --tuned with that file again, or with another",
                       tuned);
    tuned = options->tuned ? options->tuned : tuned;
    return tuned ? set_tuned(settings, tuned, err) : LB_OK;
}

/* What is measured of each case, and how often. */
static enum lb_status read_sampler(const json_t *header, struct lb_settings *settings,
                                   struct lb_error *err)
{
    json_int_t seed, min_samples, max_samples;
    json_error_t why;
    struct lb_sampler_options *sampler = &settings->sampler;
    if (json_unpack_ex((json_t *)(uintptr_t)header, &why, 0,
                       "{s:I, s:{s:I, s:I, s:F, s:F}, s:i, s:i, s:F}", "seed", &seed, "sampler",
                       "min_samples", &min_samples, "max_samples", &max_samples, "precision",
                       &sampler->precision, "max_ns", &sampler->max_ns, "repetitions",
                       &settings->repetitions, "processes", &settings->processes, "loss_scale",
                       &settings->loss_scale) != 0)
        return lb_fail(err, LB_INVALID, "header: %s", why.text);
    if (min_samples < 1 || max_samples < min_samples || max_samples > 1000000000 ||
        !(sampler->max_ns > 0 && sampler->max_ns <= 1e17) || !(sampler->precision > 0) ||
        settings->repetitions < 1 || settings->repetitions > 10000 || settings->processes < 1 ||
        settings->processes > 1000 || !(settings->loss_scale > 0))
        return lb_fail(err, LB_INVALID,
                       "header: sampler, repetitions, processes and loss_scale must be positive, "
                       "with at most 10000 repetitions and 1000 processes");
    settings->seed = (uint64_t)seed;
    sampler->min_samples = (size_t)min_samples;
    sampler->max_samples = (size_t)max_samples;
    return LB_OK;
}

enum lb_status lb_settings_from_run(const struct lb_run *run, const struct lb_options *options,
                                    struct lb_settings *settings, struct lb_case **cases,
                                    size_t *count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const json_t *header = run->header;
    *settings = (struct lb_settings){0};
    *cases = NULL;
    LB_TRY(read_sampler(header, settings, err));
    LB_TRY(read_limits(header, options, settings, err));
    settings->dynamic_loss_scale = json_is_true(json_object_get(header, "loss_scale_dynamic"));
    settings->kernels = json_is_true(json_object_get(header, "kernels"));
    settings->shard = json_incref(json_object_get(header, "shard"));
    LB_TRY(files_from_header(header, settings, err));
    LB_TRY(copy_text(json_string_value(json_object_get(header, "baseline")), false,
                     &settings->baseline, err));
    LB_TRY(read_plugins(header, settings, err));
    LB_TRY(read_cases(header, cases, count, err));
done:
    if (st != LB_OK)
        lb_settings_free(settings);
    return st;
}
