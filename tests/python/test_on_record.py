"""tools/on-record: only what was measured gets on record, in its place, and nothing else changes."""

import json
import subprocess

import pytest

HEAD = "workload,point,metric,value\n"


@pytest.fixture(scope="module")
def on_record(module_of):
    return module_of("on_record.py")


def row(claim, value, metric="check", key="claim"):
    point = json.dumps({key: claim}).replace('"', '""')
    return f'w,"{point}",{metric},{value}\n'


def test_rows_take_the_place_of_those_of_the_same_claim_and_no_others(on_record):
    put = lambda record, wanted: on_record.put(record, measured, on_record.claim, wanted)
    record = HEAD + row("A", 1) + row("B", 2) + row("B", 3) + row("C", 4)
    measured = HEAD + row("B", 7) + row("B", 8) + row("C", 9)
    assert put(record, ["B"]) == HEAD + row("A", 1) + row("B", 7) + row("B", 8) + row("C", 4)
    assert put(record, ["B", "C"]).endswith(row("B", 8) + row("C", 9))
    assert put(HEAD + row("A", 1), ["B"]) == HEAD + row("A", 1) + row("B", 7) + row("B", 8)


@pytest.mark.parametrize(("measured", "why"), [(row("A", 1), "nothing was measured of B"), (row("B", ""), "no number for B"), (row("B", 1, "makespan_ns"), "nothing was measured")])
def test_what_was_not_measured_leaves_the_record_alone(on_record, measured, why):
    with pytest.raises(ValueError, match=why):
        on_record.put(HEAD + row("B", 2), HEAD + measured, on_record.claim, ["B"])


def test_the_tool_puts_claims_and_ensembles_in_their_files(root, tmp_path):
    tool = tmp_path / "tools/on-record"
    tool.parent.mkdir()
    for name in ("on-record", "on_record.py"):
        (tool.parent / name).write_bytes((root / "tools" / name).read_bytes())
    tool.chmod(0o755)
    paper, measured = tmp_path / "papers/x", tmp_path / "out"
    (measured / "x").mkdir(parents=True)
    paper.mkdir(parents=True)
    (paper / "record.csv").write_text(HEAD + row("A", 1) + row("B", 2))
    (measured / "results.csv").write_text(HEAD + row("A", 3) + row("B", 4))
    ensembles = HEAD + row("compare a", 1, "makespan_ns", "run")
    (measured / "x/ensembles.csv").write_text(ensembles)
    put = lambda *words: subprocess.run([tool, *words], capture_output=True, text=True)
    assert put("x", measured, "--only", "B").stdout.split() == ["papers/x/record.csv", "papers/x/ensembles.csv"]
    assert (paper / "record.csv").read_text() == HEAD + row("A", 1) + row("B", 4)
    assert (paper / "ensembles.csv").read_text() == ensembles
    more = HEAD + row("compare a", 2, "makespan_ns", "run") + row("compare b", 3, "makespan_ns", "run")
    (measured / "x/ensembles.csv").write_text(more)
    assert put("x", measured).returncode == 0
    assert (paper / "ensembles.csv").read_text() == more
    for words, why in ((("y", measured), "papers/y/record.csv: No such file"), (("x", tmp_path), "results.csv: No such file"), (("x", measured, "--only", "C"), "nothing was measured of C")):
        done = put(*words)
        assert done.returncode and why in done.stderr, done.stderr
