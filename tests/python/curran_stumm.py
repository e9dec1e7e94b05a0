"""An independent model of Curran & Stumm's Central Queue baseline, in SimPy.

Written from the paper and from the parameters in the documentation of `unix1990`, not from the Rust code: processes and a store of
idle processors instead of an event loop and a policy.
"""

import random
from collections import deque

import simpy

PROCESSORS = 4
QUANTUM = 100.0  # all times in milliseconds
TMC = 1.0
SMC = 0.05
PAUSE = 70.0
BURSTS = 50

# Octaves from 0.125 ms to 16.384 s: ten times as many in each up to 2-4 ms, then fewer by 2^-1.786 in each.
OCTAVES = [0.125 * 2**octave for octave in range(17)]
WEIGHTS = [10.0 ** (octave - 4) for octave in range(4)] + [2 ** (-1.786 * octave) for octave in range(13)]
MEAN_BURST = sum(weight * 1.5 * low for weight, low in zip(WEIGHTS, OCTAVES)) / sum(WEIGHTS)


class CentralQueue:
    """Processors that share one queue; a task that wakes while its last processor idles runs there."""

    def __init__(self, env):
        self.env = env
        self.idle = set(range(PROCESSORS))
        self.queue = deque()
        self.dispatches = 0
        self.migrations = 0

    def run(self, last, burst):
        """Runs a burst, a quantum at a time; yields events, returns the processor it ended on."""
        left = burst * (1 + SMC)
        cpu = None
        while left > 0:
            if cpu is None:
                cpu = yield from self.acquire(last)
                self.dispatches += 1
                if last is not None and cpu != last:
                    self.migrations += 1
                    left += TMC
                last = cpu
            spent = min(left, QUANTUM)
            yield self.env.timeout(spent)
            left -= spent
            if left > 0 and not self.queue:
                continue  # no other task wants it
            if left > 0:
                granted = self.env.event()
                self.queue.append(granted)  # behind those that wait already
                self.release(cpu)
                cpu = yield granted
                self.dispatches += 1
                if cpu != last:
                    self.migrations += 1
                    left += TMC
                last = cpu
        self.release(cpu)
        return cpu

    def acquire(self, last):
        if self.idle:
            cpu = last if last in self.idle else min(self.idle)
            self.idle.remove(cpu)
            return cpu
        granted = self.env.event()
        self.queue.append(granted)
        return (yield granted)

    def release(self, cpu):
        if self.queue:
            self.queue.popleft().succeed(cpu)
        else:
            self.idle.add(cpu)


def simulate(load, tasks, warm_up, seed):
    """GRR of `tasks` tasks after `warm_up` others, while tasks go on arriving, and migrations per dispatch."""
    draw = random.Random(seed)
    env = simpy.Environment()
    system = CentralQueue(env)
    gap = MEAN_BURST * BURSTS / (load * PROCESSORS)
    sums = {"elapsed": 0.0, "task_time": 0.0, "left": tasks}
    over = env.event()

    def task(measured):
        begin, task_time, last = env.now, 0.0, None
        while True:
            low = draw.choices(OCTAVES, WEIGHTS)[0]
            burst = draw.uniform(low, 2 * low)
            task_time += burst
            last = yield env.process(system.run(last, burst))
            if draw.random() < 1 / BURSTS:
                break
            pause = draw.expovariate(1 / PAUSE)
            task_time += pause
            yield env.timeout(pause)
        if measured:
            sums["elapsed"] += env.now - begin
            sums["task_time"] += task_time
            sums["left"] -= 1
            if sums["left"] == 0:
                over.succeed()

    def arrivals():
        number = 0
        while True:
            yield env.timeout(draw.expovariate(1 / gap))
            env.process(task(warm_up <= number < warm_up + tasks))
            number += 1

    env.process(arrivals())
    env.run(until=over)
    return sums["elapsed"] / sums["task_time"], system.migrations / system.dispatches
