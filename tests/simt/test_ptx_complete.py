#!/usr/bin/env python3
"""Checks that cuda/ has inline PTX in common/ptx.cuh alone, and that every wrapper there is compiled
for all architectures (ptx_probe.cu) and tested against a model (test_ptx.cpp).

  test_ptx_complete.py CUDA_DIR
"""

import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# "__device__ inline TYPE name(".
WRAPPER = re.compile(
    r"^(?:template <[^>]*>\s+)?__device__ inline [\w ]+?[ *](\w+)(?:<[\w:]+>)?\(", re.M)
ASSEMBLY = re.compile(r"\basm\s*(volatile)?\s*\(")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def wrappers(text):
    return set(WRAPPER.findall(text))


def main():
    folder = sys.argv[1]
    wrong = []
    names = set()
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.cu*"), recursive=True)):
        if os.path.basename(path) == "ptx.cuh":
            names |= wrappers(read(path))
        elif ASSEMBLY.search(read(path)):
            wrong.append(path + ": inline PTX outside ptx.cuh")
    for user in ("ptx_probe.cu", "test_ptx.cpp"):
        text = read(os.path.join(HERE, user))
        wrong += ["%s: %s is not used" % (user, name) for name in sorted(names)
                  if not re.search(r"\b%s\b" % name, text)]
    # The patterns above must still find what is known to be there.
    for known in ("load_relaxed", "mma", "ldmatrix", "mbarrier_try_wait"):
        if known not in names:
            wrong.append("ptx.cuh: the pattern of this test no longer finds " + known)
    print("\n".join(wrong) if wrong else "%d wrappers, all compiled and tested" % len(names))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
