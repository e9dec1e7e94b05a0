"""tools/relatives: facts are found where they stand, a lie in the files is found, and what is missing is named. With $SCHEDLAB_REACTOS, $SCHEDLAB_XNU and $SCHEDLAB_WIN32, clones, the facts are read again."""

import os
import subprocess

import pytest


@pytest.fixture(scope="module")
def relatives(module_of):
    return module_of("relatives")


def known(relatives):
    facts = {}
    for relative, name, value, *_ in relatives.rows_of(relatives.HOME / "facts.csv"):
        facts.setdefault(relative, {})[name] = value
    return facts


def test_the_vectors_on_record_are_those_of_the_facts(root):
    run = subprocess.run([root / "tools" / "relatives", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("relative", "fact", "lie", "vector", "column"),
    [
        ("reactos", "a wait costs", "2", "wakes at 8 for an event, 3/6 left", "left_then"),
        ("reactos", "boost of a keyboard", "5", "wakes at 8 for a keyboard, 6/6 left", "priority_then"),
        ("reactos", "a starving task gets waits' worth", "3", "waits for 4000 ms at 8", "left_then"),
        ("xnu", "worst of users", "4", "has used 40 levels' worth", "priority_then"),
        ("microsoft", "time slice in ms", "30", "runs for a time slice, in us", "left_then"),
    ],
)
def test_a_vector_follows_from_its_fact(relatives, relative, fact, lie, vector, column):
    def of(facts):
        return next(row for row in relatives.vectors(facts) if row[1] == vector)[relatives.VECTORS.index(column)]

    facts = known(relatives)
    true = of(facts)
    facts[relative][fact] = lie
    assert of(facts) != true


def test_a_fact_is_read_where_it_stands_and_one_that_is_gone_is_named(relatives, monkeypatch):
    monkeypatch.setattr(relatives, "SAYS", {"reactos": [("patience", "a.c", "scan(", r"now - (\d+)"), ("is so", "a.c", "", r"scan")]})
    text = "int x = now - 7;\nvoid scan(void)\n{\n  limit = now - 300;\n}\n"
    facts = list(relatives.found(lambda path: text, "reactos"))
    assert facts == [["reactos", "patience", "300", "a.c", 4], ["reactos", "is so", "yes", "a.c", 2]]
    with pytest.raises(SystemExit, match="does not say “patience”"):
        list(relatives.found(lambda path: "void scan(void) {}", "reactos"))


def test_without_the_source_it_says_what_is_missing(root, tmp_path, relatives):
    for name, (repository, _) in relatives.PINS.items():
        for options in ([], ["--source", tmp_path]):
            run = subprocess.run([root / "tools" / "relatives", name, *options], capture_output=True, text=True)
            assert run.returncode == 77 and repository in run.stderr, run.stderr


@pytest.mark.parametrize(("name", "variable"), [("reactos", "SCHEDLAB_REACTOS"), ("xnu", "SCHEDLAB_XNU"), ("microsoft", "SCHEDLAB_WIN32")])
def test_the_facts_are_read_again(root, name, variable):
    source = os.environ.get(variable)
    if not source:
        pytest.skip(f"{variable} is no clone of the relative's repository")
    run = subprocess.run([root / "tools" / "relatives", name, "--source", source, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
