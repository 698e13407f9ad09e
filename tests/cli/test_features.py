"""What the build detects: which CUDA it uses, which architectures that can build, and what it says about
missing parts. The toolkits are made up: empty files, and headers with a version."""

import os
import shutil
import unittest

from program import ProgramTest, call

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


NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


class Features(ProgramTest):
    def setUp(self):
        super().setUp()
        self.root, self.build = self.path("root"), self.path("build")

    def make_toolkit(self, files):
        """Makes root/usr/local/cuda of these files alone."""
        shutil.rmtree(self.root, ignore_errors=True)
        os.makedirs(self.root)
        for name, content in files.items():
            self.write("root/usr/local/cuda/" + name, content, 0o755)

    def configure(self, *options, again=False, **environment):
        """Exit code and output of CMake, in a new build folder unless `again`."""
        if not again:
            shutil.rmtree(self.build, ignore_errors=True)
        outside = {name: value for name, value in os.environ.items() if not name.startswith("CUDA")}
        done = call("cmake", "-G", "Ninja", "-S", PROJECT, "-B", self.build, *options, env=outside | environment)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def finds(self, expected, files, *options, code=0):
        """Where /usr/local/cuda consists of these files, and there is nothing else."""
        self.make_toolkit(files)
        actual, said = self.configure(f"-DCMAKE_FIND_ROOT_PATH={self.root}", *options)
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
                    "built without oneDNN (not found)", "built without OpenBLAS (not found)"], {})
        self.finds("built without cuDNN (it needs CUDA, which is switched off)", whole, "-DLB_CUDA=OFF")

    def test_compiler_that_fails_is_absent_with_the_reason_and_advice(self):
        for error, expected in (
                ("/usr/include/crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc "
                 "versions later than 13 are not supported! The nvcc flag does a thing",
                 "unsupported GNU version; set CUDAHOSTCXX to an older C++ compiler, such as g++-12"),
                ('bits/mathcalls.h(79): error: exception specification is incompatible with that of '
                 'previous function "cospi" (declared at line 2601 of math_functions.h)',
                 "exception specification is incompatible with that of previous function 'cospi' "
                 "(declared at line 2601 of math_functions.h); this CUDA does not know the C library "
                 "here: CUDA 13.0 or newer does"),
                ("ERROR: No supported gcc/g++ host compiler found.\n"
                 "       Use 'nvcc -ccbin <compiler>' to specify a host compiler.\n"
                 "nvcc fatal   : Failed to preprocess host compiler properties.",
                 "No supported gcc/g++ host compiler found; set CUDAHOSTCXX to an older C++ "
                 "compiler, such as g++-12"),
                ("nvcc fatal   : Unsupported gpu architecture 'compute_80'",
                 "nvcc fatal   : Unsupported gpu architecture 'compute_80'")):
            broken = toolkit(12040)
            broken["bin/nvcc"] = f"#!/bin/sh\ncat >&2 <<'END'\n{error}\nEND\nexit 1\n"
            said = " ".join(f"nvcc can't compile an empty program: {expected}".split())
            self.finds([f"built without CUDA ({said})", "built without cuDNN (it needs CUDA: nvcc"], broken)
            self.finds("CUDA can't be used (nvcc can't compile", broken, "-DLB_CUDA=ON", code=1)
            self.finds("built without CUDA (switched off)", broken, "-DLB_CUDA=OFF")

    def test_compiler_that_cmake_was_given_is_the_one_that_is_tried(self):
        whole = toolkit(13000)
        self.finds(["built without CUDA (nvcc can't compile an empty program: ", "o such file or directory)"], whole,
                   "-DCMAKE_CUDA_COMPILER=/nowhere/nvcc")
        elsewhere = {name.replace("bin/", "other/bin/"): text for name, text in whole.items()}
        self.finds("CUDA: found", elsewhere, f"-DCMAKE_CUDA_COMPILER={self.root}/usr/local/cuda/other/bin/nvcc")

    def test_static_library_can_not_be_loaded_and_is_absent(self):
        self.finds("/lib/libdnnl.a is static and can't be loaded)", {"include/dnnl.h": "", "lib/libdnnl.a": ""},
                   "-DCMAKE_PREFIX_PATH=/usr/local/cuda")

    def test_compiler_is_tried_again_when_its_host_compiler_changes_and_only_then(self):
        counted = toolkit(13000)
        log = self.path("calls")
        counted["bin/nvcc"] = f'#!/bin/sh\necho "$*" >> {log}\n'
        self.make_toolkit(counted)
        for settings, calls in (({}, 1), ({}, 1), ({"CUDAHOSTCXX": "g++-11"}, 2)):
            code, said = self.configure(f"-DCMAKE_FIND_ROOT_PATH={self.root}", again=True, **settings)
            self.assertEqual(code, 0, said)
            lines = self.read(log).splitlines()
            self.assertEqual(len(lines), calls, lines)
        self.assertIn("-ccbin g++-11", lines[-1])

    @unittest.skipUnless(NVCC and shutil.which("g++"), "there is no nvcc or no g++")
    def test_host_compiler_that_the_real_nvcc_refuses_makes_cuda_absent(self):
        wrapper = self.path("g++-of-tomorrow")
        self.write(wrapper, '#!/bin/sh\nexec g++ -U__GNUC__ -D__GNUC__=99 "$@"\n', 0o755)
        code, said = self.configure(CUDACXX=NVCC)
        if "CUDA: found" not in said:
            self.skipTest("CUDA can't be used here: " + said)
        code, said = self.configure(CUDACXX=NVCC, CUDAHOSTCXX=wrapper)
        self.assertEqual(code, 0, said)
        self.assertIn("built without CUDA (nvcc can't compile an empty program: unsupported GNU version; "
                      "set CUDAHOSTCXX", said)

    def test_headers_of_wheels_lie_in_a_folder_for_each_library(self):
        """As NVIDIA's wheels of CUDA 12 and cuDNN have them: each needs those of the runtime."""
        site, folders = os.path.join(self.root, "site"), {}
        for library, names in {
                "cuda_nvcc": ["bin/nvcc"], "cublas": ["include/cublas_v2.h", "lib/libcublas.so.12"],
                "cuda_runtime": ["include/cuda_runtime_api.h", "include/cuda.h",
                                 "lib/libcudart_static.a"],
                "cuda_cupti": ["include/cupti.h", "lib/libcupti.so.12"],
                "cudnn": ["include/cudnn.h", "include/cudnn_version.h", "lib/libcudnn.so.9"]}.items():
            for name in names:
                folders[f"../../../site/nvidia/{library}/{name}"] = toolkit(12040).get(name, "")
        folders["../../../site/nvidia/cuda_nvcc/bin/nvcc"] = "#!/bin/sh\n"
        self.make_toolkit(folders)
        code, said = self.configure(f"-DCMAKE_PREFIX_PATH={site}", f"-DCMAKE_FIND_ROOT_PATH={self.root}")
        self.assertEqual(code, 0, said)
        self.assertIn("cuDNN: found", said)
        for library, own in {"cublas": "cublas", "cudnn": "cudnn", "cupti": "cuda_cupti"}.items():
            self.assertRegex(said, f"headers of {library}: [^ ]*/nvidia/{own}/include;"
                                   "[^ ]*/nvidia/cuda_runtime/include")

    def test_onednn_is_the_one_of_its_folder_or_the_build_stops(self):
        library = {"include/dnnl.h": "", "lib/libdnnl.so.3": ""}
        self.finds("oneDNN: found", library, "-DLB_ONEDNN_ROOT=/usr/local/cuda")
        for path in library:
            part = {name: text for name, text in library.items() if name != path}
            self.finds("LB_ONEDNN_ROOT=/usr/local/cuda: it has no include/dnnl.h and lib/libdnnl.so",
                       part, "-DLB_ONEDNN_ROOT=/usr/local/cuda", code=1)


if __name__ == "__main__":
    unittest.main()
