"""kernel/teaching: it schedules as its queues promise, on every board that can be had, and a wrong queue is seen."""

import os
import re
import shutil
import subprocess
import sys

import pytest

BOARDS = ("cortex-m", "riscv", "x86")
SWITCH = re.compile(r"(\d+)\.(\d{9}): sched:sched_switch: prev_comm=(\S+) .* prev_state=(\w) ==> next_comm=(\S+) ")


@pytest.fixture(scope="module")
def tool(root, program):
    def run(*words, path=None):
        environment = {**os.environ, "SCHEDLAB": str(program), **({"PATH": path} if path is not None else {})}
        return subprocess.run([sys.executable, root / "tools" / "kernel", *map(str, words)], capture_output=True, text=True, env=environment)

    return run


@pytest.fixture(scope="module", params=BOARDS)
def ran(request, tool, tmp_path_factory):
    """What a board printed, and its schedule: (ns, from, state, to)."""
    into = tmp_path_factory.mktemp("kernel")
    done = tool(request.param, "-o", into)
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    path = into / f"{request.param}.perf-script.txt"
    switches = [(int(s) * 10**9 + int(ns), *rest) for s, ns, *rest in SWITCH.findall(path.read_text())]
    return done.stdout, switches, path


def ran_us(text, title):
    return {task: int(us) for task, us in re.findall(rf"{title}: (\S+) ran (\d+) us", text)}


def test_round_robin_gives_turns_and_a_yield_ends_one(ran):
    _, switches, _ = ran
    turns = [to for _, _, _, to in switches if to in ("a", "b", "polite")]
    assert turns[:9] == ["a", "b", "polite"] * 3
    begin = {(at, to) for at, _, _, to in switches}
    first = next(at for at, to in sorted(begin) if to == "polite")
    end = next(at for at, from_, _, _ in switches if from_ == "polite" and at > first)
    assert 190_000 < end - first < 250_000, "it gives way after 0.2 ms"


def test_each_level_has_half_the_share_of_the_one_before(ran):
    had = ran_us(ran[0], "shares")
    assert had["often"] / had["half"] == pytest.approx(2, abs=0.01)
    assert had["half"] / had["quarter"] == pytest.approx(2, abs=0.01)


def test_a_deadline_is_missed_and_seen_and_the_schedule_shows_it(ran):
    text, switches, _ = ran
    missed = dict(re.findall(r"(\w+) priorities: control missed (\d) deadlines", text))
    assert missed == {"wrong": "3", "right": "0"}
    for title in ("wrong priorities", "right priorities"):
        had = ran_us(text, title)
        assert had["control"] == pytest.approx(10_000, rel=0.01) and had["logger"] == pytest.approx(24_000, rel=0.01), "the same work"
    waited = [end - at for (at, _, _, to), (end, _, state, after) in zip(switches, switches[1:]) if (to, state != "R", after) == ("logger", True, "control")]
    assert sum(ns > 7_900_000 for ns in waited) == 3, "three times control waits until logger has done all of its work"


def test_the_time_of_the_schedule_is_what_the_kernel_summed_up(ran):
    """The lines that a reader of the schedule adds up against the kernel's own sums."""
    text, switches, _ = ran
    sums = {}
    for (at, _, _, to), (end, from_, _, _) in zip(switches, switches[1:]):
        assert to == from_, "no switch is lost"
        sums[to] = sums.get(to, 0) + end - at
    for title in ("round robin", "shares"):
        for task, us in ran_us(text, title).items():
            assert sums[task] // 1000 == us, task


def test_its_schedule_is_a_recording(ran, schedlab):
    text = schedlab("inspect", ran[2])
    assert "lost events: 0" in text and re.search(r"often/\d+ +40\.0ms|often/\d+ +39\.9", text), text


def test_two_runs_are_the_same_bytes_and_another_queue_is_another_schedule(tool, tmp_path):
    for name, queue in (("a", "Ruler"), ("b", "Ruler"), ("c", "RoundRobin"), ("d", "RbTree")):
        done = tool("riscv", "--queue", queue, "-o", tmp_path / name)
        if done.returncode == 77:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        if name == "c":
            had = ran_us(done.stdout, "shares")
            assert max(had.values()) - min(had.values()) <= 1_100, "a third each: the canary of the test of shares"
    same = [(tmp_path / name / "riscv.perf-script.txt").read_bytes() for name in "abcd"]
    assert same[0] == same[1] and same[0] != same[2]


def test_what_is_missing_is_named_with_its_package(tool, tmp_path):
    for word in ("cargo", "rustc", "cc"):
        if found := shutil.which(word):
            (tmp_path / word).symlink_to(found)
    done = tool("cortex-m", "riscv", "-o", tmp_path / "out", path=str(tmp_path))
    assert done.returncode == 77, done.stderr
    assert "cortex-m skipped: qemu-system-arm is not installed: apt-get install qemu-system-arm" in done.stderr
    assert "riscv skipped: qemu-system-riscv32 is not installed: apt-get install qemu-system-misc" in done.stderr
    assert "there is no board z80" in tool("z80").stderr
    done = tool("riscv", "-o", tmp_path / "out", path=str(tmp_path / "none"))
    assert done.returncode == 77 and "rustc is not installed" in done.stderr
