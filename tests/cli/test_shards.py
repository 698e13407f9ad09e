"""Shards of a sweep and --merge: every case once, nodes and devices apart, slow nodes named."""

import csv
import json
import os
import random
import re
import shutil
import tempfile
import unittest

from program import PROGRAM, ProgramTest, call, read_lines, read_rows, run, started, validator_of_lines, write_lines
from test_report import Page

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLAN = ["-T", "2,3", "-B", "1,3", "-H", "8,16", "--impl", "cpu_ref,cpu_simd"]
CASES = [*PLAN, "--case-time", "0.02", "--plots", "none"]  # 16 cases of 8 problems


def shard_of(index, count, plan="00000000000000aa", **more):
    """What the header of a shard says of it."""
    return {"index": index, "count": count, "plan": plan, **more}


class MergeTest(ProgramTest):
    def merge(self, out, *runs, exit_code=0, said=""):
        return run("--merge", self.path(out), *[self.path(name) for name in runs], exit_code=exit_code, said=said)

    def read(self, name):
        with open(self.path(name + "/run.jsonl"), "rb") as file:
            return file.read()


class Shards(MergeTest):
    @classmethod
    def setUpClass(cls):
        """Both shards of the plan, which the tests merge and read."""
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.shards = scratch.name
        for index in (1, 2):
            run("--sweep", *CASES, "--shard", f"{index}/2", "--out", f"{cls.shards}/{index}", exit_code=0)

    def planned(self):
        done = run("--list", "--format", "json", *PLAN, exit_code=0)
        return {case["case"] for case in json.loads(done.stdout)["cases"]}

    def test_merged_shards_have_the_cases_of_the_unsharded_plan_each_once(self):
        parts = [set(read_rows(f"{self.shards}/{i}")) for i in (1, 2)]
        self.assertTrue(all(parts))
        first, second = ({case.split("/", 1)[1] for case in part} for part in parts) # their problems
        self.assertFalse(first & second)
        done = self.merge("merged", self.shards)
        self.assertIn("16 rows of 2 runs in 1 environment", done.stdout)
        self.assertNotIn("missing", done.stdout)
        self.assertEqual(set(read_rows(self.path("merged"))), self.planned())
        self.assertEqual(set().union(*parts), self.planned())
        # The table of the merged run is that of any run.
        exported = run("--export", "csv", self.path("merged"))
        self.assertEqual(len(exported.stdout.splitlines()), 17)
        self.assertEqual(run("--report", self.path("merged"), "-o", self.path("r.html")).returncode, 0)

    def test_every_shard_begins_and_ends_with_three_canaries(self):
        for index in (1, 2):
            entries = read_lines(f"{self.shards}/{index}")
            kinds = [entry["kind"] for entry in entries]
            self.assertEqual(kinds[1:4], ["canary"] * 3)
            self.assertEqual(kinds[-4:], ["canary"] * 3 + ["footer"])
            self.assertEqual(kinds.count("canary"), 6)
            canaries = [entry for entry in entries if entry["kind"] == "canary"]
            self.assertEqual([entry["when"] for entry in canaries], ["start"] * 3 + ["end"] * 3)
            self.assertEqual([entry["case"] for entry in canaries[:3]], entries[0]["shard"]["canaries"])
            self.assertTrue(all(entry["verdict"] == "ok" for entry in canaries))

    def test_a_shard_without_cases_is_a_run_of_canaries_alone(self):
        run("--sweep", "-T", "2", "-B", "1", "-H", "8", "--impl", "cpu_ref", "--case-time",
            "0.02", "--plots", "none", "--shard", "2/2", "--out", self.path("run"), exit_code=0)
        self.assertEqual({entry["kind"] for entry in read_lines(self.path("run"))}, {"header", "canary", "footer"})

    def test_a_killed_and_resumed_shard_loses_nothing(self):
        shutil.copytree(self.shards + "/2", self.path("shards/2"))
        with started(self.path("shards/1"), "--sweep", *CASES, "--shard", "1/2", lines=7) as process:
            process.kill()
        merged = self.merge("merged", "shards", exit_code=6)
        self.assertIn("incomplete: 1 of the runs did not end", merged.stdout)
        self.assertTrue(read_lines(self.path("merged"))[-1]["interrupted"])
        run("--resume", self.path("shards/1"), exit_code=0)
        self.merge("merged", "shards")
        rows = read_rows(self.path("merged"))
        self.assertEqual(set(rows), self.planned())
        self.assertEqual({(row["verdict"], row["reason"]) for row in rows.values()}, {("ok", "")})
        run("--resume", self.path("merged"), exit_code=2, said="merged from others")

    def test_lines_have_the_schema(self):
        validator = validator_of_lines()
        self.merge("merged", self.shards)
        for name in (f"{self.shards}/1", "merged"):
            for entry in read_lines(self.path(name)):
                validator.validate(entry)


class Merging(MergeTest):
    """Made-up runs."""

    def make(self, name, host="a", started="2026-01-31T12:00:00Z", cases=(), factor=1.0, seed=1, shard=None,
             files=None, **environment):
        """A run with rows of those cases: (H, median, verdict). files: what the header says of them."""
        def case(size):
            return f"cpu_ref/T2_B1_I8_H{size}/f32/infer"
        header = {"kind": "header", "schema": 2, "started": started, "seed": seed,
                  "cases": [case(size) for size, _, _ in cases],
                  "environment": {"host": host, "cpu": "made up", **environment}, **(files or {}),
                  **({"shard": shard} if shard else {})}
        canaries = [{"kind": "canary", "case": case(8 << i), "verdict": "ok", "when": when,
                     "samples_ns": [1e6 * factor] * 20} for when in ("start", "end") for i in range(3)]
        canaries += [{"kind": "canary", "case": case(8), "verdict": "crash", "when": "end", "samples_ns": []}]
        rows = [{"kind": "row", "case": case(size), "hidden": size, "verdict": verdict,
                 **({"samples_ns": [median] * 20} if verdict == "ok" else {"reason": "made up", "samples_ns": []})}
                for size, median, verdict in cases]
        write_lines(self.path(name), [header, *canaries, *rows, {"kind": "footer", "rows": len(cases),
                                                                 "interrupted": False}])

    def merged_rows(self, name):
        entries = read_lines(self.path(name))
        hosts = [entry["host"] for entry in entries[0]["environments"]]
        return sorted((hosts[row["environment"]], row["hidden"], row["verdict"],
                       row["samples_ns"][0] if row["samples_ns"] else None)
                      for row in entries if row["kind"] == "row")

    def test_the_result_does_not_depend_on_the_order_and_stays_the_same_merged_again(self):
        shuffled = random.Random(7)
        for index in range(6):
            self.make(f"runs/{index}", host="abc"[index % 3], started=f"2026-01-31T12:00:0{index}Z",
                      shard=shard_of(index + 1, 6),
                      cases=[(8 * (1 + (index + k) % 5), 1000 + index, "ok") for k in range(3)])
        names = [f"runs/{index}" for index in range(6)]
        self.merge("first", "runs")
        for _ in range(3):
            shuffled.shuffle(names)
            self.merge("other", *names)
            self.assertEqual(self.merged_rows("other"), self.merged_rows("first"))
        for name, *sources in (("first", "runs"), ("again", "first"), ("with", "first", "runs")):
            before = self.read("first")
            said = self.merge(name, *sources).stdout
            self.assertEqual("\n3 rows were replaced" in said, "runs" in sources)
            self.assertEqual(self.read(name), before)

    def test_the_later_row_of_a_case_and_environment_counts(self):
        self.make("1", started="2026-01-31T12:00:00Z", cases=[(8, 1000, "ok"), (16, 7, "ok")])
        self.make("2", started="2026-01-31T14:00:00Z", cases=[(8, 2000, "ok")])
        done = self.merge("merged", "2", "1")
        self.assertEqual(self.merged_rows("merged"), [("a", 8, "ok", 2000), ("a", 16, "ok", 7)])
        self.assertIn("1 row was replaced", done.stdout)

    def test_a_skipped_row_never_replaces_one_that_ran_and_gives_way_on_any_node(self):
        self.make("1", started="2026-01-31T12:00:00Z", cases=[(8, 1000, "ok"), (16, 7, "skipped")])
        self.make("2", started="2026-01-31T14:00:00Z", cases=[(8, 0, "skipped")])
        self.make("3", host="b", cases=[(16, 9, "ok"), (24, 0, "skipped")])
        self.make("4", host="c", cases=[(24, 0, "skipped")])
        self.merge("merged", "1", "2", "3", "4")
        rows = self.merged_rows("merged")
        self.assertEqual([row[1:] for row in sorted(rows, key=lambda row: row[1])],
                         [(8, "ok", 1000), (16, "ok", 9), (24, "skipped", None)])

    def test_other_environments_stay_apart(self):
        self.make("1", host="a", cases=[(8, 1000, "ok")])
        self.make("2", host="b", cases=[(8, 1100, "ok")])
        self.make("3", host="a", commit="fedcba987654", cases=[(8, 1200, "ok")])
        self.merge("merged", "1", "2", "3")
        self.assertEqual(self.merged_rows("merged"), [("a", 8, "ok", 1000), ("a", 8, "ok", 1200),
                                                      ("b", 8, "ok", 1100)])

    def test_runs_of_other_values_are_refused_with_both_sources(self):
        def given(weights):
            return {"weights": {"file": "/b.safetensors", "prefix": "", "hash": weights}}

        self.make("1", files=given("1" * 16), cases=[(8, 1000, "ok")])
        for options, words in (({"seed": 23}, "the value of its seed is 23, but that of .*1/run.jsonl is 1"),
                               ({}, "the hash of its weights is none, but that of .*1/run.jsonl is 1{16}"),
                               ({"files": given("2" * 16)}, "the hash of its weights is 2{16}")):
            self.make("2", cases=[(16, 1000, "ok")], **options)
            self.assertRegex(self.merge("merged", "1", "2", exit_code=2).stderr, words)
        self.assertFalse(os.path.exists(self.path("merged/run.jsonl")))
        self.make("2", files=given("1" * 16), cases=[(16, 1000, "ok")])
        self.merge("merged", "1", "2")
        self.assertEqual(read_lines(self.path("merged"))[0]["weights"], given("1" * 16)["weights"])

    def test_what_is_no_run_is_refused(self):
        os.mkdir(self.path("empty"))
        self.merge("merged", "empty", exit_code=2, said="neither it nor a folder in it holds a run.jsonl")
        self.merge("merged", "missing", exit_code=2)
        self.make("1", cases=[(8, 1000, "ok")])
        self.merge("1", "1", exit_code=2, said="is a run of its own")
        self.change("1", lambda lines: lines.append({"kind": "row", "verdict": "ok"}))
        self.merge("merged", "1", exit_code=2, said="case: it is missing")

    def test_missing_shards_are_told_and_others_refused(self):
        for index in (1, 3):
            self.make(f"runs/{index}", cases=[(8 * index, 1000, "ok")], shard=shard_of(index, 4))
        done = self.merge("merged", "runs", exit_code=6)
        self.assertIn("incomplete: shards 2, 4 of 4 are missing", done.stdout)
        self.make("other", cases=[(64, 1000, "ok")], shard=shard_of(2, 4, "00000000000000bb"))
        self.merge("merged", "runs", "other", exit_code=2,
                   said="a shard of the plan 00000000000000bb in 4 parts, but the runs before it")
        self.make("other", host="b", cases=[(24, 1000, "ok")], shard=shard_of(3, 4))
        self.assertIn("3 rows of 3 runs in 2 environments", self.merge("merged", "runs", "other", exit_code=6).stdout)

    def test_the_missing_shard_completes_a_merged_run_unless_another_did_not_end(self):
        for index in (1, 2):
            self.make(f"runs/{index}", cases=[(8 * index, 1000, "ok")], shard=shard_of(index, 2, plan_cases=2))
        for end, code in ((False, 0), (True, 6)):
            self.change("runs/1", lambda lines: lines[-1].update(interrupted=end))
            self.merge("part", "runs/1", exit_code=6)
            self.merge("whole", "part", "runs/2", exit_code=code)
            self.assertEqual(read_lines(self.path("whole"))[-1]["interrupted"], end)

    def test_folder_that_cannot_be_read_is_a_failure(self):
        self.make("runs/1", cases=[(8, 1000, "ok")])
        os.mkdir(self.path("runs/closed"), 0)
        limits = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
        call(*limits, PROGRAM, "--merge", self.path("merged"), self.path("runs"), exit_code=2,
             said="runs/closed: Permission denied")

    def change(self, name, change):
        """Changes the lines of a made-up run."""
        lines = read_lines(self.path(name))
        change(lines)
        write_lines(self.path(name), lines)

    def test_rows_that_a_plan_lacks_and_cases_without_a_row_are_told(self):
        def plan_h32_for_h16(lines):
            lines[0]["cases"][1] = lines[0]["cases"][1].replace("H16", "H32")
        self.make("1", cases=[(8, 1000, "ok"), (16, 1000, "ok")])
        self.change("1", plan_h32_for_h16)
        self.merge("merged", "1", exit_code=6,
                   said="cases of its plan that have no row: 1; rows of cases that its plan lacks: 1")

        for index in (1, 2):
            self.make(f"runs/{index}", cases=[(8 * index, 1000, "ok")], shard=shard_of(index, 2, plan_cases=3))
        self.assertIn("incomplete: 1 of the plan's 3 cases have no row", self.merge("m", "runs", exit_code=6).stdout)
        self.assertIn("1 of the plan's 3 cases", self.merge("again", "m", exit_code=6).stdout)

    def test_a_slow_node_is_named_and_its_rows_are_marked(self):
        for index, host in enumerate("abcde"):
            self.make(f"runs/{host}", host=host, cases=[(8 * (1 + index), 1000, "ok")],
                      factor=1.4 if host == "c" else 1 + 0.01 * index)
        done = self.merge("merged", "runs")
        self.assertRegex(done.stdout, r"(?m)^node c is (3[6-9]|4[0-4]) % slower than the median of 5 "
                                      r"nodes of .*, by its canaries")
        self.assertEqual(len(re.findall("(?m)^node ", done.stdout)), 1)
        marked = [row["hidden"] for row in read_lines(self.path("merged"))
                  if row["kind"] == "row" and "node_warning" in row]
        self.assertEqual(marked, [24])
        page = run("--export", "csv", self.path("merged")).stdout
        self.assertEqual(page.count("by its canaries"), 1)
        first = self.read("merged")
        self.merge("again", "merged")
        self.assertEqual(self.read("again"), first)
        # A merge that no longer finds it slow takes the mark off.
        self.make("runs/c", host="c", cases=[(24, 1000, "ok")])
        self.assertIn("no node is off by its canaries", self.merge("merged", "runs").stdout)
        self.assertNotIn(b"node_warning", self.read("merged"))
        done = self.merge("two", "runs/a", "runs/b")
        self.assertIn("canaries tell nothing: at least 3 nodes of one device are needed", done.stdout)

    def devices(self):
        """Two nodes of one device and one of another, which have one case in common."""
        self.make("runs/a", host="a", cases=[(8, 1000, "ok"), (16, 1000, "ok")])
        self.make("runs/b", host="b", cases=[(8, 1010, "ok"), (32, 1000, "ok")])
        self.make("runs/c", host="c", cpu="Other <CPU>", cases=[(8, 2000, "ok"), (64, 1, "ok")])
        self.merge("merged", "runs")

    def export(self, *arguments):
        return run("--export", *arguments, self.path("merged"), exit_code=0).stdout

    def test_devices_are_never_mixed_and_nodes_of_one_are_taken_together(self):
        self.devices()
        markdown = self.export("markdown")
        self.assertRegex(markdown, "3 environments: 2 x .*, 1 x Other <CPU>|"
                                   "3 environments: 2 x .*, 1 x Other  CPU ")
        lines = [line for line in markdown.splitlines() if "H8/" in line]
        self.assertEqual(len(lines), 2)
        self.assertEqual(sum("Other -CPU-" in line for line in lines), 1)
        rows = list(csv.reader(self.export("csv").splitlines()))
        self.assertEqual(rows[0][-1], "device")
        self.assertEqual(len(rows), 6)
        report = self.path("page.html")
        # Pages of their own; series per device; series per node; all together.
        for by, *expected in (([], 1, 2, 5), (["--by", "device"], 2, 1, 5), (["--by", "node"], 3, 1, 6),
                              (["--by", "none"], 1, 1, 4)):
            run("--report", self.path("merged"), "-o", report, *by, exit_code=0)
            data = Page(report).data
            cases = sum(len(problem[5]) for problem in data["problems"])
            self.assertEqual([len(data["series"]), len(data["settings"]), cases], expected, data["series"])
        run("--report", self.path("merged"), "-o", report, "--by", "colour", exit_code=2,
            said="--by colour: it takes device, node or none")

    def test_compare_holds_a_device_against_itself_alone(self):
        self.devices()
        shutil.copytree(self.path("merged"), self.path("base"))

        def changes_from(base):
            done = run("--compare", self.path(base), self.path("merged"), "--format", "json")
            return {entry["case"]: entry["change"] for entry in json.loads(done.stdout)["cases"]}
        changes = changes_from("base")
        self.assertEqual(len(changes), 5)
        self.assertEqual(sum(" on Other -CPU-" in case for case in changes), 2)
        self.assertFalse({"gone", "new"} & set(changes.values()))
        # A run of one device against both: by default it has the labels too.
        changes = changes_from("runs/c")
        own = [change for case, change in changes.items() if "Other" in case]
        self.assertEqual(set(own) & {"new", "gone"}, set())
        self.assertEqual({change for case, change in changes.items() if "Other" not in case}, {"new"})


if __name__ == "__main__":
    unittest.main()
