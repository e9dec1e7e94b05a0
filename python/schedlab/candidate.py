"""What runs in the sandbox of `schedlab judge`: the policy of one file answers callbacks."""

from __future__ import annotations

import importlib.util
import sys

from . import _native
from .policy import Policy

CHANNEL = 3
"""The file of the channel."""


def serve(path: str) -> None:
    """Serves the policy in the file at `path` until the channel ends."""
    try:
        make = _policy(path)
    except Exception as raised:
        _native.serve(None, f"{type(raised).__name__}: {raised}", CHANNEL)
    else:
        _native.serve(make, "", CHANNEL)


def _policy(path: str):
    """The one subclass of `Policy` that the file defines."""
    spec = importlib.util.spec_from_file_location("policy", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file: its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["policy"] = module
    spec.loader.exec_module(module)
    found = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Policy) and one.__module__ == "policy"]
    bases = {base for one in found for base in one.__mro__[1:]}
    found = [one for one in found if one not in bases]
    if len(found) != 1:
        names = ", ".join(one.__name__ for one in found) or "none"
        raise TypeError(f"the file defines one policy, a subclass of schedlab.Policy; this one: {names}")
    return found[0]
