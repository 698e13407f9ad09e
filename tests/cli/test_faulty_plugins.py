"""Implementations that are wrong on purpose: each is found, in a sweep with correct ones."""

import platform
import re
import unittest

from program import ProgramTest, plugin

# Each fault, and the passes that show it.
FORWARD = ("infer", "train")
BACKWARD = ("train",)
FAULTS = {
    "swapped_gates": FORWARD,
    "stale_h": FORWARD,
    "unwritten_tail": FORWARD,
    "wrong_after_step_100": FORWARD,
    "wrong_middle_row": FORWARD,
    "zero_gate_gradient": BACKWARD,
    "dropped_row_in_dw": BACKWARD,
    "dw_in_first_call": BACKWARD,
    "update_loses_a_gate": BACKWARD,
    "update_writes_weights": BACKWARD,
    "dw_in_gradients": BACKWARD,
    "update_in_forward": BACKWARD,
}

# One problem whose batch rows all differ, and one whose batch repeats a few rows.
SIZES = ["--case", "T104_B18_I5_H7", "--case", "T104_B32_I24_H40"]


class Faults(ProgramTest):
    def sweep_with(self, faults, dtype, sizes=SIZES):
        plugins = [word for fault in faults for word in ("--plugin", plugin("broken_" + fault))]
        impls = ["cpu_ref", "cpu_simd"] + ["broken_" + fault for fault in faults]
        exit_code = 0 if faults == ["none"] else 1
        rows, _ = self.sweep(*sizes, "--pass", "infer,train", "--dtype", dtype, "--case-time",
                             "0.05", "--impl", ",".join(impls), *plugins, exit_code=exit_code, name=dtype)
        return rows

    def test_each_fault_is_found_while_all_others_are_ok(self):
        rows = self.sweep_with(list(FAULTS), "f32")
        self.assertEqual(len(rows), 2 * 2 * (len(FAULTS) + 2))
        for case, row in rows.items():
            found = row["pass"] in FAULTS.get(row["impl"].removeprefix("broken_"), ())
            self.assertEqual(row["verdict"], "wrong" if found else "ok", (case, row["reason"]))
            if found:
                self.assertEqual(row["samples_ns"], [], case)

    def test_streams_show_what_single_calls_show(self):
        faults = {"cheats_none": None, "cheats_same_pointers": "no LSTM gives", "broken_stale_h": "^y .* off by",
                  "cheats_cached_result": "^y .* off by", "cheats_wrong_in_100": "first calls were right|^y .* off by",
                  "cheats_changing_bits": "gave other bits", "cheats_y_timer": "was not finished when it had returned",
                  "cheats_writes_inputs": "wrote to x", "broken_past_workspace": "the workspace was written past",
                  "broken_idle_after_first": "is NaN", "cheats_memo_garbage": "^y .* off by"}
        plugins = [word for fault in faults for word in ("--plugin", plugin(fault))]
        rows, _ = self.sweep("--case", "T6_B3_I4_H8", "--timing", "stream", "--case-time", "0.3", "--impl", ",".join(faults),
                             *plugins, exit_code=1)
        self.assertEqual(len(rows), len(faults))
        for row in rows.values():
            expected = faults[row["impl"]]
            self.assertEqual(row["verdict"], "wrong" if expected else "ok", row["impl"])
            self.assertRegex(row["reason"], expected or "^$", row["impl"])

    def test_a_wrong_gradient_has_its_own_reason_where_none_are_scaled(self):
        for dtype in ("f32", "f16"):
            for row in self.sweep_with(["dw_in_first_call"], dtype, SIZES[:2]).values():
                if row["verdict"] == "wrong":
                    self.assertRegex(row["reason"], r"^dw_ih of layer 0.* is NaN, .*: not written")

    def test_a_wrong_output_is_the_reason_before_an_overflow(self):
        rows, _ = self.sweep("--case", "T104_B18_I5_H7", "--pass", "train", "--dtype", "f16",
                             "--loss-scale", "1e6", "--impl", "broken_none,broken_unwritten_tail",
                             "--plugin", plugin("broken_none"), "--plugin",
                             plugin("broken_unwritten_tail"), exit_code=1)
        reasons = {row["impl"]: row["reason"] for row in rows.values()}
        self.assertRegex(reasons["broken_none"], "^gradients overflow at loss scale 1e[+]06")
        self.assertRegex(reasons["broken_unwritten_tail"], r"^y \[.* is NaN")

    def test_small_precisions_hide_no_fault(self):
        for dtype, sizes in (("f16", SIZES), ("bf16", SIZES[:2])):
            rows = self.sweep_with(list(FAULTS), dtype, sizes)
            for case, row in rows.items():
                if row["impl"].startswith("broken_"):
                    found = row["pass"] in FAULTS[row["impl"].removeprefix("broken_")]
                    self.assertEqual(row["verdict"], "wrong" if found else "ok",
                                     (case, row["reason"]))

    def test_the_plugin_without_a_fault_is_ok(self):
        for row in self.sweep_with(["none"], "f32").values():
            self.assertEqual(row["verdict"], "ok", row["reason"])


# What is fast by not working, or bends the checker: the passes that show it, and the reason.
LATER = "; the first calls were right$"
CHEATS = {
    "idle_from_third": (FORWARD, "NaN.* in call 3" + LATER),
    "idle_backward": (BACKWARD, "NaN.* in call 3" + LATER),
    "cached_result": (FORWARD, "off by"),
    "same_pointers": (FORWARD, LATER),
    "cached_by_pointer": (FORWARD, LATER),
    "wrong_5_to_9": (FORWARD, "off by 1, .* in call 5" + LATER),
    "wrong_in_100": (FORWARD, "off by 1, .* in call [0-9]*50" + LATER),
    "writes_inputs": (("infer",), "^it wrote to x, which it may only read$"),
    "writes_weights": (FORWARD, "^it wrote to the canonical weights, which it may only read$"),
    "writes_weights_late": (FORWARD, "^it wrote to the canonical weights, which it may only read$"),
    "bends_rounding": (FORWARD, "^low precision: the error is .* times what f32 gives, no more than with"),
    "finishes_in_check": (FORWARD, "^call 1 was not finished when it had returned: its results changed afterwards$"),
    "changing_bits": (FORWARD, "^says it is deterministic, but call 7 gave other bits"),
}


class Cheats(ProgramTest):
    def run_cheats(self, names, *arguments, exit_code=1, **options):
        plugins = [word for name in names for word in ("--plugin", plugin("cheats_" + name))]
        impls = ["cheats_" + name for name in names] + ["cpu_ref"]
        rows, _ = self.sweep("--case", "T20_B3_I5_H16", "--impl", ",".join(impls), *plugins,
                             *arguments, exit_code=exit_code, **options)
        return rows

    def test_each_cheat_is_found_and_the_innocent_are_ok(self):
        rows = self.run_cheats([*CHEATS, "none"], "--pass", "infer,train", "--timing",
                               "isolated,batched")
        self.assertEqual(len(rows), 2 * 2 * (len(CHEATS) + 2))
        for case, row in rows.items():
            passes, reason = CHEATS.get(row["impl"].removeprefix("cheats_"), ((), ""))
            # Of a batch one call is checked, so that a fault in few calls may remain unseen.
            sure = row["timing"] == "isolated" or row["impl"] not in (
                "cheats_same_pointers", "cheats_wrong_5_to_9", "cheats_wrong_in_100",
                "cheats_changing_bits")
            if row["pass"] in passes and sure:
                low = row["impl"] == "cheats_bends_rounding" # as precise as TF32
                self.assertEqual(row["verdict"], "suspect" if low else "wrong", case)
                if row["timing"] == "isolated":
                    self.assertRegex(row["reason"], reason, case)
            elif row["pass"] not in passes and row["impl"] != "cheats_writes_inputs":
                self.assertEqual(row["verdict"], "ok", (case, row["reason"]))

    def test_what_was_checked_is_in_the_record(self):
        rows = self.run_cheats(["none"], "--pass", "infer,forward,backward,train", exit_code=0)
        for case, row in rows.items():
            self.assertGreaterEqual(row["checked_calls"], 20, case)
            self.assertGreaterEqual(len(row["samples_ns"]), 20, case)
            self.assertEqual((row["input_sets"], row["deterministic"]), (2, 1), case)
            inputs = 4 * (20 * 3 * 5 + 2 * 3 * 16)
            if row["pass"] != "infer": # a forward is checked by a backward
                inputs += 4 * (20 * 3 * 16 + 2 * 3 * 16)
            self.assertEqual(row["working_set_bytes"] - row["call_bytes"], inputs, case)
        self.assertEqual(len({row["order_seed"] for row in rows.values()}), len(rows))

    @unittest.skipUnless(platform.machine() == "x86_64", "the CPU's peak is not known here")
    def test_right_results_that_nobody_could_compute_so_fast_are_wrong(self):
        for row in self.run_cheats(["cached_by_contents"]).values():
            if row["impl"] == "cheats_cached_by_contents":
                self.assertEqual(row["verdict"], "wrong")
                self.assertRegex(row["reason"], "^faster than this machine can compute it: "
                                 "[0-9.e+]+ GFLOP/s measured, at most [0-9.e+]+$")
            else:
                self.assertEqual(row["verdict"], "ok", row["reason"])

    def test_results_that_are_remembered_are_suspect_however_slow_they_are(self):
        for row in self.run_cheats(["cached_and_slow", "none"], exit_code=0).values():
            found = row["impl"] == "cheats_cached_and_slow"
            self.assertEqual(row["verdict"], "suspect" if found else "ok", row["reason"])
            self.assertEqual("with inputs that were in no call before" in row["reason"], found)
            self.assertTrue(row["samples_ns"])

    def test_a_slow_start_is_flagged(self):
        rows = self.run_cheats(["slow_start"], exit_code=0)
        row = next(row for row in rows.values() if row["impl"] == "cheats_slow_start")
        self.assertGreater(len(row["samples_ns"]) * row["median_ns"], 49e6)
        self.assertRegex(row["flags"], "slow_first|drift")

    def test_what_calls_leave_behind_is_a_warning_with_figures(self):
        leaks = {"memory": "^its calls leak memory: 6[0-9][.0-9]* KiB each, [0-9.]+ MiB in all$",
                 "descriptors": "^its calls leave file descriptors behind: 0[.0-9]+ each, [0-9]+ in all$",
                 "threads": "^its calls leave threads behind: 0[.0-9]+ each, [0-9]+ in all$"}
        for what, reason in leaks.items():
            rows = self.run_cheats(["leaks_" + what], exit_code=0, name=what)
            for row in rows.values():
                self.assertEqual(row["verdict"], "ok", row["reason"])
                # Other tests may run on the same CPUs.
                said = re.sub(r"(; )?other programs used [^;]*", "", row["warning"])
                self.assertRegex(said, "^$" if row["impl"] == "cpu_ref" else reason)

    def test_threads_of_the_first_case_that_has_so_many_are_no_leftover(self):
        rows, _ = self.sweep("--case", "T20_B3_I5_H16", "--impl", "cpu_simd,leftovers_idle_threads",
                             "--plugin", plugin("leftovers_idle_threads"), "--threads", "1,2",
                             "--pass", "infer,train", "--case-time", "0.05", name="threads")
        self.assertEqual(len(rows), 8)
        for case, row in rows.items():
            if row["impl"] == "cpu_simd":
                self.assertNotIn("more thread", row["warning"], case)
        self.assertTrue(any("more thread" in row["warning"] for row in rows.values()))

    def test_threads_of_the_first_problem_that_is_large_enough_are_no_leftover(self):
        rows, _ = self.sweep("-T", "3", "-B", "1,32", "-H", "32", "--impl", "cpu_simd", "--threads", "2",
                             "--case-time", "0.05", name="larger")
        self.assertEqual(len(rows), 2)
        for case, row in rows.items():
            self.assertNotIn("more thread", row["warning"], case)

    def test_libraries_of_a_plug_in_are_its_own(self):
        rows, _ = self.sweep("--case", "T20_B3_I5_H16", "--impl", "openblas,onednn,own_libraries",
                             "--plugin", plugin("own_libraries"), name="own")
        row = next(row for row in rows.values() if row["impl"] == "own_libraries")
        self.assertRegex(row["description"], "^its own libraries")

    def test_a_refusal_after_right_calls_is_an_error(self):
        rows = self.run_cheats(["unsupported_late"])
        row = next(row for row in rows.values() if row["impl"] != "cpu_ref")
        self.assertEqual((row["verdict"], row["reason"]),
                         ("error", "unsupported, after calls that were right: not today"))


if __name__ == "__main__":
    unittest.main()
