"""Gather the parts of a mirror: wheels, Spack with its recipes, and sources."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.files import read_regular, read_text
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from site_configs.families import DEFAULT_FAMILIES
from site_configs.mpi import inventory, wheels
from site_configs.mpi.wheels import LOCKS
from spack_envs import machine as spack_machine
from spack_envs.layout import SpackEnvironmentError
from spack_envs.mirror import manifest
from spack_envs.mirror import spack_sources as spack_mirror
from spack_envs.mirror.manifest import ArchivedRelease, Manifest, MissingPart, ReplacedSource, describe_file
from spack_envs.mirror.spack_sources import GivenSource, SourceCollector, WantedSource
from spack_envs.mirror.use import JARS, RELEASES, SOURCES, WHEELS
from spack_envs.provide import FetchError, NoSpack, Spack, SpackSettings, provide_spack

PACK = 8  #: packages per call of pip
PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class LockedPackage:
    name: str
    version: str
    text: str  #: text of the file
    hashes: frozenset[str]


def parse_lock_file(text: str) -> Iterator[LockedPackage]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for block in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if pin := PIN.match(block):
            hashes = frozenset(HASH.findall(block))
            yield LockedPackage(pin["name"], pin["version"], " ".join(block.split()), hashes)


def gather_wheel_files(
    locks: Iterable[Path], wheels: Path, scratch: Path, now: Callable[[str], None]
) -> tuple[set[str], list[MissingPart]]:
    """Put the wheels that lock files name into the folder ``wheels``. Existing correct ones are kept.

    pip uses the sources in the user's settings, and checks each wheel against the hashes of its lock file.

    :param scratch: an empty folder on the same file system
    :returns: names of the files that belong there, and the packages that are not available.
    """
    wheels.mkdir(exist_ok=True)
    there = {describe_file(wheels, path.name).sha256: path.name for path in wheels.glob("*.whl")}
    packages = list(dict.fromkeys(package for lock in locks for package in parse_lock_file(read_text(lock))))
    kept = {there[digest] for package in packages for digest in package.hashes & set(there)}
    lacking = [package for package in packages if not package.hashes & set(there)]
    missing = []
    for begin in range(0, len(lacking), PACK):
        now(f"wheels: {len(packages) - len(lacking) + begin} of {len(packages)}")
        pack = lacking[begin : begin + PACK]
        if download_wheels(pack, scratch):
            for package in pack:
                if reason := download_wheels([package], scratch):
                    missing.append(MissingPart(f"wheel {package.name} {package.version}", reason))
        kept |= move_downloads(scratch, wheels)
    return kept, missing


def download_wheels(packages: Sequence[LockedPackage], folder: Path) -> str:
    """Make pip download the packages that their markers allow here. Return the error, or an empty text."""
    request = folder / "request.txt"
    request.write_text("".join(f"{package.text}\n" for package in packages))
    pip = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(request)]
    done = subprocess.run(
        [*pip, *options, "-d", str(folder)], check=False, capture_output=True, text=True, errors="replace"
    )
    request.unlink()
    if done.returncode == 0:
        return ""
    lines = (done.stderr.strip() or "pip failed").splitlines()
    errors = [line for line in lines if line.startswith("ERROR: ")]
    return (errors or lines)[-1].removeprefix("ERROR: ")


def move_downloads(scratch: Path, wheels: Path) -> set[str]:
    """Move complete downloads to their place. Return their names."""
    names = {path.name for path in scratch.glob("*.whl")}
    for name in names:
        os.replace(scratch / name, wheels / name)
    return names


@dataclass(frozen=True)
class MirrorBuild:
    work: WorkDirectory
    folder: Path
    scratch: Path  #: on the same file system, removed at the end
    before: Manifest  #: the earlier contents
    given: Mapping[str, GivenSource]  #: sources that the user gives, by package
    progress: Progress

    def intact(self, path: str) -> bool:
        """Return whether a file from an earlier call is present and unchanged."""
        entries = [file for file in self.before.files if file.path == path]
        return bool(entries) and not manifest.find_file_fault(self.folder, entries[0])

    def place(self, file: Path, path: str) -> None:
        """Move a complete file to its place."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, target)


@dataclass(frozen=True)
class GatheredPart:
    paths: tuple[str, ...] = ()
    releases: tuple[ArchivedRelease, ...] = ()
    replaced: tuple[ReplacedSource, ...] = ()
    missing: tuple[MissingPart, ...] = ()


def gather_wheels(making: MirrorBuild) -> GatheredPart:
    """Gather the wheels of Plumbline's packages, those of its tests, and the MPIs."""
    source = making.work.source
    locks = [source / "requirements.lock", source / "requirements-test.lock"]
    locks += [lock for lock in sorted(LOCKS.rglob("*.lock"))]
    scratch = making.scratch / WHEELS
    scratch.mkdir()
    making.progress.say(f"wheels of {', '.join(lock.stem for lock in locks)}")
    wheels = making.folder / WHEELS
    names, missing = gather_wheel_files(locks, wheels, scratch, making.progress.now)
    return GatheredPart(tuple(f"{WHEELS}/{name}" for name in names), missing=tuple(missing))


def gather_jars(making: MirrorBuild) -> GatheredPart:
    """Gather the jars of MPJ Express, if they are installed or Debian's packages can be fetched."""
    lacking = wheels.gather_jars(making.folder / JARS)
    missing = [MissingPart(f"jar {name}", reason) for name, reason in lacking.items()]
    if missing and not wheels.can_fetch():
        making.progress.say(f"no jars of MPJ Express: {missing[0].reason}")
        missing = []
    names = [name for name, _ in wheels.read_pinned_jars() if name not in lacking]
    return GatheredPart(tuple(f"{JARS}/{name}" for name in names), missing=tuple(missing))


def gather_releases(making: MirrorBuild) -> GatheredPart:
    releases, missing = [], []
    for upstream in (SpackSettings().spack, SpackSettings().packages):
        path = f"{RELEASES}/{upstream.name}-{upstream.tag.replace('/', '_')}.tar.gz"
        earlier = [release for release in making.before.releases if release.path == path]
        if earlier and making.intact(path):
            releases.append(earlier[0])
            continue
        making.progress.say(f"{upstream.name} {upstream.tag}")
        try:
            archive = making.scratch / upstream.name
            say = making.progress.say
            commit = spack_mirror.archive_release(upstream, archive, making.scratch / "clones", say)
        except FetchError as error:
            missing.append(MissingPart(f"{upstream.name} {upstream.tag}", str(error)))
            continue
        making.place(archive, path)
        releases.append(ArchivedRelease(upstream.name, upstream.tag, commit, path))
    paths = tuple(release.path for release in releases)
    return GatheredPart(paths, releases=tuple(releases), missing=tuple(missing))


def gather_sources(making: MirrorBuild) -> GatheredPart:
    """Gather the sources of everything that Spack compiles for an MPI. They are the same for all.

    :raises UsageError: if a given source is not wanted, or cannot be used.
    """
    try:
        collector = SourceCollector(*prepare_solver(making))
        making.progress.say("solving an environment, to see what is compiled")
        return gather_wanted(making, collector, collector.wanted())
    except SpackEnvironmentError as error:
        return keep_earlier_sources(making, MissingPart("sources", str(error)))


def keep_earlier_sources(making: MirrorBuild, missing: MissingPart) -> GatheredPart:
    """Keep what an earlier call gathered, if it cannot be determined what is wanted."""
    paths = tuple(
        file.path
        for file in making.before.files
        if file.path.startswith(f"{SOURCES}/") and making.intact(file.path)
    )
    replaced = tuple(
        source
        for source in making.before.replaced
        if f"{SOURCES}/{spack_mirror.locate_archive(source.sha256)}" in paths
    )
    return GatheredPart(paths, replaced=replaced, missing=(missing,))


def prepare_solver(making: MirrorBuild) -> tuple[Spack, Path, Path]:
    """Prepare Spack with an environment without replaced sources, and a work directory for it.

    :raises SpackEnvironmentError: if there is no Spack or no MPI here.
    """
    work, say = making.work, making.progress.say
    spack = provide_spack(work.root, say)
    if isinstance(spack, NoSpack):
        raise SpackEnvironmentError(f"no Spack: {spack.reason}")
    wheels = making.folder / WHEELS
    machine_inventory = inventory.collect_inventory(work.root, DEFAULT_FAMILIES, say, wheel_folder=wheels)
    usable = [mpi for mpi in machine_inventory.mpis if mpi.family in DEFAULT_FAMILIES]
    if not usable:
        raise SpackEnvironmentError("no MPI on this machine, so that no environment can be solved")
    root = work.root / "mirror-making"
    environment = spack_machine.write_environment(root, work.source, spack, usable[0])
    return spack, environment.directory, root


def gather_wanted(
    making: MirrorBuild, collector: SourceCollector, wanted: Sequence[WantedSource]
) -> GatheredPart:
    """Gather the sources that recipes want: from upstream, an earlier call or the user."""
    check_given(making.given, wanted)
    area = making.scratch / SOURCES
    area.mkdir()
    replaced = [source for one in wanted for source in find_replacement(making, one, area)]
    carry_over_files(making, area, [source.sha256 for source in making.before.replaced])
    elsewhere = {
        one.git: making.given[one.package].place for one in wanted if one.commit and one.package in making.given
    }
    making.progress.say(f"sources of {', '.join(one.package for one in wanted)}")
    failed = collector.gather(area, [source.package for source in replaced], elsewhere)
    paths = list(manifest.list_present(area))
    for path in paths:
        making.place(area / path, f"{SOURCES}/{path}")
    versions = {one.package: one.version for one in wanted}
    missing = [
        MissingPart(f"source of {package} {versions.get(package, '')}", reason)
        for package, reason in failed.items()
    ]
    return GatheredPart(
        tuple(f"{SOURCES}/{path}" for path in paths), replaced=tuple(replaced), missing=tuple(missing)
    )


def check_given(given: Mapping[str, GivenSource], wanted: Sequence[WantedSource]) -> None:
    """Refuse unwanted sources, and a repository without the commit that the recipe requires."""
    by_name = {one.package: one for one in wanted}
    for package, source in given.items():
        if package not in by_name:
            choice = ", ".join(sorted(by_name))
            raise UsageError(f"--source {package}: nothing is built from it; choose from {choice}")
        commit = by_name[package].commit
        if commit and not spack_mirror.read_commit(source.place, commit):
            raise UsageError(
                f"--source {package}={source.place}: is not a git repository with the commit {commit} "
                "that the recipe asks for"
            )


def find_replacement(making: MirrorBuild, one: WantedSource, area: Path) -> list[ReplacedSource]:
    """Find the source that replaces an official one, and put it into the mirror; empty if there is none.

    A source from the user with the official checksum replaces nothing.
    """
    given = making.given.get(one.package)
    if not one.sha256:
        return []
    if given is None:
        return find_kept_replacement(making, one, area)
    try:
        data, origin = spack_mirror.prepare_substitute(given, one)
    except FetchError as error:
        raise UsageError(f"--source {one.package}: {error}") from None
    sha256 = spack_mirror.put_archive(data, area)
    if sha256 == one.sha256:
        return []
    return [ReplacedSource(one.package, one.version, origin, one.sha256, sha256)]


def find_kept_replacement(making: MirrorBuild, one: WantedSource, area: Path) -> list[ReplacedSource]:
    """Find the replacement that an earlier call got for a source."""
    for source in making.before.replaced:
        path = spack_mirror.locate_archive(source.sha256)
        same = (source.package, source.version, source.official) == (one.package, one.version, one.sha256)
        if same and making.intact(f"{SOURCES}/{path}"):
            spack_mirror.put_archive(read_regular(making.folder / SOURCES / path), area)
            return [source]
    return []


def carry_over_files(making: MirrorBuild, area: Path, leave_out: Sequence[str]) -> None:
    """Copy the intact files of an earlier call, which need not be fetched again."""
    for file in making.before.files:
        path = Path(file.path)
        if path.parts[0] != SOURCES or file.sha256 in leave_out or not making.intact(file.path):
            continue
        target = area / path.relative_to(SOURCES)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(read_regular(making.folder / path))
