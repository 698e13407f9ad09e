"""A sweep killed at any moment and resumed: every case has exactly one row."""

import concurrent.futures
import os
import random
import shlex
import signal
import subprocess
import time
import unittest

from program import (PROGRAM, ProgramTest, TINY, line_count, planted, plugin, read_lines, read_rows, run, started,
                     validator_of_lines, wait_until, write_lines)

CASES = ["-T", "2:21:+1", "-B", "1,3", "-H", "8", "--case-time", "0.005", "--impl", "cpu_ref,cpu_simd"]
NO_PLOTS = ["--plots", "none"] # which would take longer than the cases


class Resume(ProgramTest):
    def kill_when(self, out, lines, delay, *arguments):
        """Kills the program, unless it has ended, some seconds after its run has so many lines."""
        with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: process.poll() is not None or line_count(out + "/run.jsonl") >= lines, 100)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)

    def test_killed_at_10_random_moments_every_case_has_one_row(self):
        """Four runs at a time: they spend most of it waiting."""
        cases = ["-T", "2:4:+1", *CASES[2:], *NO_PLOTS]
        run("--sweep", *cases, "--out", self.path("whole"), exit_code=0)
        expected = set(read_rows(self.path("whole")))
        self.assertEqual(len(expected), 12)

        def attempt(number):
            moments = random.Random(20261121 + number)
            out = self.path(f"run{number}")
            lines = moments.randint(1, 12) # of a header, 12 rows and a footer
            self.kill_when(out, lines, moments.uniform(0, 0.01), "--sweep", *cases, "--out", out)
            lines = line_count(out + "/run.jsonl") + moments.randint(0, 6)
            self.kill_when(out, lines, moments.uniform(0, 0.01), "--resume", out, *NO_PLOTS)
            return out, run("--resume", out, *NO_PLOTS)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            ended = list(pool.map(attempt, range(10)))
        for out, done in ended:
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(set(read_rows(out)), expected)

    def test_a_resumed_run_keeps_settings_and_plugins(self):
        path = plugin("misbehave_none")
        with started(self.path("run"), "--sweep", "-T", "2:80:+1", "-B", "2", "-H", "8", "--case-time",
                     "0.005", "--impl", "misbehave_none", "--plugin", path, "--seed", "7") as process:
            process.kill()
        before = self.entries()
        run("--resume", self.path("run"), cwd="/", exit_code=2, said="--plugin " + path)
        self.assertEqual(self.entries(), before)
        run("--resume", self.path("run"), "--plugin", path, *NO_PLOTS, cwd="/", exit_code=0)
        rows = read_rows(self.path("run"))
        self.assertEqual(len(rows), 79)
        self.assertEqual({row["verdict"] for row in rows.values()}, {"ok"})

    def test_what_a_time_budget_skipped_is_run(self):
        # 8 cases of a few calls of 20 ms each: together more than the budget, but the first fits.
        rows, _ = self.sweep("-T", "40:43:+1", "-B", "8,16", "-H", "128", "--impl", "cpu_ref",
                             "--case-time", "0.02", "--time-budget", "0.3")
        skipped = [case for case, row in rows.items() if row["verdict"] == "skipped"]
        self.assertGreater(len(skipped), 0)
        done = run("--resume", self.path("run"), *NO_PLOTS, exit_code=0)
        self.assertRegex(done.stderr, f"{8 - len(skipped)} cases? (is|are) done, {len(skipped)} "
                         "cases? (is|are) left to run")
        entries = self.entries()
        latest = {entry["case"]: entry for entry in entries if entry["kind"] == "row"}
        self.assertEqual({row["verdict"] for row in latest.values()}, {"ok"})
        self.assertEqual((len(latest), entries[-1]["rows"]), (8, 8))
        exported = run("--export", "csv", self.path("run")).stdout
        self.assertEqual(len(exported.splitlines()), 1 + 8)
        self.assertNotIn("skipped", exported)
        self.assertIn("0 cases are left to run", run("--resume", self.path("run"), *NO_PLOTS).stderr)

    def entries(self):
        return read_lines(self.path("run"))

    def small_run(self, *arguments):
        """A sweep of small cases; its header, its rows and its footer."""
        self.sweep(*arguments, "-B", "2", "-H", "4", "--case-time", "0.02", "--impl", "cpu_ref")
        header, *rows, footer = self.entries()
        return header, rows, footer

    def change_header(self, **changes):
        """Rewrites the run's header; a value of None takes the key away."""
        header, *rest = self.entries()
        header = {key: value for key, value in {**header, **changes}.items() if value is not None}
        write_lines(self.path("run"), [header, *rest])

    def resume(self, *arguments, exit_code=0, said=""):
        done = run("--resume", self.path("run"), *arguments, *NO_PLOTS, exit_code=exit_code)
        self.assertRegex(done.stderr, said)
        return done

    def test_a_random_order_stays_random(self):
        self.sweep("-T", "1:20:+1", "-B", "1", "-H", "2", "--impl", "cpu_ref", "--case-time", "0.001",
                   "--time-budget", "0.000000001", "--benchmark_enable_random_interleaving=true", exit_code=5)
        self.resume(said="20 cases are left to run")
        again = [line["case"] for line in self.entries() if line.get("verdict") == "ok"]
        self.assertEqual(set(again), set(self.entries()[0]["cases"]))
        self.assertNotEqual(again, self.entries()[0]["cases"])

    def test_every_line_of_a_resumed_run_is_of_the_schema(self):
        validator = validator_of_lines()
        self.sweep("-T", "2:5:+1", *CASES[2:6], "--impl", "cpu_ref", "--case-time", "0.02",
                   "--tune", "--tuned", self.path("tuned.txt"))
        again = ["--resume", self.path("run"), "--call-limit", "60", "--tuned", self.path("tuned.txt"), *NO_PLOTS]
        self.assertEqual(run(*again).returncode, 0)
        entries = self.entries()
        for entry in entries:
            validator.validate(entry)
        resume = next(entry for entry in entries if entry["kind"] == "resume")
        self.assertEqual(resume["command"][1:], again)

    def test_a_resume_that_is_refused_leaves_the_run_as_it_was(self):
        self.sweep(*TINY, *planted("misbehave_none"))
        whole = self.entries()[0]
        more = [*whole["cases"], "misbehave_none/T4_B2_I4_H4/f32/infer"]
        written = self.path("written")
        broken = [({"plugins": ["/no/such.so"], "cases": more}, "--plugin /no/such.so"),
                  ({"tune": True, "tuned": written}, "give --tuned with that file again"),
                  ({"processes": "many"}, "processes is missing"),
                  ({"cases": ["cpu_ref/T0_B1_H1"]}, "cases[0]"),
                  ({"interleaved": "with another"}, "run --ab again")]
        for changes, words in broken:
            with self.subTest(changes=changes):
                self.change_header(**changes)
                before = self.entries()
                run("--resume", self.path("run"), exit_code=2, said=words)
                self.assertEqual(self.entries(), before)
                self.change_header(**{**dict.fromkeys(changes), **whole})
                self.assertFalse(os.path.exists(written))

    def test_limits_of_workers_are_kept_unless_they_are_given_anew(self):
        name = "misbehave_hang"
        self.sweep(*TINY, *planted(name), "--call-limit", "0.5", "--memory", "3G", "--device", "2", "--tune",
                   "--tuned", "choices.txt", exit_code=1, cwd=self.scratch)
        header, row, footer = self.entries()
        self.assertEqual({key: header[key] for key in
                          ("call_limit_s", "memory_bytes", "device", "tune", "tuned")},
                         {"call_limit_s": 0.5, "memory_bytes": 3 << 30, "device": 2, "tune": True,
                          "tuned": self.path("choices.txt")})
        entries = [header, footer]
        for arguments, limit in (([], "0.5"), (["--call-limit", "0.7"], "0.7"), ([], "0.5")):
            write_lines(self.path("run"), entries)
            run("--resume", self.path("run"), *arguments, "--plugin", plugin(name), "--tuned",
                self.path("choices.txt"), exit_code=1)
            latest = next(entry for entry in self.entries() if entry["kind"] == "row")
            entries = [entry for entry in self.entries() if entry["kind"] != "row"]
            self.assertEqual(latest["case"], row["case"])
            self.assertIn(f"did not return within {limit} s", latest["reason"])

    def test_cases_that_were_disturbed_are_named_and_measured_again(self):
        def others(rows):
            for share, row in zip((0.5, 0.04), rows):
                row["others_share"] = share

        def slow_moment(rows): # in which the fixed loop takes longer
            for ns, row in zip((1.3e6, 1.1e6), rows):
                row["reference_ns"] = [ns]

        header, usual, footer = self.small_run("-T", "3:10:+1")
        for disturb, why in ((others, "others 50 %"), (slow_moment, "30 % slower")):
            rows = [{**row, "reference_ns": [1e6], "others_share": 0} for row in usual]
            disturb(rows)
            write_lines(self.path("run"), [header, *rows, footer])
            done = self.resume(said="0 cases are left to run")
            for words in ("noisy     1 of 8 cases was measured while other programs used more than 5 %",
                          rows[0]["case"] + f" ({why})",
                          f"bench-lstm --resume {self.path('run')} --retry noisy"):
                self.assertIn(words, done.stderr)
            if disturb == slow_moment:
                self.assertIn("the machine was 30 % slower", run("--export", "csv", self.path("run")).stdout)
            self.resume("--retry", "noisy", said="7 cases are done, 1 case is left to run")
            again = [entry["case"] for entry in self.entries() if entry["kind"] == "row"][8:]
            self.assertEqual(again, [rows[0]["case"]])
        self.assertEqual(run("--sweep", "--retry", "noisy").returncode, 2)

    def test_verdicts_that_are_named_are_run_again(self):
        header, rows, footer = self.small_run("-T", "3:6:+1")
        for verdict, row in zip(("timeout", "crash", "oom", "ok"), rows):
            row["verdict"] = verdict
        write_lines(self.path("run"), [header, *rows, footer])
        for verdicts, left in ((None, 0), ("error", 0), ("oom", 1), ("timeout,oom,crash", 2)):
            retry = ["--retry", verdicts] if verdicts else []
            done = self.resume(*retry, exit_code=0 if left == 2 else 1,
                               said=f"{4 - left} cases are done, {left} cases? (is|are) left to run")
        self.assertNotIn("warning: " + self.path(""), done.stderr) # each session wrote a case once
        self.assertEqual(run("--export", "csv", self.path("run")).stdout.count(",ok,"), 4)

    def test_the_hint_of_an_interrupted_sweep_is_a_command(self):
        out = self.path("a run of mine's")
        with started(out, "--sweep", "-T", "64:163:+1", "-B", "8", "-H", "64", "--impl", "cpu_ref", "--case-time",
                     "0.01", *NO_PLOTS, lines=1) as process:
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=500)
        hint = next(line for line in err.splitlines() if "continue with: " in line)
        self.assertEqual(shlex.split(hint.split("continue with: ")[1]), ["bench-lstm", "--resume", out])


if __name__ == "__main__":
    unittest.main()
