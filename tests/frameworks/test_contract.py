"""What contract.py does for the adapters, without a framework and without a GPU."""

import ctypes
import os
import sys
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "frameworks"))

import contract  # pylint: disable=wrong-import-position


class Driver:
    """A CUDA driver that notes the calls. fails: the function that answers an error."""

    def __init__(self, fails=None):
        self.calls = []
        for name in ("cuMemcpyDtoDAsync_v2", "cuStreamSynchronize"):
            answer = 700 if name == fails else 0
            setattr(self, name, mock.Mock(side_effect=lambda *arguments, name=name, answer=answer:
                                          self.calls.append((name, *arguments)) or answer))


class TestContract(unittest.TestCase):
    def copy(self, driver):
        tensor = contract.Tensor(0x1000, (3, 2, 5), "bf16", 0)
        with mock.patch.object(ctypes, "CDLL", return_value=driver):
            tensor.copy_from_device(0x2000, 7)

    def test_a_copy_has_ended_before_its_source_may_be_reused(self):
        driver = Driver()
        self.copy(driver)
        self.assertEqual(driver.calls, [("cuMemcpyDtoDAsync_v2", 0x1000, 0x2000, 60, 7),
                                        ("cuStreamSynchronize", 7)])

    def test_errors_of_the_driver_are_told(self):
        for name in ("cuMemcpyDtoDAsync", "cuStreamSynchronize"):
            fails = "cuMemcpyDtoDAsync_v2" if name == "cuMemcpyDtoDAsync" else name
            with self.assertRaisesRegex(RuntimeError, f"{name} answered 700"):
                self.copy(Driver(fails))


if __name__ == "__main__":
    unittest.main()
