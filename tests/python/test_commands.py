"""The commands in the documents: those of the README and the tutorials run, and all have options that exist."""

import functools
import itertools
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Pages whose commands run, in order, in one folder.
TUTORIALS = ("README.md", "docs/first-answer.md", "docs/policies/your-own.md", "docs/kernel.md")

# Commands that do not run here, and why.
GUEST = "boots guests; tests of the same options are crates/schedlab/tests/vm*.rs and tests/python/test_guest.py"
NOT_RUN = {
    "make lab": "takes minutes; tools/docs --check repeats its comparison, and test_docs.py holds the command",
    "make test": "is what runs these tests",
    "sudo schedlab record --calibrate -o server.rec --pid $(pidof -s redis-server) -- redis-benchmark -q -t get": "needs root and a running Redis",
    "schedlab compare yield:2,8 --on vm --policy kernel:other,scx:./my_scheduler": GUEST,
    "schedlab run yield:8 --on vm --policy scx:./my_scheduler --functions 20": GUEST,
    "schedlab compare server.rec --policy eevdf,scx:./main.bpf.o": "needs an object of the reader's; crates/schedlab/tests/compiled.rs runs one",
    "schedlab scheduler add bpfland@1.1.4": "fetches and builds a published scheduler",
    "schedlab queue --crossover rbtree,sorted-list --queues rbtree,sorted-list --count instructions": "counts for minutes",
    "cargo add --path crates/readyq": "changes a package of the user's; tools/published builds one of readyq's package",
    "schedlab reproduce --quick": "takes minutes and boots guests; tests of the studies run parts of it",
    "schedlab reproduce pslist": "takes minutes and boots guests",
    "schedlab compare yield:8 --on vm --policy scx:./my_scheduler -o stored": GUEST,
    "schedlab compare yield:8 --on vm --policy scx:./my_scheduler --against stored --fail-if 'instructions_per_yield > +1%'": GUEST,
    "cargo test": "builds the simulator; tools/published does it, in a crate that `new policy` made",
    "cargo run --release -- list policies": "builds all of schedlab",
    "cargo build --release -p shortest-scx": "builds a scheduler in BPF for minutes",
    "cargo run --release -- compare yield:2,64 --on vm --policy kernel:other,shortest": GUEST,
    'cargo run --release -- diff --decisions "periodic:4?times=60" --policy shortest': GUEST,
    "make kernel": "takes minutes; test_kernel.py runs the same script",
    "tools/kernel riscv --queue RbTree": "boots QEMU; test_kernel.py runs the same script",
    "schedlab inspect results/kernel/riscv.perf-script.txt": "reads what the script above writes; test_kernel.py runs it, too",
    "schedlab compare results/kernel/riscv.perf-script.txt --policy eevdf -o results/kernel/riscv": "reads what the script above writes",
    "cd kernel/teaching && cargo build --offline --target x86_64-unknown-none": "test_kernel.py builds it",
    "schedlab image target/x86_64-unknown-none/debug/teaching-kernel": "reads what the command above builds",
}
# Commands that run with less to do.
SHORTER = {
    "schedlab queue --tasks 1,10,100,1000": "schedlab queue --tasks 1",
    "schedlab compare server.rec --focus redis-server --search": "schedlab compare server.rec --focus redis-server --search --ensemble 4",
}
# What a command prints, or the files that it leaves.
PRINTS = {
    "schedlab compare server.rec -o results": (r"\A.*\bhelps\b.*\n", ["results/report.html", "results/results.json"]),
    "schedlab compare server.rec --focus redis-server --search": (r"redis-server", []),
    "schedlab queue --tasks 1,10,100,1000": (r"(?m)^rbtree .*\d", []),
    "schedlab bisect scheduler --help": (r"--metric", []),
    "schedlab new policy shortest && cd shortest": (r"", ["shortest/Cargo.toml", "shortest/src/lib.rs"]),
}


def commands(text):
    """The commands in the blocks of a page that are for a shell, with their comments."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


def bare(command):
    """A command without its comment."""
    return re.sub(r"\s+# .*", "", command)


def of_tutorials():
    return [(page, bare(command)) for page in TUTORIALS for command in commands((ROOT / page).read_text())]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what the reader has when the commands begin."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copy(ROOT / "workloads/causes/redis.rec.zst", folder / "server.rec")
    return folder


@pytest.mark.parametrize("command", [command for _, command in of_tutorials() if command not in NOT_RUN])
def test_a_command_of_a_tutorial_runs(command, program, place):
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    ran = subprocess.run(["bash", "-c", SHORTER.get(command, command)], cwd=place, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    prints, files = PRINTS[command]
    assert re.search(prints, ran.stdout), ran.stdout
    assert [file for file in files if not (place / file).is_file()] == []


def test_what_is_not_run_is_in_a_tutorial():
    listed = {command for _, command in of_tutorials()}
    assert {*NOT_RUN, *SHORTER, *PRINTS} - listed == set()


def pages():
    skipped = ("target/", "papers/porter-2021/builds/", "node_modules/")
    found = (str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md"))
    return sorted(page for page in found if not page.startswith((".", *skipped)))


@functools.cache
def help_of(program, *words):
    """What `--help` of a command prints; None if there is no such command."""
    ran = subprocess.run([program, *words, "--help"], capture_output=True, text=True)
    return ran.stdout if ran.returncode == 0 else None


def unknown(program, command):
    """The options of a line of a shell that the commands of schedlab in it do not have."""
    lexer = shlex.shlex(re.sub(r"\$\([^)]*\)", "1", bare(command)), posix=True, punctuation_chars="|&;")
    lexer.whitespace_split, lexer.commenters = True, ""
    for is_operator, words in itertools.groupby(lexer, lambda word: set(word) <= set("|&;")):
        words = list(words)
        if is_operator or "schedlab" not in words:
            continue
        words = words[words.index("schedlab") + 1 :]
        words = words[: words.index("--")] if "--" in words else words
        depth = 0
        while depth < min(2, len(words)) and re.fullmatch(r"[a-z][a-z-]*", words[depth]):
            if depth and not re.search(rf"(?m)^  {words[depth]}\b", help_of(program, words[0]).partition("Commands:")[2]):
                break
            depth += 1
        text = help_of(program, *words[:depth])
        if text is None:
            yield f"schedlab {' '.join(words[:depth])}"
            continue
        for word in words[depth:]:
            option = word.partition("=")[0]
            if re.fullmatch(r"-[a-zA-Z]|--[a-z][a-z-]*", option) and not re.search(rf"(?<![\w-]){option}(?![\w-])", text):
                yield option


@pytest.mark.parametrize("page", pages())
def test_the_options_in_a_page_exist(page, program):
    wrong = {command: list(unknown(program, command)) for command in commands((ROOT / page).read_text())}
    assert {command: options for command, options in wrong.items() if options} == {}


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("sudo schedlab compare x.rec --focuss redis -- y --bogus", ["--focuss"]),
        ("schedlab bisect scheduler --metric x --bogus=1  # --comment", ["--bogus"]),
        ("cd x && schedlab comparee --on vm", ["schedlab comparee"]),
        ("schedlab compare a.rec -o DIR --on vm --fail-if 'a > +1% | b' | tee --bogus x", []),
        ("schedlab record --pid $(pidof -s redis) -o x; other --bogus", []),
    ],
)
def test_an_option_that_does_not_exist_is_found(command, found, program):
    assert list(unknown(program, command)) == found
