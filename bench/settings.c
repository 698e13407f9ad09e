/* What a sweep runs with, kept in its header. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

static enum lb_status copy_strings(const char *const *from, size_t count, char ***to,
                                   struct lb_error *err)
{
    *to = calloc(count + 1, sizeof(**to));
    for (size_t i = 0; *to && i < count; i++) {
        (*to)[i] = strdup(from[i]);
        if (!(*to)[i])
            return lb_fail(err, LB_OOM, "out of memory");
    }
    return *to ? LB_OK : lb_fail(err, LB_OOM, "out of memory");
}

static void free_strings(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        free(strings[i]);
    free(strings);
}

void lb_settings_free(struct lb_settings *settings)
{
    free_strings(settings->command);
    free_strings(settings->plugins);
    free_strings(settings->benchmark);
    free(settings->baseline);
    *settings = (struct lb_settings){0};
}

enum lb_status lb_settings_from_options(const struct lb_options *options,
                                        struct lb_settings *settings, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *settings = (struct lb_settings){
        .command_count = (size_t)options->argc,
        .seed = options->seed,
        .sampler = lb_options_sampler(options),
        .repetitions = options->repetitions,
        .loss_scale = options->loss_scale,
        .kernels = options->kernels,
        .processes = options->processes > 1 ? options->processes : 1,
        .plugin_count = options->plugin_count,
        .benchmark_count = options->benchmark_count,
    };
    if (options->baseline && !(settings->baseline = strdup(options->baseline)))
        return lb_fail(err, LB_OOM, "out of memory");
    LB_TRY(copy_strings((const char *const *)options->argv, settings->command_count,
                        &settings->command, err));
    LB_TRY(copy_strings(options->plugins, options->plugin_count, &settings->plugins, err));
    LB_TRY(copy_strings((const char *const *)options->benchmark, options->benchmark_count,
                        &settings->benchmark, err));
    for (size_t i = 0; i < settings->plugin_count; i++) {
        char *absolute = realpath(settings->plugins[i], NULL); /* a resume may start elsewhere */
        if (absolute) {
            free(settings->plugins[i]);
            settings->plugins[i] = absolute;
        }
    }
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

enum lb_status lb_settings_to_header(const struct lb_settings *settings,
                                     const struct lb_case *cases, size_t count,
                                     const struct lb_library *libraries, json_t **header,
                                     struct lb_error *err)
{
    const struct lb_sampler_options *sampler = &settings->sampler;
    json_t *texts = json_array();
    for (size_t i = 0; i < count; i++) {
        char id[LB_CASE_ID_SIZE];
        lb_case_print(&cases[i], id);
        json_array_append_new(texts, json_string(id));
    }
    json_t *baseline = settings->baseline ? json_string(settings->baseline) : json_null();
    *header = json_pack(
        "{s:o, s:I, s:{s:I, s:I, s:f, s:f}, s:i, s:i, s:f, s:o, s:o, s:o, s:o}", "environment",
        lb_environment(libraries), "seed", (json_int_t)settings->seed, "sampler", "min_samples",
        (json_int_t)sampler->min_samples, "max_samples", (json_int_t)sampler->max_samples,
        "precision", sampler->precision, "max_ns", sampler->max_ns, "repetitions",
        settings->repetitions, "processes", settings->processes, "loss_scale", settings->loss_scale,
        "baseline", baseline, "plugins", string_array(settings->plugins, settings->plugin_count),
        "benchmark", string_array(settings->benchmark, settings->benchmark_count), "cases", texts);
    json_object_set_new(*header, "command",
                        string_array(settings->command, settings->command_count));
    if (settings->kernels)
        json_object_set_new(*header, "kernels", json_true());
    return *header ? LB_OK : lb_fail(err, LB_OOM, "out of memory for the header");
}

static enum lb_status read_strings(const json_t *header, const char *key, char ***strings,
                                   size_t *count, struct lb_error *err)
{
    const json_t *array = json_object_get(header, key);
    *count = json_array_size(array);
    *strings = calloc(*count + 1, sizeof(**strings));
    for (size_t i = 0; *strings && i < *count; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (!text)
            return lb_fail(err, LB_INVALID, "header: %s[%zu] must be a string", key, i);
        (*strings)[i] = strdup(text);
        if (!(*strings)[i])
            return lb_fail(err, LB_OOM, "out of memory");
    }
    return *strings ? LB_OK : lb_fail(err, LB_OOM, "out of memory");
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

enum lb_status lb_settings_from_header(const json_t *header, struct lb_settings *settings,
                                       struct lb_case **cases, size_t *count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    json_int_t seed, min_samples, max_samples;
    json_error_t why;
    struct lb_sampler_options *sampler = &settings->sampler;
    *settings = (struct lb_settings){.processes = 1};
    *cases = NULL;
    if (json_unpack_ex((json_t *)header, &why, 0, "{s:I, s:{s:I, s:I, s:F, s:F}, s:i, s?i}", "seed",
                       &seed, "sampler", "min_samples", &min_samples, "max_samples", &max_samples,
                       "precision", &sampler->precision, "max_ns", &sampler->max_ns, "repetitions",
                       &settings->repetitions, "processes", &settings->processes) != 0)
        return lb_fail(err, LB_INVALID, "header: %s", why.text);
    if (min_samples < 1 || max_samples < min_samples || max_samples > 1000000000 ||
        !(sampler->max_ns > 0 && sampler->max_ns < 1e18) || settings->repetitions < 1 ||
        settings->processes < 1)
        return lb_fail(err, LB_INVALID,
                       "header: sampler, repetitions and processes must be positive counts and "
                       "times");
    settings->seed = (uint64_t)seed;
    sampler->min_samples = (size_t)min_samples;
    sampler->max_samples = (size_t)max_samples;
    const json_t *loss_scale = json_object_get(header, "loss_scale"); /* older runs had none */
    settings->loss_scale = json_is_number(loss_scale) ? json_number_value(loss_scale) : 1;
    settings->kernels = json_is_true(json_object_get(header, "kernels"));
    const char *baseline = json_string_value(json_object_get(header, "baseline"));
    if (baseline && !(settings->baseline = strdup(baseline)))
        return lb_fail(err, LB_OOM, "out of memory");
    LB_TRY(read_strings(header, "plugins", &settings->plugins, &settings->plugin_count, err));
    LB_TRY(
        read_strings(header, "benchmark", &settings->benchmark, &settings->benchmark_count, err));
    LB_TRY(read_cases(header, cases, count, err));
done:
    if (st != LB_OK)
        lb_settings_free(settings);
    return st;
}
