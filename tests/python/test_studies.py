"""The pages for teachers are what the records give, and a record that changes is seen."""

import shutil
import subprocess

STUDIES = ("porter-2021", "curran-stumm-1990", "pslist", "st-andrews", "td-tp")


def check(root, checkout):
    return subprocess.run([root / "tools/studies", "--check", "--root", checkout], capture_output=True, text=True)


def test_pages_are_up_to_date(root):
    done = check(root, root)
    assert done.returncode == 0, done.stderr


def test_a_changed_record_and_a_wrong_source_are_seen(root, tmp_path):
    for name in STUDIES:
        (tmp_path / "papers" / name).mkdir(parents=True)
        for file in ("claims.toml", "record.csv", "teaching.toml"):
            shutil.copy(root / "papers" / name / file, tmp_path / "papers" / name)
    shutil.copytree(root / "docs/studies", tmp_path / "docs/studies")
    assert check(root, tmp_path).returncode == 0
    record = tmp_path / "papers/td-tp/record.csv"
    record.write_text(record.read_text().replace(",holds,", ",does-not-hold,", 1))
    done = check(root, tmp_path)
    assert done.returncode == 4 and "docs/studies/td-tp.md" in done.stderr, done.stderr
    told = tmp_path / "papers/pslist/teaching.toml"
    told.write_text(told.read_text().replace('ours = "{', 'ours = "{X-', 1))
    done = check(root, tmp_path)
    assert done.returncode == 4 and "papers/pslist/teaching.toml" in done.stderr, done.stderr
