"""The pages for teachers are what the records give, and a record that changes is seen."""

import csv
import io
import shutil
import subprocess

STUDIES = ("porter-2021", "curran-stumm-1990", "pslist", "preempt-none", "st-andrews", "td-tp")


def check(root, checkout):
    return subprocess.run([root / "tools/studies", "--check", "--root", checkout], capture_output=True, text=True)


def test_pages_are_up_to_date(root):
    done = check(root, root)
    assert done.returncode == 0, done.stderr


def test_a_changed_record_and_a_wrong_source_are_seen(root, tmp_path):
    for name in STUDIES:
        (tmp_path / "papers" / name).mkdir(parents=True)
        for file in ("claims.toml", "record.csv", "teaching.toml", "verdicts.md"):
            shutil.copy(root / "papers" / name / file, tmp_path / "papers" / name)
    shutil.copytree(root / "docs/studies", tmp_path / "docs/studies")
    assert check(root, tmp_path).returncode == 0
    record = tmp_path / "papers/td-tp/record.csv"
    record.write_text(record.read_text().replace(",holds,", ",does-not-hold,", 1))
    done = check(root, tmp_path)
    assert done.returncode == 4, done.stderr
    assert "docs/studies/td-tp.md" in done.stderr and "papers/td-tp/verdicts.md" in done.stderr, done.stderr
    told = tmp_path / "papers/pslist/teaching.toml"
    told.write_text(told.read_text().replace('ours = "{', 'ours = "{X-', 1))
    done = check(root, tmp_path)
    assert done.returncode == 4 and "papers/pslist/teaching.toml" in done.stderr, done.stderr


def test_the_verdicts_on_applications_are_those_of_the_simulator(root, schedlab):
    with (root / "papers/st-andrews/applications.csv").open() as file:
        record = [row for row in csv.DictReader(file) if row["recording"] == "groff"]
    output = schedlab("compare", root / "workloads/causes/groff.rec.zst", "--policy", "cfs,o1,mlfq,eevdf", "--baseline", "eevdf", "--format", "csv")
    rows = {(row["candidate"], row["metric"]): row for row in csv.DictReader(io.StringIO(output)) if not row["subject"]}
    assert len(record) == 6
    for one in record:
        row = rows[one["policy"], one["metric"]]
        assert (f"{float(row['value']):.6g}", row["verdict"]) == (one["value"], one["verdict"]), one
