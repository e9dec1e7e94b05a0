"""Measurements on real machines: `schedlab compare --on host`, here or on the hosts of a cluster, one at a time on each host."""

from __future__ import annotations

import socket
import subprocess
from os import PathLike
from typing import Any

from . import _native, cluster, errors
from .results import Results
from .verbs import Several, Subject, _items, _list, _option, find_program
from .workload import Workload, named

RESOURCE = "schedlab-host"
"""The Dask resource that a measurement takes; one worker of each host has one."""


def measure(
    workloads: Several[Subject],
    policies: Several[str] | None = None,
    *,
    cpus: Several[int] | None = None,
    client: Any = None,
    seed: int = 1,
    ensemble: int | None = None,
    ci: str | None = None,
    max_time: str | None = None,
    program: str | PathLike[str] | None = None,
) -> Results:
    """Each of `workloads` on each number of `cpus` under the kernel's own `policies`: `schedlab compare --on host`.

    It runs `program`, by default the installed one. With a `dask.distributed.Client` it runs on the hosts of the cluster, one measurement at a time on each; the column
    `host` names the host. Other work there, including simulations, disturbs the measurement.
    """
    options = [*_list("--policy", policies), *_option("--seed", seed), *_option("--ci", ci)]
    options += [*_option("--ensemble", ensemble), *_option("--max-time", max_time)]
    all_cpus = [None] if cpus is None else _items(cpus)
    subjects = [workloads] if isinstance(workloads, (str, PathLike, Workload)) else list(workloads)
    cells = [(subject, [*options, *_option("--cpus", count)], program and str(program)) for subject in subjects for count in all_cpus]
    printed = [_measure(*cell) for cell in cells] if client is None else _on_cluster(client, cells)
    return Results(_native.joined(printed))


def _measure(workload, options, program):
    """Runs on the measured host; returns its name and the program's output."""
    with named(workload) as name:
        command = [find_program(program), "compare", name, "--on", "host", *options, "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True)
    host = socket.gethostname()
    if done.returncode not in (0, 5):
        raise errors.SchedlabError(f"on {host}: {done.stderr.strip()}")
    return host, done.stdout


def _on_cluster(client, cells):
    cluster.expect_same_build(client)
    _offer(client)
    futures = [client.submit(_measure, *cell, pure=False, resources={RESOURCE: 1}) for cell in cells]
    try:
        return client.gather(futures)
    finally:
        client.cancel(futures)


def _offer(client):
    """Gives one worker of each host one `RESOURCE`."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    offering = {workers[address]["host"] for address, offers in client.run(_offers).items() if offers and address in workers}
    chosen = {workers[address]["host"]: address for address in sorted(workers, reverse=True)}
    wanted = [address for host, address in chosen.items() if host not in offering]
    if wanted:
        client.run(_begin_to_offer, workers=wanted)


def _offers(dask_worker):
    return RESOURCE in dask_worker.state.total_resources


async def _begin_to_offer(dask_worker):
    await dask_worker.set_resources(**{RESOURCE: 1})
