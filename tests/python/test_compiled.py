"""The page of compiled schedulers has the tables of its data."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tool(*words):
    return subprocess.run([sys.executable, ROOT / "tools" / "compiled", *words], capture_output=True, text=True, check=False)


def test_the_page_has_the_tables_of_the_data():
    assert tool("--check").returncode == 0


def test_objects_that_are_not_there_are_asked_for_by_name():
    done = tool("--measure")
    assert done.returncode == 77
    assert "--source DIR" in done.stderr
