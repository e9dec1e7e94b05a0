"""Sweeps on real processes: shards, a cluster, workers that are killed, cells that fail, a client that is interrupted: the table is that of an unbroken local run."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import distributed
import pytest

import schedlab as lab
from schedlab import cluster
from schedlab.cluster import QUIET
from schedlab.workload import closed, run, task

GRID = {
    "workload": "unix1990",
    "policies": ["initial:rr", "take:rr"],
    "baseline": "initial:rr",
    "seeds": 6,
    "parameters": {"tasks": 100},
    "axes": {"load": [0.3, 0.5, 0.7], "tmc": ["0ms", "1ms"]},
}
CELLS = 72


@pytest.fixture(scope="module")
def local():
    return lab.sweep(GRID, jobs=2)


@contextlib.contextmanager
def local_cluster(workers, threads=1):
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as client:
            yield cluster, client


@pytest.fixture(scope="module")
def client():
    with dask.config.set(QUIET), local_cluster(workers=2) as (_, client):
        yield client


def test_a_quiet_cluster_differs_in_settings_that_dask_has(client):
    missing = object()
    assert all(dask.config.get(key, missing) is not missing for key in QUIET)
    looks = client.run(lambda dask_worker: {name: each.callback_time for name, each in dask_worker.periodic_callbacks.items()})
    assert all(each["tick"] >= 1000 and each["monitor"] >= 1000 and "profile" not in each for each in looks.values())
    assert set(client.run(os.environ.get, "MALLOC_TRIM_THRESHOLD_").values()) == {os.environ.get("MALLOC_TRIM_THRESHOLD_")}


def grid_file(folder, **changed):
    from schedlab.workload import to_toml

    path = folder / "grid.toml"
    path.write_text(to_toml({**GRID, **changed}))
    return path


def cells(directory):
    return {file.name for file in (Path(directory) / "cells").glob("*.parquet")}


def test_the_program_and_the_package_find_each_others_cells(schedlab, local, tmp_path):
    grid = grid_file(tmp_path)
    out = tmp_path / "out"
    assert schedlab("sweep", grid, "-o", out, "--format", "csv") == local.to_csv()
    files = {name: (out / "cells" / name).stat().st_mtime_ns for name in cells(out)}
    assert len(files) == CELLS
    assert lab.sweep(GRID, output=out).to_csv() == local.to_csv()
    assert {name: (out / "cells" / name).stat().st_mtime_ns for name in cells(out)} == files, "nothing was computed again"


def test_shards_share_the_work_and_are_joined(schedlab, program, local, tmp_path):
    grid, out = grid_file(tmp_path), tmp_path / "out"
    output = schedlab("sweep", grid, "--shard", "1/3", "-o", out)
    assert "24 of 72" in output and len(cells(out)) == 24
    assert "48 of 72 runs are missing" in schedlab("sweep", "--merge", out, code=3)
    children = [subprocess.Popen([program, "sweep", grid, "--shard", f"{part}/3", "-o", out]) for part in (2, 3, 2)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert schedlab("sweep", "--merge", out, "--format", "csv") == local.to_csv()
    lost = sorted((out / "cells").glob("*.parquet"))[0]
    kept = lost.read_bytes()
    lost.unlink()
    lost.with_suffix(".failed").write_text("it cannot be done")
    output = schedlab("sweep", "--merge", out, code=4)
    assert "1 of 72 runs failed" in output and "it cannot be done" in output and "seed" in output
    lost.write_bytes(kept[:100])
    assert "1 of 72 runs failed" in schedlab("sweep", "--merge", out, code=4), "a damaged file is no cell"
    other = grid_file(tmp_path, seeds=7)
    assert "another sweep" in schedlab("sweep", other, "--shard", "1/3", "-o", out, code=2)
    assert "1/100" in schedlab("sweep", grid, "--shard", "0/3", code=2)
    assert "--shard 1/N" in schedlab("sweep", "--merge", tmp_path / "absent", code=3)
    begun = out / "grid.toml"
    begun.write_text("# schedlab 0.0.1+abc\n" + begun.read_text().split("\n", 1)[1])
    assert "computed by schedlab 0.0.1+abc" in schedlab("sweep", "--merge", out, code=3)


def test_a_cluster_comes_to_the_same_table(local, client, tmp_path):
    out = tmp_path / "out"
    assert lab.sweep(GRID, client, output=out, progress=False).to_csv() == local.to_csv()
    assert len(cells(out)) == CELLS
    client.run(forbid)
    try:
        assert lab.sweep(GRID, client, output=out).to_csv() == local.to_csv(), "nothing is left to compute"
    finally:
        client.run(allow)


def forbid():
    from schedlab import cluster

    cluster.kept, cluster._sweep_of = cluster._sweep_of, None


def allow():
    from schedlab import cluster

    cluster._sweep_of = cluster.kept


def test_small_cells_travel_in_batches_of_seconds():
    from collections import deque

    from schedlab.cluster import _Filling

    filling = _Filling(None, None, None, deque(range(10_000)), None)
    assert filling._batch(2) == 1, "nothing is known of them yet"
    filling.seconds_per_cell = 0.01
    assert (filling._batch(2), filling._batch(400)) == (400, 25), "four seconds of cells, but a fair share where there are many threads"
    filling.todo = deque(range(1_000))
    assert (filling._batch(2), filling._batch(6)) == (125, 100), "shorter ones towards the end, but of a second at least"
    filling.todo = deque(range(10))
    assert filling._batch(2) == 5
    filling.seconds_per_cell = 3.0
    assert filling._batch(2) == 1


def test_workloads_travel_with_the_grid(client, tmp_path):
    made = lab.stochastic("mine", base="unix1990", load=0.4, tasks=50)
    grid = {"workload": made, "policies": ["take:rr"], "axes": {"cpus": [1, 2]}}
    here, there = lab.sweep(grid), lab.sweep(grid, client)
    assert here.to_csv() == there.to_csv() and here.rows[0]["workload"] == "mine"


SLOW = {**GRID, "parameters": {"tasks": 1000}, "axes": {"load": [0.5, 0.7]}, "seeds": 10}


@pytest.fixture(scope="module")
def slow():
    return lab.sweep(SLOW).to_csv()


def test_a_worker_that_is_killed_costs_nothing_but_time(slow, tmp_path):
    with local_cluster(workers=2) as (_, client):
        victims = list(client.run(os.getpid).values())
        out = tmp_path / "out"
        killer = subprocess.Popen([sys.executable, "-c", KILLER, str(out / "cells"), str(victims[0])])
        assert lab.sweep(SLOW, client, output=out).to_csv() == slow
        assert killer.wait() == 0
        assert victims[0] not in client.run(os.getpid).values()


KILLER = """
import os, pathlib, signal, sys, time
while len(list(pathlib.Path(sys.argv[1]).glob("*.parquet"))) < 3:
    time.sleep(0.005)
os.kill(int(sys.argv[2]), signal.SIGKILL)
"""


def test_a_cluster_without_workers_is_told(slow, tmp_path, monkeypatch):
    monkeypatch.setattr(lab.cluster, "ASK_SECONDS", 0.2)
    monkeypatch.setattr(lab.cluster, "DESERTED_SECONDS", 1)
    out = tmp_path / "out"
    with local_cluster(workers=1) as (cluster, client):

        def leave():
            while len(cells(out)) < 3:
                time.sleep(0.005)
            cluster.scale(0)

        # A fast machine would be done before its worker is gone.
        client.register_plugin(Broken(None, 0.2))
        leaving = threading.Thread(target=leave)
        leaving.start()
        with pytest.raises(lab.ClusterError, match="has had no worker for 1 s; finished cells are kept"):
            lab.sweep(SLOW, client, output=out)
        leaving.join()
    assert 3 <= len(cells(out)) < 40
    assert lab.sweep(SLOW, output=out).to_csv() == slow


SMALL = {**GRID, "axes": {"load": [0.3]}, "seeds": 4}


class Broken(distributed.WorkerPlugin):
    """Has `fail`, if there is one, called in a worker instead of computing cell 5 of a sweep; every other cell takes `pace` seconds longer."""

    name = "broken"

    def __init__(self, fail, pace):
        self.fail, self.pace = fail, pace

    def setup(self, worker):
        from schedlab import cluster

        sweep_of, fail, pace = cluster._sweep_of, self.fail, self.pace

        class Sweep:
            def __init__(self, grid):
                self.sweep = sweep_of(grid)

            def compute(self, indices):
                if fail and 5 in indices:
                    return fail()
                time.sleep(pace)
                return self.sweep.compute(indices)

        cluster._sweep_of = Sweep


def die():
    time.sleep(2)  # A nanny whose worker dies while it starts gives up, and on a busy machine that takes a while.
    os.kill(os.getpid(), signal.SIGKILL)


def refuse():
    raise ValueError("on purpose")


@contextlib.contextmanager
def attended(cluster):
    """The cluster is repaired: a nanny sometimes does not replace a killed worker; then another one is started."""
    gone = threading.Event()

    def attend():
        without = 0
        while not gone.wait(1):
            without = 0 if cluster.scheduler.workers else without + 1
            if without == 8:
                cluster.scale(len(cluster.workers) + 1)
                without = 0

    attendant = threading.Thread(target=attend)
    attendant.start()
    try:
        yield
    finally:
        gone.set()
        attendant.join()


@pytest.mark.parametrize(
    ("fail", "why", "workers", "pace"),
    [(die, "it kills its workers", 2, 0), (die, "it kills its workers", 1, 1), (refuse, "ValueError: on purpose", 2, 0)],
    ids=["dies", "dies beside others", "refuses"],
)
def test_a_cell_that_fails_is_told_and_the_others_are_there(fail, why, workers, pace, tmp_path):
    out = tmp_path / "out"
    whole = lab.sweep(SMALL)
    with local_cluster(workers, threads=2 // workers) as (cluster, client), attended(cluster):
        client.register_plugin(Broken(fail, pace))
        with pytest.raises(lab.CellsFailed, match=rf"1 of 8 runs failed.*\n.*load=0.3 tasks=100 .*take:rr, seed 2: {why}") as raised:
            lab.sweep(SMALL, client, output=out)
    assert len(cells(out)) == 7
    grr = [raised.value.results.value("grr", candidate=policy) for policy in ("initial:rr", "take:rr")]
    assert grr[0] == whole.value("grr", candidate="initial:rr") and grr[1] != whole.value("grr", candidate="take:rr")
    assert lab.sweep(SMALL, output=out).to_csv() == whole.to_csv(), "it is tried again"


def test_a_client_that_is_interrupted_goes_on(slow, client, tmp_path):
    out = tmp_path / "out"
    code = (
        "import distributed, schedlab, json, sys\n"
        f"schedlab.sweep({SLOW!r}, distributed.Client({client.scheduler.address!r}), output={str(out)!r})"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    while len(cells(out)) < 3:
        time.sleep(0.005)
        assert child.poll() is None, child.stderr.read()
    child.send_signal(signal.SIGINT)
    _, complaint = child.communicate(timeout=120)
    assert child.returncode != 0 and "KeyboardInterrupt" in complaint
    kept = cells(out)
    assert 3 <= len(kept) <= 40
    assert lab.sweep(SLOW, client, output=out).to_csv() == slow
    assert kept <= cells(out)


def test_measurements_never_share_a_host(client, program, tmp_path):
    """Both workers are on this host, so that one of them measures everything, one after another."""
    log, wrapper = tmp_path / "log", tmp_path / "schedlab"
    wrapper.write_text(f'#!/bin/sh\necho begin $PPID >>{log}\n{program} "$@"\ncode=$?\necho end $PPID >>{log}\nexit $code\n')
    wrapper.chmod(0o755)
    options = {"client": client, "ensemble": 2, "program": wrapper}
    made = closed(task("one", [run("1ms")]), name="made")
    results = lab.measure(["hogs:2?work=1ms", made], "kernel:other", cpus=[1], **options)
    assert len({row["workload"] for row in results.rows}) == 2 and "makespan_ns" in repr(results)
    assert all(row["world"] == "host" and row["point"]["host"] == socket.gethostname() for row in results.rows)
    assert results.command.count("--on host") == 2 and results.reproduce is None
    lab.measure(["hogs:2?work=1ms", "hogs:1?work=1ms"], "kernel:other", **options)
    words = [line.split() for line in log.read_text().splitlines()]
    assert [word for word, _ in words] == ["begin", "end"] * 4 and len({worker for _, worker in words}) == 1
    with pytest.raises(lab.SchedlabError, match="on .*: schedlab: there is no workload named `hgs`"):
        lab.measure("hgs", **options)
    with pytest.raises(lab.UsageError, match="give a workload"):
        lab.measure([])


def test_the_program_sweeps_on_a_cluster(schedlab, local, client, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    grid, out = grid_file(tmp_path), tmp_path / "out"
    assert schedlab("sweep", grid, "-o", out, "--dask", client.scheduler.address, "--format", "csv") == local.to_csv()
    assert "finished runs" in schedlab("sweep", grid, "-o", out, "--dask", client.scheduler.address, code=2)
    begin = time.monotonic()
    output = schedlab("sweep", grid, "-o", tmp_path / "dead", "--dask", "tcp://127.0.0.1:9", code=77)
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in output and "Traceback" not in output
    assert time.monotonic() - begin < 60, "it would be 10 s on a machine with nothing else to do"
    output = schedlab("sweep", grid, "-o", tmp_path / "odd", "--dask", "nonsense://x", code=77)
    assert "no Dask scheduler answers" in output and "Traceback" not in output


def test_what_answers_and_is_no_scheduler_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            for _ in range(100):
                connection, _ = server.accept()
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(lab.ClusterError, match="no Dask scheduler answers"):
            cluster.connect(f"tcp://127.0.0.1:{server.getsockname()[1]}")


def test_a_worker_of_another_build_is_refused(client, monkeypatch):
    client.run(pretend, "0.0.1+other")
    try:
        with pytest.raises(lab.ClusterError, match=r"2 of 2 workers differ .* has schedlab 0\.0\.1\+other; install the same"):
            lab.sweep(GRID, client)
    finally:
        client.run(pretend, lab.BUILD)


def pretend(build):
    from schedlab import _native

    _native.BUILD = build


def test_a_cluster_that_cannot_be_used_is_refused():
    with local_cluster(workers=0) as (_, client):
        with pytest.raises(lab.ClusterError, match="no workers"):
            lab.sweep(GRID, client)
    with pytest.raises(lab.ClusterError, match="closed"):
        lab.sweep(GRID, client)


def test_a_grid_that_is_none_is_refused(tmp_path):
    with pytest.raises(lab.InputError, match="axes.laod.*Did you mean `load`"):
        lab.sweep({**GRID, "axes": {"laod": [1]}})
    with pytest.raises(lab.UsageError, match="numbers must be finite"):
        lab.sweep({**GRID, "axes": {"load": [float("nan")]}})
    with pytest.raises(lab.UsageError, match="jobs"):
        lab.sweep(GRID, jobs=0)
    with pytest.raises(lab.UsageError, match="not None"):
        lab.sweep(None)
    with pytest.raises(lab.UsageError, match="dask.distributed.Client, not 'tcp://head:8786'"):
        lab.sweep(GRID, "tcp://head:8786")
