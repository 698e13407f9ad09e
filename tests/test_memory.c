/* The host's memory: what its guard bands find, and what counts before anything is allocated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "case_probe.h"
#include "memory.h"
#include "meter.h"
#include "reference.h"
#include "registry.h"

extern const struct lb_impl lb_impl_cpu_ref;

static void pieces_are_aligned_and_untouched(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < 5000; bytes = 3 * bytes + 1) {
        void *memory;
        assert_int_equal(lb_host_space.allocate(bytes, &memory, NULL), LB_OK);
        assert_int_equal((uintptr_t)memory % 256, 0);
        memset(memory, 0, bytes);
        if (lb_host_space.overrun)
            assert_null(lb_host_space.overrun(memory));
        lb_host_space.release(memory);
    }
}

static void too_large_a_piece_is_refused(void **state)
{
    (void)state;
    struct lb_error err = {""};
    void *memory = &err;
    if (!lb_host_space.overrun) /* the sanitizer's allocator ends the process over it */
        skip();
    assert_int_equal(lb_host_space.allocate(SIZE_MAX - 100, &memory, &err), LB_OOM);
    assert_null(memory);
    assert_non_null(strstr(err.text, "EiB"));
}

/* One byte at a time, as far as the bands reach. */
static void a_byte_beside_a_piece_is_found(void **state)
{
    (void)state;
    enum { BYTES = 1000 };
    char *memory;
    if (!lb_host_space.overrun)
        skip();
    assert_int_equal(lb_host_space.allocate(BYTES, (void **)&memory, NULL), LB_OK);
    for (ptrdiff_t at = -256; at < BYTES + 4096; at++) {
        char was = memory[at];
        memory[at] = (char)(was ^ 1);
        const char *side = lb_host_space.overrun(memory);
        if (at >= 0 && at < BYTES)
            assert_null(side);
        else
            assert_string_equal(side, at < 0 ? "before its start" : "past its end");
        memory[at] = was;
        assert_null(lb_host_space.overrun(memory));
    }
    lb_host_space.release(memory);
}

static void weight_gradients_have_guard_bands(void **state)
{
    (void)state;
    struct lb_case c;
    struct lb_results results;
    if (!lb_host_space.overrun)
        skip();
    assert_int_equal(lb_case_parse("cpu_ref/T2_B1_H3/f32/train", &c, NULL, NULL, NULL), LB_OK);
    assert_int_equal(lb_results_create(&c.problem, &results, NULL), LB_OK);
    float *last = results.gradients.db_hh[0];
    assert_null(lb_host_space.overrun(results.gradients.dw_ih[0]));
    last[4 * 3] = 0;
    assert_non_null(lb_host_space.overrun(results.gradients.dw_ih[0]));
    lb_results_destroy(&results);
}

/* What is flushed before each sample is memory that a case needs. */
static void cold_caches_need_more_memory(void **state)
{
    (void)state;
    static const char *const texts[] = {"cpu_ref/T2_B1_H3/f32/infer",
                                        "cpu_ref/T2_B1_H3/f32/infer/cold"};
    for (size_t i = 0; i < 2; i++) {
        struct lb_case c;
        struct lb_error why = {""};
        assert_int_equal(lb_case_parse(texts[i], &c, NULL, NULL, NULL), LB_OK);
        double flush = (double)lb_meter_bytes(LB_HOST, i > 0), base = lb_case_bytes(&c.problem);
        assert_int_equal(flush > 0, i > 0);
        assert_int_equal(lb_case_supported(&lb_impl_cpu_ref, &c, base + flush, &why), LB_OK);
        assert_int_equal(lb_case_supported(&lb_impl_cpu_ref, &c, base + flush - 1, &why), LB_OOM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_untouched),
        cmocka_unit_test(too_large_a_piece_is_refused),
        cmocka_unit_test(a_byte_beside_a_piece_is_found),
        cmocka_unit_test(weight_gradients_have_guard_bands),
        cmocka_unit_test(cold_caches_need_more_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
