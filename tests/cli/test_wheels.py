"""bench/cuda_wheels.sh: which wheels it fetches for a driver, and which drivers are too old."""

import os
import subprocess
import unittest

from program import ProgramTest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench",
                      "cuda_wheels.sh")


class Wheels(ProgramTest):
    def stand_in(self, name, text):
        """A command of that name, first in PATH."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(self.path(name), 0o755)

    def install(self, version, title="CUDA Version"):
        """What is fetched, exit code and words where nvidia-smi names that version of CUDA."""
        self.stand_in("nvidia-smi", f"echo '| Driver Version: 1.2.3   {title}: {version}     |'\n")
        if os.path.exists(self.path("fetched")):
            os.remove(self.path("fetched"))
        self.stand_in("python3", f'echo "$@" > {self.path("fetched")}\n'
                                 f'mkdir -p {self.path("to/nvidia/cu13/bin")}\n')
        done = subprocess.run(["bash", "-c", f'set -euo pipefail; . "{SCRIPT}"; install_cuda "$0"',
                               self.path("to")], capture_output=True, text=True, check=False,
                              env=os.environ | {"PATH": self.scratch + ":" + os.environ["PATH"]})
        try:
            with open(self.path("fetched"), encoding="utf-8") as file:
                return file.read().split(), done.returncode, done.stderr
        except FileNotFoundError:
            return [], done.returncode, done.stderr

    def test_a_driver_before_13_gets_a_sentence_and_no_download(self):
        fetched, code, said = self.install("12.4")
        self.assertEqual((fetched, code), ([], 1))
        self.assertIn("the driver here runs CUDA 12.4 at most", said)

    def test_the_toolkit_is_of_the_version_that_the_driver_runs(self):
        fetched, code, said = self.install("13.0")
        self.assertEqual(code, 0, said)
        self.assertIn("nvidia-cuda-nvcc==13.0.*", fetched)
        self.assertIn("nvidia-cudnn-cu13", fetched)

    def test_drivers_from_610_on_name_the_version_in_other_words(self):
        fetched, code, said = self.install("13.5", "CUDA UMD Version")
        self.assertEqual(code, 0, said)
        self.assertIn("nvidia-cuda-nvcc==13.5.*", fetched)
        fetched, code, said = self.install("12.9", "CUDA UMD Version")
        self.assertEqual((fetched, code), ([], 1))
        self.assertIn("the driver here runs CUDA 12.9 at most", said)


if __name__ == "__main__":
    unittest.main()
