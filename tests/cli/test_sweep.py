"""A sweep from end to end: rows, exit codes, output files, and what goes to stdout and stderr."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree as ElementTree

from program import (PROGRAM, ProgramTest, TINY, call, children_of, planted, plugin, processes_of, read_lines,
                     read_rows, run, run_on_terminal, started, wait_until)


class Sweep(ProgramTest):
    def test_every_cell_is_measured_and_has_a_price(self):
        cells = ["standard", "layernorm", "recurrent-dropout", "projection", "peephole", "residual"]
        rows, _ = self.sweep("-T", "3", "-B", "2", "-H", "8", "-L", "2", "--cell", ",".join(cells), "--pass",
                             "train", "--impl", "cpu_ref,cpu_simd,openblas", "--case-time", "0.001")
        self.assertEqual(len(rows), 3 * len(cells))
        for case, row in rows.items():
            fits = row["impl"] != "openblas" or row["cell"] == "standard"
            self.assertEqual(row["verdict"], "ok" if fits else "unsupported", (case, row["reason"]))
            if not fits:
                self.assertEqual(row["reason"], f"cell {row['cell']}: openblas needs the standard cell")
            self.assertEqual(row["projection"], 2 if row["cell"] == "projection" else None)
        median = {row["cell"]: row["median_ns"] for row in rows.values() if row["impl"] == "cpu_ref"}
        said = run("--explain", "cpu_ref/T3_B2_H8_L2/f32/train/cell-peephole", "--from", self.path("run"),
                   exit_code=0, printed="cell       peephole: 1 times the flops")
        ratio = f"{median['peephole'] / median['standard']:.3g}"
        self.assertIn(f"measured   peephole takes {ratio} times as long as the standard cell on cpu_ref", said.stdout)
        run("--report", self.path("run"), "-o", self.path("page.html"), exit_code=0)
        self.assertIn(f"peephole takes {ratio} times as long", self.read("page.html"))

    def test_the_header_says_how_the_run_came_about(self):
        self.sweep(*TINY, "--impl", "cpu_ref", "--seed", "5")
        header = read_lines(self.path("run"))[0]
        self.assertIn("--sweep", header["command"])
        self.assertEqual((header["schema"], header["seed"]), (2, 5))
        self.assertEqual(header["cases"], ["cpu_ref/T3_B2_I4_H4/f32/infer"])
        self.assertIn("cpu", header["environment"])
        for key in ("cache_bytes", "memory_bytes"):
            self.assertIsInstance(header["environment"][key], int)

    def test_unsupported_and_too_large_are_rows_and_no_failure(self):
        rows, _ = self.sweep("--case", "openblas/T3_B2_H4/f16/infer",
                             "--case", "cpu_ref/T9000000000000_B9_H4/f32/infer",
                             "--case", "cpu_ref/T9000000000000000000_B9_H4/f32/infer",
                             "--case", "cpu_ref/T3_B2_H4/f32/infer/graph",
                             "--case", "cpu_ref/T3_B2_H4/f16/infer", "--quick")
        verdicts = {case: row["verdict"] for case, row in rows.items()}
        self.assertEqual(verdicts["openblas/T3_B2_I4_H4/f16/infer"], "unsupported")
        self.assertEqual(verdicts["cpu_ref/T9000000000000_B9_I4_H4/f32/infer"], "oom")
        self.assertEqual(verdicts["cpu_ref/T9000000000000000000_B9_I4_H4/f32/infer"], "oom")
        self.assertEqual(verdicts["cpu_ref/T3_B2_I4_H4/f32/infer/graph"], "unsupported")
        self.assertEqual(verdicts["cpu_ref/T3_B2_I4_H4/f16/infer"], "ok")
        self.assertRegex(rows["cpu_ref/T9000000000000_B9_I4_H4/f32/infer"]["reason"], r"needs .*iB, has .*iB")

    def test_a_baseline_that_does_not_run_is_said_before(self):
        said = "warning: --baseline cpu_simd: no case runs it"
        for baseline, warned in (("cpu_simd", True), ("cpu_ref:auto", False)):
            _, done = self.sweep(*TINY, "--impl", "cpu_ref", "--baseline", baseline, name=baseline)
            self.assertEqual(said in done.stderr, warned, done.stderr)

    def test_what_a_time_budget_cuts_short_keeps_what_was_measured(self):
        # More processes, and more blocks, than can be started in the time. On a busy machine the shortest
        # time ends before the first of them.
        for repeats, unit in ((["--processes", "1000"], "processes"), (["--benchmark_repetitions=10000"], "blocks")):
            for seconds in ("0.5", "4", "32"):
                shutil.rmtree(self.path(unit), ignore_errors=True)
                rows, _ = self.sweep(*TINY, "--impl", "cpu_ref", "--time-budget", seconds, *repeats, name=unit,
                                     exit_code=None)
                row = rows["cpu_ref/T3_B2_I4_H4/f32/infer"]
                if row["verdict"] != "skipped":
                    break
            self.assertEqual((row["verdict"], row["reason"]), ("ok", ""))
            done, wanted = len(row[unit]), int(repeats[-1].split("=")[-1])
            self.assertLess(done, wanted)
            self.assertEqual(sum(row["blocks"]), len(row["samples_ns"]))
            self.assertIn(f"the time budget left it {done} of {wanted} {unit}", row["warning"])

    def test_axes_of_running_are_kept_in_the_row(self):
        rows, _ = self.sweep(*TINY, "--impl", "cpu_simd", "--cache", "hot,cold",
                             "--timing", "isolated,batched", "--threads", "1,2")
        self.assertEqual(len(rows), 6)  # cold and batched exclude each other
        batched = rows["cpu_simd/T3_B2_I4_H4/f32/infer/batched"]
        isolated = rows["cpu_simd/T3_B2_I4_H4/f32/infer"]
        self.assertGreater(batched["calls_per_sample"], 1)
        self.assertEqual(isolated["calls_per_sample"], 1)
        self.assertEqual(rows["cpu_simd/T3_B2_I4_H4/f32/infer/th2"]["threads"], 2)

    def test_streams_carry_their_state_and_keep_a_rate(self):
        rows, done = self.sweep("-T", "3", "-B", "2", "-L", "2", "-I", "3", "-H", "8", "--impl", "cpu_ref,cpu_simd,onednn,openblas",
                                "--timing", "stream", "--cell", "standard,projection,residual,peephole")
        self.assertNotIn("wrong", {row["verdict"] for row in rows.values()}, done.stdout)
        self.assertEqual({row["verdict"] for name, row in rows.items() if name.startswith("cpu_ref/")}, {"ok"}, done.stdout)
        for row in rows.values():
            if row["verdict"] != "ok":
                continue
            self.assertEqual((len(row["samples_ns"]), row["stream_calls"]), (5000, 256))
            self.assertLess(row["harness_ns"], 1000)
            ordered = [row[key] for key in ("median_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns")]
            self.assertEqual(ordered, sorted(ordered))
            self.assertTrue(row["p999_lo_ns"] <= row["p999_ns"] <= row["p999_hi_ns"] <= row["max_ns"])
        # The oracle rounds c between calls, as the tensors that carry it do: without that, y is 0.15 off.
        rows, done = self.sweep("-T", "1", "-B", "1", "-I", "64", "-H", "192", "--dtype", "bf16,f16", "--impl", "cpu_ref,cpu_simd,onednn",
                                "--timing", "stream", "--case-time", "0.1", name="carried")
        self.assertLessEqual({row["verdict"] for row in rows.values()}, {"ok", "unsupported", "absent"}, done.stdout)
        self.assertEqual({row["verdict"] for row in rows.values() if row["impl"] == "cpu_ref"}, {"ok"}, done.stdout)
        rows, done = self.sweep("-T", "1", "-B", "1", "-H", "8", "--impl", "cpu_ref", "--timing", "stream",
                                "--rate", "200", "--case-time", "0.5", name="rate")
        row = rows["cpu_ref/T1_B1_I8_H8/f32/infer/stream/rate200"]
        self.assertTrue(6 <= len(row["samples_ns"]) < 368, len(row["samples_ns"]))
        self.assertIsNone(row["p999_ns"])
        self.assertIn("too few for p99", done.stdout)
        # A rate that a call is too slow for: the calls wait for each other.
        rows, done = self.sweep("-T", "20", "-B", "1", "-H", "64", "--impl", "cpu_ref", "--timing", "stream",
                                "--rate", "1000000", "--case-time", "1", name="overload")
        row = rows["cpu_ref/T20_B1_I64_H64/f32/infer/stream/rate1000000"]
        self.assertIn("too long for 1000000 calls per second", row["warning"])
        self.assertEqual(row["samples_ns"], sorted(row["samples_ns"]))
        self.assertRegex(done.stdout, r"(9\d\.\d\d|100\.00) %  ")

    @unittest.skipUnless(len(os.sched_getaffinity(0)) >= 2, "one CPU serves one instance")
    def test_instances_share_the_threads_and_the_best_split_is_named(self):
        rows, done = self.sweep("-T", "2", "-B", "3", "-I", "5", "-H", "16", "-L", "2", "--impl", "cpu_simd,onednn,openblas",
                                "--timing", "stream", "--threads", "2", "--instances", "1,2", "--case-time", "0.2", plots=True,
                                # Threads that spin while others have no CPU take minutes for a call.
                                env=os.environ | {"OMP_WAIT_POLICY": "passive"})
        for impl in ("cpu_simd", "onednn"):
            one, two = (rows[f"{impl}/T2_B3_I5_H16_L2/f32/infer/stream{x}/th2"] for x in ("", "/x2"))
            self.assertEqual((one["instances"], two["instances"], len(one["blocks"]), len(two["blocks"])), (1, 2, 1, 2))
            if two["verdict"] == "absent":
                continue
            self.assertEqual(two["verdict"], "ok", two["reason"])
            self.assertEqual(two["sequences_per_s"], 3 * two["calls_per_s"])
        self.assertIn("can't overlap", rows["openblas/T2_B3_I5_H16_L2/f32/infer/stream/x2/th2"]["reason"])
        self.assertRegex(done.stdout, r"cpu_simd/T2_B3_I5_H16_L2/f32/infer/stream/th2 by instances\n[^\n]*\n(.*\n)?.*best split")
        self.assertTrue(os.path.exists(self.path("run/plots/throughput_f32_infer_L2_stream_th2.svg")), done.stderr)

    def test_repetitions_become_blocks_and_interleaving_keeps_one_row(self):
        rows, _ = self.sweep(*TINY, "-T", "4", "--impl", "cpu_ref,cpu_simd", "--benchmark_repetitions=3",
                             "--benchmark_enable_random_interleaving=true")
        self.assertEqual(len(rows), 4)
        for row in rows.values():
            self.assertEqual(len(row["blocks"]), 3)
            self.assertEqual(sum(row["blocks"]), len(row["samples_ns"]))

    def test_benchmark_json_goes_to_stdout_and_file(self):
        out = self.path("benchmark.json")
        _, done = self.sweep(*TINY, "--impl", "cpu_ref", "--benchmark_format=json", "--benchmark_out=" + out)
        for text in (done.stdout, self.read(out)):
            names = [row["name"] for row in json.loads(text)["benchmarks"]]
            self.assertEqual(names, ["cpu_ref/T3_B2_I4_H4/f32/infer"])

    def test_the_table_is_printed_though_the_file_of_benchmark_out_has_no_room(self):
        self.sweep(*TINY, "--impl", "cpu_ref", "--benchmark_out=/dev/full", exit_code=2, printed="1 case: 1 ok",
                   said="/dev/full: No space left")

    def test_benchmark_json_goes_through_pipes_and_links(self):
        os.mkfifo(self.path("pipe"))
        os.symlink(self.path("target.json"), self.path("link"))
        with subprocess.Popen(["cat", self.path("pipe")], stdout=subprocess.PIPE, text=True) as reader:
            self.sweep(*TINY, "--impl", "cpu_ref", "--benchmark_out=" + self.path("pipe"), timeout=60)
            self.assertEqual(len(json.loads(reader.communicate()[0])["benchmarks"]), 1)
        self.sweep(*TINY, "--impl", "cpu_ref", "--benchmark_out=" + self.path("link"), name="linked")
        self.assertEqual(os.readlink(self.path("link")), self.path("target.json"))
        self.assertEqual(len(json.loads(self.read("target.json"))["benchmarks"]), 1)

    def test_pictures_parse_and_the_table_names_the_fastest(self):
        _, done = self.sweep("-T", "4,8", "-B", "1,2", "-H", "4,8", "--impl", "cpu_ref,cpu_simd",
                             "--case-time", "0.05", plots=True)
        plots = os.listdir(self.path("run/plots"))
        vectors = [name for name in plots if name.endswith(".svg")]
        self.assertGreater(len(vectors), 0)
        for name in vectors:
            ElementTree.parse(self.path("run/plots/" + name))
            self.assertIn(name[:-4] + ".png", plots)
            self.assertIn(name[:-4] + ".gp", plots)
        run("--plot", "time-h", self.path("run"), exit_code=0)
        run("--plot", "training", self.path("run"), exit_code=5, said="training: not drawn: ")
        groups = done.stdout.split("\n\n")
        decided = [group for group in groups if group.startswith("T")]
        self.assertEqual(len(decided), 8)
        for group in decided: # one is the fastest, or several can't be told apart
            self.assertEqual(group.count("* fastest") + (group.count("= fastest, tied") > 1), 1, group)
        self.assertNotIn("\033", done.stdout)
        for line in done.stdout.splitlines()[1:]:
            if not line.startswith("      "): # a note, which is wrapped on terminals alone
                self.assertLessEqual(len(line), 80, line)

    def test_the_table_fits_terminals_and_progress_is_redrawn(self):
        for columns in (80, 200):
            out = self.path(f"run{columns}")
            code, text = run_on_terminal(columns, "--sweep", *TINY, "--dtype", "f32,bf16,f16",
                                         "--impl", "cpu_ref,openblas,cudnn", "--out", out)
            self.assertEqual(code, 0, text)
            plain = text.replace("\r\n", "\n")
            progress = re.findall(r"\r\033\[K(\[[^\r\n]*)", plain)
            self.assertEqual(len(progress), 3 * (2 + 5))
            # The table of a problem comes when its last implementation is done, and once.
            self.assertEqual(plain.count("\nT3_B2_I4_H4/f32/infer\n"), 1)
            self.assertLess(plain.index("[7/21,"), plain.index("\nT3_B2_I4_H4/f32/infer\n"))
            self.assertLess(plain.index("\nT3_B2_I4_H4/f32/infer\n"), plain.index("[8/21,"))
            self.assertRegex(progress[1], r"^\[2/21, \d+:\d\d left\] openblas/T3_B2_I4_H4/f32/infer$")
            shown = re.sub(r"[^\n]*\r\033\[K", "", plain)
            self.assertRegex(shown, r"\033\[1m  (cpu_ref|openblas) .*fastest.*\033\[0m\n")
            shown = re.sub(r"\033\[[01]m", "", shown)
            table = shown[shown.index("Median time"):shown.index("records   ")]
            self.assertLessEqual(max(len(line) for line in table.splitlines()), columns)
            words = re.sub(r"\s+", " ", table)
            self.assertIn("openblas unsupported: dtype bf16: OpenBLAS has GEMMs in f32 and f64 only", words)
            self.assertEqual("\n" + 30 * " " in table, columns == 80) # a reason is broken and indented

    def test_progress_counts_the_rounds_of_each_case(self):
        code, text = run_on_terminal(120, "--sweep", "-T", "2,3", "-B", "2", "-H", "4", "--impl", "cpu_ref",
                                     "--processes", "3", "--case-time", "0.02", "--out", self.path("run"))
        self.assertEqual(code, 0, text)
        shown = re.findall(r"\[(\d)/6, (\?|\d+:\d\d) left\] cpu_ref", text)
        self.assertEqual([number for number, _ in shown], list("123456"))
        self.assertEqual([eta == "?" for _, eta in shown], [True] + 5 * [False])

    def test_progress_counts_what_failed_and_what_was_skipped(self):
        name = "misbehave_fail"
        code, text = run_on_terminal(120, "--sweep", "-T", "2:9:+1", "-B", "2", "-H", "4", "--impl", name + ",cpu_ref",
                                     "--plugin", plugin(name), "--time-budget", "0.001", "--out", self.path("run"))
        self.assertIn(code, (1, 5), text) # 5 when even the first case started too late
        self.assertRegex(text, r"\[16/16, \d+:\d\d left, [012] failed, 1[345] skipped\] \w+/T9_")

    def test_a_plan_is_laid_out_and_counts_rounds(self):
        plan = ["--plan", "--cases", "frameworks", "--impl", "cpu_ref,cpu_simd,cudnn:auto"]
        once = run(*plan).stdout
        self.assertRegex(once, r"^cases     15\b")
        self.assertRegex(once, r"\n               5  cpu_ref\n               5  cpu_simd\n")
        self.assertRegex(once, r"\nmemory    up to \S+ MiB for T300_B64_I512_H256_L4.*, and what the implementation needs itself\n")
        self.assertRegex(once, r"\ntime      about (\d+ min )?\d+ s, by")

        def seconds(text):
            words = re.search(r"about (?:(\d+) h )?(?:(\d+) min ?)?(?:(\d+) s)?", text).groups("0")
            return 3600 * int(words[0]) + 60 * int(words[1]) + int(words[2])
        ten = run(*plan, "--processes", "10").stdout
        self.assertAlmostEqual(seconds(ten) / seconds(once), 10, delta=1)
        for words, processes in (([], 30), (["--processes", "6"], 12)): # of this program and of the other one
            text = run(*plan, "--against", PROGRAM, *words).stdout
            self.assertAlmostEqual(seconds(text) / seconds(once) / processes, 1, 1)
        chosen = run("--plan", *TINY, "-T", "4", "--impl", "cpu_ref,cpu_simd", "--benchmark_filter=cpu_ref/T4_").stdout
        self.assertRegex(chosen, r"^cases     1\n +1  cpu_ref\n")
        huge = "T2000000000_B2000000000_I2000000000_H2000000000/f32/train"
        self.assertIn(f"\nmemory    more than any memory for {huge}, and", run("--plan", "--case", huge).stdout)
        self.assertIn("\n  traffic    more than any memory\n  memory     more than any memory for tensors, results and the "
                      "oracle\n  intensity  unknown; 2000000000 dependent steps\n", run("--explain", huge).stdout)
        most = run("--explain", "T9223372036854775807_B1_H8_L2").stdout
        self.assertIn("  intensity  unknown; 18446744073709551616 dependent steps\n", most)
        large = ["--plan", "--cases", "cpu", "--impl", "cpu_simd"]
        self.assertLess(seconds(run(*large, "--quick").stdout), seconds(run(*large).stdout))

    def test_without_gnuplot_the_records_are_there_and_the_pictures_are_drawn_later(self):
        env = dict(os.environ, PATH=self.scratch)
        rows, done = self.sweep(*TINY, "-H", "8", "--impl", "cpu_ref", env=env, plots=True)
        self.assertEqual(len(rows), 2)
        said = re.search(r"no pictures: gnuplot is not installed \(package gnuplot-nox\); "
                         r"once it is, bench-lstm (.*) draws them\n", done.stderr)
        self.assertIsNotNone(said, done.stderr)
        run(*said.group(1).split(), exit_code=0)
        self.assertTrue(os.path.exists(self.path("run/plots/time-h_f32_infer.png")))

    def test_what_the_shell_exports_does_not_change_a_run(self):
        env = dict(os.environ, BENCHMARK_FILTER="nothing", BENCHMARK_LIST_TESTS="true", BENCHMARK_REPETITIONS="3",
                   BENCHMARK_ENABLE_RANDOM_INTERLEAVING="true", BENCHMARK_DRY_RUN="true")
        rows, done = self.sweep(*TINY, "-T", "4", "--impl", "cpu_ref,cpu_simd", env=env)
        self.assertEqual(len(rows), 4)
        self.assertEqual({len(row["blocks"]) for row in rows.values()}, {1})
        self.assertNotIn("/iterations:", done.stdout)

    def interrupt_gnuplot(self, number, *arguments):
        """Sends a signal as soon as gnuplot draws; returns exit code and stderr."""
        tools = self.path("tools")
        self.write("tools/gnuplot", "#!/bin/sh\nfolder=${2#cd \\'}\nfolder=${folder%\\'}\n"
                   "printf '<svg' > \"$folder/${3%.gp}.svg\"\n"
                   f"touch {self.path('draws')}\nsleep 30 &\nwait\n", 0o755)
        env = dict(os.environ, PATH=tools + ":" + os.environ["PATH"])
        start = time.monotonic()
        with subprocess.Popen([PROGRAM, *arguments], stderr=subprocess.PIPE, env=env,
                              stdout=subprocess.PIPE, text=True) as process:
            wait_until(lambda: os.path.exists(self.path("draws")) or process.poll() is not None)
            process.send_signal(number)
            out, err = process.communicate(timeout=500)
        self.assertLess(time.monotonic() - start, 15)
        os.unlink(self.path("draws"))
        wait_until(lambda: not processes_of(tools), 5) # a killed process takes a moment to be gone
        return process.returncode, out, err

    def test_interrupt_while_gnuplot_draws_leaves_no_half_picture(self):
        run_folder = self.path("run")
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number=number):
                shutil.rmtree(run_folder, ignore_errors=True)
                code, out, err = self.interrupt_gnuplot(
                    number, "--sweep", *TINY, "-T", "4", "-H", "8", "--impl", "cpu_ref", "--out", run_folder)
                self.assertEqual(code, 130, err)
                self.assertIn("no pictures: interrupted", err)
                self.assertIn("--resume " + run_folder, err)
                self.assertIn("4 cases: 4 ok", out)
                left = os.listdir(run_folder + "/plots")
                self.assertTrue(all(name.endswith((".dat", ".gp")) for name in left), left)
        run("--resume", run_folder, exit_code=0)
        for name in os.listdir(run_folder + "/plots"):
            if name.endswith(".svg"):
                ElementTree.parse(run_folder + "/plots/" + name)
        self.assertEqual(self.interrupt_gnuplot(signal.SIGTERM, "--plot", "time-h", run_folder)[0], 130)

    def test_a_signal_to_all_processes_of_a_job_is_no_crash_of_a_case(self):
        out = self.path("run")
        with started(out, "--sweep", "-T", "64:72:+1", "-B", "8", "-H", "64", "--plots", "none",
                     "--case-time", "0.1", "--impl", "cpu_ref", stderr=subprocess.DEVNULL) as process:
            workers = children_of(process.pid)
            for number in (signal.SIGTERM, signal.SIGINT):
                for worker in workers:
                    os.kill(worker, number)
            self.assertEqual(process.wait(timeout=500), 0)
        self.assertEqual(len(workers), 1)
        self.assertEqual([row["verdict"] for row in read_rows(out).values()], 9 * ["ok"])


class Workers(ProgramTest):
    """What faults leave behind or say; tests/broken checks that each costs its own row and no other."""

    def test_what_a_killed_worker_leaves_behind_is_ended_and_named(self):
        name = "misbehave_hang_with_daemon"
        rows, done = self.sweep(*TINY, "--impl", "cpu_ref," + name, "--plugin", plugin(name), "--call-limit", "1",
                                exit_code=1)
        self.assertEqual(sorted(row["verdict"] for row in rows.values()), ["ok", "timeout"])
        self.assertRegex(done.stderr, r"warning: worker \d+ left 1 process behind, which was ended\n")
        self.assertEqual(processes_of("lb_daemon", "comm"), [])
        # A child that the program had before its workers is none of theirs.
        resume = f"{PROGRAM} --resume {self.path('run')} --retry timeout --plugin {plugin(name)} --plots none"
        done = call("bash", "-c", f"sleep 60 >&- 2>&- & echo $!; exec {resume}", said="left 1 process behind")
        os.kill(int(done.stdout.split()[0]), signal.SIGKILL) # raises an error where it has ended

    def test_text_that_is_no_utf8_is_a_reason_all_the_same(self):
        start = time.monotonic()
        name = "misbehave_bytes"
        rows, done = self.sweep(*TINY, "-H", "5", *planted(name), exit_code=1)
        self.assertEqual(rows[name + "/T3_B2_I4_H4/f32/infer"]["reason"], "caf?  [31mred ?")
        self.assertEqual(rows[name + "/T3_B2_I5_H5/f32/infer"]["reason"], "? ]0;odd ")
        explained = run("--explain", name + "/T3_B2_H4", "--plugin", plugin(name), printed="algorithm ??")
        listed = run("--list", "--plugin", plugin(name), "--impl", name, printed="? bytes  [1m")
        self.assertLess(time.monotonic() - start, 20) # of a call limit of 120 s
        for text in (done.stdout, done.stderr, explained.stdout, listed.stdout):
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f]")

    def test_the_call_limit_holds_for_loading_too(self):
        start = time.monotonic()
        run("--list", "--case", "T3_B2_H4", "--call-limit", "0.5", "--plugin", plugin("misbehave_slow_to_load"),
            exit_code=2, said="loading did not return within 0.5 s")
        self.assertLess(time.monotonic() - start, 4)

    def test_what_a_plugin_prints_stays_out_of_stdout(self):
        _, done = self.sweep(*TINY, *planted("misbehave_chatter"))
        self.assertNotIn("must not end up", done.stdout)
        self.assertIn("must not end up", done.stderr)


if __name__ == "__main__":
    unittest.main()
