"""Traces as Parquet: the examples of docs/trace.md run, and their numbers are those of `schedlab inspect`."""

import contextlib
import csv
import io
import re
import subprocess

import pandas
import polars
import pytest


@pytest.fixture(scope="module")
def redis(program, root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    recording = root / "workloads" / "redis.perf-script.txt.zst"
    subprocess.run([program, "export", recording, "-o", folder / "redis.parquet"], check=True)
    text = subprocess.run([program, "inspect", recording, "--format", "csv"], check=True, capture_output=True, text=True).stdout
    return folder, list(csv.DictReader(io.StringIO(text)))


def examples(root):
    return re.findall(r"```python\n(.*?)```", (root / "docs" / "trace.md").read_text(), re.DOTALL)


def test_the_examples_of_the_document_run(root, redis, monkeypatch):
    folder, rows = redis
    monkeypatch.chdir(folder)
    of_polars, of_pandas = examples(root)
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(of_polars, names)
        exec(of_pandas, names)
    # What polars says each task ran is what the program says, but for the first run of a CPU, whose beginning no row has.
    ours = {}
    for row in rows:
        if row["metric"] == "task_cpu_time_ns":
            ours[row["subject"]] = ours.get(row["subject"], 0) + float(row["value"])
    theirs = {}
    for task, ns in names["times"].iter_rows():
        name = names["tasks"][task]["name"]
        theirs[name] = theirs.get(name, 0) + ns
    largest = max(theirs, key=theirs.get)
    assert "redis" in largest and abs(theirs[largest] / ours[largest] - 1) < 0.01
    assert names["waits"]["ran_ns"].notna().sum() > 1000 and (names["waits"]["ran_ns"].dropna() >= names["waits"]["time_ns"][: len(names["waits"]["ran_ns"].dropna())].min()).all()
    assert "count" in printed.getvalue()


def test_other_readers_count_the_same(schedlab, redis):
    folder, _ = redis
    events = polars.read_parquet(folder / "redis.parquet")
    text = folder / "redis.txt"
    schedlab("export", folder / "redis.parquet", "-o", text)
    assert (events["event"] == "sched_switch").sum() == text.read_text().count(" sched:sched_switch: ")
    assert events.height == len(pandas.read_parquet(folder / "redis.parquet"))
    assert events["time_ns"].is_sorted()


def test_a_changed_table_is_refused(schedlab, redis, tmp_path):
    import pyarrow.parquet

    folder, _ = redis
    table = pyarrow.parquet.read_table(folder / "redis.parquet")
    changed = tmp_path / "changed.parquet"
    pyarrow.parquet.write_table(table.slice(1), changed)
    refused = schedlab("diff", changed, changed, code=3)
    assert "changed.parquet" in refused
    plain = tmp_path / "other.parquet"
    pandas.DataFrame({"a": [1, 2]}).to_parquet(plain)
    refused = schedlab("export", plain, "-o", tmp_path / "x.txt", code=3)
    assert "schedlab.trace" in refused
