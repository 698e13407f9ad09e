"""Bad input: one line that names the thing and says what is allowed, exit code 2, no file written."""

import json
import os
import re
import subprocess
import unittest

from program import PROGRAM, ProgramTest, TINY, plugin, run

BAD = [
    # arguments, what the message must hold
    ([], ["no command", "--sweep"]),
    (["--swep"], ["--swep", "did you mean --sweep"]),
    (["--jobs", "4"], ["--jobs: there is no such option; see --help"]), # no option is like it but for the dashes
    (["--bach", "4"], ["--bach: there is no such option; did you mean -B?"]),
    (["sweep"], ["'sweep'", "such as --sweep"]),
    (["--sweep", "-T"], ["-T: it takes numbers, but nothing follows it"]),
    (["--report", "x", "-o", "x/run.jsonl"], ["--out x/run.jsonl: ", "records of a run"]),
    (["--sweep", "--benchmark_out=run.jsonl"], ["--benchmark_out run.jsonl: ", "records of a run"]),
    (["--report", "-o", "page.html", "x"], ["--report: it takes a run, but -o follows it"]),
    (["--export", "csv", "-T", "3"], ["--export: it takes a format and a run, but -T follows csv"]),
    (["--compare", "old"], ["--compare: it takes two runs, the base first, but nothing follows old"]),
    (["--sweep", "--benchmark_filter="], ["--benchmark_filter: it takes a regular expression, and was given nothing"]),
    (["--sweep", "--where", "T*"], ["--where"]),
    (["--sweep", "--case", "T3_B2_H4/"], ["--case"]),
    (["--sweep", "--cases", "no-such-file"], ["no-such-file", "no such file or set; there are", "deepbench"]),
    (["--sweep", "--cases", "quikc"], ["--cases quikc", "did you mean quick?"]),
    (["--sweep", "--cases", "./quick"], ["./quick: No such file"]),
    (["--sweep", "--out", "--quick"], ["--out: it takes a folder"]),
    (["--compare", "base", "--strict"], ["--compare: it takes two runs"]),
    (["--sweep", "--case-time", "0"], ["--case-time 0"]),
    (["--sweep", "--hang-limit", "-1"], ["--hang-limit -1", "0 to 1000"]),
    (["--sweep", "--case-time", "1e300"], ["--case-time 1e300", "up to 1e8"]),
    (["--sweep", "--memory", "4X"], ["--memory 4X", "4G"]),
    (["--sweep", "--tuned", "no-such-file"], ["--tuned no-such-file", "--tune"]),
    (["--explain", "keras"], ["--explain keras: a layer must follow, such as 'units=512'"]),
    (["--explain", "cpu_ref/T3_B2_H4", "--explain", "cpu_ref/T4_B2_H4"], ["--explain", "twice"]),
    (["--sweep", "--baseline", "nope"], ["--baseline", "nope", "cpu_ref"]),
    (["--sweep", "--baseline", "cudnn:persist_statik"], ["--baseline", "did you mean persist_static?"]),
    (["--sweep", "--framework", "pytroch"], ["did you mean pytorch?"]),
    (["--sweep", "--confirm", "base"], ["--confirm"]),
    *((["--sweep", *TINY, "--loss-scale", word], ["dynamic:START"]) for word in
      ("0", "-1", "nan", "dynamic:0.5", "dynamic:", "dynamic:x", "dynamics", "1e39", "dynamic:1e39")),
    (["--sweep", "--seed", "-1"], ["--seed", "-1"]),
    (["--sweep", "--list"], ["one at a time"]),
    (["--sweep", "--benchmark_repetitions=0"], ["--benchmark_repetitions 0: allowed are 1 to 10000"]),
    (["--sweep", "--benchmark_nonsense=1"], ["--benchmark_nonsense=1"]),
    (["--sweep", "--benchmark_format=yaml"], ["json"]),
    (["--sweep", "--benchmark_min_time=1"], ["--benchmark_min_time=1", "--case-time"]),
    (["--sweep", "--benchmark_list_tests=true"], ["--benchmark_list_tests=true", "--list"]),
    (["--sweep", "--out", ""], ["--out: it takes a folder", "nothing"]),
    (["--resume", ""], ["--resume: it takes the folder of a run", "nothing"]),
    (["--export", "csv", ""], ["--export: it takes a format and a run", "nothing"]),
    (["--sweep", "--plugin", "no-such.so"], ["no-such.so"]),
    (["--resume", "no-such-folder"], ["no-such-folder"]),
    (["--resume", "x", "--seed", "3"], ["--seed", "--resume", "goes on as it began"]),
    (["--resume", "x", "--plugin", "y.so"], ["--plugin y.so"]),
    (["--resume", "x", "--retry", "crash,fine"], ["--retry fine: the verdicts are", "crash"]),
    (["--sweep", "--quiet", "--verbose"], ["--quiet and --verbose exclude each other"]),
    (["--list", *TINY[:-2], "--format", "junit"], ["--format junit", "table and json"]),
    (["--plan", *TINY, "--plots", "time-h,pie"], ["--plots time-h,pie", "the kinds are"]),
    (["--list", "--case-time", "1"], ["--case-time", "--list"]),
    (["--sweep", *TINY, "--benchmark_filter=cpu_(ref"], ["--benchmark_filter", "Could not compile"]),
    (["--sweep", *TINY, "--benchmark_filter=nothing"], ["--benchmark_filter: no case matches"]),
    (["--sweep", *TINY, "--benchmark_out=/no/such/file"], ["--benchmark_out=/no/such/file"]),
    (["--sweep", *TINY, "--benchmark_out=/"], ["--benchmark_out=/", "directory"]),
    (["--sweep", "--plugin", b"caf\xe9.so"], ["--plugin", "UTF-8"]),
    *((["--list", "--weights", "w", option, b"caf\xe9"], [f"{option} caf?: it must be UTF-8"]) for option in
      ("--weights", "--prefix", "--inputs", "--tuned")),
    (["--export", "yaml", "x"], ["yaml", "csv"]),
    (["--export", "csv"], ["--export"]),
    (["--export", "csv", "no-such-run"], ["no-such-run"]),
    (["--plot", "pie", "no-such-run"], ["no-such-run"]),
    (["--explain", "cpu_reff/T3_B2_H4"], ["cpu_reff", "cpu_ref"]),
    (["--profile", "T3_B2_H4"], ["name an implementation", "cpu_simd/T3_B2_H4"]),
    (["--profile", "cpu_ref/T3_B2_H4", "--profile-calls", "0"], ["--profile-calls 0", "1 to"]),
    (["--profile", "cpu_ref/T3_B2_H4", "--plugin", "no-such.so"], ["no-such.so"]),
    (["--explain", "T3_B0_H4"], ["column", "1 or more"]),
    (["--sweep", *TINY, "--plugin", plugin("misbehave_other_abi")],
     ["misbehave_other_abi.so", "interface"]),
    (["--sweep", *TINY, "--out", "/proc/no/run"], ["/proc/no/run"]),
]


class BadInput(ProgramTest):
    def refused(self, arguments, parts):
        done = run(*arguments, cwd=self.scratch, exit_code=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertEqual(os.listdir(self.scratch), [], "something was written")

    def test_every_bad_word_is_refused_in_one_line(self):
        for arguments, parts in BAD:
            with self.subTest(arguments=arguments):
                self.refused(arguments, parts)

    def test_plugin_in_the_working_directory_needs_no_slash(self):
        folder, name = os.path.split(plugin("misbehave_bytes"))
        run("--list", "--plugin", name, "--impl", "misbehave_bytes", "--case", "T3_B2_H4",
            cwd=folder, exit_code=0)
        self.refused(["--list", "--plugin", "./no-such.so"],
                     ["--plugin ./no-such.so: cannot open shared object file"])

    def test_missing_folder_for_temporary_files_is_said_with_the_variable_that_names_it(self):
        done = run("--cross-check", *TINY[:-2], "--impl", "cpu_ref,cpu_simd", env={**os.environ, "TMPDIR": "/proc/no"},
                   exit_code=2)
        self.assertRegex(done.stderr, "^bench-lstm: /proc/no/.*; set TMPDIR")
        folder = os.fsencode(self.path("")) + b"caf\xe9"
        os.mkdir(folder)
        run("--cross-check", *TINY[:-2], "--impl", "cpu_ref,cpu_simd", env={**os.environ, "TMPDIR": folder}, exit_code=2,
            said="/caf?: the path must be UTF-8")

    def test_unwritable_benchmark_out_is_said_before_a_resume_runs(self):
        self.sweep(*TINY, "--impl", "cpu_ref")
        before = os.stat(self.path("run/run.jsonl")).st_size
        run("--resume", self.path("run"), "--benchmark_out=/no/such/file", exit_code=2)
        self.assertEqual(os.stat(self.path("run/run.jsonl")).st_size, before)

    def test_what_stdout_does_not_take_is_a_failure(self):
        for command in (["--version"], ["--help"], ["--list", "--case", "T3_B2_H4"],
                        ["--plan", "--case", "T3_B2_H4"], ["--explain", "cpu_ref/T3_B2_H4"]):
            with self.subTest(command=command), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PROGRAM, *command], stdout=full, stderr=subprocess.PIPE,
                                      text=True, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr, "bench-lstm: stdout: not everything could be written\n")

    def test_list_is_a_json_document_on_request(self):
        done = run("--list", "--impl", "cpu_ref,misbehave_bytes", "--plugin", plugin("misbehave_bytes"),
                   "-T", "3", "-B", "2", "-H", "4", "--threads", "1,2", "--format", "json", exit_code=0)
        document = json.loads(done.stdout)
        ours = [impl for impl in document["implementations"] if impl["name"] == "cpu_ref"]
        self.assertEqual([(impl["absent"], impl["variants"]) for impl in ours], [(None, [])])
        answers = {case["case"]: (case["status"], case["reason"]) for case in document["cases"]}
        self.assertEqual(answers["cpu_ref/T3_B2_I4_H4/f32/infer"], ("ok", ""))
        status, reason = answers["cpu_ref/T3_B2_I4_H4/f32/infer/th2"]
        self.assertEqual(status, "unsupported")
        self.assertIn("one thread", reason)
        # The same cases as in the table.
        table = run("--list", "--impl", "cpu_ref", "-T", "3", "-B", "2", "-H", "4", "--threads", "1,2")
        self.assertEqual([line.split()[0] for line in table.stdout.splitlines()],
                         [case for case in answers if case.startswith("cpu_ref")])

    def test_help_and_version_accept_other_options(self):
        for command in (["--help", "-T", "3"], ["--sweep", "--version"], ["--help", "--sweep"]):
            self.assertEqual(run(*command).returncode, 0)

    def test_help_fits_80_columns_and_names_every_option_and_case_set(self):
        said = run("--help").stdout
        self.assertEqual([line for line in said.splitlines() if len(line) > 80], [])
        bench = os.path.join(os.path.dirname(__file__), "../../bench")
        with open(bench + "/cli/options.c", encoding="utf-8") as file:
            options = re.findall(r'(?:^    (?:\{|AXIS\()|\.short_name = )"(-[-\w]+)', file.read(), re.M)
        self.assertGreater(len(options), 50)
        words = set(re.findall(r"(?<![-\w])-[-\w]*\w", said))
        self.assertEqual(set(options) - words, set())
        self.assertEqual(words - set(options), {"--benchmark_enable_random_interleaving"})
        sets = re.search(r"--cases FILE.*?builtin\s+one: ([\w\s]+)\.\n\n", said, re.S).group(1).split()
        files = [name for name in os.listdir(bench + "/cases") if name.endswith(".txt")]
        self.assertEqual(sorted(name + ".txt" for name in sets), sorted(files))

    def test_what_lies_in_the_folder_is_not_taken_for_the_quick_grid(self):
        usual = run("--plan").stdout
        os.mkdir(self.path("quick"))
        self.assertEqual(run("--plan", cwd=self.path("")).stdout, usual)
        self.assertEqual(run("--plan", "--cases", "quick", cwd=self.path("")).returncode, 0)
        os.rmdir(self.path("quick"))
        self.write("quick", "T3_B1_H4\n")
        self.assertEqual(run("--plan", cwd=self.path("")).stdout, usual)
        own = run("--list", "--cases", "quick", "--impl", "cpu_ref", cwd=self.path("")).stdout
        self.assertIn("cpu_ref/T3_B1_I4_H4/f32/infer", own)


if __name__ == "__main__":
    unittest.main()
