"""bench/cuda_wheels.sh: which wheels it fetches for a driver, and which drivers are too old."""

import os
import unittest

from program import ProgramTest, call

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "..", "bench", "cuda_wheels.sh")


class Wheels(ProgramTest):
    def install(self, title, version):
        """What is fetched, exit code and words where nvidia-smi names that version of CUDA."""
        self.write("nvidia-smi", f"#!/bin/sh\necho '| Driver Version: 1.2.3   {title}: {version}     |'\n", 0o755)
        self.write("python3", '#!/bin/sh\necho "$@" > fetched\nmkdir -p to/nvidia/cu13/bin\n', 0o755)
        self.write("fetched", "")
        done = call("bash", "-c", f'set -euo pipefail; . "{SCRIPT}"; install_cuda to', cwd=self.scratch,
                    env=os.environ | {"PATH": self.scratch + ":" + os.environ["PATH"]})
        return self.read("fetched").split(), done.returncode, done.stderr

    # Drivers from 610 on name the version in other words.
    TITLES = ("CUDA Version", "CUDA UMD Version")

    def test_a_driver_before_13_gets_a_sentence_and_no_download(self):
        for title in self.TITLES:
            fetched, code, said = self.install(title, "12.4")
            self.assertEqual((fetched, code), ([], 1))
            self.assertIn("the driver here runs CUDA 12.4 at most", said)

    def test_the_toolkit_is_of_the_version_that_the_driver_runs(self):
        for title, version, below in zip(self.TITLES * 2, ("13.0", "13.5", "14.2"), ("13.1", "13.6", "14")):
            fetched, code, said = self.install(title, version)
            self.assertEqual(code, 0, said)
            self.assertIn(f"nvidia-cuda-nvcc>=13,<{below}", fetched)
            self.assertIn("nvidia-cudnn-cu13", fetched)


if __name__ == "__main__":
    unittest.main()
