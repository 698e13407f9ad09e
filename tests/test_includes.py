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
# The implementations' names; the files of impls/ that begin with none of them are for all.
with open(os.path.join(ROOT, "impls", "CMakeLists.txt"), encoding="utf-8") as registrations:
    IMPLS = re.findall(r"^lb_implementation\((\w+)", registrations.read(), re.MULTILINE)
# Of harness, implementations may see the contract and what it rests on, not the program's machinery.
HIDDEN_FROM_IMPLS = {"record.h", "run_file.h", "export.h", "sampler.h", "case_run.h", "registry.h"}

# Outside cuda/: the device layer, and the implementation that wraps a vendor's library.
CUDA_USERS = {"harness/device_cuda.c", "harness/device_versions.c", "harness/kernel_trace_cupti.c",
              "harness/lanes_cuda.c", "harness/latency.cu", "impls/cudnn_rnn.h"}

# These need a vendor's headers, which are not on every machine that runs this.
VENDOR_HEADERS = {"impls/cudnn_rnn.h", "impls/onednn_compat.h", "impls/onednn_layer.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
CODE = (".c", ".h", ".inc", ".cc", ".cpp", ".cu", ".cuh")
TEXT = CODE + (".py", ".sh", ".gp", ".js", ".css")


def files(*folders, endings=CODE):
    for folder in folders:
        for place, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(place, name), ROOT)


def owner(name):
    """The implementation that a file of impls/ belongs to; None: all."""
    return next((impl for impl in IMPLS if re.match(impl + r"[_.]", name)), None)


def fits(path, name, home):
    """Whether a file may include the header of that name, which lies in the folder home."""
    folder = path.split(os.sep)[0]
    if home != folder:
        hidden = folder == "impls" and name in HIDDEN_FROM_IMPLS
        return not hidden and (home in ALLOWED[folder] or f"{home}/{name}" in ALLOWED[folder])
    return folder != "impls" or owner(name) in (None, owner(os.path.basename(path)))


def forbidden(path, text, headers):
    """The includes of a file's text that it must not have."""
    return [include for include in INCLUDE.findall(text)
            if os.path.basename(include) in headers
            and not fits(path, os.path.basename(include), headers[os.path.basename(include)])]


def too_long(path, limit=500):
    """Whether a file has more lines than a reader is asked to hold."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return sum(1 for _ in file) > limit


def complaint_alone(path, flags, scratch):
    """What the compilers say of a header that is all there is to compile; "" where it is fine."""
    include = ["-I" + os.path.join(ROOT, folder) for folder in ALLOWED]
    for language, compiler in (("c", ["gcc", "-std=c11"]), ("cc", ["g++", "-std=c++17"])):
        source = os.path.join(scratch, "alone." + language)
        with open(source, "w", encoding="utf-8") as file:
            file.write(f'#include "{os.path.join(ROOT, path)}"\n')
        done = subprocess.run([*compiler, "-D_POSIX_C_SOURCE=200809L", "-fsyntax-only",
                               "-Wall", "-Werror", *include, *flags, source],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stderr
    return ""


class Includes(unittest.TestCase):
    def setUp(self):
        self.headers = {os.path.basename(path): path.split(os.sep)[0]
                        for path in files(*ALLOWED, endings=(".h", ".cuh", ".inc"))}

    def test_includes_point_one_way(self):
        for path in files(*ALLOWED):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertEqual(forbidden(path, file.read(), self.headers), [], path)

    def test_a_wrong_include_is_found(self):
        self.assertEqual(forbidden("harness/x.c", '#include "plan.h"\n', self.headers), ["plan.h"])
        self.assertEqual(forbidden("impls/x.c", '#include "record.h"\n', self.headers),
                         ["record.h"])
        self.assertEqual(forbidden("impls/x.c", '#include "../harness/record.h"\n', self.headers),
                         ["../harness/record.h"])
        self.assertEqual(forbidden("impls/x.c", '#include "impl.h"\n', self.headers), [])
        self.assertEqual(forbidden("impls/cudnn.c", '#include "cpu_blas.h"\n', self.headers),
                         ["cpu_blas.h"])
        self.assertEqual(forbidden("impls/gpu_net.c", '#include "fused_impl.h"\n', self.headers),
                         ["fused_impl.h"])
        self.assertEqual(forbidden("impls/cudnn.c", '#include "gpu_net.h"\n#include "cudnn_rnn.h"\n',
                                   self.headers), [])

    def test_every_header_compiles_alone_as_c11_and_cxx17(self):
        packages = subprocess.run(["pkg-config", "--cflags", "jansson", "openblas"],
                                  capture_output=True, text=True, check=True).stdout.split()
        with tempfile.TemporaryDirectory() as scratch:
            for path in files(*ALLOWED, endings=(".h",)):
                if path not in VENDOR_HEADERS:
                    self.assertEqual(complaint_alone(path, packages, scratch), "", path)
            broken = os.path.join(scratch, "broken.h")
            with open(broken, "w", encoding="utf-8") as file:
                file.write("size_t lb_needs_stddef(void);\n")
            self.assertIn("size_t", complaint_alone(broken, packages, scratch))

    def test_no_file_is_over_500_lines(self):
        for path in files(*ALLOWED, "tests", "plots", endings=TEXT):
            self.assertFalse(too_long(path), path)
        with tempfile.TemporaryDirectory() as scratch:
            for ending in TEXT:
                with open(os.path.join(scratch, "long" + ending), "w", encoding="utf-8") as file:
                    file.write("\n" * 501)
            long = [path for path in files(scratch, endings=TEXT) if too_long(path)]
            self.assertEqual(len(long), len(TEXT))

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
