"""--self-test --quick on one small case: it runs to its end, prints the figures that it found, and
judges no rate by so few comparisons."""

import os
import signal
import subprocess
import unittest

from program import PROGRAM, ProgramTest, catches, run, wait_until


class SelfTest(ProgramTest):
    def test_short_form_reports_rates_resolution_and_machine(self):
        done = run("--self-test", "--quick", "--case", "cpu_ref/T32_B1_H32", exit_code=0)
        self.assertRegex(done.stdout, r"clock: resolution +[0-9.e+]+ ns")
        self.assertRegex(done.stdout, r"both sides mixed in time +[0-4] of 4 comparisons have p < 0.05")
        self.assertRegex(done.stdout, r"its spread allowed for +[0-4] of 4 comparisons have p < 0.05")
        self.assertRegex(done.stdout, r"standard deviation +[0-9.e-]+ %; --compare allows for it")
        self.assertRegex(done.stdout, r"after correction, [0-4] of 4 sweeps have a difference")
        self.assertRegex(done.stdout, r"planted slowdown: 3 % of a case of ")
        self.assertRegex(done.stdout, r"found +\d+ of 10 comparisons: slower, and by more than 2 %")
        self.assertRegex(done.stdout, r"two runs, --processes 8 +[0-9.]+ % +[0-9.]+ %, alone among 1 case\n")
        self.assertRegex(done.stdout, r"advice\n  - ")
        self.assertIn("too few comparisons to judge the rates", done.stdout)

    def test_it_can_be_interrupted(self):
        with subprocess.Popen([PROGRAM, "--self-test"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.scratch) as child:
            wait_until(lambda: catches(child, signal.SIGINT))
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=500)
            self.assertEqual(child.returncode, 130)
        self.assertEqual(os.listdir(self.scratch), [])

    def test_cases_that_cannot_run_are_said(self):
        run("--self-test", "--case", "cpu_ref/T2_B1_H4/f32/infer/tf32", exit_code=5, said="no case runs here")


if __name__ == "__main__":
    unittest.main()
