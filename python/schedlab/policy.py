"""Policies written in Python. They run in the simulator, with the same interface and the same checks as the built-in ones."""

from __future__ import annotations

from ._native import Context, Effect


class Policy:
    """A scheduling policy: subclass it, define `enqueue`, `dequeue` and `dispatch`, and give the class to `schedlab.simulate`.

    The calls come in this order for each task::

        init_task → ( select_cpu → enqueue → dispatch → running → ( tick )* → stopping → [still runnable: enqueue → …] )* → exit_task

    Tasks and CPUs are numbers from 0; the number of a task that has exited is reused. Times are nanoseconds. `cx` is a `schedlab.Context`, valid only inside the
    call. Each run gets a new instance, made by calling the class without arguments.
    """

    name: str = "python"
    """The name in results."""

    tick_ns: int | None = None
    """The period of `tick` on busy CPUs; None for no ticks."""

    alarm: bool = False
    """Whether it sets alarms (`schedlab.kick_at`)."""

    migrates: bool = True
    """Whether a task can migrate between CPUs."""

    promises: tuple[str, ...] = ()
    """The promises that the checks verify: "work_conserving", "locally_work_conserving", "starvation_free". And "inherits": it reads `cx.prio(task)` again at each `enqueue`; without
    it, workloads with priority inheritance are refused."""

    def init_task(self, cx: Context, task: int) -> None:
        """A task was created."""

    def exit_task(self, cx: Context, task: int) -> None:
        """A task has exited. It neither runs nor waits."""

    def select_cpu(self, cx: Context, task: int, new: bool, waker: int | None) -> int:
        """A task becomes runnable. It is `new`, or woken by the task on the CPU `waker` (None: by an interrupt). Returns the CPU on which it should wait.

        By default an idle CPU, `cx.idle_cpu_for(task)`, else its last CPU.
        """
        raise NotImplementedError

    def enqueue(self, cx: Context, task: int, cpu: int, why: str) -> Effect | None:
        """A task waits from now on; `why` is "new", "wakeup", "slice_over", "preempted", "yielded", "prio_changed" (it was stopped
        because it begins or ends to inherit a priority) or "restored" (it waited, and `dequeue` removed it because its priority changes). To let an idle CPU dispatch, return a kick: an effect or None.
        """
        raise NotImplementedError

    def dequeue(self, cx: Context, task: int) -> None:
        """A waiting task is removed without running."""
        raise NotImplementedError

    def set_weight(self, cx: Context, task: int, old: int, inherited: bool) -> Effect | None:
        """The priority of a task changes from `old` to `cx.prio(task)`, its own one, or one `inherited` from a task that waits for its mutex. The task does not wait: a
        waiting task is dequeued before and enqueued afterwards. It may run. Returns an effect or None.
        """

    def dispatch(self, cx: Context, cpu: int) -> tuple[int, int] | None:
        """The CPU has no task. Returns the waiting task to run and its slice in nanoseconds, or None to idle."""
        raise NotImplementedError

    def running(self, cx: Context, cpu: int, task: int) -> None:
        """A dispatched task starts to run."""

    def stopping(self, cx: Context, cpu: int, task: int, why: str) -> None:
        """A task stops running; `why` is "slice_over", "preempted", "yielded", "blocked", "exited" or "other_class". If it is still runnable, `enqueue` follows."""

    def update_idle(self, cx: Context, cpu: int, idle: bool) -> Effect | None:
        """The CPU becomes idle, or leaves idle for a task. Returns an effect or None."""

    def tick(self, cx: Context, cpu: int, task: int) -> Effect | None:
        """The periodic tick on a busy CPU. Returns an effect or None."""


kick = Effect.kick
kick_at = Effect.kick_at
preempt = Effect.preempt
