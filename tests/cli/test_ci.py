"""The CI kit: unchanged code passes, a planted regression exits 3 and is named, and what else a job
meets: no base, one of another machine, one that can't be read, a case that fails, a passing slowness of
the machine. The workflows are YAML whose shell parts parse, and find the right baseline."""

import glob
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from program import PROGRAM, ProgramTest, call, plugin, read_lines, write_lines

try:
    import yaml
except ImportError:
    yaml = None

CI = os.path.join(os.path.dirname(__file__), "..", "..", "results", "ci")
STORE = os.path.abspath(os.path.join(CI, "store.sh"))
GATE = os.path.join(CI, "gate.sh")
PLANTED = "slow/T8_B1_I64_H64/f32/infer"
SLOW = {"LB_SLOW_PERCENT": "900", "LB_SLOW_HIDDEN": "64"}


class Gate(ProgramTest):
    """A sweep of two cases of the plug-in. One of them can be slowed down, by so much that other work on
    this machine can't look like it."""

    def gate(self, out, base, *flags, program=PROGRAM, exit_code=0, **environment):
        summary = self.path(out + ".summary")
        # Seven processes are the fewest whose median has an interval.
        settings = {"LB_PROCESSES": "7", "LB_CASE_TIME": "0.02", "LB_MARGIN": "200",
                    "GITHUB_STEP_SUMMARY": summary}
        flags = flags or ["--plugin", plugin("slow_0"), "--impl", "slow"]
        done = call(GATE, program, self.path(out), self.path(base), *flags, "-T", "8", "-B", "1", "-H", "32,64",
                    "--plots", "none", # pictures take longer than the cases
                    env={**os.environ, **settings, **environment}, exit_code=exit_code)
        return done, self.read(summary)

    kept = {} # folders of runs that are measured once for all tests: of the usual and of slow code

    def keep(self, name, **environment):
        """The folder of a run of that name, which is measured when it is first asked for."""
        if name not in Gate.kept:
            done, summary = self.gate("kept", "none", **environment)
            self.assertIn("this one is the baseline", done.stdout)
            self.assertIn(PLANTED, summary)
            Gate.kept[name] = tempfile.mkdtemp()
            unittest.addModuleCleanup(shutil.rmtree, Gate.kept[name])
            shutil.move(self.path("kept"), Gate.kept[name] + "/run")
        return Gate.kept[name] + "/run"

    def make_base(self, name="base"):
        shutil.copytree(self.keep("base"), self.path(name))

    def replay(self, first, again):
        """A program that leaves the first kept run as its sweep, and the other one as the second sweep
        of a gate. For what a gate makes of its measurements, these need not be new."""
        self.write("replay", f'#!/bin/sh\n[ "$1 $2" = "--sweep --out" ] || exec "{PROGRAM}" "$@"\n'
                   f'case "$3" in */again) run={again} ;; *) run={first} ;; esac\ncp -r "$run" "$3"\n', 0o755)
        return self.path("replay")

    def replay_slow(self):
        slow = self.keep("slow", **SLOW)
        return self.replay(slow, slow)

    def edit_base(self, change):
        """Changes the lines of the base."""
        lines = read_lines(self.path("base"))
        change(lines)
        write_lines(self.path("base"), lines)

    def failed_cases(self, out):
        cases = ElementTree.parse(self.path(out + "/compare.xml")).iter("testcase")
        return [case.get("name") for case in cases if case.find("failure") is not None]


class GateVerdicts(Gate):
    def test_regression_is_named_and_unchanged_code_passes(self):
        self.make_base()
        done, summary = self.gate("same", "base")
        self.assertTrue(summary.startswith("### No regression"), summary)
        self.assertEqual(self.failed_cases("same"), [])

        done, summary = self.gate("slow", "base", exit_code=3, **SLOW)
        self.assertTrue(summary.startswith("### REGRESSION: 2 cases: 1 slower"), summary)
        self.assertIn(PLANTED, summary)
        self.assertEqual(self.failed_cases("slow"), [PLANTED])

        done, summary = self.gate("accepted", "base", LB_ACCEPT="1", program=self.replay_slow())
        self.assertTrue(summary.startswith("### Accepted as it is"), summary)
        self.assertIn(PLANTED, summary)

    def test_a_kept_program_takes_turns_with_the_new_one(self):
        self.make_base()
        self.write("base/bench-lstm", f'#!/bin/sh\nexport LB_SLOW_PERCENT=0\nexec "{PROGRAM}" "$@"\n', 0o755)
        done, summary = self.gate("slow", "base", LB_PROCESSES="9", exit_code=3, **SLOW)
        self.assertTrue(summary.startswith("### REGRESSION: 2 cases: 1 slower"), summary)
        self.assertEqual(self.failed_cases("slow"), [PLANTED])
        self.assertFalse(os.path.exists(self.path("slow/again")))
        self.assertTrue(os.path.exists(self.path("slow/run.jsonl")))

    def test_slowness_of_one_sweep_is_not_blamed(self):
        """The program is slow unless it writes to .../again, like a machine that was busy for a while."""
        self.make_base()
        done, summary = self.gate("new", "base", program=self.replay(self.keep("slow", **SLOW),
                                                                     self.keep("base")))
        self.assertIn("A second sweep", done.stdout)
        self.assertTrue(summary.startswith("### No regression shown"), summary)
        self.assertIn("slower in one of two sweeps", summary)
        self.assertEqual(self.failed_cases("new"), [])

    def test_base_of_another_machine_stops_nothing_and_is_said(self):
        self.make_base()
        self.edit_base(lambda lines: lines[0]["environment"].update(cpu="another", host="elsewhere"))
        slow = self.replay_slow()
        done, summary = self.gate("new", "base", program=slow)
        self.assertTrue(summary.startswith("### The base was measured on another machine (cpu)"), summary)
        self.assertIn("DIFFERENT ENVIRONMENTS (host, cpu)", summary)
        self.assertNotIn("A second sweep", done.stdout)
        # Another host of the same kind is as good as this one.
        self.edit_base(lambda lines: lines[0]["environment"].update(
            cpu=read_lines(self.path("new"))[0]["environment"]["cpu"], host="another"))
        self.gate("host", "base", program=slow, exit_code=3)

    def test_base_that_cannot_be_read_is_said(self):
        self.make_base()
        self.edit_base(lambda lines: lines[0].pop("schema"))
        slow = self.replay_slow()
        done, summary = self.gate("new", "base", program=slow, exit_code=2)
        self.assertIn("no schema version", done.stdout)
        self.assertIn("can't be read", summary)
        self.gate("accepted", "base", program=slow, LB_ACCEPT="1")

    def test_base_of_another_schema_gives_way_to_this_run(self):
        self.make_base()
        self.edit_base(lambda lines: lines[0].update(schema=1))
        done, summary = self.gate("new", "base")
        self.assertIn("schema version 1,", done.stdout)
        self.assertIn("this run is the next base", summary)

    def test_case_that_fails_now_is_a_regression_and_one_that_always_did_is_not(self):
        def rename(verdict):
            def change(lines):
                for line in lines:
                    if line["kind"] == "row":
                        for key in ("case", "impl"):
                            line[key] = line[key].replace("slow", "misbehave_crash")
                        line.update(verdict)
                    elif line["kind"] == "header":
                        line["cases"] = [case.replace("slow", "misbehave_crash") for case in line["cases"]]
            return change

        flags = ["--plugin", plugin("misbehave_crash"), "--impl", "misbehave_crash"]
        self.make_base()
        self.edit_base(rename({}))
        done, summary = self.gate("new", "base", *flags, exit_code=3)
        self.assertTrue(summary.startswith("### REGRESSION: 2 cases: 2 broken"), summary)
        self.assertEqual(len(self.failed_cases("new")), 2)
        self.edit_base(rename({"verdict": "crash", "reason": "as ever", "samples_ns": [], "blocks": [],
                               "processes": [], "reference_ns": []}))
        done, _ = self.gate("still", "base", *flags, exit_code=None)
        self.assertIn(done.returncode, (1, 5), done.stdout)

    def test_sweep_in_which_no_case_ran_is_no_baseline(self):
        done, summary = self.gate("new", "none", "--impl", "cpu_ref", "--time-budget", "0.000000001", exit_code=5)
        self.assertTrue(summary.startswith("### No case ran"), summary)
        self.assertFalse(os.path.exists(self.path("new/run.jsonl")))

    def test_nothing_in_common_is_no_pass(self):
        self.make_base()
        done, summary = self.gate("new", "base", "--impl", "cpu_ref", exit_code=5)
        self.assertTrue(summary.startswith("### Nothing to compare"), summary)
        self.assertIn("gone", summary)


class Loop(Gate):
    """The loop of a team, with a bare repository in place of the forge's."""

    def setUp(self):
        super().setUp()
        self.git("init", "--quiet", "--bare", "--initial-branch=main", "forge.git", folder="")
        self.git("init", "--quiet", "--initial-branch=main", "clone", folder="")
        self.git("remote", "add", "origin", self.path("forge.git"))
        self.commit("first")

    def git(self, *arguments, folder="clone"):
        return call("git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments, cwd=self.path(folder),
                    exit_code=0).stdout

    def commit(self, message):
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        self.git("push", "--quiet", "origin", "HEAD:main")

    def store(self, *arguments, **environment):
        return call(STORE, *arguments, cwd=self.path("clone"), env={**os.environ, **environment}, exit_code=0).stdout

    def publish(self, run, **environment):
        self.store("publish", PROGRAM, self.path(run), **environment)

    def on_branch(self, path):
        self.git("fetch", "--quiet", "origin", "bench-lstm-results")
        return self.git("show", "FETCH_HEAD:" + path)

    def test_main_is_kept_pull_requests_get_a_comment_and_the_history_a_page(self):
        machine = {"LB_MACHINE": "of-a-kind"}
        # The first run of main: there is nothing to compare to, and it is published.
        self.store("fetch", self.path("none"), **machine)
        self.assertEqual(os.listdir(self.path("none")), [])
        self.make_base("main")
        self.publish("main", **machine)
        self.assertIn("## of-a-kind", self.on_branch("README.md"))

        # A pull request that is slower: fetched baseline, verdict, comment.
        self.store("fetch", self.path("baseline"), **machine)
        self.assertEqual(self.read("main/run.jsonl"), self.read("baseline/run.jsonl"))
        self.gate("slow", "baseline", exit_code=3, program=self.replay_slow())
        comment = self.store("comment", self.path("slow"))
        self.assertTrue(comment.startswith("<!-- bench-lstm -->\n### REGRESSION: 2 cases: 1 slower"),
                        comment)
        self.assertIn(PLANTED, comment)

        # Later runs of main: the page has a picture once there are enough for a history.
        text = self.read("main/run.jsonl")
        for day in range(1, 6):
            self.commit(f"change {day}")
            self.write(f"day{day}/run.jsonl", re.sub('"started":"[^"]*"', f'"started":"2099-01-0{day}T00:00:00Z"', text, 1))
            self.publish(f"day{day}", **machine)
        self.assertIn("](runs/of-a-kind/plots/history.svg)", self.on_branch("README.md"))
        self.assertIn("6 runs", self.on_branch("README.md"))
        self.assertIn("<svg", self.on_branch("runs/of-a-kind/plots/history.svg"))
        # The last run is the baseline, and only of its kind of machine.
        self.store("fetch", self.path("newest"), **machine)
        self.assertIn('"started":"2099-01-05', self.read("newest/run.jsonl").splitlines()[0])
        self.store("fetch", self.path("other"), LB_MACHINE="of-another")
        self.assertEqual(os.listdir(self.path("other")), [])
        # The clone is as it was: no branch and no worktree is left in it.
        self.assertEqual(self.git("branch", "--format=%(refname:short)").split(), ["main"])
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)
        self.assertEqual(self.git("status", "--porcelain"), "")

    def refuse_a_push(self):
        """A hook of the forge refuses the next push."""
        self.write("forge.git/hooks/pre-receive", '#!/bin/sh\n[ -e refused ] && exit 0\ntouch refused\nexit 1\n', 0o755)

    def test_refused_first_push_leaves_a_branch_of_runs_alone(self):
        self.write("clone/code.c", "")
        self.git("add", "code.c")
        self.commit("code")
        self.make_base("main")
        self.refuse_a_push()
        self.publish("main", LB_MACHINE="a")
        self.assertIn("## a\n", self.on_branch("README.md"))
        self.assertEqual(self.git("log", "--format=%s", "FETCH_HEAD", "--", "code.c"), "")

    def test_run_that_cannot_be_committed_is_not_published(self):
        self.make_base("main")
        self.publish("main", LB_MACHINE="a")
        self.write("clone/.git/hooks/pre-commit", "#!/bin/sh\nexit 1\n", 0o755)
        call(STORE, "publish", PROGRAM, self.path("main"), cwd=self.path("clone"), exit_code=1)

    def test_a_push_in_between_is_not_lost(self):
        """The first push is refused, after another job has pushed."""
        self.make_base("main")
        self.publish("main", LB_MACHINE="a")
        self.refuse_a_push()
        self.publish("main", LB_MACHINE="b")
        page = self.on_branch("README.md")
        self.assertIn("## a\n", page)
        self.assertIn("## b\n", page)


@unittest.skipUnless(yaml, "PyYAML is not installed")
class Workflows(ProgramTest):
    def load(self, name):
        return yaml.safe_load(self.read(os.path.abspath(os.path.join(CI, name))))

    def steps(self):
        return {step.get("name"): step for step in self.load("github.yml")["jobs"]["bench"]["steps"]}

    def assert_shell(self, text):
        call("bash", "-n", input=text, exit_code=0)

    def test_files_are_yaml_and_their_scripts_shell(self):
        self.assertEqual(len(glob.glob(os.path.join(CI, "*.yml"))), 2)
        for step in self.steps().values():
            self.assertTrue(("run" in step) != ("uses" in step), step)
            self.assert_shell(step.get("run", ""))
        job = self.load("gitlab.yml")["bench-lstm"]
        for line in job["script"]:
            self.assert_shell(line)
        self.assertIn("bench-run", job["artifacts"]["paths"])
        for text in (self.steps()["Sweep and compare"]["run"], job["script"][2]):
            self.assertEqual(text.split()[:1], ["results/ci/gate.sh"])

    def test_gitlab_publishes_from_a_clone_of_an_earlier_job(self):
        script = self.load("gitlab.yml")["bench-lstm"]["script"][3]
        self.write("results/ci/store.sh", "#!/bin/sh\ngit remote get-url $LB_STORE_REMOTE >> urls\n", 0o755)
        self.write("bench-run/run.jsonl", "")
        self.write("build/release/bench-lstm", "")
        call("git", "init", "--quiet", cwd=self.scratch, exit_code=0)
        for token in ("old", "new"):
            call("bash", "-euo", "pipefail", "-c", script, cwd=self.scratch, exit_code=0, env={
                **os.environ, "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main", "LB_TOKEN": token,
                "CI_SERVER_HOST": "host", "CI_PROJECT_PATH": "a/b"})
        self.assertEqual(self.read("urls").split(), ["https://token:old@host/a/b.git", "https://token:new@host/a/b.git"])

    def test_what_only_passes_on_main_becomes_the_baseline(self):
        upload = [step for step in self.steps().values() if step.get("uses", "").startswith("actions/upload")]
        kept, baseline = upload
        self.assertEqual(self.steps()["Publish the history"]["if"], baseline["if"])
        self.assertEqual(kept["if"], "always()")
        self.assertEqual(baseline["with"]["name"], "${{ env.baseline }}")
        for word in ("success()", "github.event_name != 'pull_request'", "refs/heads/main"):
            self.assertIn(word, baseline["if"])

    @unittest.skipUnless(shutil.which("jq"), "jq is not installed")
    def test_last_baseline_of_this_repository_is_fetched(self):
        """With a gh that answers from a file and applies jq, as the real one does."""
        def artifact(run, branch="main", repository=1, expired=False):
            return {"expired": expired, "workflow_run": {
                "id": run, "head_branch": branch, "repository_id": 1, "head_repository_id": repository}}

        self.write("bin/gh", '#!/bin/sh\ncase "$1" in\napi) echo "$2" >> calls; jq -r "$4" artifacts.json ;;\n'
                   'run) echo "$*" >> calls ;;\nesac\n', 0o755)
        script = "".join(self.steps()[name]["run"] for name in
                         ("Name this kind of machine", "Fetch the last baseline of this kind of machine"))
        script = script.replace('>> "$GITHUB_ENV"', '> env; . ./env')

        def fetch(artifacts):
            self.write("artifacts.json", json.dumps({"artifacts": artifacts}))
            self.write("calls", "")
            subprocess.run(["bash", "-e"], input=script, cwd=self.scratch, text=True, check=True, env={
                **os.environ, "PATH": self.path("bin") + ":" + os.environ["PATH"],
                "GITHUB_REPOSITORY": "someone/bench-lstm"})
            return self.read("calls").splitlines()

        calls = fetch([artifact(7), artifact(12), artifact(20, expired=True), artifact(30, repository=2),
                       artifact(40, branch="feature")])
        self.assertRegex(calls[0], r"^repos/someone/bench-lstm/actions/artifacts\?name=bench-lstm-baseline-"
                                   r"[A-Za-z0-9_-]+&per_page=100$")
        self.assertIn("run download 12 --repo someone/bench-lstm --name bench-lstm-baseline-", calls[1])
        self.assertEqual(len(fetch([])), 1)


class FirstHour(ProgramTest):
    """The commands of README's first hour as they stand."""

    @unittest.skipUnless(platform.machine() == "x86_64", "OpenBLAS has other kernels here")
    def test_the_commands_find_what_got_slower(self):
        root = os.path.abspath(os.path.join(CI, "..", ".."))
        page = re.search(r"\n## A first hour\n(.*?)\n## ", self.read(os.path.join(root, "README.md")), re.DOTALL)[1]
        commands = [line.strip() for line in page.splitlines() if line.startswith("    ")]
        self.assertEqual(len(commands), 6)
        os.makedirs(self.path("build"))
        os.symlink(os.path.abspath(os.path.dirname(PROGRAM)), self.path("build/release"))
        os.symlink(os.path.join(root, "results"), self.path("results"))
        brief = {"LB_PROCESSES": "7", "LB_CASE_TIME": "0.02"} # of the gate, whose verdict is not checked here
        done = call("bash", "-euc", "\n".join(commands), cwd=self.scratch, env={**os.environ, **brief})
        self.assertIn("exit code 3", done.stdout, done.stdout + done.stderr)
        slower = re.findall(r"(?m)^slower .*(openblas/\S+|cpu_simd/\S+)", done.stdout.split("exit code 3")[0])
        self.assertIn("openblas/T32_B16_I256_H256/f32/infer", slower)
        self.assertTrue(os.path.exists(self.path("before.html")))
        self.assertIn(done.returncode, (0, 3)) # of the gate, on a machine that does other work
        self.assertTrue(os.path.exists(self.path("gate/verdict.md")))


if __name__ == "__main__":
    unittest.main()
