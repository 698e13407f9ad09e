"""A trial of the program by every faulty plug-in of tests/plugins, on a small and a large problem.

Prints one line per plug-in: by what the program caught it, or that it was missed. Plug-ins that are
correct must be ok in every case. Exits with 1 when one was missed or a correct one was not ok. Arguments
are names of plug-ins, all unless given; LB_BUILD is the build folder.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))

from program import BUILD, PROGRAM, read_lines # pylint: disable=wrong-import-position

PLUGINS = os.path.join(BUILD, "tests", "plugins")

# Batch rows and steps that a fault may spare in a small problem are in the large one.
SMALL, LARGE = "T6_B3_I4_H8", "T104_B18_I33_H40"
CELLS = ["-L", "2", "--cell", "standard,layernorm,recurrent-dropout,projection,peephole,residual"] # of cells_*
# The fake device of gpu_fault breaks for this length and for no other.
FAULTY_SEQ_LEN, SPARED = 7, ["--case", "T5_B2_I4_H4", "--case", "T9_B2_I4_H4"]
FAILURES = {"wrong", "timeout", "crash", "error"} # of which one makes the exit code 1

# Plug-ins that are correct, or whose difference is a matter of speed or of text.
CORRECT = {"misbehave_none", "misbehave_chatter", "misbehave_nap", "broken_none", "noted", "own_libraries", "slow_0", "slow_100",
           "cells_none", "leftovers_nothing", "leftovers_idle_pool", "leftovers_brief_spin",
           "gpu_fault_none", "gpu_fault_retains", "gpu_fault_slow_first", "cheats_none", "cheats_own_memory"}

# Faults that no inference shows.
BACKWARD = {"broken_zero_gate_gradient", "broken_dropped_row_in_dw", "broken_dw_in_first_call", "broken_update_loses_a_gate",
            "broken_update_writes_weights", "broken_dw_in_gradients", "broken_update_in_forward", "cheats_idle_backward"}

# What must be said where a verdict that is not ok would not do. A plug-in without an entry is caught by
# any verdict that is a failure, any warning, or a refusal of its plug-in.
EXPECTED = {
    "cheats_cached_and_slow": r"^suspect: a call takes .* times as long with inputs that were in no call before",
    "cheats_memo_garbage": r"^wrong: .*, with inputs that were in no call before",
    "cheats_memo_state": r"with inputs that were in no call before",
    "cheats_memo_half": r"^suspect: a call takes .* times as long with inputs that were in no call before",
    "cheats_dw_late": r"^wrong: gradients does more than convert",
    "cheats_dw_timer": r"^wrong: ",
    "broken_nan_beyond_20": r"^wrong: .* with 30 times as large an x",
    "cheats_dw_unbuffered": r"^suspect: gradients, which is not timed, takes",
    "cheats_y_timer": r"^wrong: call 1 was not finished when it had returned: the end of y was written afterwards",
    "cheats_f16_as_bf16": r"^suspect: low precision",
    "cheats_operations_as_bf16": r"^suspect: low precision",
    "cheats_thread_per_call": r"^suspect: it used .* CPUs while it was timed, and --threads gives it 1",
    "cheats_child_computes": r"^suspect: it used .* CPUs while it was timed, and --threads gives it 1",
    "leftovers_spinning_pool": r"left behind: threads that spin",
    "leftovers_spins_at_load": r"left behind: threads that spin",
    "leftovers_idle_threads": r"left behind: 1 more thread",
    "leftovers_child": r"left behind: 1 child process",
    "leftovers_daemon_child": r"left behind: 1 child process",
    "leftovers_memory": r"left behind: .* of memory",
    "leftovers_file": r"left behind: an open file .*/etc/passwd",
    "leftovers_closed_stdout": r"left behind: file descriptor 1 closed",
    "leftovers_affinity": r"left behind: another CPU affinity",
    "leftovers_priority": r"left behind: priority 5",
    "leftovers_policy": r"left behind: scheduling policy 3",
    "leftovers_rounding": r"left behind: rounding upward",
    "leftovers_flush": r"left behind: flush-to-zero on",
    "leftovers_handler": r"left behind: another handler of signal 10",
    "leftovers_blocked": r"left behind: signal 15 blocked",
    "leftovers_folder": r"left behind: the working directory /",
    "leftovers_locale": r"left behind: the locale C.UTF-8",
    "leftovers_limit": r"left behind: another limit on open files",
    "reload_refuses": r"can't be loaded again: .*does not set forward",
    "reload_null": r"can't be loaded again: .*does not offer interface",
    "reload_vanishes": r"can't be loaded again: .*[Nn]o such file",
    "reload_other_name": r"can't be loaded again: its name is renamed now",
    "reload_crashes": r"signal 11\) in loading",
    "misbehave_past_64k": r"^wrong: y was written past its end, 66048 bytes behind it",
    "misbehave_past_200k": r"^wrong: y was written past its end, 205312 bytes behind it",
    "misbehave_killed": r"^crash: killed from outside",
    "misbehave_hang_with_daemon": r"^timeout: ",
    "misbehave_hang_in_supports": r"^timeout: supports did not return",
    "misbehave_hang_in_sizes": r"^timeout: sizes did not return",
    "misbehave_crash_in_prepare": r"^crash: .* in prepare",
    "misbehave_huge_workspace": r"^oom: needs 1\.0 EiB",
    "broken_dw_in_gradients": r"^wrong: call 1 was not finished when it had returned",
    "broken_update_in_forward": r"^wrong: y .* is NaN",
    "broken_y_in_backward": r"^wrong: forward had returned without cn",
    "broken_hides_overflow": r"^wrong: at loss scale .* no gradient is infinite or NaN, as after an overflow, but d.* off by",
}

LATER = "; the first calls were right$"
EXPECTED |= {
    "cheats_idle_from_third": "^wrong: .*NaN.* in call 3" + LATER,
    "cheats_idle_backward": "^wrong: .*NaN.* in call 3" + LATER,
    "cheats_cached_result": "^wrong: .*off by",
    "cheats_cached_by_contents": "^wrong: faster than this machine can compute it: "
                                 "[0-9.e+]+ GFLOP/s measured, at most [0-9.e+]+$",
    "cheats_same_pointers": "^wrong: .*" + LATER,
    "cheats_cached_by_pointer": "^wrong: .*" + LATER,
    "cheats_wrong_5_to_9": "^wrong: .*off by 1, .* in call 5" + LATER,
    "cheats_wrong_in_100": "^wrong: .*off by 1, .* in call [0-9]*50" + LATER,
    "cheats_writes_inputs": "^wrong: it wrote to x, which it may only read$",
    "cheats_writes_weights": "^wrong: it wrote to the canonical weights, which it may only read$",
    "cheats_writes_weights_late": "^wrong: it wrote to the canonical weights, which it may only read$",
    "cheats_bends_rounding": r"^suspect: low precision: the error is ([5-9](\.\d)?|\d\d) times what f32 gives",
    "cheats_changing_bits": "^wrong: says it is deterministic, but call 7 gave other bits",
    "cheats_unsupported_late": "^error: unsupported, after calls that were right: not today$",
    "cheats_leaks_memory": r"^warning: its calls leak memory: 6[0-9][.0-9]* KiB each, [0-9.]+ MiB in all$",
    "cheats_leaks_descriptors": r"^warning: its calls leave file descriptors behind: 0[.0-9]+ each, [0-9]+ in all$",
    "cheats_leaks_threads": r"^warning: its calls leave threads behind: 0[.0-9]+ each, [0-9]+ in all$",
    "cheats_slow_start": r"^flags: .*(slow_first|drift)",
    "cheats_finishes_in_check": r"was not finished when it had returned",
    "cheats_uses_more_cpus": r"^suspect: it used .* CPUs while it was timed, and --threads gives it 1",
    "misbehave_crash": r"^crash: .*signal 11",
    "misbehave_leave": r"^crash: .*exit code 7",
    "misbehave_hang": r"^timeout: verify did not return within 3 s",
    "misbehave_hang_in_destroy": r"^timeout: .*destroy",
    "misbehave_crash_in_destroy": r"^crash: .*destroy",
    "misbehave_eat": r"^oom: used",
    "misbehave_fail": r"^error: .*the planted failure",
    "misbehave_past_end": r"^wrong: y was written past its end",
    "misbehave_before_start": r"^wrong: cn was written before its start",
    "gpu_fault_absent": r"^absent: ",
    "gpu_fault_oom": r"^oom: needs .*, has 1.0 KiB of device memory",
    "gpu_fault_oom_late": r"^oom: .*out of memory",
    "gpu_fault_illegal_address": r"^error: .*illegal memory access",
    "gpu_fault_no_capture": r"^error: capturing a graph: operation not permitted$",
    "gpu_fault_hang": r"^timeout: .*did not return within 3 s",
    "gpu_fault_hang_upload": r"^timeout: upload did not return within 3 s$",
    "gpu_fault_hang_hash": r"^timeout: verify did not return within 3 s$",
    "gpu_fault_hang_recheck": r"^timeout: (sample|recheck) did not return within 3[.0-9]* s$",
    "gpu_fault_past_end": r"^wrong: y was written past its end$",
    # A wrong later call is found by the hash of device memory.
    "gpu_fault_wrong_later": r"^wrong: .*off by 1, .* in call 9; the first calls were right$",
}


def arguments_of(plugin, path):
    """The arguments of the plug-in's sweep."""
    problems, more = (SMALL, LARGE), []
    hangs = "_hang" in plugin or plugin == "misbehave_slow_to_load"
    computes = plugin.startswith(("broken_", "cells_")) # wrong, and spares its process
    if hangs or plugin.startswith("cells_"): # each problem shows these
        problems = (SMALL,)
    if plugin.startswith("gpu_fault_"):
        problems = [re.sub(r"^T\d+", f"T{FAULTY_SEQ_LEN}", problem) for problem in problems]
        more = SPARED
    passes = {"broken_y_in_backward": "forward", "cheats_bwd_in_fwd": "backward", "cheats_forgets_reserve": "forward",
              "cheats_memo_garbage": "infer", "cheats_memo_state": "infer"}
    dtypes = {"cheats_f16_as_bf16": "f16", "cheats_operations_as_bf16": "f16", "cheats_int8_weights": "bf16",
              "broken_hides_overflow": "f16",
              "broken_update_writes_weights": "f32,f16,bf16", "broken_dw_in_gradients": "f32,f16,bf16",
              "broken_update_in_forward": "f32,f16,bf16"}
    # Calls that leak little, and threads of which the system counts the time at its ticks, are run for longer.
    times = {"cheats_leaks_memory": "1", "cheats_thread_per_call": "0.5", "cheats_child_computes": "0.5"}
    more = more + {"gpu_fault_no_capture": ["--launch", "graph"], "misbehave_eat": ["--memory", "256M"],
                   "broken_hides_overflow": ["--loss-scale", "dynamic"]}.get(plugin, [])
    if plugin.startswith("cells_"):
        more = CELLS
    if plugin.startswith("reload_"):
        more = ["--processes", "2"]
    name = "slow" if plugin.startswith("slow_") else plugin
    return [*(word for problem in problems for word in ("--case", problem)), *more,
            "--impl", name if computes else f"{name},cpu_ref", "--plugin", path, "--plots", "none",
            "--call-limit", "3" if hangs else "60", "--pass", passes.get(plugin, "train" if hangs else "infer,train"),
            "--dtype", dtypes.get(plugin, "f32"), "--case-time", times.get(plugin, "0.05")]


def sentences(plugin, row):
    """What a row says against the plug-in, "" if it is ok without a warning of the plug-in's own; of a row that the
    fault must spare, what it suffered."""
    # The load of the machine is nobody's defect.
    warnings = [text for text in row["warning"].split("; ")
                if text and not text.startswith(("other programs used", "the machine was ",
                                                 "it took less time than its lower bound"))]
    if row["verdict"] == "unsupported":
        return []
    elsewhere = plugin.startswith("gpu_fault_") and row["seq_len"] != FAULTY_SEQ_LEN and row["verdict"] != "absent"
    if row["impl"] == "cpu_ref" or elsewhere or plugin in BACKWARD and row["pass"] == "infer":
        fine = row["verdict"] == "ok" and not warnings
        return [] if fine else [f"{row['case']} paid for it: {row['verdict']}: {row['reason']} {warnings}"]
    said = []
    if row["verdict"] != "ok":
        said.append(f"{row['verdict']}: {row['reason']}")
    if row["verdict"] == "ok" or warnings: # a row with a failure may have a warning too
        said.append("warning: " + "; ".join(warnings) if warnings else "")
    if plugin == "cheats_slow_start" and row["flags"]: # honest rows may have flags too
        said.append("flags: " + row["flags"])
    return said


def try_plugin(plugin):
    """What was said of the plug-in in a sweep."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(PLUGINS, plugin + ".so")
        if plugin.startswith("reload_"): # it changes its own file
            path = shutil.copy(path, scratch)
        done = subprocess.run([PROGRAM, "--sweep", *arguments_of(plugin, path), "--out", scratch + "/run"],
                              capture_output=True, text=True, errors="replace", timeout=900, check=False, cwd=scratch)
        refused = not os.path.exists(scratch + "/run/run.jsonl")
        rows = [] if refused else [entry for entry in read_lines(scratch + "/run") if entry["kind"] == "row"]
    if refused:
        return ["refused: " + done.stderr.strip().splitlines()[-1].removeprefix("bench-lstm: ")]
    said = [text for row in rows for text in sentences(plugin, row)]
    if done.returncode != any(row["verdict"] in FAILURES for row in rows):
        said.append(f"a script paid for it: exit code {done.returncode}")
    return said


def judge(plugin, said):
    """(fine, by what it was caught or what is wrong) of everything that was said of it."""
    costs = [text for text in said if " paid for it: " in text]
    if costs:
        return False, costs[0]
    if plugin in CORRECT:
        faults = [text for text in said if text]
        return not faults, faults[0] if faults else "ok, as it should be"
    wanted = EXPECTED.get(plugin, ".")
    found = [text for text in said if re.search(wanted, text)]
    return bool(found), found[0] if found else "MISSED" + (f"; said: {said}" if any(said) else "")


def outcomes(plugins):
    """Each plug-in with what was said of it. A sweep waits half of its time, so that twice as many run at once as there
    are CPUs; but those alone, at the end, that are caught by how many CPUs they use."""
    alone = [plugin for plugin in plugins if "CPUs" in EXPECTED.get(plugin, "")]
    others = [plugin for plugin in plugins if plugin not in alone]
    with concurrent.futures.ThreadPoolExecutor(2 * len(os.sched_getaffinity(0))) as pool:
        yield from zip(others, pool.map(try_plugin, others))
    for plugin in alone:
        yield plugin, try_plugin(plugin)


def main(arguments):
    plugins = arguments
    if not plugins:
        with open(os.path.join(PLUGINS, "faulty_plugins.txt"), encoding="utf-8") as file:
            plugins = sorted(file.read().split())
        if len(os.sched_getaffinity(0)) == 1: # where no thread can use another one
            plugins.remove("cheats_uses_more_cpus")
    bad = 0
    for plugin, said in outcomes(plugins):
        fine, words = judge(plugin, said)
        bad += not fine
        words = re.sub(re.escape(PLUGINS) + "/|/tmp/[^ :]*/", "", words)
        state = "ok" if fine and plugin in CORRECT else "caught" if fine else "MISSED"
        print(f"{state:7} {plugin:30} {words}", flush=True)
    print(f"{len(plugins)} plug-ins, {bad} missed or not as they should be", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
