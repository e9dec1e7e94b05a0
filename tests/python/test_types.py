"""The types of the package: mypy accepts them, and the native module is what its stub says."""

import subprocess
import sys

import pytest


def mypy(root, *arguments):
    return subprocess.run([sys.executable, "-m", *arguments], cwd=root, capture_output=True, text=True)


def test_mypy_accepts_the_package(root):
    done = mypy(root, "mypy")
    assert done.returncode == 0, done.stdout


def test_mypy_finds_a_wrong_type(root, tmp_path):
    """A canary: the package's types reach who uses it."""
    (tmp_path / "wrong.py").write_text("import schedlab\ncpus: str = schedlab.read_trace('a.rec').cpus\n")
    done = mypy(root, "mypy", str(tmp_path / "wrong.py"))
    assert done.returncode == 1 and "Incompatible types in assignment" in done.stdout, done.stdout


@pytest.fixture
def stubtest(root, tmp_path):
    # pyo3 lists all names of a module there.
    allowed = tmp_path / "allowed"
    allowed.write_text("schedlab._native.__all__\n")
    return lambda *more: mypy(root, "mypy.stubtest", "--mypy-config-file", "pyproject.toml", "--allowlist", str(allowed), *more)


def test_the_stub_is_that_of_the_native_module(stubtest):
    done = stubtest("schedlab._native")
    assert done.returncode == 0, done.stdout


def test_another_module_is_not_as_that_stub_says(stubtest):
    done = stubtest("schedlab._nativ")
    assert done.returncode != 0, done.stdout
