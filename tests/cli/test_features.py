"""What the build detects: which CUDA it uses, which architectures that can build, and what it says about
missing parts. The toolkits are made up: empty files, and headers with a version."""

import os
import subprocess
import tempfile
import unittest

PROJECT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "features")


def toolkit(version, cudnn="9"):
    """The files of a CUDA toolkit: version is that of CUDART_VERSION, such as 12040."""
    return {"bin/nvcc": "#!/bin/sh\n",
            "include/cuda_runtime_api.h": f"#define CUDART_VERSION  {version}\n",
            "include/cublas_v2.h": "",
            "include/cudnn.h": "",
            "include/cudnn_version.h": f"#define CUDNN_MAJOR {cudnn}\n#define CUDNN_MINOR 1\n",
            "lib64/libcudart_static.a": "",
            f"lib64/libcublas.so.{version // 1000}": "",
            f"lib64/libcudnn.so.{cudnn}": ""}


class Features(unittest.TestCase):
    def configure(self, files, *options):
        """What CMake says when /usr/local/cuda holds these files and there is no other toolkit."""
        with tempfile.TemporaryDirectory() as scratch:
            root = os.path.join(scratch, "root")
            for name, content in files.items():
                path = os.path.join(root, "usr/local/cuda", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
                os.chmod(path, 0o755)
            environment = {name: value for name, value in os.environ.items()
                           if not name.startswith("CUDA")}
            done = subprocess.run(["cmake", "-S", PROJECT, "-B", os.path.join(scratch, "build"),
                                   f"-DCMAKE_FIND_ROOT_PATH={root}", *options],
                                  capture_output=True, text=True, check=False, env=environment)
            return done.returncode, " ".join((done.stdout + done.stderr).split())

    def finds(self, expected, files, *options, code=0):
        actual, said = self.configure(files, *options)
        self.assertEqual(actual, code, said)
        for part in expected if isinstance(expected, list) else [expected]:
            self.assertIn(part, said)

    def test_architectures_are_those_that_the_toolkit_knows(self):
        self.finds(["CUDA: found", "architectures: 80-real;90a-real;100-real;120"], toolkit(13000))
        self.finds("architectures: 80-real;90a-real;100-real;120", toolkit(12080))
        self.finds(["CUDA: found", "architectures: 80-real;90a-real;90-virtual"], toolkit(12040))
        self.finds("architectures: 86-real", toolkit(12040), "-DLB_CUDA_ARCHITECTURES=86-real")

    def test_versions_that_lack_what_the_sources_use_are_not_taken(self):
        self.finds("CUDA: found", toolkit(12010))
        self.finds(["built without CUDA (12.1 or newer is needed, this is 12.0)",
                    "built without cuDNN (it needs CUDA: 12.1 or newer is needed, this is 12.0)"],
                   toolkit(12000))
        self.finds("CUDA can't be used (12.1 or newer is needed, this is 11.8)", toolkit(11080),
                   "-DLB_CUDA=ON", code=1)
        self.finds(["CUDA: found", "built without cuDNN (9.0 or newer is needed, this is 8)"],
                   toolkit(12040, cudnn="8") | {"lib64/libcudnn.so": ""})

    def test_what_is_missing_has_a_name(self):
        whole = toolkit(13000)
        for path, named in {"bin/nvcc": "no nvcc",
                            "include/cuda_runtime_api.h": "runtime: no header cuda_runtime_api.h",
                            "lib64/libcudart_static.a": "runtime: no library cudart_static",
                            "include/cublas_v2.h": "cuBLAS: no header cublas_v2.h",
                            "lib64/libcublas.so.13": "cuBLAS: no library libcublas.so.13"}.items():
            files = {name: content for name, content in whole.items() if name != path}
            self.finds([f"built without CUDA ({named})",
                        f"built without cuDNN (it needs CUDA: {named})"], files)
            self.finds(f"LB_CUDNN=ON: cuDNN can't be used (it needs CUDA: {named})", files,
                       "-DLB_CUDNN=ON", code=1)
        self.finds(["built without CUDA (not found)", "built without cuDNN (not found)",
                    "built without oneDNN (not found)"], {})
        self.finds("built without cuDNN (it needs CUDA, which is switched off)", whole,
                   "-DLB_CUDA=OFF")


if __name__ == "__main__":
    unittest.main()
