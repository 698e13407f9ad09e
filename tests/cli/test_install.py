"""The installed program: it uses its own case files and plot scripts, plug-ins are built against what
was installed, and the Debian package has what it needs."""

import glob
import os
import re
import shutil
import tempfile
import unittest

import program
from program import BUILD, PROGRAM, ProgramTest

def call(*command, **options):
    """Runs the command, which must succeed; returns what it wrote to stdout."""
    return program.call(*command, exit_code=0, **options).stdout


class Install(ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        first, cls.installed = os.path.join(folder.name, "first"), os.path.join(folder.name, "moved")
        call("cmake", "--install", BUILD, "--prefix", first)
        os.rename(first, cls.installed)

    def setUp(self):
        super().setUp()
        self.prefix = self.path("prefix")
        shutil.copytree(self.installed, self.prefix)
        self.program = os.path.join(self.prefix, "bin", "bench-lstm")

    def test_installed_program_finds_what_was_installed(self):
        self.write("prefix/share/bench-lstm/cases/quick.txt", "T3_B2_H4\nT3_B2_H8\n")
        style = "prefix/share/bench-lstm/plots/style.gp"
        self.write(style, self.read(style) + "# the installed style\n")
        said = call(self.program, "--sweep", "--impl", "cpu_ref", "--out", self.path("run"))
        self.assertIn("T3_B2_I8_H8/f32/train", said)
        scripts = [name for name in os.listdir(self.path("run/plots")) if name.endswith(".gp")]
        self.assertGreater(len(scripts), 0)
        self.assertIn("# the installed style", self.read("run/plots/" + scripts[0]))

    def test_every_framework_that_is_installed_can_be_named(self):
        call("cmake", "--install", BUILD, "--prefix", self.prefix, "--component", "frameworks")
        files = glob.glob(os.path.join(self.prefix, "**", "bench_lstm_*.so"), recursive=True)
        for name in (re.search(r"bench_lstm_(\w+)\.so$", file)[1] for file in files):
            call(self.program, "--version", "--framework", name)

    def test_man_page_and_completions_hold_every_option(self):
        options = set(re.findall(r"^  (-[-a-z_A-Z]+=?)", call(self.program, "--help"), re.MULTILINE))
        self.assertGreater(len(options), 40)
        page = self.read("prefix/share/man/man1/bench-lstm.1")
        completions = self.read("prefix/share/bash-completion/completions/bench-lstm")
        for option in options - {"--benchmark_"}: # a prefix, which is not completed
            self.assertIn(option.rstrip("=").replace("-", "\\-"), page)
            self.assertRegex(completions, rf"[' ]{re.escape(option)}[' ]")

    def test_bash_completes_options_and_files(self):
        script = os.path.join(self.prefix, "share/bash-completion/completions/bench-lstm")
        self.write("run.jsonl", "")

        def complete(*words):
            return call("bash", "-c", '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bench_lstm; '
                        'echo "${COMPREPLY[@]}"', script, "bench-lstm", *words,
                        cwd=self.scratch).split()

        for words, expected in ((["--swe"], ["--sweep"]), (["--comp"], ["--compare"]), (["--where", "run"], []),
                                *(([option, "run"], ["run.jsonl"]) for option in ("--resume", "--against"))):
            self.assertEqual(complete(*words), expected)

    def test_shells_and_man_take_the_files(self):
        for tool, command, name in (
                ("man", ["man", "--warnings", "-l"], "man/man1/bench-lstm.1"),
                ("zsh", ["zsh", "-n"], "zsh/site-functions/_bench-lstm")):
            if not shutil.which(tool):
                continue
            done = program.call(*command, os.path.join(self.prefix, "share", name), exit_code=0,
                                env=os.environ | {"MANPAGER": "cat", "MANWIDTH": "80"})
            self.assertEqual(done.stderr, "", tool)

    def assert_conforms(self, library):
        """The example is verified by the oracle, as every implementation is."""
        out = self.path("plugin-run")
        call(self.program, "--sweep", "--plugin", library, "--impl", "naive", "-T", "1,7", "-B", "1,3",
             "-I", "5", "-H", "4,33", "--pass", "infer", "--case-time", "0.01", "--out", out)
        self.assertEqual(self.read("plugin-run/run.jsonl").count('"verdict":"ok"'), 8)
        shutil.rmtree(out)

    def test_example_is_built_with_the_installed_cmake_package(self):
        # The installed tree was moved: nothing in it names the place where it was.
        source = os.path.join(self.prefix, "share/bench-lstm/example-plugin")
        said = call("cmake", "-G", "Ninja", "-S", source, "-B", self.path("build"),
                    f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.assertNotIn("Warning", said)
        call("cmake", "--build", self.path("build"))
        self.assert_conforms(self.path("build/naive.so"))

    def test_example_is_built_with_the_pkg_config_file(self):
        environment = os.environ | {"PKG_CONFIG_PATH": os.path.join(self.prefix, "share/pkgconfig")}
        flags = call("pkg-config", "--cflags", "bench-lstm", env=environment).split()
        abi = call("pkg-config", "--variable=plugin_abi", "bench-lstm", env=environment).strip()
        self.assertIn(f"#define LB_IMPL_ABI {abi}u", self.read("prefix/include/bench-lstm/impl.h"))
        source = os.path.join(os.path.dirname(__file__), "../plugins/example/naive.c")
        call("cc", "-shared", "-fPIC", "-O2", *flags, source, "-o", self.path("naive.so"), "-lm")
        self.assert_conforms(self.path("naive.so"))


@unittest.skipUnless(shutil.which("dpkg-shlibdeps") and shutil.which("file"), "dpkg-dev or file is not installed")
class DebianPackage(ProgramTest):
    def test_package_names_what_it_needs_and_runs_when_unpacked(self):
        call("cpack", "-G", "DEB", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", self.scratch)
        packages = glob.glob(self.path("bench-lstm_*.deb"))
        self.assertEqual(len(packages), 1, os.listdir(self.scratch))
        depends = call("dpkg-deb", "--field", packages[0], "Depends")
        # Which libraries there are depends on what the build found; these are always needed.
        for library in ("libc6 (", "libjansson4 (", "libopenblas0", "libbenchmark1"):
            self.assertIn(library, depends)
        # Of libraries that are not linked but loaded, dpkg-shlibdeps knows nothing.
        if re.search("workers load libdnnl", call(PROGRAM, "--version")):
            self.assertRegex(depends, r"libdnnl[\d.]+ ")
        self.assertEqual(call("dpkg-deb", "--field", packages[0], "Recommends").strip(), "gnuplot-nox")
        call("dpkg-deb", "--extract", packages[0], self.path("root"))
        files = {os.path.relpath(os.path.join(folder, name), self.path("root"))
                 for folder, _, names in os.walk(self.path("root")) for name in names}
        for name in ("usr/bin/bench-lstm", "usr/include/bench-lstm/impl.h",
                     "usr/share/bench-lstm/cases/quick.txt", "usr/share/bench-lstm/plots/style.gp",
                     "usr/share/cmake/bench-lstm/bench-lstm-config.cmake",
                     "usr/share/pkgconfig/bench-lstm.pc", "usr/share/man/man1/bench-lstm.1",
                     "usr/share/doc/bench-lstm/LICENSE"):
            self.assertIn(name, files)
        self.assertIn("T3_B2_I4_H4", call(self.path("root/usr/bin/bench-lstm"), "--list", "--impl",
                                          "cpu_ref", "-T", "3", "-B", "2", "-H", "4"))


if __name__ == "__main__":
    unittest.main()
