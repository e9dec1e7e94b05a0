"""What the Python tests share: the repository's root and the program."""

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def module_of(root):
    """A script of tools/ as a module, which finds its neighbours as if it were run."""
    sys.path.insert(0, str(root / "tools"))

    def load(name):
        path = str(root / "tools" / name)
        loader = SourceFileLoader(name, path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        module.__file__ = path
        loader.exec_module(module)
        return module

    return load


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


@pytest.fixture
def copy_of_docs(root, tmp_path):
    """Copies files of docs/ to a checkout that a test may change."""

    def copy(*names):
        (tmp_path / "docs").mkdir()
        for name in names:
            shutil.copy(root / "docs" / name, tmp_path / "docs")
        return tmp_path

    return copy


@pytest.fixture
def code_of(root):
    """Runs a tool on a checkout, and gives its exit code."""

    def of(tool):
        def run(checkout, *options):
            return subprocess.run([root / "tools" / tool, "--root", checkout, *options], capture_output=True, text=True).returncode

        return run

    return of
