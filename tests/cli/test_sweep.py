"""A sweep from end to end: rows, exit codes, derived files, what is said where."""

import json
import os
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree as ElementTree

from program import PROGRAM, ProgramTest, TINY, plugin, read_rows, run


class Sweep(ProgramTest):
    def test_every_case_has_a_checked_row(self):
        rows, _ = self.sweep("-T", "3,5", "-B", "1,3", "-H", "4", "-L", "1,2", "-D", "1,2",
                             "--dtype", "f64,f32", "--pass", "infer,forward,backward,train",
                             "--ragged", "full,ragged", "--impl", "cpu_ref,cpu_blas",
                             "--case-time", "0.01")
        self.assertEqual(len(rows), 2 * 2 * 2 * 2 * 2 * 4 * 2 * 2)
        for case, row in rows.items():
            self.assertEqual(row["verdict"], "ok", (case, row["reason"]))
            self.assertLess(row["err_norm"], 1e-5)
            self.assertGreater(row["median_ns"], 0)
            self.assertGreaterEqual(len(row["samples_ns"]), 1)

    def test_the_header_says_how_the_run_came_about(self):
        self.sweep(*TINY, "--impl", "cpu_ref", "--seed", "5")
        with open(self.path("run/run.jsonl"), encoding="utf-8") as lines:
            header = json.loads(lines.readline())
        self.assertIn("--sweep", header["command"])
        self.assertEqual((header["schema"], header["seed"]), (1, 5))
        self.assertEqual(header["cases"], ["cpu_ref/T3_B2_I4_H4/f32/infer"])
        self.assertIn("cpu", header["environment"])

    def test_unsupported_and_too_large_are_rows_and_no_failure(self):
        rows, _ = self.sweep("--case", "cpu_blas/T3_B2_H4/f16/infer",
                             "--case", "cpu_ref/T9000000000000_B9_H4/f32/infer",
                             "--case", "cpu_ref/T9000000000000000000_B9_H4/f32/infer",
                             "--case", "cpu_ref/T3_B2_H4/f32/infer/graph",
                             "--case", "cpu_ref/T3_B2_H4/f16/infer", "--case-time", "0.05")
        verdicts = {case: row["verdict"] for case, row in rows.items()}
        self.assertEqual(verdicts["cpu_blas/T3_B2_I4_H4/f16/infer"], "unsupported")
        self.assertEqual(verdicts["cpu_ref/T9000000000000_B9_I4_H4/f32/infer"], "oom")
        self.assertEqual(verdicts["cpu_ref/T9000000000000000000_B9_I4_H4/f32/infer"], "oom")
        self.assertEqual(verdicts["cpu_ref/T3_B2_I4_H4/f32/infer/graph"], "unsupported")
        self.assertEqual(verdicts["cpu_ref/T3_B2_I4_H4/f16/infer"], "ok")
        self.assertRegex(rows["cpu_ref/T9000000000000_B9_I4_H4/f32/infer"]["reason"],
                         r"needs .*iB, has .*iB")

    def test_nothing_that_runs_is_exit_code_5(self):
        self.sweep("--case", "cpu_blas/T3_B2_H4/f16/infer", exit_code=5)

    def test_time_budget_skips_the_rest(self):
        rows, _ = self.sweep("-T", "2:60:+1", "-B", "1", "-H", "64", "--impl", "cpu_ref",
                             "--case-time", "0.5", "--time-budget", "0.1")
        verdicts = [row["verdict"] for row in rows.values()]
        self.assertEqual(len(verdicts), 59)
        self.assertIn("ok", verdicts)
        self.assertEqual(verdicts[-1], "skipped")

    def test_axes_of_running_are_kept_in_the_row(self):
        rows, _ = self.sweep(*TINY, "--impl", "cpu_blas", "--cache", "hot,cold",
                             "--timing", "isolated,batched", "--threads", "1,2")
        self.assertEqual(len(rows), 6)  # cold and batched exclude each other
        batched = rows["cpu_blas/T3_B2_I4_H4/f32/infer/batched"]
        isolated = rows["cpu_blas/T3_B2_I4_H4/f32/infer"]
        self.assertGreater(batched["calls_per_sample"], 1)
        self.assertEqual(isolated["calls_per_sample"], 1)
        self.assertEqual(rows["cpu_blas/T3_B2_I4_H4/f32/infer/th2"]["threads"], 2)
        cold = rows["cpu_blas/T3_B2_I4_H4/f32/infer/cold"]
        self.assertGreater(cold["median_ns"], isolated["median_ns"])

    def test_repetitions_become_blocks_and_interleaving_keeps_one_row(self):
        rows, _ = self.sweep(*TINY, "-T", "4", "--impl", "cpu_ref,cpu_blas",
                             "--benchmark_repetitions=3",
                             "--benchmark_enable_random_interleaving=true")
        self.assertEqual(len(rows), 4)
        for row in rows.values():
            self.assertEqual(len(row["blocks"]), 3)
            self.assertEqual(sum(row["blocks"]), len(row["samples_ns"]))

    def test_benchmark_filter_chooses_cases(self):
        rows, _ = self.sweep("-T", "3,4,5", "-B", "2", "-H", "4", "--impl", "cpu_ref,cpu_blas",
                             "--case-time", "0.05", "--benchmark_filter=cpu_blas/T[35]_")
        self.assertEqual(sorted(rows), ["cpu_blas/T3_B2_I4_H4/f32/infer",
                                        "cpu_blas/T5_B2_I4_H4/f32/infer"])

    def test_benchmark_json_goes_to_stdout_and_file(self):
        out = self.path("benchmark.json")
        _, done = self.sweep(*TINY, "--impl", "cpu_ref", "--benchmark_format=json",
                             "--benchmark_out=" + out)
        with open(out, encoding="utf-8") as file:
            written = file.read()
        for text in (done.stdout, written):
            names = [row["name"] for row in json.loads(text)["benchmarks"]]
            self.assertEqual(names, ["cpu_ref/T3_B2_I4_H4/f32/infer"])

    def test_pictures_parse_and_the_table_names_the_fastest(self):
        _, done = self.sweep("-T", "4,8", "-B", "1,2", "-H", "4,8", "--impl", "cpu_ref,cpu_blas",
                             "--case-time", "0.05")
        plots = os.listdir(self.path("run/plots"))
        vectors = [name for name in plots if name.endswith(".svg")]
        self.assertGreater(len(vectors), 0)
        for name in vectors:
            ElementTree.parse(self.path("run/plots/" + name))
            self.assertIn(name[:-4] + ".png", plots)
            self.assertIn(name[:-4] + ".gp", plots)
        self.assertEqual(done.stdout.count("* fastest"), 8)
        self.assertNotIn("\033", done.stdout)
        for line in done.stdout.splitlines()[1:]:
            self.assertLessEqual(len(line), 80, line)

    def test_without_gnuplot_the_records_are_there(self):
        env = dict(os.environ, PATH=self.scratch)
        rows, done = self.sweep(*TINY, "-T", "4", "--impl", "cpu_ref", env=env)
        self.assertEqual(len(rows), 2)
        self.assertIn("gnuplot", done.stderr)

    def test_two_sweeps_without_out_never_meet(self):
        for _ in range(2):
            done = run("--sweep", *TINY, "--impl", "cpu_ref", cwd=self.scratch)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(os.listdir(self.path("bench-lstm-runs"))), 2)

    def test_verification_is_a_small_part_of_a_quick_sweep(self):
        rows, _ = self.sweep("--quick", "--where", "H<=128")
        ran = [row for row in rows.values() if row["verdict"] == "ok"]
        total = sum(row["elapsed_ns"] for row in ran)
        verify = sum(row["verify_ns"] for row in ran)
        self.assertLess(verify, 0.1 * total)

    def test_interrupt_ends_in_good_order(self):
        out = self.path("run")
        with subprocess.Popen([PROGRAM, "--sweep", "-T", "64:640:+1", "-B", "8", "-H", "64",
                               "--impl", "cpu_ref", "--out", out], stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            time.sleep(2)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("--resume", err)
        with open(os.path.join(out, "run.jsonl"), encoding="utf-8") as lines:
            footer = json.loads(lines.readlines()[-1])
        self.assertEqual((footer["kind"], footer["interrupted"]), ("footer", True))


class Workers(ProgramTest):
    """A fault of one implementation costs its own row and no other."""

    def verdict_of(self, fault, *arguments, exit_code=1):
        rows, _ = self.sweep(*TINY, "-T", "4", "--impl", "cpu_ref,misbehave_" + fault,
                             "--plugin", plugin("misbehave_" + fault), "--call-limit", "2",
                             *arguments, exit_code=exit_code)
        self.assertEqual(len(rows), 4)
        faulty = [row for row in rows.values() if row["impl"] != "cpu_ref"]
        for row in rows.values():
            if row["impl"] == "cpu_ref":
                self.assertEqual(row["verdict"], "ok", row["reason"])
        self.assertEqual(faulty[0]["verdict"], faulty[1]["verdict"])
        return faulty[0]["verdict"], faulty[0]["reason"]

    def test_a_sound_plugin_runs_beside_the_built_ins(self):
        self.assertEqual(self.verdict_of("none", exit_code=0)[0], "ok")

    def test_a_crash_is_one_row(self):
        verdict, reason = self.verdict_of("crash")
        self.assertEqual(verdict, "crash")
        self.assertIn("signal 11", reason)

    def test_leaving_the_process_is_one_row(self):
        verdict, reason = self.verdict_of("leave")
        self.assertEqual(verdict, "crash")
        self.assertIn("exit code 7", reason)

    def test_a_hang_is_one_row(self):
        verdict, reason = self.verdict_of("hang")
        self.assertEqual(verdict, "timeout")
        self.assertIn("verify did not return within 2 s", reason)

    def test_a_hang_in_destroy_is_one_row(self):
        verdict, reason = self.verdict_of("hang_in_destroy")
        self.assertEqual(verdict, "timeout")
        self.assertIn("destroy", reason)

    def test_a_crash_in_destroy_is_one_row(self):
        verdict, reason = self.verdict_of("crash_in_destroy")
        self.assertEqual(verdict, "crash")
        self.assertIn("destroy", reason)

    def test_eating_memory_is_one_row(self):
        verdict, reason = self.verdict_of("eat", "--memory", "256M", "--call-limit", "60",
                                          exit_code=0)
        self.assertEqual(verdict, "oom")
        self.assertIn("used", reason)

    def test_a_failure_is_one_row_with_its_own_words(self):
        self.assertEqual(self.verdict_of("fail"), ("error", "the planted failure"))

    def test_computing_only_the_checked_call_is_wrong(self):
        self.assertEqual(self.verdict_of("cheat")[0], "wrong")

    def test_what_a_plugin_prints_stays_out_of_stdout(self):
        _, done = self.sweep(*TINY, "--impl", "misbehave_chatter", "--plugin",
                             plugin("misbehave_chatter"))
        self.assertNotIn("must not end up", done.stdout)
        self.assertIn("must not end up", done.stderr)


if __name__ == "__main__":
    unittest.main()
