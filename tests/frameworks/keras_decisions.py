"""What Keras itself decides: reads layers as JSON lines, writes true where its cuDNN kernel would run.

    keras_decisions.py keras|tf_keras < layers > answers        KERAS_BACKEND: tensorflow or jax

A GPU is made up: Keras is told that there is one, and the call of the cuDNN kernel is replaced by an
exception, so that everything before it is Keras' own code.
"""

import importlib
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
BACKEND = os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import tensorflow as tf  # pylint: disable=wrong-import-position

T, B, I, H = 4, 3, 2, 3
MASKS = {
    "right": [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]],
    "left": [[1, 1, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]],
    "middle": [[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 1]],
    "empty": [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]],
}


class Reached(Exception):
    """The cuDNN kernel was called."""


def reached(*_, **__):
    raise Reached


def pretend(module):
    """Replaces the kernel; returns a function that says whether there is a GPU from now on."""
    if module == "keras":
        rnn = importlib.import_module(f"keras.src.backend.{BACKEND}.rnn")
        tf.raw_ops.CudnnRNNV3 = reached
        if BACKEND == "jax":
            importlib.import_module("jax.experimental.rnn").lstm = reached

        def gpu(there):
            rnn._is_gpu_available = lambda: there  # pylint: disable=protected-access
    else:
        importlib.import_module("tf_keras.src.layers.rnn.lstm").gpu_lstm = reached
        config = importlib.import_module("tensorflow.compat.v2").config # which tf_keras imports
        real = config.list_logical_devices

        def gpu(there):
            config.list_logical_devices = \
                lambda kind=None: ["GPU:0"] if there and kind == "GPU" else real(kind)
    return gpu


def runs_fast(layers, module, layer):
    """Whether the layer, called once, gets to the kernel."""
    words = {"true": True, "false": False, "auto": "auto"}
    arguments = {key: words[layer[key]] for key in
                 ("use_bias", "unroll", "go_backwards", "return_sequences", "return_state",
                  "stateful", *(["use_cudnn"] if module == "keras" else []))}
    made = layers.LSTM(H, activation=layer["activation"], dtype=layer["dtype"],
                       recurrent_activation=layer["recurrent_activation"],
                       dropout=float(layer["dropout"]),
                       recurrent_dropout=float(layer["recurrent_dropout"]),
                       recurrent_initializer="zeros", **arguments)
    mask = MASKS.get(layer["mask"])
    x, mask = tf.ones([B, T, I], tf.as_dtype(made.compute_dtype)), None if mask is None else tf.constant(mask) == 1
    if BACKEND == "jax":
        jax = importlib.import_module("jax.numpy")
        x, mask = jax.ones([B, T, I], made.compute_dtype), None if mask is None else jax.array(mask.numpy())
    try:
        made(x, training=False, mask=mask)
    except Reached:
        return True
    except ValueError as error: # what use_cudnn=True raises
        if "use_cudnn=True" not in str(error):
            raise
    return False


def main():
    module = sys.argv[1]
    gpu = pretend(module)
    if module == "keras":
        import keras as package
    else:
        import tf_keras as package
    for line in sys.stdin:
        layer = json.loads(line)
        gpu(layer["device"] == "gpu")
        print(json.dumps(runs_fast(package.layers, module, layer)), flush=True)


if __name__ == "__main__":
    main()
