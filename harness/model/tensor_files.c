/* Tensors from files in NumPy's .npy format and from safetensors files. */
#include "model/tensor_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/given_files.h"
#include "base/hash.h"
#include "base/text.h"

enum { AXES = 3, VERSION_AT = 6, LENGTH_AT = 8, MOST_HEADER = 100 << 20, MOST_LAYERS = 1024 };

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
    enum lb_status st = LB_OK;
    struct stat status;
    int file = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return lb_fail(err, LB_IO, "%s: %s", source->path, strerror(errno));
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        st =
            lb_fail(err, LB_IO, "%s: this is not a file that can be read to its end", source->path);
    else if (status.st_size > 0) {
        void *bytes =
            mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        if (bytes == MAP_FAILED) {
            st = lb_fail(err, LB_IO, "%s: %s", source->path, strerror(errno));
        } else {
            source->bytes = bytes;
            source->size = (size_t)status.st_size;
        }
    }
    close(file);
    return st;
}

static void close_source(struct source *source)
{
    json_decref(source->header);
    if (source->bytes)
        munmap(source->bytes, source->size);
}

/* Returns LB_INVALID with a message that names the byte. */
__attribute__((format(printf, 4, 5))) static enum lb_status
wrong(const struct source *source, size_t byte, struct lb_error *err, const char *format, ...)
{
    char what[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return lb_fail(err, LB_INVALID, "%s: byte %zu: %s", source->path, byte, what);
}

/* Finds the header by its length, which has so many bytes at that place, little-endian. */
static enum lb_status find_header(struct source *source, size_t at, size_t bytes,
                                  struct lb_error *err)
{
    uint64_t length = 0;
    if (source->size < at + bytes)
        return wrong(source, source->size, err, "it ends within the header's length");
    for (size_t i = bytes; i-- > 0;)
        length = length << 8 | source->bytes[at + i];
    source->header_at = at + bytes;
    if (length > MOST_HEADER)
        return wrong(source, at, err, "a header of %" PRIu64 " bytes is none of this format",
                     length);
    if (length > source->size - source->header_at)
        return wrong(source, source->size, err,
                     "it ends within the header, which has %" PRIu64 " bytes", length);
    source->header_end = source->header_at + (size_t)length;
    return LB_OK;
}

/* Reads the header, which must be a JSON object; `format` names it in messages. */
static enum lb_status load_header(struct source *source, const char *format, struct lb_error *err)
{
    json_error_t why;
    source->header =
        json_loadb((const char *)source->bytes + source->header_at,
                   source->header_end - source->header_at, JSON_REJECT_DUPLICATES, &why);
    if (json_is_object(source->header))
        return LB_OK;
    if (source->header)
        return wrong(source, source->header_at, err, "the header is not %s", format);
    return wrong(source, source->header_at + (size_t)(why.position > 0 ? why.position - 1 : 0), err,
                 "the header is not %s: %.200s", format, why.text);
}

/* ---- .npy ---------------------------------------------------------------------------------------
 */

static const unsigned char magic[VERSION_AT] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* Reads the bytes before the header, and finds the header. */
static enum lb_status read_preamble(struct source *source, struct lb_error *err)
{
    for (size_t i = 0; i < VERSION_AT; i++)
        if (i >= source->size || source->bytes[i] != magic[i])
            return wrong(
                source, i, err,
                "this is not a .npy file, which begins with \\x93NUMPY; numpy.save makes one");
    if (source->size <= VERSION_AT + 1)
        return wrong(source, source->size, err, "it ends within its version");
    if (source->bytes[VERSION_AT] < 1 || source->bytes[VERSION_AT] > 3)
        return wrong(source, VERSION_AT, err, "version %d of the format; 1 to 3 are read",
                     source->bytes[VERSION_AT]);
    return find_header(source, LENGTH_AT, source->bytes[VERSION_AT] == 1 ? 2 : 4, err);
}

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

/* Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5), }, whose keys may have any
 * order. */
static enum lb_status read_dict(struct source *source, struct lb_error *err)
{
    static const char *const types[] = {[LB_F64] = "<f8", [LB_F32] = "<f4", [LB_F16] = "<f2"};
    char *text = (char *)source->bytes + source->header_at;
    make_json(text, source->header_end - source->header_at);
    LB_CHECK(load_header(source, "a Python dict", err));
    const json_t *shape = json_object_get(source->header, "shape");
    const char *descr = json_string_value(json_object_get(source->header, "descr"));
    size_t type = 0;
    while (type <= LB_F16 && strcmp(types[type], descr ? descr : "") != 0)
        type++;
    if (type > LB_F16)
        return wrong(source, source->header_at, err,
                     "elements of type %.20s; little-endian f64, f32 and f16 are read, which are "
                     "<f8, <f4 and <f2",
                     descr ? descr : "(none)");
    source->dtype = (enum lb_dtype)type;
    if (!json_is_false(json_object_get(source->header, "fortran_order")))
        return wrong(source, source->header_at, err,
                     "fortran_order must be False; save numpy.ascontiguousarray of the array");
    if (json_array_size(shape) != AXES)
        return wrong(source, source->header_at, err,
                     "a shape of %zu axes; three are needed, [T, B, I] or [B, T, I]",
                     json_array_size(shape));
    for (size_t i = 0; i < AXES; i++) {
        source->shape[i] = json_integer_value(json_array_get(shape, i));
        if (source->shape[i] < 1 || source->shape[i] > INT32_MAX)
            return wrong(source, source->header_at, err, "a size of the shape must be 1 to %d",
                         INT32_MAX);
    }
    return LB_OK;
}

/* Checks that the data have the size that the shape gives. *count: the number of elements. */
static enum lb_status check_size(const struct source *source, size_t *count, struct lb_error *err)
{
    size_t size = lb_dtype_size(source->dtype), there = source->size - source->header_end;
    double elements =
        (double)source->shape[0] * (double)source->shape[1] * (double)source->shape[2];
    *count = 0;
    if (elements * (double)size < 0x1p53)
        *count = (size_t)elements;
    if (*count == 0 || *count > there / size)
        return wrong(source, source->size, err,
                     "it ends within the data: %.0f bytes of %.0f are there", (double)there,
                     elements * (double)size);
    if (there > *count * size)
        return wrong(source, source->header_end + *count * size, err,
                     "the data end here by the shape, and %zu bytes more are there",
                     there - *count * size);
    return LB_OK;
}

/* Converts the data to [T, B, width]. */
static enum lb_status take_values(const struct source *source, bool batch_first,
                                  struct lb_sequence_file *file, struct lb_error *err)
{
    size_t size = lb_dtype_size(source->dtype), W = (size_t)file->width, count;
    size_t T = (size_t)file->seq_len, B = (size_t)file->batch;
    LB_CHECK(check_size(source, &count, err));
    file->values = malloc(count * sizeof(double));
    if (!file->values)
        return lb_fail(err, LB_OOM, "%s: out of memory for %zu elements", source->path, count);
    for (size_t i = 0; i < count; i++) {
        size_t row = i / W, t = row / B, b = row % B;
        size_t from = ((batch_first ? b * T + t : row) * W + i % W) * size;
        double element; /* a copy, because the data in the file need not be aligned */
        memcpy(&element, source->bytes + source->header_end + from, size);
        lb_load(source->dtype, &element, &file->values[i], 1);
        if (!isfinite(file->values[i]))
            return wrong(source, source->header_end + from, err,
                         "the element of t %zu, b %zu, column %zu is not finite", t, b, i % W);
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
    struct lb_sequence_file *file = calloc(1, sizeof(*file));
    enum lb_status st = LB_OK;
    *out = NULL;
    if (!file)
        return lb_fail(err, LB_OOM, "out of memory");
    LB_TRY(open_source(&source, err));
    LB_TRY(read_preamble(&source, err));
    LB_TRY(read_dict(&source, err));
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
    return written ? LB_OK : lb_fail(err, LB_IO, "%s: writing failed", path);
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

bool lb_inputs_fit(const struct lb_sequence_file *file, const struct lb_problem *problem)
{
    return file->seq_len == problem->seq_len && file->batch == problem->batch &&
           file->width == problem->input;
}

/* ---- safetensors --------------------------------------------------------------------------------
 */

/* One tensor of the file. */
struct tensor {
    enum lb_dtype dtype;
    size_t dimensions;
    int64_t shape[2];
    const unsigned char *data;
};

static const char *const kind_names[LB_W_CELL] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};

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
    if ((uint64_t)end > source->size - source->header_end)
        return wrong(source, source->size, err,
                     "it ends within tensor %s, whose data end at byte %llu", name,
                     (unsigned long long)source->header_end + (unsigned long long)end);
    tensor->data = source->bytes + source->header_end + begin;
    return LB_OK;
}

struct extent {
    json_int_t begin, end;
};

static int by_begin(const void *a, const void *b)
{
    const struct extent *p = a, *q = b;
    return p->begin != q->begin ? (p->begin > q->begin) - (p->begin < q->begin)
                                : (p->end > q->end) - (p->end < q->end);
}

/* Checks that the tensors of the file cover its data without a gap and without sharing a byte, as
 * the format demands. */
static enum lb_status check_extents(const struct source *source, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t count = 0;
    json_int_t at = 0, data = (json_int_t)(source->size - source->header_end);
    const char *name;
    json_t *tensor;
    struct extent *extents = calloc(json_object_size(source->header) + 1, sizeof(*extents));
    if (!extents)
        return lb_fail(err, LB_OOM, "%s: out of memory", source->path);
    json_object_foreach(source->header, name, tensor)
    {
        const json_t *offsets = json_object_get(tensor, "data_offsets");
        if (json_array_size(offsets) == 2) /* not of "__metadata__" */
            extents[count++] = (struct extent){json_integer_value(json_array_get(offsets, 0)),
                                               json_integer_value(json_array_get(offsets, 1))};
    }
    qsort(extents, count, sizeof(*extents), by_begin);
    for (size_t i = 0; i < count && st == LB_OK; at = extents[i++].end)
        if (extents[i].begin != at || extents[i].end < at)
            st = wrong(source, source->header_end, err,
                       "the data of a tensor begin at %lld of the data, where those before it end "
                       "at %lld",
                       (long long)extents[i].begin, (long long)at);
    if (st == LB_OK && at < data)
        st = wrong(source, source->header_end + (size_t)at, err,
                   "%lld bytes follow that belong to no tensor", (long long)(data - at));
    free(extents);
    return st;
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
    struct tensor tensor;
    bool found;
    tensor_name(source, LB_W_IH, 0, 0, name, sizeof(name));
    LB_CHECK(find_tensor(source, name, &found, &tensor, err));
    if (!found && source->prefix[0]) { /* "encoder.lstm" may stand for "encoder.lstm." */
        source->dot = ".";
        tensor_name(source, LB_W_IH, 0, 0, name, sizeof(name));
        LB_CHECK(find_tensor(source, name, &found, &tensor, err));
    }
    if (!found)
        return no_lstm(source, name, err);
    if (tensor.dimensions != 2 || tensor.shape[0] % 4 != 0)
        return lb_fail(err, LB_INVALID, "%s: tensor %s: its shape must be [4H, I]", source->path,
                       name);
    file->hidden = tensor.shape[0] / 4;
    file->input = tensor.shape[1];
    tensor_name(source, LB_W_IH, 0, 1, name, sizeof(name));
    LB_CHECK(find_tensor(source, name, &found, &tensor, err));
    file->directions = found ? 2 : 1;
    for (file->layers = 1, found = true; found && file->layers < MOST_LAYERS; file->layers++) {
        tensor_name(source, LB_W_IH, file->layers, 0, name, sizeof(name));
        LB_CHECK(find_tensor(source, name, &found, &tensor, err));
    }
    file->layers--;
    return LB_OK;
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
    LB_CHECK(find_tensor(source, name, &found, &tensor, err));
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
    struct source source = {.path = path, .prefix = prefix, .dot = ""};
    struct lb_weights_file *file = calloc(1, sizeof(*file));
    enum lb_status st = LB_OK;
    *out = NULL;
    if (!file)
        return lb_fail(err, LB_OOM, "out of memory");
    LB_TRY(open_source(&source, err));
    LB_TRY(find_header(&source, 0, 8, err));
    LB_TRY(load_header(&source, "a JSON object", err));
    LB_TRY(find_sizes(&source, file, err));
    size_t layer_dirs = (size_t)(file->layers * file->directions);
    for (int kind = 0; kind < LB_W_CELL; kind++) {
        file->values[kind] = calloc(layer_dirs, sizeof(double *));
        if (!file->values[kind])
            LB_TRY(lb_fail(err, LB_OOM, "out of memory"));
        for (size_t layer_dir = 0; layer_dir < layer_dirs; layer_dir++)
            LB_TRY(take_tensor(&source, file, (enum lb_weight)kind, layer_dir, err));
    }
    LB_TRY(check_extents(&source, err));
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
