"""Words that the project has replaced by the field's terms stay away, and READMEs name every file."""

import fnmatch
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE = (".c", ".h", ".inc", ".cc", ".cpp", ".cu", ".cuh")
TEXT = CODE + (".py", ".sh", ".md", ".txt", ".cmake", ".gp", ".js", ".html", ".css", ".yml")

# A pattern, and what to write instead. Words that are also plain English, such as "place", are held
# only where they stand for the old term.
REPLACED = {
    r"\b(crew|team->|\*team\b)": "thread_pool, pinned_threads",
    r"\bstrikes?\b": "hang_count",
    r"\b(contests?|entrants?|rivals?)\b": "group, candidate, runner_up",
    r"\blb_impl_entry (const )?\*?entry\b|registry->entries\b": "impl_entry, impl_entries",
    r"\blb_exec_config (const )?\*?place\b": "exec_config or config",
    r"\bmeters?\b|_meters?(_|\b)": "timer",
    r"oddity|oddities": "anomaly",
    r"\bculprits?\b": "worst_element",
    r"\bremark(s|ed)?\b": "note",
    r"\bsittings?\b": "session of a run",
    r"\bhand(s|ed)?_down\b": "input_gradient",
    r"\bpatience\b": "spin_limit",
    r"\bwhole_file\b": "atomic_file",
    r"\b(lb_)?is_nearer\b|\bnearest [a-z_]+=": "lb_suggest, lb_is_closer, suggest",
    r"\bshipped\b": "builtin",
    r"\bof those that\b": "a relative clause with a noun: the libraries that it loaded",
    r"\b(the way there|the way back)\b": "forward, backward",
}
# What the pages of the past say of themselves, and this list.
EXEMPT = ("CHANGELOG.md", "tests/test_files.py", "results/quick-cpu/", "results/cpu-")


def files(endings, under=""):
    found = []
    for folder, folders, names in os.walk(os.path.join(ROOT, under)):
        folders[:] = [name for name in folders if not name.startswith(".") and not name.startswith("build")]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names
                  if name.endswith(endings)]
    return sorted(path for path in found if not path.startswith(EXEMPT))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def replaced_words(text):
    """Lines of the text that hold a replaced word, with what to write instead."""
    return [f"{number}: {line.strip()} (write: {instead})"
            for number, line in enumerate(text.splitlines(), 1)
            for pattern, instead in REPLACED.items() if re.search(pattern, line)]


def unnamed_modules(names, page):
    """Modules (files without their endings) that a room's page names neither in `code` nor as a
    [link]. The page may name several at once, as in `export_*.c`."""
    named = [word.split(".")[0] for word in re.findall(r"[`\[]([\w.*]+)", page)]
    return sorted({name.split(".")[0] for name in names} -
                  {name.split(".")[0] for name in names
                   if any(fnmatch.fnmatchcase(name.split(".")[0], word) for word in named)})


def rooms():
    """{folder: names of its code files}, of every folder that has some."""
    held = {}
    for folder in ("harness", "bench", "impls", "cuda"):
        for path in files(CODE, folder):
            held.setdefault(os.path.dirname(path), []).append(os.path.basename(path))
    return held


class Files(unittest.TestCase):
    def test_replaced_words_stay_away(self):
        for path in files(TEXT):
            self.assertEqual(replaced_words(read(path)), [], path)

    def test_a_replaced_word_is_found(self):
        for line in ("struct crew *crew;", "int strikes = 0;", "/* the entrant's rival */",
                     "const struct lb_impl_entry *entry = find();", "sum(p, registry->entries);",
                     "static int run(const struct lb_exec_config *place);", "double lb_meter_ns;",
                     "find_oddities(row);", "  nearest mask=right", "lb_is_nearer(a, b, &d);",
                     "/* Versions of those that it loaded. */", "its patience ends"):
            self.assertNotEqual(replaced_words("\n" + line + "\n"), [], line)
        for line in ("struct dirent *entry;", "takes the place of the other", "rounds to nearest",
                     "const struct lb_impl_entry *impl_entry;", "several parameters a call takes"):
            self.assertEqual(replaced_words(line), [], line)

    def test_every_room_names_its_files(self):
        for room, names in rooms().items():
            self.assertEqual(unnamed_modules(names, read(os.path.join(room, "README.md"))), [], room)

    def test_an_unnamed_file_is_found(self):
        names = ["text.c", "text.h", "xml.c", "export_csv.c", "tile.inc"]
        self.assertEqual(unnamed_modules(names, "- `text`, [xml](xml.c): ...; `export_*.c`"), ["tile"])
        self.assertEqual(unnamed_modules(names, "text and xml export tile"),
                         ["export_csv", "text", "tile", "xml"])


if __name__ == "__main__":
    sys.exit(unittest.main())
