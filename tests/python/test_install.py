"""`make install` puts a program, man pages and completions into a folder, and refuses others."""

import subprocess
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "install"


def install(*words):
    return subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)


def test_what_is_installed_runs_and_has_its_pages(program, tmp_path):
    done = install("--prefix", str(tmp_path / "usr"), "--program", str(program))
    assert done.returncode == 0, done.stderr
    installed = tmp_path / "usr" / "bin" / "schedlab"
    said = subprocess.run([installed, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout.startswith("schedlab ")
    pages = {page.name for page in (tmp_path / "usr/share/man/man1").iterdir()}
    assert {"schedlab.1", "schedlab-compare.1"} <= pages
    for completion in ("bash-completion/completions/schedlab", "zsh/site-functions/_schedlab", "fish/vendor_completions.d/schedlab.fish"):
        assert "compare" in (tmp_path / "usr/share" / completion).read_text()
    assert f"{installed.parent} is not on your PATH" in done.stdout


def test_what_cannot_be_installed_says_what_to_do(program, tmp_path):
    for words, what in [(["--bogus"], "usage"), (["--prefix", "/proc/none", "--program", str(program)], "PREFIX"), (["--program", "/none"], "no program")]:
        failed = install(*words)
        assert failed.returncode == 2 and what in failed.stderr, failed.stderr
