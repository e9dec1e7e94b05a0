"""tools/truth: the tables of docs/METHODOLOGY.md are what docs/truth.json gives; a replay of the kept recording is what it says."""

import json
import subprocess

import pytest


@pytest.fixture
def checkout(copy_of_docs):
    return copy_of_docs("truth.json", "METHODOLOGY.md")


@pytest.fixture
def truth(code_of):
    return code_of("truth")


@pytest.fixture
def tool(module_of):
    return module_of("truth")


def data(checkout):
    return json.loads((checkout / "docs" / "truth.json").read_text())


def test_the_page_is_what_the_data_gives(root, truth):
    assert truth(root, "--check") == 0


def test_every_program_has_ten_runs_under_every_condition(root):
    measured = data(root)
    assert len(measured["real"]) >= 8
    named = " ".join(measured["failed"])
    for program, conditions in measured["real"].items():
        assert len(conditions) >= 3
        for condition, metrics in conditions.items():
            runs = len(metrics["makespan"])
            assert runs == 10 or f"{program}, {condition}" in named, f"{program} under {condition} has {runs} runs and no reason"


def test_a_real_number_that_differs_is_found(checkout, truth):
    changed = data(checkout)
    program = next(iter(changed["real"].values()))
    metrics = next(iter(program.values()))
    metrics["makespan"] = [2 * value for value in metrics["makespan"]]
    (checkout / "docs" / "truth.json").write_text(json.dumps(changed))
    assert truth(checkout, "--check") == 4


def test_a_figure_that_was_changed_by_hand_is_found_and_mended(checkout, truth):
    page = checkout / "docs" / "METHODOLOGY.md"
    kept = page.read_text()
    begin = kept.index("<!-- truth -->")
    digit = next(at for at in range(begin, len(kept)) if kept[at].isdigit())
    page.write_text(kept[:digit] + str((int(kept[digit]) + 1) % 10) + kept[digit + 1 :])
    assert truth(checkout, "--check") == 4
    assert truth(checkout) == 0
    assert page.read_text() == kept


def made(tool, real_a, real_b, sim_a, sim_b):
    """Data of one program under two conditions, the same numbers for every metric."""
    real = {"p": {"a": {metric: real_a for metric in tool.METRICS}, "b": {metric: real_b for metric in tool.METRICS}}}
    quartiles = {to: {metric: tool.quartiles(values) for metric in tool.METRICS} for to, values in (("a", sim_a), ("b", sim_b))}
    return {"real": real, "replayed": {mode: {"p": {"a": quartiles}} for mode in tool.MODES}}


def test_a_wrong_sign_and_a_cell_outside_the_quartiles_are_seen(tool):
    near, far = [98, 99, 100, 101, 102], [198, 199, 200, 201, 202]
    right = {cell["to"]: cell for cell in tool.cells(made(tool, near, far, near, far)) if cell["metric"] == "makespan" and cell["mode"] == "program"}
    assert right["a"]["inside"] and right["a"]["error"] == 0 and "sign" not in right["a"]
    assert right["b"]["sign"] and right["b"]["inside"]
    wrong = {cell["to"]: cell for cell in tool.cells(made(tool, near, far, near, [50] * 5)) if cell["metric"] == "makespan" and cell["mode"] == "program"}
    assert not wrong["b"]["sign"] and not wrong["b"]["inside"]
    assert wrong["b"]["error"] == 0.75


def test_a_change_that_may_be_chance_has_no_sign(tool):
    wide = [50, 80, 100, 120, 150]
    cells = tool.cells(made(tool, wide, wide[::-1], wide, wide))
    assert all("sign" not in cell for cell in cells)


def test_the_kept_recording_gives_the_same_numbers(root, program, tool):
    cell = data(root)["cell"]
    for mode in tool.MODES:
        words = ["compare", cell["recording"], "--replay", mode, "--ensemble", "1", "--by", "comm", "--format", "json", "--apply", cell["setting"]]
        done = subprocess.run([program, *words], cwd=root, capture_output=True, text=True, check=True)
        rows = json.loads(done.stdout)["rows"]
        assert tool.numbers(rows, "recorded", ["hackbench"]) == cell["numbers"]["recorded"]
        assert tool.numbers(rows, cell["setting"], ["hackbench"]) == cell["numbers"][mode], "an intended change: tools/truth --cell"
    assert cell["numbers"]["program"] != cell["numbers"]["schedule"]
