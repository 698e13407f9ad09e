"""With the real Nsight Systems: it sees the ranges of a sweep, by name and count, in their domain."""

import collections
import csv
import glob
import io
import os
import shutil
import subprocess
import sys
import unittest

import nvtx_events
from program import PROGRAM, ProgramTest, read_rows

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

    def run(self, *arguments):
        """Runs a command of the tool; returns what it wrote on stdout."""
        done = subprocess.run(arguments, env=self.env, capture_output=True, text=True,
                              timeout=240, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{arguments[0]}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def profile(self, report, *command):
        """Profiles a command's NVTX ranges into report.nsys-rep."""
        self.run(self.program, "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none",
                 "--force-overwrite=true", "--output", report, *command)
        if not os.path.exists(report + ".nsys-rep"):
            self.run(self.importer, "--input-file", report + ".qdstrm")

    def ranges(self, report):
        """How many ranges there are of each name, "domain:name"."""
        for name in ("nvtx_sum", "nvtxsum"):
            try:
                text = self.run(self.program, "stats", "--report", name, "--format", "csv",
                                "--output", "-", report + ".nsys-rep")
            except RuntimeError:
                continue
            table = text[text.find("Time (%)"):]
            if table.startswith("Time"):
                return {row["Range"]: int(row["Instances"])
                        for row in csv.DictReader(io.StringIO(table)) if row["Range"]}
        raise RuntimeError("nsys stats knows neither nvtx_sum nor nvtxsum")


class Timeline(ProgramTest):
    def test_a_quick_sweep_has_one_range_a_phase_for_every_case(self):
        nsys, report, out = Nsys(), self.path("report"), self.path("run")
        nsys.profile(report, PROGRAM, "--sweep", "--quick", "--impl", "cpu_ref,cpu_simd",
                     "--case-time", "0.02", "--out", out)
        rows = read_rows(out).values()
        self.assertEqual({row["verdict"] for row in rows}, {"ok"})
        expected = collections.Counter(row["impl"] for row in rows)
        expected.update({name: len(rows) for name in nvtx_events.NAMES})
        self.assertEqual(nsys.ranges(report),
                         {f"{nvtx_events.DOMAIN}:{name}": n for name, n in expected.items()})


if __name__ == "__main__":
    if not Nsys().program:
        print("skipped: there is no Nsight Systems here, and tests/nsys.sh could not get it")
        sys.exit(77)
    unittest.main()
