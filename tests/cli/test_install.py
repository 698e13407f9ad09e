"""An installed program uses its own case files and plot scripts, not those of the source tree."""

import os
import subprocess
import unittest

from program import BUILD, ProgramTest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "plugins", "broken.c")


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

    def test_a_plugin_is_built_from_what_was_installed(self):
        prefix, library = self.path("prefix"), self.path("mine.so")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["cc", "-shared", "-fPIC", "-D_DEFAULT_SOURCE", "-DFAULT=none", "-I",
                        os.path.join(prefix, "include/bench-lstm"), SOURCE, "-o", library],
                       check=True)
        done = subprocess.run([os.path.join(prefix, "bin", "bench-lstm"), "--list", "-T", "3", "-B",
                               "2", "-H", "4", "--plugin", library, "--impl", "broken_none"],
                              capture_output=True, text=True, check=False)
        self.assertRegex(done.stdout, "broken_none/T3_B2_I4_H4/f32/infer +ok\n")


if __name__ == "__main__":
    unittest.main()
