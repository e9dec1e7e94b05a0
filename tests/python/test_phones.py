"""tools/phones: each published recording is read, or refused with its reason. With $SCHEDLAB_PHONES, a folder with clones of LISA and TRAPpy, all are loaded again."""

import os
import subprocess

import pytest


def phones(root, source):
    return subprocess.run([root / "tools" / "phones", "--source", source], capture_output=True, text=True, cwd=root)


def commit(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "files"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


def test_without_clones_it_is_skipped_by_name(root, tmp_path):
    run = phones(root, tmp_path)
    assert run.returncode == 77 and "git clone https://github.com/ARM-software/lisa" in run.stderr
    (tmp_path / "lisa").mkdir()
    commit(tmp_path / "lisa", {"README": "other files"})
    run = phones(root, tmp_path)
    assert run.returncode == 77 and "trace.dat is not in the clone of lisa" in run.stderr


@pytest.mark.skipif("SCHEDLAB_PHONES" not in os.environ, reason="$SCHEDLAB_PHONES is no folder with clones of ARM-software/lisa and ARM-software/trappy")
def test_published_recordings_are_read_or_refused(root):
    run = phones(root, os.environ["SCHEDLAB_PHONES"])
    assert run.returncode == 0, run.stdout + run.stderr
