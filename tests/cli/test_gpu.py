"""GPU cases without a GPU: reasons, faults of a fake device, questions about a device model."""

import os
import re
import unittest

from program import BUILD, ProgramTest, planted, plugin, run

CUDNN = ["cudnn", "cudnn:standard", "cudnn:persist_static", "cudnn:persist_dynamic", "cudnn:small_h"]


def explained(problem, *arguments):
    """What --explain says of each implementation: its verdict line, and the note below it."""
    done = run("--explain", problem, *arguments, exit_code=0)
    entries, name = {}, None
    for line in done.stdout.splitlines():
        if line.startswith("    note") and name:
            entries[name] += " | " + line.split("note", 1)[1].strip()
        elif entry := re.match(r"  (\w+(?::\w+)?): (.*)", line):
            name, entries[entry.group(1)] = entry.groups()
    return entries


class DeviceFaults(ProgramTest):
    def test_a_whole_device_runs_all(self):
        rows, _ = self.sweep("-T", "5,7", "-B", "2", "-H", "4", "--pass", "infer,train", "--launch", "stream,graph",
                             "--cache", "hot,cold", "--timing", "isolated,stream", *planted("gpu_fault_none"),
                             "--case-time", "0.02")
        self.assertEqual({row["verdict"] for row in rows.values()}, {"ok"})
        self.assertEqual(len(rows), 24)  # streams are inference alone
        self.assertEqual({tuple(row["reference_ns"]) for row in rows.values()}, {(40000,)})

    def test_peak_memory_does_not_depend_on_the_order_of_cases(self):
        cases = ["gpu_fault_retains/T5_B2_I4_H4/f32/infer", "gpu_fault_retains/T6_B2_I4_H4/f32/infer"]
        peaks = []
        for name, order in ("one", cases), ("other", cases[::-1]):
            rows, _ = self.sweep("--case", order[0], "--case", order[1], "--plugin",
                                 plugin("gpu_fault_retains"), "--case-time", "0.02", name=name)
            peaks.append([rows[case]["peak_bytes"] for case in cases])
        self.assertEqual(*peaks)
        self.assertLess(max(peaks[0]), 1 << 20) # what stays allocated belongs to no case

    def test_what_goes_on_hanging_is_left_alone(self):
        rows, _ = self.sweep("-T", "5,7", "-B", "2,3,4", "-H", "4", "--impl", "gpu_fault_hang,cpu_ref", "--plugin",
                             plugin("gpu_fault_hang"), "--case-time", "0.02", "--call-limit", "3", "--hang-limit", "2",
                             exit_code=1)
        hung = [row for row in rows.values() if row["impl"] != "cpu_ref" and row["seq_len"] == 7]
        self.assertEqual([row["verdict"] for row in hung], ["timeout", "timeout", "skipped"])
        self.assertRegex(hung[2]["reason"], "^gpu_fault_hang has hung 2 times: ")
        self.assertEqual({row["verdict"] for row in rows.values() if row["impl"] == "cpu_ref"}, {"ok"})
        run("--resume", self.path("run"), "--plots", "none", "--plugin",
            plugin("gpu_fault_hang"), exit_code=1, said="1 case is left to run")

    def test_what_was_measured_before_others_hang_is_kept(self):
        # Rounds come in any order: when the third case hangs, some cases of T = 5 are half done.
        rows, _ = self.sweep("-T", "5,7", "-B", "2:20:+1", "-H", "4", "--where", "T==5 || B<=4",
                             *planted("gpu_fault_hang"), "--case-time", "0.02", "--call-limit", "3", "--hang-limit",
                             "3", "--processes", "3", exit_code=1)
        cut = [row for row in rows.values() if row["verdict"] == "ok" and len(row["processes"]) < 3]
        self.assertGreater(len(cut), 0)
        for row in cut:
            self.assertIn(f"the hang limit left it {len(row['processes'])} of 3 processes", row["warning"])

    def test_a_slow_first_call_is_no_sample(self):
        rows, _ = self.sweep("-T", "7", "-B", "2", "-H", "4", *planted("gpu_fault_slow_first"), "--case-time", "0.02")
        row, = rows.values()
        self.assertEqual(row["verdict"], "ok", row["reason"])
        self.assertLess(max(row["samples_ns"]), 1e9)

    def test_a_device_that_is_lost_in_a_question_costs_no_other_answer(self):
        done = run("--list", "-T", "5,7,9", "-B", "2", "-H", "4", *planted("gpu_fault_lost_in_question"))
        said = [line for line in done.stdout.splitlines() if line.startswith("gpu_fault")]
        self.assertEqual([line.split()[1] for line in said], ["ok"] * 3, done.stdout)


CUPTI = os.path.join(BUILD, "tests")


@unittest.skipUnless(any(name.startswith("libcupti.so") for name in os.listdir(CUPTI)), "built without CUPTI")
class Traces(ProgramTest):
    """--kernels with a stub of CUPTI and a fake device: the measurement outlives its trace."""

    def test_a_sound_library_is_heard_and_others_cost_the_kernels_alone(self):
        for mode, launch, said in (("sound", "stream,graph", "^$"),
                                   ("hang", "stream", "^trace did not return within 2 s$"),
                                   ("crash", "stream", r"^Aborted \(signal 6\) in trace$"),
                                   ("old", "graph", r"graphs are traced from CUPTI of CUDA 12\.6 on")):
            rows, done = self.sweep("-T", "5,6", "-B", "2", "-H", "4", *planted("gpu_fault_none"), "--case-time",
                                    "0.02", "--call-limit", "2", "--kernels", "--launch", launch, name=mode,
                                    env={**os.environ, "LD_LIBRARY_PATH": CUPTI, "LB_CUPTI_STUB": mode})
            for row in rows.values():
                self.assertEqual(row["verdict"], "ok", done.stderr)
                self.assertGreater(row["median_ns"], 0)
                self.assertRegex(row["kernels_reason"], said)
                if mode == "sound":
                    self.assertEqual(row["kernel_launches"], 3)


class WithoutADevice(ProgramTest):
    def test_list_shows_every_variant_with_a_reason(self):
        done = run("--list", "-T", "5", "-B", "8", "-H", "256", "--dtype", "f16")
        lines = {line.split("/")[0]: line for line in done.stdout.splitlines()}
        for impl in [*CUDNN, "cuda_naive", "cuda_step"]:
            self.assertRegex(lines[impl], r" (ok|absent: .+|unsupported: .+)$")

    def test_the_table_names_what_is_absent_in_one_line(self):
        done = run("--sweep", "-T", "5", "-B", "2", "-H", "4,8", "--case-time", "0.02", "--plots", "none",
                   "--impl", "cpu_ref,cudnn,cuda_naive,cuda_step,fused", "--out", self.path("run"))
        lines = [line for line in done.stdout.splitlines() if "absent: " in line]
        if not lines:
            self.skipTest("there is a GPU")
        self.assertRegex(lines[0], r"^absent: cudnn \(5 variants\)(, cuda_naive, cuda_step, "
                                   r"fused \(\d+ variants\))?: \w+")
        self.assertLessEqual(len(lines), 2, done.stdout) # without cuDNN there are two reasons
        self.assertNotIn("unsupported", done.stdout)

    def test_no_gpu_of_that_number_is_absent(self):
        if "absent" in run("--list", "--impl", "cuda_step", "-T", "5", "-B", "8", "-H", "8").stdout:
            self.skipTest("no GPU at all")
        run("--list", "--impl", "cuda_step", "-T", "5", "-B", "8", "-H", "8",
            "--device", "99", printed="absent: no CUDA device 99")

    def test_a_model_answers_questions_and_runs_nothing(self):
        run("--sweep", "-T", "5", "-B", "8", "-H", "8", "--device-model", "h100", exit_code=2)
        run("--list", "-T", "5", "-B", "8", "-H", "8", "--device-model", "h900", exit_code=2,
            said="there are a100, h100")

    def test_a_file_describes_a_device(self):
        path, described = self.path("gpu.txt"), "like = rtx4090\nname = My GPU\ncores = 76\n"
        self.write("gpu.txt", described)
        run("--explain", "T25_B16_H512/f16/infer", "--device-model", path, exit_code=0, printed=" SMs of My GPU: 25 steps of ")
        for command in ("--list", "--plan"):
            done = run(command, "-T", "5", "-B", "8", "-H", "8", "--device-model", path, exit_code=0)
            self.assertNotIn("no CUDA device", done.stdout)
        self.write("gpu.txt", described + "l2_byte = 3\n")
        for name, said in ((path, ":4: 'l2_byte' is not a key"), (path + ".not", ": No such file")):
            run("--explain", "T25_B16_H512/f16/infer", "--device-model", name, exit_code=2,
                said=f"--device-model {name}{said}")

    MODELS = {"a100": "A100-SXM4-80GB", "h100": "H100 80GB HBM3", "h100nvl": "NVIDIA H100 NVL",
              "h200": "NVIDIA H200", "b200": "NVIDIA B200", "gb200": "NVIDIA GB200",
              "v100": "Tesla V100-SXM2-32GB",
              "t4": "Tesla T4", "rtx3090": "RTX 3090", "rtx4090": "RTX 4090",
              "rtx5090": "RTX 5090", "l4": "NVIDIA L4", "l40s": "NVIDIA L40S"}

    def test_each_model_has_a_floor(self):
        for model in self.MODELS:
            with self.subTest(model=model):
                said = run("--explain", "T25_B16_H512/f16/infer", "--device-model", model, exit_code=0).stdout
                self.assertRegex(said, rf"  floor +[\d.]+ us on \d+ SMs of {model}: 25 steps of ")


@unittest.skipIf("built without" in
                 run("--list", "--impl", "cudnn", "-T", "5", "-B", "8", "-H", "8").stdout,
                 "built without CUDA or cuDNN")
class Criteria(unittest.TestCase):
    """--explain names the criterion that fails, under each variant of cuDNN."""

    F64 = "unsupported: dtype f64: only the standard and persist_dynamic algorithms take it"

    # The sentence that each variant gets; tests/impls/test_cudnn_rules.c has those of all criteria.
    CASES = {
        "T25_B16_H512/f64/train": [
            "PyTorch's rule picks standard: dtype f64 is not f16",
            "PyTorch's rule picks this: dtype f64 is not f16", F64,
            "PyTorch's rule picks standard, not this: dtype f64 is not f16; it never picks persist_dynamic", F64],
        "T25_B16_H512/f16/infer/act-relu": 5 * [
            "unsupported: act relu: cuDNN's LSTM cell has tanh only (its relu is that of the plain RNN)"],
    }

    def test_every_criterion_is_named(self):
        for problem, sentences in self.CASES.items():
            said = explained("cudnn/" + problem, "--device-model", "h100")
            self.assertEqual(list(said), CUDNN)
            for impl, sentence in zip(CUDNN, sentences):
                with self.subTest(problem=problem, impl=impl):
                    verdict, _, note = said[impl].partition(" | ")
                    if sentence.startswith("unsupported"):
                        self.assertEqual(said[impl], sentence)
                    else:
                        self.assertTrue(verdict.startswith("ok by its rules on NVIDIA H100"))
                        self.assertEqual(note, sentence)

    def test_fused_says_choice_tiles_residency_and_floor(self):
        done = run("--explain", "fused/T1024_B16_I768_H768/f16/infer", "--device-model", "h100", exit_code=0)
        time = r"([\d.]+ [nu]s)"
        floor = re.search(rf"floor +{time} on \d+ SMs of h100: 1024 steps of {time}, weights in registers of \d+; "
                          rf"GEMMs {time}, traffic {time}\n +per step: wait {time}, h {time}, weights {time}, "
                          rf"GEMM {time}, cell {time}\n", done.stdout)
        self.assertIsNotNone(floor, done.stdout)
        total, step, gemms, traffic, *parts = (float(text.split()[0]) * (1e-3 if text.endswith("ns") else 1)
                                               for text in floor.groups())
        self.assertTrue(max(parts) <= step <= sum(parts) + 0.002, floor.group())
        self.assertAlmostEqual(max(1024 * step, gemms, traffic), total, delta=0.01 * total)
        _, _, auto = done.stdout.partition("  fused: ok")
        choice = auto.splitlines()[1] # kernel, clusters, tiles, where the weights reside, why
        self.assertRegex(choice, r"^    runs +\w+: .*blocks .* in registers.* us per step on h100")
        self.assertRegex(auto.splitlines()[2], r"^    memory +weights [\d.]+ MiB")

    def test_fused_is_chosen_for_the_passes_that_are_timed(self):
        # The backward plan of the latter hides no GEMMs.
        for problem in ("T1024_B16_H512", "T1024_B64_H512"):
            chunks = {}
            for timed in ("infer", "forward", "train"):
                said = run("--explain", f"fused/{problem}/f16/{timed}", "--device-model", "h100")
                chunks[timed] = re.findall(r"in chunks of \d+ steps", said.stdout)
            self.assertTrue(chunks["infer"])
            self.assertEqual(chunks["forward"], chunks["infer"])
            self.assertNotEqual(chunks["forward"], chunks["train"])

    def test_the_floor_of_ragged_rows_says_what_it_takes_them_for(self):
        done = run("--explain", "fused/T1024_B64_H1024/f16/infer/ragged", "--device-model", "h100")
        self.assertRegex(done.stdout, r"floor .* us; for rows as short as they can be\n")

    def test_loops_plan_their_memory_without_a_device(self):
        done = run("--explain", "cuda_step/T1024_B16_I768_H768/f16/train", "--device-model", "h100")
        self.assertIn("runs     one input GEMM of all steps", done.stdout)
        # w_ih and w_hh take 2 bytes per element; biases and sums come on top.
        self.assertIn("memory   weights 9.0 MiB, gradients 9.0 MiB", done.stdout)

    def test_each_model_names_itself_where_it_can_run(self):
        for model, name in WithoutADevice.MODELS.items():
            with self.subTest(model=model):
                said = run("--explain", "fused/T25_B16_H512/f16/infer", "--device-model", model, exit_code=0).stdout
                self.assertRegex(said, "  fused: unsupported: needs compute capability 8.0, this is an? "
                                 rf".*{name} \(7.[05]\)" if model in ("v100", "t4") else
                                 f"  fused: ok by its rules on .*{name}")

    def test_relu_gates_are_the_loops_to_run(self):
        said = explained("T25_B16_H512/f16/infer/act-relu", "--device-model", "h100")
        for impl in ("cuda_naive", "cuda_step"):
            self.assertTrue(said[impl].startswith("ok by its rules on NVIDIA H100"), said[impl])


if __name__ == "__main__":
    unittest.main()
