"""Workloads made in Python: tasks that go through phases, or classes of tasks drawn at random.

The keys are those of workload files (docs/closed-workloads.md, docs/workload.schema.json), so that a workload can be saved and used on the command line.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import tempfile
from os import PathLike
from typing import Any

from . import _native, errors


class Workload:
    """The text of a workload file. `save` writes it; every function of the package that takes a workload accepts it."""

    def __init__(self, toml: str, name: str = "workload"):
        self.toml = toml
        self.name = name

    def save(self, path: str | PathLike[str]) -> str | PathLike[str]:
        """Writes the file and returns its path."""
        pathlib.Path(path).write_text(self.toml)
        return path

    def __repr__(self):
        return f"schedlab.Workload({self.name!r}):\n{self.toml}"


def stochastic(name: str = "workload", **keys: Any) -> Workload:
    """A workload drawn at random: `stochastic(base="unix1990", load=0.5, warm_up=100)`. Keys with a dash are written with an underscore."""
    return Workload(to_toml({"name": name, **{key.replace("_", "-"): value for key, value in keys.items()}}), name)


def closed(*tasks: dict[str, Any], name: str = "workload", **keys: Any) -> Workload:
    """Tasks that go through phases: `closed(task("a", [run("2ms"), sleep("8ms")]), cpus=2)`."""
    return Workload(to_toml({"name": name, **keys, "task": tasks}), name)


def task(name: str, phases: list[Any], **keys: Any) -> dict[str, Any]:
    """A task, or `count` equal ones, of a closed workload; `nice`, `policy`, `priority`, `affinity`, `start`, … as in a file."""
    return {"name": name, "phases": list(phases), **keys}


def run(duration: str) -> dict[str, Any]:
    """A phase: needs this CPU time."""
    return {"run": duration}


def sleep(duration: str) -> dict[str, Any]:
    """A phase: sleeps for this time."""
    return {"sleep": duration}


def loop(times: int | None, *phases: Any) -> dict[str, Any]:
    """A phase: repeats these phases; endlessly if `times` is None."""
    return {"loop": {"times": times, "phases": list(phases)}}


def timer(period: str, mode: str = "absolute") -> dict[str, Any]:
    """A phase: sleeps until the next period begins."""
    return {"timer": {"period": period, "mode": mode}}


def to_toml(keys: dict[str, Any]) -> str:
    """Converts nested dictionaries and lists to TOML. None values are left out."""
    try:
        return _native.to_toml(json.dumps(_present(keys), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise errors.UsageError(f"numbers must be finite; other values must be texts, lists or dictionaries: {error}") from error


def _present(value):
    if isinstance(value, dict):
        return {key: _present(inner) for key, inner in value.items() if inner is not None}
    return [_present(inner) for inner in value] if isinstance(value, (list, tuple)) else value


@contextlib.contextmanager
def named(workload):
    """The name or path with which the program finds `workload`; None for None."""
    if workload is None:
        yield None
        return
    if not isinstance(workload, Workload):
        yield str(workload)
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-") as directory:
        yield str(workload.save(pathlib.Path(directory) / f"{workload.name}.toml"))
