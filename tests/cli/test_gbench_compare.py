"""Google Benchmark's own compare.py reads the repetitions that we write, and tests them. Skipped when
it is not installed (libbenchmark-tools, python3-scipy)."""

import json
import os
import re
import sys
import tempfile
import unittest

from program import ProgramTest, call, run

COMPARE = "/usr/share/benchmark/compare.py"


def has_scipy(python):
    return call(python, "-c", "import scipy.stats").returncode == 0


# scipy belongs to the system's Python, which need not be the one that runs this test.
PYTHON = next((p for p in (sys.executable, "/usr/bin/python3") if os.path.exists(p) and has_scipy(p)), None)
if not os.path.exists(COMPARE) or not PYTHON:
    print("libbenchmark-tools or python3-scipy is not installed")
    sys.exit(77)


class GoogleBenchmark(ProgramTest):
    @classmethod
    def setUpClass(cls):
        """Two runs of the same cases, and their exports."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.runs = [os.path.join(folder.name, name) for name in ("base", "new")]
        for path in cls.runs:
            run("--sweep", "-T", "8", "-B", "1", "-H", "16,32", "--impl", "cpu_ref", "--case-time", "0.01",
                "--processes", "9", "--plots", "none", "--out", path, exit_code=0)
            run("--export", "gbench,gbench-repetitions", path)

    def compare(self, *files):
        return call(PYTHON, COMPARE, "--no-color", "-d", self.path("out.json"), "benchmarks", *files,
                    exit_code=0).stdout

    def test_compare_py_takes_one_row_a_case(self):
        words = self.compare(*(path + "/benchmark.json" for path in self.runs))
        for case in ("cpu_ref/T8_B1_I16_H16/f32/infer", "cpu_ref/T8_B1_I32_H32/f32/infer"):
            self.assertRegex(words, rf"(?m)^{case} +[+-]\d\.\d+ ")

    def test_compare_py_takes_our_repetitions(self):
        words = self.compare(*(path + "/benchmark_repetitions.json" for path in self.runs))
        tested = re.findall(r"^(\S+)_pvalue\s.*U Test, Repetitions: 9 vs 9", words, re.M)
        self.assertEqual(sorted(tested), ["cpu_ref/T8_B1_I16_H16/f32/infer",
                                          "cpu_ref/T8_B1_I32_H32/f32/infer"], words)
        # It tests the same numbers as we do, with the normal approximation.
        ours = json.loads(run("--compare", *self.runs, "--format", "json").stdout)
        theirs = {row["name"]: row for row in json.loads(self.read("out.json"))}
        for case in ours["cases"]:
            self.assertAlmostEqual(theirs[case["case"]]["utest"]["time_pvalue"], case["p"], delta=0.03)


if __name__ == "__main__":
    unittest.main()
