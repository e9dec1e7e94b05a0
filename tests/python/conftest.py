"""What the Python tests share: the repository's root and the program."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def program():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return Path(os.environ.get("SCHEDLAB", target / "debug" / "schedlab"))


@pytest.fixture(scope="session")
def schedlab(program):
    """Runs the program, which must end with `code`, or one of them, and gives what it printed."""

    def run(*arguments, code=0):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        codes = code if isinstance(code, tuple) else (code,)
        assert done.returncode in codes, f"{arguments}: {done.returncode}: {done.stderr}"
        return done.stdout if done.returncode == 0 else done.stderr

    return run
