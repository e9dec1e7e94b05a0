"""A search for a policy, with the judge as its evaluator (docs/judge.md).

    python docs/judge_search.py -o found

First the options of `eevdf`, by hill climbing; then a small grammar of policies, each written out as a file in Python and run in the sandbox. What each search finds is compared with its start on
seeds that it did not see, by the rule of `schedlab compare`; the score alone proves nothing.
"""

import argparse
import importlib.util
import itertools
import random
from pathlib import Path

import schedlab

SUITE = """\
baseline = "eevdf"
training = ["service.toml"]
held_out = ["build.toml"]
seeds = {seeds}
cpus = 2
switch_cost = "2us"
migration_cost = "10us"
least_work = 0.9

[[score]]
metric = "wakeup_latency_ns_mean"

[[score]]
metric = "makespan_ns"

[limits]
events = 200_000
seconds = 60
"""

WORKLOADS = {
    "service.toml": (4, "40ms", 6, "3ms", "400us"),
    "build.toml": (6, "25ms", 4, "2ms", "300us"),
}

TASKS = """\
[[task]]
name = "calculates"
count = {}
phases = [{{ run = "{}" }}]

[[task]]
name = "serves"
count = {}
phases = [{{ loop = {{ times = 25, phases = [{{ sleep = "{}" }}, {{ run = "{}" }}] }} }}]
"""

POLICY = """\
import schedlab


class Found(schedlab.Policy):
    name = "found"

    def __init__(self):
        self.ready, self.used, self.since, self.burst = [], {{}}, {{}}, {{}}

    def key(self, task):
        return {order}

    def enqueue(self, cx, task, cpu, why):
        self.ready.append(task)
        idle = cx.idle_cpu_for(task)
        if idle is not None:
            return schedlab.kick(idle)
        if {preempts} and why == "wakeup":
            running = [(self.key(cx.current(cpu)), cpu) for cpu in range(cx.cpus) if cx.current(cpu) is not None and cx.allowed(task, cpu)]
            if running and max(running)[0] > self.key(task):
                return schedlab.preempt(max(running)[1])

    def dequeue(self, cx, task):
        self.ready.remove(task)

    def dispatch(self, cx, cpu):
        mine = [task for task in self.ready if cx.allowed(task, cpu)]
        if not mine:
            return None
        task = min(mine, key=self.key)
        self.ready.remove(task)
        return task, {slice_ns}

    def running(self, cx, cpu, task):
        self.since[task] = cx.now

    def stopping(self, cx, cpu, task, why):
        ran = cx.now - self.since.get(task, cx.now)
        self.used[task] = self.used.get(task, 0) + ran
        self.burst[task] = 0 if why == "blocked" else self.burst.get(task, 0) + ran
"""

GRAMMAR = {
    "order": ["0", "self.used.get(task, 0)", "self.burst.get(task, 0)"],
    "preempts": ["False", "True"],
    "slice_ns": ["500_000", "1_000_000", "3_000_000", "10_000_000"],
}
"""In which order tasks run, whether one that wakes stops another, and for how long each runs."""

OPTIONS = {"slice": ["100us", "300us", "700us", "1ms", "3ms", "10ms"], "tick": ["250us", "500us", "1ms", "2ms", "4ms", "10ms"]}
"""The options of `eevdf` that are tuned, each with its values in order."""


def tune(judge, steps, draw):
    """Climbs from the default options to better neighbours; gives the best policy and its score."""
    at = {"slice": "700us", "tick": "4ms"}
    name = lambda given: "eevdf?" + "&".join(f"{option}={value}" for option, value in given.items())
    score = judge(name(at))["score"]
    for _ in range(steps):
        option = draw.choice(list(OPTIONS))
        values = OPTIONS[option]
        place = values.index(at[option]) + draw.choice([-2, -1, 1, 2])
        other = {**at, option: values[min(max(place, 0), len(values) - 1)]}
        found = judge(name(other))["score"]
        if found is not None and found > score:
            at, score = other, found
    return name(at), score


def evolve(judge, folder, count, draw):
    """Tries `count` sentences of the grammar, and gives the file of the best and its score."""
    sentences = list(itertools.product(*GRAMMAR.values()))
    best = (None, 0.0)
    for number, sentence in enumerate(draw.sample(sentences, min(count, len(sentences)))):
        file = folder / f"policy-{number}.py"
        file.write_text(POLICY.format(**dict(zip(GRAMMAR, sentence))))
        row = judge(file)
        print(f"  {file.name}: {' '.join(sentence)}: {row['verdict']} {row['score'] or row['reason']}")
        if (row["score"] or 0) > best[1]:
            best = (file, row["score"])
    return best


def decided(folder, policy, start):
    """The metrics in which `policy` is better and worse than `start`, on other seeds."""
    rows = schedlab.compare(folder / "service.toml", [start, policy], baseline=start, cpus=2, seed=1000, switch_cost="2us", migration_cost="10us").rows
    rows = [row for row in rows if row["candidate"] != start and row["metric"] in ("wakeup_latency_ns_mean", "makespan_ns")]
    return [[row["metric"] for row in rows if row["verdict"] == verdict] for verdict in ("better", "worse")]


def load(file):
    """The policy of a file."""
    spec = importlib.util.spec_from_file_location("found", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", dest="folder", type=Path, default=Path("found"))
    parser.add_argument("--quick", action="store_true", help="few candidates and seeds")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, numbers in WORKLOADS.items():
        (given.folder / name).write_text(TASKS.format(*numbers))
    (given.folder / "suite.toml").write_text(SUITE.format(seeds=2 if given.quick else 16))
    judge, draw = schedlab.Judge(given.folder / "suite.toml"), random.Random(1)

    tuned, score = tune(judge, 10 if given.quick else 30, draw)
    better, worse = decided(given.folder, tuned, "eevdf")
    print(f"{tuned} has the score {score:.3f}; it is better than eevdf in {better}, worse in {worse}")

    file, score = evolve(judge, given.folder, 8 if given.quick else 24, draw)
    if file is None:
        print("no sentence of the grammar has a score")
        return
    better, worse = decided(given.folder, load(file), "eevdf")
    print(f"{file} has the score {score:.3f}; it is better than eevdf in {better}, worse in {worse}")


if __name__ == "__main__":
    main()
