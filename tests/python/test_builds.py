"""tools/builds: what it writes is what a slice takes, a lie in the record is found, and with qemu-user one architecture is counted again."""

import csv
import json
import shutil
import subprocess

import pytest


@pytest.fixture(scope="module")
def builds(module_of):
    return module_of("builds")


@pytest.fixture
def record(root):
    with (root / "papers" / "porter-2021" / "builds.csv").open() as file:
        return [{**row, **json.loads(row["point"])} for row in csv.DictReader(file)]


def test_a_slice_is_what_runs_of_different_length_differ_by(builds):
    assert builds.per_slice(lambda structure, tasks, assignment, slices: 700_000 + 31 * slices, "rr", 10, 1) == 31


def test_the_record_has_every_build_and_the_loop_is_taken_off(builds, record):
    counts = [row for row in record if row["metric"] == "instructions_per_op"]
    expected = {(name, level) for name in builds.ARCHITECTURES for level in builds.LEVELS}
    assert {(row["architecture"], row["optimisation"]) for row in counts} == expected
    assert len(counts) == len(expected) * len(builds.STRUCTURES) * len(builds.TASKS) * builds.ASSIGNMENTS
    fifo = {(row["build"], row["value"]) for row in counts if row["candidate"] == "rr"}
    assert len(fifo) == len(expected), "a FIFO list takes the same whatever the number of tasks"
    assert {row["cache"] for row in record if row["metric"] == "d1_misses_per_op"} == set(builds.CACHES)


def test_two_tables_are_compared_by_what_their_rows_are_about(builds):
    one = builds.row("rr", 10, "instructions_per_op", "instructions", 9.0, build=3, member=1)
    text = builds.table([one], "of this")
    assert builds.values(text) == builds.values(builds.table([one], "of that"))
    assert builds.values(text) != builds.values(builds.table([{**one, "value": "10.0"}], "of this"))


def test_what_is_missing_is_named(root):
    run = subprocess.run([root / "tools" / "builds", "--check", "--only", "x86-64"], capture_output=True, text=True, env={"PATH": "/usr/bin/none", "HOME": "/nowhere"})
    assert run.returncode != 0
    wrong = subprocess.run([root / "tools" / "builds", "--check", "--only", "vax"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "there is no architecture vax" in wrong.stderr


def test_one_architecture_is_counted_again(root, builds, record):
    if not shutil.which("qemu-riscv64"):
        pytest.skip("qemu-user is not installed")
    if {row["provenance"] for row in record} != {builds.source()}:
        pytest.skip("readyq is another one than that on record: tools/builds counts it anew")
    run = subprocess.run([root / "tools" / "builds", "--check", "--only", "riscv64"], capture_output=True, text=True)
    if run.returncode == 77:
        pytest.skip(run.stderr)
    assert run.returncode == 0, run.stderr
