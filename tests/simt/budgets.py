#!/usr/bin/env python3
"""Compares every kernel with a row of budgets.csv: registers, spills, shared memory, instructions.

  budgets.py compile --nvcc [CACHE] NVCC --out DIR
  budgets.py check   --out DIR [--disassembler NVDISASM]
  budgets.py hold    --nvcc [CACHE] NVCC --out DIR [--disassembler NVDISASM]
  budgets.py measure --out DIR [--disassembler NVDISASM]

compile writes PTX, the assembler's resource report and the machine code of each source to DIR, for
all architectures that the table has. check compares these with the table: a kernel without a row
fails, and so does a row without a kernel. hold does both. measure prints the current rows, for pasting.

The registers and instruction counts of the table are those of one release of nvcc (RECORDED). Kernels
that another release compiled may have more of them. Everything else holds for each release: no spill, no local memory, registers that fit in the register file, shared memory, and instructions.

A row has: kernel, threads per block, the maximum of registers for each architecture, the maximum of
static shared bytes, the dynamic shared bytes of a launch, the PTX and machine instructions that the
kernel must contain (prefixes separated by spaces, | between alternatives; those behind @ only from
sm_90 on), and for each architecture the maximum of machine instructions behind the last barrier of the
block, where the cells of a step are computed; empty: any number. Registers - stand for an empty body,
and nothing for an architecture for which the kernel is not compiled. Machine code is checked where a
disassembler is given; it must then also have no local-memory traffic. No kernel may spill.
"""

import argparse
import concurrent.futures
import csv
import glob
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(HERE, "budgets.csv")
RECORDED = "13.0"  # the release of nvcc whose registers the table has
ARCHES = ["sm_80", "sm_90a", "sm_100", "sm_120"]

# The most shared memory a block may have: CUDA C++ Programming Guide, "Technical Specifications per
# Compute Capability".
SHARED_LIMIT = {"sm_80": 163 << 10, "sm_90a": 227 << 10, "sm_100": 227 << 10, "sm_120": 99 << 10}
REGISTER_FILE = 65536
REGISTER_UNIT = 8  # registers per thread are allocated in eights

EMPTY_BODY = 8  # registers that a kernel without a body has at most

COLUMNS = ["kernel", "threads"] + ARCHES + ["static_shared", "dynamic_shared", "ptx", "sass",
                                            "after_barrier"]

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
RELEASE = re.compile(r"Cuda compilation tools, release (\d+\.\d+)")


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit("%s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout + done.stderr


def device_code(path):
    """[(architecture, extension, code)]: the PTX and the machine code in an object file. Source of the
    layout: CUDA's fatbinary_section.h, and binaries of nvcc 12 and 13."""
    with open(path, "rb") as file:
        data = file.read()
    numbers = {int(re.sub(r"\D", "", arch)): arch for arch in ARCHES}
    found = []
    for part in re.finditer(rb"\x50\xed\x55\xba", data):
        at = part.start() + 16
        end = at + struct.unpack_from("<Q", data, at - 8)[0]
        while at < end:
            kind, _, header_bytes, code_bytes, _, _, _, number = struct.unpack_from("<HHIQ4I", data, at)
            at += header_bytes + code_bytes
            found.append((numbers[number], {1: "ptx", 2: "cubin"}[kind], data[at - code_bytes:at]))
    return found


def compile_one(nvcc, out, source, arches):
    """Compiles to an object, which a compiler cache knows, and takes it apart."""
    folder, name = os.path.split(source)  # several folders have files of one name
    base = os.path.join(out, "%s-%s" % (os.path.basename(folder), os.path.splitext(name)[0]))
    targets = []
    for arch in arches:
        virtual = arch.replace("sm", "compute")
        targets += ["-gencode", "arch=%s,code=[%s,%s]" % (virtual, arch, virtual)]
    report = run(nvcc + ["-std=c++17"] + targets + [
        "--no-compress", "-I" + ROOT, "-I" + os.path.join(ROOT, "harness"),
        "-Xptxas", "-v", "-c", "-o", base + ".o", source])
    with open(base + ".txt", "w") as file:
        file.write(run(nvcc[-1:] + ["--version"]) + report)
    for arch, kind, code in device_code(base + ".o"):
        with open("%s.%s.%s" % (base, arch, kind), "wb") as file:
            file.write(code)


def compile_all(options):
    sources = [os.path.join(HERE, "ptx_probe.cu")]
    for folder in ("cuda", "harness"):
        sources += glob.glob(os.path.join(ROOT, folder, "**", "*.cu"), recursive=True)
    # These have the kernels of other files, or kernels that only measure.
    sources = [name for name in sources if not name.endswith("try_fused.cu")]
    os.makedirs(options.out, exist_ok=True)
    for name in os.listdir(options.out):
        if name.endswith((".o", ".ptx", ".txt", ".cubin")):
            os.remove(os.path.join(options.out, name))
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(compile_one, options.nvcc, options.out, source, ARCHES) for source in sources]
        for job in jobs:
            job.result()
    return 0


def without_arguments(name):
    """void f<(scope)1>(int, int (*)(int))  ->  f<(scope)1>"""
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[i], 0)
        if depth == 0 and name[i] == "(":
            name = name[:i]
            break
    return name[5:] if name.startswith("void ") else name


def demangle(names):
    """{mangled: name without return type, arguments and the types of template values}"""
    plain = run(["c++filt"], input="\n".join(names)).splitlines()
    return {m: re.sub(r"\([\w:]+\)", "", without_arguments(p)) for m, p in zip(names, plain)}


def ptx_bodies(text):
    """{mangled: body} of the entry functions"""
    bodies = {}
    for part in re.split(r"^(?=.*\.(?:entry|func)\b)", text, flags=re.MULTILINE):
        entry = re.search(r"\.entry\s+([\w$]+)", part)
        if entry:
            bodies[entry.group(1)] = part
    return bodies


def sass_bodies(disassembler, cubin):
    text = run([disassembler, cubin])
    parts = re.split(r"\.section\s+\.text\.(\S+?),", text)
    return dict(zip(parts[1::2], parts[2::2]))


def after_barrier(body):
    """The number of machine instructions behind the last barrier of the block, without padding."""
    found = re.findall(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", body)
    barriers = [i for i, name in enumerate(found) if name.startswith("BAR.SYNC")]
    return sum(name != "NOP" for name in found[barriers[-1] + 1:]) if barriers else 0


def read_reports(folder, disassembler):
    """[{kernel, arch, registers, ..., body, machine}]: all that was compiled"""
    found = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".txt"):
            continue
        base = os.path.join(folder, name[:-4])
        with open(base + ".txt") as report:
            text = report.read()
        release, parts, bodies, machine = RELEASE.search(text), ENTRY.split(text)[1:], {}, {}
        for arch in set(parts[1::3]):
            with open("%s.%s.ptx" % (base, arch)) as ptx:
                bodies[arch] = ptx_bodies(ptx.read())
            machine[arch] = sass_bodies(disassembler, "%s.%s.cubin" % (base, arch)) if disassembler else {}
        short = demangle(parts[0::3]) if parts else {}
        for mangled, arch, resources in zip(parts[0::3], parts[1::3], parts[2::3]):
            spills, shared = SPILLS.search(resources), SHARED.search(resources)
            found.append({
                "kernel": short[mangled], "arch": arch,
                "release": release.group(1) if release else None,
                "registers": int(USED.search(resources).group(1)),
                "spill_bytes": int(spills.group(2)) + int(spills.group(3)) if spills else 0,
                "static_shared": int(shared.group(1)) if shared else 0,
                "ptx": bodies[arch][mangled], "sass": machine[arch].get(mangled)})
    return found


def has_instruction(body, wanted):
    """wanted: a prefix, or several with | in between, one of which the body must have"""
    return any(re.search(r"(?<![\w.])" + re.escape(one), body) for one in wanted.split("|"))


def check_kernel(kernel, row, limit):
    """Yields what is wrong with one compiled kernel."""
    held = ["spill_bytes", "static_shared"]
    if kernel["release"] == RECORDED:
        held.append("registers")
    for column in held:
        if kernel[column] > row[column]:
            yield "%s %d, budget %s" % (column, kernel[column], row[column])
    shared = kernel["static_shared"] + row["dynamic_shared"]
    if shared > limit:
        yield "%d bytes of shared memory per block, the architecture has %d" % (shared, limit)
    rounded = -(-kernel["registers"] // REGISTER_UNIT) * REGISTER_UNIT
    if rounded * row["threads"] > REGISTER_FILE:
        yield "%d registers times %s threads do not fit in the register file" % (rounded, row["threads"])
    for wanted in row["ptx"].split():
        if not has_instruction(kernel["ptx"], wanted):
            yield "no %s in its PTX" % wanted
    if kernel["sass"] is None:
        return
    for wanted in row["sass"].split():
        if not has_instruction(kernel["sass"], wanted):
            yield "no %s in its machine code" % wanted
    behind = after_barrier(kernel["sass"])
    most = row["after_barrier"]
    if most is not None and kernel["release"] == RECORDED and behind > most:
        yield "%d machine instructions behind the last barrier, budget %s" % (
            behind, most)
    for local in ("LDL", "STL"):
        if has_instruction(kernel["sass"], local):
            yield "local-memory traffic (%s) in its machine code" % local


def for_arch(row, arch):
    """What a row says of a kernel for one architecture."""
    empty = row[arch] == "-"

    def wanted(text):
        words = "" if empty else text
        return " ".join(word.lstrip("@") for word in words.split()
                        if arch != "sm_80" or not word.startswith("@"))

    counts = dict(zip([a for a in ARCHES if row[a]], row["after_barrier"].split()))
    return {"threads": int(row["threads"]), "spill_bytes": 0,
            "registers": EMPTY_BODY if empty else int(row[arch]),
            "static_shared": 0 if empty else int(row["static_shared"]),
            "dynamic_shared": 0 if empty else int(row["dynamic_shared"]),
            "ptx": wanted(row["ptx"]), "sass": wanted(row["sass"]),
            "after_barrier": int(counts[arch]) if arch in counts else None}


def read_rows():
    with open(TABLE, newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            sys.exit("%s: the columns must be %s" % (TABLE, ",".join(COLUMNS)))
        return list(reader)


def table_of(rows):
    return {(row["kernel"], arch): for_arch(row, arch) for row in rows for arch in ARCHES if row[arch]}


def broken_budgets(table, kernels):
    """What is wrong, a line each."""
    rows = dict(table)
    for kernel in kernels:
        key = (kernel["kernel"], kernel["arch"])
        name = "%s %s: " % key
        row = rows.pop(key, None)
        if row is None:
            yield name + "no row in the table"
            continue
        for what in check_kernel(kernel, row, SHARED_LIMIT[kernel["arch"]]):
            yield name + what
    for key in rows:
        yield "%s %s: a row, but no kernel" % key


def check(options):
    kernels = read_reports(options.out, options.disassembler)
    wrong = list(broken_budgets(table_of(read_rows()), kernels))
    for line in wrong:
        print(line)
    machine = "with" if options.disassembler else "without"
    releases = sorted({str(kernel["release"]) for kernel in kernels})
    print("%d kernels of nvcc %s checked, %s machine code, %d wrong" % (
        len(kernels), ", ".join(releases), machine, len(wrong)))
    return 1 if wrong or not kernels else 0


def hold(options):
    return compile_all(options) or check(options)


def measure(options):
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    rows = {}
    for kernel in read_reports(options.out, options.disassembler):
        row = rows.setdefault(kernel["kernel"], {
            "kernel": kernel["kernel"], "threads": 256, "static_shared": 0, "dynamic_shared": 0,
            "after_barrier": {}})
        row[kernel["arch"]] = kernel["registers"]
        row["static_shared"] = max(row["static_shared"], kernel["static_shared"])
        if kernel["sass"]:
            row["after_barrier"][kernel["arch"]] = after_barrier(kernel["sass"])
    for row in rows.values():
        counts = row["after_barrier"]
        writer.writerow(dict(row, after_barrier=" ".join(
            str(counts[arch]) for arch in ARCHES if arch in counts)))
    return 0


def main():
    verbs = {"compile": compile_all, "check": check, "hold": hold, "measure": measure}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=list(verbs))
    parser.add_argument("--nvcc", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--disassembler")
    options = parser.parse_args()
    if options.verb in ("compile", "hold") and not options.nvcc:
        parser.error(options.verb + " needs --nvcc")
    return verbs[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
