"""With the real Nsight Systems: it sees the ranges of a case in their domain. test_nvtx.py checks all of them."""

import glob
import os
import shutil
import subprocess
import sys
import unittest

from program import PROGRAM, ProgramTest, profiling_recipes

ROOT = os.environ.get("LB_NSYS", "")  # where tests/nsys.sh unpacks it


class Nsys:
    """An nsys that runs here, and its importer, which older versions do not find by themselves."""

    def __init__(self):
        unpacked = os.path.join(ROOT, "usr/lib/nsight-systems/bin/nsys")
        self.program = unpacked if os.access(unpacked, os.X_OK) else shutil.which("nsys")
        self.env = dict(os.environ)
        if self.program == unpacked:
            self.env["LD_LIBRARY_PATH"] = os.path.join(ROOT, "usr/lib/x86_64-linux-gnu")
        home = os.path.dirname(os.path.dirname(os.path.realpath(self.program or "/")))
        found = glob.glob(os.path.join(ROOT, "usr/lib/nsight-systems/host-*/QdstrmImporter")) + \
            glob.glob(os.path.join(glob.escape(home), "host-*/QdstrmImporter"))
        self.importer = found[0] if found else None

    def finished(self, arguments, **options):
        """Runs a command of the tool to its end, and once or twice more when nsys lost the connection
        between its own processes. nsys 2022.4 was seen to do so on a busy machine, with an exception
        of its own library."""
        for _ in range(3):
            done = subprocess.run(arguments, capture_output=True, text=True, timeout=500, check=False,
                                  **options)
            if done.returncode == 0 or "Local Endpoint is not available" not in done.stderr + done.stdout:
                break
        return done


class Timeline(ProgramTest):
    def test_recipes_work_as_they_stand(self):
        """Those of PROFILING.md that need no GPU, in their order: later ones read earlier reports."""
        nsys, (case, *recipes) = Nsys(), profiling_recipes()
        os.mkdir(self.path("bin"))
        os.symlink(PROGRAM, self.path("bin/bench-lstm"))
        home = os.path.dirname(os.path.dirname(nsys.importer or "/"))
        env = {**nsys.env, "NSYS": home, "PATH": ":".join([self.path("bin"), os.path.dirname(nsys.program),
                                             os.environ["PATH"]])}
        wanted = [part for part in recipes if "--trace=cuda" not in part and
                  ("nsys" in part or "QdstrmImporter" in part)]
        importer = [part for part in wanted if "QdstrmImporter" in part]
        table = [part for part in wanted if "nsys stats" in part]
        self.assertEqual((len(wanted), len(importer), len(table)), (4, 1, 1))

        def bash(part):
            done = nsys.finished(["bash", "-euc", case + part], cwd=self.scratch, env=env)
            return done.returncode, done.stdout, done.stdout + done.stderr
        for part in wanted[:2]: # the range of one case, and a sweep
            code, _, said = bash(part)
            self.assertEqual(code, 0, said)
        left = os.listdir(self.scratch)
        self.assertTrue({"report1.nsys-rep", "report1.qdstrm"} & set(left), left)
        if "sweep.nsys-rep" not in left:
            code, _, said = bash(importer[0])
            self.assertEqual(code, 0, said)
        texts = [bash(table[0].replace("nvtx_sum", name))[1] for name in ("nvtx_sum", "nvtxsum")]
        self.assertIn("bench-lstm:cpu_simd/T16_B4_I64_H64/f32/infer", "".join(texts))


if __name__ == "__main__":
    if not Nsys().program:
        print("skipped: there is no Nsight Systems here, and tests/nsys.sh could not get it")
        sys.exit(77)
    unittest.main()
