"""Includes point one way, every header compiles alone, no file outgrows its reader."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Which folders' headers a folder may include; its own always.
ALLOWED = {
    "harness": [],
    "impls": ["harness", "cuda"],
    "cuda": ["harness/status.h", "harness/problem.h", "harness/dtype.h"],
    "bench": ["harness"],
}
# Of harness, implementations may see the contract and what it rests on, not the program's machinery.
HIDDEN_FROM_IMPLS = {"record.h", "run_file.h", "export.h", "sampler.h", "case_run.h", "registry.h"}

# Outside cuda/: the device layer, and the implementation that wraps a vendor's library.
CUDA_USERS = {"harness/device_cuda.c", "harness/device_versions.c", "harness/kernel_trace_cupti.c",
              "harness/lanes_cuda.c", "harness/latency.cu", "impls/cudnn_rnn.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
CODE = (".c", ".h", ".cc", ".cu", ".cuh")


def files(*folders, endings=CODE):
    for folder in folders:
        for place, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(place, name), ROOT)


def forbidden(path, text, headers):
    """The includes of a file's text that its folder must not have."""
    folder = path.split(os.sep)[0]
    found = []
    for include in INCLUDE.findall(text):
        home = headers.get(os.path.basename(include))
        if home is None or home == folder:
            continue
        allowed = ALLOWED[folder]
        fits = home in allowed or f"{home}/{os.path.basename(include)}" in allowed
        hidden = folder == "impls" and include in HIDDEN_FROM_IMPLS
        if not fits or hidden:
            found.append(include)
    return found


class Includes(unittest.TestCase):
    def setUp(self):
        self.headers = {os.path.basename(path): path.split(os.sep)[0]
                        for path in files(*ALLOWED, endings=(".h", ".cuh"))}

    def test_includes_point_one_way(self):
        for path in files(*ALLOWED):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertEqual(forbidden(path, file.read(), self.headers), [], path)

    def test_a_wrong_include_is_found(self):
        self.assertEqual(forbidden("harness/x.c", '#include "plan.h"\n', self.headers), ["plan.h"])
        self.assertEqual(forbidden("impls/x.c", '#include "record.h"\n', self.headers),
                         ["record.h"])
        self.assertEqual(forbidden("impls/x.c", '#include "impl.h"\n', self.headers), [])

    def test_every_header_compiles_alone_as_c11_and_cxx17(self):
        flags = subprocess.run(["pkg-config", "--cflags", "jansson"], capture_output=True,
                               text=True, check=True).stdout.split()
        include = ["-I" + os.path.join(ROOT, folder) for folder in ("harness", "bench")]
        with tempfile.TemporaryDirectory() as scratch:
            for path in files("harness", "bench", endings=(".h",)):
                for language, compiler in (("c", ["gcc", "-std=c11"]), ("cc", ["g++", "-std=c++17"])):
                    source = os.path.join(scratch, "alone." + language)
                    with open(source, "w", encoding="utf-8") as file:
                        file.write(f'#include "{os.path.join(ROOT, path)}"\n')
                    done = subprocess.run([*compiler, "-D_POSIX_C_SOURCE=200809L", "-fsyntax-only",
                                           "-Wall", "-Werror", *include, *flags, source],
                                          capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_no_file_is_over_500_lines(self):
        for path in files("harness", "impls", "cuda", "bench", "tests"):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertLessEqual(sum(1 for _ in file), 500, path)

    def test_cuda_stays_in_its_kernels_the_device_layer_and_what_wraps_a_vendors_library(self):
        vendor = re.compile(r"#\s*include\s*<(cuda|cublas|cudnn|cupti|nvml|nvrtc|cooperative_groups)")
        users = set()
        for path in files("harness", "impls", "bench"):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                if vendor.search(file.read()):
                    users.add(path)
        self.assertEqual(users, CUDA_USERS)

    def test_only_the_shim_includes_google_benchmark(self):
        users = []
        for path in files(*ALLOWED):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                if "benchmark/benchmark.h" in file.read():
                    users.append(path)
        self.assertEqual(users, [os.path.join("bench", "gbench.cc")])


if __name__ == "__main__":
    sys.exit(unittest.main())
