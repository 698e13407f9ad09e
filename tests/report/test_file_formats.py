"""What a run leaves behind, seen by other programs: its lines are what the schema says, and its pictures
say what the lines say. test_export.c checks the other formats. Usage: test_file_formats.py SCHEMA WRITE_RUN PROGRAM
[EMULATOR...]"""

import copy
import json
import math
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

SCHEMA, WRITE_RUN, PROGRAM, *EMULATOR = sys.argv[1:]


def refuse(word):
    raise ValueError(f"{word} is not JSON")


def strict(text):
    return json.loads(text, parse_constant=refuse)


LATER_KEYS = {"error_ratio", "scheme_error", "rate", "stream_calls", "harness_ns", "max_ns", "instances",
              "calls_per_s", "sequences_per_s", # which recorded runs do not have
              *(f"{p}{bound}_ns" for p in ("p90", "p99", "p999") for bound in ("", "_lo", "_hi"))}


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.run_folder = pathlib.Path(cls.folder.name) / "run"
        for words in ([WRITE_RUN, cls.run_folder, "verdicts"],
                      [PROGRAM, "--plot", "speedup-b,time-h,time-b,time-t,roofline,training,precision,error,memory",
                       cls.run_folder]):
            subprocess.run([*EMULATOR, *words], check=True, stderr=subprocess.DEVNULL)
        text = (cls.run_folder / "run.jsonl").read_text()
        assert text.endswith("\n")
        cls.lines = [strict(line) for line in text.splitlines()]
        cls.rows = [line for line in cls.lines if line["kind"] == "row"]
        schema = strict(pathlib.Path(SCHEMA).read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        cls.validator = jsonschema.Draft7Validator(schema)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    # run.jsonl against the schema

    def test_every_line_is_of_the_schema(self):
        self.assertEqual({line["kind"] for line in self.lines}, {"header", "row", "resume", "footer"})
        self.assertEqual({row["verdict"] for row in self.rows},
                         {"ok", "suspect", "wrong", "unsupported", "absent", "oom", "timeout", "crash", "error", "skipped"})
        for line in self.lines:
            self.validator.validate(line)

    def test_schema_names_every_key_of_a_row_and_no_other(self):
        row = self.validator.schema["definitions"]["row"]
        self.assertEqual(set(row["properties"]), set(self.rows[0]) - {"kind"})
        required = set(row["required"]) | set(row["allOf"][0]["else"]["required"])
        self.assertEqual(set(row["properties"]), required | LATER_KEYS)

    def test_recorded_runs_are_of_the_schema(self):
        runs = sorted(pathlib.Path(SCHEMA).parent.glob("*/run.jsonl"))
        self.assertTrue(runs)
        for run in runs:
            lines = [strict(line) for line in run.read_text().splitlines()]
            kinds = {(line.get("verdict"), line.get("impl"), *line): line for line in lines}.values()
            for line in [*kinds, *random.Random(len(lines)).sample(lines, min(20, len(lines)))]:
                self.validator.validate(line)

    def test_schema_explains_every_key_of_a_row(self):
        for key, entry in self.validator.schema["definitions"]["row"]["properties"].items():
            self.assertTrue(entry.get("description"), key)

    def test_broken_lines_are_rejected(self):
        ok = next(row for row in self.rows if row["verdict"] == "ok")
        oom = next(row for row in self.rows if row["verdict"] == "oom")
        wrong = next(row for row in self.rows if row["verdict"] == "wrong")
        breaks = [(ok, key, None) for key in ok.keys() - LATER_KEYS]
        breaks += [(ok, "case", "T1_B1_H1"), (ok, "case", ok["case"] + "/th"), (ok, "hidden", 0), (ok, "hidden", 1.5),
                   (ok, "directions", 3), (ok, "cell", "gru"), (ok, "projection", 0), (ok, "dtype", "int4"), (ok, "verdict", "good"), (ok, "hash", "abc"),
                   (ok, "median_ns", "12"), (ok, "err_norm", -1), (ok, "samples_ns", [1, None]),
                   (ok, "samples_ns", [-1]), (ok, "blocks", [0.5]), (ok, "ragged", 0), (oom, "reason", ""),
                   (wrong, "samples_ns", [1000]), (self.lines[0], "schema", 1), (self.lines[0], "command", []),
                   (self.lines[-1], "interrupted", "no"), (self.lines[-1], "rows", -1)]
        for line, key, value in breaks:
            broken = copy.copy(line)
            if value is None:
                del broken[key]
            else:
                broken[key] = value
            with self.subTest(key=key, value=value):
                self.assertFalse(self.validator.is_valid(broken))

    # Pictures

    def test_every_picture_is_there_and_whole(self):
        scripts = sorted((self.run_folder / "plots").glob("*.gp"))
        self.assertGreaterEqual(len(scripts), 10)
        for script in scripts:
            root = xml.etree.ElementTree.parse(script.with_suffix(".svg")).getroot()
            drawn = [e for e in root.iter() if e.tag.endswith(("path", "polygon", "polyline", "use"))]
            self.assertGreater(len(drawn), 20, script)
            words = " ".join(e.text or "" for e in root.iter() if e.tag.endswith("text"))
            self.assertIn("LSTM", words)
            self.assertIn("is better", words)
            self.assertFalse([e for e in root.iter() if ":" in e.get("font-family", "")])
            self.assertIn("Made-up CPU & <no_such> 'thing'", words.replace("\u00a0", " "))
            self.assertEqual(script.with_suffix(".png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    @staticmethod
    def data(folder, picture):
        """The lines of a picture's data, which are words, and of the headings between them."""
        for line in (folder / "plots" / (picture + ".dat")).read_text().splitlines():
            if line:
                yield line if line.startswith("#") else shlex.split(line)

    def test_charts_show_the_records(self):
        rows = {row["case"]: {key: math.nan if value is None else value for key, value in row.items()}
                for row in self.rows}

        def per_step(row):
            return row["median_ns"] / row["seq_len"]

        def median(case, old, new):
            return rows.get(case.replace(old, new), {"median_ns": math.nan})["median_ns"]

        def fastest_in_f32(row):
            keys = ("pass", "seq_len", "batch", "hidden", "layers")
            return min(other["median_ns"] for other in rows.values() if other["dtype"] == "f32" and
                       other["verdict"] == "ok" and all(other[key] == row[key] for key in keys))

        expected = {
            "time-t_f32_infer": lambda row: (row["seq_len"], per_step(row)),
            "time-b_f32_infer": lambda row: (row["batch"], per_step(row)),
            "time-h_f32_infer": lambda row: (row["hidden"], per_step(row)),
            "training_bf16_train": lambda row: (row["hidden"], row["median_ns"] / median(row["case"], "train", "infer")),
            "precision_bf16_infer": lambda row: (row["hidden"], median(row["case"], "bf16", "f32") / row["median_ns"]),
            "memory_f32_train": lambda row: (row["hidden"], row["peak_bytes"] if row["verdict"] == "ok" else math.nan),
            "roofline_f32_infer": lambda row: (row["flops"] / row["bytes"], row["flops"] / row["median_ns"]),
            "error_train": lambda row: (row["gradient_err_norm"], fastest_in_f32(row) / row["median_ns"])}
        for picture, values in expected.items():
            points = [line for line in self.data(self.run_folder, picture) if line[0] != "#"]
            self.assertGreaterEqual(len(points), 8)
            for x, y, lo, hi, case, _, _ in points:
                for shown, value in zip((x, y), values(rows[case])):
                    self.assertTrue(math.isclose(float(shown), value, rel_tol=1e-12) or
                                    (shown == "nan" and math.isnan(value)), (picture, case, shown, value))
                if y != "nan" and not picture.startswith("memory"):
                    self.assertTrue(float(lo) <= float(y) <= float(hi), (picture, case))

    def draw(self, rows, kind):
        """Draws pictures of that kind of made-up rows; returns the folder of their run."""
        folder = pathlib.Path(self.folder.name) / kind
        folder.mkdir(exist_ok=True)
        (folder / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [self.lines[0], *rows]))
        subprocess.run([*EMULATOR, PROGRAM, "--plot", kind, folder], check=True, stderr=subprocess.DEVNULL)
        return folder

    def test_scaling_is_the_quotient_of_the_medians_on_one_and_on_more_threads(self):
        rows = [{"kind": "row", "case": f"{impl}/T8_B{b}_H64/f32/infer" + (f"/th{threads}" if threads > 1 else ""),
                 "verdict": "ok", "samples_ns": [base / threads ** power * (1 + k / 1000) for k in range(20)]}
                for impl, base, power in (("cpu_simd", 800, 1), ("onednn", 900, 0.5)) for b in (1, 8)
                for threads in (1, 2, 4) if (impl, b, threads) != ("onednn", 8, 1)] # a case without its single one
        points = [line for line in self.data(self.draw(rows, "scaling"), "scaling_f32_infer") if line[0] != "#"]
        shown = {(line[4].split("/")[0], line[4].split("_")[1 if "cpu" not in line[4] else 2], line[0]): float(line[1])
                 for line in points if line[1] != "nan"}
        self.assertEqual(len(points), 9)
        self.assertEqual({key: round(value, 9) for key, value in shown.items()},
                         {("cpu_simd", b, str(n)): n for b in ("B1", "B8") for n in (1, 2, 4)} |
                         {("onednn", "B1", str(n)): round(n ** 0.5, 9) for n in (1, 2, 4)})

    def test_cells_are_quotients_of_medians(self):
        rows, states, panel = {row["case"]: row for row in self.rows}, set(), None
        for line in self.data(self.run_folder, "speedup-b_f32_infer"):
            if line[0] == "#":
                panel = re.match("# (.*), T = (.*)", line) or panel
                continue
            h, b, _, _, speedup, state, _, base, median = line
            row = rows.get(f"{panel[1]}/T{panel[2]}_B{b}_I{h}_H{h}/f32/infer")
            states.add(int(state))
            if row is None:
                self.assertEqual(state, "4")
                continue
            self.assertEqual(state in "03", row["median_ns"] is not None)
            self.assertEqual(state == "2", row["verdict"] in ("wrong", "timeout", "crash", "error"))
            if state == "0":
                self.assertEqual(float(median), row["median_ns"])
                self.assertEqual(float(speedup), float(base) / float(median))
        self.assertGreaterEqual(states, {0, 1, 2, 4})

    def heat_map(self, times):
        """Draws a heat map of the implementations' times, by (H, B), over onednn's; returns its files' folder."""
        rows = [{"kind": "row", "case": f"{impl}/T8_B{b}_H{h}/f32/infer", "verdict": "ok",
                 "samples_ns": [law(h, b) * (1 + k / 1000) for k in range(20)]}
                for impl, law in times.items() for h in (64, 128) for b in (1, 8)]
        return self.draw(rows, "speedup-b")

    def test_cells_whose_intervals_overlap_have_the_sign_of_a_tie(self):
        folder = self.heat_map({"onednn": lambda h, b: 1e6, "cpu_simd": lambda h, b: 9.999e5 if h == 64 else 5e5})
        cells = [line for line in self.data(folder, "speedup-b_f32_infer") if line[0] != "#"]
        self.assertEqual([(cell[0], cell[6][0] == "=") for cell in cells], [("64", True), ("128", False)] * 2)

    def test_one_slow_series_does_not_stretch_the_colours(self):
        # An oracle that is 50 times as slow must not hide differences of 10 % in a wide range of colours.
        for simd, ref, settings in ((1.1e6, 50e6, "range = 1\nclipped = 1\n"),
                                    (1.1e6, 3e6, "range = 2\nclipped = 0\n"), # a factor of two more: all are shown
                                    (40e6, 50e6, "range = 6\nclipped = 0\n")): # both are slow
            folder = self.heat_map({"onednn": lambda h, b: 1e6, "cpu_simd": lambda h, b, t=simd: t,
                                    "cpu_ref": lambda h, b, t=ref: t})
            self.assertIn(settings, (folder / "plots" / "speedup-b_f32_infer.gp").read_text())

    @staticmethod
    def drawn(svg):
        root = xml.etree.ElementTree.parse(svg).getroot()
        return [(e.tag, e.get("d"), e.get("transform"), e.text) for e in root.iter()]

    def test_pictures_draw_again_from_their_own_files(self):
        script = self.run_folder / "plots" / "time-h_f32_infer.gp"
        svg = script.with_suffix(".svg")
        before = self.drawn(svg)
        svg.unlink()
        subprocess.run(["gnuplot", script.name], cwd=script.parent, check=True, stderr=subprocess.DEVNULL)
        self.assertEqual(self.drawn(svg), before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
