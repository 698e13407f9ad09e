"""The scripts that fetch programs. bench/cuda_wheels.sh: which wheels it fetches for a driver, and which
drivers are too old. tests/nsys.sh: what it leaves alone, and that it says why it fails."""

import os
import shutil
import unittest

from program import ProgramTest, call

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "..", "bench", "cuda_wheels.sh")
NSYS = os.path.join(HERE, "..", "nsys.sh")


class StandIns(ProgramTest):
    def setUp(self):
        super().setUp()
        self.env = os.environ | {"PATH": self.scratch + ":" + os.environ["PATH"]}

    def stand_in(self, name, text):
        """A command of that name, first in PATH."""
        self.write(name, "#!/bin/sh\n" + text, 0o755)


class Wheels(StandIns):
    def install(self, version, title="CUDA Version"):
        """What is fetched, exit code and words where nvidia-smi names that version of CUDA."""
        self.stand_in("nvidia-smi", f"echo '| Driver Version: 1.2.3   {title}: {version}     |'\n")
        if os.path.exists(self.path("fetched")):
            os.remove(self.path("fetched"))
        self.stand_in("python3", f'echo "$@" > {self.path("fetched")}\n'
                                 f'mkdir -p {self.path("to/nvidia/cu13/bin")}\n')
        done = call("bash", "-c", f'set -euo pipefail; . "{SCRIPT}"; install_cuda "$0"', self.path("to"),
                    env=self.env)
        try:
            return self.read("fetched").split(), done.returncode, done.stderr
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


class NsightSystems(StandIns):
    def fetch(self, folder):
        """The last line of nsys.sh where apt-get can't reach a mirror."""
        if shutil.which("nsys"):
            self.skipTest("nsys is in PATH, so nothing is fetched")
        self.stand_in("apt-get", "exit 1\n")
        done = call("bash", NSYS, folder, env=self.env, exit_code=1)
        return (done.stdout.splitlines() or [""])[-1]

    def test_without_a_mirror_the_last_line_says_why(self):
        for _ in range(2): # the second time the folder is there, and the script's own
            self.assertRegex(self.fetch(self.path("new")), "^no Nsight Systems: (?!.*name a new folder)")

    def test_a_folder_of_somebody_else_is_left_alone(self):
        self.write("own/kept", "")
        self.assertRegex(self.fetch(self.path("own")), "^no Nsight Systems: ")
        self.assertEqual(os.listdir(self.path("own")), ["kept"])


if __name__ == "__main__":
    unittest.main()
