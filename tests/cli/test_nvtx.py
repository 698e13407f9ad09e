"""NVTX ranges: balanced, nested, named, with their payloads, and none within timed regions."""

import glob
import os
import unittest

import nvtx_events
from program import BUILD, ProgramTest, TINY, call, planted, read_rows

RECORDER = os.path.join(BUILD, "tests", "nvtx", "nvtx_recorder.so")


class NvtxTest(ProgramTest):
    """A test that runs a program under the recorder."""

    def record(self, *arguments, program="bench-lstm", preload=False, exit_code=0):
        """Runs a sweep; returns its rows in order and the events of each process that has any."""
        for path in glob.glob(self.path("events.*")) + glob.glob(self.path("run/*.*")): # of the sweep before
            os.remove(path)
        run = self.path("run")
        env = dict(os.environ, NVTX_INJECTION64_PATH=RECORDER, NVTX_RECORDER_OUT=self.path("events"))
        if preload:
            env["LD_PRELOAD"] = RECORDER
        call(os.path.join(BUILD, program), "--sweep", "--out", run, *arguments, env=env, exit_code=exit_code)
        processes = nvtx_events.read_events(self.path("events"))
        ranges = [events for events in processes if any(event["event"] == "push" for event in events)]
        return list(read_rows(run).values()), ranges


class Ranges(NvtxTest):
    def test_every_case_of_a_sweep_has_its_ranges(self):
        problems = ("T3_B2_H4_L2/f64/infer", "T4_B2_H4_L2_D2/f32/forward", "T3_B1_I5_H4_D2/f64/backward",
                    "T3_B2_H6/f32/train")
        rows, processes = self.record(*(word for problem in problems for word in ("--case", problem)), "--impl",
                                      "cpu_ref,cpu_simd", "--case-time", "0.01")
        self.assertEqual(len(rows), 2 * len(problems))
        self.assertEqual(len(processes), 1, "all cases ran in one worker")
        self.assertEqual(nvtx_events.complaints(processes[0], rows), [])

    def test_a_batch_of_samples_is_one_range(self):
        rows, processes = self.record(*TINY, "--impl", "cpu_ref", "--benchmark_repetitions=3", "--case-time", "0.02")
        self.assertEqual(len(rows[0]["blocks"]), 3)
        self.assertGreater(len(rows[0]["samples_ns"]), 18)
        self.assertEqual(nvtx_events.complaints(processes[0], rows * 3), [])

    def test_cases_that_do_not_run_close_their_ranges(self):
        rows, processes = self.record(*TINY, "--impl", "openblas", "--dtype", "f32,f16", "--pass", "infer,train")
        self.assertEqual({row["verdict"] for row in rows}, {"ok", "unsupported"})
        self.assertEqual(nvtx_events.complaints(processes[0], rows), [])

    def test_ranges_carry_no_payload_where_nvtx_has_none(self):
        rows, processes = self.record(*TINY, "--impl", "cpu_ref", program="tests/nvtx/bench-lstm-nvtx-plain")
        wrong = nvtx_events.complaints(processes[0], rows)
        self.assertGreater(len(wrong), len(nvtx_events.PHASES)) # the case and its phases
        self.assertEqual([text for text in wrong if "payload is None, not" not in text], [])

    def test_failures_close_their_ranges(self):
        for name, verdict in (("misbehave_fail", "error"), ("broken_idle_after_first", "wrong")):
            with self.subTest(name):
                rows, processes = self.record(*TINY, *planted(name), exit_code=1)
                self.assertEqual([row["verdict"] for row in rows], [verdict])
                self.assertEqual(nvtx_events.complaints(processes[0], rows), [])


class TimedRegions(NvtxTest):
    """The recorder notes clock readings and calls among the NVTX events."""

    ARGUMENTS = [*TINY, *planted("noted"), "--pass", "infer,train", "--timing", "isolated,batched"]

    def test_nothing_is_emitted_within_what_is_timed(self):
        rows, processes = self.record(*self.ARGUMENTS, preload=True)
        self.assertEqual(len(rows), 4)
        self.assertEqual(nvtx_events.complaints(processes[0], rows), [])
        self.assertEqual(nvtx_events.emitted_inside(processes[0]), [])
        regions = nvtx_events.timed_regions(processes[0])
        timed = [region for phase, region in regions if phase == "timed"]
        # The check of a sample of several calls makes another batch of them.
        samples = sum(len(row["samples_ns"]) for row in rows)
        again = sum(row["checked_calls"] for row in rows if row["calls_per_sample"] > 1)
        self.assertGreater(again, 0)
        self.assertTrue(samples <= len(timed) <= samples + again, (samples, again, len(timed)))

    def test_backward_is_timed_apart_from_the_forward_before_it(self):
        rows, processes = self.record(*TINY, *planted("noted"), "--pass", "backward", preload=True)
        calls = [sum(event["event"] == "call" for event in region)
                 for phase, region in nvtx_events.timed_regions(processes[0]) if phase == "timed"]
        self.assertEqual(calls, [1] * 2 * len(rows[0]["samples_ns"]))

    def test_a_mark_within_is_found(self):
        _, processes = self.record(*self.ARGUMENTS, program="tests/nvtx/bench-lstm-nvtx-inside", preload=True)
        self.assertIn("sample", [event["name"] for event in nvtx_events.emitted_inside(processes[0])])


class Mutants(NvtxTest):
    def test_a_range_that_is_left_open_or_misnamed_is_found(self):
        for fault, said in (("open", "left open: cpu_ref/T"), ("misnamed", "'verify', 'timed', 'timed'")):
            rows, processes = self.record(*TINY, "-T", "4", "--impl", "cpu_ref",
                                          program="tests/nvtx/bench-lstm-nvtx-" + fault)
            self.assertIn(said, " ".join(nvtx_events.complaints(processes[0], rows)))


if __name__ == "__main__":
    unittest.main()
