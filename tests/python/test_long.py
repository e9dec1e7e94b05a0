"""tools/long: each test that CI leaves out is on record with the commit at which it passed; marks are found, and neither a failed nor a skipped test has passed."""

import csv
import re
import subprocess

import pytest


@pytest.fixture
def long(module_of):
    return module_of("long")


def test_every_long_test_is_on_record_and_has_passed(long):
    with long.RECORD.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["suite"], row["test"]) for row in rows] == sorted((suite, test) for suite, tests in long.marked().items() for test in tests), "run tools/long with the names of those that differ"
    not_passed = [row for row in rows if not re.fullmatch("[0-9a-f]{7,}", row["passed_at"])]
    assert not not_passed, "mend these, commit, and run tools/long with their names"


def test_marks_are_found_in_both_languages(long, tmp_path, monkeypatch):
    rust = tmp_path / "crates/some/tests/vm/objects.rs"
    rust.parent.mkdir(parents=True)
    rust.write_text('#[test]\n#[ignore = "long: tools/long"]\nfn a() {}\n#[test]\nfn b() {}\n#[ignore = "by hand"]\nfn c() {}\n')
    python = tmp_path / "tests/python/test_it.py"
    python.parent.mkdir(parents=True)
    python.write_text("@pytest.mark.long\n@pytest.mark.parametrize('x', [1])\ndef test_d(x):\n    pass\n\ndef test_e():\n    pass\n")
    monkeypatch.setattr(long, "ROOT", tmp_path)
    assert long.marked() == {"some/vm": ["a"], "tests/python/test_it.py": ["test_d"], "tools": sorted(long.COMMANDS)}


def test_neither_a_failed_nor_a_skipped_test_has_passed(long):
    said = """
test objects::good ... ok
test bad ... FAILED
test skips ... ok

---- objects::good stdout ----
so it is

---- skips stdout ----
skipped: real kernels: there is no QEMU

test result: FAILED. 2 passed; 1 failed
"""
    assert long.passed_of(said, ["good", "bad", "skips", "missing"]) == {"good"}


def test_a_name_that_no_test_has_is_said(root):
    run = subprocess.run([root / "tools/long", "no_such_test"], capture_output=True, text=True)
    assert run.returncode == 2 and "no_such_test" in run.stderr
