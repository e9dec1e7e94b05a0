"""tools/docs fails for every figure that was changed by hand, and for every one that the program no longer prints."""

import json
import os
import re
import shutil
import subprocess

import pytest

# Says what the result files say, so that these tests measure nothing.
ECHO = """#!/usr/bin/env python3
import json, pathlib, shlex, sys
words = [word for word in sys.argv[1:]]
as_json = words[-2:] == ["--format", "json"]
command = words[:-2] if as_json else words
kept = pathlib.Path({kept!r})
for path in kept.glob("*.json"):
    result = json.loads(path.read_text())
    if result["kind"] == "quick" and shlex.split(result["command"])[1:] == command:
        print(json.dumps({{"rows": result["rows"]}}) if as_json else "\\n".join(result.get("output", [])), end="" if as_json else "\\n")
        break
"""


@pytest.fixture
def checkout(root, tmp_path):
    """A copy of the documents, and a program that prints what the result files of the original have."""
    for folder in ("docs", "papers", "workloads"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.zst", "notebooks", "adr"))
    for page in root.glob("*.md"):
        shutil.copy(page, tmp_path)
    program = tmp_path / "echo"
    program.write_text(ECHO.format(kept=str(root / "docs" / "figures")))
    program.chmod(0o755)
    return tmp_path


def docs(root, checkout, *options):
    environment = {**os.environ, "SCHEDLAB": str(checkout / "echo")}
    run = subprocess.run([root / "tools" / "docs", "--root", checkout, *options], capture_output=True, text=True, env=environment)
    return run.returncode, run.stdout + run.stderr


def change(path, old, new):
    text = path.read_text()
    assert old in text, f"{path} has no `{old}`"
    path.write_text(text.replace(old, new, 1))


def other_digit(text):
    """The text with its last digit changed."""
    at = max(index for index, letter in enumerate(text) if letter.isdigit())
    return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]


def test_documents_have_the_figures_of_their_result_files(root, checkout):
    assert docs(root, checkout, "--check", "--no-run") == (0, "")


def test_filling_twice_changes_nothing(root, checkout):
    assert docs(root, checkout, "--no-run")[0] == 0
    for page in ("README.md", "docs/first-answer.md", "docs/METHODOLOGY.md", "docs/SCHED_EXT.md"):
        assert (checkout / page).read_text() == (root / page).read_text()


@pytest.mark.parametrize("mark", [r"(?s)<!-- figures: lab -->.*?<!-- end -->", r"<!-- =[\w-]+\.[\w-]+ -->[^<]*\d[^<]*<!-- -->", r"(?s)<!-- measured: settled -->.*?<!-- end -->"])
def test_a_digit_changed_in_a_document_is_found(root, checkout, mark):
    page = checkout / ("docs/first-answer.md" if "lab" in mark else "docs/METHODOLOGY.md")
    found = re.search(mark, page.read_text())[0]
    inside = re.search(r"(?s)-->(.*)<!--", found)[1]
    bare = re.sub(r"\*\(as of.*", "", inside)
    bare = bare if "`" not in bare or "```" in bare else bare[: bare.index("`")]
    change(page, found, found.replace(bare, other_digit(bare), 1))
    code, said = docs(root, checkout, "--check", "--no-run")
    assert code == 4 and page.name in said, said


def test_a_digit_changed_in_a_measured_result_file_is_found(root, checkout):
    path = checkout / "docs" / "figures" / "settled.json"
    change(path, '"2825.4"', '"2825.5"')
    code, said = docs(root, checkout, "--check", "--no-run")
    assert code == 4 and "METHODOLOGY.md" in said and "2825.5" in said, said


def test_a_figure_that_the_program_no_longer_prints_is_found(root, checkout):
    options = ["--check", "--only", "lab", "--only", "hackbench-wake-700"]
    assert docs(root, checkout, *options) == (0, "")
    for name, key in (("lab", "output"), ("hackbench-wake-700", "rows")):
        path = checkout / "docs" / "figures" / f"{name}.json"
        before = path.read_text()
        result = json.loads(before)
        if key == "rows":
            result["rows"][0]["value"] += 1e-9 * abs(result["rows"][0]["value"])
        else:
            result["output"][0] = other_digit(result["output"][0])
        path.write_text(json.dumps(result))
        code, said = docs(root, checkout, *options)
        assert code == 4 and f"{name}.json" in said and "the program prints" in said, said
        path.write_text(before)


def test_a_number_without_a_mark_is_found(root, checkout):
    page = checkout / "README.md"
    page.write_text(page.read_text() + "\nIt takes 12.5 % less.\n")
    code, said = docs(root, checkout, "--check", "--no-run")
    assert code == 4 and "`12.5 %` has no mark" in said, said


def test_a_mark_without_a_set_and_a_set_without_a_mark_are_found(root, checkout):
    page = checkout / "README.md"
    page.write_text(page.read_text() + "\n<!-- =lap.makespan -->1 s<!-- -->\n")
    code, said = docs(root, checkout, "--check", "--no-run")
    assert code == 4 and "there is no set of figures `lap`" in said, said
    shutil.copy(root / "README.md", page)
    shutil.copy(checkout / "docs" / "figures" / "settled.json", checkout / "docs" / "figures" / "unsettled.json")
    code, said = docs(root, checkout, "--check", "--no-run")
    assert code == 4 and "unsettled: no document has it" in said, said


def test_make_lab_runs_the_command_of_the_readme(root):
    command = json.loads((root / "docs" / "figures" / "lab.json").read_text())["command"]
    makes = subprocess.run(["make", "-n", "lab"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert command.replace("schedlab ", "target/lab/schedlab ", 1) in makes
