"""Which Spack is taken, and what is said if there is none."""

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from spack_envs import provide
from spack_envs import provide as module
from spack_envs.layout import SpackEnvironmentError
from tests.support.factories.mirror import archive
from tests.support.faults import Declared, plants

NOWHERE = "file:///nonexistent"


def fake_spack(root: Path, prints: str, status: int = 0) -> Path:
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


def get(tmp_path: Path, environ: dict[str, str]) -> provide.Spack | provide.NoSpack:
    """What is provided, without saying anything."""
    return provide.provide_spack(tmp_path / "work", lambda _: None, environ)


def test_a_spack_is_asked_without_python_of_the_user(tmp_path):
    """Spack is a Python program: another Python's packages would speak for it."""
    root = fake_spack(tmp_path / "root", "1.1.0$PYTHONPATH$PYTHONHOME")
    foreign = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/foreign", "PYTHONHOME": "/foreign"}
    assert module.read_spack_version(root / "bin" / "spack", tmp_path / "work", foreign) == "1.1.0"


def test_order_of_places(tmp_path, environ, cache):
    assert isinstance(get(tmp_path, environ), provide.NoSpack)
    fake_spack(cache / "spack", "1.1.0 (2e9072)")
    found = get(tmp_path, environ)
    assert found == provide.Spack(cache / "spack/bin/spack", cache / "spack-packages", "1.1.0", "cache")
    on_path = fake_spack(tmp_path / "on path", "1.0.2")
    environ["PATH"] += f":{on_path}/bin"
    found = get(tmp_path, environ)
    assert found == provide.Spack(on_path / "bin/spack", cache / "spack-packages", "1.0.2", "PATH")
    root = fake_spack(tmp_path / "root", "1.2.0.dev0 (abc)")
    environ["SPACK_ROOT"] = str(root)
    found = get(tmp_path, environ)
    assert found == provide.Spack(root / "bin/spack", cache / "spack-packages", "1.2.0.dev0", "SPACK_ROOT")


def test_cache_follows_xdg(tmp_path, environ):
    assert provide.SpackSettings(environ).cache == tmp_path / "home" / ".cache" / "plumbline"
    environ["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    assert provide.SpackSettings(environ).cache == tmp_path / "xdg" / "plumbline"


@pytest.mark.parametrize(
    ("prints", "status", "words"),
    [
        ("0.23.1 (abc)", 0, "is 0.23.1"),
        ("0.99", 0, "is 0.99"),
        ("hello", 0, "does not report its version"),
        ("", 0, "does not report its version"),
        ("1.1.0", 1, "does not report its version"),
    ],
)
def test_unusable_spack_is_passed_over_in_one_line(tmp_path, environ, cache, prints, status, words):
    environ["SPACK_ROOT"] = str(fake_spack(tmp_path / "root", prints, status))
    alone = get(tmp_path, environ)
    assert isinstance(alone, provide.NoSpack)
    assert f"{tmp_path}/root/bin/spack (from SPACK_ROOT) {words}" in alone.reason
    assert "\n" not in alone.reason
    fake_spack(cache / "spack", "1.1.0")
    taken = get(tmp_path, environ)
    assert isinstance(taken, provide.Spack)
    assert (taken.origin, len(taken.passed_over)) == ("cache", 1)
    assert words in taken.passed_over[0]


def test_root_without_a_spack_is_passed_over(tmp_path, environ, cache):
    environ["SPACK_ROOT"] = str(tmp_path / "nothing here")
    fake_spack(cache / "spack", "1.1.0")
    assert get(tmp_path, environ).origin == "cache"


def test_versions_from_1_0_are_taken():
    for version in ("1.0", "1.0.2", "1.1.0", "1.2.0.dev0", "2.0", "10.0"):
        assert provide.explain_rejected_spack(version) == ""
    for version in ("0.23.1", "0.100", "", "one.two", "1"):
        assert provide.explain_rejected_spack(version)


def test_unreachable_upstream_is_one_line_also_if_it_is_that_of_the_recipes(tmp_path, environ):
    for root in ("", str(fake_spack(tmp_path / "root", "1.1.0"))):
        answer = get(tmp_path, environ | {"SPACK_ROOT": root})
        assert isinstance(answer, provide.NoSpack)
        assert f"{NOWHERE}: " in answer.reason and "\n" not in answer.reason


def test_can_be_switched_off(tmp_path, environ, cache):
    fake_spack(cache / "spack", "1.1.0")
    environ["PLUMBLINE_NO_SPACK"] = "1"
    assert get(tmp_path, environ) == provide.NoSpack("PLUMBLINE_NO_SPACK is set")


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
    first = provide.provide_spack(tmp_path / "work", said.append, environ)
    assert first == provide.Spack(cache / "spack/bin/spack", cache / "spack-packages", "1.1.0", "fetched")
    expected = [["fetching", "spack", "v7.0"], ["fetching", "spack-packages", "v2099.01.0"]]
    assert [line.split()[:3] for line in said] == expected
    second = provide.provide_spack(tmp_path / "work", said.append, environ)
    assert isinstance(second, provide.Spack)
    assert (second.origin, len(said)) == ("cache", 2)


def test_nothing_is_fetched_if_a_spack_is_there(tmp_path, environ, cache, monkeypatch):
    environ["SPACK_ROOT"] = str(fake_spack(tmp_path / "root", "1.1.0"))

    def never(*_):
        raise AssertionError("fetched")

    monkeypatch.setattr(module, "fetch_release", never)
    assert isinstance(get(tmp_path, environ), provide.Spack)


def test_pinned_releases():
    settings = provide.SpackSettings({"HOME": "/home/me"})
    assert (settings.spack.tag, settings.packages.tag) == ("v1.1.0", "v2026.03.0")
    assert settings.spack.address == "https://github.com/spack/spack.git"
    assert settings.packages.address == "https://github.com/spack/spack-packages.git"


OSU = provide.Substitute("osu-micro-benchmarks", "7.4", "a git copy", "2" * 64)


def packed(folder: Path, data: bytes) -> tuple[Path, str]:
    path = folder / "spack-v1.tar.gz"
    path.write_bytes(data)
    return path, hashlib.sha256(data).hexdigest()


def test_an_archive_is_unpacked_once_and_another_into_another_folder(tmp_path: Path):
    path, sha256 = packed(tmp_path, archive("spack", file="text"))
    folder = provide.unpack_release(path, sha256, tmp_path / "root")
    assert (folder / "file").read_text() == "text"
    path.unlink()
    assert provide.unpack_release(path, sha256, tmp_path / "root") == folder
    assert os.listdir(tmp_path / "root") == [folder.name]
    assert provide.unpack_release(*packed(tmp_path, archive("spack", file="2")), tmp_path / "root") != folder


def leading_out() -> bytes:
    """An archive with a path that leaves the folder."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("spack/../../escaped"), io.BytesIO())
    return data.getvalue()


@plants("builds", "an archive that cannot be unpacked, or leaves its folder", "sources of a mirror",
        "incomplete", 1, "cannot be unpacked")  # fmt: skip
@pytest.mark.parametrize(
    ("data", "words"),
    [(b"no archive", "cannot be unpacked"), (leading_out(), "cannot be unpacked")],
    ids=["no archive", "a path that leads out"],
)
def test_what_cannot_be_unpacked_leaves_nothing(tmp_path, data: bytes, words: str, declared):
    path, sha256 = packed(tmp_path, data)
    with declared.raises(SpackEnvironmentError, match=words):
        provide.unpack_release(path, sha256, tmp_path / "root")
    assert os.listdir(tmp_path / "root") == []
    assert not list(tmp_path.rglob("escaped"))


@plants("builds", "an archive with another checksum", "sources of a mirror", "incomplete", 1,
        "is damaged")  # fmt: skip
def test_an_archive_with_another_checksum_is_not_unpacked(tmp_path: Path, declared: Declared):
    path, _ = packed(tmp_path, archive("spack", file="text"))
    with declared.raises(SpackEnvironmentError):
        provide.unpack_release(path, "0" * 64, tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_without_replaced_sources_there_is_no_repository_of_their_recipes(tmp_path: Path):
    assert provide.write_repository(tmp_path, tmp_path, ()) == {}
    assert list(tmp_path.iterdir()) == []


def test_the_recipe_of_a_replaced_source_asks_for_its_own_checksum(tmp_path: Path):
    ours = tmp_path / "plumbline"
    ((name, place),) = provide.write_repository(tmp_path / "root", ours, [OSU]).items()
    assert f"namespace: {name}\n" in Path(place, "repo.yaml").read_text()
    text = Path(place, "packages", "osu_micro_benchmarks", "package.py").read_text()
    assert f"version('7.4', sha256='{'2' * 64}')" in text
    assert "replaced_source = 'a git copy'" in text
    assert "from spack_repo.builtin.packages.osu_micro_benchmarks.package import OsuMicroB" in text

    (ours / "packages" / "osu_micro_benchmarks").mkdir(parents=True)
    (ours / "packages" / "osu_micro_benchmarks" / "package.py").write_text("")
    ((other, place),) = provide.write_repository(tmp_path / "root", ours, [OSU]).items()
    text = Path(place, "packages", "osu_micro_benchmarks", "package.py").read_text()
    assert "from spack_repo.plumbline.packages.osu_micro_benchmarks.package" in text
    assert other != name  # Spack's index goes by the name

    (ours / "helper.py").write_text("FLAGS = '-O2'\n")
    ((last, place),) = provide.write_repository(tmp_path / "root", ours, [OSU]).items()
    assert Path(place, "packages", "osu_micro_benchmarks", "package.py").read_text() != text
    assert last != other


def test_what_a_source_is_from_cannot_become_a_program(tmp_path: Path):
    evil = provide.Substitute("osu-micro-benchmarks", "7.4", '\'"""\nimport os\n', "2" * 64)
    ((_, place),) = provide.write_repository(tmp_path, tmp_path, [evil]).items()
    text = Path(place, "packages", "osu_micro_benchmarks", "package.py").read_text()
    compile(text, "package.py", "exec")
    assert not any(line.startswith("import os") for line in text.splitlines())


def test_spack_is_told_of_sources_and_never_of_binaries():
    entry = provide.MirroredSources(Path("/m/sources")).entry
    assert entry == {"url": "file:///m/sources", "source": True, "binary": False}
