"""tools/freertos: its files on FreeRTOS with readyq agree, and a lie in them is found. With $SCHEDLAB_FREERTOS, a folder with the clones, it is measured again."""

import csv
import os
import re
import shutil
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def freertos(module_of):
    return module_of("freertos")


@pytest.fixture
def rtos(root):
    return root / "rtos" / "freertos"


def records(rtos, name):
    with (rtos / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def page_lines(freertos, costs, tests):
    """The lines that the tables of the page must have, and no others."""
    lines = []
    for cost in costs:
        values = [[cost[f"{kernel} {value}"] for value in ("minimum", "median", "maximum")] for kernel in ("original", "readyq")]
        if cost["unit"] == "bytes":
            lines.append(f"| {cost['what']} | {values[0][0]} | {values[1][0]} |")
        else:
            lines.append(f"| {cost['what']} | {cost['times']} | {', '.join(values[0])} | {', '.join(values[1])} |")
    runs = {}
    for test in tests:
        if test["kernel"] in freertos.KERNELS or test["kernel"] in freertos.CANARIES:
            if test["test"] != freertos.ORDER:
                runs.setdefault((test["kernel"], test["first tick"]), []).append(test["result"])
    for (kernel, first), results in runs.items():
        said = results[0] if results[0].startswith("stopped") else f"{results.count('passed')} of {len(results)}"
        lines.append(f"| {kernel} | {first} | {said} |")
    return sorted(lines)


def lines_of(page):
    return sorted(line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| what", "| kernel")))


def test_the_page_and_the_tables_agree_and_a_lie_is_found(freertos, rtos):
    costs, tests, page = records(rtos, "costs"), records(rtos, "tests"), (rtos / "README.md").read_text()
    assert lines_of(page) == page_lines(freertos, costs, tests)
    for cost in costs:
        lie = [{**other, "readyq maximum": str(int(other["readyq maximum"]) + 1)} if other is cost else other for other in costs]
        if cost["unit"] == "instructions":
            assert lines_of(page) != page_lines(freertos, lie, tests), cost["what"]
    assert lines_of(page.replace("28 of 28", "27 of 28", 1)) != page_lines(freertos, costs, tests)


def test_every_test_passed_and_every_broken_variant_failed(freertos, rtos):
    tests = records(rtos, "tests")
    names = {test["test"] for test in tests if test["kernel"] == "original" and test["test"] != freertos.ORDER}
    assert len(names) == len(freertos.DEMOS) + 3 and set(freertos.DEMOS) < names
    for kernel in freertos.KERNELS:
        for start in freertos.STARTS:
            run = [test for test in tests if (test["kernel"], test["first tick"]) == (kernel, start) and test["test"] != freertos.ORDER]
            assert {test["test"] for test in run} == names and {test["result"] for test in run} == {"passed"}, (kernel, start)
    for canary in freertos.CANARIES:
        assert any(test["result"] != "passed" for test in tests if test["kernel"] == canary), canary
    assert tests[0]["test"].startswith("same code") and tests[0]["result"] == "passed"
    orders = {test["kernel"]: test["result"] for test in tests if test["test"] == freertos.ORDER}
    assert orders == {"original": "XRABNXABNX", "readyq": "XRABXNABXN"}, "N became ready last, and readyq runs it last"


def test_the_tool_judges_its_rows(freertos):
    rows = [[name, "0", "dynamic", "passed"] for name in freertos.KERNELS] + [[name, "0", "dynamic", "failed"] for name in freertos.CANARIES]
    freertos.judged(rows)
    for bad in ([["readyq", "0", "QPeek", "failed"]], [["readyq", "0", "all", "stopped: why"]]):
        with pytest.raises(SystemExit):
            freertos.judged(rows + bad)
    with pytest.raises(SystemExit):
        freertos.judged([[*row[:3], "passed"] for row in rows])


def test_the_counts_are_exact_and_repeated(freertos, rtos):
    costs = {cost["what"]: cost for cost in records(rtos, "costs")}
    for what, instructions in (("check: a loop of 2000 instructions", "2000"), ("check: an interrupt that is pended: 3 instructions and 1 of its handler", "4")):
        assert {costs[what][column] for column in freertos.COST_COLUMNS[3:]} == {instructions}
    assert all(int(cost["times"]) >= 100 for cost in costs.values() if cost["unit"] == "instructions")


def test_windows_are_counted_by_section(freertos):
    assert freertos.windows(["a;b", "c"], ["6 0 1", "5 10 2", "7 30 1", "6 0 1", "5 7 1", "6 0 1"]) == {"a": [10, 10], "b": [30], "c": [7]}
    for names, lines in ((["a"], ["6 0 1", "5 1 1"]), (["a;b"], ["6 0 1", "5 1 1", "6 0 1"]), (["a", "a"], ["6 0 1", "5 1 1", "6 0 1", "5 1 1", "6 0 1"])):
        with pytest.raises(SystemExit):
            freertos.windows(names, lines)


def test_the_patch_keeps_the_original(rtos):
    patch = (rtos / "readyq.patch").read_text()
    assert set(re.findall(r"^\+\+\+ (\S+)", patch, re.M)) == {"include/FreeRTOS.h", "include/readyq_tasks.h", "tasks.c"}
    assert "configUSE_READYQ    0" in patch and "Amazon" in (rtos / "LICENSE").read_text()


def ended(root, *options, **settings):
    return subprocess.run([sys.executable, root / "tools" / "freertos", *options], capture_output=True, text=True, **settings)


def test_what_is_missing_is_named(root, tmp_path):
    (tmp_path / "empty").mkdir()
    assert ended(root, "--surce", "x").returncode == 2
    run = ended(root)
    assert run.returncode == 77 and "--source" in run.stderr
    run = ended(root, "--source", tmp_path, env={**os.environ, "PATH": str(tmp_path / "empty")})
    assert run.returncode == 77 and "is not installed: apt-get install" in run.stderr


def test_a_clone_or_a_commit_that_is_missing_is_named(root, freertos, tmp_path):
    absent = [program for program in freertos.PROGRAMS if shutil.which(program) is None]
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")
    run = ended(root, "--source", tmp_path)
    assert run.returncode == 77 and f"{tmp_path}/FreeRTOS-Kernel is no clone" in run.stderr
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "FreeRTOS-Kernel.git"], check=True)
    run = ended(root, "--source", tmp_path)
    assert run.returncode == 77 and freertos.CLONES["FreeRTOS-Kernel"] in run.stderr


def test_it_is_measured_again(root):
    source = os.environ.get("SCHEDLAB_FREERTOS")
    if not source:
        pytest.skip("SCHEDLAB_FREERTOS is no folder with clones of FreeRTOS/FreeRTOS-Kernel and FreeRTOS/FreeRTOS")
    run = ended(root, "--source", source, "--check")
    assert run.returncode == 0, run.stderr
