/* Sequences from a file in NumPy's .npy format. */
#include "model/sequence_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/given_files.h"
#include "model/file_bytes.h"

enum { AXES = 3, VERSION_AT = 6, LENGTH_AT = 8 };

static const unsigned char magic[VERSION_AT] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* The bytes of a file, and the position in them. */
struct source {
    const char *path;
    unsigned char *bytes;
    size_t size;
    size_t at, header_end;
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

/* Reads the bytes before the header, and sets `at` and `header_end` to the bounds of the header. */
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
    source->at = LENGTH_AT + bytes;
    if (length > source->size - source->at)
        return wrong(source, source->size, err,
                     "it ends within the header, which has %zu bytes by byte %d", length,
                     LENGTH_AT);
    source->header_end = source->at + length;
    return LB_OK;
}

/* Returns the next character of the header that is not a space; '\0' at its end. */
static char next_character(struct source *source)
{
    while (source->at < source->header_end && strchr(" \t\r\n", source->bytes[source->at]) &&
           source->bytes[source->at])
        source->at++;
    return source->at < source->header_end ? (char)source->bytes[source->at] : '\0';
}

static enum lb_status expect(struct source *source, char character, struct lb_error *err)
{
    if (next_character(source) != character)
        return wrong(source, source->at, err, "'%c' is expected here in the header", character);
    source->at++;
    return LB_OK;
}

/* Reads a text in quotes. LB_INVALID also when it does not fit into text [size]. */
static enum lb_status read_text(struct source *source, char *text, size_t size,
                                struct lb_error *err)
{
    char quote = next_character(source);
    size_t length = 0, begin = source->at;
    if (quote != '\'' && quote != '"')
        return wrong(source, begin, err, "a text in quotes is expected here in the header");
    for (source->at++; source->at < source->header_end; source->at++) {
        char character = (char)source->bytes[source->at];
        if (character == quote) {
            text[length] = '\0';
            source->at++;
            return LB_OK;
        }
        if (length + 1 == size || character < ' ' || character > '~')
            break;
        text[length++] = character;
    }
    return wrong(source, begin, err, "this text in the header is not one that the format allows");
}

static enum lb_status read_descr(struct source *source, struct lb_error *err)
{
    static const struct {
        const char *descr;
        enum lb_dtype dtype;
    } types[] = {{"<f8", LB_F64}, {"<f4", LB_F32}, {"<f2", LB_F16}};
    char descr[32];
    next_character(source);
    size_t begin = source->at;
    if (source->at < source->header_end && source->bytes[source->at] == '[')
        return wrong(source, begin, err, "the elements are records; f64, f32 and f16 are read");
    enum lb_status st = read_text(source, descr, sizeof(descr), err);
    for (size_t i = 0; st == LB_OK && i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].descr, descr) == 0) {
            source->dtype = types[i].dtype;
            return LB_OK;
        }
    return st != LB_OK
               ? st
               : wrong(source, begin, err,
                       "elements of type %s; little-endian f64, f32 and f16 are read, which are "
                       "<f8, <f4 and <f2",
                       descr);
}

static enum lb_status read_order(struct source *source, struct lb_error *err)
{
    next_character(source);
    size_t left = source->header_end - source->at;
    const unsigned char *at = source->bytes + source->at;
    if (left >= 4 && memcmp(at, "True", 4) == 0)
        return wrong(source, source->at, err,
                     "the array is in Fortran order; save numpy.ascontiguousarray of it");
    if (left < 5 || memcmp(at, "False", 5) != 0)
        return wrong(source, source->at, err, "fortran_order must be False");
    source->at += 5;
    return LB_OK;
}

static enum lb_status read_shape(struct source *source, struct lb_error *err)
{
    enum lb_status st = expect(source, '(', err);
    size_t begin = source->at;
    int axes = 0;
    for (char character; st == LB_OK && (character = next_character(source)) != ')'; axes++) {
        int64_t size = 0;
        size_t first = source->at;
        for (; character >= '0' && character <= '9' && size <= INT32_MAX;
             character = source->at < source->header_end ? (char)source->bytes[source->at] : '\0') {
            size = 10 * size + (character - '0');
            source->at++;
        }
        if (source->at == first)
            return wrong(source, first, err, "a size or ')' is expected here in the shape");
        if (size < 1 || size > INT32_MAX)
            return wrong(source, first, err, "a size of the shape must be 1 to %d", INT32_MAX);
        if (axes < AXES)
            source->shape[axes] = size;
        if (next_character(source) != ')')
            st = expect(source, ',', err);
    }
    if (st == LB_OK && axes != AXES)
        st = wrong(source, begin, err,
                   "a shape of %d axes; three are needed, [T, B, I] or [B, T, I]", axes);
    source->at++;
    return st;
}

/* Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5), }. Keys may have any order,
 * and each must be there once. */
static enum lb_status read_header(struct source *source, struct lb_error *err)
{
    static const struct {
        const char *key;
        enum lb_status (*read)(struct source *, struct lb_error *);
    } keys[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
    enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
    bool seen[KEYS] = {false};
    char key[32];
    enum lb_status st = LB_OK;
    LB_TRY(expect(source, '{', err));
    while (next_character(source) != '}') {
        size_t begin = source->at, k = 0;
        LB_TRY(read_text(source, key, sizeof(key), err));
        while (k < KEYS && strcmp(keys[k].key, key) != 0)
            k++;
        if (k == KEYS || seen[k])
            return wrong(source, begin, err, "the key %s is %s", key,
                         k == KEYS ? "none of the format's" : "there twice");
        seen[k] = true;
        LB_TRY(expect(source, ':', err));
        LB_TRY(keys[k].read(source, err));
        if (next_character(source) != '}')
            LB_TRY(expect(source, ',', err));
    }
    for (size_t k = 0; k < KEYS; k++)
        if (!seen[k])
            return wrong(source, source->at, err, "the header ends without %s", keys[k].key);
    source->at++;
    if (next_character(source) != '\0' || source->at < source->header_end)
        return wrong(source, source->at, err, "the header goes on behind its '}'");
done:
    return st;
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

static void hash_word(struct lb_sequence_file *file, uint64_t word)
{
    file->hash = (file->hash ^ word) * 0x100000001b3u; /* FNV-1a on words instead of bytes */
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
        uint64_t bits;
        memcpy(&element, source->bytes + source->header_end + from, size);
        lb_load(source->dtype, &element, &file->values[i], 1);
        if (!isfinite(file->values[i]))
            return wrong(source, source->header_end + from, err,
                         "the element of t %zu, b %zu, column %zu is not finite", t, b, i % W);
        file->max_abs = fmax(file->max_abs, fabs(file->values[i]));
        memcpy(&bits, &file->values[i], sizeof(bits));
        hash_word(file, bits);
    }
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
    file->hash = 0xcbf29ce484222325u;
    hash_word(file, (uint64_t)file->seq_len);
    hash_word(file, (uint64_t)file->batch);
    LB_TRY(take_values(&source, batch_first, file, err));
    *out = file;
done:
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
