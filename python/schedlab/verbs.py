"""The program's commands as functions. Each runs a command line without printing: names, defaults, messages and digits are those of `schedlab`."""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias, TypeVar, Union

from . import _native, errors
from .policy import Policy
from .progress import shown
from .results import Results
from .workload import Workload, named

Subject: TypeAlias = Union[str, "PathLike[str]", Workload]
"""A workload: its name, the path of a workload file or a recording, or a `Workload` made here."""

T = TypeVar("T")
Several: TypeAlias = Union[T, Sequence[T]]
"""One value, or several."""


def compare(
    workload: Several[Subject],
    policies: Several[str | Callable[[], Policy]] | None = None,
    *,
    on: Several[str] = "sim",
    kernel: Several[str] | None = None,
    baseline: str | None = None,
    cpus: Several[int] | None = None,
    load: Several[float] | None = None,
    seed: int = 1,
    parameters: Mapping[str, str | float] | None = None,
    add_load: Subject | None = None,
    ensemble: int | None = None,
    ci: str | None = None,
    max_runs: int | None = None,
    max_time: str | None = None,
    check: bool = False,
    machine: str | PathLike[str] | None = None,
    switch_cost: str | None = None,
    migration_cost: str | None = None,
    idle_exit: str | None = None,
    wake_cost: str | None = None,
    mips: float | None = None,
    allow_lost: bool = False,
    without_background: bool = False,
    output: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Results:
    """Compares `policies` on `workload` with `baseline`: `schedlab compare`.

    `on` is any of "sim", "vm" (a real kernel in a guest) and "host" (this machine), or a list of them; `kernel` is the kernel of guests. `ensemble` is the number of runs of each policy. `policies` are names, or
    subclasses of `schedlab.Policy` (or functions that make one), which run in the simulator beside the named ones. `workload` may be a list.

    `workload` is a name (`schedlab list workloads`), the path of a workload file or a recording, or a `schedlab.Workload`. `cpus` and `load` may be lists. `parameters`
    are those of a stochastic workload, as in `{"tmc": "2ms"}`. `machine` is the path of a machine file, or `"host"`; `add_load` is a workload to run beside a recording.
    `without_background` leaves out what ran beside a recorded program. Durations are texts with a unit. `output` is a directory for results, traces and a report.
    """
    names, own = _policies(policies)
    with contextlib.ExitStack() as stack:
        workloads = [stack.enter_context(named(one)) for one in _several(workload)]
        beside = stack.enter_context(named(add_load))
        words = ["compare", *workloads, *_list("--on", _items(on)), *_list("--kernel", kernel), *_option("--ensemble", ensemble)]
        words += [*_list("--policy", names), *_option("--baseline", baseline), *_list("--cpus", cpus), *_list("--load", load)]
        words += [*_set(parameters), *_option("--ci", ci), *_option("--max-runs", max_runs), *_option("--max-time", max_time)]
        words += [*_option("--add-load", beside), *_machine(machine, switch_cost, migration_cost, idle_exit, wake_cost, mips), *_option("--seed", seed), *_option("-o", output)]
        return _results([*words, *_flag("--check", check), *_flag("--allow-lost", allow_lost), *_flag("--without-background", without_background)], policies=own, progress=progress)


def simulate(
    workload: Subject,
    policy: str | Callable[[], Policy],
    *,
    cpus: int | None = None,
    seed: int = 1,
    parameters: Mapping[str, str | float] | None = None,
    check: bool = False,
    trace: bool = False,
    machine: str | PathLike[str] | None = None,
    switch_cost: str | None = None,
    migration_cost: str | None = None,
    idle_exit: str | None = None,
    wake_cost: str | None = None,
    mips: float | None = None,
    allow_lost: bool = False,
    without_background: bool = False,
    progress: bool = True,
) -> Any:
    """One run of `workload` under `policy`: `schedlab run`. With `trace`, gives the results and the run as a `schedlab.Trace`.

    `policy` is a name, or a subclass of `schedlab.Policy` (or a function that makes one; it is called once for each run).
    """
    names, own = _policies(policy)
    with named(workload) as name, tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        file = pathlib.Path(scratch) / "run.trace"
        words = ["run", name, "--policy", names[0] if names else "rr", *_option("--cpus", cpus), *_set(parameters)]
        words += [*_machine(machine, switch_cost, migration_cost, idle_exit, wake_cost, mips), *_option("--seed", seed)]
        words += [*_flag("--check", check), *_flag("--allow-lost", allow_lost), *_flag("--without-background", without_background), *(["--trace", str(file)] if trace else [])]
        results = _results(words, policies=own, progress=progress)
        return (results, read_trace(file)) if trace else results


def queue_costs(
    queues: Several[str] | None = None,
    *,
    tasks: Several[int] | None = None,
    levels: int = 10,
    mix: str = "random",
    strides: str | None = None,
    count: Several[str] | None = None,
    assignments: int | None = None,
    runs: int = 10,
    seed: int = 1,
    slices: int | None = None,
    crossover: Several[str] | None = None,
    program: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Results:
    """The cost of one operation in each of the ready queues `queues`: `schedlab queue`.

    `count` is any of "instructions", "time" and "steps", by default all. Instructions are counted by valgrind in `program`, a build of schedlab's command line, by
    default the installed one.
    """
    counts = ["instructions", "time", "steps"] if count is None else _items(count)
    words = ["queue", *_list("--queues", queues), *_list("--tasks", tasks), *_option("--levels", levels), *_option("--mix", mix)]
    words += [*_option("--strides", strides), *_list("--count", counts), *_option("--assignments", assignments), *_option("--runs", runs)]
    words += [*_option("--seed", seed), *_option("--slices", slices), *_list("--crossover", crossover)]
    if "instructions" in counts or crossover:
        words += ["--binary", find_program(program)]
    return _results(words, progress=progress)


def read_trace(path: str | PathLike[str]) -> _native.Trace:
    """Reads a recording of perf, or a trace of `schedlab run --trace`, as tables: a `schedlab.Trace`."""
    return _native.read_trace(pathlib.Path(path))


def fit(recording: str | PathLike[str], *, only: Several[str] = (), allow_lost: bool = False) -> Workload:
    """Fits a stochastic workload to `recording`: `schedlab inspect --fit`. With `only`, it is fitted only to the tasks with these names."""
    path = pathlib.Path(recording)
    return Workload(_native.fit(path, _items(only), allow_lost), path.name.split(".")[0])


def find_program(given: str | PathLike[str] | None) -> str:
    """The program: the given one, the one in the environment variable SCHEDLAB, or the installed one."""
    found = given or os.environ.get("SCHEDLAB") or shutil.which("schedlab")
    if not found:
        raise errors.Missing("this needs the program `schedlab`, which is not installed: `cargo install --path crates/schedlab`, or give program=")
    return str(found)


def _policies(policies):
    """The names, and the caller's own policies with their positions among all."""
    names, own = [], []
    for place, policy in enumerate([] if policies is None else _several(policies)):
        if isinstance(policy, str):
            names.append(policy)
        elif callable(policy):
            own.append((place, policy))
        else:
            of = type(policy).__name__
            hint = ": give the class: each run makes a new instance" if isinstance(policy, Policy) else ""
            raise errors.UsageError(f"a policy is a name or a subclass of schedlab.Policy, not an instance of {of}{hint}")
    return names, own


def _several(values):
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _results(words, policies=(), progress=True):
    with shown(progress and not policies) as show:
        answer = _native.evaluate(words, list(policies), show)
    results = Results(answer)
    if answer.end is not None:
        kind, message = answer.end
        error = getattr(errors, kind)(message)
        error.results = results
        raise error
    return results


def _items(values):
    """One value, or several."""
    return [str(values)] if isinstance(values, (str, int, float, os.PathLike)) else [str(value) for value in values]


def _option(name, value):
    if value is None:
        return []
    return [f"{name}={_text(name, value)}"] if name.startswith("--") else [name, _text(name, value)]


def _text(name, value):
    keyword = name.lstrip("-").replace("-", "_")
    if isinstance(value, bool) or not isinstance(value, (str, int, float, os.PathLike)):
        raise errors.UsageError(f"{keyword} is a number or a text, not {value!r}")
    if isinstance(value, float) and math.isnan(value):
        raise errors.UsageError(f"{keyword} is not a number (NaN)")
    return str(value)


def _list(name, values):
    if values is None:
        return []
    if isinstance(values, (str, int, float)):
        values = [values]
    if not hasattr(values, "__iter__"):
        raise errors.UsageError(f"{name.lstrip('-')} is a list of numbers or texts, not {values!r}")
    texts = [_text(name, value) for value in values]
    return [f"{name}={','.join(texts)}"] if texts else []


def _set(parameters):
    return [word for key, value in (parameters or {}).items() for word in ("--set", f"{key}={_text(key, value)}")]


def _flag(name, given):
    return [name] if given else []


def _machine(machine, switch_cost, migration_cost, idle_exit, wake_cost, mips):
    costs = {"--switch-cost": switch_cost, "--migration-cost": migration_cost, "--idle-exit": idle_exit, "--wake-cost": wake_cost, "--mips": mips}
    return [word for name, value in {"--machine": machine, **costs}.items() for word in _option(name, value)]
