/* Runs whole cases of a GPU implementation on the fake device. */
#include "tests/fake_gpu/gpu_case.h"
#include "tests/fake_gpu/queue.h"
#include "tests/helpers/test.h"

void gpu_case_run(const struct lb_impl *impl, const char *text, double loss_scale, bool dynamic,
                  struct lb_row *row)
{
    struct lb_run_options options = {.seed = 7,
                                     .sampler = lb_sampler_defaults(),
                                     .cache = trial_cache,
                                     .loss_scale = loss_scale,
                                     .dynamic_loss_scale = dynamic};
    options.sampler.min_samples = options.sampler.max_samples = 2;
    fake_device_install(FAKE_NONE);
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
    trial_case_run(impl, text, &options, row);
    assert_int_equal(fake_device_counts()->allocations, 0);
}

void gpu_case_run_ok(const struct lb_impl *impl, const char *text, struct lb_row *row)
{
    gpu_case_run(impl, text, 1, false, row);
    if (row->verdict != LB_VERDICT_OK)
        fail_msg("%s: %s: %s", text, lb_verdict_name(row->verdict), row->reason);
}

/* Whether the case fails in some order of the streams when the nth of these waits is left out. */
static bool is_needed(const struct lb_impl *impl, const struct gpu_case_waits *waits, int nth)
{
    bool needed = false;
    fake_streams_leave_out(waits->which, waits->call, nth);
    for (int order = 0; order < FAKE_ORDER_COUNT && !needed; order++) {
        struct lb_row row;
        fake_queue_order((enum fake_order)order);
        gpu_case_run(impl, waits->text, 1, false, &row);
        needed = row.verdict == LB_VERDICT_WRONG || row.verdict == LB_VERDICT_ERROR;
        lb_row_free(&row);
    }
    fake_streams_leave_out(FAKE_NO_WAIT, FAKE_FORWARD, 0);
    return needed;
}

void gpu_case_expect_waits_needed(const struct lb_impl *impl, const struct gpu_case_waits *waits,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int nth = 0; nth < waits[i].count; nth++)
            if (!is_needed(impl, &waits[i], nth))
                fail_msg("%s is right without wait %d of line %zu", waits[i].text, nth, i);
}
