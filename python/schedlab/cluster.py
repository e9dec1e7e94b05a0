"""Sweeps on a Dask cluster: sends cells in batches and stores each finished cell at once. `schedlab sweep --dask ADDRESS` runs this as a program."""

import contextlib
import functools
import os
import pathlib
import queue
import sys
import time
from collections import deque

from . import _native, errors
from .progress import shown

TASK_SECONDS = 4.0
"""The intended duration of a task. The overhead of client, scheduler and worker for one task is 10 to 20 ms of CPU, with caches filled by the cells."""

LAST_TASK_SECONDS = 1.0
"""The shortest intended duration of a task: near the end tasks become shorter, so that all threads end together."""

SECONDS_PER_THREAD = 0.005
"""The additional duration of a task for each thread of the cluster: the scheduler then handles at most 200 tasks a second."""

CONNECT_SECONDS = 5

ASK_SECONDS = 5
"""The interval of queries for the scheduler's workers."""

DESERTED_SECONDS = 60
"""The longest time without workers: a worker that died returns, or another joins, within seconds."""

QUIET = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "1s",
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}
"""Dask's configuration for clusters without monitoring: `dask.config.set(schedlab.cluster.QUIET)` before a LocalCluster, or the same in the workers' dask.yaml.

By default each worker, nanny and scheduler checks its clock every 20 ms, its stack every 10 ms and its memory every 100 ms, and returns freed memory at once.
"""

MOST_LOST = 100
"""The number of tasks that a responding scheduler may lose."""


def fill(sweep, directory, client, progress=True):
    """Computes on `client` the cells of `sweep` that are missing in the directory.

    A cell that fails, or kills its workers, is stored as failed and does not affect the others. Finished cells are stored at once, so that an interrupted sweep can continue.
    """
    expect_same_build(client)
    todo = deque(sweep.missing(directory))
    if not todo:
        return
    with shown(progress) as show:
        _Filling(sweep, directory, client, todo, show).run()


def connect(address):
    """A client of the Dask scheduler at `address`, or an error within ten seconds."""
    try:
        import distributed
    except ImportError as error:
        raise errors.Missing("sweeps on a cluster need Dask: pip install 'schedlab[dask]'") from error
    import logging

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, ImportError, MemoryError) as error:  # MemoryError: another kind of server answers, and its first bytes are read as a length.
        message = f"no Dask scheduler answers at {address} within {CONNECT_SECONDS} s: start one with `dask scheduler`, or correct the address"
        raise errors.ClusterError(message) from error


class _Filling:
    """A running sweep: the scheduler always has two tasks for each thread. The number of cells in a task depends on the time of the cells so far."""

    def __init__(self, sweep, directory, client, todo, show):
        self.sweep, self.directory, self.client, self.show = sweep, directory, client, show
        self.todo, self.total, self.done = todo, len(todo), 0
        self.alone: deque = deque()
        self.suspects: deque = deque()
        self.accused = None
        self.tasks: dict = {}
        self.ended: queue.SimpleQueue = queue.SimpleQueue()
        self.seconds_per_cell = None
        self.threads = 1, float("-inf")
        self.lost = 0

    def run(self):
        try:
            self._submit()
            while self.tasks:
                future = self._next()
                self._take(future, self.tasks.pop(future))
                self._submit()
                if self.show:
                    self.show("sweeping", self.done, self.total)
        finally:
            if self.tasks:  # An exception: the remaining tasks are not needed.
                self.client.cancel(list(self.tasks), force=True)

    def _next(self):
        """Waits for a task to end; gives up after some time without workers."""
        deserted = None
        while True:
            with contextlib.suppress(queue.Empty):
                return self.ended.get(timeout=ASK_SECONDS)
            if self._workers():
                deserted = None
                continue
            deserted = deserted or time.monotonic()
            if time.monotonic() - deserted > DESERTED_SECONDS:
                message = f"the cluster has had no worker for {DESERTED_SECONDS} s; finished cells are kept: start workers and run the sweep again to continue"
                raise errors.ClusterError(message)

    def _submit(self):
        threads = self._threads()
        while (self.alone or self.todo) and len(self.tasks) < 2 * threads:
            self._send([self.alone.popleft()] if self.alone else [self.todo.popleft() for _ in range(self._batch(threads))])
        if self.suspects and not self.tasks:
            self.accused = self.suspects.popleft()
            self._send([self.accused])

    def _send(self, cells):
        compute = functools.partial(_compute, _native.BUILD, self.sweep.complete)
        future = self.client.submit(compute, cells, pure=False, key=f"schedlab-{time.time_ns()}-{cells[0]}")
        self.tasks[future] = cells
        future.add_done_callback(self.ended.put)

    def _threads(self):
        """The number of threads of the cluster; workers join and leave."""
        count, asked = self.threads
        if time.monotonic() - asked > ASK_SECONDS:
            count = max(1, sum(worker["nthreads"] for worker in self._workers()))
            self.threads = count, time.monotonic()
        return count

    def _workers(self):
        """The cluster's workers; none if the scheduler does not answer, which also ends the tasks."""
        with contextlib.suppress(OSError):
            return list(self.client.scheduler_info(n_workers=-1)["workers"].values())
        return []

    def _batch(self, threads):
        """The number of cells of the next task."""
        if self.seconds_per_cell is None:
            return 1
        left = self.seconds_per_cell * len(self.todo) / threads
        longest = max(TASK_SECONDS, SECONDS_PER_THREAD * threads)
        shortest = longest * LAST_TASK_SECONDS / TASK_SECONDS
        seconds = max(shortest, min(longest, left / 4))
        fair = -(-len(self.todo) // threads)
        return max(1, min(round(seconds / self.seconds_per_cell), fair))

    def _take(self, future, cells):
        if future.status == "finished":
            seconds, outcomes = future.result()
            for cell, packed, why in outcomes:
                if why is None:
                    self.sweep.keep(self.directory, cell, packed)
                else:
                    self.sweep.keep_failure(self.directory, cell, why)
            mean = seconds / len(cells)
            # Cells differ: the most recent ones predict the next best.
            self.seconds_per_cell = mean if self.seconds_per_cell is None else (self.seconds_per_cell + mean) / 2
            self.done += len(cells)
            return
        if future.status != "error":
            # The scheduler lost the task: its connection broke, or it lost a worker.
            self.lost += 1
            if self.client.status != "running" or self.lost > MOST_LOST:
                address = getattr(self.client.scheduler, "address", "the cluster")
                raise errors.ClusterError(f"the scheduler at {address} was lost; finished cells are kept: run the sweep again to continue")
            self.alone.extend(cells)
            return
        raised = future.exception()
        if isinstance(raised, errors.ClusterError):
            raise raised
        if len(cells) > 1:
            self.alone.extend(cells)
        elif _killed(raised) and cells != [self.accused]:
            # Dask blames every task of a worker that died. To find the real cause, run each one alone.
            self.suspects.extend(cells)
        else:
            self.sweep.keep_failure(self.directory, cells[0], _describe(raised))
            self.done += 1


def _killed(raised):
    return type(raised).__name__ == "KilledWorker"


def _describe(raised):
    if _killed(raised):
        return "it kills its workers: each worker that tried it died"
    return f"{type(raised).__name__}: {raised}"


def _compute(build, grid, cells):
    """Runs on a worker: returns the duration of the cells and the result of each."""
    _expect_build(build)
    begin = time.perf_counter()
    outcomes = _sweep_of(grid).compute(cells)
    return time.perf_counter() - begin, outcomes


@functools.lru_cache(maxsize=1)
def _sweep_of(grid):
    return _native.Sweep.parse(grid)


def _expect_build(build):
    if build != _native.BUILD:
        raise errors.ClusterError(f"a worker has schedlab {_native.BUILD}, the client {build}: install the same everywhere")


def _build():
    return _native.BUILD


def expect_same_build(client):
    """Refuses a cluster without workers, or with one of another build."""
    if not hasattr(client, "scheduler_info"):
        raise errors.UsageError(f"a client is a dask.distributed.Client, not {client!r}: dask.distributed.Client(ADDRESS) makes one")
    if client.status != "running":
        raise errors.ClusterError(f"the client is {client.status}: connect it to a scheduler that runs")
    if not client.scheduler_info(n_workers=-1)["workers"]:
        raise errors.ClusterError("the cluster has no workers: start some with `dask worker ADDRESS`")
    builds = client.run(_build, on_error="return")
    others = {address: build for address, build in builds.items() if build != _native.BUILD}
    for address, other in list(others.items())[:1]:
        what = f"schedlab {other}" if isinstance(other, str) else f"no schedlab that can be imported ({type(other).__name__}: {other})"
        raise errors.ClusterError(
            f"{len(others)} of {len(builds)} workers differ from this client, which has schedlab {_native.BUILD}: {address} has {what}; install the same everywhere"
        )


def main(directory, address, build):
    """Fills the directory that `schedlab sweep --dask` has started."""
    if build != _native.BUILD:
        raise errors.ClusterError(f"the Python package is schedlab {_native.BUILD}, the program {build}: install the same")
    client = connect(address)
    try:
        fill(_native.Sweep.begun(pathlib.Path(directory)), pathlib.Path(directory), client)
    finally:
        client.close(timeout=1)


if __name__ == "__main__":
    # Workers must be able to import the functions by name.
    from schedlab.cluster import main

    try:
        main(*sys.argv[1:])
    except errors.SchedlabError as error:
        print(error)
        sys.stdout.flush()
        os._exit(77)
