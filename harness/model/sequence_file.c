/* Sequences from a file in NumPy's .npy format. */
#include "model/sequence_file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/given_files.h"
#include "base/hash.h"
#include "model/file_bytes.h"

enum { AXES = 3, VERSION_AT = 6, LENGTH_AT = 8 };

static const unsigned char magic[VERSION_AT] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* The bytes of a file, and what its header says. */
struct source {
    const char *path;
    unsigned char *bytes;
    size_t size;
    json_t *header;
    size_t header_at, header_end;
    enum lb_dtype dtype;
    int64_t shape[AXES];
};

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

/* Reads the bytes before the header, and finds the header. */
static enum lb_status read_preamble(struct source *source, struct lb_error *err)
{
    size_t length = 0, bytes;
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
    bytes = source->bytes[VERSION_AT] == 1 ? 2 : 4;
    if (source->size < LENGTH_AT + bytes)
        return wrong(source, source->size, err, "it ends within the header's length");
    for (size_t i = bytes; i-- > 0;)
        length = length << 8 | source->bytes[LENGTH_AT + i];
    source->header_at = LENGTH_AT + bytes;
    if (length > source->size - source->header_at)
        return wrong(source, source->size, err,
                     "it ends within the header, which has %zu bytes by byte %d", length,
                     LENGTH_AT);
    source->header_end = source->header_at + length;
    return LB_OK;
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
static enum lb_status read_header(struct source *source, struct lb_error *err)
{
    static const char *const types[] = {[LB_F64] = "<f8", [LB_F32] = "<f4", [LB_F16] = "<f2"};
    char *text = (char *)source->bytes + source->header_at;
    json_error_t why;
    make_json(text, source->header_end - source->header_at);
    source->header = json_loadb(text, source->header_end - source->header_at, 0, &why);
    if (!source->header)
        return wrong(source, source->header_at + (size_t)(why.position > 0 ? why.position - 1 : 0),
                     err, "the header is not a Python dict: %.200s", why.text);
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
    enum lb_status st = check_size(source, &count, err);
    if (st != LB_OK)
        return st;
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
    LB_TRY(lb_file_bytes(path, &source.bytes, &source.size, err));
    LB_TRY(read_preamble(&source, err));
    LB_TRY(read_header(&source, err));
    file->seq_len = source.shape[batch_first ? 1 : 0];
    file->batch = source.shape[batch_first ? 0 : 1];
    file->width = source.shape[2];
    file->dtype = source.dtype;
    LB_TRY(take_values(&source, batch_first, file, err));
    *out = file;
done:
    json_decref(source.header);
    free(source.bytes);
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
