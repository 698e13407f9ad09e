/* The weights of a trained LSTM from a safetensors file, in place of drawn ones. */
#include "model/weights_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/given_files.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/file_bytes.h"

enum { HEADER_AT = 8, MOST_HEADER = 100 << 20, MOST_LAYERS = 1024 };

/* The bytes of a file, and where its parts are. */
struct source {
    const char *path, *prefix;
    unsigned char *bytes;
    size_t size, data_at; /* data_at: first byte behind the header */
    json_t *header;
};

/* One tensor of it. */
struct tensor {
    enum lb_dtype dtype;
    size_t dimensions;
    int64_t shape[2];
    const unsigned char *data;
};

static const char *const kind_names[LB_W_CELL] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};

/* The header's length and its JSON. */
static enum lb_status read_header(struct source *source, struct lb_error *err)
{
    uint64_t length = 0;
    json_error_t json;
    if (source->size < HEADER_AT)
        return lb_fail(err, LB_INVALID,
                       "%s: byte %zu: it ends within the header's length, which takes %d bytes",
                       source->path, source->size, HEADER_AT);
    for (int i = HEADER_AT - 1; i >= 0; i--)
        length = length << 8 | source->bytes[i];
    if (length > MOST_HEADER)
        return lb_fail(err, LB_INVALID,
                       "%s: byte 0: a header of %" PRIu64 " bytes: this is not a safetensors file",
                       source->path, length);
    if (length > source->size - HEADER_AT)
        return lb_fail(err, LB_INVALID,
                       "%s: byte %zu: it ends within the header, which has %" PRIu64 " bytes",
                       source->path, source->size, length);
    source->header = json_loadb((const char *)source->bytes + HEADER_AT, (size_t)length,
                                JSON_REJECT_DUPLICATES, &json);
    if (!source->header)
        return lb_fail(err, LB_INVALID, "%s: byte %d: the header is not JSON: %.200s", source->path,
                       HEADER_AT + (json.position > 0 ? json.position - 1 : 0), json.text);
    if (!json_is_object(source->header))
        return lb_fail(err, LB_INVALID, "%s: byte %d: the header is not a JSON object",
                       source->path, HEADER_AT);
    source->data_at = HEADER_AT + (size_t)length;
    return LB_OK;
}

static bool read_dtype(const char *name, enum lb_dtype *dtype)
{
    static const char *const names[LB_DTYPE_COUNT] = {
        [LB_F64] = "F64", [LB_F32] = "F32", [LB_F16] = "F16", [LB_BF16] = "BF16"};
    for (int i = 0; name && i < LB_DTYPE_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *dtype = (enum lb_dtype)i;
            return true;
        }
    return false;
}

/* LB_OK with *found false when there is no tensor of that name. */
static enum lb_status find_tensor(const struct source *source, const char *name, bool *found,
                                  struct tensor *tensor, struct lb_error *err)
{
    const json_t *header = json_object_get(source->header, name), *shape, *offsets;
    const char *dtype = json_string_value(json_object_get(header, "dtype"));
    json_int_t begin, end, count = 1;
    *found = header != NULL;
    if (!header)
        return LB_OK;
    *tensor = (struct tensor){.shape = {1, 1}};
    shape = json_object_get(header, "shape");
    offsets = json_object_get(header, "data_offsets");
    tensor->dimensions = json_array_size(shape);
    if (!json_is_array(shape) || json_array_size(offsets) != 2)
        return lb_fail(err, LB_INVALID, "%s: tensor %s: it has no shape or no data_offsets",
                       source->path, name);
    if (!read_dtype(dtype, &tensor->dtype))
        return lb_fail(err, LB_INVALID,
                       "%s: tensor %s: dtype %.20s; F64, F32, F16 and BF16 are read", source->path,
                       name, dtype ? dtype : "none");
    for (size_t i = 0; i < tensor->dimensions; i++) {
        json_int_t size = json_integer_value(json_array_get(shape, i));
        if (i >= 2 || size < 1 || size > INT32_MAX)
            return lb_fail(err, LB_INVALID, "%s: tensor %s: its shape is not that of a weight",
                           source->path, name);
        tensor->shape[i] = size;
        count *= size;
    }
    begin = json_integer_value(json_array_get(offsets, 0));
    end = json_integer_value(json_array_get(offsets, 1));
    if (begin < 0 || end < begin ||
        (uint64_t)(end - begin) != (uint64_t)count * lb_dtype_size(tensor->dtype))
        return lb_fail(err, LB_INVALID,
                       "%s: tensor %s: data_offsets %lld to %lld, but its shape takes %llu bytes",
                       source->path, name, (long long)begin, (long long)end,
                       (unsigned long long)count * lb_dtype_size(tensor->dtype));
    if ((uint64_t)end > source->size - source->data_at)
        return lb_fail(err, LB_INVALID,
                       "%s: byte %zu: it ends within tensor %s, whose data end at byte %llu",
                       source->path, source->size, name,
                       (unsigned long long)source->data_at + (unsigned long long)end);
    tensor->data = source->bytes + source->data_at + begin;
    return LB_OK;
}

/* "encoder.weight_ih_l0_reverse" */
static void tensor_name(const struct source *source, enum lb_weight kind, int64_t layer,
                        int64_t direction, char *name, size_t size)
{
    snprintf(name, size, "%s%s_l%lld%s", source->prefix, kind_names[kind], (long long)layer,
             direction ? "_reverse" : "");
}

/* Names of tensors that end as those of a first layer do, for a message. */
static enum lb_status no_lstm(const struct source *source, const char *name, struct lb_error *err)
{
    char prefixes[200] = "";
    const char *key;
    json_t *value;
    json_object_foreach(source->header, key, value)
    {
        const char *at = strstr(key, "weight_ih_l0");
        if (at && strcmp(at, "weight_ih_l0") == 0)
            lb_append(prefixes, sizeof(prefixes), "%s'%.*s'", prefixes[0] ? ", " : "",
                      (int)(at - key), key);
    }
    return prefixes[0]
               ? lb_fail(err, LB_INVALID, "%s: there is no tensor %s; --prefix may be %s",
                         source->path, name, prefixes)
               : lb_fail(err, LB_INVALID,
                         "%s: there is no tensor %s, and none that ends in weight_ih_l0 among its "
                         "%zu; bench/frameworks/to_safetensors.py converts other layouts",
                         source->path, name, json_object_size(source->header));
}

/* L, D, I and H by the tensors that there are. */
static enum lb_status find_sizes(const struct source *source, struct lb_weights_file *file,
                                 struct lb_error *err)
{
    char name[400];
    struct tensor tensor;
    bool found;
    enum lb_status st = LB_OK;
    tensor_name(source, LB_W_IH, 0, 0, name, sizeof(name));
    LB_TRY(find_tensor(source, name, &found, &tensor, err));
    if (!found)
        return no_lstm(source, name, err);
    if (tensor.dimensions != 2 || tensor.shape[0] % 4 != 0)
        return lb_fail(err, LB_INVALID, "%s: tensor %s: its shape must be [4H, I]", source->path,
                       name);
    file->hidden = tensor.shape[0] / 4;
    file->input = tensor.shape[1];
    tensor_name(source, LB_W_IH, 0, 1, name, sizeof(name));
    LB_TRY(find_tensor(source, name, &found, &tensor, err));
    file->directions = found ? 2 : 1;
    for (file->layers = 1, found = true; found && file->layers < MOST_LAYERS; file->layers++) {
        tensor_name(source, LB_W_IH, file->layers, 0, name, sizeof(name));
        LB_TRY(find_tensor(source, name, &found, &tensor, err));
    }
    file->layers--;
done:
    return st;
}

/* One tensor's values; zeros for a bias that is not there. */
static enum lb_status take_tensor(const struct source *source, struct lb_weights_file *file,
                                  enum lb_weight kind, size_t layer_dir, struct lb_error *err)
{
    struct lb_problem sizes = {.input = file->input,
                               .hidden = file->hidden,
                               .layers = file->layers,
                               .directions = file->directions};
    int64_t layer = (int64_t)layer_dir / file->directions;
    int64_t rows = 4 * file->hidden, columns = 1;
    bool found, bias = kind == LB_B_IH || kind == LB_B_HH;
    struct tensor tensor;
    char name[400];
    if (!bias)
        columns = kind == LB_W_IH ? lb_layer_input(&sizes, layer) : file->hidden;
    tensor_name(source, kind, layer, (int64_t)layer_dir % file->directions, name, sizeof(name));
    enum lb_status st = find_tensor(source, name, &found, &tensor, err);
    if (st != LB_OK)
        return st;
    if (!found && !bias)
        return lb_fail(err, LB_INVALID, "%s: there is no tensor %s", source->path, name);
    if (found && (tensor.dimensions != (bias ? 1u : 2u) || tensor.shape[0] != rows ||
                  tensor.shape[1] != columns))
        return lb_fail(err, LB_INVALID,
                       bias ? "%s: tensor %s: its shape must be [%lld]"
                            : "%s: tensor %s: its shape must be [%lld, %lld]",
                       source->path, name, (long long)rows, (long long)columns);
    double *values = calloc((size_t)(rows * columns), sizeof(*values));
    file->values[kind][layer_dir] = values;
    if (!values)
        return lb_fail(err, LB_OOM, "%s: out of memory", source->path);
    for (int64_t i = 0; found && i < rows * columns; i++) {
        double element; /* aligned, as the file's data need not be */
        size_t size = lb_dtype_size(tensor.dtype);
        memcpy(&element, (const char *)tensor.data + (size_t)i * size, size);
        lb_load(tensor.dtype, &element, &values[i], 1);
    }
    for (int64_t i = 0; i < rows * columns; i++)
        if (!isfinite(values[i]))
            return lb_fail(err, LB_INVALID, "%s: tensor %s: element %lld is not finite",
                           source->path, name, (long long)i);
    file->hash = lb_hash_bytes(file->hash, values, (size_t)(rows * columns) * sizeof(*values));
    return LB_OK;
}

enum lb_status lb_weights_file_read(const char *path, const char *prefix,
                                    struct lb_weights_file **out, struct lb_error *err)
{
    struct source source = {.path = path, .prefix = prefix};
    struct lb_weights_file *file = calloc(1, sizeof(*file));
    enum lb_status st = LB_OK;
    *out = NULL;
    if (!file)
        return lb_fail(err, LB_OOM, "out of memory");
    LB_TRY(lb_file_bytes(path, &source.bytes, &source.size, err));
    LB_TRY(read_header(&source, err));
    LB_TRY(find_sizes(&source, file, err));
    size_t layer_dirs = (size_t)(file->layers * file->directions);
    for (int kind = 0; kind < LB_W_CELL; kind++) {
        file->values[kind] = calloc(layer_dirs, sizeof(double *));
        if (!file->values[kind])
            LB_TRY(lb_fail(err, LB_OOM, "out of memory"));
        for (size_t layer_dir = 0; layer_dir < layer_dirs; layer_dir++)
            LB_TRY(take_tensor(&source, file, (enum lb_weight)kind, layer_dir, err));
    }
    *out = file;
done:
    json_decref(source.header);
    free(source.bytes);
    if (st != LB_OK)
        lb_weights_file_free(file);
    return st;
}

void lb_weights_file_free(struct lb_weights_file *file)
{
    size_t layer_dirs = file ? (size_t)(file->layers * file->directions) : 0;
    for (int kind = 0; file && kind < LB_W_CELL; kind++) {
        for (size_t layer_dir = 0; file->values[kind] && layer_dir < layer_dirs; layer_dir++)
            free(file->values[kind][layer_dir]);
        free(file->values[kind]);
    }
    free(file);
}

bool lb_weights_file_fits(const struct lb_weights_file *file, const struct lb_problem *problem)
{
    return file->input == problem->input && file->hidden == problem->hidden &&
           file->layers == problem->layers && file->directions == problem->directions &&
           problem->cell == LB_CELL_STANDARD;
}

enum lb_status lb_weights_given(const struct lb_weights_file **file, struct lb_error *err)
{
    static struct lb_weights_file *given;
    static unsigned version;
    const struct lb_given_files *now = lb_given_files();
    enum lb_status st = LB_OK;
    if (version != lb_given_files_version()) {
        lb_weights_file_free(given);
        given = NULL;
        version = lb_given_files_version();
    }
    if (now->weights && !given)
        st = lb_weights_file_read(now->weights, now->prefix ? now->prefix : "", &given, err);
    *file = given;
    return st;
}
