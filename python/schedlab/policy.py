"""Policies written in Python. They run in the simulator, behind the same seam and under the same checks as those that came with it."""

from __future__ import annotations

from ._native import Context, Effect


class Policy:
    """A scheduling policy: subclass it, define `enqueue`, `dequeue` and `dispatch`, and give the class to `schedlab.simulate`.

    The calls come in this order for each task::

        init_task → ( select_cpu → enqueue → dispatch → running → ( tick )* → stopping → [still runnable: enqueue → …] )* → exit_task

    Tasks and CPUs are numbers from 0; the number of a task that has left is used again. Times are nanoseconds. `cx` is a `schedlab.Context` and is good inside the call
    only. An instance is made for each run, by calling the class without arguments.
    """

    name: str = "python"
    """What results call it."""

    tick_ns: int | None = None
    """The period of `tick` on busy CPUs; None for no ticks."""

    alarm: bool = False
    """Whether it asks to be called again at a time of its choice (`schedlab.kick_at`)."""

    migrates: bool = True
    """Whether a task may run on several CPUs in its life."""

    promises: tuple[str, ...] = ()
    """What the checks hold it to: "work_conserving", "locally_work_conserving", "starvation_free". And "inherits": that it asks `cx.prio(task)` anew at each `enqueue`; without
    it, workloads whose mutexes inherit priorities are refused."""

    def init_task(self, cx: Context, task: int) -> None:
        """A task came into being."""

    def exit_task(self, cx: Context, task: int) -> None:
        """A task has ended. It runs nowhere and waits nowhere."""

    def select_cpu(self, cx: Context, task: int, new: bool, waker: int | None) -> int:
        """A task becomes runnable, being `new` or woken by what runs on the CPU `waker` (None: by an interrupt): the CPU on which it should wait.

        By default an idle one, `cx.idle_cpu_for(task)`, else the one that it last used.
        """
        raise NotImplementedError

    def enqueue(self, cx: Context, task: int, cpu: int, why: str) -> Effect | None:
        """A task waits from now on; `why` is "new", "wakeup", "slice_over", "preempted", "yielded" or "prio_changed" (it was stopped
        because it inherits a priority, or does so no longer). An idle CPU that should look must be kicked: an effect or None.
        """
        raise NotImplementedError

    def dequeue(self, cx: Context, task: int) -> None:
        """A waiting task is taken away without having run."""
        raise NotImplementedError

    def dispatch(self, cx: Context, cpu: int) -> tuple[int, int] | None:
        """The CPU has nothing to run: the waiting task that it shall run and for how many nanoseconds at most, or None to idle."""
        raise NotImplementedError

    def running(self, cx: Context, cpu: int, task: int) -> None:
        """A dispatched task starts to run."""

    def stopping(self, cx: Context, cpu: int, task: int, why: str) -> None:
        """A task stops running; `why` is "slice_over", "preempted", "yielded", "blocked" or "exited". If it is still runnable, `enqueue` follows."""

    def update_idle(self, cx: Context, cpu: int, idle: bool) -> Effect | None:
        """The CPU has become idle, or has left idle for a task: an effect or None."""

    def tick(self, cx: Context, cpu: int, task: int) -> Effect | None:
        """The periodic tick on a busy CPU: an effect or None."""


kick = Effect.kick
kick_at = Effect.kick_at
preempt = Effect.preempt
