"""`deadline` and `rm` against SimSo on periodic tasks: its documentation's example, and textbooks'. Its answers are kept in simso.json."""

import json
from pathlib import Path

import pytest

RUNS = json.loads((Path(__file__).parent / "simso.json").read_text())


def workload(tasks):
    text = ""
    for index, (run, period, deadline) in enumerate(tasks):
        timer = f'{{ timer = {{ period = "{period}ms", mode = "absolute" }} }}'
        text += f'[[task]]\nname = "t{index}"\nreservation = {{ runtime = "{run}ms", period = "{period}ms", deadline = "{deadline}ms" }}\n'
        text += f'phases = [ {{ loop = {{ times = {1000 // period}, phases = [ {{ run = "{run}ms" }}, {timer} ] }} }} ]\n'
    return 'duration = "839ms"\n' + text


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run['set']}-{run['simso']}-{run['cpus']}")
def test_responses_and_misses_agree(schedlab, tmp_path, run):
    file = tmp_path / "set.toml"
    file.write_text(workload(run["tasks"]))
    out = schedlab("run", file, "--policy", run["policy"], "--cpus", run["cpus"], "--check", "--format", "json")
    rows = json.loads(out)["rows"]

    def value(metric, task):
        return next(row["value"] for row in rows if row["metric"] == metric and row["subject"] == f"{task} t{task}")

    nobody_misses = not any(answer["misses"] for answer in run["answers"])
    for task, answer in enumerate(run["answers"]):
        assert (value("task_deadline_misses", task) > 0) == answer["misses"], (task, answer)
        if nobody_misses:  # SimSo gives up a job that is late
            assert value("task_response_ns_max", task) == pytest.approx(1e6 * answer["response_ms_max"]), (task, answer)


def test_both_answers_occur():
    verdicts = [any(answer["misses"] for answer in run["answers"]) for run in RUNS]
    assert any(verdicts) and not all(verdicts)
