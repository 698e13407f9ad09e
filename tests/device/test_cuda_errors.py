"""CUDA's errors: the device layer knows those after which a process cannot use the device, and
clears each error that it reports, so that no later call finds it.
Usage: test_cuda_errors.py [DRIVER_TYPES_H]"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None

EXPLAINED = re.compile(r"/\*\*(.*?)\*/\s*(cudaError\w+)\s*=", re.DOTALL)
FUNCTION = re.compile(r"^\w[^;{}=#]*\)\n\{\n.*?^\}", re.DOTALL | re.MULTILINE)


def ends_process(text):
    """Errors after which the process must be terminated, according to driver_types.h."""
    return {name for words, name in EXPLAINED.findall(text)
            if "process must be terminated" in " ".join(words.replace("*", " ").split())}


def leaves_error(text):
    """First lines of functions that report an error and leave it set for the runtime's next caller."""
    return [body.splitlines()[0] for body in FUNCTION.findall(text)
            if "cudaGetErrorString" in body and "cudaGetLastError" not in body]


class Errors(unittest.TestCase):
    @unittest.skipUnless(HEADER and HEADER.exists(), "no driver_types.h")
    def test_all_errors_that_end_the_process_are_known(self):
        ending = ends_process(HEADER.read_text(encoding="utf-8", errors="replace"))
        self.assertGreater(len(ending), 8)
        source = (ROOT / "harness" / "device" / "device_cuda.c").read_text(encoding="utf-8")
        known = set(re.findall(r"case (cudaError\w+)", source))
        self.assertEqual(ending - known, set())

    def test_a_reported_error_is_cleared(self):
        paths = [path for folder in ("cuda", "harness", "impls")
                 for path in sorted((ROOT / folder).rglob("*"))
                 if path.suffix in (".c", ".h", ".cu", ".cuh")]
        said = [path for path in paths if "cudaGetErrorString" in path.read_text(encoding="utf-8")]
        self.assertGreater(len(said), 1)
        for path in said:
            self.assertEqual(leaves_error(path.read_text(encoding="utf-8")), [], path)

    def test_a_function_that_does_not_clear_its_error_is_found(self):
        says = 'int failed(int error)\n{\n    return say(cudaGetErrorString(error));\n}\n'
        self.assertEqual(leaves_error(says), ["int failed(int error)"])
        self.assertEqual(leaves_error(says.replace("    return", "    cudaGetLastError();\n    return")),
                         [])


if __name__ == "__main__":
    unittest.main()
