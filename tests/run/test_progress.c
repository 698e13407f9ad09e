/* The line of progress, where more rounds end than were planned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/progress.h"

/* Writes the line that lb_progress_case shows into line [size]. */
static void show(struct lb_progress *progress, char *line, size_t size)
{
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_non_null(file);
    fflush(stderr);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    lb_progress_case(progress, "the case");
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    size_t length = fread(line, 1, size - 1, file);
    line[length] = '\0';
    fclose(file);
}

/* Other devices run again what a lost device has run of a problem, so more rounds end than are
 * planned. */
static void more_rounds_than_planned_do_not_make_the_time_left_absurd(void **state)
{
    struct lb_progress progress;
    char line[256];
    (void)state;
    lb_progress_start(&progress, 2);
    progress.terminal = false;
    progress.start_ns = lb_now_ns() - 2e9; /* a second per round */
    for (int i = 0; i < 2; i++)
        lb_progress_done(&progress, false, false);
    progress.last_ns = lb_now_ns() - 1e12; /* long ago, so that a line is due */
    show(&progress, line, sizeof(line));
    assert_string_equal(line, "[3/3, 0:01 left] the case\n");
    lb_progress_done(&progress, false, false);
    progress.last_ns = lb_now_ns() - 1e12; /* long ago, so that a line is due */
    show(&progress, line, sizeof(line));
    assert_string_equal(line, "[4/4, 0:01 left] the case\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_rounds_than_planned_do_not_make_the_time_left_absurd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
