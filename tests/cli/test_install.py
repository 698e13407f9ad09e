"""An installed program uses its own case files and plot scripts, not those of the source tree."""

import os
import subprocess
import unittest

from program import BUILD, ProgramTest


class Install(ProgramTest):
    def test_installed_program_finds_what_was_installed(self):
        prefix = self.path("prefix")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        program = os.path.join(prefix, "bin", "bench-lstm")
        with open(os.path.join(prefix, "share/bench-lstm/cases/quick.txt"), "w",
                  encoding="utf-8") as file:
            file.write("T3_B2_H4\nT3_B2_H8\n")
        with open(os.path.join(prefix, "share/bench-lstm/plots/style.gp"), "a",
                  encoding="utf-8") as file:
            file.write("# the installed style\n")
        done = subprocess.run([program, "--sweep", "--impl", "cpu_ref", "--out", self.path("run")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("T3_B2_I8_H8/f32/train", done.stdout)
        scripts = [name for name in os.listdir(self.path("run/plots")) if name.endswith(".gp")]
        self.assertGreater(len(scripts), 0)
        with open(self.path("run/plots/" + scripts[0]), encoding="utf-8") as file:
            self.assertIn("# the installed style", file.read())


if __name__ == "__main__":
    unittest.main()
