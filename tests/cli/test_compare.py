"""Comparing runs from outside: planted regressions, unchanged code, A/B in one process, history."""

import html
import json
import os
import random
import re
import signal
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from program import PROGRAM, ProgramTest, plugin, read_lines, read_rows, run, wait_until

# Two cases of about a tenth of a millisecond. The plug-in can slow down one of them, by so much that
# other work on this machine can't look like it.
CASES = ["--case", "slow/T16_B1_H32", "--case", "slow/T8_B1_H64"]
FAST = "slow/T16_B1_I32_H32/f32/infer"
PLANTED = "slow/T8_B1_I64_H64/f32/infer"
SWEEP = ["--sweep", "--plugin", plugin("slow_0"), *CASES, "--case-time", "0.02"]


class Compare(ProgramTest):
    def other_program(self, protocol=2, commit="abc+changes", **environment):
        """Another build of the program: its workers have these variables."""
        self.write("other", f"#!/bin/sh\n[ \"$1\" != --version ] || {{ echo 'bench-lstm 0 (commit {commit})'; " +
                   f"echo worker protocol {protocol}; exit; }}\n" +
                   "".join(f"export {name}={value}\n" for name, value in environment.items()) +
                   f"exec {PROGRAM} \"$@\"\n", 0o755)
        return self.path("other")

    def test_two_programs_take_turns_and_the_slower_one_is_named(self):
        slow = {**os.environ, "LB_SLOW_PERCENT": "900", "LB_SLOW_HIDDEN": "64"}
        other = self.other_program(LB_SLOW_PERCENT="0")
        done = run(*SWEEP, "--against", other, "--margin", "200", "--out", self.path("turns"), env=slow,
                   exit_code=3)
        self.assertEqual(re.findall(r"(?m)^slower .* (\S+)$", done.stdout), [PLANTED])
        for side, program, commit in (("base", other, "abc"), ("new", "this program", None)):
            header = read_lines(self.path("turns/" + side))[0]
            self.assertEqual(header["program"], program)
            self.assertEqual(header["environment"]["commit"] == "abc", commit == "abc")
            self.assertTrue(header["environment"]["dirty"] or commit != "abc")
            self.assertEqual({row["processes"] == 15 * [1] for row in read_rows(self.path("turns/" + side)).values()},
                             {True})
        base, new = self.path("turns/base"), self.path("turns/new")
        run("--compare", base, new, "--margin", "200", exit_code=3, printed="REGRESSION")
        document = json.loads(run("--compare", base, new, "--margin", "200", "--format", "json").stdout)
        changes = {case["case"]: case for case in document["cases"]}
        self.assertEqual(changes[PLANTED]["change"], "slower")
        self.assertGreater(changes[PLANTED]["ratio_lo"], 1)
        self.assertNotEqual(changes[FAST]["change"], "slower")
        # In the other direction it is faster, which is no failure.
        run("--compare", new, base, "--margin", "200", exit_code=0)
        # In turns with itself it is not slower.
        run(*SWEEP, "--against", PROGRAM, "--processes", "6", "--margin", "200", "--out", self.path("same"),
            exit_code=0, printed="--processes 9 would do")

    def test_a_case_that_always_failed_is_no_pass(self):
        crash = ["--plugin", plugin("misbehave_crash"), "--case", "misbehave_crash/T8_B1_H64"]
        run(*SWEEP, *crash, "--against", self.other_program(commit="abc"), "--processes", "6", "--margin", "500",
            "--out", self.path("turns"), exit_code=1, printed="still failing")
        self.assertFalse(read_lines(self.path("turns/base"))[0]["environment"]["dirty"])

    def test_what_takes_no_turns_is_refused(self):
        for words, said in ((["--against", "/bin/true"], "/bin/true: it is no bench-lstm"),
                            (["--against", "/no/such"], "/no/such: it is no bench-lstm"),
                            (["--against", self.other_program(protocol=0)], "(protocol 0, and 2 here)"),
                            (["--against", PROGRAM, "--shard", "1/2"], "excludes --devices and --shard"),
                            (["--margin", "3"], "--margin: a sweep compares only --against another program")):
            run(*SWEEP, *words, "--out", self.path("run"), exit_code=2, said=said)
            self.assertFalse(os.path.exists(self.path("run")))
        for word in ("--hang-limit=2", "--benchmark_out=x", "--benchmark_format=json", "--benchmark_repetitions=2",
                     "--kernels", "--plots=time-h", "--verbose", "--benchmark_enable_random_interleaving=true"):
            run(*SWEEP, word, "--against", PROGRAM, exit_code=2, said="--against compares pairs of processes and")

    def test_no_case_begins_after_the_time_budget(self):
        run(*SWEEP, "--against", PROGRAM, "--time-budget", "0.000000001", "--plots", "none", "--out", self.path("run"),
            exit_code=5)
        for side in ("base", "new"):
            self.assertEqual({row["verdict"] for row in read_rows(self.path("run/" + side)).values()}, {"skipped"})

    def test_several_runs_of_the_base_tell_how_much_runs_differ(self):
        base, slow = self.at("base", 1), self.at("slow", 1.05)
        wide = [self.at(f"wide{i}", f) for i, f in enumerate((0.95, 1.04, 0.96, 1.05))]
        run("--compare", base, slow, exit_code=3, printed="which is not allowed for")
        done = run("--compare", base, *wide, slow, exit_code=0)
        self.assertRegex(done.stdout, r"differ by [45][.0-9]* % .* from 5 runs of the base")
        self.assertEqual(run("--compare", base).returncode, 2)
        self.assertEqual(run("--compare", base, self.path("none"), slow).returncode, 2)

    def at(self, name, factor):
        """A run of ten processes of one case that take so many microseconds."""
        return self.edit(name, lambda lines: lines[1].update(
            samples_ns=[1000 * factor + i for i in range(10)], blocks=[1] * 10, processes=[1] * 10))

    def edit(self, name, change):
        """A copy of a made-up run with its lines changed."""
        row = {"kind": "row", "case": FAST, "verdict": "ok", "samples_ns": [1, 2, 3, 4]}
        lines = [{"kind": "header", "schema": 2, "environment": {}}, row,
                 {"kind": "footer", "rows": 1, "interrupted": False}]
        text = change(lines)
        if text is None:
            text = "".join(json.dumps(line) + "\n" for line in lines)
        self.write(name + "/run.jsonl", text)
        return self.path(name)

    def test_bad_input_is_said(self):
        good = self.edit("good", lambda lines: None)

        cut = self.edit("cut", lambda lines: "".join(json.dumps(line) + "\n" for line in lines[:2])
                        + '{"kind":"row","case":"x')
        self.assertIn("cut short in the middle of a line", run("--compare", good, cut).stdout)
        other = self.edit("other", lambda lines: lines[1].update(case=PLANTED))
        done = run("--compare", good, other, exit_code=5, printed="nothing to compare")
        self.assertIn("gone", done.stdout)
        self.assertIn("new ", done.stdout)
        machine = self.edit("machine", lambda lines: lines[0]["environment"].update(cpu="another"))
        for name in ("table", "markdown", "junit", "json"):
            done = run("--compare", good, machine, "--format", name, printed="DIFFERENT ENVIRONMENTS (cpu)")
            if name == "junit":
                ElementTree.fromstring(done.stdout)
        ab = ["--ab", "cpu_ref", "cpu_simd", "--case", "T16_B4_H64", "--out", self.path("no")]
        for arguments, code, said in ((["--compare", good, good, "--margin", "0"], 2, "--margin"),
                                      (["--compare", good, good, "--margin", "x"], 2, "--margin"),
                                      (["--compare", good, good, "--format", "pdf"], 2, "--format"),
                                      ([*ab, "--where", "T>99"], 5, "no case is left: 1 combination was ruled out"),
                                      ([*ab, "--case", "cpu_ref/T4_B1_H8"], 2, "--case: --ab names the implementations"),
                                      (["--ab", "cpu_ref", "cpu_rif", *ab[3:]], 2, "cpu_ref")):
            run(*arguments, exit_code=code, said=said)

    def test_folders_of_any_name_are_reported(self):
        good = self.edit("good", lambda lines: None)
        for name, said in ((b"<&\"'>", "<&\"'>"), (b"latin \xe9", "latin ?"), ("größer".encode(), "größer")):
            folder = os.path.join(os.fsencode(self.scratch), name)
            os.rename(good, folder)
            document = json.loads(run("--compare", folder, folder, "--format", "json").stdout)
            self.assertEqual(os.path.basename(document["base"]), said)
            ElementTree.fromstring(run("--compare", folder, folder, "--format", "junit").stdout)
            self.assertIn("too few processes", run("--compare", folder, folder, "--format", "markdown").stdout)
            page = self.path("page.html")
            self.assertEqual(run("--report", folder, "-o", page).returncode, 0)
            title = re.search("<title>(.*)</title>", self.read(page))[1]
            self.assertTrue(html.unescape(title).endswith("/" + said), title)
            os.rename(folder, good)

    def test_slowdown_of_one_sweep_is_taken_back_by_another(self):
        """test_ci.py has the other outcomes."""
        sweeps = ["--compare", self.at("base", 1), self.at("slow", 1.2), "--confirm"]
        run(*sweeps, self.at("same", 1), "--strict", exit_code=4, printed="slower in one of two sweeps; in the other: same")
        run(*sweeps, self.path("none"), exit_code=2)

    def test_two_builds_of_one_plugin_are_told_apart_in_one_process(self):
        run("--ab", plugin("slow_0"), plugin("slow_100"), "--case", "T8_B1_H64", "--out",
            self.path("ab"), "--benchmark_repetitions=30", exit_code=3, printed="slower")
        run("--compare", self.path("ab/a"), self.path("ab/b"), exit_code=3)
        for side in "ab":
            rows = read_rows(self.path("ab/" + side))
            self.assertEqual([len(row["blocks"]) for row in rows.values()], [30])

    def test_headers_of_both_sides_say_how_they_were_measured(self):
        done = run("--ab", "plugins/slow_0.so", "cpu_ref", "--case", "T4_B1_H8", "--out",
                   self.path("ab"), cwd=os.path.dirname(os.path.dirname(plugin("slow_0"))))
        self.assertIn(done.returncode, (0, 3), done.stderr)
        for side, plugins in (("a", [plugin("slow_0")]), ("b", [])):
            header, row = read_lines(self.path("ab/" + side))[:2]
            sampler = header["sampler"]
            self.assertEqual((header["plugins"], header["repetitions"]), (plugins, len(row["blocks"])))
            self.assertEqual((sampler["min_samples"], sampler["max_samples"], sampler["max_ns"]),
                             (6, 25, 1e7))
            self.assertLessEqual(max(row["blocks"]), sampler["max_samples"])
            run("--resume", self.path("ab/" + side), exit_code=2, said="run --ab again")

    def test_a_side_that_fails_is_named(self):
        done = run("--ab", plugin("slow_0"), plugin("misbehave_crash"), "--case", "T8_B1_H64", "--out",
                   self.path("ab"), "--benchmark_repetitions=8", exit_code=3)
        self.assertRegex(done.stdout, r"broken .*T8_B1_I64_H64/f32/infer  crash: ")

    def test_side_that_cannot_run_is_treated_alike_whichever_side_was_first(self):
        cases = ["-T", "1:20:+1", "-B", "1", "-H", "2", "--dtype", "bf16", "--benchmark_repetitions=2"]
        reason = "unsupported: dtype bf16: "
        for sides, change in ((("openblas", "cpu_ref"), f"mended .*before: {reason}"),
                              (("cpu_ref", "openblas"), f"gone .*{reason}")):
            done = run("--ab", *sides, *cases, "--out", self.path(sides[0]))
            self.assertEqual(len(re.findall(change, done.stdout)), 20, done.stdout)


class History(ProgramTest):
    def write_run(self, name, lines):
        self.write("runs/" + name, "".join(json.dumps(line) + "\n" for line in lines))

    def edit(self, name, old, new):
        path = f"runs/{name}/run.jsonl"
        self.write(path, self.read(path).replace(old, new))

    def history(self):
        return run("--history", self.path("runs"), exit_code=0)

    def make_runs(self, count, change_at, factor):
        """Runs of two cases, of which the first changes for good. The order of files is not that of time."""
        noise = random.Random(7)
        for i in range(count):
            header = {"kind": "header", "schema": 2, "started": f"2026-03-01T{i // 60:02}:{i % 60:02}:00Z",
                      "environment": {"host": "made-up", "commit": f"{i:012x}", "dirty": i == 30}}
            lines = [header]
            for case, step in ((PLANTED, factor), (FAST, 1)):
                level = 1e5 * (1 + 0.01 * noise.gauss(0, 1)) * (step if i >= change_at else 1)
                lines.append({"kind": "row", "case": case, "verdict": "ok",
                              "samples_ns": [level * (1 + 0.001 * k) for k in range(9)]})
            lines.append({"kind": "footer", "rows": 2, "interrupted": False})
            self.write_run(f"{(i * 37) % count}/run.jsonl", lines)
        return self.path("runs")

    def test_planted_change_is_found_with_case_and_commit(self):
        runs = self.make_runs(60, 31, 1.05)
        done = self.history()
        changes = [line for line in done.stdout.splitlines() if line.startswith(("slower", "faster"))]
        self.assertEqual(len(changes), 1, done.stdout)
        self.assertIn(PLANTED, changes[0])
        commits = [f"commit {i:012x}" for i in (30, 31, 32)]
        self.assertTrue(any(commit in changes[0] for commit in commits), changes[0])
        self.assertIn(f"{30:012x}+changes", changes[0])
        svg = ElementTree.parse(os.path.join(runs, "plots", "history.svg"))
        words = " ".join(e.text or "" for e in svg.iter() if e.tag.endswith("text"))
        self.assertIn("T8_B1_I64_H64", words.replace("\u00a0", " "))

    def test_every_case_has_its_line(self):
        """More cases than fit into one picture: the others are in a second one."""
        for i in range(6):
            lines = [{"kind": "header", "schema": 2, "started": f"2026-03-01T00:00:0{i}Z", "environment": {}}]
            lines += [{"kind": "row", "case": f"slow/T{n}_B1_H8", "verdict": "ok", "samples_ns": [100 + i % 3]}
                      for n in range(1, 16)]
            self.write_run(f"{i}.jsonl", lines)
        done = self.history()
        drawn = []
        for name in ("history", "history-2"):
            svg = ElementTree.parse(self.path(f"runs/plots/{name}.svg"))
            drawn += [e.text.split("_")[0] for e in svg.iter() if e.tag.endswith("text") and e.text
                      and e.text.startswith("slow/T")]
            self.assertTrue(os.path.getsize(self.path(f"runs/plots/{name}.png")) > 1000)
        self.assertEqual(sorted(drawn), sorted(f"slow/T{n}" for n in range(1, 16)))
        self.assertEqual(sum("slow/T" in line for line in done.stdout.splitlines()), 15)
        self.assertIn("history-2", done.stderr)

    def test_runs_of_another_environment_or_schema_and_broken_ones_are_left_out(self):
        self.make_runs(10, 99, 1)
        self.edit("0", "made-up", "elsewhere")
        for name in ("1", "2"):
            self.edit(name, '"schema": 2', '"schema": 1')
        self.write_run("broken.jsonl", ["no run"])
        done = self.history()
        self.assertIn("7 runs", done.stdout)
        self.assertIn("1 run is of another environment than the latest (host)", done.stderr)
        self.assertIn("2 runs have another schema version: left out", done.stderr)
        self.assertIn("broken.jsonl", done.stderr)

    def test_a_case_of_several_nodes_is_one_line(self):
        """Merged runs: one case has as many rows as nodes, and so more rows than there are runs."""
        nodes = 200
        environments = [{"host": f"node{i}", "cpu": "made-up"} for i in range(nodes)]
        for i in range(6):
            lines = [{"kind": "header", "schema": 2, "started": f"2026-03-01T00:00:0{i}Z", "merged": True,
                      "environment": environments[0], "environments": environments}]
            lines += [{"kind": "row", "case": PLANTED, "verdict": "ok", "environment": node,
                       "samples_ns": [1e5 + i + k for k in range(9)]} for node in range(nodes)]
            lines += [{"kind": "footer", "rows": nodes, "interrupted": False}]
            self.write_run(f"{i}.jsonl", lines)
        done = self.history()
        self.assertIn("6 runs", done.stdout)
        lines = [line for line in done.stdout.splitlines() if line.endswith(PLANTED)]
        self.assertEqual(len(lines), 1, done.stdout)
        self.assertEqual(len(lines[0].split()[0]), 6, lines[0]) # one bar per run

    def test_it_can_be_interrupted_while_it_draws(self):
        self.write("bin/gnuplot", f"#!/bin/sh\n: >{self.path('draws')}\nexec sleep 500\n", 0o755)
        env = os.environ | {"PATH": self.path("bin") + ":" + os.environ["PATH"]}
        with subprocess.Popen([PROGRAM, "--history", self.make_runs(6, 99, 1)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=env) as process:
            wait_until(lambda: os.path.exists(self.path("draws")))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=500), 130)

    def test_few_runs_show_nothing(self):
        run("--history", self.make_runs(5, 99, 1), exit_code=5, said="5 runs of one environment")
        for i in range(6):
            self.write_run(f"{i}/run.jsonl", [{"kind": "header", "schema": 2}])
        run("--history", self.path("runs"), exit_code=5, said="no case has a time")


if __name__ == "__main__":
    unittest.main()
