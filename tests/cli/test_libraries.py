"""The third-party libraries, oneDNN, OpenBLAS and those of GPUs: only the workers of cases that need one
load it, so the program starts quickly, takes little memory, and runs where a library is missing or
broken. The memory that large plans cost is tested here too."""

import os
import re
import subprocess
import sys
import unittest

from program import PROGRAM, TINY, ProgramTest, children_of, read_lines, read_rows, run, wait_until, without_libraries

# What no process but a worker maps.
FOREIGN = re.compile(r"lib(openblas|dnnl|gomp|cudart|cublas|cudnn)[^/]*\.so")

# Runs a command and prints its peak memory in KiB and its time in seconds. A process begins with the
# memory of the one that starts it, so that is a small interpreter.
MEASURE = """
import os, sys, time
start = time.monotonic()
null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (1, 2)]
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=null), 0)
print(usage.ru_maxrss, time.monotonic() - start)
sys.exit(os.waitstatus_to_exitcode(status) not in (0, 5)) # 5: the time budget left no case any time
"""


def libraries():
    """The file that workers load, by the name of its implementation."""
    return dict(re.findall(r"^  (\w+) +.* workers load (\S+)$", run("--version").stdout, re.MULTILINE))


def mapped(pid):
    """Which of the foreign libraries a process has mapped."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return {found.group(1) for found in map(FOREIGN.search, maps) if found}


def cost(*arguments, env=None):
    """Runs the program; its peak memory in MB, or that of its largest worker, and its time in seconds."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, PROGRAM, *arguments],
                          capture_output=True, text=True, check=True, env=env)
    kibibytes, seconds = done.stdout.split()
    return int(kibibytes) * 1024 / 1e6, float(seconds)


class Loading(ProgramTest):
    def test_the_program_itself_maps_none(self):
        said = run("--version", env=os.environ | {"LD_DEBUG": "files"})
        loaded = set(re.findall(r"file=(\S+) \[0\]", said.stderr))
        self.assertIn("libjansson.so.4", loaded)
        self.assertEqual({name for name in loaded if FOREIGN.match(os.path.basename(name))}, set())

    def test_version_takes_little_memory_and_time(self):
        self.assertLess(cost("--version")[0], 20)
        # One of many starts: what else the machine does only makes a start slower.
        self.assertTrue(any(cost("--version")[1] < 0.015 for _ in range(200)))

    def test_a_worker_loads_what_its_case_needs(self):
        for impl, wanted in (("cpu_ref", set()), ("openblas", {"openblas"})):
            with subprocess.Popen([PROGRAM, "--sweep", "--impl", impl, "-T", "64", "-B", "8",
                                   "-H", "64", "--case-time", "5", "--plots", "none", "--out", self.path(impl)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                def samples():
                    workers = children_of(process.pid)
                    return os.path.exists(self.path(impl + "/run.jsonl")) and len(workers) == 1 and \
                        mapped(workers[0]) == wanted
                wait_until(samples)
                self.assertEqual(mapped(process.pid), set())
                process.terminate()


class Broken(ProgramTest):
    """A library that can't be loaded costs the rows of its implementation."""

    def compiled(self, folder, soname, code):
        self.write("source.c", code)
        subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", self.path("source.c"), "-o",
                        os.path.join(folder, soname)], check=True)

    def swept(self, impl, folder):
        """The rows of a sweep that finds the folder's libraries first, and its record of libraries."""
        env = os.environ | {"LD_LIBRARY_PATH": folder}
        run("--sweep", *TINY, "--impl", f"cpu_ref,cpu_simd,{impl}", "--plots", "none", "--out",
            os.path.join(folder, "run"), env=env, exit_code=0)
        rows = {row["impl"]: row for row in read_rows(os.path.join(folder, "run")).values()}
        self.assertEqual([rows[name]["verdict"] for name in ("cpu_ref", "cpu_simd", impl)],
                         ["ok", "ok", "absent"])
        self.assertIn("absent: " + rows[impl]["reason"],
                      run("--list", *TINY[:6], "--impl", impl, env=env).stdout)
        return rows[impl]["reason"], read_lines(folder + "/run")[0]["environment"]["libraries"]

    def test_int8_of_onednn_has_weights_of_7_bits_without_vnni(self):
        """Else its sums overflow: on any x86, AVX2 alone is such a CPU."""
        if "onednn" not in libraries() or os.uname().machine != "x86_64":
            self.skipTest("no oneDNN for x86")
        rows, _ = self.sweep("-T", "20", "-B", "2", "-I", "24", "-H", "32", "--impl", "onednn", "--dtype", "int8,f32",
                             env=os.environ | {"DNNL_MAX_CPU_ISA": "AVX2"})
        self.assertEqual([row["verdict"] for row in rows.values()], ["ok", "ok"])
        self.assertIn("weights per channel in 7 bits", rows["onednn/T20_B2_I24_H32/int8/infer"]["description"])

    def test_files_that_are_no_library(self):
        for impl, soname in libraries().items():
            if impl not in ("openblas", "onednn"):
                continue # without a driver no library of a GPU is loaded
            self.write(f"{impl}/{soname}", "no library")
            reason, recorded = self.swept(impl, self.path(impl))
            self.assertRegex(reason, f"^[a-zA-Z]+ can't be loaded: .*{re.escape(soname)}: file too short")
            self.assertIn(None, recorded.values())

    def test_a_library_without_the_functions(self):
        soname = libraries()["openblas"]
        self.compiled(self.scratch, soname, "int nothing;")
        reason, _ = self.swept("openblas", self.scratch)
        self.assertRegex(reason, f"^{re.escape(soname)} has no function cblas_daxpy; the program was "
                                 r"built against OpenBLAS \d")

    def test_a_library_that_crashes_while_it_is_loaded(self):
        self.compiled(self.scratch, libraries()["openblas"],
                      "#include <stdlib.h>\n__attribute__((constructor)) static void die(void) { abort(); }")
        reason, _ = self.swept("openblas", self.scratch)
        self.assertRegex(reason, r"^OpenBLAS can't be loaded: Aborted \(signal 6\) in loading$")


class LargePlans(ProgramTest):
    """The program's own memory: its workers find no libraries, of which some take 160 MB."""

    def test_memory_of_a_list(self):
        grid = ["-T", "1:40:+1", "-B", "1:40:+1", "-H", "1:40:+1", "--impl", "cpu_ref,cpu_simd"]
        env = without_libraries(self.path("libraries"))
        self.assertLess(cost("--list", *grid, env=env)[0], 100) # 128,000 cases

    def test_memory_of_a_sweep(self):
        grid = ["-T", "1:50:+1", "-B", "1:50:+1", "-H", "1:8:+1", "--impl", "cpu_ref"] # 20,000 cases
        megabytes, _ = cost("--sweep", *grid, "--time-budget", "0.01", "--case-time", "0.001", "--plots", "none", "--out",
                            self.path("run"), env=without_libraries(self.path("libraries")))
        with open(self.path("run/run.jsonl"), encoding="utf-8") as lines:
            self.assertGreater(sum('"verdict":"skipped"' in line for line in lines), 19_000)
        self.assertLess(megabytes, 70)


if __name__ == "__main__":
    unittest.main()
