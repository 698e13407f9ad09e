/* The settings of a sweep, kept in the header of its run. */
#include "sweep/sweep.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/tensor_files.h"
#include "record/environment.h"
#include "support/share_path.h"
#include "support/texts.h"

#define FIELD(name) offsetof(struct lb_options, name)

/* Settings that the header keeps as they are. */
static const struct field {
    const char *key, *option; /* the option that changes it for a run that goes on; NULL: none */
    enum { INT, DOUBLE, BOOL } type;
    size_t offset;
} fields[] = {
    {"repetitions", NULL, INT, FIELD(repetitions)},
    {"processes", NULL, INT, FIELD(processes)},
    {"loss_scale", NULL, DOUBLE, FIELD(loss_scale)},
    {"call_limit_s", "--call-limit", DOUBLE, FIELD(call_limit_s)},
    {"deadline_s", "--deadline", DOUBLE, FIELD(deadline_s)},
    {"memory_bytes", "--memory", DOUBLE, FIELD(memory_bytes)},
    {"device", "--device", INT, FIELD(device)},
    {"kernels", NULL, BOOL, FIELD(kernels)},
    {"shuffled", NULL, BOOL, FIELD(shuffled)},
    {"loss_scale_dynamic", NULL, BOOL, FIELD(dynamic_loss_scale)},
    {"tune", "--tune", BOOL, FIELD(given_files.tune)},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* The absolute path, because a run may be resumed from another folder; also of a file that does not
 * exist yet. NULL when it is not UTF-8. */
static json_t *path_json(const char *path)
{
    char here[4096];
    char *real = realpath(path, NULL);
    json_t *text = real ? json_string(real)
                   : path[0] == '/' || !getcwd(here, sizeof(here))
                       ? json_string(path)
                       : json_sprintf("%s/%s", here, path);
    free(real);
    return text;
}

/* ---- To the header ---- */

json_t *lb_settings_of_session(const struct lb_options *options, json_t *libraries)
{
    json_t *command = json_array(), *environment = lb_environment(libraries);
    json_t *versions = json_object_get(environment, "libraries");
    for (size_t i = 0; i < options->plugin_count; i++)
        lb_framework_add_versions(options->plugins[i], versions);
    for (int i = 0; i < options->argc; i++) {
        char *text = lb_needed(strdup(options->argv[i]));
        lb_clean_text(text); /* the command line may be in any encoding */
        json_array_append_new(command, json_string(text));
        free(text);
    }
    return json_pack("{s:o, s:o}", "environment", environment, "command", command);
}

static enum lb_status print_hashes(char weights_hash[17], char inputs_hash[17],
                                   struct lb_error *err)
{
    const struct lb_weights_file *weights;
    const struct lb_sequence_file *x;
    LB_CHECK(lb_weights_given(&weights, err));
    LB_CHECK(lb_inputs_given(&x, err));
    snprintf(weights_hash, 17, "%016llx", (unsigned long long)(weights ? weights->hash : 0));
    snprintf(inputs_hash, 17, "%016llx", (unsigned long long)(x ? x->hash : 0));
    return LB_OK;
}

static enum lb_status put_files(json_t *header, const struct lb_given_files *given,
                                struct lb_error *err)
{
    static const char *const keys[] = {"tuned", "weights", "inputs"};
    const char *const paths[] = {given->tuned, given->weights, given->inputs};
    char hashes[3][17];
    LB_CHECK(print_hashes(hashes[1], hashes[2], err));
    for (int i = 0; i < 3; i++) {
        if (!paths[i])
            continue;
        json_t *value = path_json(paths[i]); /* NULL: it is not UTF-8 */
        if (i == 1)
            value = json_pack("{s:o, s:s, s:s}", "file", value, "prefix",
                              given->prefix ? given->prefix : "", "hash", hashes[i]);
        if (i == 2)
            value = json_pack("{s:o, s:b, s:s}", "file", value, "batch_first", given->batch_first,
                              "hash", hashes[i]);
        if (json_object_set_new(header, keys[i], value) != 0)
            return lb_fail(err, LB_INVALID, "--%s %s: the path must be UTF-8", keys[i], paths[i]);
    }
    return LB_OK;
}

enum lb_status lb_settings_to_header(const struct lb_options *options,
                                     const struct lb_sampler_options *sampler,
                                     const struct lb_case *cases, size_t count, json_t *libraries,
                                     json_t **header, struct lb_error *err)
{
    json_t *texts = json_array(), *plugins = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(texts, json_string(LB_CASE_TEXT(&cases[i])));
    for (size_t i = 0; i < options->plugin_count; i++)
        json_array_append_new(plugins, path_json(options->plugins[i]));
    *header = lb_settings_of_session(options, libraries);
    json_t *more = json_pack(
        "{s:I, s:{s:I, s:I, s:f, s:f}, s:s?, s:o, s:o}", "seed", (json_int_t)options->seed,
        "sampler", "min_samples", (json_int_t)sampler->min_samples, "max_samples",
        (json_int_t)sampler->max_samples, "precision", sampler->precision, "max_ns",
        sampler->max_ns, "baseline", options->baseline, "plugins", plugins, "cases", texts);
    json_object_update_new(*header, more);
    for (size_t i = 0; i < FIELDS; i++) {
        const void *field = (const char *)options + fields[i].offset;
        json_object_set_new(*header, fields[i].key,
                            fields[i].type == INT      ? json_integer(*(const int *)field)
                            : fields[i].type == DOUBLE ? json_real(*(const double *)field)
                                                       : json_boolean(*(const bool *)field));
    }
    return put_files(*header, &options->given_files, err);
}

/* ---- From the header ---- */

static enum lb_status read_fields(const json_t *header, struct lb_options *options,
                                  struct lb_error *err)
{
    const json_t *sampler = json_object_get(header, "sampler");
    const json_t *seed = json_object_get(header, "seed");
    double max_ns = json_number_value(json_object_get(sampler, "max_ns"));
    for (size_t i = 0; i < FIELDS; i++) {
        const json_t *value = json_object_get(header, fields[i].key);
        void *field = (char *)options + fields[i].offset;
        if (fields[i].type != BOOL && !json_is_number(value))
            return lb_fail(err, LB_INVALID, "header: %s is missing", fields[i].key);
        if (fields[i].option && lb_option_given(options, fields[i].option))
            continue;
        if (fields[i].type == INT)
            *(int *)field = (int)json_number_value(value);
        else if (fields[i].type == DOUBLE)
            *(double *)field = json_number_value(value);
        else
            *(bool *)field = json_is_true(value);
    }
    if (!json_is_integer(seed) || !(max_ns > 0 && max_ns <= 1e17))
        return lb_fail(err, LB_INVALID, "header: there must be a seed, and sampler.max_ns above 0");
    options->seed = (uint64_t)json_integer_value(seed);
    options->case_time_s = max_ns / 1e9;
    return LB_OK;
}

static enum lb_status check_file(const json_t *object, const char *now, const char *what,
                                 struct lb_error *err)
{
    const char *hash = json_string_value(json_object_get(object, "hash"));
    return !object || (hash && strcmp(now, hash) == 0)
               ? LB_OK
               : lb_fail(err, LB_INVALID, "--resume: %s holds other %s than when the run began",
                         json_string_value(json_object_get(object, "file")), what);
}

/* The files that the run reads. A file to write, of tuned choices, only the command line names. */
static enum lb_status read_files(const json_t *header, struct lb_given_files *given,
                                 struct lb_error *err)
{
    const json_t *weights = json_object_get(header, "weights");
    const json_t *inputs = json_object_get(header, "inputs");
    const char *tuned = json_string_value(json_object_get(header, "tuned"));
    char weights_hash[17], inputs_hash[17];
    if (tuned && given->tune && !given->tuned)
        return lb_fail(err, LB_INVALID,
                       "--resume: the run writes tuned choices into %.300s, which a run's file may "
                       "not name by itself: give --tuned with that file again, or with another",
                       tuned);
    given->tuned = given->tuned ? given->tuned : tuned;
    given->weights = json_string_value(json_object_get(weights, "file"));
    given->prefix = json_string_value(json_object_get(weights, "prefix"));
    given->inputs = json_string_value(json_object_get(inputs, "file"));
    given->batch_first = json_is_true(json_object_get(inputs, "batch_first"));
    lb_give_files(given);
    LB_CHECK(print_hashes(weights_hash, inputs_hash, err));
    LB_CHECK(check_file(weights, weights_hash, "weights", err));
    return check_file(inputs, inputs_hash, "inputs", err);
}

enum lb_status lb_settings_from_header(const json_t *header, struct lb_options *options,
                                       struct lb_case **cases, size_t *count, struct lb_error *err)
{
    const json_t *array = json_object_get(header, "cases");
    LB_CHECK(read_fields(header, options, err));
    LB_CHECK(read_files(header, &options->given_files, err));
    *count = json_array_size(array);
    *cases = lb_needed(calloc(*count + 1, sizeof(**cases)));
    for (size_t i = 0; i < *count; i++) {
        struct lb_error why;
        const char *text = json_string_value(json_array_get(array, i));
        if (!text || lb_case_parse(text, &(*cases)[i], NULL, NULL, &why) != LB_OK)
            return lb_fail(err, LB_INVALID, "header: cases[%zu]: %.400s", i,
                           text ? why.text : "must be a string");
    }
    return LB_OK;
}
