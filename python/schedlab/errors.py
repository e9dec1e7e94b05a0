"""The exceptions of the package. Each class stands for an exit code of the program; the messages are those of the program."""


class SchedlabError(Exception):
    """The base class. `results` has the results that exist despite the error, or None."""

    results = None


class UsageError(SchedlabError, ValueError):
    """The arguments are wrong, or name something that does not exist (exit code 2)."""


class InputError(SchedlabError, ValueError):
    """A file cannot be used; the message has its name, the line and the key (exit code 3)."""


class CheckFailed(SchedlabError):
    """A run broke a rule (exit code 4)."""


class Inconclusive(SchedlabError):
    """A limit was reached before the intervals were narrow enough (exit code 5)."""


class Missing(SchedlabError):
    """Something needed is missing; the message says what installs it (exit code 77)."""


class InternalError(SchedlabError):
    """A simulation reached an impossible state (exit code 1)."""


class PolicyError(SchedlabError):
    """A policy broke its contract: the message names the callback, the task, the CPU and the rule. Or a policy written in Python raised an exception, which is the
    cause of this one (exit code 4)."""


class CellsFailed(SchedlabError):
    """Cells of a sweep failed: `results` has the other cells, and the message has the parameters of the failed ones."""


class ClusterError(SchedlabError):
    """A cluster cannot be used: it does not answer, it has no workers, or they run another version."""
