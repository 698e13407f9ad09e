"""What contract.py does for the adapters, without a framework and without a GPU."""

import ctypes
import os
import subprocess
import sys
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMEWORKS = os.path.join(HERE, "..", "..", "bench", "frameworks")
sys.path.insert(0, FRAMEWORKS)

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
        """Writes two results of the device, twice. Returns how often the driver was opened."""
        session = contract.Session(None, 7)
        session.address_of = lambda value: value
        tensors = [contract.Tensor(0x1000, (3, 2, 5), "bf16", 0), contract.Tensor(0x1800, (2,), "f32", 0)]
        contract.driver_function.cache_clear()
        with mock.patch.object(ctypes, "CDLL", return_value=driver) as opened:
            for _ in range(2):
                session.write(tensors, [0x2000, 0x3000])
        return opened.call_count

    def test_copies_have_ended_before_their_sources_may_be_reused(self):
        driver = Driver()
        self.assertEqual(self.copy(driver), 2)  # once per function, as calls are timed
        self.assertEqual(driver.calls, 2 * [("cuMemcpyDtoDAsync_v2", 0x1000, 0x2000, 60, 7),
                                            ("cuMemcpyDtoDAsync_v2", 0x1800, 0x3000, 8, 7),
                                            ("cuStreamSynchronize", 7)])

    def test_errors_of_the_driver_are_told(self):
        for name in ("cuMemcpyDtoDAsync_v2", "cuStreamSynchronize"):
            with self.assertRaisesRegex(RuntimeError, f"{name} answered 700"):
                self.copy(Driver(name))

    def test_torch_events_names_a_case_that_is_none(self):
        for name in ("T1_B1", "T1_B1_H8/int8/infer"):
            done = subprocess.run([sys.executable, os.path.join(FRAMEWORKS, "torch_events.py"), name],
                                  stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr[:17 + len(name)]), (2, f"torch_events.py: {name}"))


if __name__ == "__main__":
    unittest.main()
