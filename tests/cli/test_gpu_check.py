"""bench/gpu-check.sh without a GPU: every step runs, records come out, an earlier run is gone on with."""

import json
import os
import subprocess
import sys
import unittest

from program import BUILD, ProgramTest

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "bench", "gpu-check.sh")
LEFT = {"test.log", "environment.json", "cudnn.jsonl", "peers.jsonl", "run.jsonl", "naive.jsonl",
        "tuned.txt", "runs.tar.gz"}

# A program that finds a GPU and has no cuDNN.
NO_CUDNN = """#!/bin/sh
case $1 in
--list) echo "cuda_step/T1_B1_I1_H1/f32/infer ok" ;;
--sweep) exit 5 ;;
esac
"""


class Check(ProgramTest):
    def check(self, name, *arguments):
        done = subprocess.run(["bash", SCRIPT, self.path(name), "--build", BUILD, "--dry-run",
                               *arguments], capture_output=True, text=True, timeout=280, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertLessEqual(set(os.listdir(self.path(name))), LEFT)
        return done.stdout

    def lines(self, *path):
        with open(self.path(os.path.join(*path)), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_every_step_goes_as_far_as_it_can(self):
        said = self.check("out", "--only", "tests,sanitizer,ceilings,peers,sweep,tune",
                          "--budget", "20")
        for step in ("plan of the grid", "conformance", "memcheck", "racecheck", "synccheck",
                     "ceilings", "cudnn on the peers' cases", "PyTorch", "recurrent grid",
                     "the naive loop on it"):
            self.assertIn(f"== {step}: done", said)
        self.assertLessEqual(LEFT - {"peers.jsonl", "tuned.txt"},
                             set(os.listdir(self.path("out"))))
        passes = {row["pass"] for row in self.lines("out", "run.jsonl") if row["kind"] == "row"}
        self.assertEqual(passes, {"infer", "train"})

    def test_an_earlier_run_is_gone_on_with(self):
        self.check("first", "--only", "sweep", "--budget", "1")
        said = self.check("second", "--only", "sweep", "--budget", "60", "--from",
                          self.path("first"))
        self.assertIn("== recurrent grid: done, exit code 0", said)
        for name in ("run.jsonl", "naive.jsonl"):
            lines = self.lines("second", name)
            cases = [line["case"] for line in lines if line["kind"] == "row"]
            self.assertEqual(len(cases), len(set(cases)))
            begun = os.path.exists(self.path(os.path.join("first", name))) # in a second, if quick
            self.assertEqual("resume" in [line["kind"] for line in lines], begun)
            self.assertFalse(lines[-1]["interrupted"])

    def write_program(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o755)

    def test_a_gpu_without_cudnn_and_pytorch_has_no_peers_and_no_failure(self):
        self.write_program("build/bench-lstm", NO_CUDNN)
        # No packages beside Python's own.
        self.write_program("bin/python3", f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
        done = subprocess.run(["bash", SCRIPT, self.path("out"), "--build", self.path("build"),
                               "--only", "peers"], capture_output=True, text=True, timeout=60,
                              env=os.environ | {"PATH": self.path("bin") + ":" + os.environ["PATH"]},
                              check=False)
        self.assertIn("== cudnn on the peers' cases: done, exit code 5", done.stdout)
        self.assertIn("== PyTorch: done, exit code 77", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_it_does_not_know_is_refused(self):
        for arguments in (["--budget"], ["--nonsense"], []):
            done = subprocess.run(["bash", SCRIPT, *arguments], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("bench/gpu-check.sh OUT", done.stderr)


if __name__ == "__main__":
    unittest.main()
