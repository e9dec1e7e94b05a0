"""The table of reproducers is what was measured, and what it counts is what a schedule says."""

import csv
import shutil
import subprocess
import sys
from collections import Counter

import pytest


@pytest.fixture(scope="module")
def tool(module_of):
    return module_of("reproducers")


def call(root, place, *words, **environment):
    words = [sys.executable, root / "tools" / "reproducers", "--root", place, *words]
    return subprocess.run(words, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", **environment})


@pytest.fixture
def place(root, tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("docs/reproducers.csv", "docs/recordings.md"):
        shutil.copy(root / name, tmp_path / name)
    return tmp_path


def test_the_table_is_that_of_the_data(root, place):
    done = call(root, place, "--check")
    assert done.returncode == 0, done.stderr
    data = place / "docs/reproducers.csv"
    with data.open() as file:
        switches = next(csv.DictReader(file))["guest"]
    data.write_text(data.read_text().replace(f",{switches},", f",{int(switches) + 1},", 1))
    done = call(root, place, "--check")
    assert done.returncode == 4 and "docs/reproducers.csv" in done.stderr, done.stderr
    assert call(root, place).returncode == 0 and call(root, place, "--check").returncode == 0


def test_each_program_has_each_metric_and_ratios_are_those_of_the_values(root, tool):
    with (root / "docs/reproducers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["program"], row["metric"]) for row in rows] == [(name, metric) for name in tool.PROGRAMS for metric in tool.METRICS]
    for row in rows:
        for value, to, ratio in (("guest", "recorded", "guest_ratio"), ("here", "recorded", "here_ratio"), ("recorded_again", "recorded", "again_ratio"), ("guest", "itself_in_guest", "itself_ratio")):
            assert (row[ratio] == "") == (row[to] == ""), row
            if row[to]:
                assert abs(float(row[value]) / float(row[to]) - float(row[ratio])) < 0.001, row


def test_without_the_program_nothing_is_measured(root, place):
    done = call(root, place, "--measure", SCHEDLAB=str(place / "none"))
    assert done.returncode == 77 and "none is missing" in done.stderr, done.stderr


# Task 7 runs for 5 µs, wakes 8, and waits; 8 waits 2 µs for the CPU and runs for 3; an interrupt wakes 7. Task 9 is none of the program's.
SCHEDULE = """
idle 0/0 [001] 0.000000000: sched:sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a b next_pid=7 next_prio=120
a b 7/7 [001] .... 0.000003000: sched:sched_waking: comm=c pid=8 prio=120 target_cpu=001
a b 7/7 [001] 0.000005000: sched:sched_switch: prev_comm=a b prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=c next_pid=8 next_prio=120
c 6/8 [001] ..h. 0.000006000: sched:sched_waking: comm=a b pid=7 prio=120 target_cpu=001
c 6/8 [001] 0.000008000: sched:sched_switch: prev_comm=c prev_pid=8 prev_prio=120 prev_state=R ==> next_comm=o next_pid=9 next_prio=120
o 9/9 [001] 0.000009000: sched:sched_switch: prev_comm=o prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=a b next_pid=7 next_prio=120
a b 7/7 [001] 0.000010000: sched:sched_switch: prev_comm=a b prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=c next_pid=8 next_prio=120
c 6/8 [001] 0.000020000: sched:sched_switch: prev_comm=c prev_pid=8 prev_prio=120 prev_state=Z ==> next_comm=swapper next_pid=0 next_prio=120
"""


def test_a_schedule_is_counted(tool):
    schedule = tool.Schedule(SCHEDULE, {7: 0, 8: 1})
    assert (schedule.switches, schedule.wakeups, schedule.cpu_time, schedule.makespan) == (4, 2, 5000 + 3000 + 1000 + 10000, 20000)
    assert schedule.latencies == [2000, 3000] and schedule.run_delays == [2000, 3000, 2000]
    assert schedule.edges == {(0, 1): 1, (None, 0): 1} and schedule.others == 0.05


def test_the_share_of_wakeups_on_the_same_edge(tool):
    one, other = Counter({(0, 1): 6, (None, 1): 2}), Counter({(0, 1): 3, (1, 0): 2})
    assert tool.similarity(one, one) == 1 and tool.similarity(one, other) == 3 / 10
    assert tool.by_name(Counter({(0, 1): 6, (2, 1): 1, (None, 1): 2}), ["a", "b", "a"]) == {("a", "b"): 7, (None, "b"): 2}


def test_the_tasks_of_a_run_are_found_by_the_order_of_their_forks(tool):
    program = tool.Program({
        "task": [
            {"name": "a/70", "phases": [{"fork": "b/72"}, {"exec": "then"}]},
            {"name": "d/71", "daemon": True, "phases": []},
            {"name": "b/72", "forked": True, "phases": []},
            {"name": "b/73", "forked": True, "phases": []},
        ],
        "list": {"then": [{"loop": {"times": 1, "phases": [{"fork": "b/73"}]}}]},
    })  # fmt: skip
    assert program.recorded() == ({70: 0, 72: 2, 73: 3}, {71})
    fork = "p {0}/{0} [000] 0.00000000{1}: sched:sched_process_fork: comm=p pid={0} child_comm=p child_pid={2}"
    text = ["p 5/5 [000] 0.000000001: sched:sched_process_exec: filename=/tmp/x y/p pid=5 old_pid=5"]
    text += [fork.format(*of) for of in ((5, 2, 6), (5, 3, 7), (6, 4, 8), (9, 5, 10), (6, 6, 11), (6, 7, 12))]
    assert program.run("\n".join(text), "p") == ({6: 0, 8: 2, 11: 3}, {5, 7})
