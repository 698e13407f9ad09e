"""--explain in a framework's words, and --framework where there is none."""

import shutil
import unittest

from program import PROGRAM, TINY, ProgramTest, call, read_lines, read_rows, run, write_lines


FRAMEWORKS = ("keras", "keras2", "tensorflow1", "pytorch", "pytorch_cpu")


class ExplainLayer(ProgramTest):
    """bench-lstm --explain keras 'units=512, ...'"""

    def test_what_is_not_met_is_told_with_the_setting_that_meets_it(self):
        done = run("--explain", "keras", "units=512, activation=relu, recurrent_dropout=0.1, "
                   "dtype=mixed_float16, mask=left", exit_code=0)
        table = done.stdout.split("runs ")[0].splitlines()
        met = {line.split()[0]: line.split()[-1] for line in table if line.endswith((" yes", " no"))}
        self.assertEqual({name for name, answer in met.items() if answer == "no"},
                         {"activation", "recurrent_dropout", "mask"})
        self.assertIn("runs      not the cuDNN kernel", done.stdout)
        self.assertRegex(done.stdout, "(?m)^mask +left +none, if backend is jax or torch +does not matter\n.*\nmask +left +"
                         "none or right, if backend is tensorflow +no$")
        for setting in ("activation=tanh", "recurrent_dropout=0", "mask=right"):
            self.assertIn(f"  suggest {setting}\n", done.stdout)
        self.assertIn("-H 512 --dtype f16", done.stdout)

    def test_a_layer_that_meets_all_runs_the_fast_kernel_and_its_algorithm(self):
        done = run("--explain", "pytorch",
                   "hidden_size=512, input_size=512, batch=16, dtype=float16", exit_code=0)
        self.assertIn("runs      the cuDNN kernel\nalgorithm persist_static\n", done.stdout)
        self.assertNotIn("suggest", done.stdout)

    def test_each_criterion_can_fail_and_conditions_on_numbers_and_other_settings_hold(self):
        for name, layer, met in (
                *((name, "", True) for name in FRAMEWORKS),
                *(("keras", setting, False) for setting in
                  ("device=cpu", "use_cudnn=false", "activation=relu", "recurrent_activation=relu", "use_bias=False",
                   "unroll=true", "recurrent_dropout=0.1", "mask=left", " units = 512 , activation = 'relu' ")),
                ("keras", "units=512, dtype=mixed_float16, dropout=0.5, mask=right", True),
                ("pytorch", "proj_size=64, hidden_size=128", True),
                ("pytorch", "proj_size=128, hidden_size=128", False),
                ("pytorch", "dtype=bfloat16, compute=7.5", False),
                ("pytorch", "dtype=float16, compute=7.5", True),
                ("pytorch_cpu", "dtype=bfloat16, bf16_cpu=false", False),
                ("pytorch_cpu", "dtype=float32, bf16_cpu=false", True)):
            done = run("--explain", name, layer, exit_code=0)
            self.assertEqual("runs      not " not in done.stdout, met, (name, layer))

    def test_algorithms_are_picked_in_order(self):
        for layer, algorithm in (
                ("hidden_size=1100, dtype=float16", "standard"),
                ("hidden_size=192, dtype=float32", "persist_static_small_h"),
                ("hidden_size=192, dtype=float32, pass=train", "standard"),
                ("hidden_size=512, input_size=512, batch=16, dtype=float16", "persist_static"),
                ("hidden_size=512, input_size=512, batch=12, dtype=float16", "standard"),
                ("hidden_size=512, input_size=512, batch=16, dtype=float16, compute=8.6", "standard"),
                ("hidden_size=64, packed=true", "standard"),
                ("hidden_size=128", "persist_static_small_h"),
                ("hidden_size=128, proj_size=64", "standard")):
            self.assertIn(f"algorithm {algorithm}\n", run("--explain", "pytorch", layer).stdout, layer)

    def test_the_price_names_the_layers_sizes(self):
        for name, layer, said in (("keras", "units=77, dtype=mixed_float16", "-H 77 --dtype f16 "),
                                  ("pytorch", "proj_size=32", " --cell projection -P 32\n")):
            price = run("--explain", name, layer).stdout.split("price     ")[1].split("version ")[0]
            self.assertIn(said, price)
            self.assertNotIn("{", price)
            self.assertNotIn("projection", price.replace(said, ""))

    def test_the_measured_price_comes_from_a_run(self):
        rows, _ = self.sweep("-T", "4", "-B", "2", "-I", "3", "-H", "5", "--impl", "cpu_ref,cpu_simd",
                             "--pass", "infer", "--case-time", "0.01")
        lines = read_lines(self.path("run"))
        for line in lines: # as if PyTorch had taken these times
            for ours, theirs in (("cpu_ref", "pytorch:native"), ("cpu_simd", "pytorch")):
                if line.get("impl") == ours:
                    line["case"] = line["case"].replace(ours, theirs)
                    line["impl"], _, line["variant"] = theirs.partition(":")
        write_lines(self.path("run"), lines)
        layer = "input_size=3, hidden_size=5, seq_len=4, batch=2"
        done = run("--explain", "pytorch_cpu", layer, "--from", self.path("run"), exit_code=0)
        slow, fast = (rows[f"{name}/T4_B2_I3_H5/f32/infer"]["median_ns"]
                      for name in ("cpu_ref", "cpu_simd"))
        self.assertIn(f"{slow / fast:.3g} times as long", done.stdout)
        done = run("--explain", "pytorch_cpu", layer + ", num_layers=2", "--from", self.path("run"))
        self.assertIn("has no times of both", done.stdout)
        # The times of the standard cell are not those of a layer with a projection.
        done = run("--explain", "pytorch_cpu", layer + ", proj_size=2", "--from", self.path("run"))
        self.assertIn("has no times of both", done.stdout)
        self.assertIn(" --cell projection -P 2", " ".join(done.stdout.split()))
        run("--explain", "pytorch_cpu", layer, "--from", self.path("none"), exit_code=2)

    def test_wrong_words_are_refused_in_one_line(self):
        for words, said in ((["keras", "unit=5"], "did you mean units?"),
                            (["keras", "mask=up"], "allowed are none, right, left"),
                            (["keras", "units=many"], "a number was expected"),
                            (["keras", "units=nan"], "a number was expected"),
                            (["keras", "units=-5"], "a number was expected"),
                            (["keras", "units=1e3"], "a number was expected"),
                            (["keras", "relu"], "name=value was expected"),
                            (["keras", "zzzzzz=1"], "there are backend, units"),
                            (["keras"], "a layer must follow"),
                            (["../cases/cpu", ""], "there are no criteria"),
                            *((["caffe", ""], name) for name in FRAMEWORKS),
                            (["kers", "units=5"], "did you mean keras?"),
                            (["keras", "units=5", "mask=left"], "one word too many")):
            done = run("--explain", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(said, done.stderr)


class WithoutPlugins(ProgramTest):
    """A program beside which there is no plug-in of a framework."""

    def test_a_framework_that_was_not_built_is_a_row_with_its_reason(self):
        alone = shutil.copy(PROGRAM, self.path("bench-lstm"))
        call(alone, "--sweep", "--framework", "keras,jax", "--impl", "keras,jax,cpu_ref", *TINY, "--plots", "none",
             "--out", self.path("run"), exit_code=0)
        rows = read_rows(self.path("run"))
        self.assertEqual({row["impl"]: row["verdict"] for row in rows.values()},
                         {"keras": "absent", "jax": "absent", "cpu_ref": "ok"})
        self.assertIn("headers", rows["jax/T3_B2_I4_H4/f32/infer"]["reason"])
        done = call(alone, "--profile", "jax/T3_B2_H4", "--framework", "jax", exit_code=5)
        self.assertIn("absent: its plug-in was not built", done.stdout)


if __name__ == "__main__":
    unittest.main()
