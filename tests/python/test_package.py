"""The package against the program: the same rows to the last digit, the same messages; tables that other libraries take without a copy."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest

import schedlab as lab
from schedlab.workload import closed, loop, run, sleep, task

TASKS = {"tasks": 60}


def csv(results):
    return results.to_csv()


def test_comparisons_have_the_programs_rows(schedlab, root):
    recording = root / "workloads" / "sqlite-and-xz.perf.data.zst"
    policies = ["eevdf", "take:rr", "central:priority"]
    options = ["--policy", ",".join(policies), "--ci", "100%", "--format", "csv"]
    ours = lab.compare(recording, policies, cpus=2, ci="100%")
    assert csv(ours) == schedlab("compare", recording, "--cpus", 2, *options)
    ours = lab.compare("hackbench:1", policies, cpus=[1, 4], seed=7, ci="100%", switch_cost="2us")
    assert csv(ours) == schedlab("compare", "hackbench:1", "--cpus", "1,4", "--seed", 7, "--switch-cost", "2us", *options)
    ours = lab.compare("unix1990", ["take:rr", "central:rr"], load=[0.3, 0.6], parameters=TASKS, ci="100%")
    program = ["--policy", "take:rr,central:rr", "--load", "0.3,0.6", "--set", "tasks=60", "--ci", "100%", "--format", "csv"]
    assert csv(ours) == schedlab("compare", "unix1990", *program)
    assert ours.reproduce.startswith("schedlab compare unix1990 --on=sim --policy=take:rr,central:rr --load=0.3,0.6")
    assert "take:rr" in repr(ours) and "<pre>" in ours._repr_html_()


def test_other_machines_and_second_workloads_are_keywords(schedlab, root, tmp_path):
    machine = root / "workloads" / "machines" / "big-little.toml"
    ours = lab.compare("hackbench:1", ["eevdf", "take:rr"], machine=machine, ci="100%")
    options = ["--policy", "eevdf,take:rr", "--machine", machine, "--ci", "100%", "--format", "csv"]
    assert csv(ours) == schedlab("compare", "hackbench:1", *options)
    assert csv(lab.simulate("yield:8", "cfs", machine=machine)) == schedlab("run", "yield:8", "--policy", "cfs", "--machine", machine, "--format", "csv")
    recording = root / "workloads" / "groff.perf-script.txt.zst"
    beside = closed(task("hog", [loop(20, run("5ms"), sleep("5ms"))], count=2), cpus=2)
    file = tmp_path / "beside.toml"
    beside.save(file)
    ours = lab.compare(recording, ["eevdf"], cpus=2, ci="100%", add_load=file)
    assert csv(ours) == schedlab("compare", recording, "--policy", "eevdf", "--cpus", 2, "--add-load", file, "--ci", "100%", "--format", "csv")
    made_here = lab.compare(recording, ["eevdf"], cpus=2, ci="100%", add_load=beside)
    values = [[row["value"] for row in results.rows] for results in (ours, made_here)]
    assert values[0] == values[1]
    with pytest.raises(lab.UsageError, match="--add-load is for simulated recordings"):
        lab.compare("hackbench:1", ["eevdf"], add_load="yield:2", ci="100%")


def test_runs_queues_and_fits_have_the_programs_numbers(schedlab, root, tmp_path):
    ours = lab.simulate("yield:8", "take:multilist2", cpus=2, check=True)
    assert csv(ours) == schedlab("run", "yield:8", "--policy", "take:multilist2", "--cpus", 2, "--format", "csv")
    ours = lab.queue_costs(["ruler", "rbtree"], tasks=[1, 10, 100], count="steps")
    assert csv(ours) == schedlab("queue", "--queues", "ruler,rbtree", "--tasks", "1,10,100", "--count", "steps", "--format", "csv")
    recording = root / "workloads" / "groff.perf-script.txt.zst"
    fitted = lab.fit(recording)
    assert fitted.toml == schedlab("inspect", recording, "--fit")
    assert len(lab.compare(fitted, ["take:rr", "initial:rr"], parameters=TASKS, ci="100%")) > 0


def test_tables_are_taken_without_a_copy():
    import duckdb
    import pandas
    import polars
    import pyarrow

    results = lab.compare("unix1990", ["take:rr"], load=[0.3, 0.6], parameters=TASKS, ci="100%")
    rows = results.rows
    arrow = pyarrow.table(results)
    assert arrow["value"].to_pylist() == [row["value"] for row in rows]
    assert arrow["load"].to_pylist() == [row["point"]["load"] for row in rows]

    def address(table):
        return table["value"].chunk(0).buffers()[1].address

    assert address(arrow) == address(pyarrow.table(results)), "each consumer gets the same memory"
    frame = polars.DataFrame(results)
    assert frame.filter(polars.col("metric") == "grr").height == 4
    assert pandas.DataFrame.from_arrow(results).shape == (len(results), len(results.table.columns))
    assert duckdb.sql("select count(*) from results where metric = 'grr' and load = 0.6").fetchall() == [(2,)]
    assert json.loads(results.to_json())["rows"] == rows


def test_traces_are_tables(root, tmp_path):
    import polars

    results, trace = lab.simulate("yield:3", "central:rr", cpus=1, trace=True)
    events = polars.DataFrame(trace.events)
    switches = events.filter(polars.col("event") == "sched_switch")
    assert (trace.policy, trace.cpus, len(trace.tasks)) == ("central:rr", 1, 3)
    assert trace.end_ns == results.value("makespan_ns") == events["time_ns"].max()
    to_tasks = switches.filter(polars.col("task").is_not_null() & (polars.col("prev") != polars.col("task")))
    assert to_tasks.height > 0 and set(to_tasks["prev_state"].unique()) <= {"runnable", "blocked", "dead"}
    recording = lab.read_trace(root / "workloads" / "redis.perf-script.txt.zst")
    assert recording.policy == "recorded" and len(recording.events) > 1000
    names = polars.DataFrame(recording.tasks)["name"]
    assert any("redis" in name for name in names)


def test_workloads_are_made_here(tmp_path):
    made = closed(task("hog", [run("10ms")], count=2), task("waker", [loop(3, run("1ms"), sleep("2ms"), "yield")], nice=-5), cpus=2)
    results = lab.simulate(made, "eevdf", check=True)
    assert results.value("makespan_ns") >= 11_500_000
    saved = made.save(tmp_path / "made.toml")
    assert lab.simulate(saved, "eevdf").value("switches") == results.value("switches")
    drawn = lab.stochastic(base="unix1990", load=0.4, tasks=50, population_limit=1000)
    assert lab.compare(drawn, ["take:rr"], ci="100%").value("grr", candidate="take:rr") >= 1


def test_plots_have_the_values():
    results = lab.compare("unix1990", ["take:rr"], load=[0.3, 0.6], parameters=TASKS, ci="100%")
    chart = results.plot("grr", x="load", color="candidate").to_dict()
    values = {(row["candidate"], row["load"]): row["value"] for row in chart["data"]["values"]}
    assert values[("take:rr", 0.6)] == results.value("grr", candidate="take:rr", load=0.6)
    assert results.plot("grr", load=0.3).to_dict()["layer"][0]["mark"]["type"] == "bar"


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (lambda: lab.compare("unix199", ["take:rr"]), lab.UsageError, "Did you mean `unix1990`?"),
        (lambda: lab.compare("absent.toml", ["take:rr"]), lab.InputError, "absent.toml: no such file"),
        (lambda: lab.compare("yield:2", ["takerr"]), lab.UsageError, "Did you mean `take:rr`?"),
        (lambda: lab.compare("yield:2", [3.5]), lab.UsageError, "a policy is a name or a subclass of schedlab.Policy, not an instance of float"),
        (lambda: lab.compare("yield:2", 7), lab.UsageError, "a policy is a name or a subclass of schedlab.Policy, not an instance of int"),
        (lambda: lab.compare("yield:2", [None]), lab.UsageError, "not an instance of NoneType"),
        (lambda: lab.compare("yield:2", cpus="many"), lab.UsageError, "invalid value 'many'"),
        (lambda: lab.compare("yield:2", cpus=[[2]]), lab.UsageError, "a number or a text"),
        (lambda: lab.compare("yield:2", object()), lab.UsageError, "not an instance of object"),
        (lambda: lab.compare("unix1990", load=math.nan), lab.UsageError, "load is not a number (NaN)"),
        (lambda: lab.compare("unix1990", load=[0.3, math.inf]), lab.UsageError, "load"),
        (lambda: lab.compare("unix1990", parameters={"laod": 1}), lab.UsageError, "Did you mean `load`?"),
        (lambda: lab.simulate("yield:2", "rr", seed="x"), lab.UsageError, "invalid value 'x'"),
        (lambda: lab.simulate("yield:2", "rr", parameters={"a": 1}), lab.UsageError, "no parameter named `a`"),
        (lambda: lab.simulate("yield:2", 3), lab.UsageError, "subclass of schedlab.Policy"),
        (lambda: lab.queue_costs(["rullr"], count="steps"), lab.UsageError, "Did you mean `ruler`?"),
        (lambda: lab.read_trace("absent.trace"), lab.InputError, "absent.trace"),
        (lambda: lab.fit("absent.perf"), lab.InputError, "absent.perf"),
        (lambda: lab.compare(lab.Workload("task = 3", "mine"), ["rr"]), lab.InputError, "mine.toml:1: task"),
        (lambda: lab.simulate("yield:2", "rr").value("makespan"), lab.UsageError, "Did you mean `makespan_ns`?"),
        (lambda: lab.simulate("yield:2", "rr").value(None), lab.UsageError, "there is no metric named `None`"),
        (lambda: lab.simulate("yield:2", "rr").plot("switchs"), lab.UsageError, "Did you mean `switches`?"),
        (lambda: lab.simulate("yield:2", "rr").plot("switches", x="lood"), lab.UsageError, "there is no column lood"),
    ],
)
def test_bad_input_is_told(wrong, kind, words):
    with pytest.raises(kind) as raised:
        wrong()
    assert words in str(raised.value)


def test_ctrl_c_ends_long_work_at_once():
    code = "import schedlab; print('begun', flush=True); schedlab.compare('unix1990', ci='0.001%', max_time='3600s', parameters={'tasks': 200})"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    _, complaint = child.communicate(timeout=120)
    assert child.returncode != 0 and "KeyboardInterrupt" in complaint, complaint


def test_other_threads_run_meanwhile():
    import threading

    done = threading.Event()
    counted = 0

    def work():
        try:
            with pytest.raises(lab.Inconclusive):
                lab.compare("unix1990", ci="0.001%", max_time="2s", parameters=TASKS)
        finally:
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    assert counted > 20, "the interpreter's lock was held"


def test_progress_is_shown_by_tqdm(capsys):
    with pytest.raises(lab.Inconclusive):
        lab.compare("unix1990", ci="0.01%", max_time="1s", parameters=TASKS)
    assert "running" in capsys.readouterr().err
    with pytest.raises(lab.Inconclusive):
        lab.compare("unix1990", ci="0.01%", max_time="1s", parameters=TASKS, progress=False)
    assert "running" not in capsys.readouterr().err


def test_instructions_need_the_program(monkeypatch):
    monkeypatch.delenv("SCHEDLAB", raising=False)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(lab.Missing, match="cargo install"):
        lab.queue_costs(["rr"], tasks=[1])
