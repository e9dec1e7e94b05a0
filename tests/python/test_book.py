"""tools/book: every page is a chapter once, links lead somewhere, and what mdBook gets is complete."""

import os
import subprocess
import sys

import pytest


def book(root, checkout, *options, **environment):
    run = subprocess.run([sys.executable, root / "tools" / "book", "--root", checkout, *options], capture_output=True, text=True, env={**os.environ, **environment})
    return run.returncode, run.stdout + run.stderr


def test_each_page_is_a_chapter_once_and_no_link_is_broken(root):
    assert book(root, root, "--check") == (0, "")


@pytest.fixture
def checkout(tmp_path):
    """A small book."""
    for folder in ("docs", "code"):
        (tmp_path / folder).mkdir()
    (tmp_path / "code/a.rs").write_text("// a\n")
    (tmp_path / "README.md").write_text("# Top\n\n[a](docs/a.md#two-words), [code](code/a.rs), [folder](code), [far](https://example.org/#x)\n\n```sh\n[none](none.md)\n```\n")
    (tmp_path / "docs/a.md").write_text("# A\n\n## Two `words`!\n\n![picture](a.svg) [top](../README.md) [here](#a)\n")
    (tmp_path / "docs/a.svg").write_text("<svg/>")
    (tmp_path / "docs/SUMMARY.md").write_text("# Summary\n\n[Top](../README.md)\n\n- [A](a.md)\n- [Draft]()\n")
    (tmp_path / "docs/book.toml").write_text('[output.html]\ngit-repository-url = "https://example.org/repo"\n')
    return tmp_path


def change(page, old, new):
    text = page.read_text()
    assert old in text
    page.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("page", "old", "new", "said"),
    [
        ("docs/SUMMARY.md", "- [A](a.md)\n", "", "docs/a.md is listed 0 times"),
        ("docs/SUMMARY.md", "- [A](a.md)\n", "- [A](a.md)\n- [B](a.md)\n", "docs/a.md is listed 2 times"),
        ("docs/SUMMARY.md", "a.md)\n", "a.md)\n- [C](c.md)\n", "there is no docs/c.md"),
        ("README.md", "code/a.rs", "code/b.rs", "README.md:3: `code/b.rs`: there is no code/b.rs"),
        ("README.md", "#two-words", "#three-words", "README.md:3: `docs/a.md#three-words`: docs/a.md has no heading `#three-words`"),
        ("docs/a.md", "#a)", "#b)", "docs/a.md has no heading `#b`"),
        ("docs/a.md", "a.svg", "b.svg", "there is no docs/b.svg"),
    ],
)
def test_a_planted_fault_is_found(root, checkout, page, old, new, said):
    assert book(root, checkout, "--check") == (0, "")
    change(checkout / page, old, new)
    code, found = book(root, checkout, "--check")
    assert code == 4 and said in found, found


def test_mdbook_gets_all_chapters_and_links_that_work(root, checkout):
    program = checkout / "mdbook"
    program.write_text('#!/bin/sh\necho "$@" >> "$0.calls"\n')
    program.chmod(0o755)
    code, said = book(root, checkout, MDBOOK=str(program), CARGO_TARGET_DIR=str(checkout / "target"))
    assert code == 0 and "target/book/html/index.html" in said, said
    made = checkout / "target/book"
    assert program.with_suffix(".calls").read_text() == f"build --dest-dir {made}/html {made}\n"
    assert {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()} == {"book.toml", "src/README.md", "src/SUMMARY.md", "src/docs/a.md", "src/docs/a.svg"}
    assert (made / "src/SUMMARY.md").read_text() == "# Summary\n\n[Top](README.md)\n\n- [A](docs/a.md)\n- [Draft]()\n"
    assert "(docs/a.md#two-words), [code](https://example.org/repo/blob/main/code/a.rs), [folder](https://example.org/repo/tree/main/code)" in (made / "src/README.md").read_text()


def test_each_command_is_a_chapter_with_its_help(root, checkout, program):
    mdbook = checkout / "mdbook"
    mdbook.write_text("#!/bin/sh\n")
    mdbook.chmod(0o755)
    (checkout / "docs/commands.md").write_text("# Commands\n")
    change(checkout / "docs/SUMMARY.md", "- [Draft]", "- [Commands](commands.md)\n- [Draft]")
    settings = {"MDBOOK": str(mdbook), "CARGO_TARGET_DIR": str(checkout / "target")}
    code, said = book(root, checkout, SCHEDLAB=str(checkout / "none"), **settings)
    assert code == 77 and "cargo build --release -p schedlab" in said, said
    assert book(root, checkout, SCHEDLAB=str(program), **settings)[0] == 0
    made = checkout / "target/book/src"
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    # Names stand in a column of their own.
    names = {line.split()[0] for line in said.split("\nOptions:")[0].splitlines() if line.startswith("  ") and line[2] != " "} - {"help"}
    pages = {page.stem for page in (made / "commands").iterdir()}
    assert len(names) > 15 and names == {name for name in pages if name in names} and {"check-verdicts", "new-policy"} <= pages
    summary = (made / "SUMMARY.md").read_text()
    for name in pages:
        words = name.split("-") if name in ("check-verdicts", "new-policy") else [name]
        text = (made / f"commands/{name}.md").read_text()
        assert f"(commands/{name}.md)" in summary
        if len(words) == 2 or name in names:
            help = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"}).stdout
            assert text == f"# schedlab {' '.join(words)}\n\n```text\n{help.rstrip()}\n```\n"
    assert "- [Commands](docs/commands.md)\n  - [record](commands/record.md)\n" in summary
    assert "  - [check](commands/check.md)\n    - [check coverage](commands/check-coverage.md)\n" in summary


def test_without_mdbook_and_cargo_it_says_what_to_install(root, checkout):
    code, said = book(root, checkout, PATH=str(checkout / "empty"), MDBOOK="", CARGO_TARGET_DIR=str(checkout / "target"))
    assert code == 77 and "cargo install --locked mdbook@" in said, said
