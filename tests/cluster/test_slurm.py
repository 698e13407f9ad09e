"""Tests the Slurm scripts of bench/cluster alone, with stand-ins for Slurm and the program, and on a cluster of
three nodes on this machine. There, tasks are killed, requeued, preempted and cancelled, and
a node is drained. No row may be lost, and no case may be measured twice."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from program import BUILD, PROGRAM, ProgramTest, call, each_process, read_lines, run
from slurm import Slurm, packages

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CLUSTER = os.path.join(ROOT, "bench", "cluster")
TASK = os.path.join(CLUSTER, "slurm.sbatch")
MERGE = os.path.join(CLUSTER, "slurm-merge.sbatch")
PACKAGES = os.path.join(ROOT, "build", "slurm") # the unpacked packages of Slurm
NODES = ["bench-n1", "bench-n2", "bench-n3"]
SHARDS = 6
CASES_200 = ["-T", "1:25:+1", "-B", "1,2,3,4", "-H", "8", "--impl", "cpu_ref,cpu_simd",
             "--case-time", "0.03"]

# Replaces the program: it prints its arguments, adds ROWS rows and the line END to its run and exits with STATUS.
PROGRAM_STAND_IN = """#!/bin/bash
if [ "$1" = --export ]; then
  cat "$(dirname "$0")/csv"
  exit
fi
echo "arguments $*"
while [ $# -gt 0 ] && [ "$1" != --out ] && [ "$1" != --resume ]; do shift; done
mkdir -p "$2"
for ((i = 0; i < ${ROWS-1}; i++)); do echo '{"kind":"row","verdict":"ok"}' >>"$2/run.jsonl"; done
end='{"kind":"footer","rows":1,"interrupted":false}'
echo "${END-$end}" >>"$2/run.jsonl"
exit "${STATUS-0}"
"""


class Task(ProgramTest):
    """Tests slurm.sbatch without a cluster."""

    def setUp(self):
        super().setUp()
        self.write("program", PROGRAM_STAND_IN)
        self.write("squeue", "#!/bin/sh\necho \"$TIME_LEFT\"\n"
                   "case \"$*\" in *10_2*) ;; *) echo 8:00 ;; esac\n") # 10 alone: all tasks
        self.write("scontrol", "#!/bin/sh\necho \"scontrol $*\"\nexit 1\n")
        self.write("csv", "")

    def write(self, name, text, mode=0o755):
        super().write(name, text, mode)

    def task(self, *arguments, command=(TASK,), **environment):
        settings = {"PATH": f"{self.scratch}:{os.environ['PATH']}", "LB_PROGRAM": self.path("program"),
                    "SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "2",
                    "TIME_LEFT": "UNLIMITED", **environment}
        return call(*command, *arguments, cwd=self.scratch, env={**os.environ, **settings})

    def test_the_time_limit_becomes_the_time_budget(self):
        for left, budget in (("6:40", "100"), ("1:00:00", "3300"), ("1-00:05:00", "86400"),
                             ("10-01:00:00", "867300")):
            self.assertIn(f"--time-budget {budget} -T 3", self.task("run" + budget, "4", "-T", "3",
                                                                    TIME_LEFT=left).stdout)
        done = self.task("run", "4", "-T", "3")
        self.assertIn("arguments --sweep --shard 2/4 --out run/shards/2 --plots none -T 3\n", done.stdout)
        done = self.task("short", "4", TIME_LEFT="4:59")
        self.assertEqual(done.returncode, 2)
        self.assertIn("299 s left and 300 s of these are spare: ask for more with --time", done.stderr)

    def test_a_second_attempt_resumes(self):
        self.assertEqual(self.task("run", "4", "-T", "3").returncode, 0)
        done = self.task("run", "4", "-T", "3", TIME_LEFT="10:00")
        self.assertIn("arguments --resume run/shards/2 --plots none --time-budget 300\n", done.stdout)
        for cut in ("", '{"kind":"header","sch'): # by a full disk: there is nothing to resume
            self.write("run/shards/2/run.jsonl", cut)
            self.assertIn("arguments --sweep --shard 2/4", self.task("run", "4", "-T", "3").stdout)

    def test_a_task_with_cases_left_requeues_itself_when_it_added_a_row(self):
        for status in ("130", "137"):
            done = self.task("run" + status, "4", STATUS=status)
            self.assertEqual(done.returncode, int(status))
            self.assertIn("scontrol requeue 10_2", done.stdout)
            self.assertFalse(os.path.exists(self.path(f"run{status}/finished/2")))
            done = self.task("run" + status, "4", STATUS=status, ROWS="0")
            self.assertNotIn("scontrol", done.stdout)
        self.write("csv", "case,...,skipped,the time budget of 5 s ran out,\n")
        done = self.task("budget", "4")
        self.assertIn("scontrol requeue 10_2", done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_a_task_has_finished_when_its_run_says_that_all_cases_have_a_row(self):
        stopped, torn = '{"kind":"footer","rows":1,"interrupted":true}', '{"kind":"canary","verdict":"ok"}'
        for status, end, finished in (("0", None, True), ("1", None, True), ("5", None, True), ("2", None, False),
                                      ("127", None, False), ("0", stopped, False), ("1", torn, False)):
            folder = f"run{status}{hash(end)}"
            done = self.task(folder, "4", STATUS=status, ROWS="0", **({"END": end} if end else {}))
            self.assertEqual(done.returncode, int(status) or int(not finished))
            self.assertNotIn("scontrol", done.stdout)
            self.assertEqual(os.path.exists(self.path(f"{folder}/finished/2")), finished, (status, end))

    def test_a_folder_keeps_one_sweep(self):
        self.assertEqual(self.task("run", "4", "-T", "3").returncode, 0)
        for words in (["run", "4", "-T", "5"], ["run", "5", "-T", "3"], ["run", "4", "-T", "3", "-B", "1"]):
            done = self.task(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("run holds another sweep: 4 -T 3", done.stderr)
            self.assertNotIn("arguments", done.stdout)
        self.assertEqual(self.task("run", "4", "-T", "3").returncode, 0)
        self.assertEqual(sorted(os.listdir(self.path("run"))), ["arguments", "finished", "shards"])

    def test_words_that_do_not_fit_on_the_disk_are_not_kept(self):
        full = ("bash", "-c", "trap '' XFSZ; ulimit -f 0; exec bash \"$@\"", "full", TASK)
        done = self.task("run", "4", "-T", "3", command=full)
        self.assertEqual(done.returncode, 2)
        self.assertIn("run: the words of the sweep can't be written", done.stderr)
        self.assertEqual(sorted(os.listdir(self.path("run"))), ["finished", "shards"])
        self.assertEqual(self.task("run", "4", "-T", "3").returncode, 0)

    def test_a_wrong_submission_is_refused(self):
        for arguments, environment, words in (
                (["run"], {}, "usage"), (["run", "-T", "3"], {}, "'-T' is not the number of shards"),
                (["run", "1"], {}, "task 2 of an array of 1 shards"),
                (["run", "4"], {"SLURM_ARRAY_TASK_ID": ""}, "no task of a job array")):
            done = self.task(*arguments, **environment)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)
            self.assertNotIn("arguments", done.stdout)


def program_of(folder):
    """Returns the process of the program that writes the run in the folder."""
    return next(pid for pid, words in each_process("cmdline")
                if words.split("\0")[0].endswith("bench-lstm") and folder in words.split("\0"))


def measured(folder):
    """Returns the cases that the run has measured, in order. A case that was measured twice is there twice."""
    return [entry["case"] for entry in read_lines(folder)
            if entry["kind"] == "row" and entry["verdict"] != "skipped"]


class Cluster(ProgramTest):
    """A cluster of three nodes for a test."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("slurm"))
        self.slurm = Slurm(PACKAGES, self.path("slurm"), NODES)
        self.addCleanup(self.slurm.stop)
        self.slurm.environment["LB_PROGRAM"] = PROGRAM
        self.slurm.start()

    def submit(self, *words, **environment):
        """Submits a job; returns its number."""
        exports = ",".join(["ALL"] + [f"{name}={value}" for name, value in environment.items()])
        return self.slurm.call("sbatch", "--parsable", "--export=" + exports, *words, cwd=self.scratch)

    def merge(self, folder, shards):
        """Merges in a job; returns whether it succeeded, and its log."""
        return self.merged(self.submit(MERGE, folder, str(shards)))

    def merged(self, job):
        self.slurm.wait_all(240)
        return ("JobState=COMPLETED" in self.slurm.call("scontrol", "show", "job", job),
                self.read(f"bench-lstm-merge-{job}.log"))

    def log(self, array, shard):
        return self.read(f"bench-lstm-{array}-{shard}.log")

    def wait_rows(self, folder, count=3):
        """Waits until the run of a shard has that many rows; returns its lines up to the last of them."""
        lines = []

        def has_rows():
            if os.path.exists(os.path.join(folder, "run.jsonl")):
                lines[:] = self.read(folder + "/run.jsonl").splitlines()
            while lines and not lines[-1].endswith("}"): # it is being written
                lines.pop()
            return sum('"kind":"row"' in line for line in lines) >= count

        self.slurm.wait(has_rows, folder, 90)
        return lines

    def planned(self, sweep):
        time = sweep.index("--case-time") # --list does not take this option
        listed = json.loads(run("--list", "--format", "json", *sweep[:time], *sweep[time + 2:]).stdout)
        return sorted(case["case"] for case in listed["cases"])

    def check_merged(self, folder, sweep):
        """Checks that each case was measured once and is in the merged run once."""
        shards = os.listdir(self.path(folder + "/shards"))
        self.assertEqual(sorted(case for shard in shards
                                for case in measured(self.path(f"{folder}/shards/{shard}"))),
                         self.planned(sweep))
        self.assertEqual(sorted(measured(self.path(folder + "/merged"))), self.planned(sweep))
        self.assertTrue(os.path.exists(self.path(folder + "/report.html")))

    def check_kept(self, folder, lines):
        """Checks that the run still begins with these lines."""
        self.assertEqual(self.read(folder + "/run.jsonl").splitlines()[:len(lines)], lines)

    def kill(self, folder):
        """Kills the shell and the program of the task."""
        program = program_of(folder)
        with open(f"/proc/{program}/stat", encoding="utf-8") as file:
            os.kill(int(file.read().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
        os.kill(program, signal.SIGKILL)


class Interruptions(Cluster):
    """Interrupts tasks in several ways. All their rows are kept, and no case is measured twice."""

    def test_200_cases_in_an_array_with_tasks_killed_requeued_preempted_and_drained(self):
        self.assertEqual(len(self.planned(CASES_200)), 200)
        array = self.submit(f"--array=1-{SHARDS}", TASK, "big", str(SHARDS), *CASES_200)
        merge = self.submit("--dependency=afterany:" + array, MERGE, "big", str(SHARDS))
        shard = {number: f"big/shards/{number}" for number in range(1, SHARDS + 1)}
        kept = {number: self.wait_rows(self.path(shard[number])) for number in (1, 2, 3)}
        self.kill(shard[1])
        self.slurm.call("scontrol", "requeue", array + "_2")
        drained = self.slurm.node_of(array + "_3")
        self.slurm.call("scontrol", "update", "nodename=" + drained, "state=drain", "reason=test")
        before = {number: self.log(array, number).count(" on " + drained) for number in (1, 2, 3)}
        kept[4] = self.wait_rows(self.path(shard[4]))
        self.submit("--partition=urgent", "--nodelist=" + self.slurm.node_of(array + "_4"),
                    "--output=/dev/null", "--wrap=true")
        done, said = self.merged(merge)
        self.slurm.call("scontrol", "update", "nodename=" + drained, "state=resume")

        for number in shard:
            self.assertEqual(self.log(array, number).count(" on " + drained), before.get(number, 0))
        for number, restarts in ((1, 0), (2, 1), (3, 0), (4, 1)):
            self.assertEqual(self.log(array, number).count("restart "), restarts + 1)
        self.assertFalse(done)
        self.assertIn("these shards are missing or have cases left: 1\n", said)
        self.assertLess(len(measured(self.path("big/merged"))), 200)

        self.submit("--array=1", TASK, "big", str(SHARDS), *CASES_200)
        self.slurm.wait_all()
        done, said = self.merge("big", SHARDS)
        self.assertTrue(done, said)
        self.check_merged("big", CASES_200)
        for number, lines in kept.items():
            self.check_kept(self.path(shard[number]), lines)


class Signals(Cluster):
    """Tasks that are warned of their time limit, or are cancelled."""

    def test_a_warned_task_goes_on_after_a_requeue_and_a_cancelled_one_stays_so(self):
        sweep = ["-T", "1:30:+1", "-B", "1", "-H", "8", "--impl", "cpu_ref,cpu_simd", "--case-time", "0.1"]
        array = self.submit("--array=1-2", TASK, "warned", "2", *sweep)
        for number in (1, 2):
            self.wait_rows(self.path(f"warned/shards/{number}"))
        self.slurm.call("scancel", "--batch", "--signal=USR1", array + "_1") # what --signal does
        self.slurm.call("scancel", array + "_2")
        self.slurm.wait_all()
        self.assertIn("restart 1", self.log(array, 1))
        self.assertNotIn("restart 1", self.log(array, 2))
        rows = [entry for entry in read_lines(self.path("warned/shards/2")) if entry["kind"] == "row"]
        self.assertEqual({row["verdict"] for row in rows}, {"ok"}) # no case was reported as a crash
        self.assertIn("these shards are missing or have cases left: 2\n", self.merge("warned", 2)[1])


class Page(Cluster):
    """Runs the commands of bench/cluster/README.md as they stand."""

    def test_the_commands_of_the_page(self):
        page = re.search(r"\n## Slurm\n(.*?)\n## Kubernetes\n", self.read(os.path.join(CLUSTER, "README.md")),
                         re.DOTALL)[1]
        commands = "".join(line + "\n" for line in page.splitlines() if line.startswith("    "))
        self.assertGreater(commands.count("sbatch"), 3)
        home = self.path("home")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", home + "/bench-lstm"], check=True,
                       stdout=subprocess.DEVNULL)
        environment = {**self.slurm.environment, "HOME": home}
        del environment["LB_PROGRAM"]
        done = call("bash", "-euo", "pipefail", "-c", commands, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.slurm.logs())
        sweep = shlex.split(re.search(r'sweep="(.*)"', commands)[1])
        shards = [os.path.join(home, "sweeps/first/shards", name)
                  for name in os.listdir(home + "/sweeps/first/shards")]
        self.assertEqual(sorted(case for shard in shards for case in measured(shard)), self.planned(sweep))
        for name in ("report.html", "by-device.html", "by-node.html"):
            self.assertTrue(os.path.exists(f"{home}/sweeps/first/{name}"))


if __name__ == "__main__":
    missing = "" if sys.argv[1:] == ["Task"] else packages(PACKAGES)
    if missing:
        print("skipped: " + missing)
        sys.exit(77)
    unittest.main()
