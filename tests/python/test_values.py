"""tools/values finds every number that changed, is missing or is new, through the renames of docs/renames.csv."""

import json
import subprocess

OLD = {
    "workload": "w",
    "policy": "take:rr",
    "backend": "sim",
    "cpus": 4,
    "seed": 1,
    "params": {"load": "0.7", "tmc": "2ms", "task": "a b"},
    "metric": "task_bursts",
    "unit": "count",
    "value": 3.25,
    "ci_low": None,
    "ci_high": None,
    "runs": 2,
    "verdict": None,
    "note": "n",
}
NEW = {
    "workload": "w",
    "candidate": "take:rr",
    "world": "sim",
    "cpus": 4,
    "seed": 1,
    "subject_kind": "task",
    "subject": "a b",
    "point": {"load": 0.7, "tmc": {"value": 2, "unit": "ms"}},
    "metric": "task_bursts",
    "unit": "count",
    "value": 3.25,
    "ci_low": None,
    "ci_high": None,
    "runs": 2,
    "verdict": None,
    "effect": 0.5,
    "note": "other words",
}
DIFF = {**OLD, "backend": "diff", "params": {}, "cpus": 0, "metric": "equal_decisions", "unit": "1", "verdict": "equivalent"}
DIFF_NOW = {**NEW, "world": "trace", "point": {}, "subject": None, "cpus": None, "metric": "decisions_until_divergence", "unit": "decisions", "verdict": "equivalent"}


def compare(root, tmp_path, old, new, *options):
    for name, rows in (("old", old), ("new", new)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"rows": rows}))
    run = subprocess.run([root / "tools" / "values", *options, tmp_path / "old.json", tmp_path / "new.json"], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def test_renamed_rows_are_the_same_rows(root, tmp_path):
    code, said = compare(root, tmp_path, [OLD, DIFF], [DIFF_NOW, NEW])
    assert code == 0 and "2 rows, 0 differences; 2 notes" in said, said


def test_every_other_number_is_a_difference(root, tmp_path):
    for changed in (
        [{**NEW, "value": 3.2500000000000004}],
        [{**NEW, "value": None}],
        [{**NEW, "ci_low": 3.0}],
        [{**NEW, "runs": 3}],
        [{**NEW, "verdict": "better"}],
        [{**NEW, "seed": 2}],
        [{**NEW, "point": {**NEW["point"], "load": 0.71}}],
        [{**NEW, "subject": "a"}],
        [NEW, NEW],
        [],
    ):
        code, said = compare(root, tmp_path, [OLD], changed)
        assert code == 4 and "load=0.7" in said, (changed, said)


def test_a_changed_last_digit_is_caught(root, tmp_path):
    assert compare(root, tmp_path, [OLD], [NEW], "--canary")[0] == 4
