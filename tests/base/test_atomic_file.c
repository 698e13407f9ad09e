/* Files that are replaced as a whole, and paths that are not regular files. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

/* An lb_file_writer that writes the text `user`; with NULL it fails half-way. */
static enum lb_status write_text(FILE *out, const void *user, struct lb_error *err)
{
    fputs(user ? user : "half", out);
    return user ? LB_OK : lb_fail(err, LB_FAILED, "the planted failure");
}

static void expect_text(const char *path, const char *wanted)
{
    char *text = scratch_read(path, NULL);
    assert_string_equal(text, wanted);
    free(text);
}

static mode_t mode_of(const char *path)
{
    struct stat there;
    assert_int_equal(lstat(path, &there), 0);
    return there.st_mode;
}

/* The name under which this process writes "file" before it is complete. */
static const char *draft(void)
{
    static char name[64];
    snprintf(name, sizeof(name), "file.%ld.new", (long)getpid());
    return name;
}

static int enter_folder(void **state)
{
    return scratch_setup(state) == 0 && chdir(scratch_folder()) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
    return chdir("/") == 0 ? scratch_teardown(state) : -1;
}

TEST_WITH(a_failure_leaves_what_was_there, enter_folder, leave_folder)
{
    struct lb_error err;
    assert_int_equal(lb_write_file_atomically("file", write_text, "old", &err), LB_OK);
    assert_int_equal(lb_write_file_atomically("file", write_text, NULL, &err), LB_FAILED);
    assert_string_equal(err.text, "the planted failure");
    expect_text("file", "old");
    assert_int_equal(access(draft(), F_OK), -1);
    assert_int_equal(lb_write_file_atomically("none/file", write_text, "new", &err), LB_IO);
    assert_string_equal(err.text, "none/file: No such file or directory");
}

TEST_WITH(a_file_keeps_its_mode, enter_folder, leave_folder)
{
    assert_int_equal(lb_write_file_atomically("file", write_text, "old", NULL), LB_OK);
    assert_int_equal(chmod("file", 0600), 0);
    assert_int_equal(lb_write_file_atomically("file", write_text, "new", NULL), LB_OK);
    expect_text("file", "new");
    assert_int_equal(mode_of("file") & 07777, 0600);
}

TEST_WITH(a_link_stays_and_leads_to_the_new_file, enter_folder, leave_folder)
{
    assert_int_equal(symlink("file", "link"), 0);
    assert_int_equal(lb_write_file_atomically("link", write_text, "first", NULL),
                     LB_OK); /* none yet */
    expect_text("file", "first");
    assert_int_equal(lb_write_file_atomically("link", write_text, "second", NULL), LB_OK);
    expect_text("file", "second");
    assert_int_equal(lb_write_file_atomically("link", write_text, NULL, NULL), LB_FAILED);
    expect_text("file", "second");
    assert_true(S_ISLNK(mode_of("link")));
}

TEST_WITH(what_is_no_file_is_written_and_stays, enter_folder, leave_folder)
{
    char text[16] = "";
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(symlink("pipe", "link"), 0); /* as /dev/stdout may be */
    int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(lb_write_file_atomically("link", write_text, "through", NULL), LB_OK);
    assert_int_equal(read(reader, text, sizeof(text) - 1), 7);
    assert_string_equal(text, "through");
    close(reader);
    assert_true(S_ISLNK(mode_of("link")) && S_ISFIFO(mode_of("pipe")));
}
