#!/usr/bin/env python3
"""Every path that the fused kernels take for the shapes of bench/cases, on any device that is known
by name, is one that the emulator runs, with the same tile and type.

  test_paths.py TAKEN EMULATOR...

TAKEN prints the paths that are taken. `EMULATOR list` prints those of its cases, a line "case"
before those of each.
"""

import collections
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    taken = set(output(sys.argv[1]).splitlines())
    cases = [set(case.splitlines()) for program in sys.argv[2:]
             for case in output(program, "list").split("case\n")[1:]]
    runs = collections.Counter(path for case in cases for path in case)
    missing = sorted(taken - set(runs))
    for path in missing:
        print("no case of the emulator takes: " + path)
    # A test that could not fail would pass with any case left out.
    needed = sum(any(runs[path] == 1 for path in case & taken) for case in cases)
    print("%d paths are taken, %d of them on no emulator; %d of its %d cases alone take a path" % (
        len(taken), len(missing), needed, len(cases)))
    return 0 if taken and needed and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
