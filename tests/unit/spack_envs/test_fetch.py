"""Fetching a release: whole or not at all."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from spack_envs import provide as module
from spack_envs.provide import FetchError, RefusedFetches, extract_git_error, fetch_release
from tests.support.threads import at_once


@pytest.fixture
def upstream(tmp_path):
    """A repository with the release v1 and a later commit."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]

    def git(*arguments):
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)

    git("init", "-q")
    for text in ("released", "later"):
        (folder / "file").write_text(text)
        git("add", "-A")
        git("commit", "-qm", text)
        if text == "released":
            git("tag", "v1")
    return f"file://{folder}"


def test_fetches_the_release(tmp_path, upstream):
    fetch_release(upstream, "v1", tmp_path / "cache" / "copy")
    assert (tmp_path / "cache" / "copy" / "file").read_text() == "released"
    assert os.listdir(tmp_path / "cache") == ["copy"]


@pytest.mark.parametrize(
    ("address", "release", "said"),
    [
        (None, "v2", "has no release v2"),
        ("file:///nonexistent", "v1", r"file:///nonexistent: .*not appear to be"),
        ("--upload-pack=touch x", "v1", None),
    ],
    ids=["release", "repository", "an option"],
)
def test_what_is_not_there_leaves_nothing(tmp_path, upstream, address, release, said):
    with pytest.raises(FetchError, match=said) as caught:
        fetch_release(address or upstream, release, tmp_path / "cache" / "copy")
    assert "\n" not in str(caught.value) and not (tmp_path / "cache").exists()


def test_silent_upstream_is_given_up(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/x.git"
        with pytest.raises(FetchError, match=r"no answer in 0\.2 s"):
            fetch_release(address, "v1", tmp_path / "copy", timeout=0.2)


def test_git_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match="git is not on PATH"):
        fetch_release("file:///x", "v1", tmp_path / "copy")


def test_several_at_once(tmp_path, upstream):
    def run() -> str:
        fetch_release(upstream, "v1", tmp_path / "cache" / "copy")
        return (tmp_path / "cache" / "copy" / "file").read_text()

    assert at_once(run) == ["released"] * 4
    assert os.listdir(tmp_path / "cache") == ["copy"]


def test_failed_transfer_leaves_nothing(tmp_path, upstream, monkeypatch):
    real = module.run_git

    def fails(arguments, *rest):
        if arguments[0] == "clone":
            Path(arguments[-1], "half").write_text("x")
            raise FetchError("broken off")
        return real(arguments, *rest)

    monkeypatch.setattr(module, "run_git", fails)
    with pytest.raises(FetchError, match="broken off"):
        fetch_release(upstream, "v1", tmp_path / "cache" / "copy")
    assert os.listdir(tmp_path / "cache") == []


def test_cache_that_cannot_be_written_is_named(tmp_path, upstream):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(FetchError, match="cache: "):
        fetch_release(upstream, "v1", tmp_path / "cache" / "copy")


def test_leftovers_of_killed_processes_go_but_not_those_of_running_ones(tmp_path, upstream):
    old, new = tmp_path / ".incoming-old", tmp_path / ".incoming-new"
    old.mkdir()
    new.mkdir()
    os.utime(old, (0, 0))
    fetch_release(upstream, "v1", tmp_path / "copy")
    assert not old.exists() and new.exists()


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ("warning: x\nfatal: no\nfatal: second", "no"),
        ("fatal: unable to access 'h/x.git/': Could not resolve host: h", "Could not resolve host: h"),
        ("", "git failed"),
        ("something odd", "git failed"),
    ],
)
def test_complaint_is_what_git_says(errors, words):
    assert extract_git_error(errors) == words


def test_what_was_refused_is_remembered_for_a_day(tmp_path: Path, monkeypatch):
    now, tries = [1e9], []
    monkeypatch.setattr(module.time, "time", lambda: now[0])

    def attempt() -> None:
        tries.append(now[0])
        raise FetchError("no network")

    def fetch(again: bool = False) -> None:
        with pytest.raises(FetchError, match="no network"):
            RefusedFetches(tmp_path / "refused.json", again).fetch("spack v1", attempt)

    fetch()
    fetch()
    assert len(tries) == 1
    fetch(again=True)
    now[0] += module.REMEMBERED
    fetch()
    assert len(tries) == 3
    (tmp_path / "refused.json").write_text("[")
    fetch()
    assert len(tries) == 4
