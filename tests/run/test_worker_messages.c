/* Messages between the program and its workers: each arrives as it was sent, and a damaged one is
 * refused. */
#include "run/worker_messages.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

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

TEST(every_request_arrives_as_it_was_sent)
{
    const struct lb_request requests[] = {
        {.kind = LB_REQUEST_PLUGIN, .path = "/a folder/caf\xc3\xa9.so"},
        {.kind = LB_REQUEST_LIBRARY, .text = "onednn"},
        {.kind = LB_REQUEST_SUPPORTS, .text = case_text, .given = {.tuned = "/t.txt"}},
        {.kind = LB_REQUEST_PROBE, .text = case_text, .given = {.tune = true}},
        {.kind = LB_REQUEST_RUN,
         .path = "/x.so",
         .text = case_text,
         .given = {.weights = "/w", .prefix = "p.", .inputs = "/i.npy", .batch_first = true},
         .seed = UINT64_MAX,
         .sampler = {.min_samples = 7, .max_samples = 5001, .precision = 0.0125, .max_ns = 2.5e9},
         .memory_bytes = 0x1p40,
         .loss_scale = 1.5,
         .dynamic_loss_scale = true,
         .kernels = true,
         .outputs = "/y.npy"},
        {.kind = LB_REQUEST_DEVICE},
        {.kind = LB_REQUEST_CEILINGS},
    };
    assert_int_equal(sizeof(requests) / sizeof(requests[0]), LB_REQUEST_COUNT);
    for (size_t i = 0; i < LB_REQUEST_COUNT; i++) {
        const struct lb_request *sent = &requests[i];
        struct lb_request got;
        struct lb_error err = {""};
        json_t *message = travel(lb_request_encode(sent));
        if (lb_request_decode(message, &got, &err) != LB_OK)
            fail_msg("%s", err.text);
        const char *texts[][2] = {{got.path, sent->path},
                                  {got.text, sent->text},
                                  {got.outputs, sent->outputs},
                                  {got.given.weights, sent->given.weights},
                                  {got.given.prefix, sent->given.prefix},
                                  {got.given.inputs, sent->given.inputs},
                                  {got.given.tuned, sent->given.tuned}};
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
            same_text(texts[k][0], texts[k][1]);
        assert_int_equal(got.kind, sent->kind);
        assert_true(got.given.batch_first == sent->given.batch_first);
        assert_true(got.given.tune == sent->given.tune);
        assert_true(got.seed == sent->seed);
        assert_memory_equal(&got.sampler.precision, &sent->sampler.precision, sizeof(double));
        assert_int_equal(got.sampler.min_samples, sent->sampler.min_samples);
        assert_int_equal(got.sampler.max_samples, sent->sampler.max_samples);
        assert_true(got.sampler.max_ns == sent->sampler.max_ns);
        assert_true(got.memory_bytes == sent->memory_bytes);
        assert_true(got.loss_scale == sent->loss_scale);
        assert_int_equal(got.dynamic_loss_scale, sent->dynamic_loss_scale);
        assert_int_equal(got.kernels, sent->kernels);
        json_decref(message);
    }
}

TEST(a_request_with_a_gap_is_refused)
{
    static const char *const keys[] = {"op", "seed", "max_ns", "kernels", "tune", "batch_first"};
    const struct lb_request run = {.kind = LB_REQUEST_RUN, .text = case_text};
    struct lb_request got;
    struct lb_error err = {""};
    json_t *message;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        message = lb_request_encode(&run);
        assert_int_equal(json_object_del(message, keys[i]), 0);
        assert_int_equal(lb_request_decode(message, &got, &err), LB_INVALID);
        json_decref(message);
    }
    message = lb_request_encode(&run);
    json_object_set_new(message, "op", json_string("dance"));
    assert_int_equal(lb_request_decode(message, &got, &err), LB_INVALID);
    json_decref(message);
    const struct lb_request latin = {.kind = LB_REQUEST_PLUGIN, .path = "caf\xe9.so"};
    assert_null(lb_request_encode(&latin)); /* JSON is UTF-8 */
}

/* What a decoded event says; the message must outlive it. */
static struct lb_event event_of(const json_t *message)
{
    struct lb_event event;
    struct lb_error err = {""};
    if (lb_event_decode(message, &event, &err) != LB_OK)
        fail_msg("%s", err.text);
    return event;
}

TEST(every_event_arrives_as_it_was_sent)
{
    json_t *message = travel(lb_phase_encode("sample"));
    struct lb_event event = event_of(message);
    assert_int_equal(event.kind, LB_EVENT_PHASE);
    assert_string_equal(event.phase, "sample");
    json_decref(message);

    message = travel(lb_figure_encode(json_pack("{s:f}", "copy", 1.5), "copy", "a\nb"));
    event = event_of(message);
    assert_int_equal(event.kind, LB_EVENT_FIGURE);
    assert_true(json_real_value(json_object_get(event.reply, "copy")) == 1.5);
    assert_string_equal(event.figure, "copy");
    assert_string_equal(event.failed, "a b");
    json_decref(message);

    const struct lb_error why = {"hidden \x1b[31m1100\xff is too large"};
    message = travel(lb_reply_encode(LB_UNSUPPORTED, &why, NULL, true));
    event = event_of(message);
    assert_int_equal(event.kind, LB_EVENT_REPLY);
    assert_int_equal(event.status, LB_UNSUPPORTED);
    assert_string_equal(event.why.text, "hidden  [31m1100? is too large");
    assert_true(event.device_lost && !event.reply);
    json_decref(message);

    message = travel(lb_reply_encode(LB_OK, NULL, json_string("0.3"), false));
    event = event_of(message);
    assert_int_equal(event.status, LB_OK);
    assert_string_equal(json_string_value(event.reply), "0.3");
    assert_false(event.device_lost);
    json_decref(message);
}

TEST(a_row_arrives_and_what_is_no_event_is_refused)
{
    struct lb_event event;
    struct lb_error err = {""};
    struct lb_row row = synthetic_row(case_text, LB_VERDICT_OK, 1e6, 1, 20);
    json_t *message = travel(lb_row_encode(&row));
    event = event_of(message);
    assert_int_equal(event.kind, LB_EVENT_ROW);
    assert_true(lb_case_same(&event.row.c, &row.c));
    assert_int_equal(event.row.samples, row.samples);
    assert_true(event.row.median_ns == row.median_ns);
    lb_row_free(&event.row);
    json_object_set_new(json_object_get(message, "row"), "verdict", json_string("splendid"));
    assert_int_equal(lb_event_decode(message, &event, &err), LB_INVALID);
    json_decref(message);
    lb_row_free(&row);
    message = json_object();
    assert_int_equal(lb_event_decode(message, &event, &err), LB_INVALID);
    json_decref(message);
}

TEST(a_plugin_arrives_as_it_describes_itself)
{
    static const char *const names[] = {"auto", "fast", NULL};
    const struct lb_impl impl = {.name = "mine",
                                 .summary = "an \xff implementation",
                                 .memory = LB_DEVICE,
                                 .traits = LB_CAPTURABLE | LB_DETERMINISTIC,
                                 .variants = names};
    struct lb_impl_entry got;
    char *variants[LB_VARIANTS_MAX + 1];
    struct lb_error err = {""};
    json_t *message = travel(lb_plugin_encode(&impl));
    assert_int_equal(lb_plugin_decode(message, &got, variants, &err), LB_OK);
    assert_string_equal(got.name, "mine");
    assert_string_equal(got.summary, "an ? implementation");
    assert_int_equal(got.memory, LB_DEVICE);
    assert_int_equal(got.traits, LB_CAPTURABLE | LB_DETERMINISTIC);
    assert_string_equal(got.variants[1], "fast");
    assert_null(got.variants[2]);
    json_object_del(message, "name");
    assert_int_equal(lb_plugin_decode(message, &got, variants, &err), LB_INVALID);
    json_decref(message);
    const struct lb_impl plain = {.name = "plain", .summary = ""};
    message = travel(lb_plugin_encode(&plain));
    assert_int_equal(lb_plugin_decode(message, &got, variants, &err), LB_OK);
    assert_null(got.variants);
    json_decref(message);
}

TEST(a_probe_and_an_aftermath_arrive)
{
    const struct lb_probe sent = {{1, 2, 3, (size_t)1 << 40}, "tile 64x64", "a note"};
    struct lb_probe got = {0};
    struct lb_aftermath after;
    struct lb_error err = {""};
    json_t *message = travel(lb_probe_encode(&sent));
    assert_int_equal(lb_probe_decode(message, &got, &err), LB_OK);
    assert_memory_equal(&got.sizes, &sent.sizes, sizeof(got.sizes));
    assert_string_equal(got.description, sent.description);
    assert_string_equal(got.note, sent.note);
    assert_int_equal(lb_aftermath_decode(message, &after, &err), LB_INVALID);
    json_decref(message);
    for (int known = 0; known < 2; known++) {
        message = travel(lb_aftermath_encode(&(struct lb_aftermath){
            known ? "a thread" : "", known ? 7.5 : (double)NAN, known ? 0x1p33 : (double)NAN}));
        assert_int_equal(lb_aftermath_decode(message, &after, &err), LB_OK);
        assert_int_equal(lb_probe_decode(message, &got, &err), LB_INVALID);
        assert_string_equal(after.left, known ? "a thread" : "");
        assert_true(known ? after.peak_bytes == 0x1p33 : isnan(after.peak_bytes));
        assert_true(known ? after.reference_ns == 7.5 : isnan(after.reference_ns));
        json_decref(message);
    }
}
