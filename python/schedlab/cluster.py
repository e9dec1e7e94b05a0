"""Sweeps on a Dask cluster: cells in batches out, finished cells back, each kept at once. `schedlab sweep --dask ADDRESS` runs this as a program."""

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
"""How long a task should take. What client, scheduler and worker do for one comes when the cells have filled the caches: 10 to 20 ms of CPU."""

LAST_TASK_SECONDS = 1.0
"""How long a task should take at least: when little is left, tasks become shorter, so that all threads end together."""

SECONDS_PER_THREAD = 0.005
"""By how much longer a task should take for each thread of the cluster: the scheduler then ends no more than 200 tasks a second."""

CONNECT_SECONDS = 5

ASK_SECONDS = 5
"""How often the scheduler is asked for its workers."""

DESERTED_SECONDS = 60
"""How long the cluster may be without workers: one that died is back, or another is there, in seconds."""

QUIET = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "1s",
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}
"""Dask's configuration for clusters that compute and are not watched: `dask.config.set(schedlab.cluster.QUIET)` before a LocalCluster, or the same in the workers' dask.yaml.

By default each worker, nanny and scheduler looks at its clock every 20 ms, at its stack every 10 ms, at its memory every 100 ms, and gives freed memory back at once.
"""

MOST_LOST = 100
"""How many tasks a scheduler may forget that still answers."""


def fill(sweep, directory, client, progress=True):
    """Computes on `client` the cells of `sweep` that the directory does not have.

    A cell that fails, or that kills its workers, is kept as failed, and no other suffers. Finished cells are kept as they come, so that whoever is interrupted can go on.
    """
    expect_same_build(client)
    todo = deque(sweep.missing(directory))
    if not todo:
        return
    with shown(progress) as show:
        _Filling(sweep, directory, client, todo, show).run()


def connect(address):
    """A client of the Dask scheduler at `address`, or a message within ten seconds."""
    try:
        import distributed
    except ImportError as error:
        raise errors.Missing("sweeps on a cluster need Dask: pip install 'schedlab[dask]'") from error
    import logging

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, ImportError, MemoryError) as error:  # The last: what answers is no scheduler, and its first bytes are taken for a length.
        message = f"no Dask scheduler answers at {address} within {CONNECT_SECONDS} s: start one with `dask scheduler`, or correct the address"
        raise errors.ClusterError(message) from error


class _Filling:
    """A sweep under way: two tasks for each thread are at the scheduler's at any time, and each is as long as the cells so far were short."""

    def __init__(self, sweep, directory, client, todo, show):
        self.sweep, self.directory, self.client, self.show = sweep, directory, client, show
        self.todo, self.total, self.done = todo, len(todo), 0
        self.alone, self.suspects, self.accused = deque(), deque(), None
        self.tasks, self.ended = {}, queue.SimpleQueue()
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
            if self.tasks:  # An exception: nobody is waiting for what is left.
                self.client.cancel(list(self.tasks), force=True)

    def _next(self):
        """Waits for a task to end; but not for ever if there is nobody to end it."""
        deserted = None
        while True:
            with contextlib.suppress(queue.Empty):
                return self.ended.get(timeout=ASK_SECONDS)
            if self._workers():
                deserted = None
                continue
            deserted = deserted or time.monotonic()
            if time.monotonic() - deserted > DESERTED_SECONDS:
                message = f"the cluster has had no worker for {DESERTED_SECONDS} s; what is finished is kept: start workers and run the sweep again to go on"
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
        """How many threads the cluster has; workers come and go."""
        count, asked = self.threads
        if time.monotonic() - asked > ASK_SECONDS:
            count = max(1, sum(worker["nthreads"] for worker in self._workers()))
            self.threads = count, time.monotonic()
        return count

    def _workers(self):
        """The cluster's workers; none if the scheduler does not answer, which ends the tasks too."""
        with contextlib.suppress(OSError):
            return list(self.client.scheduler_info(n_workers=-1)["workers"].values())
        return []

    def _batch(self, threads):
        """How many cells the next task gets."""
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
            # Cells differ: the last ones say most about the next.
            self.seconds_per_cell = mean if self.seconds_per_cell is None else (self.seconds_per_cell + mean) / 2
            self.done += len(cells)
            return
        if future.status != "error":
            # The scheduler has forgotten it: it was lost itself, or has had trouble with a worker that was.
            self.lost += 1
            if self.client.status != "running" or self.lost > MOST_LOST:
                address = getattr(self.client.scheduler, "address", "the cluster")
                raise errors.ClusterError(f"the scheduler at {address} was lost; what is finished is kept: run the sweep again to go on")
            self.alone.extend(cells)
            return
        raised = future.exception()
        if isinstance(raised, errors.ClusterError):
            raise raised
        if len(cells) > 1:
            self.alone.extend(cells)
        elif _killed(raised) and cells != [self.accused]:
            # Dask blames whatever was at a worker that died: who did it shows when nothing else is at the cluster.
            self.suspects.extend(cells)
        else:
            self.sweep.keep_failure(self.directory, cells[0], _told(raised))
            self.done += 1


def _killed(raised):
    return type(raised).__name__ == "KilledWorker"


def _told(raised):
    if _killed(raised):
        return "it kills its workers: each that tried it died"
    return f"{type(raised).__name__}: {raised}"


def _compute(build, grid, cells):
    """On a worker: how long the cells took, and what came of each."""
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
    """Fills the directory that `schedlab sweep --dask` has begun."""
    if build != _native.BUILD:
        raise errors.ClusterError(f"the Python package is schedlab {_native.BUILD}, the program {build}: install the same")
    client = connect(address)
    try:
        fill(_native.Sweep.begun(pathlib.Path(directory)), pathlib.Path(directory), client)
    finally:
        client.close(timeout=1)


if __name__ == "__main__":
    # What is sent to workers must be found by its name there.
    from schedlab.cluster import main

    try:
        main(*sys.argv[1:])
    except errors.SchedlabError as error:
        print(error)
        sys.stdout.flush()
        os._exit(77)
