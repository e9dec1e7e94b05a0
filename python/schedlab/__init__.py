"""A laboratory for CPU schedulers: one policy, three worlds, the same numbers every time.

    >>> import schedlab
    >>> results = schedlab.compare("unix1990", policies=["central:rr", "take:rr"], load=[0.3, 0.7])
    >>> results.value("ngrr", candidate="take:rr", load=0.7)

Results are Arrow tables: `polars.DataFrame(results)`. docs/PYTHON.md is the guide.
"""

from ._native import BUILD, Context, Effect, Table, Trace, __version__
from .errors import (
    CellsFailed,
    CheckFailed,
    ClusterError,
    Inconclusive,
    InputError,
    InternalError,
    Missing,
    PolicyError,
    SchedlabError,
    UsageError,
)
from .judging import Judge, judge
from .measurements import measure
from .policy import Policy, kick, kick_at, preempt
from .results import Results
from .sweeps import sweep
from .verbs import compare, fit, queue_costs, read_trace, simulate
from .workload import Workload, closed, stochastic

__all__ = [
    "BUILD",
    "CellsFailed",
    "CheckFailed",
    "ClusterError",
    "Context",
    "Effect",
    "Inconclusive",
    "InputError",
    "InternalError",
    "Missing",
    "Policy",
    "PolicyError",
    "Results",
    "SchedlabError",
    "Table",
    "Trace",
    "UsageError",
    "Workload",
    "__version__",
    "closed",
    "compare",
    "fit",
    "judge",
    "kick",
    "kick_at",
    "measure",
    "preempt",
    "queue_costs",
    "read_trace",
    "simulate",
    "stochastic",
    "sweep",
]
