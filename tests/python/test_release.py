"""tools/release: what people install has the same bytes each time, and one that answers otherwise than the checkout is found. The builds themselves take long: `make release` runs them."""

import os

import pytest


@pytest.fixture
def release(module_of):
    return module_of("release")


def test_the_same_files_make_the_same_tarball(release, tmp_path):
    for folder, owner in ((tmp_path / "a", 0), (tmp_path / "b", 12)):
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/tool").write_text("#!/bin/sh")
        (folder / "bin/tool").chmod(0o700)
        (folder / "read").write_text("me")
        os.utime(folder / "read", (owner, owner))
    first, second = (release.packed(tmp_path / name, "top", 1_700_000_000) for name in "ab")
    assert first == second
    (tmp_path / "b/read").write_text("em")
    assert release.packed(tmp_path / "b", "top", 1_700_000_000) != first


def test_one_that_answers_otherwise_is_found_and_named(release, monkeypatch, capsys):
    fakes = {"good": (lambda arch: "good.tar", lambda place, arch: b"answer", ["x86_64"]), "bad": (lambda arch: "bad.tar", lambda place, arch: b"another", ["aarch64"])}
    monkeypatch.setattr(release, "NAMES", fakes)
    assert release.made(["good", "bad"], b"answer") == 1
    assert capsys.readouterr().out.splitlines() == ["good for x86_64: good.tar: tried", "bad for aarch64: bad.tar: answers otherwise than the checkout"]
    assert release.made(["bad"], None) == 0, "it was not tried"


def test_a_program_without_the_runner_is_no_release(release, monkeypatch, tmp_path):
    monkeypatch.setattr(release, "TARGET", tmp_path)
    runner = tmp_path / release.triple("x86_64") / "release/build/schedlab-worlds-1/out/runner"
    runner.parent.mkdir(parents=True)
    for built in (b"", b"runner"):
        runner.write_bytes(built)
        with pytest.raises(SystemExit, match="no runner"):
            release.expect_runner([b"a program"])
    release.expect_runner([b"a program with its runner"])


def test_what_is_missing_or_unknown_is_named(release, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SCHEDLAB", "/nowhere")
    monkeypatch.setattr("sys.argv", ["release", "tarball"])
    assert release.main() == 77 and "/nowhere is missing" in capsys.readouterr().err
    for words, what in ((["rpm"], "there is no rpm; there are tarball"), (["wheel"], "needs root; --no-try")):
        monkeypatch.setattr("sys.argv", ["release", *words])
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(SystemExit) as ended:
            release.main()
        assert ended.value.code == 2 and what in capsys.readouterr().err


def test_an_image_that_cannot_be_fetched_is_missing_or_a_fresh_debian_stands_in(release, monkeypatch, capfd):
    def no_root(arch):
        raise release.Missing(f"no Debian for {arch}")

    monkeypatch.setattr(release, "BUILDAH", ["false"])
    monkeypatch.setattr(release, "need", lambda *_: None)
    monkeypatch.setattr(release, "clean_root", no_root)
    monkeypatch.setenv("BASE", "example/none")
    with pytest.raises(release.Missing, match="example/none"):
        release.container("x86_64")
    monkeypatch.delenv("BASE")
    with pytest.raises(release.Missing, match="no Debian for x86_64"):
        release.container("x86_64")
    assert "stands in" in capfd.readouterr().err


def test_programs_that_do_not_run_here_are_named(release):
    release.expect_emulation(release.platform.machine())
    with pytest.raises(release.Missing, match="programs for vax do not run here"):
        release.expect_emulation("vax")
