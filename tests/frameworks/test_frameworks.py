"""A framework's rows are verified by the oracle on random problems, and faults in its adapter are found.

    test_frameworks.py FRAMEWORK [--count N] [--seed N]

N random problems of each dtype and pass; ctest takes few, and 200 take an hour for a framework that
compiles each. Exit code 77: the framework, or its plug-in, is not there.
"""

import argparse
import json
import os
import random
import shutil
import struct
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))

from program import BUILD, ProgramTest, read_lines, run  # pylint: disable=wrong-import-position

DTYPES, PASSES = ["f64", "f32", "f16", "bf16"], ["infer", "forward", "backward", "train"]
QUANTISES = ["int8"]  # of pass infer alone

# What a framework can run: dtypes and passes of which every problem is to be ok, in one of the
# variants; with the variants that the oracle verifies.
ABLE = {
    "pytorch": (DTYPES + QUANTISES, PASSES, ["auto", "native", "frozen", "autocast"]),
    "keras": (DTYPES, PASSES, ["auto", "unrolled", "jit", "mixed"]),
    "keras_torch": (["f32", "f16", "bf16"], PASSES, ["auto", "generic"]),
    "keras_jax": (["f32", "f16", "bf16"], PASSES, ["auto", "jit"]),
    "onnxruntime": (["f32"] + QUANTISES, ["infer"], ["auto"]),
    "openvino": (["f32", "bf16"] + QUANTISES, ["infer"], ["auto"]),
    "jax": (DTYPES, PASSES, ["auto", "jit"]),
}

ONE_VARIANT = ("onnxruntime", "openvino")

# The cell that it has, other than the standard one.
CELLS = {"pytorch": "projection", "jax": "projection", "onnxruntime": "peephole"}

# The libraries that a record names: the package, and a made-up version of it.
PACKAGES = {
    "pytorch": {"PyTorch": ("torch", "9.8.7+cpu")},
    "keras": {"Keras": ("keras", "9.1.0"), "TensorFlow": ("tensorflow_cpu", "9.2.0rc1")},
    "keras_torch": {"Keras": ("keras", "9.1.0"), "PyTorch": ("torch", "9.8.7+cpu")},
    "keras_jax": {"Keras": ("keras", "9.1.0"), "JAX": ("jax", "9.0.2")},
    "onnxruntime": {"ONNX Runtime": ("onnxruntime", "9.3.1")},
    "openvino": {"OpenVINO": ("openvino", "9.4.1")},
    "jax": {"JAX": ("jax", "9.0.2")},
}

# A fault: the adapter's file, what is replaced in it, by what.
KERAS_GATES = ("keras_lstm.py", "variable.assign(value)",
               "variable.assign(numpy.roll(value, case.hidden, -1))")
KERAS_BIAS = ("keras_lstm.py", "recurrent.T, bias, bias)", "recurrent.T, bias, 0 * bias)")
SWAPPED_GATES = {
    "pytorch": ("torch_lstm.py", "self.torch.from_dlpack(kind[index]))",
                "self.torch.from_dlpack(kind[index]).roll(self.case.hidden, 0))"),
    "keras": KERAS_GATES,
    "keras_torch": KERAS_GATES,
    "keras_jax": KERAS_GATES,
    "onnxruntime": ("onnx_lstm.py", '"iofg"', '"ifog"'),
    "openvino": ("openvino_lstm.py", "(1, 0, 2, 3)", "(0, 1, 2, 3)"),
    "jax": ("jax_lstm.py", "i, f, g, o = numpy.split", "f, i, g, o = numpy.split"),
}
SWAPPED_GRADIENTS = {
    "pytorch": ("torch_lstm.py", ").contiguous()", ").roll(self.case.hidden, 0)"),
    "keras": KERAS_BIAS,
    "keras_torch": ("keras_torch_lstm.py", "recurrent.T, bias, bias)", "recurrent.T, bias, 0 * bias)"),
    "keras_jax": KERAS_BIAS,
    "jax": ("jax_lstm.py", "for kind in kinds], found)",
            "for kind in kinds],\n                       "
            "[self.jax.numpy.roll(part, self.case.hidden, 0) for part in found])"),
}
# Faults of that cell alone: w_hr in the order of its transpose, and likewise its gradient; peepholes in
# another order of gates.
TURNED_CELL = {
    "pytorch": ("torch_lstm.py", "parameter.copy_(self.torch.from_dlpack(kind[index]))",
                "value = self.torch.from_dlpack(kind[index])\n"
                "                    if kind is kinds[-1] and self.case.projection:\n"
                "                        value = value.T.reshape(value.shape)\n"
                "                    parameter.copy_(value)"),
    "jax": ("jax_lstm.py", "product(h_next, projection[0])",
            "product(h_next, projection[0].T.reshape(projection[0].shape))"),
    "onnxruntime": ("onnx_lstm.py", "[[0, 2, 1]]", "[[0, 1, 2]]"),
}
TURNED_CELL_GRADIENT = {
    "pytorch": ("torch_lstm.py", ").contiguous()",
                ")\n"
                "                if kind is kinds[-1] and self.case.projection:\n"
                "                    found = found.T.reshape(found.shape)\n"
                "                found = found.contiguous()"),
    "jax": ("jax_lstm.py", "for kind in kinds], found)",
            "for kind in kinds],\n                       "
            "[part.T.reshape(part.shape) if number == 4 else part\n"
            "                        for number, part in enumerate(found)])"),
}
# No fault: cuDNN's variant of JAX on a CPU, with the reference function of JAX.
CUDNN_ON_CPU = [
    ("jax_lstm.py", 'if case.variant == "cudnn" and case.device != "cuda":', "if False:"),
    ("jax_lstm.py", "rnn.lstm(numpy.swapaxes(x, 0, 1), h0, c0, weights, steps,",
     "rnn.lstm_ref(numpy.swapaxes(x, 0, 1), h0, c0, *rnn.unpack_lstm_weights(weights, case.input, "
     "case.hidden, case.layers, case.directions == 2), steps,"),
    ("jax_lstm.py", "case.directions == 2, precision)", "case.directions == 2)"),
]
# Wrong quantisations: weights of 6 bits, and the products of h's zero point, 128, which nobody subtracts.
LOADED = "        self.prepare(self.tensors(tables), tuple(steps))"
WRONG_INT8 = {
    "six bits": ("contract.py", LOADED, """        for kind in self.tensors(tables)[:2]:
            for array in (tensor.numpy() for tensor in kind):
                step = abs(array).max(1, keepdims=True) / 31
                array[...] = (array / step).round() * step
""" + LOADED),
    "zero point missed": ("contract.py", LOADED, """        _, w_hh, _, b_hh = self.tensors(tables)
        for weights, biases in zip(w_hh, b_hh):
            biases.numpy()[...] += weights.numpy().sum(1) * 128 / 127
""" + LOADED),
}
# Weights of 8 bits where those of 7 are needed.
EIGHT_BITS = ("contract.py", "return flags is not None and", "return False and")
# Defects of OpenVINO, without the adapter's way around them, and problems that show them: gates with each
# other's scales, and a layer with those of another.
OPENVINO_INT8 = {
    "T40_B20_I4_H8_L2/int8/infer": ("openvino_lstm.py", "most[:, :H] = most[:, H:2 * H] = ",
                                    "most[:0, :H] = most[:0, H:2 * H] = 0 * "),
    "T40_B20_I8_H8_L2/int8/infer": ("openvino_lstm.py", '= 0\n        self.compiled', '= 100\n        self.compiled'),
}
FORWARD_OF = {"keras_torch": "torch_lstm.py", "keras_jax": "jax_lstm.py"}
ABORTS = {  # ends the process in one case
    name: (FORWARD_OF.get(name, file), "    def forward(self, bound):\n",
           "    def forward(self, bound):\n        if self.case.hidden == 13:\n            import os\n"
           "            os.abort()\n")
    for name, (file, _, _) in SWAPPED_GATES.items()}

# No fault: PyTorch tells how many threads a new thread's parallel regions would have by default, which is
# the number of CPUs that libgomp counted when it was loaded.
COUNTED_CPUS = ("torch_lstm.py", "    def describe(self):\n", """    def describe(self):
        import ctypes, threading
        with open("/proc/self/maps", encoding="utf-8") as maps:
            library = next(line.split()[-1] for line in maps if "/libgomp" in line)
        counted = []
        function = ctypes.CDLL(library).omp_get_max_threads
        thread = threading.Thread(target=lambda: counted.append(function()))
        thread.start()
        thread.join()
        return f"{counted[0]} counted"
""")
PINNED_IMPORT = ("torch_lstm.py", "with unpinned():", "if True:")


def plugin_of(name):
    return os.path.join(BUILD, "frameworks", f"bench_lstm_{name}.so")


def draw(name, numbers, dtype, kind, relu, cells):
    """A small random problem as a line of a case file."""
    cell = numbers.choice(cells) if dtype not in QUANTISES else "standard"
    projects = cell == "projection"
    T, B, L, D = (numbers.randint(1, 12), numbers.randint(1, 9), numbers.choice([1, 1, 2, 3]),
                  numbers.choice([1, 2]))
    H = numbers.randint(2 if projects else 1, 24)
    text = f"T{T}_B{B}_I{numbers.randint(1, 24)}_H{H}"
    text += f"_P{numbers.randint(1, H - 1)}" if projects else ""
    text += (f"_L{L}" if L > 1 else "") + (f"_D{D}" if D > 1 else "") + f"/{dtype}/{kind}"
    text += "/ragged" if numbers.random() < 0.5 and (dtype, name) != ("int8", "openvino") else ""
    if cell == "peephole":
        return text + "/cell-peephole"
    return text + ("/act-relu" if relu and not projects and dtype not in QUANTISES and numbers.random() < 0.2 else "")


class Framework(ProgramTest):
    """One framework, which main() chooses."""

    name, count, seed = "", 2, 1

    def rows_of(self, lines, plugin=None, variants=("auto",), **options):
        cases = self.path("cases.txt")
        self.write("cases.txt", "\n".join(dict.fromkeys(lines)) + "\n")
        impls = ",".join(f"{self.name}:{variant}" for variant in variants) \
            if self.name not in ONE_VARIANT else self.name
        added = ["--plugin", plugin] if plugin else ["--framework", self.name]
        rows, _ = self.sweep(*added, "--impl", impls, "--cases",
                             cases, "--case-time", "0.001", timeout=None, **options)
        return rows

    def broken(self, *faults):
        """A copy of the plug-in next to adapters of which one has the faults."""
        folder = self.path("broken")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(os.path.join(ROOT, "bench", "frameworks"), folder)
        for file, old, new in faults:
            text = self.read("broken/" + file)
            self.assertIn(old, text, "the fault is no longer where the test puts it")
            self.write("broken/" + file, text.replace(old, new))
        return shutil.copy(plugin_of(self.name), folder)

    def test_random_problems_are_right(self):
        dtypes, passes, variants = ABLE[self.name]
        cells = ["standard", CELLS.get(self.name, "standard")]
        numbers = random.Random(self.seed)
        lines = [draw(self.name, numbers, dtype, kind, self.name != "pytorch", cells)
                 for dtype in dtypes for kind in passes
                 if dtype not in QUANTISES or kind == "infer" for _ in range(self.count)]
        rows = self.rows_of(lines, variants=variants)
        usual = 0
        for case, row in rows.items():
            self.assertIn(row["verdict"], ("ok", "unsupported"), f"{case}: {row['reason']}")
            if row["variant"] in ("", "auto"):
                self.assertTrue(row["verdict"] == "ok" or row["reason"].startswith("dtype bf16: OpenVINO"),
                                f"{case}: {row['reason']}")
                usual += 1
        self.assertEqual(usual, len(set(lines)))
        used = {case: row["tolerance_used"] for case, row in rows.items() if row["verdict"] == "ok"}
        near = max(used, key=used.get)
        print(f"{self.name}: {len(used)} rows of {len(set(lines))} problems are ok, and use at most "
              f"{used[near]:.0%} of the tolerance ({near})")

    def test_a_fault_in_the_adapter_is_found_where_it_is(self):
        plain, other = "T3_B2_I5_H4", self.with_cell
        found = 0
        for faults, lines, is_wrong in (
                (SWAPPED_GATES, [plain + "/f32/infer", plain + "_D2/f32/infer/ragged"],
                 lambda row: True),
                (SWAPPED_GRADIENTS, [plain + "/f32/train", plain + "/f32/infer"],
                 lambda row: row["pass"] == "train"),
                (TURNED_CELL, [plain + "/f32/infer", other("infer"), other("infer", "_D2")],
                 lambda row: row["cell"] != "standard"),
                (TURNED_CELL_GRADIENT, [other("train"), other("infer"), plain + "/f32/train"],
                 lambda row: row["pass"] == "train" and row["cell"] != "standard")):
            if self.name not in faults:
                continue
            found += 1
            plugin = self.broken(faults[self.name])
            rows = self.rows_of(lines, plugin, exit_code=1, name=f"fault{found}")
            self.assertEqual(len(rows), len(lines))
            for case, row in rows.items():
                wrong = is_wrong(row)
                self.assertEqual(row["verdict"], "wrong" if wrong else "ok", case)
                if wrong and faults is TURNED_CELL_GRADIENT:
                    self.assertIn("dw_hr", row["reason"])
        self.assertGreater(found, 0)

    def test_wrong_quantisations_are_found(self):
        """A quantisation of the framework's own is judged by its error against the network that is not
        quantised, with a bound that these are beyond."""
        if "int8" not in ABLE[self.name][0]:
            for row in self.rows_of(["T3_B2_I5_H4/int8/infer"], exit_code=5).values():
                self.assertEqual(row["verdict"], "unsupported")
                self.assertIn("has no LSTM in int8", row["reason"])
            return
        lines = ["T40_B40_I64_H64/int8/infer"]
        for row in self.rows_of(lines).values():
            self.assertEqual(row["verdict"], "ok")
            self.assertRegex(row["description"], ", s8 weights per (channel|tensor)( in 7 bits|), u8 activations "
                             "(static|dynamic)")
        overflows = {"eight bits": EIGHT_BITS} if " in 7 bits, u8" in row["description"] else {}
        for name, fault in (WRONG_INT8 | overflows).items():
            for row in self.rows_of(lines, self.broken(fault), exit_code=1, name=name).values():
                self.assertEqual(row["verdict"], "wrong", name)
        for line, fault in OPENVINO_INT8.items() if self.name == "openvino" else ():
            for row in self.rows_of([line], self.broken(fault), exit_code=1, name=line.split("/")[0]).values():
                self.assertEqual(row["verdict"], "wrong", line)

    def test_one_scale_for_all_channels_is_low_precision_and_not_wrong(self):
        """Where the weights of one channel are large, s8 per tensor is coarse for all others."""
        if self.name not in ("pytorch", "onnxruntime"):
            self.skipTest("of those that quantise per tensor alone")
        trained = os.path.join(ROOT, "tests", "frameworks", "trained", "next")
        with open(trained + ".safetensors", "rb") as file:
            content = bytearray(file.read())
        start = 8 + struct.unpack_from("<Q", content)[0]
        for name in ("weight_ih_l0", "weight_hh_l0"):
            row = start + json.loads(content[8:start])[name]["data_offsets"][0]
            struct.pack_into("<32f", content, row, *[100 * v for v in struct.unpack_from("<32f", content, row)])
        with open(self.path("outlier.safetensors"), "wb") as file:
            file.write(content)
        rows, _ = self.sweep("--weights", self.path("outlier.safetensors"), "--inputs", trained + "_x.npy", "--dtype",
                             "int8", "--framework", self.name, "--impl", self.name + ("" if self.name in ONE_VARIANT
                             else ":auto"), "--case-time", "0.001", timeout=None)
        for row in rows.values():
            self.assertEqual(row["verdict"], "suspect")
            self.assertRegex(row["reason"], "low precision: .* no more than with one scale for all channels")

    def with_cell(self, kind, sizes=""):
        """A case of the framework's other cell."""
        projects = CELLS.get(self.name) == "projection"
        return f"T3_B2_I5_H6{'_P3' if projects else ''}{sizes}/f32/{kind}" + \
            ("" if projects else "/cell-peephole")

    def test_cells_that_it_does_not_have_are_told(self):
        lines = ["T3_B2_I5_H6_P3/f32/infer", "T3_B2_I5_H6/f32/infer/cell-peephole",
                 "T3_B2_I5_H6/f32/infer/cell-layernorm"]
        rows = self.rows_of(lines, exit_code=0 if self.name in CELLS else 5).values()
        self.assertEqual(len(rows), 3)
        for row in rows:
            cell = row["cell"]
            self.assertEqual(row["verdict"],
                             "ok" if cell == CELLS.get(self.name) else "unsupported", row["reason"])
            if row["verdict"] == "unsupported":
                self.assertIn(f"{self.name} needs the standard cell" if cell == "layernorm"
                              else f"has no {cell}", row["reason"])

    def test_weights_are_laid_out_for_cudnn_as_jax_says(self):
        if self.name != "jax":
            self.skipTest("of JAX alone")
        lines = ["T3_B2_I5_H4/f32/train", "T3_B4_I5_H4_L2_D2/f32/train/ragged", "T5_B3_I2_H3_L3/f32/infer"]
        plugin = self.broken(*CUDNN_ON_CPU)
        for row in self.rows_of(lines, plugin, ["cudnn"]).values():
            self.assertEqual(row["verdict"], "ok", row["reason"])
            self.assertIn(" cuDNN, ", row["description"])
        for row in self.rows_of(lines, variants=["cudnn"], exit_code=5, name="real").values():
            self.assertEqual((row["verdict"], row["reason"]),
                             ("unsupported", "cuDNN needs a GPU: jax_cuda:cudnn"))

    def test_a_crash_costs_its_row_only(self):
        plugin = self.broken(ABORTS[self.name])
        lines = [f"T3_B2_I5_H{hidden}/f32/infer" for hidden in (4, 13, 8)]
        for row in self.rows_of(lines, plugin, exit_code=1).values():
            self.assertEqual(row["verdict"], "crash" if row["hidden"] == 13 else "ok")

    def test_each_number_of_threads_is_used(self):
        rows = self.rows_of(["T3_B2_I5_H4/f32/infer/th2", "T3_B2_I5_H4/f32/infer",
                             "T3_B2_I5_H8/f32/infer/th2"])
        for row in rows.values():
            self.assertEqual(row["verdict"], "ok", row["reason"])
            self.assertRegex(row["description"], rf", {row['threads']} threads?\b")

    def test_openmp_sees_all_cpus_whatever_the_first_case_is_pinned_to(self):
        """Else two threads of PyTorch take up to 20 times as long as they need."""
        cpus = len(os.sched_getaffinity(0))
        if self.name != "pytorch" or cpus < 2 or "OMP_NUM_THREADS" in os.environ:
            self.skipTest("of PyTorch on several CPUs alone")
        for name, faults, counted in [("right", [], cpus), ("broken", [PINNED_IMPORT], 1)]:
            plugin = self.broken(COUNTED_CPUS, *faults)
            for row in self.rows_of(["T3_B2_I5_H4/f32/infer"], plugin, name=name).values():
                self.assertTrue(row["description"].startswith(f"{counted} counted"), row["description"])

    def test_the_usual_variant_leaves_nothing_behind(self):
        """Else each case would wait for the framework to be imported anew."""
        for row in self.rows_of(["T3_B2_I5_H4/f32/infer", "T4_B2_I5_H4/f32/infer"]).values():
            self.assertNotIn("left behind", row["warning"])

    def test_it_says_what_it_cannot_do(self):
        lines = ["T3_B2_I5_H4/f32/infer/half"]
        for row in self.rows_of(lines, exit_code=5).values():
            self.assertEqual(row["verdict"], "unsupported")
            self.assertIn("math half", row["reason"])


class Absence(ProgramTest):
    """What is told where there is no framework."""

    name = ""

    def test_a_missing_framework_is_a_row_with_its_reason(self):
        for row in self.rows_in(self.empty_environment()).values():
            self.assertEqual(row["verdict"], "absent", row["reason"])
            self.assertIn("setup.sh", row["reason"])

    def test_the_record_says_which_versions_are_installed(self):
        environment = self.empty_environment()
        for package, version in PACKAGES[self.name].values():
            os.makedirs(os.path.join(environment, "lib", "python3.99", "site-packages",
                                     f"{package}-{version}.dist-info"))
        self.rows_in(environment)
        libraries = read_lines(self.path("run"))[0]["environment"]["libraries"]
        for library, (_, version) in PACKAGES[self.name].items():
            self.assertEqual(libraries[library], version)
        others = {library for packages in PACKAGES.values() for library in packages}
        self.assertEqual(others & set(libraries), set(PACKAGES[self.name]))

    def rows_in(self, environment):
        """The rows of a tiny sweep with the packages of that environment."""
        return self.sweep("--plugin", plugin_of(self.name), "--impl", self.name, "-T", "3", "-B", "2",
                          "-H", "4", exit_code=5,
                          env=os.environ | {"LB_FRAMEWORKS": environment})[0]

    def empty_environment(self):
        """A virtual environment without packages, as setup.sh makes it before it installs."""
        folder = self.path("environment")
        os.makedirs(os.path.join(folder, "bin"))
        os.symlink(sys.executable, os.path.join(folder, "bin", "python3"))
        self.write("environment/pyvenv.cfg", f"home = {os.path.dirname(sys.executable)}\n"
                                             "include-system-site-packages = false\n")
        return folder


def framework_is_there(name):
    """Whether a tiny case runs: else the reason is printed."""
    if not os.path.exists(plugin_of(name)):
        print(f"skipped: {plugin_of(name)} was not built: no headers of Python 3")
        return False
    done = run("--list", "--plugin", plugin_of(name), "--impl", name, "-T", "3", "-B", "2", "-H",
               "4", "--dtype", "f32", timeout=600)
    absent = [line for line in done.stdout.splitlines() if "absent" in line]
    if done.returncode != 0 or absent:
        print("skipped:", absent[0] if absent else done.stderr)
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("name", choices=ABLE)
    parser.add_argument("--count", type=int, default=Framework.count)
    parser.add_argument("--seed", type=int, default=Framework.seed)
    parser.add_argument("tests", nargs="*", help="test functions; all of them where none is named")
    arguments = parser.parse_intermixed_args()
    Framework.name = Absence.name = arguments.name
    Framework.count, Framework.seed = arguments.count, arguments.seed
    if not framework_is_there(arguments.name):
        built = os.path.exists(plugin_of(arguments.name))
        fine = not built or unittest.main(argv=["", "Absence"], exit=False).result.wasSuccessful()
        return 77 if fine else 1
    return 0 if unittest.main(argv=["", *arguments.tests], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
