"""What SimSo says of sets of periodic tasks: prints tests/python/simso.json.

SimSo 0.8.5 needs SimPy 2, which cannot be installed beside the SimPy of the other tests, so its answers are kept. To make them again:

    python3 -m venv simso && simso/bin/pip install simso==0.8.5 && simso/bin/python tests/python/simso_reference.py > tests/python/simso.json
"""

import contextlib
import json
import sys

from simso.configuration import Configuration
from simso.core import Model

# Run time, period and deadline in ms. The first is the example of SimSo's documentation.
SETS = {
    "simso": [(3, 7, 7), (3, 12, 12), (5, 20, 20)],
    "buttazzo": [(2, 5, 5), (4, 7, 7)],
    "constrained": [(1, 4, 3), (2, 6, 5), (3, 12, 9)],
    "full": [(1, 2, 2), (1, 4, 4), (2, 8, 8)],
    "dhall": [(1, 10, 10), (1, 10, 10), (21, 22, 21)],
    "two-cpus": [(2, 5, 5), (3, 7, 7), (4, 9, 9), (1, 11, 11)],
}
RUNS = [(name, "RM_mono", "rm", 1) for name in ("simso", "buttazzo", "constrained", "full")]
RUNS += [(name, "EDF_mono", "deadline?limit=100", 1) for name in ("simso", "buttazzo", "constrained", "full")]
RUNS += [(name, scheduler, policy, 2) for name in ("two-cpus", "dhall") for scheduler, policy in (("EDF", "deadline?limit=100"), ("RM", "rm"))]


def ask(tasks, scheduler, cpus, duration):
    configuration = Configuration()
    configuration.duration = duration * configuration.cycles_per_ms
    for index, (run, period, deadline) in enumerate(tasks):
        configuration.add_task(name=f"t{index}", identifier=index, period=period, activation_date=0, wcet=run, deadline=deadline)
    for cpu in range(cpus):
        configuration.add_processor(name=f"CPU {cpu}", identifier=cpu)
    configuration.scheduler_info.clas = f"simso.schedulers.{scheduler}"
    configuration.check_all()
    model = Model(configuration)
    with contextlib.redirect_stdout(sys.stderr):
        model.run_model()
    answers = []
    for task in model.results.tasks.values():
        responses = [job.response_time for job in task.jobs if job.end_date is not None and job.response_time is not None]
        answers.append({"response_ms_max": max(responses) / configuration.cycles_per_ms, "misses": task.exceeded_count > 0})
    return answers


def main():
    runs = []
    for name, scheduler, policy, cpus in RUNS:
        answers = ask(SETS[name], scheduler, cpus, 840)
        runs.append({"set": name, "tasks": SETS[name], "simso": scheduler, "policy": policy, "cpus": cpus, "answers": answers})
    json.dump(runs, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
