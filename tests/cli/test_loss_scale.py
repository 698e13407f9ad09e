"""The dynamic loss scale: what a row says of it. tests/broken checks that a hidden overflow is found."""

import math
import unittest

from program import ProgramTest, read_lines, read_rows, run, write_lines

CASE = ["--case", "T104_B18_I5_H7", "--case-time", "0.05"]
KEYS = ("gradient_err_norm", "loss_scale", "overflow_share", "overflow_check_ns")
STEPS, GROWTHS = 10000, 5


class LossScale(ProgramTest):
    def rows_of(self, scale, *arguments, **options):
        rows, _ = self.sweep(*CASE, "--loss-scale", scale, *arguments, **options)
        return list(rows.values())

    def test_a_scale_that_overflows_on_purpose_is_halved_until_it_fits(self):
        start = 2 ** 20
        for row in self.rows_of(f"dynamic:{start}", "--pass", "train", "--dtype", "f16", "--impl",
                                "cpu_ref,cpu_simd"):
            self.assertEqual(row["verdict"], "ok", row["reason"])
            halvings = round(math.log2(start / row["loss_scale"]))
            self.assertGreater(halvings, 4)
            self.assertEqual(row["loss_scale"] * 2 ** halvings, start)
            skipped = row["overflow_share"] * STEPS
            self.assertAlmostEqual(skipped, round(skipped), 9)
            self.assertIn(round(skipped), range(halvings, halvings + GROWTHS + 1))
            self.assertGreater(row["overflow_check_ns"], 0)
            self.assertTrue(0 < row["gradient_err_norm"] < 0.03, row["gradient_err_norm"])
            self.assertIn(f"loss scale {row['loss_scale']:g}, ", row["description"])
            # Twice the scale overflows, when it is fixed; the scale itself does not.
            for scale, verdict in ((row["loss_scale"], "ok"), (2 * row["loss_scale"], "wrong")):
                fixed, = self.rows_of(f"{scale:.17g}", "--pass", "train", "--dtype", "f16", "--impl",
                                      row["impl"], exit_code=0 if verdict == "ok" else 1,
                                      name=f"{row['impl']}-{verdict}")
                self.assertEqual(fixed["verdict"], verdict, fixed["reason"])

    def test_new_inputs_may_overflow_where_the_timed_ones_do_not(self):
        rows, _ = self.sweep("--case", "T40_B7_I64_H5_L2_D2/f16/backward/ragged", "--loss-scale", "dynamic", "--seed", "228899",
                             "--impl", "cpu_ref", "--case-time", "0.05")
        row, = rows.values()
        self.assertEqual((row["verdict"], row["loss_scale"]), ("ok", 8192), row["reason"])

    def test_a_low_start_grows(self):
        row, = self.rows_of("dynamic:1", "--pass", "train", "--dtype", "f16", "--impl", "cpu_simd")
        self.assertEqual((row["verdict"], row["loss_scale"], row["overflow_share"]),
                         ("ok", 2 ** GROWTHS, 0))

    def test_only_f16_with_a_backward_is_scaled(self):
        for row in self.rows_of("dynamic", "--pass", "infer,backward,train", "--dtype",
                                "f32,bf16,f16", "--impl", "cpu_simd"):
            self.assertEqual(row["verdict"], "ok", row["reason"])
            trains, half = row["pass"] != "infer", row["dtype"] == "f16"
            self.assertEqual(row["gradient_err_norm"] is not None, trains)
            self.assertEqual(row["loss_scale"] == 1, trains and not half)
            for key in ("overflow_share", "overflow_check_ns"):
                self.assertEqual(row[key] is not None, trains and half, (row["case"], key))

    def test_a_fixed_scale_has_no_schedule(self):
        row, = self.rows_of("256", "--pass", "train", "--dtype", "f16", "--impl", "cpu_simd")
        self.assertEqual([row[key] for key in KEYS[1:]], [256, None, None])

    def test_the_setting_is_kept_and_resumed(self):
        self.rows_of("dynamic:4096", "--pass", "train", "--dtype", "f16", "--impl", "cpu_simd")
        first, = read_rows(self.path("run")).values()
        header = read_lines(self.path("run"))[0]
        write_lines(self.path("run"), [header])
        self.assertEqual((header["loss_scale"], header["loss_scale_dynamic"]), (4096, True))
        run("--resume", self.path("run"), "--plots", "none", exit_code=0)
        again, = read_rows(self.path("run")).values()
        for key in KEYS[:3]:
            self.assertEqual(again[key], first[key], key)


if __name__ == "__main__":
    unittest.main()
