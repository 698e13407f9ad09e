"""--profile: one case in one process, where profilers collect during the timed calls only; --kernels."""

import os
import re
import shutil
import subprocess
import unittest

import nvtx_events
from program import (BUILD, PROGRAM, ProgramTest, TINY, call, plugin, profiling_recipes, read_lines, run,
                     write_lines)

RECORDER = os.path.join(BUILD, "tests", "nvtx", "nvtx_recorder.so")
CASE = "T4_B2_I4_H8/f32/train"
ROW = {"seq_len": 4, "batch": 2, "input": 4, "hidden": 8, "layers": 1, "directions": 1,
       "dtype": "f32", "pass": "train", "case": "noted/" + CASE, "verdict": "ok"}


class Profile(ProgramTest):
    def test_all_is_in_one_process_and_in_its_range(self):
        if not os.path.exists(RECORDER):
            self.skipTest("built without NVTX")
        env = dict(os.environ, NVTX_INJECTION64_PATH=RECORDER, LD_PRELOAD=RECORDER,
                   NVTX_RECORDER_OUT=self.path("events"))
        with subprocess.Popen([PROGRAM, "--profile", "noted/" + CASE, "--plugin", plugin("noted"),
                               "--profile-calls", "7"], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            out, err = process.communicate(timeout=500)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("7 calls", out)
        self.assertEqual(os.listdir(self.scratch), [f"events.{process.pid}"])
        events = nvtx_events.read_events(self.path("events"))[0]
        self.assertEqual(nvtx_events.complaints(events, [dict(ROW, impl="noted")]), [])
        self.assertEqual(nvtx_events.emitted_inside(events), [])
        regions = nvtx_events.timed_regions(events)
        self.assertEqual([phase for phase, _ in regions], ["warm-up"] * 3 + ["timed"] * 7)

    def test_what_does_not_run_says_why(self):
        for case, arguments, code, said in (
                ("openblas/T4_B2_H8/f16/infer", [], 5, "unsupported: dtype f16"),
                ("misbehave_hang/T4_B2_H8", ["--call-limit", "1"], 1,
                 "verify did not return within 1 s"),
                ("cpu_ref/T4_B2_H8", ["--call-limit", "1e-7"], 1, "did not return within 1e-07 s"),
                ("broken_idle_after_first/T4_B2_H8", [], 1, "wrong")):
            impl = case.split("/", maxsplit=1)[0]
            added = ["--plugin", plugin(impl)] if impl.startswith(("misbehave", "broken")) else []
            done = run("--profile", case, *added, *arguments, exit_code=code)
            self.assertIn(said, done.stdout + done.stderr)


class Callgrind(ProgramTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("valgrind"):
            self.skipTest("there is no valgrind")

    def collect(self, calls):
        """Instructions collected, and the text of the profile."""
        out = self.path(f"callgrind.{calls}")
        done = call("valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=" + out, PROGRAM,
                    "--profile", "cpu_ref/" + CASE, "--profile-calls", str(calls), exit_code=0)
        if "callgrind" not in done.stdout:
            self.skipTest("built without Callgrind's client requests")
        text = self.read(out)
        return int(re.search(r"^totals: (\d+)", text, re.MULTILINE).group(1)), text

    def test_only_the_timed_calls_are_collected(self):
        few, text = self.collect(2)
        many, _ = self.collect(8)
        self.assertIn("cpu_ref_forward", text)
        self.assertIn("cpu_ref_backward", text)
        for other in ("lb_reference_open", "lb_tensors_upload", "lb_registry_create"):
            self.assertNotIn(other, text)
        self.assertAlmostEqual(many / few, 4, delta=0.2)


# In place of profilers that are not here: checks the options, runs the program, leaves a report.
STAND_IN = """#!/bin/bash
tool=${0##*/} command=$1 report=report1
case $tool:$command in
nsys:profile) shift ;;
nsys:stats) [ "$2" = --report ] && [ "$3" = nvtx_sum ] && [ -f "$4" ]; exit ;;
QdstrmImporter:--input-file) [ -f "$2" ]; exit ;;
callgrind_annotate:* | perf:report) exit ;;
perf:record) shift ;;
ncu:--profile-from-start) [ "$2" = off ] || exit 2; shift 2 ;;
*) exit 2 ;;
esac
while [[ $1 == -* ]]; do
  case $tool:$1 in
  nsys:--output=*) report=${1#*=} ;;
  nsys:--trace=cuda,nvtx | nsys:--trace=nvtx | nsys:--cuda-graph-trace=node | nsys:--sample=none | \\
  nsys:--cpuctxsw=none | nsys:--capture-range=cudaProfilerApi | nsys:--capture-range=nvtx | \\
  nsys:--capture-range-end=stop | nsys:--nvtx-capture=timed@bench-lstm) ;;
  perf:--output=perf.data) ;;
  *) echo "$tool: unknown option $1" >&2; exit 2 ;;
  esac
  shift
done
"$@" || exit
[ $tool != nsys ] || touch "$report.nsys-rep" "$report.qdstrm"
"""


class Recipes(ProgramTest):
    """Every command of PROFILING.md as it stands there."""

    def test_every_command_works_as_it_stands(self):
        def runs(*command):
            return shutil.which(command[0]) is not None and subprocess.run(
                command, cwd=self.scratch, capture_output=True, check=False).returncode == 0

        # Tools that need a GPU (see test_nsys.py), or do not work here, have a stand-in.
        for name in ["nsys", "ncu", "QdstrmImporter"] + (
                [] if runs("perf", "record", "--output=/dev/null", "true") else ["perf"]):
            self.write("bin/" + name, STAND_IN, 0o755)
        os.symlink(PROGRAM, self.path("bin/bench-lstm"))
        for name in ("valgrind", "callgrind_annotate"):
            if not shutil.which(name):
                self.skipTest(f"there is no {name}")
        env = {**os.environ, "PATH": self.path("bin") + ":" + os.environ["PATH"], "NSYS": self.path("bin")}
        parts = profiling_recipes()
        self.assertGreaterEqual(len(parts), 9)
        for part in parts[1:]:
            with self.subTest(part=part):
                done = call("bash", "-euc", parts[0] + part, cwd=self.scratch, env=env)
                without_gpu = "cudnn" in part and done.returncode == 5
                self.assertTrue(done.returncode == 0 or without_gpu, done.stdout + done.stderr)


class Kernels(ProgramTest):
    def test_a_row_says_why_there_are_none(self):
        rows, _ = self.sweep(*TINY, "--impl", "cpu_ref", "--kernels")
        for row in rows.values():
            self.assertEqual(row["verdict"], "ok")
            self.assertIsNone(row["kernels"])
            self.assertIsNone(row["tensor_cores"])
            self.assertIn("runs on the host", row["kernels_reason"])

    def test_a_resumed_run_goes_on_tracing(self):
        self.sweep(*TINY, "-T", "4,5", "--impl", "cpu_ref", "--kernels")
        lines = read_lines(self.path("run"))
        write_lines(self.path("run"), lines[:2])
        run("--resume", self.path("run"), exit_code=0)
        self.assertEqual(self.read("run/run.jsonl").count("runs on the host"), len(lines) - 2)

    def test_explain_shows_what_is_known(self):
        done = run("--explain", "cpu_ref/" + CASE, "--kernels", exit_code=0)
        self.assertIn("kernels  unknown: it runs on the host", done.stdout)


if __name__ == "__main__":
    unittest.main()
