"""Implementations that are wrong on purpose: each is found, in a sweep with correct ones."""

import unittest

from program import ProgramTest, plugin

# Each fault, and the passes that show it.
FORWARD = ("infer", "train")
BACKWARD = ("train",)
TWINS = {
    "swapped_gates": FORWARD,
    "stale_h": FORWARD,
    "unwritten_tail": FORWARD,
    "wrong_after_step_100": FORWARD,
    "wrong_middle_row": FORWARD,
    "zero_gate_gradient": BACKWARD,
    "dropped_row_in_dw": BACKWARD,
    "dw_in_first_call": BACKWARD,
}

# One problem whose batch rows all differ, and one whose batch repeats a few rows.
SIZES = ["--case", "T104_B18_I5_H7", "--case", "T104_B32_I64_H64"]


class Twins(ProgramTest):
    def sweep_with(self, faults, dtype):
        plugins = [word for fault in faults for word in ("--plugin", plugin("broken_" + fault))]
        impls = ["cpu_ref", "cpu_simd"] + ["broken_" + fault for fault in faults]
        exit_code = 0 if faults == ["none"] else 1
        rows, _ = self.sweep(*SIZES, "--pass", "infer,train", "--dtype", dtype, "--case-time",
                             "0.05", "--impl", ",".join(impls), *plugins, exit_code=exit_code, name=dtype)
        return rows

    def test_each_twin_is_found_while_all_others_are_ok(self):
        rows = self.sweep_with(list(TWINS), "f32")
        self.assertEqual(len(rows), 2 * 2 * (len(TWINS) + 2))
        for case, row in rows.items():
            found = row["pass"] in TWINS.get(row["impl"].removeprefix("broken_"), ())
            self.assertEqual(row["verdict"], "wrong" if found else "ok", (case, row["reason"]))
            if found:
                self.assertEqual(row["samples_ns"], [], case)

    def test_a_wrong_gradient_has_its_own_reason_where_none_are_scaled(self):
        for dtype in ("f32", "f16"):
            for row in self.sweep_with(["dw_in_first_call"], dtype).values():
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

    def test_small_precisions_hide_no_twin(self):
        for dtype in ("f16", "bf16"):
            rows = self.sweep_with(list(TWINS), dtype)
            for case, row in rows.items():
                if row["impl"].startswith("broken_"):
                    found = row["pass"] in TWINS[row["impl"].removeprefix("broken_")]
                    self.assertEqual(row["verdict"], "wrong" if found else "ok",
                                     (case, row["reason"]))

    def test_the_twin_without_a_fault_is_ok(self):
        for row in self.sweep_with(["none"], "f32").values():
            self.assertEqual(row["verdict"], "ok", row["reason"])


if __name__ == "__main__":
    unittest.main()
