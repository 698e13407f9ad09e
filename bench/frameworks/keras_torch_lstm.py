"""Keras on PyTorch: the layers of keras_lstm.py, called as PyTorch modules. README.md says what the variants are."""

import os

import keras_lstm
import torch_lstm
from contract import unpinned

TITLE = "Keras on PyTorch"
MODULES = ["torch", "keras", "numpy"]
CELLS = []
supports = keras_lstm.refuse_f64


def create(case, stream):
    os.environ["KERAS_BACKEND"] = "torch"
    return torch_lstm.create(case, stream, Session)


class Session(torch_lstm.Session):
    """One case."""

    def __init__(self, torch, case, stream):
        with unpinned():
            import keras  # pylint: disable=import-outside-toplevel
        self.keras, self.mask = keras, None
        super().__init__(torch, case, stream)

    def make_module(self):
        with self.keras.device(str(self.device)):
            return keras_lstm.make_layers(self.keras, self.case)

    def prepare(self, kinds, lengths):
        keras_lstm.set_weights(self.case, self.module, kinds)
        self.weights = [variable.value for layer in self.module
                        for variable in layer.trainable_variables]
        if lengths:
            self.mask = self.torch.tensor(keras_lstm.mask_of(self.case, lengths), device=self.device)

    def run(self, *inputs):
        return keras_lstm.run_layers(self.keras.ops, self.case, self.module, self.mask, inputs)

    def own_gradients(self):
        found = self.weight_gradients
        return [part for kernel, recurrent, bias in zip(found[::3], found[1::3], found[2::3])
                for part in (kernel.T, recurrent.T, bias, bias)]

    def describe(self):
        runs_on = self.runs_on(f"cuDNN {self.torch.backends.cudnn.version()}")
        how = ", use_cudnn=False" if self.case.variant == "generic" else ""
        return f"Keras {self.keras.__version__} on PyTorch {self.torch.__version__}, LSTM{how}, {runs_on}"
