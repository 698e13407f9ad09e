/* Tensors from files in NumPy's .npy format and from safetensors files. */
#include "model/tensor_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/given_files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

enum { AXES = 3, VERSION_AT = 6, LENGTH_AT = 8 };

/* The bytes of a file, and what its header says. */
struct source {
    const char *path;
    unsigned char *bytes;
    size_t size, header_at, header_end;
    json_t *header;
    enum lb_dtype dtype; /* of a .npy file, as is its shape */
    int64_t shape[AXES];
    const char *prefix,
        *dot; /* of the names of a safetensors file's tensors; "." or "" behind it */
};

/* Maps the file, so that of a large one only what is used is read. LB_IO with its name. */
static enum lb_status open_source(struct source *source, struct lb_error *err)
{
    struct stat status;
    int file = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return lb_fail(err, LB_IO, "%s: %s", source->path, strerror(errno));
    bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    void *bytes =
        regular ? mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0)
                : MAP_FAILED;
    close(file);
    if (bytes == MAP_FAILED)
        return lb_fail(err, LB_IO, "%s: it is empty, or not a file that can be read to its end",
                       source->path);
    source->bytes = bytes;
    source->size = (size_t)status.st_size;
    return LB_OK;
}

static void close_source(struct source *source)
{
    json_decref(source->header);
    if (source->bytes)
        munmap(source->bytes, source->size);
}

/* Finds the header by its length, which has so many bytes at that place, little-endian, and reads
 * it as a JSON object, into which edit (NULL: nothing) turns it; `format` names it in messages. */
static enum lb_status read_header(struct source *source, size_t at, size_t bytes,
                                  void (*edit)(char *text, size_t length), const char *format,
                                  struct lb_error *err)
{
    uint64_t length = UINT64_MAX;
    json_error_t why;
    source->header_at = at + bytes;
    for (size_t i = bytes; source->size >= source->header_at && i-- > 0;)
        length = length << 8 | source->bytes[at + i];
    length &= bytes < 8 ? ((uint64_t)1 << 8 * bytes) - 1 : UINT64_MAX;
    if (source->size < source->header_at || length > source->size - source->header_at)
        return lb_fail(err, LB_INVALID, "%s: it ends within its header, or has another format",
                       source->path);
    char *text = (char *)source->bytes + source->header_at;
    source->header_end = source->header_at + (size_t)length;
    if (edit)
        edit(text, (size_t)length);
    source->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &why);
    return json_is_object(source->header)
               ? LB_OK
               : lb_fail(err, LB_INVALID, "%s: the header is not %s: %.200s", source->path, format,
                         source->header ? "it is no object" : why.text);
}

/* One element of a file, whose data need not be aligned. */
static double load_element(enum lb_dtype dtype, const unsigned char *at)
{
    double aligned, value;
    memcpy(&aligned, at, lb_dtype_size(dtype));
    lb_load(dtype, &aligned, &value, 1);
    return value;
}

/* ---- .npy ---------------------------------------------------------------------------------------
 */

static const unsigned char magic[VERSION_AT] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* Turns the header, a Python dict as text, into JSON of the same length: quotes, brackets and words
 * are replaced, and a comma before a closing bracket becomes a blank. */
static void make_json(char *text, size_t length)
{
    static const char python[] = "'()TF", json[] = "\"[]tf";
    char *comma = NULL; /* the last character that is no blank, if it is a comma */
    for (char *at = text; at < text + length; at++) {
        const char *found = memchr(python, *at, sizeof(python) - 1);
        if (found)
            *at = json[found - python];
        if (comma && (*at == ']' || *at == '}'))
            *comma = ' ';
        if (*at == ',')
            comma = at;
        else if (!memchr(" \t\r\n", *at, 4))
            comma = NULL;
    }
}

/* Reads the bytes before the header, and the header, such as {'descr': '<f4', 'fortran_order':
 * False, 'shape': (3, 4, 5), }, whose keys may have any order. */
static enum lb_status read_npy_header(struct source *source, struct lb_error *err)
{
    static const char *const types[] = {[LB_F64] = "<f8", [LB_F32] = "<f4", [LB_F16] = "<f2"};
    const char *path = source->path;
    if (source->size < LENGTH_AT || memcmp(source->bytes, magic, sizeof(magic)) != 0 ||
        source->bytes[VERSION_AT] < 1 || source->bytes[VERSION_AT] > 3)
        return lb_fail(err, LB_INVALID,
                       "%s: this is not a .npy file of version 1 to 3; numpy.save makes one", path);
    LB_CHECK(read_header(source, LENGTH_AT, source->bytes[VERSION_AT] == 1 ? 2 : 4, make_json,
                         "a Python dict", err));
    const json_t *shape = json_object_get(source->header, "shape");
    const char *descr = json_string_value(json_object_get(source->header, "descr"));
    size_t type = 0;
    while (type <= LB_F16 && strcmp(types[type], descr ? descr : "") != 0)
        type++;
    if (type > LB_F16)
        return lb_fail(err, LB_INVALID,
                       "%s: elements of type %.20s; little-endian f64, f32 and f16 are read, which "
                       "are <f8, <f4 and <f2",
                       path, descr ? descr : "(none)");
    source->dtype = (enum lb_dtype)type;
    if (!json_is_false(json_object_get(source->header, "fortran_order")))
        return lb_fail(err, LB_INVALID,
                       "%s: fortran_order must be False; save numpy.ascontiguousarray of the array",
                       path);
    if (json_array_size(shape) != AXES)
        return lb_fail(err, LB_INVALID,
                       "%s: a shape of %zu axes; three are needed, [T, B, I] or [B, T, I]", path,
                       json_array_size(shape));
    for (size_t i = 0; i < AXES; i++) {
        source->shape[i] = json_integer_value(json_array_get(shape, i));
        if (source->shape[i] < 1 || source->shape[i] > INT32_MAX)
            return lb_fail(err, LB_INVALID, "%s: a size of the shape must be 1 to %d", path,
                           INT32_MAX);
    }
    return LB_OK;
}

/* Converts the data to [T, B, width]. */
static enum lb_status take_values(const struct source *source, bool batch_first,
                                  struct lb_sequence_file *file, struct lb_error *err)
{
    size_t size = lb_dtype_size(source->dtype), there = source->size - source->header_end;
    size_t T = (size_t)file->seq_len, B = (size_t)file->batch, W = (size_t)file->width;
    size_t count = there / size;
    double bytes = (double)T * (double)B * (double)W * (double)size;
    if (bytes != (double)there)
        return lb_fail(err, LB_INVALID, "%s: the shape takes %.0f bytes of data, and %zu are there",
                       source->path, bytes, there);
    file->values = malloc(count * sizeof(double));
    if (!file->values)
        return lb_fail(err, LB_OOM, "%s: out of memory for %zu elements", source->path, count);
    for (size_t i = 0; i < count; i++) {
        size_t row = i / W, t = row / B, b = row % B;
        size_t from = ((batch_first ? b * T + t : row) * W + i % W) * size;
        file->values[i] = load_element(source->dtype, source->bytes + source->header_end + from);
        if (!isfinite(file->values[i]))
            return lb_fail(err, LB_INVALID,
                           "%s: the element of t %zu, b %zu, column %zu is not finite",
                           source->path, t, b, i % W);
        file->max_abs = fmax(file->max_abs, fabs(file->values[i]));
    }
    const int64_t sizes[] = {file->seq_len, file->batch};
    file->hash = lb_hash_bytes(0, sizes, sizeof(sizes));
    file->hash = lb_hash_bytes(file->hash, file->values, count * sizeof(double));
    return LB_OK;
}

enum lb_status lb_sequence_file_read(const char *path, bool batch_first,
                                     struct lb_sequence_file **out, struct lb_error *err)
{
    struct source source = {.path = path};
    struct lb_sequence_file *file = lb_needed(calloc(1, sizeof(*file)));
    enum lb_status st = LB_OK;
    *out = NULL;
    LB_TRY(open_source(&source, err));
    LB_TRY(read_npy_header(&source, err));
    file->seq_len = source.shape[batch_first ? 1 : 0];
    file->batch = source.shape[batch_first ? 0 : 1];
    file->width = source.shape[2];
    file->dtype = source.dtype;
    LB_TRY(take_values(&source, batch_first, file, err));
    *out = file;
done:
    close_source(&source);
    if (st != LB_OK)
        lb_sequence_file_free(file);
    return st;
}

void lb_sequence_file_free(struct lb_sequence_file *file)
{
    if (file)
        free(file->values);
    free(file);
}

enum lb_status lb_sequence_file_write(const char *path, int64_t seq_len, int64_t batch,
                                      int64_t width, const double *values, struct lb_error *err)
{
    enum { HEADER = 118 }; /* the format requires a multiple of 64, with the 10 bytes before it */
    char header[HEADER + 1], dict[HEADER];
    size_t count = (size_t)seq_len * (size_t)batch * (size_t)width;
    FILE *file = fopen(path, "wb");
    if (!file)
        return lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    snprintf(dict, sizeof(dict),
             "{'descr': '<f8', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 ", %" PRId64
             "), }",
             seq_len, batch, width);
    snprintf(header, sizeof(header), "%-*s\n", HEADER - 1, dict);
    const unsigned char version[] = {1, 0, HEADER, 0};
    bool written = fwrite(magic, sizeof(magic), 1, file) == 1 &&
                   fwrite(version, sizeof(version), 1, file) == 1 &&
                   fwrite(header, HEADER, 1, file) == 1 &&
                   fwrite(values, sizeof(*values), count, file) == count;
    written = fclose(file) == 0 && written;
    return written ? LB_OK : lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
}

enum lb_status lb_inputs_given(const struct lb_sequence_file **file, struct lb_error *err)
{
    static struct lb_sequence_file *given;
    static unsigned version;
    const struct lb_given_files *now = lb_given_files();
    enum lb_status st = LB_OK;
    if (version != lb_given_files_version()) {
        lb_sequence_file_free(given);
        given = NULL;
        version = lb_given_files_version();
    }
    if (now->inputs && !given)
        st = lb_sequence_file_read(now->inputs, now->batch_first, &given, err);
    *file = given;
    return st;
}

/* ---- safetensors --------------------------------------------------------------------------------
 */

/* One tensor of the file; data is NULL where there is none of that name. */
struct tensor {
    enum lb_dtype dtype;
    size_t dimensions;
    int64_t shape[2];
    const unsigned char *data;
};

static const char *const kind_names[LB_W_CELL] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};

static bool read_dtype(const char *name, enum lb_dtype *dtype)
{
    static const char *const names[] = {
        [LB_F64] = "F64", [LB_F32] = "F32", [LB_F16] = "F16", [LB_BF16] = "BF16"};
    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0) {
            *dtype = (enum lb_dtype)i;
            return true;
        }
    return false;
}

static enum lb_status find_tensor(const struct source *source, const char *name,
                                  struct tensor *tensor, struct lb_error *err)
{
    const json_t *header = json_object_get(source->header, name), *shape, *offsets;
    const char *dtype = json_string_value(json_object_get(header, "dtype"));
    json_int_t begin, end, count = 1;
    *tensor = (struct tensor){.shape = {1, 1}};
    if (!header)
        return LB_OK;
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
    if (begin < 0 || end < begin || (uint64_t)end > source->size - source->header_end ||
        (uint64_t)(end - begin) != (uint64_t)count * lb_dtype_size(tensor->dtype))
        return lb_fail(
            err, LB_INVALID,
            "%s: tensor %s: data_offsets %lld to %lld, but its shape takes %llu bytes, and "
            "the file has %zu of data",
            source->path, name, (long long)begin, (long long)end,
            (unsigned long long)count * lb_dtype_size(tensor->dtype),
            source->size - source->header_end);
    tensor->data = source->bytes + source->header_end + begin;
    return LB_OK;
}

/* "encoder.weight_ih_l0_reverse" */
static void tensor_name(const struct source *source, enum lb_weight kind, int64_t layer,
                        int64_t direction, char *name, size_t size)
{
    snprintf(name, size, "%s%s%s_l%lld%s", source->prefix, source->dot, kind_names[kind],
             (long long)layer, direction ? "_reverse" : "");
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
static enum lb_status find_sizes(struct source *source, struct lb_weights_file *file,
                                 struct lb_error *err)
{
    char name[400];
    struct tensor tensor, next;
    tensor_name(source, LB_W_IH, 0, 0, name, sizeof(name));
    LB_CHECK(find_tensor(source, name, &tensor, err));
    if (!tensor.data && source->prefix[0]) { /* "encoder.lstm" may stand for "encoder.lstm." */
        source->dot = ".";
        tensor_name(source, LB_W_IH, 0, 0, name, sizeof(name));
        LB_CHECK(find_tensor(source, name, &tensor, err));
    }
    if (!tensor.data)
        return no_lstm(source, name, err);
    if (tensor.dimensions != 2 || tensor.shape[0] % 4 != 0)
        return lb_fail(err, LB_INVALID, "%s: tensor %s: its shape must be [4H, I]", source->path,
                       name);
    file->hidden = tensor.shape[0] / 4;
    file->input = tensor.shape[1];
    tensor_name(source, LB_W_IH, 0, 1, name, sizeof(name));
    LB_CHECK(find_tensor(source, name, &next, err));
    file->directions = next.data ? 2 : 1;
    do {
        tensor_name(source, LB_W_IH, ++file->layers, 0, name, sizeof(name));
        LB_CHECK(find_tensor(source, name, &next, err));
    } while (next.data);
    return LB_OK;
}

/* One tensor's values; zeros for a bias that is not there. */
static enum lb_status take_tensor(const struct source *source, struct lb_weights_file *file,
                                  enum lb_weight kind, size_t layer_dir, struct lb_error *err)
{
    int64_t layer = (int64_t)layer_dir / file->directions;
    int64_t rows = 4 * file->hidden, columns = 1;
    bool bias = kind == LB_B_IH || kind == LB_B_HH;
    struct tensor tensor;
    char name[400];
    if (!bias)
        columns = kind == LB_W_HH ? file->hidden
                  : layer == 0    ? file->input
                                  : file->directions * file->hidden;
    tensor_name(source, kind, layer, (int64_t)layer_dir % file->directions, name, sizeof(name));
    LB_CHECK(find_tensor(source, name, &tensor, err));
    if (!tensor.data && !bias)
        return lb_fail(err, LB_INVALID, "%s: there is no tensor %s", source->path, name);
    if (tensor.data && (tensor.dimensions != (bias ? 1u : 2u) || tensor.shape[0] != rows ||
                        tensor.shape[1] != columns))
        return lb_fail(err, LB_INVALID,
                       bias ? "%s: tensor %s: its shape must be [%lld]"
                            : "%s: tensor %s: its shape must be [%lld, %lld]",
                       source->path, name, (long long)rows, (long long)columns);
    double *values = calloc((size_t)(rows * columns), sizeof(*values));
    file->values[kind][layer_dir] = values;
    if (!values)
        return lb_fail(err, LB_OOM, "%s: out of memory", source->path);
    for (int64_t i = 0; tensor.data && i < rows * columns; i++) {
        values[i] =
            load_element(tensor.dtype, tensor.data + (size_t)i * lb_dtype_size(tensor.dtype));
        if (!isfinite(values[i]))
            return lb_fail(err, LB_INVALID, "%s: tensor %s: element %lld is not finite",
                           source->path, name, (long long)i);
        file->max_abs = fmax(file->max_abs, fabs(values[i]));
    }
    file->hash = lb_hash_bytes(file->hash, values, (size_t)(rows * columns) * sizeof(*values));
    return LB_OK;
}

enum lb_status lb_weights_file_read(const char *path, const char *prefix,
                                    struct lb_weights_file **out, struct lb_error *err)
{
    struct source source = {.path = path, .prefix = prefix, .dot = ""};
    struct lb_weights_file *file = lb_needed(calloc(1, sizeof(*file)));
    enum lb_status st = LB_OK;
    *out = NULL;
    LB_TRY(open_source(&source, err));
    LB_TRY(read_header(&source, 0, 8, NULL, "a JSON object", err));
    LB_TRY(find_sizes(&source, file, err));
    size_t layer_dirs = (size_t)(file->layers * file->directions);
    for (int kind = 0; kind < LB_W_CELL; kind++) {
        file->values[kind] = lb_needed(calloc(layer_dirs, sizeof(double *)));
        for (size_t layer_dir = 0; layer_dir < layer_dirs; layer_dir++)
            LB_TRY(take_tensor(&source, file, (enum lb_weight)kind, layer_dir, err));
    }
    *out = file;
done:
    close_source(&source);
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
