"""The workflows of the repository run the commands that people run, and nothing that can change under them."""

import re

import pytest


def wrong(text, targets):
    """What is wrong with a workflow: a command that is no target of the Makefile, or an action without its commit."""
    for command in re.findall(r"^ *(?:- )?run: *(.*)$", text, re.M):
        if command.removeprefix("make ") not in targets or not command.startswith("make "):
            yield f"`{command}` is no `make TARGET`"
    for action in re.findall(r"^ *(?:- )?uses: *(.*)$", text, re.M):
        if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", action):
            yield f"{action} is not pinned to a commit"


@pytest.fixture
def targets(root):
    return re.findall(r"^(\w+):", (root / "Makefile").read_text(), re.M)


def test_workflows_run_make_and_pinned_actions(root, targets):
    workflows = sorted((root / ".github/workflows").glob("*.yml"))
    assert [path.stem for path in workflows] == ["ci", "docs", "long", "release"]
    assert [problem for path in workflows for problem in wrong(path.read_text(), targets)] == []


def test_a_command_of_its_own_and_a_tag_are_found(targets):
    assert len(list(wrong("    steps:\n      - uses: actions/checkout@v4\n      - run: cargo test\n      - run: make nothing\n      - run: make lab\n", targets))) == 3
