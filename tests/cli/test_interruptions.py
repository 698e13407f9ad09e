"""What happens to a sweep from outside: a worker that is killed or stands still, a terminal that goes
away, an output folder that vanishes, formats that can't be written."""

import os
import shutil
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, TINY, children_of, planted, read_lines, read_rows, run, started, wait_until

# 100 cases, so many that a signal meets one of the first.
LONG = ["--sweep", "-T", "64:163:+1", "-B", "8", "-H", "64", "--impl", "cpu_ref", "--plots", "none",
        "--case-time", "0.01"]


class Innocent(ProgramTest):
    """A case whose worker was lost for reasons that are not its own is run again, once."""

    def nap(self, disturb, **options):
        """A sweep of one case, which is disturbed in its first call. Returns its row and stderr."""
        env = {**os.environ, "LB_NAP": self.path("nap")}
        with subprocess.Popen([PROGRAM, "--sweep", *TINY, *planted("misbehave_nap"), "--call-limit", "5", "--out",
                               self.path("run")], env=env, stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, text=True, **options) as process:
            wait_until(lambda: os.path.exists(self.path("nap")))
            disturb(process.pid, children_of(process.pid))
            _, err = process.communicate(timeout=500)
        row, = read_rows(self.path("run")).values()
        return row, err

    def test_a_worker_that_is_killed_from_outside(self):
        row, err = self.nap(lambda _, workers: [os.kill(one, signal.SIGKILL) for one in workers])
        self.assertEqual(row["verdict"], "ok", row["reason"])
        self.assertIn("killed from outside", err)
        self.assertIn("it is run again", err)

    def test_a_machine_that_stands_still_for_longer_than_the_call_limit(self):
        def stand_still(program, workers):
            for number, seconds in ((signal.SIGSTOP, 6), (signal.SIGCONT, 0)):
                for one in (program, *workers):
                    os.kill(one, number)
                time.sleep(seconds)
        row, err = self.nap(stand_still)
        self.assertEqual(row["verdict"], "ok", row["reason"])
        self.assertNotIn("run again", err)

    def test_a_worker_that_hangs_while_the_program_runs_is_a_timeout(self):
        row, err = self.nap(lambda _, workers: [os.kill(one, signal.SIGSTOP) for one in workers])
        self.assertEqual(row["verdict"], "timeout")
        self.assertNotIn("run again", err)

    def test_one_that_kills_itself_each_time_is_a_crash(self):
        rows, done = self.sweep(*TINY, *planted("misbehave_killed"), exit_code=1)
        row, = rows.values()
        self.assertEqual(row["verdict"], "crash")
        self.assertEqual(done.stderr.count("it is run again"), 1)


class Ends(ProgramTest):
    """Ways in which a sweep is told to end, all in good order: whole rows, a footer, exit code 130."""

    def interrupted(self, tell):
        with started(self.path("run"), *LONG, start_new_session=True) as process:
            tell(process)
            process.wait(timeout=500)
        entries = read_lines(self.path("run"))
        self.assertEqual(process.returncode, 130)
        self.assertEqual((entries[-1]["kind"], entries[-1]["interrupted"]), ("footer", True))
        self.assertLess(len(entries), 100)

    def test_a_hangup(self):
        self.interrupted(lambda process: process.send_signal(signal.SIGHUP))

    def test_nobody_reads_stderr_any_more(self):
        self.interrupted(lambda process: process.stderr.close())

    def test_a_reader_of_stdout_that_leaves_ends_a_list_at_once(self):
        with subprocess.Popen([PROGRAM, "--list", "-T", "1:2000:+1", "-B", "1:20:+1", "-H", "4",
                               "--impl", "cpu_ref"], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            process.stdout.close()
            process.wait(timeout=500)
        self.assertEqual(process.returncode, -signal.SIGPIPE)

    def test_a_folder_that_vanishes_ends_the_sweep_with_the_reason(self):
        out = self.path("run")
        for vanish in (lambda: shutil.rmtree(out), lambda: os.rename(out, self.path("moved"))):
            with started(out, *LONG) as process:
                vanish()
                _, err = process.communicate(timeout=500)
            self.assertEqual(process.returncode, 2, err)
            self.assertNotIn("continue with", err)
            self.assertIn("run.jsonl: it was deleted or moved while the run was written", err)


class Outputs(ProgramTest):
    def test_one_format_that_cannot_be_written_takes_nothing_else_with_it(self):
        self.sweep(*TINY, "--impl", "cpu_ref")
        self.assertEqual([name for name in os.listdir(self.path("run")) if name != "plots"], ["run.jsonl"])
        os.makedirs(self.path("run/run.csv")) # a folder where a file should be
        done = run("--export", "gbench,csv,junit,markdown", self.path("run"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("run.csv: ", done.stderr)
        self.assertEqual(done.stdout, "")
        for name in ("benchmark.json", "junit.xml", "run.md"): # before it and behind it
            self.assertTrue(os.path.isfile(self.path("run/" + name)))

    def test_quiet_and_verbose(self):
        cases = ["-T", "3", "-B", "2", "-H", "4,8", "--impl", "cpu_ref", "--case-time", "0.01"]
        _, quiet = self.sweep(*cases, "--quiet", name="quiet", plots=True)
        said = [line for line in quiet.stderr.splitlines()
                if "noisy" not in line and "other programs" not in line and "T3_B2" not in line
                and "measure them again" not in line]
        self.assertEqual(said, [])
        self.assertIn("2 cases: 2 ok", quiet.stdout)
        again = run("--resume", self.path("quiet"), "--quiet", "--plots", "none")
        self.assertNotIn("are left to run", again.stderr)
        _, verbose = self.sweep(*cases, "--impl", "openblas", "--dtype", "f16,f32", "--verbose", name="verbose")
        self.assertRegex(verbose.stderr, r"(?m)^ok +[\d.]+ [num]?s  cpu_ref/T3_B2_I4_H4/f32/infer$")
        self.assertRegex(verbose.stderr, r"(?m)^unsupported +openblas/T3_B2_I8_H8/f16/infer: dtype f16")


if __name__ == "__main__":
    unittest.main()
