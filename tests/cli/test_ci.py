"""The command of the CI kit: unchanged code passes, a planted regression exits 3 and is named."""

import os
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from program import PROGRAM, ProgramTest, plugin

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
GATE = os.path.join(ROOT, "results", "ci", "gate.sh")
PLANTED = "slow/T8_B1_I64_H64/f32/infer"


class Gate(ProgramTest):
    def gate(self, out, base, **environment):
        summary = self.path(out + ".summary")
        settings = {"LB_CASE_TIME": "0.02", "LB_MARGIN": "25", "GITHUB_STEP_SUMMARY": summary}
        done = subprocess.run(
            [GATE, PROGRAM, self.path(out), self.path(base), "--plugin", plugin("slow_0"), "--impl",
             "slow,cpu_blas", "-T", "8", "-B", "1", "-H", "32,64"],
            env={**os.environ, **settings, **environment}, capture_output=True, text=True, check=False)
        with open(summary, encoding="utf-8") as file:
            return done, file.read()

    def test_gate(self):
        done, summary = self.gate("base", "none")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("this one is the baseline", done.stdout)
        self.assertIn(PLANTED, summary)

        done, summary = self.gate("same", "base")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(summary.startswith("### No regression"), summary)

        done, summary = self.gate("slow", "base", LB_SLOW_PERCENT="100", LB_SLOW_HIDDEN="64")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertTrue(summary.startswith("### REGRESSION: 4 cases: 1 slower"), summary)
        self.assertIn(PLANTED, summary)
        cases = ElementTree.parse(self.path("slow/compare.xml")).iter("testcase")
        failed = [case.get("name") for case in cases if case.find("failure") is not None]
        self.assertEqual(failed, [PLANTED])


if __name__ == "__main__":
    unittest.main()
