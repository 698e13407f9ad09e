"""--devices on fake devices: one process per device, whose runs are merged; every case once."""

import collections
import json
import os
import re
import signal
import subprocess
import unittest

from program import BUILD, PROGRAM, ProgramTest, line_count, read_lines, read_rows, run, wait_until, without_libraries

FAKE = os.path.join(BUILD, "tests", "fake_devices.so")
PLUGIN = ["--plugin", FAKE, "--plots", "none"]
# 12 problems; the host's implementation has a case of each, too.
GRID = ["-T", "2,3,5,7", "-B", "1", "-H", "8,16,24", "--impl", "fake_gpu,cpu_ref", "--case-time", "0.02"]
GPU_GRID = [word.replace(",cpu_ref", "") for word in GRID]


class DevicesTest(ProgramTest):
    def environment(self, count=3, **planted):
        """The environment of a program that sees so many fake devices; planted: slow=2 for LB_FAKE_SLOW.
        Canaries run the plug-in, because implementations that can't run on these devices are absent."""
        return {**without_libraries(self.path("libraries"), "cublas|cudnn"), "LD_PRELOAD": FAKE,
                "LB_FAKE_DEVICES": str(count),
                **{"LB_FAKE_" + key.upper(): str(value) for key, value in planted.items()}}

    def fake(self, *arguments, exit_code=0, **options):
        return run(*arguments, env=self.environment(**options), exit_code=exit_code)

    def sweep_all(self, *arguments, devices="all", grid=None, **options):
        """A sweep on fake devices; its rows by case, its lines, and the finished process."""
        done = self.fake("--sweep", "--devices", devices, *PLUGIN, *(grid or GRID), "--out", self.path("run"),
                         *arguments, **options)
        return read_rows(self.path("run")), read_lines(self.path("run")), done


class Healthy(DevicesTest):
    def test_every_case_runs_once_on_the_device_that_its_row_names(self):
        rows, lines, done = self.sweep_all()
        self.assertEqual((len(rows), {row["verdict"] for row in rows.values()}), (24, {"ok"}))
        environments = lines[0]["environments"]
        ran = collections.Counter()
        for row in rows.values():
            gpu = environments[row["environment"]]["gpu"]["ordinal"]
            if row["impl"] == "fake_gpu":
                self.assertTrue(row["description"].startswith(f"on fake device {gpu},"))
            ran[row["impl"], gpu] += 1
        self.assertEqual(ran, {(impl, gpu): 4 for impl in ("fake_gpu", "cpu_ref") for gpu in range(3)})
        self.assertEqual(sorted(os.listdir(self.path("run/devices"))), ["0", "1", "2"])
        for gpu in range(3):
            self.assertEqual(read_lines(self.path(f"run/devices/{gpu}"))[0]["shard"]["index"], gpu + 1)
        self.assertIn("no node is off by its canaries", done.stderr)
        self.assertIn("3 environments: 3 x Fake GPU", done.stdout)

    def test_devices_that_are_named_have_cpus_of_their_own(self):
        rows, _, done = self.sweep_all(devices="2,1", grid=GPU_GRID)
        used = collections.defaultdict(set)
        for row in rows.values():
            self.assertEqual(row["verdict"], "ok")
            device, cpus = re.match(r"on fake device (\d), CPUs ([0-9,-]+)$", row["description"]).groups()
            used[device].add(cpus)
        self.assertEqual((set(used), sum(map(len, used.values()))), ({"1", "2"}, 2))
        if "fewer cores than devices" not in done.stderr:
            self.assertFalse(used["1"] & used["2"])

    def test_filter_and_repetitions_reach_every_device(self):
        rows, lines, _ = self.sweep_all("--benchmark_filter=fake_gpu/T2_", "--benchmark_repetitions", "2",
                                        devices="0,1")
        self.assertEqual(lines[0]["repetitions"], 2)
        self.assertEqual([(row["verdict"], len(row["blocks"])) for row in rows.values()], [("ok", 2)] * 3)

    def test_without_sizes_the_devices_have_the_plan_of_one(self):
        words = ["--impl", "fake_gpu", "--where", "T*B*H<=16384"]
        listed = self.fake("--list", *PLUGIN[:2], *words, "--format", "json").stdout
        planned = {case["case"] for case in json.loads(listed)["cases"]}
        rows, _, _ = self.sweep_all("--time-budget", "0.000000001", devices="0,1", grid=words, exit_code=5)
        self.assertEqual(set(rows), planned)

    def test_devices_share_a_time_budget(self):
        rows, _, _ = self.sweep_all("--time-budget", "0.000000001", devices="2,1", grid=GPU_GRID, exit_code=5)
        self.assertEqual({row["verdict"] for row in rows.values()}, {"skipped"})


class Planted(DevicesTest):
    def test_a_slow_device_is_named_and_a_crash_costs_its_row(self):
        # On a busy machine the fake device takes some samples for too long: in 0.2 s these are a minority.
        rows, lines, done = self.sweep_all("--case-time", "0.2", grid=GPU_GRID, exit_code=1, slow=2, crashes="all")
        self.assertRegex(done.stderr, r"(?m)^node \S+ GPU-fa000002 is (4[5-9]|5[0-5]) % slower than the median of 3")
        marked = {lines[0]["environments"][row["environment"]]["gpu"]["ordinal"]
                  for row in rows.values() if "node_warning" in row}
        self.assertEqual(marked, {2})
        verdicts = collections.Counter((row["seq_len"] == 5, row["verdict"]) for row in rows.values())
        self.assertEqual(verdicts, {(True, "crash"): 3, (False, "ok"): 9})

    def test_an_interrupt_is_passed_on_and_a_resume_goes_on_with_all_devices(self):
        arguments = ["--sweep", "--devices", "0,1", *PLUGIN, *GRID, "--out", self.path("run")]
        with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, env=self.environment(hangs=1)) as process:
            # Device 1 hangs in its first case of T 5; device 0 has run its cases.
            wait_until(lambda: line_count(self.path("run/devices/0/run.jsonl")) == 40
                       and line_count(self.path("run/devices/1/run.jsonl")) > 24, seconds=300)
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=500)[1]
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(f"interrupted; continue with: bench-lstm --resume {self.path('run')}", err)
        self.assertTrue(read_lines(self.path("run/devices/1"))[-1]["interrupted"])
        self.fake("--resume", self.path("run/run.jsonl"), *PLUGIN)
        rows = read_rows(self.path("run"))
        self.assertEqual(sorted(os.listdir(self.path("run/devices"))), ["0", "1"])
        self.assertEqual((len(rows), {row["verdict"] for row in rows.values()}), (24, {"ok"}))


class Refused(DevicesTest):
    def test_what_cannot_be_is_refused_with_its_reason(self):
        for words, said in ((["--devices", "0,4"], "--devices: no CUDA device 4: there are 3"),
                            (["--devices", "0,1", "--device", "1"], "exclude each other"),
                            (["--devices", "0,1", "--shard", "1/2"], "exclude each other"),
                            (["--devices", "0,1", "--tune"], "--tune: with --devices"),
                            (["--devices=0,0"], "--devices 0,0: it takes all, or up to 64 different numbers")):
            done = self.fake("--sweep", *PLUGIN, *GPU_GRID, "--out", self.path("run"), *words, exit_code=2)
            self.assertIn(said, done.stderr)
        done = self.fake("--sweep", *PLUGIN, *GPU_GRID, "--devices", "all", exit_code=2, count=0)
        self.assertIn("there are 0", done.stderr)
        self.assertFalse(os.path.exists(self.path("run")))

    def test_a_plan_says_how_long_the_devices_take(self):
        plan = ["--plan", *PLUGIN, "-T", "256", "-B", "1,2,4,8", "-H", "256",
                "--pass", "infer,train", "--processes", "60", "--impl", "fake_gpu"]
        alone, both = self.fake(*plan).stdout, self.fake(*plan, "--devices", "0,1,2").stdout
        self.assertIn("devices   3", both)
        self.assertNotIn("devices ", alone)
        seconds = [float(re.search(r"time +about ([0-9.]+) s", text)[1]) for text in (alone, both)]
        self.assertLess(seconds[1], 0.5 * seconds[0])


if __name__ == "__main__":
    unittest.main()
