/* Weights from a safetensors file: what is read, and what the message about a made-up or damaged
 * file names. */
#include <time.h>
#include <unistd.h>

#include "model/tensor_files.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

/* Writes a file: the header's length, the header, floats 0, 1, 2, ... */
static const char *make(const char *header, size_t floats)
{
    char bytes[1024];
    size_t length = strlen(header);
    assert_true(8 + length + 4 * floats <= sizeof(bytes));
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> (8 * i) & 255);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < floats; i++)
        memcpy(bytes + 8 + length + 4 * i, &(float){(float)i}, 4);
    return scratch_write_bytes("made.safetensors", bytes, 8 + length + 4 * floats);
}

static void refused(const char *path, const char *prefix, const char *said)
{
    struct lb_weights_file *file;
    struct lb_error err = {""};
    assert_int_equal(lb_weights_file_read(path, prefix, &file, &err), LB_INVALID);
    assert_null(file);
    if (!strstr(err.text, said))
        fail_msg("'%s' was expected in '%s'", said, err.text);
}

/* H 1, I 2: w_ih 8 floats, w_hh 4, b_ih 4; no b_hh. */
#define SMALL_BY(who)                                                                  \
    "{\"e.weight_ih_l0\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[0,32]}," \
    "\"e.weight_hh_l0\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[32,48]}," \
    "\"e.bias_ih_l0\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[48,64]},"     \
    "\"__metadata__\":{\"by\":\"" who "\"}}"
#define SMALL SMALL_BY("a test")

TEST_WITH(sizes_and_values_are_read, scratch_setup, scratch_teardown)
{
    struct lb_weights_file *file;
    struct lb_error err = {""};
    if (lb_weights_file_read(make(SMALL, 16), "e.", &file, &err) != LB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(file->input, 2);
    assert_int_equal(file->hidden, 1);
    assert_int_equal(file->layers, 1);
    assert_int_equal(file->directions, 1);
    assert_true(file->values[LB_W_IH][0][7] == 7);
    assert_true(file->values[LB_W_HH][0][0] == 8);
    assert_true(file->values[LB_B_IH][0][3] == 15);
    assert_true(file->values[LB_B_HH][0][3] == 0); /* missing biases are zero */
    uint64_t hash = file->hash;
    lb_weights_file_free(file);
    const char *other = make(SMALL_BY("another"), 16);
    assert_int_equal(lb_weights_file_read(other, "e", &file, &err), LB_OK); /* for "e." */
    assert_true(file->hash == hash); /* of the tensors, not of what lies beside them */
    lb_weights_file_free(file);
}

/* What is not used of a file is not read: it has 10 GB of zeros between its tensors. */
TEST_WITH(a_large_file_is_read_where_it_has_the_tensors, scratch_setup, scratch_teardown)
{
    static const long long hole = 10LL << 30;
    struct lb_weights_file *file;
    struct lb_error err = {""};
    char header[512];
    snprintf(header, sizeof(header),
             "{\"zeros\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,%lld]},"
             "\"weight_ih_l0\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[%lld,%lld]},"
             "\"weight_hh_l0\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[%lld,%lld]}}",
             hole, hole, hole + 16, hole + 16, hole + 32);
    const char *path = make(header, 0);
    assert_int_equal(truncate(path, 8 + (off_t)strlen(header) + hole + 32), 0);
    clock_t start = clock();
    if (lb_weights_file_read(path, "", &file, &err) != LB_OK)
        fail_msg("%s", err.text);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 1);
    lb_weights_file_free(file);
}

TEST_WITH(a_damaged_file_is_named, scratch_setup, scratch_teardown)
{
    refused(make(SMALL, 15), "e.", "but its shape takes 16 bytes, and the file has 60 of data");
    refused(make("{\"a\": }", 0), "", "the header is not a JSON object");
    refused(make("[]", 0), "", "the header is not a JSON object");
    static const char *const others[] = {"abc", "this is a text, and no file of tensors", "\x80{"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        refused(scratch_write("other", others[i]), "", "it ends within its header");
}

/* A header of one tensor. */
#define W_IH(dtype, shape, offsets)                                   \
    "{\"weight_ih_l0\":{\"dtype\":\"" dtype "\",\"shape\":" shape "," \
    "\"data_offsets\":" offsets "}}"

TEST_WITH(tensors_that_do_not_fit_are_named, scratch_setup, scratch_teardown)
{
    refused(make(SMALL, 16), "", "there is no tensor weight_ih_l0; --prefix may be 'e.'");
    refused(make("{}", 0), "", "none that ends in weight_ih_l0");
    refused(make(W_IH("F32", "[4,2]", "[0,32]"), 8), "", "there is no tensor weight_hh_l0");
    refused(make(W_IH("F32", "[4,2]", "[0,31]"), 8), "",
            "data_offsets 0 to 31, but its shape takes 32 bytes");
    refused(make(W_IH("I64", "[4,2]", "[0,64]"), 16), "", "dtype I64");
    refused(make(W_IH("F32", "[5,2]", "[0,40]"), 16), "", "its shape must be [4H, I]");
    refused(make("{\"weight_ih_l0\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[0,16]},"
                 "\"weight_hh_l0\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[0,32]}}",
                 16),
            "", "weight_hh_l0: its shape must be [4, 1]");
}
