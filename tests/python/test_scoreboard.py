"""The scoreboard of predictions is what its data gives, and a hash chose what is held out."""

import json
import shutil
import subprocess
import sys

import pytest


def scoreboard(root, place, *words):
    return subprocess.run([sys.executable, root / "tools" / "scoreboard", "--root", place, *words], capture_output=True, text=True, check=False)


@pytest.fixture
def tool(module_of):
    return module_of("scoreboard")


def test_the_page_is_that_of_the_data(root, tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("docs/scoreboard.json", "docs/scoreboard.md", "README.md"):
        shutil.copy(root / name, tmp_path / name)
    assert scoreboard(root, tmp_path, "--check").returncode == 0
    data = json.loads((tmp_path / "docs/scoreboard.json").read_text())
    pair = next(pair for of in data["pairs"].values() for pair in of.values() if pair["cells"])
    next(iter(pair["cells"].values()))[0][0] += 0.5
    (tmp_path / "docs/scoreboard.json").write_text(json.dumps(data))
    changed = scoreboard(root, tmp_path, "--check")
    assert changed.returncode == 4 and "scoreboard.md" in changed.stderr, changed.stderr
    shutil.copy(root / "docs/scoreboard.json", tmp_path / "docs/scoreboard.json")
    readme = (tmp_path / "README.md").read_text()
    (tmp_path / "README.md").write_text(readme.replace("signs of changes", "signs of all changes"))
    changed = scoreboard(root, tmp_path, "--check")
    assert changed.returncode == 4 and "README.md" in changed.stderr, changed.stderr


def test_what_is_held_out_is_a_third_and_not_in_the_data_before_its_time(root, tool):
    held_out, others = tool.pairs(True), tool.pairs(False)
    assert 0.3 < len(held_out) / (len(held_out) + len(others)) < 0.45
    assert not set(tool.SEEN) & set(held_out)
    data = json.loads((root / "docs/scoreboard.json").read_text())
    known = {(name, change) for name, of in data["pairs"].items() for change in of}
    page = (root / "docs/scoreboard.md").read_text()
    assert known <= set(held_out) | set(others)
    assert bool(known & set(held_out)) == ("They were measured once" in page)
    # Another list is refused, whatever the data.
    tool.CHANGES.append("nice=11")
    assert tool.hash_of_list() != tool.HELD_OUT


def test_a_score_counts_signs_errors_and_intervals(tool):
    exactly = lambda mean: [mean, mean, mean]  # noqa: E731
    pair = lambda *cells: {"cells": {str(number): list(cell) for number, cell in enumerate(cells)}}  # noqa: E731
    score = tool.Score([
        pair((exactly(0.1), exactly(0.3)), (exactly(-0.1), exactly(0.3))),
        pair((exactly(0.0), exactly(-0.5)), (exactly(-0.1), [0.3, 0.01, 0.59])),
        pair((exactly(-0.1), exactly(0.019))),
        pair(),
    ])  # fmt: skip
    # The same cells as in the program's own test of its score.
    assert (len(score.cells), len(score.clusters), score.changed, score.right) == (5, 3, 3, 1)
    assert abs(score.median() - 40) < 1e-9 and abs(score.worst() - 50) < 1e-9
    assert score.covered() == 0 and score.interval() == (0, 0)
    right = [pair(*[(exactly(0.3), exactly(0.3))] * 10), pair(*[(exactly(0.1), exactly(0.3))] * 10)]
    assert tool.Score(right).covered() == 0.5 and tool.Score(right).interval() == (0, 1)
