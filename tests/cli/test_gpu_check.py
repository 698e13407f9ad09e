"""bench/gpu-check.sh without a GPU: every step runs and records, and an earlier run is continued."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import unittest

from program import BUILD, ProgramTest, call, line_count, living_processes, read_lines, run, wait_until
from test_gpu_device import LONG, Report, parse

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "bench", "gpu-check.sh")
CUDA = os.path.join(os.path.dirname(__file__), "..", "..", "cuda")
LEFT = {"test.log", "sanitizer.log", "conformance.jsonl", "run.jsonl", "tuned.txt", "tuned.jsonl",
        "cudnn.jsonl", "pytorch.jsonl"}


# A program that finds a GPU and has no cuDNN, and whose sweeps only check their list of cases.
NO_CUDNN = """#!/bin/sh
case $1 in
--list) echo "cuda_step/T1_B1_I1_H1/f32/infer ok" ;;
--sweep)
  while [ "$1" != --cases ]; do shift; done
  "$LB_BUILD/../real" --plan --cases "$2" && exit 5
  ;;
esac
"""


class DryRun(ProgramTest):
    def command(self, name, *arguments, dry="--dry-run"):
        return ["bash", SCRIPT, self.path(name), "--build", BUILD, dry, *arguments]

    def check(self, name, *arguments, dry="--dry-run", exit_code=0):
        done = call(*self.command(name, *arguments, dry=dry), exit_code=exit_code)
        self.assertLessEqual(set(os.listdir(self.path(name))), LEFT)
        for place, _, names in os.walk(self.path(name)):
            self.assertFalse(any(os.path.islink(os.path.join(place, name)) for name in names))
        return done.stdout

    def rows(self, *path):
        lines = map(json.loads, self.read(os.path.join(*path)).splitlines())
        return [line for line in lines if line["kind"] == "row"]


class Steps(DryRun):
    def test_every_step_goes_as_far_as_it_can_the_headline_first(self):
        said = self.check("out", "--only",
                          "tests,sanitizer,ceilings,headline,frameworks,sweep,tune,versions,tiny,twice,"
                          "kernels,ncu,parts,faults", "--budget", "20")
        done = re.findall(r"== (.*): done", said)
        self.assertEqual(done, [
            "plan of the grid", "versions", "one tiny case each", "ceilings", "sizes of the README",
            "cudnn on the frameworks' cases", "PyTorch", "tuning", "ncu of cluster", "ncu of grid",
            "parts of a step", "parts against the model",
            "conformance, own", "the same bits twice", "kernels by CUPTI", "faults cost one row",
            "recurrent grid", "predictions", "conformance, cudnn", "conformance, modes", "memcheck",
            "racecheck", "racecheck", "synccheck", "conformance, slow"])
        for fault in ("too large a case: oom,ok", "a killed worker: ok,ok", "an illegal address: error,ok"):
            self.assertIn(fault, self.read("out/test.log"))
        self.assertRegex(self.read("out/test.log"), "cluster backward step, H256 B16 +expected ")
        self.assertLessEqual(len(LEFT), 8) # few enough to copy by hand
        self.assertLessEqual(LEFT - {"tuned.txt"}, set(os.listdir(self.path("out"))))
        for name in ("run.jsonl", "tuned.jsonl", "cudnn.jsonl", "conformance.jsonl"):
            rows = self.rows("out", name)
            verdicts = {row["verdict"] for row in rows}
            self.assertLessEqual(verdicts, {"ok", "unsupported"}, name)
            self.assertIn("ok", verdicts)
            self.assertLessEqual({"infer", "train"}, {row["pass"] for row in rows})
        self.assertEqual({row["launch"] for row in self.rows("out", "run.jsonl")}, {"stream", "graph"})


class Stops(DryRun):
    """Runs that are stopped, or in which a case hangs."""

    def test_what_is_killed_leaves_its_rows_and_is_continued(self):
        with subprocess.Popen(self.command("first", "--only", "sweep"), start_new_session=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: line_count(self.path("first/run.jsonl")) >= 3, 100)
            for one in living_processes(3, process.pid):
                os.kill(one, signal.SIGKILL)
        kept = self.read("first/run.jsonl")
        kept = kept[:kept.rindex("\n") + 1] # the last line may be cut off
        self.assertNotIn('"kind":"footer"', kept)
        for earlier in ("first", "second"): # another folder, and the same
            said = self.check("second", "--only", "sweep", "--from", self.path(earlier))
            self.assertIn("== recurrent grid: done, exit code 0", said)
            self.assertTrue(self.read("second/run.jsonl").startswith(kept))
            self.assertEqual(read_lines(self.path("second"))[kept.count("\n")]["kind"], "resume")
            cases = [row["case"] for row in self.rows("second", "run.jsonl")]
            self.assertGreaterEqual(len(cases), kept.count("\n"))
            self.assertEqual(len(cases), len(set(cases)))

    def test_a_case_that_hangs_is_named_and_the_others_run(self):
        said = self.check("out", "--only", "tests-own", dry="--dry-run=hang", exit_code=1)
        self.assertIn("== conformance, own: FAILED", said)
        self.assertRegex(self.read("out/test.log"), r"timeout +gpu_fault_hang/T7_B3_I5_H6/f32/infer: .*did not return")
        verdicts = [row["verdict"] for row in self.rows("out", "conformance.jsonl")]
        self.assertEqual(verdicts.count("timeout"), 2) # then the hang limit is reached
        self.assertIn("skipped", verdicts)


class Check(DryRun):
    def test_a_step_that_no_time_is_left_for_is_not_begun(self):
        said = self.check("out", "--only", "sweep,tests-own", "--limit", "1")
        for step in ("sweep", "tests-own"):
            self.assertIn(f"== {step}: not begun", said)
        self.assertEqual(os.listdir(self.path("out")), ["test.log"])

    def test_a_time_that_is_no_number_of_seconds_is_refused_before_anything_runs(self):
        for option in ("--limit", "--budget"):
            for time in ("9m", "x", "-1", "08"):
                done = call(*self.command("out", option, time), exit_code=2)
                self.assertIn(f"take a whole number of seconds, not {time}", done.stdout + done.stderr)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_kernels_are_built_for_every_gpu_that_can_run_them(self):
        text = self.read(SCRIPT)
        begin, end = text.index("native_architectures() {"), text.index("build_program() {")
        for found, expected in (("7.5", ""), ("9.0", "90a-real"), ("7.5\\n8.0\\n9.0\\n9.0",
                                                                   "90a-real;80-real"),
                                ("No devices were found", ""), ("[N/A]\\n12.0", "120-real")):
            self.write("bin/nvidia-smi", f"#!/bin/sh\nprintf '{found}\\n'\n", 0o755)
            done = call("bash", "-euc", 'dry=""\n' + text[begin:end] + "native_architectures",
                        env=os.environ | {"PATH": self.path("bin") + ":" + os.environ["PATH"]})
            self.assertEqual(done.stdout.strip(), expected, found + done.stderr)

    def test_a_gpu_without_cudnn_and_pytorch_runs_neither_and_only_a_program_that_can_not_list_fails(self):
        os.symlink(os.path.join(BUILD, "bench-lstm"), self.path("real"))
        unable = NO_CUDNN.replace("--list)", '--list) [ "$2" != -T ] || exit 3;')
        for program, step, code, *said in (
                (NO_CUDNN, "frameworks", 0, "cudnn on the frameworks' cases: done, exit code 5",
                 "PyTorch: done, exit code 77"),
                (unable, "versions", 1, "versions: FAILED, exit code 3")):
            self.write("build/bench-lstm", program, 0o755)
            done = call("bash", SCRIPT, self.path(step), "--build", self.path("build"), "--only", step, exit_code=code)
            for words in said:
                self.assertIn("== " + words, done.stdout)


class Twice(unittest.TestCase):
    def check(self, method, rows):
        """What a report says of rows of the same case, and whether it has failed."""
        report, said = Report(parse([])), []
        report.say = said.append
        for tail, row in zip(("", "/batched"), rows):
            getattr(report, method)({"case": "cudnn/T3_B2_H8/f16/train" + tail, "verdict": "ok", **row})
        report.log.close()
        report.rows.close()
        return said, report.failed

    def test_other_bits_fail_where_they_are_promised_and_are_named_everywhere(self):
        for deterministic in (1, 0):
            said, failed = self.check("compare", [{"hash": bits, "deterministic": deterministic} for bits in "12"])
            self.assertEqual((failed, len(said)), (bool(deterministic), 1))
            self.assertIn("two runs gave different bits: hashes 1 and 2", said[0])

    def test_clocks_that_depend_on_the_timing_are_named(self):
        for batched, named in ((1900, 0), (1400, 1), (None, 0)):
            said, failed = self.check("check_clock", [{"sm_mhz": 1980}, {"sm_mhz": batched}])
            self.assertEqual((failed, len(said)), (False, named))


@unittest.skipIf("built without" in run("--list", "--impl", "fused", "-T", "5", "-B", "8",
                                        "-H", "8").stdout, "built without CUDA")
class Shapes(unittest.TestCase):
    def test_one_is_long_enough_for_a_wavefront_of_every_family_that_has_one(self):
        for family, has_one in (("cluster", True), ("grid", False), ("step", True)):
            said = run("--explain", f"fused:{family}/{LONG[0]}/f16/infer", "--device-model", "h100")
            self.assertEqual("layers in a wavefront" in said.stdout, has_one, family)


class Predictions(ProgramTest):
    def cells(self):
        cells = csv.DictReader(self.read(os.path.join(CUDA, "predictions.csv")).splitlines())
        return {(cell["hidden"], cell["batch"]): cell for cell in cells}

    def compare(self, name, lines):
        self.write(name, "\n".join(lines))
        return call(sys.executable, os.path.join(CUDA, "predictions.py"), self.path(name), exit_code=0).stdout

    def test_replayed_calls_are_compared_with_the_table_and_no_others(self):
        cell = self.cells()["1024", "1"]
        case = f"fused:{cell['forward']}/T128_B1_I1024_H1024/f16/infer"
        us = float(cell["infer_T128_us"])
        rows = [(case + "/graph", "ok", 2 * us), (case, "ok", 9 * us),
                (case.replace("B1_", "B2_") + "/graph", "ok", 9 * us),
                (case.replace("infer", "train") + "/graph", "wrong", None)]
        lines = [json.dumps({"kind": "row", "case": name, "verdict": verdict,
                             "median_ns": median and 1e3 * median}) for name, verdict, median in rows]
        said = self.compare("run.jsonl", [*lines, '{"kind":"row","case":']) # the last is cut off
        self.assertRegex(said, rf"^{case}/graph +expected +{us:.3f} us, measured +"
                               rf"{2 * us:.3f}, +2\.00\n{cell['forward']} infer: .*"
                               r"of 1: median 2\.00, 2\.00 to 2\.00\n$")

    def test_parts_of_the_planned_tile_are_compared_with_their_terms(self):
        cell, line = self.cells()["256", "16"], "cluster forward H256 B16: %s: %.4f us"
        step, product, exchange = (float(cell[f"cluster_forward_{part}_us"])
                                   for part in ("step", "product", "exchange"))
        plan, rest = cell["cluster_forward_plan"], step - product - exchange
        # Each term is another multiple of what is expected: 2, 3, and 1.5 for what remains.
        whole = 2 * product + 3 * exchange + 1.5 * rest
        said = self.compare("test.log", [
            line % (plan, 9 * step), "try_fused whole steps", line % (plan, whole), line % ("16 blocks", 9 * step),
            line.replace("B16", "B2") % (plan, 9 * step),
            "try_fused -DLB_FUSED_PRODUCT=0", line % (plan, whole - 2 * product) + ", 1 of",
            "try_fused -DLB_FUSED_EXCHANGE=0", line % (plan, whole - 3 * exchange),
            "try_fused -DLB_FUSED_TRACE", line % (plan, 9 * step)])
        ratios = re.findall(r"^(.*?) +expected .*, +([\d.]+)$", said, re.M)
        self.assertEqual(ratios, [
            (f"cluster forward {part}, H256 B16", ratio) for part, ratio in (
                ("step", f"{whole / step:.2f}"), ("product", "2.00"), ("exchange", "3.00"), ("rest", "1.50"))])


if __name__ == "__main__":
    unittest.main()
