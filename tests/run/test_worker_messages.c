/* Requests of the program to its workers: each arrives as it was sent, and a damaged one is
 * refused.
 */
#include "run/worker_messages.h"
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
        {.op = "plugin", .path = "/a folder/caf\xc3\xa9.so"},
        {.op = "library", .text = "onednn"},
        {.op = "supports", .text = case_text, .given = {.tuned = "/t.txt"}},
        {.op = "probe", .text = case_text, .given = {.tune = true}},
        {.op = "run",
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
        {.op = "device"},
        {.op = "ceilings"},
    };
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        const struct lb_request *sent = &requests[i];
        struct lb_request got;
        struct lb_error err = {""};
        json_t *message = travel(lb_request_encode(sent));
        if (lb_request_decode(message, &got, &err) != LB_OK)
            fail_msg("%s", err.text);
        const char *texts[][2] = {{got.op, sent->op},
                                  {got.path, sent->path},
                                  {got.text, sent->text},
                                  {got.outputs, sent->outputs},
                                  {got.given.weights, sent->given.weights},
                                  {got.given.prefix, sent->given.prefix},
                                  {got.given.inputs, sent->given.inputs},
                                  {got.given.tuned, sent->given.tuned}};
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
            same_text(texts[k][0], texts[k][1]);
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
    const struct lb_request run = {.op = "run", .text = case_text};
    struct lb_request got;
    struct lb_error err = {""};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *message = lb_request_encode(&run);
        assert_int_equal(json_object_del(message, keys[i]), 0);
        assert_int_equal(lb_request_decode(message, &got, &err), LB_INVALID);
        json_decref(message);
    }
    const struct lb_request latin = {.op = "plugin", .path = "caf\xe9.so"};
    assert_null(lb_request_encode(&latin)); /* JSON is UTF-8 */
}
