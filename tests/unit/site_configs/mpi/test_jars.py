"""Jars: those that are installed, or of Debian's packages, and always the pinned ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from site_configs.mpi import jars
from tests.support.fake_mpis import script

NAMES = ("one.jar", "two.jar")
CONTENT = b"a jar"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH; two jars are pinned, and none is installed."""
    pins = tmp_path / "pins.sha256"
    pins.write_text("".join(f"{hashlib.sha256(CONTENT).hexdigest()}  {name}\n" for name in NAMES))
    monkeypatch.setattr(jars, "PINS", pins)
    monkeypatch.setenv("MPJ_HOME", str(tmp_path / "mpj"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:/usr/bin:/bin")
    return tmp_path / "programs"


def pack(programs: Path, content: str) -> None:
    """An ``apt-get`` that downloads one package, and a ``dpkg-deb`` that unpacks both jars of it."""
    script(programs / "apt-get", '[ "$1 $2" = "download libmpj-java" ] && touch mpj.deb')
    unpack = "; ".join(f'printf "{content}" > "$3/usr/share/java/{name}"' for name in NAMES)
    script(programs / "dpkg-deb", f'mkdir -p "$3/usr/share/java"; {unpack}')


def test_what_is_not_installed_is_of_debians_packages_and_fetched_once(programs: Path, tmp_path: Path):
    pack(programs, CONTENT.decode())
    assert jars.gather_jars(tmp_path / "jars") == {}
    assert [(tmp_path / "jars" / name).read_bytes() for name in NAMES] == [CONTENT] * 2
    script(programs / "apt-get", "exit 1")
    assert jars.gather_jars(tmp_path / "jars") == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jars", "pins.sha256", "programs"]


def test_another_content_than_the_pinned_one_is_refused(programs: Path, tmp_path: Path):
    pack(programs, "another jar")
    found = jars.gather_jars(tmp_path / "jars")
    assert [*found] == [*NAMES]
    assert "one.jar: is not the file that pins.sha256 pins" in found["one.jar"]
    assert not [*(tmp_path / "jars").iterdir()]


def test_a_fetch_that_fails_has_its_reason(programs: Path, tmp_path: Path):
    pack(programs, "")
    script(programs / "apt-get", 'echo "W: a warning" >&2; echo "E: no such package" >&2; exit 100')
    assert jars.gather_jars(tmp_path / "jars") == dict.fromkeys(NAMES, "apt-get: E: no such package")
