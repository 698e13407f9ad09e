/* Sequences from a .npy file: what is read, and what the message about a made-up or damaged file
 * says. */
#include <unistd.h>

#include "model/tensor_files.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

#define HEADER "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 1), }"

/* Writes a file of version 1: the bytes before the header, the header, the data. */
static const char *make(const char *header, const void *data, size_t size)
{
    char bytes[256] = "\x93NUMPY\1\0";
    size_t length = strlen(header);
    assert_true(10 + length + size <= sizeof(bytes));
    bytes[8] = (char)length;
    memcpy(bytes + 10, header, length);
    if (size > 0)
        memcpy(bytes + 10 + length, data, size);
    return scratch_write_bytes("made.npy", bytes, 10 + length + size);
}

static const float six[6] = {0, 1, 2, 3, 4, -5};

static struct lb_sequence_file *read_file(const char *path, bool batch_first)
{
    struct lb_sequence_file *file;
    struct lb_error err = {""};
    if (lb_sequence_file_read(path, batch_first, &file, &err) != LB_OK)
        fail_msg("%s", err.text);
    return file;
}

TEST_WITH(both_orders_are_read, scratch_setup, scratch_teardown)
{
    struct lb_sequence_file *steps = read_file(make(HEADER, six, sizeof(six)), false);
    assert_true(steps->seq_len == 2 && steps->batch == 3 && steps->width == 1);
    for (int i = 0; i < 6; i++)
        assert_true(steps->values[i] == (double)six[i]);
    assert_true(steps->max_abs == 5);
    struct lb_sequence_file *rows = read_file(make(HEADER, six, sizeof(six)), true);
    assert_true(rows->seq_len == 3 && rows->batch == 2 && rows->width == 1);
    const double turned[6] = {0, 3, 1, 4, 2, -5};
    for (int i = 0; i < 6; i++)
        assert_true(rows->values[i] == turned[i]);
    assert_true(rows->hash != steps->hash);
    lb_sequence_file_free(rows);
    lb_sequence_file_free(steps);
}

TEST_WITH(each_type_is_read, scratch_setup, scratch_teardown)
{
    const double wide[2] = {1.0 / 3, -2};
    struct lb_sequence_file *file = read_file(
        make("{\"shape\":(1,1,2),\"fortran_order\":False,\"descr\":\"<f8\"}\n", wide, sizeof(wide)),
        false);
    assert_int_equal(file->dtype, LB_F64);
    assert_true(file->values[0] == 1.0 / 3 && file->values[1] == -2);
    lb_sequence_file_free(file);
    const uint16_t narrow[2] = {0x3c00, 0xc000};
    file = read_file(
        make("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 1, 1), }", narrow, 4), false);
    assert_int_equal(file->dtype, LB_F16);
    assert_true(file->values[0] == 1 && file->values[1] == -2);
    lb_sequence_file_free(file);
}

TEST_WITH(what_was_written_is_read_back, scratch_setup, scratch_teardown)
{
    const double values[6] = {1.0 / 3, -1e300, 5e-324, 0, 4, -5};
    struct lb_error err = {""};
    const char *path = scratch_path("written.npy");
    assert_int_equal(lb_sequence_file_write(path, 2, 1, 3, values, &err), LB_OK);
    struct lb_sequence_file *file = read_file(path, false);
    assert_true(file->seq_len == 2 && file->batch == 1 && file->width == 3);
    assert_memory_equal(file->values, values, sizeof(values));
    lb_sequence_file_free(file);
    assert_int_equal(lb_sequence_file_write("/dev/full", 2, 1, 3, values, &err), LB_IO);
    assert_string_equal(err.text, "/dev/full: No space left on device");
}

static void refused(const char *path, const char *said)
{
    struct lb_sequence_file *file;
    struct lb_error err = {""};
    assert_int_equal(lb_sequence_file_read(path, false, &file, &err), LB_INVALID);
    assert_null(file);
    if (!strstr(err.text, said))
        fail_msg("'%s' was expected in '%s'", said, err.text);
}

TEST_WITH(a_made_up_header_is_refused, scratch_setup, scratch_teardown)
{
    static const struct {
        const char *header, *said;
    } refusals[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3, 1), }", "elements of type >f4"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }",
         "elements of type (none)"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 1), }",
         "fortran_order must be False; save numpy.ascontiguousarray"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3, 1), }", "fortran_order must be"},
        {"{'descr': '<f4', 'order': False, 'shape': (2, 3, 1), }", "fortran_order must be"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "a shape of 2 axes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 6, }", "a shape of 0 axes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0, 3), }", "must be 1 to"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999, 3), }",
         "must be 1 to"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -1, 3), }", "must be 1 to"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3; 1), }",
         "the header is not a Python dict"},
        {"[2]", "the header is not a Python dict: it is no object"},
        {"{descr: '<f4'}", "the header is not a Python dict"},
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        refused(make(refusals[i].header, six, sizeof(six)), refusals[i].said);
}

TEST_WITH(data_of_another_size_than_the_shape_are_refused, scratch_setup, scratch_teardown)
{
    float seven[7] = {0};
    refused(make(HEADER, seven, sizeof(seven)),
            "the shape takes 24 bytes of data, and 28 are there");
    refused(make(HEADER, "text", 4), "the shape takes 24 bytes of data, and 4 are there");
    refused(make(HEADER, NULL, 0), "the shape takes 24 bytes of data, and 0 are there");
    const char *path = make(HEADER, NULL, 0);
    assert_int_equal(truncate(path, 20), 0);
    refused(path, "it ends within its header");
    assert_int_equal(truncate(path, 9), 0);
    refused(path, "it ends within its header");
}

TEST_WITH(what_is_no_number_is_named_with_its_place, scratch_setup, scratch_teardown)
{
    float values[6] = {0, 1, 2, 3, 4, 5};
    memset(&values[4], 0xff, sizeof(values[4]));
    refused(make(HEADER, values, sizeof(values)),
            "the element of t 1, b 1, column 0 is not finite");
}

TEST_WITH(another_file_is_named, scratch_setup, scratch_teardown)
{
    static const char *const others[] = {"PK\3\4 as numpy.savez makes it", "\x93NUMPY\4 ", "x"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        refused(scratch_write("other", others[i]), "this is not a .npy file of version 1 to 3");
    struct lb_sequence_file *none;
    assert_int_equal(lb_sequence_file_read(scratch_path("missing"), false, &none, NULL), LB_IO);
    assert_int_equal(lb_sequence_file_read("/", false, &none, NULL), LB_IO);
}
