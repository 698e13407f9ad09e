"""GPU cases without a GPU: reasons, device faults one row each, questions about a model."""

import os
import unittest

from program import ProgramTest, plugin, run

GPU_IMPLS = ["cudnn", "cudnn:standard", "cudnn:persist_static", "cudnn:persist_dynamic",
             "cudnn:small_h", "cuda_naive", "cuda_step"]


def explained(problem, *arguments):
    """What --explain says of each implementation: its verdict line, and the note below it."""
    done = run("--explain", problem, *arguments)
    assert done.returncode == 0, done.stderr
    entries, name = {}, None
    for line in done.stdout.splitlines():
        if line.startswith("    note") and name:
            entries[name] += " | " + line.split("note", 1)[1].strip()
        elif line.startswith("  ") and ": " in line and not line.startswith("    "):
            name, said = line.strip().split(": ", 1)
            entries[name] = said
    return entries


class DeviceFaults(ProgramTest):
    def fault(self, name, verdict, reason, exit_code):
        impl = "gpu_fault_" + name
        rows, done = self.sweep("-T", "5,7,9", "-B", "2", "-H", "4", "--pass", "train",
                                "--impl", impl, "--plugin", plugin(impl), "--case-time", "0.02",
                                "--call-limit", "2", exit_code=exit_code)
        self.assertEqual([row["verdict"] for row in rows.values()], ["ok", verdict, "ok"],
                         done.stderr)
        bad = rows[f"{impl}/T7_B2_I4_H4/f32/train"]
        self.assertRegex(bad["reason"], reason)
        self.assertIsNone(bad["median_ns"])

    def test_a_whole_device_runs_all(self):
        rows, _ = self.sweep("-T", "5,7", "-B", "2", "-H", "4", "--pass", "infer,train",
                             "--launch", "stream,graph", "--cache", "hot,cold",
                             "--impl", "gpu_fault_none", "--plugin", plugin("gpu_fault_none"),
                             "--case-time", "0.02")
        self.assertEqual({row["verdict"] for row in rows.values()}, {"ok"})
        self.assertEqual(len(rows), 16)

    def test_too_little_memory_costs_one_row(self):
        self.fault("oom", "oom", "needs .*, has 1.0 KiB of device memory", 0)

    def test_an_allocation_that_fails_costs_one_row(self):
        self.fault("oom_late", "oom", "out of memory", 0)

    def test_an_illegal_address_costs_one_row(self):
        self.fault("illegal_address", "error", "illegal memory access", 1)

    def test_a_hang_costs_one_row(self):
        self.fault("hang", "timeout", "did not return within 2 s", 1)

    def test_no_device_makes_rows_absent(self):
        rows, _ = self.sweep("-T", "5", "-B", "2", "-H", "4", "--impl", "gpu_fault_absent,cpu_ref",
                             "--plugin", plugin("gpu_fault_absent"), "--case-time", "0.02")
        self.assertEqual({row["impl"]: row["verdict"] for row in rows.values()},
                         {"gpu_fault_absent": "absent", "cpu_ref": "ok"})


class WithoutADevice(unittest.TestCase):
    def test_list_shows_every_variant_with_a_reason(self):
        done = run("--list", "-T", "5", "-B", "8", "-H", "256", "--dtype", "f16")
        lines = {line.split("/")[0]: line for line in done.stdout.splitlines()}
        for impl in GPU_IMPLS:
            self.assertRegex(lines[impl], r" (ok|absent: .+|unsupported: .+)$")

    def test_no_gpu_of_that_number_is_absent(self):
        if "absent" in run("--list", "--impl", "cuda_step", "-T", "5", "-B", "8", "-H", "8").stdout:
            self.skipTest("no GPU at all")
        done = run("--list", "--impl", "cuda_step", "-T", "5", "-B", "8", "-H", "8",
                   "--device", "99")
        self.assertIn("absent: no CUDA device 99", done.stdout)

    def test_a_model_answers_questions_and_runs_nothing(self):
        done = run("--sweep", "-T", "5", "-B", "8", "-H", "8", "--device-model", "h100")
        self.assertEqual(done.returncode, 2)
        done = run("--list", "-T", "5", "-B", "8", "-H", "8", "--device-model", "h900")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there are a100, h100", done.stderr)


@unittest.skipIf("built without" in
                 run("--list", "--impl", "cudnn", "-T", "5", "-B", "8", "-H", "8").stdout,
                 "built without CUDA or cuDNN")
class Criteria(unittest.TestCase):
    """--explain names the criterion that fails, under each variant of cuDNN."""

    CASES = {
        "T25_B16_I128_H1100/f16/infer": {
            "cudnn": "hidden 1100 is above 1024",
            "cudnn:persist_static": "hidden 1100 is above 1024",
            "cudnn:small_h": "unsupported: hidden 1100 is above 192"},
        "T25_B16_H512/bf16/infer": {
            "cudnn": "PyTorch's rule picks standard: dtype bf16 is not f16",
            "cudnn:persist_static": "picks standard, not this: dtype bf16 is not f16"},
        "T25_B16_H512/f64/train": {
            "cudnn": "PyTorch's rule picks standard: dtype f64 is not f16",
            "cudnn:persist_static": "unsupported: dtype f64",
            "cudnn:small_h": "unsupported: dtype f64"},
        "T25_B16_H512/f16/infer/ragged": {
            "cudnn:standard": "ok",
            "cudnn:persist_static": "unsupported: ragged",
            "cudnn:persist_dynamic": "unsupported: ragged",
            "cudnn:small_h": "unsupported: ragged"},
        "T25_B16_H512/f16/infer/act-relu": dict.fromkeys(GPU_IMPLS[:5], "unsupported: act relu"),
        "T25_B16_H512_L4/f16/infer": {
            "cudnn": "layers 4 is not 1",
            "cudnn:persist_static": "not this: layers 4 is not 1",
            "cudnn:persist_dynamic": "it never picks persist_dynamic"},
        "T25_B16_H512_D2/f16/infer": {
            "cudnn": "directions 2 is not 1",
            "cudnn:persist_static": "not this: directions 2 is not 1"},
        "T25_B16_H512/f16/infer": {
            "cudnn:persist_static": "PyTorch's rule picks this",
            "cudnn:small_h": "unsupported: hidden 512 is above 192"},
    }

    def test_every_criterion_is_named(self):
        for problem, expected in self.CASES.items():
            said = explained(problem, "--device-model", "h100")
            for impl, words in expected.items():
                self.assertIn(words, said[impl], (problem, impl))

    def test_relu_gates_are_the_loops_to_run(self):
        said = explained("T25_B16_H512/f16/infer/act-relu", "--device-model", "h100")
        for impl in ("cuda_naive", "cuda_step"):
            self.assertTrue(said[impl].startswith("ok by its rules on NVIDIA H100"), said[impl])


if __name__ == "__main__":
    unittest.main()
