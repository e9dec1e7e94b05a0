"""tools/rt-app: the page is that of the record, a lie in it is found, and all of rt-app's keys are read out of its parser. With $SCHEDLAB_RT_APP and $SCHEDLAB_LISA, clones of the two, all is done again."""

import json
import os
import shutil
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def script(module_of):
    return module_of("rt-app")


def run(root, place, *words, **environment):
    command = [sys.executable, root / "tools" / "rt-app", "--root", place, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.fixture
def place(root, tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("rt-app.json", "rt-app.md"):
        shutil.copy(root / "docs" / name, tmp_path / "docs" / name)
    return tmp_path


def test_the_page_is_that_of_the_record_and_a_lie_is_found(root, place):
    assert run(root, place, "--check").returncode == 0
    file = place / "docs" / "rt-app.json"
    record = json.loads(file.read_text())
    next(row for row in record["examples"] if row["result"] == "refused")["result"] = "runs"
    file.write_text(json.dumps(record, indent=1) + "\n")
    done = run(root, place, "--check")
    assert done.returncode == 4 and "docs/rt-app.md is not what was found" in done.stderr
    assert run(root, place).returncode == 0 and run(root, place, "--check").returncode == 0


def test_every_example_is_on_record_and_only_what_has_no_meaning_is_refused(root, script):
    record = json.loads((root / "docs" / "rt-app.json").read_text())
    assert record["commits"] == {name: commit for name, (commit, _) in script.SOURCES.items()}
    of = {name: [row for row in record["examples"] if row["source"] == name] for name in script.SOURCES}
    assert [len(rows) for rows in of.values()] == [28, 10]
    refused = [row for row in record["examples"] if row["result"] != "runs"]
    assert all(len(row["notes"]) == 1 and row["notes"][0].startswith("line ") for row in refused), refused
    # Parts without tasks, the grammar before 1.0, and a phase that changes its group.
    assert sorted(row["file"] for row in refused) == sorted(["taskset.json", "tutorial/example11.json", "merge/global.json", "merge/resources.json", *(f"merge/thread{n}.json" for n in range(4))])


def test_keys_are_read_out_of_c(script):
    parser = """
static char *events[] = {\n\t"run",\n\t"wait",\n\tNULL\n};
static void\nparse_task_event_data(char *name)\n{
\tif (!strncmp(name, "wait", 4) ||\n\t\t!strncmp(name, "sync", 4)) {\n\t\ttmp = get_string_value_from(obj, "ref", TRUE, "x");\n\t}
\tif (!strncmp(name, "timer", 5)) {\n\t\ti = get_int_value_from(obj, "period", TRUE, 0);\n\t}
\tif (!strncmp(name, "memrun", 6)) {\n\t\ti = get_int_value_from(obj, "size", TRUE, 0);\n\t}\n}
static void parse_sched_data(int obj)\n{\n\tget_int_value_from(obj, "priority", TRUE, 0);\n\t/* Support legacy grammar for thread object */\n\tget_int_value_from(obj, "period", TRUE, 0);\n}
static void parse_cpuset_data(int obj)\n{\n\tx = get_in_object(obj, "cpus", TRUE);\n}
static void parse_numa_data(int obj)\n{\n}
static void parse_taskgroup_data(int obj)\n{\n}
static void\nparse_task_phase_data(int obj)\n{\n\tget_int_value_from(obj, "loop", TRUE, 1);\n}
static void\nparse_task_data(int obj)\n{\n\tget_int_value_from(obj, "loop", TRUE, 1);\n\tget_int_value_from(obj,\n\t\t"delay", TRUE, 1);\n}
static void parse_resource_data(int obj)\n{\n}
static void parse_global(int global)\n{\n\tif (check_type_is(global, "ftrace", 1)) {\n\t}\n}
static void get_opts_from_json_object(int root)\n{\n\tglobal = get_in_object(root, "global", TRUE);\n}
"""
    utils = 'int\nstring_to_resource(int n)\n{\n\tif (strcmp(name, "mutex") == 0)\n}\nint string_to_policy(int n)\n{\n}\n'
    keys = script.keys_of(parser, utils)
    assert keys["event"] == ["run", "wait"] and keys["wait"] == ["ref"] and keys["timer"] == ["period"] and keys["memrun"] == ["size"]
    assert keys["phase"] == ["priority", "cpus", "loop"] and keys["task"] == ["period", "delay"]
    assert keys["global"] == ["ftrace"] and keys["root"] == ["global"] and keys["resource type"] == ["mutex"]


def test_without_what_it_needs_it_says_so(root, place, tmp_path):
    program = tmp_path / "schedlab"
    for words, environment, reason in [
        (["--source", "/nowhere"], {"SCHEDLAB": str(program)}, "schedlab is not there"),
        (["--lisa", "/nowhere"], {}, "--source DIR is not given"),
    ]:
        done = run(root, place, *words, **environment)
        assert done.returncode == 77 and reason in done.stderr, done.stderr
    program.touch()
    done = run(root, place, "--source", "/nowhere", SCHEDLAB=str(program))
    assert done.returncode == 77 and "git clone https://github.com/scheduler-tools/rt-app" in done.stderr, done.stderr


def test_it_is_what_is_found_now(root, program):
    clones = [os.environ.get(name) for name in ("SCHEDLAB_RT_APP", "SCHEDLAB_LISA")]
    if None in clones:
        pytest.skip("set SCHEDLAB_RT_APP and SCHEDLAB_LISA to clones of scheduler-tools/rt-app and ARM-software/lisa")
    done = run(root, root, "--source", clones[0], "--lisa", clones[1], "--check", SCHEDLAB=str(program))
    assert done.returncode == 0, done.stderr
