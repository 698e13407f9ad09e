"""Includes point one way between modules, files form no circle, and every header compiles alone."""

import graphlib
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The modules of a folder, in order: a module may include itself and those before it.
MODULES = {
    "harness": ["api", "base", "stats", "model", "host", "device", "machine", "reference", "record",
                "trace", "measure", "case"],
    "bench": ["frameworks", "support", "report", "cli", "plot", "run", "sweep", "commands"],
}
# How an include is written: modules of harness and bench by their own name, the rest from the top.
# What each folder may include of the others: harness nothing, the program all of harness.
HARNESS_FOR_IMPLS = {"api", "base", "host", "device", "machine", "reference"}
MAX_FILES_OF_A_MODULE = 25

# Outside cuda/: the device layer, and the implementation that wraps a vendor's library.
CUDA_USERS = {"harness/device/device_cuda.c", "harness/device/cublas.h",
              "harness/trace/kernel_trace_cupti.c", "harness/device/streams_cuda.c",
              "harness/device/device_kernels.cu", "harness/measure/gpu_latency.cu", "impls/cudnn/rnn.h"}

# These need a vendor's headers, which are not on every machine that runs this.
VENDOR_HEADERS = {"harness/device/cublas.h", "impls/cudnn/rnn.h", "impls/onednn/compat.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
CODE = (".c", ".h", ".inc", ".cc", ".cpp", ".cu", ".cuh")
FOLDERS = ("harness", "impls", "cuda", "bench")


def files(*folders, endings=CODE):
    for folder in folders:
        for place, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(place, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def folder_of(path):
    """("harness", "stats"), ("impls", "cudnn"), ("cuda", "fused/grid"), ("bench", "") for main.c."""
    parts = path.split("/")
    return parts[0], "/".join(parts[1:-1])


def resolve(path, include):
    """The file of this tree that an include in the file at path means, from ROOT; None: none."""
    if folder_of(path) == ("harness", "api") and "/" not in include:
        return "harness/api/" + include  # installed as they are, so they name each other alone
    for folder in ("harness/", "bench/", ""):
        if os.path.exists(os.path.join(ROOT, folder + include)) and "/" in include:
            return folder + include
    return None


def may_include(path, target):
    """Whether the file at path may include the file at target, by their modules."""
    (folder, module), (other, there) = folder_of(path), folder_of(target)
    if folder == other and folder in MODULES:
        order = MODULES[folder]
        return module == "" or order.index(there) <= order.index(module)
    if folder == other == "impls":
        return there in (module, "common")
    if folder == other == "cuda":
        return module == "" or there in (module, "common", "fused/common") # "": try_fused.cu
    if other == "harness":
        return folder == "bench" or (folder == "impls" and there in HARNESS_FOR_IMPLS) or \
            (folder == "cuda" and there == "api")
    return folder == "impls" and other == "cuda"


def complaints(path, text):
    """What is wrong with the includes of a file's text."""
    wrong = []
    for include in INCLUDE.findall(text):
        target = resolve(path, include)
        if include in ("build_info.h", "machines.inc", "simd_kernels_list.h"):
            continue
        if not target:
            wrong.append(f"{path}: \"{include}\" does not name a module of this tree")
        elif not may_include(path, target):
            wrong.append(f"{path}: {'/'.join(folder_of(path))} must not include {target}")
    return wrong


def module_of(path):
    """A .c file and the .h of its name are one module."""
    return os.path.splitext(path)[0]


def complaints_alone(headers, flags):
    """What the compilers say of headers, each of which is all there is to compile; "" where they are fine."""
    include = ["-I" + ROOT, "-I" + os.path.join(ROOT, "harness"), "-I" + os.path.join(ROOT, "bench")]
    for compiler in (["gcc", "-std=c11", "-x", "c"], ["g++", "-std=c++17", "-x", "c++"]):
        done = subprocess.run([*compiler, "-D_POSIX_C_SOURCE=200809L", "-fsyntax-only", "-Wall", "-Werror",
                               *include, *flags, *headers], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stderr
    return ""


class Includes(unittest.TestCase):
    def test_includes_name_their_module_and_point_one_way(self):
        for path in files(*FOLDERS):
            self.assertEqual(complaints(path, read(path)), [])

    def test_a_wrong_include_is_found(self):
        for path, include in (("harness/stats/x.c", "record/record.h"),
                              ("harness/record/x.c", "record.h"),
                              ("harness/base/x.c", "cli/plan.h"),
                              ("bench/cli/x.c", "sweep/sweep.h"),
                              ("cuda/common/x.cu", "device/device.h"),
                              ("cuda/fused/grid/x.cu", "cuda/fused/step/step.h"),
                              ("impls/cudnn/x.c", "record/record.h"),
                              ("impls/cudnn/x.c", "impls/cpu_simd/cpu_simd.h"),
                              ("impls/common/x.c", "impls/fused/fused.h")):
            self.assertEqual(len(complaints(path, f'#include "{include}"\n')), 1, (path, include))
        for path, include in (("harness/record/x.c", "stats/order_stats.h"),
                              ("harness/api/x.h", "problem.h"),
                              ("bench/main.c", "sweep/sweep.h"),
                              ("bench/run/x.c", "case/options.h"),
                              ("cuda/fused/grid/x.cu", "cuda/common/ptx.cuh"),
                              ("impls/cudnn/x.c", "impls/cudnn/rnn.h"),
                              ("impls/fused/x.c", "cuda/fused/grid/grid.h")):
            self.assertEqual(complaints(path, f'#include "{include}"\n'), [], (path, include))

    def test_there_is_no_circle(self):
        includes = {}
        for path in files(*FOLDERS):
            targets = {resolve(path, include) for include in INCLUDE.findall(read(path))} - {None}
            includes.setdefault(module_of(path), set()).update(
                module_of(target) for target in targets if module_of(target) != module_of(path))
        graphlib.TopologicalSorter(includes).prepare() # else its error names the files of a circle

    def test_a_room_holds_no_more_files_than_one_can_look_over(self):
        modules = {}
        for path in files(*FOLDERS):
            modules.setdefault(folder_of(path), []).append(path)
        crowded = {module: len(held) for module, held in modules.items()
                   if len(held) > MAX_FILES_OF_A_MODULE}
        self.assertEqual(crowded, {})

    def test_every_header_compiles_alone_as_c11_and_cxx17(self):
        packages = subprocess.run(["pkg-config", "--cflags", "jansson", "openblas"],
                                  capture_output=True, text=True, check=True).stdout.split()
        headers = set(files(*FOLDERS, endings=(".h",))) - VENDOR_HEADERS
        self.assertEqual(complaints_alone(sorted(headers), packages), "")
        with tempfile.NamedTemporaryFile("w", suffix=".h") as broken:
            broken.write("size_t lb_needs_stddef(void);\n")
            broken.flush()
            self.assertIn("size_t", complaints_alone([broken.name], packages))

    def test_cuda_stays_in_its_kernels_the_device_layer_and_what_wraps_a_vendors_library(self):
        vendor = re.compile(r"#\s*include\s*<(cuda|cublas|cudnn|cupti|nvml|nvrtc|cooperative_groups)")
        users = {path for path in files("harness", "impls", "bench") if vendor.search(read(path))}
        self.assertEqual(users, CUDA_USERS)

    def test_only_the_shim_includes_google_benchmark(self):
        users = [path for path in files(*FOLDERS) if "benchmark/benchmark.h" in read(path)]
        self.assertEqual(users, ["bench/sweep/gbench.cc"])


if __name__ == "__main__":
    sys.exit(unittest.main())
