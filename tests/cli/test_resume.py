"""A sweep killed at any moment and resumed: every case has exactly one row."""

import json
import os
import random
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, plugin, read_rows, run

CASES = ["-T", "2:21:+1", "-B", "1,3", "-H", "8", "--case-time", "0.02",
         "--impl", "cpu_ref,cpu_blas"]


class Resume(ProgramTest):
    def kill_after(self, arguments, seconds):
        with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)

    def test_killed_at_20_random_moments_every_case_has_one_row(self):
        start = time.monotonic()
        done = run("--sweep", *CASES, "--out", self.path("whole"))
        self.assertEqual(done.returncode, 0, done.stderr)
        duration = time.monotonic() - start
        expected = set(read_rows(self.path("whole")))
        self.assertEqual(len(expected), 80)
        moments = random.Random(20261121)
        for attempt in range(20):
            out = self.path(f"run{attempt}")
            self.kill_after(["--sweep", *CASES, "--out", out], moments.uniform(0, duration))
            if not os.path.exists(os.path.join(out, "run.jsonl")):
                continue  # killed before there was a run
            for _ in range(2):  # a resumed run may be killed again
                self.kill_after(["--resume", out], moments.uniform(0, duration / 2))
            done = run("--resume", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(set(read_rows(out)), expected)

    def test_a_resumed_run_keeps_settings_and_plugins(self):
        path = plugin("misbehave_none")
        arguments = ["--sweep", "-T", "2:200:+1", "-B", "2", "-H", "8", "--case-time", "0.02",
                     "--impl", "misbehave_none", "--plugin", path, "--seed", "7",
                     "--out", self.path("run")]
        self.kill_after(arguments, 1.0)
        done = run("--resume", self.path("run"), cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = read_rows(self.path("run"))
        self.assertEqual(len(rows), 199)
        self.assertEqual({row["verdict"] for row in rows.values()}, {"ok"})

    def test_a_full_disk_leaves_whole_rows(self):
        out = self.path("run")
        limited = f"ulimit -f 24; exec {PROGRAM} --sweep {' '.join(CASES)} --out {out}"
        done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("run.jsonl", done.stderr)
        self.assertGreater(len(read_rows(out)), 0)
        done = run("--resume", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(read_rows(out)), 80)

    def test_what_a_time_budget_skipped_is_run(self):
        # 40 cases of a few calls of 20 ms each: more than the budget, which the first fits into.
        rows, _ = self.sweep("-T", "40:59:+1", "-B", "8,16", "-H", "128", "--impl", "cpu_ref",
                             "--case-time", "0.02", "--time-budget", "0.8")
        skipped = [case for case, row in rows.items() if row["verdict"] == "skipped"]
        self.assertGreater(len(skipped), 0)
        done = run("--resume", self.path("run"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{40 - len(skipped)} cases are done, {len(skipped)} cases to go", done.stderr)
        with open(self.path("run/run.jsonl"), encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines]
        latest = {entry["case"]: entry for entry in entries if entry["kind"] == "row"}
        self.assertEqual({row["verdict"] for row in latest.values()}, {"ok"})
        self.assertEqual((len(latest), entries[-1]["rows"]), (40, 40))
        exported = run("--export", "csv", self.path("run")).stdout
        self.assertEqual(len(exported.splitlines()), 1 + 40)
        self.assertNotIn("skipped", exported)
        self.assertIn("0 cases to go", run("--resume", self.path("run")).stderr)

    def test_resuming_a_finished_run_runs_nothing(self):
        self.sweep(*CASES[:6], "--impl", "cpu_ref", "--case-time", "0.02")
        before = read_rows(self.path("run"))
        done = run("--resume", self.path("run"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 cases to go", done.stderr)
        self.assertEqual(read_rows(self.path("run")), before)


if __name__ == "__main__":
    unittest.main()
