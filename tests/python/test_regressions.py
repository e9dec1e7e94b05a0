"""tools/regressions: the record of the gate is what its numbers say, and the program still judges so."""

import csv

import pytest


@pytest.fixture(scope="module")
def regressions(module_of):
    return module_of("regressions")


@pytest.fixture
def record(root):
    with (root / "docs" / "gate.csv").open() as file:
        return list(csv.DictReader(file))


def wrong(record):
    """Rows in which the gate did not do what their number asks for."""
    found = []
    for row in record:
        expected = "caught" if row["kind"] == "regression" else "passed"
        is_beyond = row["difference"] != "" and float(row["difference"]) > 0.01
        if row["gate"] != expected or is_beyond != (row["kind"] == "regression"):
            found.append(row)
        elif row["kind"] == "regression" and row["bisect"] != "named":
            found.append(row)
    return found


def test_each_regression_is_caught_and_named_and_nothing_else(record, regressions):
    kinds = [row["kind"] for row in record]
    assert [kinds.count(kind) for kind in ("regression", "harmless", "neutral", "perturbation")] == [7, 5, 20, 100]
    assert [(row["kind"] == "regression", row["change"]) for row in record[:12]] == [(costs, subject) for subject, _, costs in regressions.HISTORY]
    assert wrong(record) == []
    # A regression of 1 % is caught in one run.
    assert min(float(row["difference"]) for row in record if row["kind"] == "regression") < 0.012
    # The column has five digits.
    assert all(abs(float(row["difference"])) <= 1e-5 for row in record if row["kind"] in ("harmless", "neutral"))
    for change in ({"gate": "passed"}, {"difference": "0.009"}, {"bisect": "named another instead"}):
        assert len(wrong([{**record[1], **change}])) == 1
    assert len(wrong([{**record[0], "gate": "caught"}])) == 1


def test_the_program_judges_other_seeds_as_the_record_says(record, regressions, program, tmp_path):
    rows = []
    regressions.perturbations(regressions.Lab(program, tmp_path), rows, 1)
    first = next(row for row in record if row["kind"] == "perturbation")
    assert rows == [[first[name] for name in ("kind", "change", "instructions_per_yield", "difference", "gate", "bisect")]]
