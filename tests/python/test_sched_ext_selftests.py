"""The record of the kernel's own selftests is what its page says, and the script takes no failure for a pass."""

import json
import shutil
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def script(module_of):
    return module_of("sched-ext-selftests")


def run(root, place, *words):
    return subprocess.run([sys.executable, root / "tools" / "sched-ext-selftests", "--root", place, *words], capture_output=True, text=True, check=False)


@pytest.fixture
def place(root, tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("sched-ext-selftests.json", "sched-ext-selftests.md"):
        shutil.copy(root / "docs" / name, tmp_path / "docs" / name)
    return tmp_path


def test_the_page_is_that_of_the_record_and_a_failure_that_nobody_expects_is_told(root, place):
    assert run(root, place, "--check").returncode == 0
    record = place / "docs" / "sched-ext-selftests.json"
    data = json.loads(record.read_text())
    cell = next(cell for cell in data["cells"] if cell["verdict"] == "passes")
    cell |= {"verdict": "fails", "reason": "hotplug.c:74: Expected kind == code"}
    record.write_text(json.dumps(data))
    assert "is not what" in run(root, place, "--check").stderr
    told = run(root, place)
    assert told.returncode == 4 and cell["test"] in told.stderr and "Expected kind" in told.stderr, told.stderr
    assert f"`{cell['test']}` on Linux {cell['kernel']}: fails. Not explained." in (place / "docs" / "sched-ext-selftests.md").read_text()


def test_the_record_is_of_the_pinned_sources_and_the_page_counts_what_it_lacks(root, script):
    data = json.loads((root / "docs" / "sched-ext-selftests.json").read_text())
    assert data["source"] == {"package": script.PACKAGE, "version": script.VERSION, "sha256": script.SOURCE_SHA256}
    tests = {kernel: {cell["test"] for cell in data["cells"] if cell["kernel"] == kernel} for kernel in script.KERNELS}
    assert len(data["tests"]) >= 30 and set(data["tests"]) >= tests["7.3"] >= tests["6.18"], tests
    page = (root / "docs" / "sched-ext-selftests.md").read_text()
    for kernel in ("7.3", "6.18"):
        left = len(data["tests"]) - len(tests[kernel])
        line = next(line for line in page.splitlines() if line.startswith(f"- Linux {kernel}: "))
        assert (f"; {left} were not run yet." in line) == (left > 0), line
    # The canary: a kernel without sched_ext passes nothing.
    assert tests[script.CANARY] == set(script.CANARIES)
    assert all(cell["verdict"] == "fails" for cell in data["cells"] if cell["kernel"] == script.CANARY)
    for cell in data["cells"]:
        # A guest that hangs or panics does not say of what it is made.
        has_hashes = all(len(cell["inputs"].get(key, "")) == 64 for key in ("kernel_sha256", "qemu_sha256", "runner_sha256", "files_sha256"))
        assert has_hashes or cell["verdict"] == "ends the runner", cell
        assert cell["verdict"] == "passes" or cell["reason"], cell


SAID = b"""===== START =====
TEST: dequeue
OUTPUT:
ok 1 dequeue #
=====  END  =====
not ok 2 dequeue_iter #
ok 3 nohz_tick # SKIP
===== START =====
TEST: hotplug
"""


def test_only_what_the_runner_calls_ok_passes(script):
    verdicts = {test: script.verdict_of(test, SAID) for test in ("dequeue", "dequeue_iter", "nohz_tick", "hotplug", "iter")}
    assert verdicts == {"dequeue": "passes", "dequeue_iter": "fails", "nohz_tick": "skipped", "hotplug": None, "iter": None}
    errors = b"libbpf: failed to open system Kconfig\nERR: dequeue.c:9\nof another\nERR: dequeue_iter.c:21\nFailed to load skel\n"
    assert script.reason_of("dequeue_iter", errors, "").startswith("dequeue_iter.c:21: Failed to load skel | libbpf: failed to open")
    assert "hung" in script.reason_of("hotplug", b"", "the guest hung")


def test_sources_that_are_missing_or_others_are_refused_by_name(root, place):
    nothing = run(root, place, "--source", place)
    assert nothing.returncode == 77 and "linux-source-7.3" in nothing.stderr, nothing.stderr
    folder = place / "tools" / "testing" / "selftests" / "sched_ext"
    folder.mkdir(parents=True)
    (folder / "runner.c").write_text("int main(void) { return 0; }\n")
    other = run(root, place, "--source", place)
    assert other.returncode == 3 and "its files have the hash" in other.stderr, other.stderr
