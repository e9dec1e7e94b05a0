"""What can go wrong. Each class stands for an exit code of the program; the messages are the program's own."""


class SchedlabError(Exception):
    """Anything that goes wrong. `results` has what there is all the same, or None."""

    results = None


class UsageError(SchedlabError, ValueError):
    """Asks for something that there is not (exit code 2)."""


class InputError(SchedlabError, ValueError):
    """A file cannot be used; the message has its name, the line and the key (exit code 3)."""


class CheckFailed(SchedlabError):
    """A run broke a rule (exit code 4)."""


class Inconclusive(SchedlabError):
    """The time was up before intervals were narrow enough (exit code 5)."""


class Missing(SchedlabError):
    """Something that is needed is not there; the message says what installs it (exit code 77)."""


class InternalError(SchedlabError):
    """A simulation did what cannot be (exit code 1)."""


class PolicyError(SchedlabError):
    """A policy broke its contract, and the message names the callback, the task, the CPU and the rule; or a policy written in Python raised an exception, which is the
    cause of this one (exit code 4)."""


class CellsFailed(SchedlabError):
    """Cells of a sweep failed; `results` has all others, and the message the parameters of those that failed."""


class ClusterError(SchedlabError):
    """A cluster cannot be used: it does not answer, it has no workers, or they run another version."""
