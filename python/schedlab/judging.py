"""The judge of generated or tuned policies as an evaluator: `schedlab judge` without a command line."""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, TypeAlias, Union

from . import _native, errors

Candidate: TypeAlias = Union[str, "PathLike[str]", Mapping[str, Any]]
"""A policy by name with its options, a path (of a file in Python or of a crate), or a line as in `schedlab judge`, as in `{"id": "a", "policy": "eevdf"}`."""


class Judge:
    """The judge of one suite: a function from a candidate to what is said of it.

        >>> judge = schedlab.Judge("suite.toml")
        >>> judge("eevdf?slice=1ms")["score"]

    It is the evaluator of a search. The suite's baseline runs once.
    """

    def __init__(self, suite: str | PathLike[str], *, sources: str | PathLike[str] | None = None, python: str | PathLike[str] | None = None) -> None:
        """Reads `suite`. `sources` is the checkout of schedlab for candidates in Rust; `python` the interpreter for those in Python, by default this one."""
        path = lambda given: None if given is None else pathlib.Path(given)
        self._referee = _native.Referee(pathlib.Path(suite), path(sources), path(python or sys.executable))
        self._number = 0

    def __call__(self, candidate: Candidate) -> dict[str, Any]:
        """What the judge says: `verdict`, `score`, `held_out`, `metrics` and the rest of docs/judged.schema.json."""
        self._number += 1
        return json.loads(self._referee.judge(json.dumps(_line(candidate)), self._number))


def judge(suite: str | PathLike[str], candidates: Iterable[Candidate], *, sources: str | PathLike[str] | None = None, python: str | PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Judges `candidates` on `suite`, in their order: `schedlab judge`."""
    referee = Judge(suite, sources=sources, python=python)
    return [referee(candidate) for candidate in candidates]


def _line(candidate):
    if isinstance(candidate, Mapping):
        return {key: str(value) if isinstance(value, pathlib.PurePath) else value for key, value in candidate.items()}
    if isinstance(candidate, str):
        return {"policy": candidate}
    if hasattr(candidate, "__fspath__"):
        path = pathlib.Path(candidate)
        return {"crate" if path.is_dir() else "python": str(path)}
    raise errors.UsageError(f"a candidate is a policy's name, a path, or a dictionary, not {type(candidate).__name__}")
