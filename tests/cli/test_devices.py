"""--devices on fake devices: every case once, on all devices, and a fault costs the rows of one device."""

import collections
import json
import os
import re
import signal
import subprocess
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

from program import BUILD, PROGRAM, ProgramTest, line_count, read_rows, run, wait_until, without_libraries

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FAKE = os.path.join(BUILD, "tests", "fake_devices.so")
PLUGIN = ["--plugin", FAKE, "--plots", "none", "--case-time", "0.02"]
# 12 problems; the host's implementation has a case of each, too.
GRID = ["-T", "2,3,5,7", "-B", "1", "-H", "8,16,24", "--impl", "fake_gpu,cpu_ref"]
GPU_GRID = [*GRID[:-1], "fake_gpu"]


def read_lines(folder):
    with open(os.path.join(folder, "run.jsonl"), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class DevicesTest(ProgramTest):
    def environment(self, count=4, **planted):
        """The environment of a program that sees so many fake devices; planted: dies=2 for LB_FAKE_DIES.
        Canaries run the plug-in, because implementations that can't run on these devices are absent."""
        os.makedirs(self.path("notes"), exist_ok=True)
        return {**without_libraries(self.path("libraries"), "cublas|cudnn"), "LD_PRELOAD": FAKE,
                "LB_FAKE_DEVICES": str(count), "LB_FAKE_FOLDER": self.path("notes"),
                **{"LB_FAKE_" + key.upper(): str(value) for key, value in planted.items()}}

    def fake(self, *arguments, exit_code=0, count=4, **planted):
        done = run(*arguments, env=self.environment(count, **planted), timeout=560)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return done

    def sweep_all(self, *arguments, devices="all", name="run", grid=None, **options):
        """A sweep on fake devices; its rows by case, its lines, and the finished process."""
        done = self.fake("--sweep", "--devices", devices, *PLUGIN, *(grid or GRID), "--out",
                         self.path(name), *arguments, **options)
        return read_rows(self.path(name)), read_lines(self.path(name)), done

    def check_places(self, lines, devices):
        """Each row of a device ran on the device that it names. Returns how many rows each device has."""
        environments = lines[0]["environments"]
        self.assertEqual([one["gpu"]["ordinal"] for one in environments], devices)
        self.assertEqual(lines[0]["environment"], environments[0])
        counts = collections.Counter()
        for row in lines:
            if row["kind"] not in ("row", "canary"):
                continue
            gpu = environments[row["environment"]]["gpu"]
            if row["impl"] == "fake_gpu":
                self.assertTrue(gpu["uuid"].startswith(f"GPU-fa{gpu['ordinal']:06x}"))
                if row["verdict"] == "ok":
                    self.assertTrue(row["description"].startswith(f"on fake device {gpu['ordinal']},"))
                if row["kind"] == "row":
                    counts[gpu["ordinal"]] += 1
        return counts


class Healthy(DevicesTest):
    def test_four_devices_run_every_case_once_and_the_run_is_like_any_other(self):
        rows, lines, done = self.sweep_all()
        self.assertEqual(len(rows), 24)
        self.assertEqual({row["verdict"] for row in rows.values()}, {"ok"})
        counts = self.check_places(lines, [0, 1, 2, 3])
        self.assertEqual(sorted(counts), [0, 1, 2, 3])
        self.assertEqual(sum(counts.values()), 12)
        self.assertEqual(lines[0]["devices"], [0, 1, 2, 3])
        self.assertEqual({row["environment"] for row in rows.values() if row["impl"] == "cpu_ref"}, {0})
        # Cases of the host come when no device is busy any more.
        order = [line["impl"] for line in lines if line["kind"] == "row"]
        self.assertEqual(order, ["fake_gpu"] * 12 + ["cpu_ref"] * 12)
        canaries = collections.Counter((line["environment"], line["when"]) for line in lines
                                       if line["kind"] == "canary")
        self.assertEqual(canaries, {(device, when): count for device in range(4)
                                    for when, count in (("start", 9), ("busy", 9), ("end", 3))})
        self.assertIn("no device is slower or faster than the others", done.stderr)
        self.assertIn("the devices do not disturb each other", done.stderr)
        self.assertIn("4 environments: 4 x Fake GPU", done.stdout)
        self.check_outputs()
        self.check_schema(lines)

    def check_outputs(self):
        """Everything that reads runs reads this one; it is merged, and that is merged again."""
        for out, source in ("merged", "run"), ("again", "merged"):
            done = run("--merge", self.path(out), self.path(source))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("24 rows of 1 run in 4 environments", done.stdout)
            self.assertIn("no node is off by its canaries", done.stdout)
        with open(self.path("merged/run.jsonl"), "rb") as one, open(self.path("again/run.jsonl"), "rb") as two:
            self.assertEqual(one.read(), two.read())
        merged = read_lines(self.path("merged"))
        names = {row["case"]: row["environment"] for row in merged if row["kind"] == "row"}
        uuids = [one["gpu"]["uuid"] for one in merged[0]["environments"]]
        lines = read_lines(self.path("run"))
        before = {row["case"]: lines[0]["environments"][row["environment"]]["gpu"]["uuid"]
                  for row in lines if row["kind"] == "row"}
        self.assertEqual({case: uuids[number] for case, number in names.items()}, before)
        for by, series in ("device", 2), ("node", 5):
            done = run("--report", self.path("run"), "--plots", "none", "-o", self.path("r.html"), "--by", by)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(self.path("r.html"), encoding="utf-8") as file:
                data = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>',
                                            file.read(), re.DOTALL)[1])
            self.assertEqual(len(data["series"]), series, data["series"])
        done = run("--compare", self.path("run"), self.path("merged"), "--format", "json")
        self.assertEqual({case["change"] for case in json.loads(done.stdout)["cases"]} & {"gone", "new"}, set())

    def check_schema(self, lines):
        if jsonschema is None:
            return
        with open(os.path.join(ROOT, "results/run.schema.json"), encoding="utf-8") as file:
            validator = jsonschema.Draft7Validator(json.load(file))
        for line in lines + read_lines(self.path("merged")):
            validator.validate(line)

    def test_chosen_devices_have_cpus_of_their_own(self):
        _, lines, done = self.sweep_all(devices="3,1", grid=GPU_GRID, count=4)
        self.assertEqual(sorted(self.check_places(lines, [3, 1])), [1, 3])
        shares = re.findall(r"(?m)^device (\d)  Fake GPU, GPU-fa\S+: CPUs ([0-9,-]+)", done.stderr)
        if "fewer cores than devices" in done.stderr:
            self.skipTest("this machine has fewer cores than devices")
        self.assertEqual([share[0] for share in shares], ["3", "1"])
        used = collections.defaultdict(set)
        for row in lines:
            if row["kind"] == "row":
                device, cpus = re.match(r"on fake device (\d), CPUs ([0-9,-]+)$", row["description"]).groups()
                used[device].add(cpus)
        self.assertFalse(used["1"] & used["3"])

    def test_a_shard_and_several_processes_and_a_time_budget_go_with_devices(self):
        rows, lines, _ = self.sweep_all("--shard", "1/2", "--processes", "2", devices="0,1", grid=GPU_GRID)
        self.assertTrue(0 < len(rows) < 12)
        self.assertEqual({tuple(row["processes"]) for row in rows.values()}, {(1, 1)})
        self.assertEqual(lines[0]["shard"]["canaries"][0].split("/")[0], "fake_gpu")
        done = self.fake("--sweep", "--devices", "0,1", *PLUGIN, *GPU_GRID, "--time-budget", "0.000000001",
                         "--out", self.path("late"), exit_code=5)
        late = read_rows(self.path("late"))
        self.assertEqual([row["verdict"] for row in late.values()], ["skipped"] * 12, done.stderr)
        done = self.fake("--resume", self.path("late"), "--plugin", FAKE, "--plots", "none")
        self.assertIn("0 cases are done, 12 cases are left to run", done.stderr)
        resumed = read_lines(self.path("late"))
        self.assertEqual([line["devices"] for line in resumed if line["kind"] == "resume"], [[0, 1]])
        counts = collections.Counter(line["verdict"] for line in resumed if line["kind"] == "row")
        self.assertEqual(counts, {"skipped": 12, "ok": 12})
        self.assertEqual(len(run("--export", "csv", self.path("late")).stdout.splitlines()), 13)


class Planted(DevicesTest):
    def test_a_slow_device_is_named_and_a_crash_costs_its_row(self):
        rows, lines, done = self.sweep_all(grid=GPU_GRID, exit_code=1, slow=2, crashes="all")
        named = re.findall(r"(?m)^warning: device (\d): its device (\S+) is (\d+) % slower than the median of "
                           r"4 devices, by its canaries", done.stderr)
        self.assertEqual([(device, uuid[:12], 45 <= int(percent) <= 55) for device, uuid, percent in named],
                         [("2", "GPU-fa000002", True)], done.stderr)
        marked = {row["environment"] for row in lines if row["kind"] == "row" and "node_warning" in row}
        self.assertEqual(marked, {2})
        self.assertTrue(all("node_warning" in row for row in rows.values() if row["environment"] == 2))
        verdicts = collections.Counter((row["seq_len"] == 5, row["verdict"]) for row in rows.values())
        self.assertEqual(verdicts, {(True, "crash"): 3, (False, "ok"): 9})
        merged = run("--merge", self.path("merged"), self.path("run"))
        self.assertRegex(merged.stdout, r"(?m)^node \S+ GPU-fa000002 is \d+ % slower than the median of 4 nodes")
        self.assertEqual({row["case"] for row in read_lines(self.path("merged")) if "node_warning" in row},
                         {case for case, row in rows.items() if row["environment"] == 2})

    def test_neighbours_that_disturb_are_told_with_their_spread(self):
        _, _, done = self.sweep_all(devices="0,1,2", grid=[*GPU_GRID, "--where", "T==2"], disturb=1)
        changes = dict(re.findall(r"device (\d): its canaries take ([0-9.]+) % more with all 3 devices busy than "
                                  r"alone; their spread is [0-9.]+ %", done.stderr))
        self.assertTrue(40 < float(changes.pop("1")) < 60, done.stderr)
        self.assertEqual({float(change) for change in changes.values()}, {0.0})
        self.assertEqual(re.findall(r"(?m)^warning: device (\d): .*: its neighbours disturb it", done.stderr), ["1"])

    def test_a_lost_device_costs_its_row_and_the_others_take_the_rest(self):
        # The device is lost in the first of the two cases of its second problem.
        rows, lines, done = self.sweep_all("--cache", "hot,cold", grid=GPU_GRID, devices="0,1", exit_code=1,
                                           dies=1)
        counts = self.check_places(lines, [0, 1])
        self.assertEqual(len(rows), 24)
        self.assertEqual(counts, {0: 21, 1: 3})
        failed = [row for row in rows.values() if row["verdict"] != "ok"]
        self.assertEqual([(row["verdict"], row["environment"]) for row in failed], [("error", 1)])
        self.assertIn("illegal memory access", failed[0]["reason"])
        self.assertRegex(done.stderr, "warning: device 1 is lost, and takes no more cases: .*fallen off the bus; "
                                      "1 case of its problem goes to other devices")

    def test_without_any_device_left_cases_are_skipped_and_a_resume_runs_them(self):
        rows, _, done = self.sweep_all(devices="0,1", grid=GPU_GRID, exit_code=1, count=2, dies="all")
        verdicts = collections.Counter(row["verdict"] for row in rows.values())
        self.assertEqual(verdicts, {"ok": 4, "error": 2, "skipped": 6}, done.stderr)
        for device in (0, 1):
            os.remove(self.path(f"notes/dead-{device}"))
        done = self.fake("--resume", self.path("run"), "--plugin", FAKE, "--plots", "none", "--retry", "error",
                         count=2)
        self.assertEqual(len(run("--export", "csv", self.path("run")).stdout.splitlines()), 13)
        self.assertNotIn("lost", done.stderr)

    def test_an_interrupted_run_goes_on_with_its_devices(self):
        arguments = ["--sweep", "--devices", "0,1", *PLUGIN, *GPU_GRID, "--out", self.path("run")]
        with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, env=self.environment(hangs=1)) as process:
            # 18 + 18 canaries and the header; device 1 hangs in its first case of T 5.
            wait_until(lambda: line_count(self.path("run/run.jsonl")) > 40, seconds=300)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), 130)
            self.assertIn("interrupted; continue with: ", process.stderr.read())
        before = len(read_rows(self.path("run")))
        done = self.fake("--resume", self.path("run"), "--plugin", FAKE, "--plots", "none")
        self.assertRegex(done.stderr, f"{before} cases? (is|are) done, {12 - before} cases? (is|are) left to run")
        rows = read_rows(self.path("run"))
        self.assertEqual(len(rows), 12)
        self.assertEqual({row["verdict"] for row in rows.values()}, {"ok"})
        self.assertEqual(run("--merge", self.path("merged"), self.path("run")).returncode, 0)
        self.assertEqual(set(read_rows(self.path("merged"))), set(rows))


class Refused(DevicesTest):
    def refused(self, *arguments, **options):
        return self.fake("--sweep", *PLUGIN, *GPU_GRID, "--out", self.path("run"), *arguments, exit_code=2,
                         **options).stderr

    def test_what_cannot_be_is_refused_with_its_reason(self):
        self.assertIn("--devices: no CUDA device 4: there are 4", self.refused("--devices", "0,4"))
        self.assertIn("there are 0", self.refused("--devices", "all", count=0))
        self.assertIn("exclude each other", self.refused("--devices", "0,1", "--device", "1"))
        self.assertIn("--tune: with --devices", self.refused("--devices", "0,1", "--tune"))
        for bad in ("0,0", "0,", "x", "1024", "-1"):
            self.assertIn(f"--devices {bad}: it takes all, or up to 64 different numbers",
                          self.refused("--devices=" + bad))
        done = self.fake("--sweep", "--devices", "0,1", *PLUGIN, *GPU_GRID[:-1], "cpu_ref", "--out",
                         self.path("run"), exit_code=2)
        self.assertIn("no case runs on a GPU", done.stderr)
        self.assertFalse(os.path.exists(self.path("run")))

    def test_jobs_are_refused_because_neighbours_disturb(self):
        for word in (["--jobs", "4"], ["--jobs=4"], ["-j4"], ["-j", "2"]):
            done = run("--sweep", *word)
            self.assertEqual(done.returncode, 2)
            self.assertIn("a time that was taken beside neighbours is no measurement", done.stderr)

    def test_a_machine_without_a_gpu_says_so(self):
        done = run("--sweep", "--devices", "all", *GPU_GRID[:-1], "cpu_ref", "--out", self.path("run"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, "--devices: (this program was built without CUDA|no CUDA device: |"
                                      "no case runs on a GPU)") # the last on a machine with a GPU

    def test_a_plan_says_how_long_the_devices_take(self):
        plan = ["--plan", *PLUGIN, "-T", "256", "-B", "1,2,4,8", "-H", "256",
                "--pass", "infer,train", "--processes", "60", "--impl", "fake_gpu"]
        alone = self.fake(*plan).stdout
        both = self.fake(*plan, "--devices", "0,1,2,3").stdout
        self.assertIn("devices   4", both)
        self.assertNotIn("devices ", alone)
        seconds = [float(re.search(r"time +about ([0-9.]+) s", text)[1]) for text in (alone, both)]
        self.assertLess(seconds[1], 0.5 * seconds[0])


if __name__ == "__main__":
    unittest.main()
