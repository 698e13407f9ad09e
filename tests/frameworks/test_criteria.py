"""The criteria decide as the frameworks do themselves, over random layers.

Keras 3 and Keras 2 (tf_keras) of the environment of setup.sh, and PyTorch on the CPU. Exit code 77:
none of them is there.
"""

import json
import os
import random
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))

from program import ProgramTest, call, run  # pylint: disable=wrong-import-position

COUNT = 1000
CRITERIA = os.path.abspath(os.path.join(HERE, "..", "..", "bench", "criteria"))


def environment_python():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.environ.get("LB_FRAMEWORKS") or os.path.join(cache, "bench-lstm", "frameworks")
    python = os.path.join(folder, "bin", "python3")
    return python if os.path.exists(python) else "/usr/bin/python3"


def has(module):
    """Whether the environment has the module."""
    return call(environment_python(), "-c", f"import {module}").returncode == 0


def read_settings(name):
    """Settings of a criteria file: name -> (default, words)."""
    with open(os.path.join(CRITERIA, name + ".json"), encoding="utf-8") as file:
        settings = json.load(file)["settings"]
    return {key: (value[0], value) if isinstance(value, list) else (str(value), []) for key, value in settings.items()}


def draw(numbers, settings, rare):
    """A layer: each setting its default, or else with probability `rare`."""
    layer = {}
    for name, (default, words) in settings.items():
        layer[name] = default
        if numbers.random() < rare:
            if words:
                layer[name] = numbers.choice(words)
            elif "dropout" in name:
                layer[name] = numbers.choice(["0", "0.0", "0.1", "0.5"])
            else:
                layer[name] = str(numbers.randint(1, 4))
    return layer


def told(name, layer, env=None):
    """Whether the program says that the fast kernel runs."""
    done = run("--explain", name, ", ".join(f"{key}={value}" for key, value in layer.items()), env=env, exit_code=0)
    line = next(line for line in done.stdout.splitlines() if line.startswith("runs "))
    return not line.split(None, 1)[1].startswith("not ")


def decisions(script, arguments, layers, env=None):
    """What a framework says of layers."""
    done = call(environment_python(), os.path.join(HERE, script), *arguments, env=env, exit_code=0, timeout=1500,
                input="".join(json.dumps(layer) + "\n" for layer in layers))
    return [json.loads(line) for line in done.stdout.splitlines()]


class Criteria(ProgramTest):
    """Each framework's own code against the file of rules."""

    def compare(self, name, layers, answers):
        self.assertEqual(len(layers), len(answers))
        fast = 0
        for layer, answer in zip(layers, answers):
            self.assertEqual(told(name, layer), answer, f"{name}: {layer}")
            fast += answer
        self.assertGreater(fast, len(layers) // 10) # both answers must come often
        self.assertLess(fast, len(layers) * 9 // 10)

    def check_mutant(self, name, layers, answers):
        """Rules that let unrolled layers pass are found to be wrong."""
        text, rule = self.read(os.path.join(CRITERIA, name + ".json")), '["unroll", "is", "false"]'
        self.assertIn(rule, text)
        self.write(f"criteria/{name}.json", text.replace(rule, '["unroll", "is", "true", "false"]'))
        env = os.environ | {"BENCH_LSTM_SHARE": self.scratch}
        self.assertTrue(any(told(name, layer, env) != answer for layer, answer in zip(layers, answers)
                            if layer["unroll"] == "true"))

    def check_keras(self, name, modules, backend="tensorflow"):
        if not has(modules):
            self.skipTest(f"no {modules}")
        numbers, settings = random.Random(1), read_settings(name)
        layers = [draw(numbers, settings, 0.15) for _ in range(COUNT)]
        for layer in layers:
            if name == "keras":
                layer["backend"] = backend
            if backend == "jax": # refuses other dtypes only after the stand-in's place
                layer["dtype"] = "float32"
        answers = decisions("keras_decisions.py", [modules.split(",")[0]], layers,
                            os.environ | {"KERAS_BACKEND": backend})
        self.compare(name, layers, answers)
        self.check_mutant(name, layers, answers)

    def test_keras_3(self):
        self.check_keras("keras", "keras, tensorflow")

    def test_keras_3_on_jax(self):
        self.check_keras("keras", "keras, tensorflow, jax", "jax")

    def test_keras_2(self):
        self.check_keras("keras2", "tf_keras")

    def test_pytorch_on_the_cpu(self):
        if not has("torch"):
            self.skipTest("no PyTorch")
        numbers, settings = random.Random(1), read_settings("pytorch_cpu")
        layers = [draw(numbers, settings, 0.2) for _ in range(COUNT)]
        for layer in layers:
            layer["hidden_size"] = "5"
            layer["packed"] = "true" if numbers.random() < 0.15 else "false"
        cpu, *answers = decisions("pytorch_decisions.py", [], layers)
        self.assertFalse(cpu["bf16_flattened"], "the note on flatten_parameters no longer holds")
        for layer in layers:
            for key in ("bf16_cpu", "fp16_cpu"):
                layer[key] = str(cpu[key]).lower()
        self.assertNotIn(None, answers)
        self.compare("pytorch_cpu", layers, answers)


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    if len(outcome.skipped) == outcome.testsRun:
        sys.exit(77)
    sys.exit(0 if outcome.wasSuccessful() else 1)
