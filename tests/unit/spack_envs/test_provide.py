"""Which Spack is taken, and what is said if there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spack_envs import provide as module
from spack_envs.provide import NoSpack, Spack, SpackSettings, explain_rejected_spack, provide_spack

NOWHERE = "file:///nonexistent"


def fake_spack(root: Path, prints: str, status: int = 0) -> Path:
    """The root of a Spack that prints its version."""
    executable = root / "bin" / "spack"
    executable.parent.mkdir(parents=True)
    executable.write_text(f'#!/bin/sh\necho "{prints}"\nexit {status}\n')
    executable.chmod(0o755)
    return root


@pytest.fixture
def environ(tmp_path):
    """Variables of a user without any Spack, and upstreams that do not exist."""
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": "/usr/bin:/bin",
        "PLUMBLINE_SPACK_URL": NOWHERE,
        "PLUMBLINE_SPACK_PACKAGES_URL": NOWHERE,
    }


@pytest.fixture
def cache(environ):
    """The user's cache with package recipes, but no Spack."""
    folder = Path(environ["HOME"], ".cache", "plumbline")
    (folder / "spack-packages").mkdir(parents=True)
    return folder


def get(tmp_path: Path, environ: dict[str, str]) -> Spack | NoSpack:
    """What is provided, without saying anything."""
    return provide_spack(tmp_path / "work", lambda _: None, environ)


def test_a_spack_is_asked_without_python_of_the_user(tmp_path):
    """Spack is a Python program: another Python's packages would speak for it."""
    root = fake_spack(tmp_path / "root", "1.1.0$PYTHONPATH$PYTHONHOME")
    foreign = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/foreign", "PYTHONHOME": "/foreign"}
    assert module.read_spack_version(root / "bin" / "spack", tmp_path / "work", foreign) == "1.1.0"


def test_order_of_places(tmp_path, environ, cache):
    assert isinstance(get(tmp_path, environ), NoSpack)
    fake_spack(cache / "spack", "1.1.0 (2e9072)")
    found = get(tmp_path, environ)
    assert found == Spack(cache / "spack/bin/spack", cache / "spack-packages", "1.1.0", "cache")
    on_path = fake_spack(tmp_path / "on path", "1.0.2")
    environ["PATH"] += f":{on_path}/bin"
    found = get(tmp_path, environ)
    assert found == Spack(on_path / "bin/spack", cache / "spack-packages", "1.0.2", "PATH")
    root = fake_spack(tmp_path / "root", "1.2.0.dev0 (abc)")
    environ["SPACK_ROOT"] = str(root)
    found = get(tmp_path, environ)
    assert found == Spack(root / "bin/spack", cache / "spack-packages", "1.2.0.dev0", "SPACK_ROOT")


def test_cache_follows_xdg(tmp_path, environ):
    assert SpackSettings(environ).cache == tmp_path / "home" / ".cache" / "plumbline"
    environ["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    assert SpackSettings(environ).cache == tmp_path / "xdg" / "plumbline"


@pytest.mark.parametrize(
    ("prints", "status", "words"),
    [
        ("0.23.1 (abc)", 0, "is 0.23.1"),
        ("0.99", 0, "is 0.99"),
        ("hello", 0, "does not tell its version"),
        ("", 0, "does not tell its version"),
        ("1.1.0", 1, "does not tell its version"),
    ],
)
def test_unusable_spack_is_passed_over_in_one_line(tmp_path, environ, cache, prints, status, words):
    environ["SPACK_ROOT"] = str(fake_spack(tmp_path / "root", prints, status))
    alone = get(tmp_path, environ)
    assert isinstance(alone, NoSpack)
    assert f"{tmp_path}/root/bin/spack (from SPACK_ROOT) {words}" in alone.reason
    assert "\n" not in alone.reason
    fake_spack(cache / "spack", "1.1.0")
    taken = get(tmp_path, environ)
    assert isinstance(taken, Spack)
    assert taken.origin == "cache"
    assert len(taken.passed_over) == 1
    assert words in taken.passed_over[0]


def test_root_without_a_spack_is_passed_over(tmp_path, environ, cache):
    environ["SPACK_ROOT"] = str(tmp_path / "nothing here")
    fake_spack(cache / "spack", "1.1.0")
    assert get(tmp_path, environ).origin == "cache"


@pytest.mark.parametrize("version", ["1.0", "1.0.2", "1.1.0", "1.2.0.dev0", "2.0", "10.0"])
def test_versions_from_1_0_are_taken(version):
    assert explain_rejected_spack(version) == ""


@pytest.mark.parametrize("version", ["0.23.1", "0.100", "", "one.two", "1"])
def test_other_versions_are_not(version):
    assert explain_rejected_spack(version)


def test_unreachable_upstream_is_one_line(tmp_path, environ):
    answer = get(tmp_path, environ)
    assert isinstance(answer, NoSpack)
    assert answer.reason.startswith(f"{NOWHERE}: ")
    assert "\n" not in answer.reason


def test_spack_without_recipes_is_none(tmp_path, environ):
    environ["SPACK_ROOT"] = str(fake_spack(tmp_path / "root", "1.1.0"))
    answer = get(tmp_path, environ)
    assert isinstance(answer, NoSpack)
    assert NOWHERE in answer.reason


def test_can_be_switched_off(tmp_path, environ, cache):
    fake_spack(cache / "spack", "1.1.0")
    environ["PLUMBLINE_NO_SPACK"] = "1"
    assert get(tmp_path, environ) == NoSpack("PLUMBLINE_NO_SPACK is set")


def upstream(folder: Path, tag: str) -> str:
    """Address of a repository with a fake Spack in release ``tag``."""
    fake_spack(folder, "1.1.0")
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"], ["tag", tag]):
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)
    return f"file://{folder}"


def test_fetches_what_is_missing_and_says_so_once(tmp_path, environ):
    environ |= {
        "PLUMBLINE_SPACK_URL": upstream(tmp_path / "a", "v7.0"),
        "PLUMBLINE_SPACK_RELEASE": "v7.0",
        "PLUMBLINE_SPACK_PACKAGES_URL": upstream(tmp_path / "b", "v2099.01.0"),
        "PLUMBLINE_SPACK_PACKAGES_RELEASE": "v2099.01.0",
    }
    said: list[str] = []
    cache = tmp_path / "home" / ".cache" / "plumbline"
    first = provide_spack(tmp_path / "work", said.append, environ)
    assert first == Spack(cache / "spack/bin/spack", cache / "spack-packages", "1.1.0", "fetched")
    expected = [["fetching", "spack", "v7.0"], ["fetching", "spack-packages", "v2099.01.0"]]
    assert [line.split()[:3] for line in said] == expected
    second = provide_spack(tmp_path / "work", said.append, environ)
    assert isinstance(second, Spack)
    assert second.origin == "cache"
    assert len(said) == 2


def test_nothing_is_fetched_if_a_spack_is_there(tmp_path, environ, cache, monkeypatch):
    environ["SPACK_ROOT"] = str(fake_spack(tmp_path / "root", "1.1.0"))

    def never(*_):
        raise AssertionError("fetched")

    monkeypatch.setattr(module, "fetch_release", never)
    assert isinstance(get(tmp_path, environ), Spack)


def test_pinned_releases():
    settings = SpackSettings({"HOME": "/home/me"})
    assert (settings.spack.tag, settings.packages.tag) == ("v1.1.0", "v2026.03.0")
    assert settings.spack.address == "https://github.com/spack/spack.git"
    assert settings.packages.address == "https://github.com/spack/spack-packages.git"
