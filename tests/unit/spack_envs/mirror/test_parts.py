"""The parts of a mirror: wheels with pip itself, and sources with repositories of a few bytes."""

import hashlib
import io
import os
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from site_configs.mpi import wheels
from spack_envs.mirror import manifest, parts, spack_sources
from spack_envs.mirror import parts as mirror_wheels
from spack_envs.mirror import spack_sources as spack_mirror
from spack_envs.mirror.manifest import Manifest
from spack_envs.provide import FetchError
from tests.support.factories.mirror import archive
from tests.support.faults import plants
from tests.support.paths import ROOT

OSU = spack_sources.WantedSource("osu-micro-benchmarks", "7.4", "1" * 64, "", "")


def repository(folder: Path, *texts: str) -> list[str]:
    """A repository with a commit for each text; the commits. The first has the tag v1."""
    folder.mkdir()
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]

    def git(*words: str) -> str:
        command = ["git", *identity, *words]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    commits = []
    for text in texts:
        (folder / "file").write_text(text)
        git("add", "-A")
        git("commit", "-qm", text)
        commits.append(git("rev-parse", "HEAD"))
        if text == texts[0]:
            git("tag", "v1")
    return commits


@pytest.fixture
def making(tmp_path: Path) -> parts.MirrorBuild:
    for name in ("mirror", "scratch"):
        (tmp_path / name).mkdir()
    screen = Progress(Console(file=io.StringIO()))
    work = WorkDirectory(tmp_path / "work", ROOT)
    empty = Manifest(*manifest.describe_python())
    return parts.MirrorBuild(work, tmp_path / "mirror", tmp_path / "scratch", empty, {}, screen)


# Jars.


@pytest.mark.parametrize("is_debian", [True, False])
def test_jars_that_cannot_be_had_are_missing_where_debians_can_be_fetched(making, monkeypatch, is_debian: bool):
    names = [name for name, _ in wheels.read_pinned_jars()]
    monkeypatch.setattr(wheels, "gather_jars", lambda folder: {names[0]: "not there"})
    monkeypatch.setattr(wheels, "can_fetch", lambda: is_debian)
    found = parts.gather_jars(making)
    assert [*found.paths] == [f"jars/{name}" for name in names[1:]]
    assert [part.what for part in found.missing] == [f"jar {names[0]}"] * is_debian


# Wheels.


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True),
            st.from_regex(r"[0-9]\.[0-9]", fullmatch=True),
            st.sampled_from(["", " ; python_full_version < '3.11'", " ; sys_platform == 'win32'"]),
            st.lists(st.text("0123456789abcdef", min_size=64, max_size=64), min_size=1, max_size=3),
        ),
        max_size=5,
    )
)
def test_every_package_of_a_lock_file_is_read_with_all_its_hashes(packages):
    text = "# a comment ==1\n"
    for name, version, marker, hashes in packages:
        lines = [f"{name}=={version}{marker}", *(f"--hash=sha256:{hash_}" for hash_ in hashes)]
        text += " \\\n    ".join(lines) + "\n    # via something==2\n"
    found = list(parts.parse_lock_file(text))
    expected = [(name, version, frozenset(hashes)) for name, version, _, hashes in packages]
    assert [(package.name, package.version, package.hashes) for package in found] == expected


def test_every_package_of_our_lock_files_is_read():
    folder = ROOT / "site_configs" / "wheels_lock"
    for lock in (*ROOT.glob("requirements*.lock"), *folder.rglob("*.lock")):
        text = lock.read_text()
        pins = [line for line in text.splitlines() if "==" in line and line[0].isalnum()]
        found = list(parts.parse_lock_file(text))
        assert len(found) == len(pins) > 0
        assert sum(len(package.hashes) for package in found) == text.count("--hash=")


class Index:
    """The only place where pip looks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def wheel(self, name: str) -> str:
        """Put a wheel there; its line in a lock file."""
        path = self.folder / f"{name}-1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            about = f"{name}-1.dist-info"
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
            wheel.writestr(f"{about}/METADATA", metadata)
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/RECORD", "")
        return f"{name}==1 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    settings = {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "NO_CACHE_DIR": "1"}
    for name, value in (settings | {"FIND_LINKS": str(tmp_path / "index")}).items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return Index(tmp_path / "index")


def test_wheels_are_gathered_kept_and_what_cannot_be_had_is_named(tmp_path, index, monkeypatch):
    """One that the index has not does not keep the others away; another call asks for it alone."""
    other = index.wheel("elsewhere").replace("==1 ", "==1 ; sys_platform == 'nowhere' ")
    lock = tmp_path / "a.lock"
    lock.write_text(index.wheel("a") + other + f"absent==1 --hash=sha256:{'0' * 64}\n")
    wheels, scratch = tmp_path / "wheels", tmp_path / "scratch"
    scratch.mkdir()

    def gather() -> tuple[set[str], list[str]]:
        names, missing = mirror_wheels.gather_wheel_files([lock], wheels, scratch, lambda _: None)
        return names, [f"{part.what}: {part.reason}" for part in missing]

    names, missing = gather()
    assert names == {"a-1-py3-none-any.whl"} == set(os.listdir(wheels))
    assert len(missing) == 1
    assert missing[0].startswith("wheel absent 1: No matching distribution found for absent==1")
    assert os.listdir(scratch) == []

    asked = []
    download = mirror_wheels.download_wheels

    def watched(pack, folder):
        asked.append(pack)
        return download(pack, folder)

    monkeypatch.setattr(mirror_wheels, "download_wheels", watched)
    assert gather()[0] == names
    assert "a" not in {each.name for pack in asked for each in pack}


def test_a_wheel_that_is_damaged_is_had_again(tmp_path, index):
    lock = tmp_path / "a.lock"
    lock.write_text(index.wheel("a"))
    wheels, scratch = tmp_path / "wheels", tmp_path / "scratch"
    scratch.mkdir()
    mirror_wheels.gather_wheel_files([lock], wheels, scratch, lambda _: None)
    path = wheels / "a-1-py3-none-any.whl"
    whole = path.read_bytes()
    path.write_bytes(b"damaged")
    mirror_wheels.gather_wheel_files([lock], wheels, scratch, lambda _: None)
    assert path.read_bytes() == whole


# Spack and its recipes.


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Repositories of both, and an empty cache of the user."""
    names = {"spack": "SPACK", "spack-packages": "SPACK_PACKAGES"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    commits = {}
    for name, variable in names.items():
        commits[name] = repository(tmp_path / name, f"{name} 1", f"{name} 2")
        monkeypatch.setenv(f"PLUMBLINE_{variable}_URL", f"file://{tmp_path / name}")
        monkeypatch.setenv(f"PLUMBLINE_{variable}_RELEASE", "v1")
    return commits


def test_releases_are_archived_from_the_users_copy_and_kept(tmp_path, making, upstream):
    part = parts.gather_releases(making)
    found = [(release.name, release.commit) for release in part.releases]
    assert found == [(name, commits[0]) for name, commits in upstream.items()]
    files = tuple(manifest.describe_file(making.folder, path) for path in part.paths)
    before = replace(making.before, releases=part.releases, files=files)
    for name in upstream:  # neither upstream nor a copy is needed any more
        (tmp_path / name).rename(tmp_path / f"{name}-gone")
        (tmp_path / "cache" / "plumbline" / name).rename(tmp_path / f"{name}-copy")
    assert parts.gather_releases(replace(making, before=before)).releases == part.releases
    expected = ["spack v1", "spack-packages v1"]
    assert [each.what for each in parts.gather_releases(making).missing] == expected


def test_a_copy_of_another_release_is_not_taken_for_this_one(tmp_path, making, upstream):
    for name in upstream:
        copy = tmp_path / "cache" / "plumbline" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", str(tmp_path / name), str(copy)], check=True)
    commits = {release.name: release.commit for release in parts.gather_releases(making).releases}
    assert commits == {name: found[0] for name, found in upstream.items()}


def test_an_archive_is_the_same_each_time(tmp_path: Path):
    (commit,) = repository(tmp_path / "r", "text")
    assert spack_sources.pack_commit(tmp_path / "r", commit, "p") == spack_sources.pack_commit(
        tmp_path / "r", commit, "p"
    )


# Sources.


class FakeCollector:
    """In the place of Spack: has some sources, and not others."""

    def __init__(self, has: dict[str, bytes], fails: dict[str, str] | None = None) -> None:
        self.has, self.fails = has, fails or {}
        self.left_out: list[str] = []
        self.elsewhere: dict[str, Path] = {}
        self.found: set[str] = set()

    def gather(self, folder: Path, leave_out, elsewhere) -> dict[str, str]:
        self.left_out, self.elsewhere = list(leave_out), dict(elsewhere)
        self.found = set(manifest.list_present(folder))
        for path, data in self.has.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return self.fails


def kept(making: parts.MirrorBuild, part) -> parts.MirrorBuild:
    """The next call, which finds what this one has made."""
    files = tuple(manifest.describe_file(making.folder, path) for path in part.paths)
    before = replace(making.before, files=files, replaced=part.replaced)
    for path in sorted(making.scratch.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    return replace(making, before=before, given={})


def test_a_given_source_replaces_the_official_one_and_is_kept_by_the_next_call(tmp_path, making):
    commits = repository(tmp_path / "osu", "official", "changed by somebody")
    given = {OSU.package: spack_sources.GivenSource(OSU.package, tmp_path / "osu", commits[0])}
    spack = FakeCollector({})
    part = parts.gather_wanted(replace(making, given=given), spack, [OSU])
    (replaced,) = part.replaced
    assert (replaced.package, replaced.official) == (OSU.package, OSU.sha256)
    assert replaced.origin == f"a git copy (commit {commits[0][:12]})"
    assert part.paths == (f"sources/{spack_sources.locate_archive(replaced.sha256)}",)
    assert manifest.describe_file(making.folder, part.paths[0]).sha256 == replaced.sha256
    assert spack.left_out == [OSU.package]

    again = parts.gather_wanted(kept(making, part), FakeCollector({}), [OSU])
    assert (again.replaced, again.paths) == (part.replaced, part.paths)


def test_without_spack_nothing_is_lost_of_what_an_earlier_call_has_gathered(tmp_path, making, monkeypatch):
    repository(tmp_path / "osu", "text")
    given = {OSU.package: spack_sources.GivenSource(OSU.package, tmp_path / "osu")}
    spack = FakeCollector({"a/right": b"1", "a/damaged": b"2"})
    part = parts.gather_wanted(replace(making, given=given), spack, [OSU])
    later = kept(making, part)
    (making.folder / "sources" / "a" / "damaged").write_bytes(b"3")
    monkeypatch.setenv("PLUMBLINE_NO_SPACK", "1")
    left = parts.gather_sources(later)
    assert set(part.paths) - set(left.paths) == {"sources/a/damaged"}
    assert left.replaced == part.replaced
    assert [each.reason for each in left.missing] == ["no Spack: PLUMBLINE_NO_SPACK is set"]


@pytest.mark.parametrize("wanted", [OSU, replace(OSU, version="7.5", sha256="3" * 64)])
def test_a_replacement_that_is_damaged_or_of_another_version_is_not_kept(tmp_path, making, wanted):
    repository(tmp_path / "osu", "text")
    given = {OSU.package: spack_sources.GivenSource(OSU.package, tmp_path / "osu")}
    part = parts.gather_wanted(replace(making, given=given), FakeCollector({}), [OSU])
    later = kept(making, part)
    if wanted == OSU:
        (making.folder / part.paths[0]).write_bytes(b"damaged")
    spack = FakeCollector({}, {OSU.package: "no network"})
    found = parts.gather_wanted(later, spack, [wanted])
    assert found.replaced == () and spack.left_out == []
    assert [each.what for each in found.missing] == [f"source of {OSU.package} {wanted.version}"]
    assert wanted != OSU or spack.found == set()


def test_a_given_file_that_is_the_official_one_replaces_nothing(tmp_path, making):
    data = archive("osu", file="text")
    (tmp_path / "osu.tar.gz").write_bytes(data)
    official = replace(OSU, sha256=hashlib.sha256(data).hexdigest())
    given = {OSU.package: spack_sources.GivenSource(OSU.package, tmp_path / "osu.tar.gz")}
    spack = FakeCollector({})
    part = parts.gather_wanted(replace(making, given=given), spack, [official])
    assert part.replaced == () and spack.left_out == []
    assert spack.found == {spack_sources.locate_archive(official.sha256)}


def test_what_is_there_and_right_is_handed_to_spack_again_and_what_is_not_is_not(making):
    part = parts.gather_wanted(making, FakeCollector({"a/right": b"1", "a/damaged": b"2"}), [])
    later = kept(making, part)
    (making.folder / "sources" / "a" / "damaged").write_bytes(b"3")
    spack = FakeCollector({})
    parts.gather_wanted(later, spack, [])
    assert spack.found == {"a/right"}


def test_a_source_by_commit_comes_from_the_given_repository_and_replaces_nothing(tmp_path, making):
    commits = repository(tmp_path / "imb", "text", "later")
    imb = spack_sources.WantedSource("imb", "1", "", commits[0], "https://example.org/imb.git")
    given = {"imb": spack_sources.GivenSource("imb", tmp_path / "imb")}
    spack = FakeCollector({"git/x": b"1"})
    part = parts.gather_wanted(replace(making, given=given), spack, [imb])
    assert part.replaced == () and spack.left_out == []
    assert spack.elsewhere == {"https://example.org/imb.git": tmp_path / "imb"}


@plants("builds", "a source that is of nothing, no archive or no repository", "`mirror create --source`", "", 2,
        "…")  # fmt: skip
@pytest.mark.parametrize(
    ("given", "wanted", "words"),
    [
        ("other", OSU, "nothing is built from it; choose from osu-micro-benchmarks"),
        (
            "imb",
            spack_sources.WantedSource("imb", "1", "", "f" * 40, "g"),
            "is not a git repository with the commit ffff",
        ),
        (OSU.package, OSU, "is not a .tar.gz"),
    ],
)
def test_a_given_source_that_cannot_be_used_is_one_line(tmp_path, making, given, wanted, words, declared):
    (tmp_path / "file").write_text("no archive")
    sources = {given: spack_sources.GivenSource(given, tmp_path / "file")}
    with declared.raises(UsageError, match=words):
        parts.gather_wanted(replace(making, given=sources), FakeCollector({}), [wanted])


def test_a_revision_that_is_not_there_is_one_line(tmp_path: Path):
    repository(tmp_path / "osu", "text")
    with pytest.raises(FetchError, match="is not a git repository with v9"):
        spack_sources.prepare_substitute(spack_sources.GivenSource(OSU.package, tmp_path / "osu", "v9"), OSU)
    assert spack_sources.read_commit(tmp_path / "osu", "v9") == ""


def test_an_address_goes_to_a_repository_here(tmp_path: Path):
    repository(tmp_path / "r", "text")
    address = "https://example.org/nowhere.git"
    command = ["git", "ls-remote", address, "HEAD"]
    env = {**os.environ, **spack_sources.redirect_git({address: tmp_path / "r"})}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == spack_sources.read_commit(tmp_path / "r")


def test_the_reason_is_what_spack_says_last():
    said = (
        "==> Warning: Error while fetching osu-micro-benchmarks@7.4\n"
        "  All fetchers failed for spack-stage-x\n"
        "        https://h/osu.tar.gz: errored with: Name or service not known\n"
        "fatal: something of git\n"
        "==> Warning: Error while fetching imb@1\n"
        "  Cannot verify\n"
    )
    found = {match[1]: spack_sources.extract_detail(match[2]) for match in spack_mirror.FAILED.finditer(said)}
    assert found == {
        "osu-micro-benchmarks": "https://h/osu.tar.gz: errored with: Name or service not known",
        "imb": "Cannot verify",
    }
