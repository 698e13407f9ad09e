"""--explain for the threads of CPUs, here and not here."""

import os
import re
import unittest

from program import ProgramTest, TINY, read_lines, run, write_lines

TEAM = re.compile(r"team (\d+): threads? (\d+)(?:-(\d+))? in L3 domains? (\d+)(?:-(\d+))? and NUMA "
                  r"nodes? (\d+)(?:-(\d+))?: rows? (\d+)(?:-(\d+))? of the batch")


def explained(case, *flags):
    return run("--explain", case, *flags, exit_code=0).stdout


def teams_of(text):
    """[(threads, domains, rows)] of the teams, each as (first, last)."""
    teams = []
    for found in TEAM.findall(text):
        teams.append(tuple((int(found[i]), int(found[i + 1] or found[i])) for i in (1, 3, 7)))
    return teams


class ExplainCpu(ProgramTest):
    """bench-lstm --explain cpu_simd/... --device-model epyc9654"""

    def test_the_plan_says_who_owns_what(self):
        text = explained("cpu_simd/T100_B64_H1024/bf16/train/th64", "--device-model", "epyc9654")
        teams = teams_of(text)
        self.assertEqual([rows for _, _, rows in teams], [(8 * i, 8 * i + 7) for i in range(8)])
        self.assertEqual([threads for threads, _, _ in teams], [(8 * i, 8 * i + 7) for i in range(8)])
        self.assertEqual([domain for _, domain, _ in teams], [(i, i) for i in range(8)])
        units = re.search(r"hidden units of the threads of a team:((?: \d+-\d+)+)\n", text)[1]
        self.assertEqual(units.split(), [f"{128 * i}-{128 * i + 127}" for i in range(8)])
        self.assertRegex(text, r"forward step [\d.e+]+ us: GEMM [\d.]+, weights from L3 [\d.]+, cell ")
        self.assertRegex(text, r"backward step [\d.]+ us: .*barrier [\d.]+\n")
        self.assertIn("ok by its rules on epyc9654; nothing was asked of a device", text)
        self.assertRegex(text, r"CPU floor +[\d.]+ [mu]?s on 64 threads")

    def test_a_list_refuses_more_threads_than_there_are_cpus_here(self):
        for impl in ("cpu_simd", "openblas", "onednn"):
            case = impl + "/T2_B2_H8/f32/infer/th"
            here = run("--list", "--case", case + "1", "--case", case + "255").stdout.splitlines()
            if " absent: " in here[0]:
                continue
            self.assertRegex(here[0], "infer +ok$")
            self.assertRegex(here[1], r"th255 +unsupported: threads 255: this process may use only \d+ of the CPUs$")
        case = "cpu_simd/T2_B2_H8/f32/infer/th"
        there = run("--list", "--case", case + "96", "--case", case + "256", "--device-model", "epyc9654x2").stdout
        self.assertRegex(there, "th96 +ok\n.*th256 +unsupported: threads 256: at most 255 are allowed\n$")

    def test_a_file_describes_a_cpu(self):
        path = self.path("cpu.txt")
        described = "like = epyc9654\nname = EPYC 9554\ncores = 64\ndomains = 8\n"
        self.write("cpu.txt", described)
        text = explained("cpu_simd/T9_B64_H512/f32/infer/th64", "--device-model", path)
        self.assertIn("EPYC 9554 (64 cores, 8 L3 domains, 1 NUMA node)", text)
        self.write("cpu.txt", described + "domain = 3\n")
        for flags in (["--explain", "T9_B64_H512/f32/infer"], ["--list", "-T", "5", "-B", "8", "-H", "8"]):
            run(*flags, "--device-model", path, exit_code=2,
                said="cpu.txt:5: 'domain' is not a key of a machine; did you mean domains?")

    def test_an_unknown_name_is_answered_with_gpus_and_cpus(self):
        run("--explain", "T9_B64_H512/f32/infer", "--device-model", "epyc9655", exit_code=2,
            said="l40s, epyc9654, epyc9654x2, xeon8480")

    def test_this_machine_has_a_plan_for_its_threads_and_no_more(self):
        text = explained("cpu_simd/T9_B64_H512/f32/infer/th4000")
        self.assertRegex(text, r"CPU plan   none: this process has \d+ CPUs for 4000 threads")
        if os.cpu_count() > 1 and len(os.sched_getaffinity(0)) > 1:
            text = explained("cpu_simd/T9_B64_H512/f32/infer/th2")
            self.assertRegex(text, r"CPU plan   cpu_simd with [12] of 2 threads on this machine")
        self.assertNotIn("CPU plan", explained("cpu_simd/T9_B64_H512/f32/infer"))
        self.assertNotIn("CPU plan", explained("cpu_ref/T9_B64_H512/f32/infer/th2"))

    def test_a_run_says_what_the_same_cpu_reaches_and_no_other(self):
        self.sweep("--impl", "cpu_ref", *TINY)
        self.assertIn("  CPU floor  ", explained("T9_B64_H512/f32/infer", "--from", self.path("run")))
        lines = read_lines(self.path("run"))
        lines[0]["environment"]["cpu"] = "another CPU"
        write_lines(self.path("run"), lines)
        self.assertNotIn("CPU floor", explained("T9_B64_H512/f32/infer", "--from", self.path("run")))

    def test_the_record_has_the_topology(self):
        self.sweep("--impl", "cpu_ref", *TINY)
        topology = read_lines(self.path("run"))[0]["environment"]["topology"]
        self.assertEqual(set(topology), {"physical_cores", "threads_per_core", "l3_domains",
                                         "l3_bytes", "numa_nodes", "from_system"})
        self.assertLessEqual(topology["physical_cores"], len(os.sched_getaffinity(0)))


if __name__ == "__main__":
    unittest.main()
