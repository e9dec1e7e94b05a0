"""Sweeps: many runs over a grid of parameters, policies and seeds, here or on a cluster. Each run is computed once and kept."""

from __future__ import annotations

import contextlib
import pathlib
import tempfile
from os import PathLike
from typing import Any

from . import _native, cluster, errors
from .results import Results
from .verbs import _option, _results
from .workload import Workload, to_toml


def sweep(
    grid: str | PathLike[str] | dict[str, Any],
    client: Any = None,
    *,
    output: str | PathLike[str] | None = None,
    jobs: int | None = None,
    progress: bool = True,
) -> Results:
    """Runs the cells of `grid` and summarises them over the seeds: `schedlab sweep --resume`.

    `grid` is the path of a grid file, or its keys as a dictionary, in which `workload` may be a `schedlab.Workload`. Without a `client` the cells run on all cores of this
    machine, `jobs` at a time; with a `dask.distributed.Client` on its cluster. `output` is the directory where cells and results are kept: cells that exist already
    are not computed again. Cells that fail raise `schedlab.CellsFailed`, which has the results of the other cells.
    """
    with _file(grid) as file, _directory(output) as directory:
        if client is None:
            return _results(["sweep", str(file), "-o", str(directory), "--resume", *_option("--jobs", jobs)], progress=progress)
        cells = _native.Sweep.read(file)
        cells.begin(directory)
        cluster.fill(cells, directory, client, progress)
        return _results(["sweep", "--merge", str(directory)], progress=progress)


@contextlib.contextmanager
def _file(grid):
    if isinstance(grid, (str, PathLike)):
        yield pathlib.Path(grid)
        return
    if not isinstance(grid, dict):
        raise errors.UsageError(f"a grid is the path of a grid file or a dictionary of its keys, not {grid!r}")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as directory:
        path = pathlib.Path(directory) / "grid.toml"
        path.write_text(to_toml(_with_files(grid, path.parent)))
        yield path


@contextlib.contextmanager
def _directory(output):
    if output is not None:
        yield pathlib.Path(output)
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-") as directory:
        yield pathlib.Path(directory)


def _with_files(value, directory):
    """The keys of a grid, with its workloads replaced by file names."""
    if isinstance(value, Workload):
        file = directory / f"{value.name}-{len(list(directory.iterdir()))}.toml"
        value.save(file)
        return file.name
    if isinstance(value, dict):
        return {key: _with_files(inner, directory) for key, inner in value.items()}
    return [_with_files(inner, directory) for inner in value] if isinstance(value, (list, tuple)) else value
