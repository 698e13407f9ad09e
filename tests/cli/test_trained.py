"""Trained layers and their data: --weights, --inputs and --outputs, and --cross-check on them.

The models in tests/frameworks/trained are compared with the outputs that PyTorch computed from them.
"""

import importlib.util
import json
import os
import re
import shutil
import struct
import sys
import unittest
import zipfile

from program import ProgramTest, call, plugin, read_lines, read_rows, run, write_lines

try:
    import numpy
except ImportError:
    print("NumPy is not installed")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "frameworks", "trained")
CONVERTER = os.path.join(HERE, "..", "..", "bench", "frameworks", "to_safetensors.py")
CPU = ["cpu_ref", "cpu_simd", "openblas", "onednn"]


def model(name):
    return os.path.join(MODELS, name)


def files(name):
    return ["--weights", model(name + ".safetensors"), "--inputs", model(name + "_x.npy")]


class Trained(ProgramTest):
    def batch_first(self, name):
        """A copy of a file with its first two axes exchanged."""
        numpy.save(self.path(name), numpy.load(model(name)).swapaxes(0, 1))
        return self.path(name)

    def cross_check(self, *arguments, exit_code=0):
        """{(output, output): difference} of the table of all pairs, and the finished process."""
        done = run("--cross-check", *arguments, exit_code=exit_code)
        names, pairs = [], {}
        for line in done.stdout.splitlines():
            found = re.match(r"\[ ?\d+\] (\S+)(.*)", line)
            if found:
                for other, difference in zip(names, found[2].split()):
                    pairs[found[1], other] = pairs[other, found[1]] = float(difference)
                names.append(found[1])
        return pairs, done

    def test_every_implementation_runs_a_trained_layer_on_its_data(self):
        for name in ("next", "gap"):
            rows, _ = self.sweep(*files(name), "--impl", ",".join(CPU), "--dtype", "f64,f32,f16,bf16,int8",
                                 "--pass", "infer,train", "--case-time", "0.001", name=name)
            for case, row in rows.items():
                self.assertIn(row["verdict"], ("ok", "unsupported", "absent"), f"{case}: {row['reason']}")
                if row["verdict"] == "ok":
                    self.assertLess(row["tolerance_used"], 1, case)
            right = {row["impl"] for row in rows.values() if row["verdict"] == "ok"}
            self.assertLessEqual({"cpu_ref", "cpu_simd", "openblas"}, right)
            self.says_what_int8_gains([row for row in rows.values() if row["impl"] == "cpu_ref"], self.path(name))

    def says_what_int8_gains(self, rows, folder):
        """--explain and the page have the time and the error of int8 on these weights beside those of f32."""
        f32, int8 = ([row for row in rows if row["dtype"] == dtype and row["pass"] == "infer"][0]
                     for dtype in ("f32", "int8"))
        self.assertGreater(int8["err_norm"], 1e-3)
        gain = (f"int8 is {f32['median_ns'] / int8['median_ns']:.3g} times as fast as f32 on cpu_ref, infer (1 problem), "
                f"with an error of {int8['err_norm']:.2g} where f32 has {f32['err_norm']:.2g}")
        run("--explain", int8["case"], "--from", folder, printed="  measured   " + gain + "\n")
        self.assertEqual(run("--report", folder, "-o", self.path("page.html")).returncode, 0)
        self.assertIn(gain, self.read("page.html"))

    def test_all_give_the_answer_that_pytorch_gave(self):
        for name in ("next", "gap"):
            pairs, done = self.cross_check(*files(name), "--outputs", model(name + "_y.npy"), "--impl",
                                           "cpu_ref,cpu_simd,openblas", "--dtype", "f64,f32,bf16,int8")
            self.assertIn("\n--outputs agrees: ", done.stdout)
            allowed = {"f64": 1e-14, "f32": 2e-6, "bf16": 0.05, "int8": 0.1}
            given = {b: difference for (a, b), difference in pairs.items() if a == "--outputs"}
            self.assertEqual(len(given), 10)  # openblas has no bf16 and no int8
            for output, difference in given.items():
                self.assertLess(difference, allowed[output.split("/")[1]], output)
            self.assertGreater(given["cpu_ref/bf16"], 1e-4)  # a copy of the file would be 0
            self.assertGreater(given["cpu_ref/int8"], 1e-2)

    def test_an_answer_that_only_the_coarser_precision_explains_is_not_simply_right(self):
        numpy.save(self.path("off.npy"), numpy.load(model("next_y.npy")) + 0.005)
        for dtypes, says, code in (("f32,bf16", "agrees, but not in every precision", 0), ("bf16", "agrees", 0),
                                   ("f32", "DIFFERS", 1)):
            _, done = self.cross_check(*files("next"), "--outputs", self.path("off.npy"), "--impl", "cpu_ref,cpu_simd",
                                       "--dtype", dtypes, exit_code=code)
            self.assertIn(f"\n--outputs {says}: ", done.stdout)

    def test_other_weights_give_another_answer(self):
        with open(model("next.safetensors"), "rb") as file:
            content = file.read()
        length = struct.unpack("<Q", content[:8])[0]
        begin, end = json.loads(content[8:8 + length])["weight_hh_l0"]["data_offsets"]
        begin, middle, end = 8 + length + begin, 8 + length + (begin + end) // 2, 8 + length + end
        swapped = self.path("swapped.safetensors")  # gates i and f for g and o
        with open(swapped, "wb") as file:
            file.write(content[:begin] + content[middle:end] + content[begin:middle] + content[end:])
        for dtype, bound in (("f64", "3.6e-15"), ("f32", "1.9e-06"), ("bf16", "1.2e-01")):
            pairs, done = self.cross_check("--weights", swapped, "--inputs", model("next_x.npy"), "--outputs",
                                           model("next_y.npy"), "--impl", "cpu_ref", "--dtype", dtype, exit_code=1)
            self.assertGreater(pairs[f"cpu_ref/{dtype}", "--outputs"], 0.13)
            self.assertRegex(done.stdout, rf"--outputs DIFFERS: .* where rounding to {dtype} explains {bound}\n")

    def test_the_batch_may_come_first(self):
        pairs, _ = self.cross_check("--weights", model("next.safetensors"), "--inputs",
                                    self.batch_first("next_x.npy"), "--outputs",
                                    self.batch_first("next_y.npy"), "--batch-first", "--impl", "cpu_ref",
                                    "--dtype", "f64")
        self.assertLess(pairs["cpu_ref/f64", "--outputs"], 1e-14)

    def test_a_run_keeps_its_files_and_goes_on_with_them(self):
        weights, x = self.path("w.safetensors"), self.path("x.npy")
        shutil.copy(model("next.safetensors"), weights)
        shutil.copy(model("next_x.npy"), x)
        rows, _ = self.sweep("--weights", weights, "--inputs", x, "--impl", "cpu_ref,openblas",
                             "--case-time", "0.001")
        lines = read_lines(self.path("run"))
        self.assertEqual(lines[0]["inputs"]["file"], x)
        self.assertFalse(lines[0]["inputs"]["batch_first"])
        hashes = {row["case"]: row["hash"] for row in rows.values()}
        write_lines(self.path("run"), lines[:2])  # as if it had been killed after the first case
        run("--resume", self.path("run"), exit_code=0)
        self.assertEqual({row["case"]: row["hash"] for row in read_rows(self.path("run")).values()}, hashes)
        numpy.save(x, numpy.load(x)[::-1])
        run("--resume", self.path("run"), exit_code=2, said="holds other inputs than when the run began")

    def test_what_does_not_fit_is_named(self):
        x, w = ["--inputs", model("next_x.npy")], ["--weights", model("next.safetensors")]
        wide, cut = self.path("wide.npy"), self.path("cut.npy")
        for path in (wide, cut):
            numpy.save(path, numpy.zeros((2, 1, 5), "f4"))
        os.truncate(cut, os.path.getsize(cut) - 1)
        turned = self.batch_first("next_y.npy")
        for arguments, says in (
                ([*w, *x, "-T", "5"], "-T: the file of --inputs fixes that size"),
                ([*w, *x, "-H", "5"], "-H: the file of --weights fixes that size"),
                ([*w, "--cell", "standard,peephole"],
                 "--cell peephole: a file of --weights has the standard cell alone"),
                ([*x, "-H", "5", "-I", "5"], "-I: the file of --inputs fixes that size"),
                ([*w, *x, "--case", "T3_B2_H4"], "--case: the file of --weights fixes sizes"),
                (["-T", "3", "-B", "2", "-H", "4", "--batch-first"], "no effect without --inputs"),
                ([*x, "-H", "32", "--outputs", model("next_y.npy")], "--outputs: it needs --weights"),
                ([*w, *x, "--outputs", model("gap_x.npy"), "-B", "1"], "-B: the file"),
                ([*w, *x, "--outputs", turned, "--impl", "cpu_ref"],
                 "--outputs: y is T 3, B 24, D*H 32 there, and 24, 3, 32 here"),
                ([*w, "--inputs", wide],
                 "x has 5 features per step, and the layer of --weights takes 32"),
                (["--inputs", cut, "-H", "5"],
                 "the shape takes 40 bytes of data, and 39 are there")):
            run("--cross-check", *arguments, exit_code=2, said=says)

    def test_what_a_precision_cannot_hold_is_said(self):
        large, heavy = self.path("large.npy"), self.path("heavy.safetensors")
        numpy.save(large, numpy.array([[[0, 1]], [[70000, 2]]], "f4"))
        with open(model("next.safetensors"), "rb") as file:
            content = bytearray(file.read())
        struct.pack_into("<f", content, len(content) - 4, -70000)
        with open(heavy, "wb") as file:
            file.write(content)
        for what, arguments in (("inputs", ["--inputs", large, "-H", "4"]),
                                ("weights", ["--weights", heavy, "-T", "2", "-B", "1"])):
            rows, _ = self.sweep(*arguments, "--impl", "cpu_ref", "--dtype", "f16,f32", "--case-time", "0.001",
                                 name=what)
            verdicts = {row["dtype"]: (row["verdict"], row["reason"]) for row in rows.values()}
            self.assertEqual(verdicts["f32"][0], "ok")
            self.assertEqual(verdicts["f16"],
                             ("unsupported", f"the given {what} go up to 7e+04, which f16 can't hold"))

    def test_cases_of_one_problem_that_run_in_several_ways_have_names_of_their_own(self):
        pairs, done = self.cross_check("-T", "3", "-B", "2", "-H", "32", "--dtype", "f32", "--impl", "cpu_simd",
                                       "--threads", "2,1")
        self.assertEqual(set(pairs), {("cpu_simd/f32", "cpu_simd/f32/th2"), ("cpu_simd/f32/th2", "cpu_simd/f32")})
        self.assertTrue(done.stdout.startswith("T3_B2_I32_H32/infer: y is"), done.stdout)

    def test_what_cannot_be_compared_is_said(self):
        sizes = ["-T", "3", "-B", "2", "-H", "4", "--dtype", "f32"]
        _, done = self.cross_check(*sizes, "--impl", "cpu_ref", exit_code=5)
        self.assertIn("fewer than two cases run here", done.stderr)
        low = "cheats_f16_as_bf16"  # suspect: --cross-check is to show such a precision
        pairs, done = self.cross_check(*sizes[:-1], "f16", "--impl", f"cpu_ref,{low}", "--plugin", plugin(low))
        self.assertGreater(pairs["cpu_ref/f16", low + "/f16"], 1e-3)
        broken, crash = "broken_swapped_gates", "misbehave_crash"
        pairs, done = self.cross_check(*sizes, "--impl", f"cpu_ref,cpu_simd,{broken},{crash}", "--plugin",
                                       plugin(broken), "--plugin", plugin(crash), exit_code=1)
        self.assertRegex(done.stderr, f"{broken}/f32 is not compared: wrong: y ")
        self.assertRegex(done.stderr, f"{crash}/f32 is not compared: crash: ")
        self.assertEqual(set(pairs), {("cpu_ref/f32", "cpu_simd/f32"), ("cpu_simd/f32", "cpu_ref/f32")})
        self.assertLess(pairs["cpu_ref/f32", "cpu_simd/f32"], 1e-5)


class Converter(ProgramTest):
    """to_safetensors.py with a stand-in for PyTorch, which reads one tensor or finds the file damaged, and
    one for ONNX, which reads one LSTM or two. tests/frameworks converts real models."""

    STAND_IN = """
import numpy
bfloat16 = "bfloat16"

class Tensor:
    def __init__(self, array):
        self.array, self.dtype, self.detached = array, array.dtype, False
    def detach(self):
        self.detached = True
        return self
    def numpy(self):
        assert self.detached # as of one that requires gradients
        return self.array
    def is_floating_point(self):
        return True

def is_tensor(value):
    return isinstance(value, Tensor)

def load(path, **_):
    if "damaged" in path:
        raise RuntimeError("not a ZIP archive")
    if "nested" in path:
        return {"epoch": 3, "model": {"weight": Tensor(numpy.ones(3))}}
    return {"weight": Tensor(numpy.arange(3, dtype="c8" if "complex" in path else ">f4"))}
"""

    ONNX_STAND_IN = """
import types
import numpy

class numpy_helper:
    to_array = staticmethod(lambda tensor: tensor.array)

def load(path):
    shapes = {"w": (1, 16, 5), "w2": (1, 16, 4), "r": (1, 16, 4), "b": (1, 32), "p": (1, 12)}
    settings = {"hidden_size": 4, "activations": [b"Sigmoid", b"tanh", b"Relu" if "relu" in path else b"Tanh"]}
    settings |= {"direction": b"reverse"} if "reverse" in path else {}
    settings |= {"clip": 3.0} if "clip" in path else {}
    settings["input_forget"] = int("forget" in path)
    node = types.SimpleNamespace(name="lstm", op_type="LSTM", output=["y", "h"],
        input=["x", "w", "r", "computed" if "bias" in path else "b", "", "", "", "p" if "peephole" in path else ""],
        attribute=[types.SimpleNamespace(name=name, s=value, i=value, f=value,
                                         strings=value if name == "activations" else [])
                   for name, value in settings.items()])
    nodes = [node]
    if "two" in path: # the second one takes y or h of the first, or what an Add makes of it
        turned = types.SimpleNamespace(name="", op_type="Add" if "add" in path else "Squeeze", output=["z"],
                                       input=["h" if "last" in path else "y"])
        nodes += [turned, types.SimpleNamespace(name="next", op_type="LSTM", output=["y2"],
                                                input=["z", "w2", "r", "b"], attribute=[])]
    values = [types.SimpleNamespace(name=name, array=numpy.ones(shape, "f4"))
              for name, shape in shapes.items()]
    return types.SimpleNamespace(graph=types.SimpleNamespace(initializer=values, node=nodes))
"""

    def convert(self, name, out, exit_code=0, said=""):
        for module, text in (("torch.py", self.STAND_IN), ("onnx.py", self.ONNX_STAND_IN)):
            self.write(module, text)
        return call(sys.executable, CONVERTER, self.path(name), self.path(out), exit_code=exit_code, said=said,
                    env=os.environ | {"PYTHONPATH": self.scratch})

    def test_what_goes_wrong_is_one_line_that_names_the_file(self):
        for name in ("forward.onnx", "two.onnx"):
            self.convert(name, "out")
        for name, out, said in (("damaged.pt", "out", "damaged.pt: RuntimeError: not a ZIP archive"),
                                ("complex.pt", "out", "weight is complex64"),
                                ("nested.pt", "out", "save what is under one of ['model'] as a file of its own"),
                                ("model.pt", "none/out", "No such file or directory"),
                                # What a state dict cannot hold is not left out.
                                ("reverse.onnx", "out", "node lstm: it runs in reverse alone"),
                                ("relu.onnx", "out", "node lstm: its activations are Sigmoid, tanh, Relu"),
                                ("clip.onnx", "out", "node lstm: it has clip or input_forget"),
                                ("forget.onnx", "out", "node lstm: it has clip or input_forget"),
                                ("bias.onnx", "out", "node lstm: its weights are computed"),
                                ("two_add.onnx", "out", "node next: it does not take the output of lstm"),
                                ("two_last.onnx", "out", "node next: it does not take the output of lstm"),
                                ("peephole.onnx", "out", "node lstm: it has peepholes")):
            done = self.convert(name, out, 1, said)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_arrays_of_another_byte_order_are_written_as_the_format_wants(self):
        self.convert("model.pt", "out")
        with open(self.path("out"), "rb") as file:
            self.assertEqual(file.read()[-12:], struct.pack("<3f", 0, 1, 2))


@unittest.skipUnless(importlib.util.find_spec("h5py"), "h5py is not installed")
class KerasFiles(ProgramTest):
    """to_safetensors.py with files as Keras writes them: layers come out in the order of the model and are standard
    LSTMs, or the file is refused."""

    def lstm(self, name, **settings):
        return {"class_name": "LSTM", "config": {"name": name, "activation": "tanh", "recurrent_activation": "sigmoid",
                                                 "go_backwards": False, **settings}}

    def write_model(self, names, layers=None, model="Sequential", extension="h5"):
        """Writes a model whose layers of these names have kernels of ones, twos, ... in that order."""
        import h5py # pylint: disable=import-outside-toplevel
        config = json.dumps({"class_name": model, "config": {"layers": layers}})
        with h5py.File(self.path("weights"), "w") as file:
            if extension == "h5":
                file.create_group("model_weights").attrs["layer_names"] = [name.encode() for name in names]
                if layers:
                    file.attrs["model_config"] = config
            for number, name in enumerate(names):
                cell = f"model_weights/{name}/{name}/cell/" if extension == "h5" else f"layers/{name}/cell/vars/"
                keys = ("kernel:0", "recurrent_kernel:0", "bias:0") if extension == "h5" else "012"
                for key, shape in zip(keys, ((4, 16), (4, 16), (16,))):
                    file[cell + key] = numpy.full(shape, number + 1, "f4")
        if extension == "h5":
            os.rename(self.path("weights"), self.path("model.h5"))
        else:
            with zipfile.ZipFile(self.path("model.keras"), "w") as archive:
                archive.write(self.path("weights"), "model.weights.h5")
                archive.writestr("config.json", config)

    def convert(self, *options, extension="h5"):
        """Returns the numbers of the layers in their order, or what is said."""
        done = call(sys.executable, CONVERTER, self.path("model." + extension), self.path("out"), *options)
        if done.returncode:
            return done.stderr
        with open(self.path("out"), "rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            header, data = json.loads(file.read(length)), file.read()
        starts = [header[f"weight_ih_l{layer}"]["data_offsets"][0] for layer in range(len(header) // 4)]
        return [int(struct.unpack_from("<f", data, start)[0]) for start in starts]

    def test_layers_keep_the_order_of_the_model(self):
        for names in (["lstm_9", "lstm_10"], ["zeta", "alpha"]):
            self.write_model(names)
            self.assertEqual(self.convert(), [1, 2])
            self.write_model(names, [self.lstm(name) for name in names])
            self.assertEqual(self.convert(), [1, 2])
        # A .keras file numbers them, whatever their names are.
        names = ["lstm"] + [f"lstm_{number}" for number in range(1, 12)]
        self.write_model(names, [self.lstm(name) for name in reversed(names)], extension="keras")
        self.assertEqual(self.convert(extension="keras"), list(range(1, 13)))

    def test_what_is_another_network_is_refused(self):
        bidirectional = {"class_name": "Bidirectional",
                         "config": {"name": "a", "merge_mode": "sum", "layer": self.lstm("inner")}}
        dense = {"class_name": "Dense", "config": {"name": "dense"}}
        for names, layers, said in (
                ("a", [self.lstm("a", activation="relu")], "layer a: activation is relu"),
                ("a", [self.lstm("a", recurrent_activation="hard_sigmoid")], "recurrent_activation is hard_sigmoid"),
                ("a", [self.lstm("a", go_backwards=True)], "go_backwards is True"),
                ("a", [bidirectional], "merge_mode is sum"), ("a", [self.lstm("b")], "a model within the model"),
                ("ab", [self.lstm("a"), dense, self.lstm("b")], "need not follow each other (there is a Dense)")):
            self.write_model(list(names), layers)
            self.assertIn(said, self.convert())
        self.assertEqual(self.convert("--layers", "b"), [2])
        self.write_model(["a", "b"], [self.lstm("a"), self.lstm("b")], model="Functional")
        self.assertIn("need not follow each other: name those that do", self.convert())


if __name__ == "__main__":
    unittest.main()
