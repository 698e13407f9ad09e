"""How the command-line tests call bench-lstm and read its results."""

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import time
import unittest

BUILD = os.environ["LB_BUILD"]
PROGRAM = os.path.join(BUILD, "bench-lstm")

# One problem that takes milliseconds on every implementation.
TINY = ["-T", "3", "-B", "2", "-H", "4", "--case-time", "0.05"]


def plugin(name):
    """The path of a test plug-in."""
    return os.path.join(BUILD, "tests", "plugins", name + ".so")


def planted(*names):
    """The words that run implementations of test plug-ins of the same names."""
    return ["--impl", ",".join(names), *(word for name in names for word in ("--plugin", plugin(name)))]


def without_libraries(folder, pattern="."):
    """The environment of a program whose workers can load none of the libraries of others that match."""
    os.makedirs(folder, exist_ok=True)
    for soname in re.findall(r"workers load (\S+)$", run("--version").stdout, re.MULTILINE):
        if re.search(pattern, soname):
            with open(os.path.join(folder, soname), "w", encoding="utf-8") as file:
                file.write("no library")
    return {**os.environ, "LD_LIBRARY_PATH": folder}


def call(*command, exit_code=None, printed="", said="", **options):
    """Runs a command to its end: exit code, stdout, stderr. It must have the exit code that is given, and these
    words in its stdout and its stderr."""
    done = subprocess.run(command, **{"capture_output": True, "text": True, "timeout": 500, **options})
    if exit_code not in (None, done.returncode) or printed not in done.stdout or said not in done.stderr:
        raise AssertionError(f"{command}: exit code {done.returncode}, {done.stdout}{done.stderr}, and not "
                             f"{exit_code}, {printed}{said}")
    return done


def run(*arguments, **options):
    """Runs the program, as call does."""
    return call(PROGRAM, *arguments, **options)


def run_on_terminal(columns, *arguments, term="xterm"):
    """Runs the program on a terminal of that type and number of columns. Returns its exit code and
    all output."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen([PROGRAM, *arguments], stdin=side, stdout=side, stderr=side,
                          env={**os.environ, "TERM": term}) as process:
        os.close(side)
        parts = []
        while True:
            try:
                part = os.read(main, 1 << 16)
            except OSError: # the last writer has closed it
                break
            if not part:
                break
            parts.append(part)
    os.close(main)
    return process.returncode, b"".join(parts).decode("utf-8")


def wait_until(condition, seconds=500):
    """Returns once condition() holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"the condition did not hold within {seconds} s")
        time.sleep(0.01)


def catches(process, number):
    """Whether the process has a handler for the signal."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        caught = [int(line.split()[1], 16) for line in status if line.startswith("SigCgt:")]
    return bool(caught) and caught[0] >> (number - 1) & 1 == 1


def each_process(file):
    """The id of each process and the text of that file of it in /proc."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/{file}", encoding="utf-8", errors="replace") as stream:
                yield int(name), stream.read()
        except OSError: # it has ended
            continue


def processes_of(text, file="cmdline"):
    """The ids of the running processes whose command line, or other file of /proc, contains the text."""
    return [pid for pid, words in each_process(file) if text in words.replace("\0", " ")]


def living_processes(field, number):
    """The ids of the living processes of which a field of /proc/PID/stat, counted behind the name, has that
    number: 1 is the parent, 3 the POSIX session."""
    every = [(pid, text.rpartition(")")[2].split()) for pid, text in each_process("stat")]
    return [pid for pid, fields in every if int(fields[field]) == number and fields[0] != "Z"]


def children_of(pid):
    return living_processes(1, pid)


def line_count(path):
    """Lines of a file; 0 where there is none."""
    try:
        with open(path, encoding="utf-8") as lines:
            return sum(1 for _ in lines)
    except FileNotFoundError:
        return 0


def profiling_recipes():
    """The paragraphs of code of PROFILING.md, but for the picture of a timeline. The first names a case."""
    path = os.path.join(os.path.dirname(__file__), "../../harness/trace/PROFILING.md")
    with open(path, encoding="utf-8") as file:
        parts = re.findall(r"(?:^    .*\n)+", file.read(), re.MULTILINE)
    return [part for part in parts if " | " not in part]


@contextlib.contextmanager
def started(out, *arguments, lines=2, **options):
    """A command that writes a run, from when the run has so many lines. Its stderr can be read."""
    with subprocess.Popen([PROGRAM, *arguments, "--out", out],
                          **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True,
                             **options}) as process:
        wait_until(lambda: line_count(os.path.join(out, "run.jsonl")) >= lines)
        yield process


def read_lines(folder):
    """The lines of a run."""
    with open(os.path.join(folder, "run.jsonl"), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_lines(folder, entries):
    """Writes the lines of a run as the program does."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "run.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)


def validator_of_lines():
    """What validates the lines of runs; where there is no jsonschema, the test is skipped."""
    try:
        import jsonschema # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise unittest.SkipTest("python3-jsonschema is not installed") from error
    path = os.path.join(os.path.dirname(__file__), "../../results/run.schema.json")
    with open(path, encoding="utf-8") as file:
        return jsonschema.Draft7Validator(json.load(file))


def read_rows(folder):
    """The rows of a run, by case."""
    rows = [entry for entry in read_lines(folder) if entry["kind"] == "row"]
    by_case = {row["case"]: row for row in rows}
    assert len(by_case) == len(rows), "a case has two rows"
    return by_case


class ProgramTest(unittest.TestCase):
    """A test in a scratch folder of its own."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def path(self, name):
        return os.path.join(self.scratch, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text, mode=0o644):
        """Writes a file of the scratch folder, or a script where the mode says so."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def sweep(self, *arguments, exit_code=0, name="run", plots=False, **options):
        """A sweep into scratch/name; returns its rows by case and the finished process. Pictures, which
        take longer than small cases, are drawn where a test asks for them."""
        out = self.path(name)
        pictures = [] if plots else ["--plots", "none"]
        done = run("--sweep", "--out", out, *pictures, *arguments, exit_code=exit_code, **options)
        return read_rows(out), done
