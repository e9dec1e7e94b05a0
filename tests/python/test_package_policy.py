"""A policy in Python beside the same one in Rust, under all checks; what it does wrong comes back with the event."""

from collections import deque

import pytest

import schedlab as lab


class Fifo(lab.Policy):
    """One queue for all CPUs, first come, first served, in slices of 100 ms: `central:rr`."""

    name = "fifo-in-python"
    promises = ("work_conserving", "starvation_free")

    def __init__(self):
        self.ready = deque()

    def enqueue(self, cx, task, cpu, why):
        self.ready.append(task)
        idle = cx.idle_cpu_for(task)
        return None if idle is None else lab.kick(idle)

    def dequeue(self, cx, task):
        self.ready.remove(task)

    def dispatch(self, cx, cpu):
        for task in self.ready:
            if cx.allowed(task, cpu):
                self.ready.remove(task)
                return task, 100_000_000
        return None


@pytest.mark.parametrize("workload", ["hackbench:1", "yield:5", "unix1990"])
def test_it_decides_as_the_same_policy_in_rust_does(workload):
    parameters = {"tasks": 100, "load": 0.6} if workload == "unix1990" else None
    ours = lab.simulate(workload, Fifo, cpus=2, parameters=parameters, check=True)
    rust = lab.simulate(workload, "central:rr?quantum=100ms", cpus=2, parameters=parameters, check=True)
    values = [[(row["metric"], row["value"], row["point"].get("trace_hash")) for row in results.rows] for results in (ours, rust)]
    assert values[0] == values[1]
    assert {row["candidate"] for row in ours.rows} == {"fifo-in-python"}


class ByPriority(Fifo):
    """One queue by priority; whoever comes and matters more stops what runs: `central:priority` on one CPU."""

    name = "priority-in-python"
    promises = ("work_conserving", "inherits")
    reasons = set()
    changes = set()

    def set_weight(self, cx, task, old, inherited):
        assert task not in self.ready and old != cx.prio(task)
        self.changes.add((task, old, cx.prio(task), inherited))

    def enqueue(self, cx, task, cpu, why):
        self.reasons.add(why)
        place = next((at for at, other in enumerate(self.ready) if cx.prio(other) > cx.prio(task)), len(self.ready))
        self.ready.insert(place, task)
        if cpu in cx.idle:
            return lab.kick(cpu)
        running = cx.current(cpu)
        stops = why in ("new", "wakeup", "restored") and running is not None and cx.prio(running) > cx.prio(task)
        return lab.preempt(cpu) if stops else None


def test_priorities_may_be_inherited_if_it_says_so(root):
    pathfinder = root / "workloads" / "pathfinder.toml"
    ours = lab.simulate(pathfinder, ByPriority, check=True)
    rust = lab.simulate(pathfinder, "central:priority?quantum=100ms", check=True)
    values = [[(row["metric"], row["value"], row["point"].get("trace_hash")) for row in results.rows] for results in (ours, rust)]
    assert values[0] == values[1]
    assert {"new", "wakeup", "preempted", "prio_changed", "restored"} <= ByPriority.reasons
    assert all(inherited for *_, inherited in ByPriority.changes)
    assert {(task, new, old) for task, old, new, _ in ByPriority.changes} == {change[:3] for change in ByPriority.changes}, "each gets back what it had"
    with pytest.raises(lab.SchedlabError, match="the mutex bus inherits priorities"):
        lab.simulate(pathfinder, Fifo)


def test_each_run_begins_with_a_policy_of_its_own():
    runs = [lab.simulate("hackbench:1", Fifo, cpus=2).to_csv() for _ in range(2)]
    assert runs[0] == runs[1]


class Broken(Fifo):
    name = "broken"

    def dispatch(self, cx, cpu):
        if cx.now > 2_000_000:
            return 1 // 0
        return super().dispatch(cx, cpu)


class Idle(Fifo):
    """Leaves tasks waiting."""

    def dispatch(self, cx, cpu):
        return None if cpu == 1 else super().dispatch(cx, cpu)


def having(**methods):
    return type("Wrong", (Fifo,), methods)


def test_an_exception_comes_back_with_its_event():
    with pytest.raises(lab.PolicyError, match=r"broken: at \d+\.\d+ms, in dispatch\(cpu=\d\): .*division") as raised:
        lab.simulate("hackbench:1", Broken, cpus=2)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_the_checks_catch_a_broken_promise():
    with pytest.raises(lab.CheckFailed, match="work_conserving") as raised:
        lab.simulate("hackbench:1", Idle, cpus=2, check=True)
    assert raised.value.results is None, "a run that breaks a rule gives no number"


def test_a_policy_in_python_stands_beside_built_in_ones_in_one_table():
    results = lab.compare("hackbench:1", ["eevdf", Fifo, "central:rr?quantum=100ms"], cpus=2, ensemble=4)
    assert {row["candidate"] for row in results.rows} == {"eevdf", "fifo-in-python", "central:rr?quantum=100ms"}
    assert results.value("makespan_ns", candidate="fifo-in-python") == results.value("makespan_ns", candidate="central:rr?quantum=100ms")
    with pytest.raises(lab.UsageError, match="Python"):
        lab.compare("hackbench:1", [Fifo], on="vm")


def interrupt(self, cx, cpu):
    raise KeyboardInterrupt


def keep(self, cx, task):
    self.kept = cx


def use(self, cx, cpu):
    return lab.Policy.dispatch if not hasattr(self, "kept") else self.kept.now


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (having(dispatch=lambda self, cx, cpu: 5), "the task and for how many nanoseconds"),
        (having(dispatch=lambda self, cx, cpu: (99999, 5)), "dispatch, task 99999, CPU 0: there is no such task"),
        (having(dispatch=lambda self, cx, cpu: (0, 0)), "dispatch, task 0, CPU 0: the slice is 0 ns"),
        (having(dispatch=lambda self, cx, cpu: (0, -1)), "nanoseconds"),
        (having(select_cpu=lambda self, cx, task, new, waker: 7), "select_cpu, task 0, CPU 7: there is no such CPU; the last one is CPU 1"),
        (having(select_cpu=lambda self, cx, task, new, waker: "0"), "select_cpu(task=0, new=True, waker=None)"),
        (having(enqueue=lambda self, cx, task, cpu, why: 3), "an effect is None, or a value of schedlab.kick"),
        (having(enqueue=lambda self, cx, task, cpu, why: lab.kick(9)), "enqueue, CPU 9: there is no such CPU"),
        (having(init_task=lambda self, cx, task: cx.prio(77)), "there is no task 77"),
        (having(init_task=lambda self, cx, task: cx.random_below(0)), "no number below 0"),
    ],
)
def test_what_it_must_not_do_is_told(policy, words):
    with pytest.raises(lab.PolicyError) as raised:
        lab.simulate("yield:2", policy, cpus=2)
    assert words in str(raised.value)


def test_a_task_that_does_not_wait_is_no_task_to_dispatch():
    with pytest.raises(lab.PolicyError, match="dispatch, task 0, CPU 1: the task runs, and only a task that waits may be dispatched"):
        lab.simulate("yield:2", having(dispatch=lambda self, cx, cpu: (0, 1000)), cpus=2)


def test_an_interrupt_stays_one():
    with pytest.raises(KeyboardInterrupt):
        lab.simulate("yield:2", having(dispatch=interrupt))


def test_what_is_no_policy_is_told():
    with pytest.raises(lab.UsageError, match="does not define dispatch"):
        lab.simulate("yield:2", type("Half", (lab.Policy,), {"enqueue": Fifo.enqueue, "dequeue": Fifo.dequeue}))
    with pytest.raises(lab.UsageError, match="give the class"):
        lab.simulate("yield:2", Fifo())
    with pytest.raises(lab.UsageError, match="subclass of schedlab.Policy"):
        lab.simulate("yield:2", dict)
    with pytest.raises(lab.UsageError, match="Did you mean `work_conserving`"):
        lab.simulate("yield:2", having(promises=("work-conserving",)))
    with pytest.raises(lab.UsageError, match="leave --mips out"):
        lab.simulate("yield:2", Fifo, mips=1000)
