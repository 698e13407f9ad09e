"""What tests/broken, which runs each faulty plug-in alone, does not show: other timings, and what rows record."""

import unittest

from program import ProgramTest, planted, plugin

CASE = ["--case", "T20_B3_I5_H16", "--case-time", "0.05"]


class Faults(ProgramTest):
    def test_batches_and_streams_show_what_single_calls_show(self):
        faults = {"cheats_none": None, "cheats_same_pointers": "no LSTM gives", "broken_stale_h": "^y .* off by",
                  "cheats_cached_result": "^y .* off by", "cheats_wrong_in_100": "first calls were right|^y .* off by",
                  "cheats_changing_bits": "gave other bits", "cheats_y_timer": "was not finished when it had returned|not written",
                  "cheats_writes_inputs": "wrote to x", "broken_past_workspace": "the workspace was written past",
                  "broken_idle_after_first": "is NaN", "cheats_memo_garbage": "off by|that were in no call before"}
        # Of a batch one call is checked, so that a fault in few calls may remain unseen.
        few_calls = ("cheats_same_pointers", "cheats_wrong_in_100", "cheats_changing_bits")
        rows, _ = self.sweep("--case", "T6_B3_I4_H8", "--timing", "batched,stream", "--case-time", "0.1",
                             *planted(*faults), exit_code=1)
        self.assertEqual(len(rows), 2 * len(faults))
        for case, row in rows.items():
            expected = faults[row["impl"]]
            if row["timing"] == "stream" or row["impl"] not in few_calls:
                self.assertEqual(row["verdict"], "wrong" if expected else "ok", (case, row["reason"]))
                self.assertRegex(row["reason"], expected or "^$", case)
                self.assertEqual(row["samples_ns"] == [], bool(expected), case)

    def test_a_stream_of_less_precision_than_its_type_has_is_suspect(self):
        names = ["cheats_none", "cheats_f16_as_bf16"]
        rows, _ = self.sweep("--case", "T6_B18_I33_H40", "--timing", "stream", "--dtype", "f16", "--case-time", "0.05",
                             *planted(*names))
        self.assertEqual([rows[f"{name}/T6_B18_I33_H40/f16/infer/stream"]["verdict"] for name in names], ["ok", "suspect"])

    def test_errors_that_grow_are_not_judged_by_an_evaluation_that_was_lucky(self):
        # All libraries have about the same error here, five times that of the first rounded evaluation.
        rows, _ = self.sweep("-T", "33", "-B", "8", "-I", "31", "-H", "16", "-L", "3", "-D", "2", "--pass", "forward",
                             "--seed", "432789", "--impl", "cpu_simd", "--case-time", "0.02")
        row, = rows.values()
        self.assertEqual((row["verdict"], row["reason"]), ("ok", ""))

    def test_a_wrong_output_is_the_reason_before_an_overflow(self):
        names = ["broken_none", "broken_unwritten_tail"]
        rows, _ = self.sweep("--case", "T104_B18_I5_H7", "--pass", "train", "--dtype", "f16", "--loss-scale", "1e6",
                             "--case-time", "0.05", *planted(*names), exit_code=1)
        reasons = {row["impl"]: row["reason"] for row in rows.values()}
        self.assertRegex(reasons["broken_none"], "^gradients overflow at loss scale 1e[+]06")
        self.assertRegex(reasons["broken_unwritten_tail"], r"^y \[.* is NaN")

    def test_what_was_checked_is_in_the_record(self):
        rows, _ = self.sweep(*CASE, *planted("cheats_none"), "--impl", "cpu_ref", "--pass",
                             "infer,forward,backward,train", "--case-time", "10")
        for case, row in rows.items():
            self.assertGreaterEqual(row["checked_calls"], 20, case)
            self.assertGreaterEqual(len(row["samples_ns"]), 20, case)
            self.assertEqual((row["input_sets"], row["deterministic"]), (2, 1), case)
            inputs = 4 * (20 * 3 * 5 + 2 * 3 * 16)
            if row["pass"] != "infer": # a forward is checked by a backward
                inputs += 4 * (20 * 3 * 16 + 2 * 3 * 16)
            self.assertEqual(row["working_set_bytes"] - row["call_bytes"], inputs, case)
        self.assertEqual(len({row["order_seed"] for row in rows.values()}), len(rows))

    def test_threads_of_the_first_case_that_has_so_many_are_no_leftover(self):
        rows, _ = self.sweep("-T", "20,21", "-B", "3", "-I", "5", "-H", "16", "--case-time", "0.05",
                             "--impl", "cpu_simd,leftovers_idle_threads", "--plugin",
                             plugin("leftovers_idle_threads"), "--threads", "1,2", "--pass", "infer,train")
        self.assertEqual(len(rows), 16)
        for case, row in rows.items():
            if row["impl"] == "cpu_simd":
                self.assertNotIn("more thread", row["warning"], case)
        self.assertTrue(any("more thread" in row["warning"] for row in rows.values()))

    def test_threads_of_the_first_problem_that_is_large_enough_are_no_leftover(self):
        rows, _ = self.sweep("-T", "3", "-B", "1,32", "-H", "32", "--impl", "cpu_simd", "--threads", "2",
                             "--case-time", "0.05")
        self.assertEqual(len(rows), 2)
        for case, row in rows.items():
            self.assertNotIn("more thread", row["warning"], case)

    def test_libraries_of_a_plug_in_are_its_own(self):
        rows, _ = self.sweep(*CASE, "--impl", "openblas,onednn,own_libraries", "--plugin", plugin("own_libraries"))
        row = next(row for row in rows.values() if row["impl"] == "own_libraries")
        self.assertRegex(row["description"], "^its own libraries")


if __name__ == "__main__":
    unittest.main()
