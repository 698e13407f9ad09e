/* Messages between the program and its workers: each arrives as it was sent, and a damaged one is
 * refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/worker_messages.h"
#include "tests/helpers/synthetic_run.h"

static const char case_text[] = "cpu_ref/T3_B2_I4_H4/f32/train";

/* Through a line of text, as the channel sends it. Takes the message over. */
static json_t *travel(json_t *message)
{
    assert_non_null(message);
    char *line = json_dumps(message, JSON_COMPACT);
    assert_non_null(line);
    assert_null(strchr(line, '\n'));
    json_decref(message);
    json_t *arrived = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    free(line);
    assert_non_null(arrived);
    return arrived;
}

static void same_text(const char *a, const char *b)
{
    if (a && b)
        assert_string_equal(a, b);
    else
        assert_true(a == b);
}

static void a_figure_is_told_from_the_last_reply(void **state)
{
    (void)state;
    json_t *record;
    const char *figure, *failed;
    json_t *message = travel(lb_figure_encode(json_pack("{s:f}", "copy", 1.5), "copy", "a\nb"));
    assert_true(lb_figure_decode(message, &record, &figure, &failed));
    assert_true(json_real_value(json_object_get(record, "copy")) == 1.5);
    assert_string_equal(figure, "copy");
    assert_null(strchr(failed, '\n'));
    json_decref(message);
    message = travel(lb_device_reply_encode(json_object()));
    assert_false(lb_figure_decode(message, &record, &figure, &failed));
    json_decref(message);
}

static void every_request_arrives_as_it_was_sent(void **state)
{
    (void)state;
    const struct lb_sampler_options sampler = {
        .min_samples = 7, .max_samples = 5001, .precision = 0.0125, .max_ns = 2.5e9};
    const struct lb_request requests[] = {
        {.kind = LB_REQUEST_PLUGIN, .path = "/a folder/caf\xc3\xa9.so"},
        {.kind = LB_REQUEST_LIBRARY, .text = "onednn"},
        {.kind = LB_REQUEST_SUPPORTS, .text = case_text},
        {.kind = LB_REQUEST_PROBE, .text = case_text},
        {.kind = LB_REQUEST_RUN, .text = case_text, .seed = 3, .sampler = sampler},
        {.kind = LB_REQUEST_RUN,
         .path = "/x.so",
         .text = case_text,
         .seed = UINT64_MAX,
         .sampler = sampler,
         .memory_bytes = 0x1p40,
         .loss_scale = 1.5,
         .dynamic_loss_scale = true,
         .kernels = true},
        {.kind = LB_REQUEST_DEVICE},
        {.kind = LB_REQUEST_CEILINGS},
    };
    unsigned kinds = 0;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        const struct lb_request *sent = &requests[i];
        struct lb_request got;
        struct lb_error err = {""};
        json_t *message = travel(lb_request_encode(sent));
        if (lb_request_decode(message, &got, &err) != LB_OK)
            fail_msg("%s", err.text);
        assert_int_equal(got.kind, sent->kind);
        same_text(got.path, sent->path);
        same_text(got.text, sent->text);
        assert_true(got.seed == sent->seed);
        assert_int_equal(got.sampler.min_samples, sent->sampler.min_samples);
        assert_int_equal(got.sampler.max_samples, sent->sampler.max_samples);
        assert_true(got.sampler.precision == sent->sampler.precision);
        assert_true(got.sampler.max_ns == sent->sampler.max_ns);
        assert_true(got.memory_bytes == sent->memory_bytes);
        assert_true(got.loss_scale == sent->loss_scale);
        assert_int_equal(got.dynamic_loss_scale, sent->dynamic_loss_scale);
        assert_int_equal(got.kernels, sent->kernels);
        json_decref(message);
        kinds |= 1U << sent->kind;
    }
    assert_int_equal(kinds, (1U << LB_REQUEST_COUNT) - 1); /* none was forgotten above */
}

static void a_request_with_a_gap_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"op\":\"dance\"}",
        "{\"op\":\"plugin\"}",
        "{\"op\":\"probe\"}",
        "{\"op\":\"run\",\"case\":\"cpu_ref/T3_B2_H4\"}",
    };
    const struct lb_request run = {.kind = LB_REQUEST_RUN, .text = case_text};
    struct lb_request got;
    struct lb_error err = {""};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_t *message = json_loads(texts[i], 0, NULL);
        assert_int_equal(lb_request_decode(message, &got, &err), LB_INVALID);
        json_decref(message);
    }
    static const char *const keys[] = {
        "op",           "case",       "seed",    "min_samples", "precision",         "max_ns",
        "memory_bytes", "loss_scale", "kernels", "max_samples", "dynamic_loss_scale"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *message = lb_request_encode(&run);
        assert_int_equal(json_object_del(message, keys[i]), 0);
        assert_int_equal(lb_request_decode(message, &got, &err), LB_INVALID);
        json_decref(message);
    }
}

static void text_that_is_not_utf8_makes_no_request(void **state)
{
    (void)state;
    const struct lb_request request = {.kind = LB_REQUEST_PLUGIN, .path = "caf\xe9.so"};
    assert_null(lb_request_encode(&request));
}

static void a_status_keeps_its_reason_and_cleans_it(void **state)
{
    (void)state;
    struct lb_error sent = {"hidden \x1b[31m1100\xff is too large"}, got = {""};
    json_t *message = travel(lb_status_encode(LB_UNSUPPORTED, &sent));
    assert_int_equal(lb_status_decode(message, &got), LB_UNSUPPORTED);
    assert_string_equal(got.text, "hidden  [31m1100? is too large");
    json_decref(message);
    message = travel(lb_status_encode(LB_OK, &sent));
    assert_int_equal(lb_status_decode(message, &got), LB_OK);
    json_decref(message);
    message = travel(lb_phase_encode("sample"));
    assert_int_equal(lb_status_decode(message, &got), LB_FAILED); /* it has no status */
    json_decref(message);
}

static void a_plugin_arrives_as_it_describes_itself(void **state)
{
    (void)state;
    static const char *const names[] = {"auto", "fast", NULL};
    const struct lb_impl impl = {
        .name = "mine",
        .summary = "an \xff implementation",
        .memory = LB_DEVICE,
        .traits = LB_CAPTURABLE | LB_DETERMINISTIC,
        .variants = names,
    };
    struct lb_impl_entry got;
    char *variants[LB_VARIANTS_MAX + 1];
    struct lb_error err = {""};
    json_t *message = travel(lb_plugin_encode(&impl));
    assert_int_equal(lb_plugin_decode(message, &got, variants, &err), LB_OK);
    assert_string_equal(got.name, "mine");
    assert_string_equal(got.summary, "an ? implementation");
    assert_int_equal(got.memory, LB_DEVICE);
    assert_int_equal(got.traits, LB_CAPTURABLE | LB_DETERMINISTIC);
    assert_string_equal(got.variants[0], "auto");
    assert_string_equal(got.variants[1], "fast");
    assert_null(got.variants[2]);
    json_object_del(message, "name");
    assert_int_equal(lb_plugin_decode(message, &got, variants, &err), LB_FAILED);
    json_decref(message);
    const struct lb_impl plain = {.name = "plain", .summary = ""};
    message = travel(lb_plugin_encode(&plain));
    assert_int_equal(lb_plugin_decode(message, &got, variants, &err), LB_OK);
    assert_null(got.variants);
    json_decref(message);
}

static void a_probe_arrives_with_its_bytes(void **state)
{
    (void)state;
    const struct lb_probe sent = {{1, 2, 3, (size_t)1 << 40}, "tile 64x64", "a note"};
    struct lb_probe got = {0};
    struct lb_error err = {""};
    json_t *message = travel(lb_probe_encode(&sent));
    assert_int_equal(lb_probe_decode(message, &got, &err), LB_OK);
    assert_memory_equal(&got.sizes, &sent.sizes, sizeof(got.sizes));
    assert_string_equal(got.description, sent.description);
    assert_string_equal(got.note, sent.note);
    json_object_del(message, "reserve");
    assert_int_equal(lb_probe_decode(message, &got, &err), LB_FAILED);
    json_decref(message);
    const struct lb_error why = {"no room"};
    message = travel(lb_status_encode(LB_OOM, &why));
    assert_int_equal(lb_probe_decode(message, &got, &err), LB_OOM);
    assert_string_equal(err.text, "no room");
    json_decref(message);
}

static void a_device_arrives_with_its_record(void **state)
{
    (void)state;
    json_t *record = NULL;
    struct lb_error err = {""};
    json_t *message = travel(lb_device_reply_encode(json_pack("{s:s}", "name", "a GPU")));
    assert_int_equal(lb_device_reply_decode(message, &record, &err), LB_OK);
    json_decref(message);
    assert_string_equal(json_string_value(json_object_get(record, "name")), "a GPU");
    json_decref(record);
    const struct lb_error why = {"no driver"};
    message = travel(lb_status_encode(LB_ABSENT, &why));
    assert_int_equal(lb_device_reply_decode(message, &record, &err), LB_ABSENT);
    assert_null(record);
    json_decref(message);
}

static void every_event_of_a_run_arrives_as_it_was_sent(void **state)
{
    (void)state;
    struct lb_run_event event;
    struct lb_error err = {""};
    json_t *message = travel(lb_phase_encode("sample"));
    assert_int_equal(lb_run_event_decode(message, &event, &err), LB_OK);
    assert_int_equal(event.kind, LB_EVENT_PHASE);
    assert_string_equal(event.phase, "sample");
    json_decref(message);

    struct lb_row row = synthetic_row(case_text, LB_VERDICT_OK, 1e6, 1, 20);
    message = travel(lb_row_encode(&row));
    assert_int_equal(lb_run_event_decode(message, &event, &err), LB_OK);
    assert_int_equal(event.kind, LB_EVENT_ROW);
    assert_true(lb_case_same(&event.row.c, &row.c));
    assert_int_equal(event.row.samples, row.samples);
    assert_true(event.row.median_ns == row.median_ns);
    lb_row_free(&event.row);
    json_object_set_new(json_object_get(message, "row"), "verdict", json_string("splendid"));
    assert_int_equal(lb_run_event_decode(message, &event, &err), LB_INVALID);
    json_decref(message);
    lb_row_free(&row);

    for (int lost = 0; lost < 2; lost++) {
        message = travel(
            lb_done_encode(&(struct lb_run_event){.device_lost = lost != 0,
                                                  .left = lost ? "a thread" : "",
                                                  .peak_bytes = lost ? (double)NAN : 0x1p33,
                                                  .reference_ns = lost ? 7.5 : (double)NAN}));
        assert_int_equal(lb_run_event_decode(message, &event, &err), LB_OK);
        assert_int_equal(event.kind, LB_EVENT_DONE);
        assert_true(lost ? isnan(event.peak_bytes) : event.peak_bytes == 0x1p33);
        assert_int_equal(event.device_lost, lost);
        assert_string_equal(event.left, lost ? "a thread" : "");
        assert_true(lost ? event.reference_ns == 7.5 : isnan(event.reference_ns));
        json_decref(message);
    }
}

static void what_is_no_event_of_a_run_is_refused(void **state)
{
    (void)state;
    struct lb_run_event event;
    struct lb_error err = {""};
    const struct lb_error why = {"out of memory"};
    json_t *message = json_object();
    assert_int_equal(lb_run_event_decode(message, &event, &err), LB_FAILED);
    json_decref(message);
    message = travel(lb_status_encode(LB_FAILED, &why));
    assert_int_equal(lb_run_event_decode(message, &event, &err), LB_FAILED);
    assert_string_equal(err.text, "out of memory");
    json_decref(message);
    message = travel(lb_status_encode(LB_OK, NULL));
    assert_int_equal(lb_run_event_decode(message, &event, &err), LB_INVALID);
    json_decref(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_figure_is_told_from_the_last_reply),
        cmocka_unit_test(every_request_arrives_as_it_was_sent),
        cmocka_unit_test(a_request_with_a_gap_is_refused),
        cmocka_unit_test(text_that_is_not_utf8_makes_no_request),
        cmocka_unit_test(a_status_keeps_its_reason_and_cleans_it),
        cmocka_unit_test(a_plugin_arrives_as_it_describes_itself),
        cmocka_unit_test(a_probe_arrives_with_its_bytes),
        cmocka_unit_test(a_device_arrives_with_its_record),
        cmocka_unit_test(every_event_of_a_run_arrives_as_it_was_sent),
        cmocka_unit_test(what_is_no_event_of_a_run_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
