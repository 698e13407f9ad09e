"""Keras on JAX: the layers of keras_lstm.py as functions of their weights, compiled by XLA. README.md says what the
variants are."""

import os

import jax_lstm
import keras_lstm
from contract import numpy

TITLE = "Keras on JAX"
MODULES = ["jax", "keras", "numpy"]
CELLS = []


def supports(case):
    keras_lstm.refuse_f64(case)
    jax_lstm.supports(case)


def create(case, stream):
    os.environ["KERAS_BACKEND"] = "jax"
    return jax_lstm.create(case, stream, Session)


class Session(jax_lstm.Session):
    """One case."""

    def __init__(self, jax, case, stream):
        super().__init__(jax, case, stream)
        import keras  # pylint: disable=import-outside-toplevel
        self.keras = keras
        self.layers = keras_lstm.make_layers(keras, case)

    def lay_out(self, kinds):
        keras_lstm.set_weights(self.case, self.layers, kinds)
        return [tuple(self.jax.device_put(variable.value, self.device)
                      for variable in layer.trainable_variables) for layer in self.layers]

    def network(self, lengths):
        mask = None if lengths is None else keras_lstm.mask_of(self.case, lengths.tolist())

        def call(layer, weights):
            fixed = [variable.value for variable in layer.non_trainable_variables]
            return lambda x, **settings: layer.stateless_call(weights, fixed, x, **settings)[0]

        def run(x, h0, c0, weights):
            calls = [call(*pair) for pair in zip(self.layers, weights)]
            return keras_lstm.run_layers(self.keras.ops, self.case, calls, mask, (x, h0, c0))

        return run, self.parts

    def gradients(self, kinds):
        keras_lstm.write_gradients(
            kinds, [numpy.asarray(part) for layer in self.weight_gradients for part in layer])

    def describe(self):
        runs_on = self.runs_on("on XLA's own stream, waited for")
        how = {"generic": ", use_cudnn=False", "jit": ", a training step compiled by XLA"}.get(self.case.variant, "")
        return f"Keras {self.keras.__version__} on JAX {self.jax.__version__}, LSTM{how}, {runs_on}"
