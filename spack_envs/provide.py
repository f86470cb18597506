"""Finds a Spack with its package recipes, or fetches the pinned release.

Looked at in this order: $SPACK_ROOT, ``spack`` on PATH, the copy in the user's cache, upstream. The recipes
are always those of the pinned release, because later ones cannot be used without a network. If the user
has named a mirror, both are the mirror's, and nothing else is looked at.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spack_envs.fetch import FetchError, RefusedFetches, fetch_release
from spack_envs.layout import SpackLayout

OLDEST = (1, 0)
REFUSED = "spack-refused.json"  #: of the work directory
VERSION = re.compile(r"(\d+)\.(\d+)\S*")


@dataclass(frozen=True)
class Spack:
    """A Spack that can be used."""

    executable: Path
    packages: Path  #: checkout of the package recipes
    version: str
    origin: str  #: ``mirror``, ``SPACK_ROOT``, ``PATH``, ``cache`` or ``fetched``
    passed_over: tuple[str, ...] = ()  #: one line for each Spack that was found but not taken


@dataclass(frozen=True)
class NoSpack:
    """No Spack can be had. The reason is one line."""

    reason: str


@dataclass(frozen=True)
class PinnedRelease:
    """A release of one repository, and where its copy is kept."""

    name: str
    address: str
    tag: str
    copy: Path


@dataclass(frozen=True)
class SpackSettings:
    """What the environment variables say, and where a mirror has been unpacked."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    unpacked: Mapping[str, Path] | None = None  #: folders of releases by name

    @property
    def cache(self) -> Path:
        """The user's cache, shared by all clones of Plumbline."""
        home = self.environ.get("HOME") or os.path.expanduser("~")
        base = self.environ.get("XDG_CACHE_HOME") or str(Path(home, ".cache"))
        return Path(base, "plumbline")

    @property
    def spack(self) -> PinnedRelease:
        """Spack itself."""
        address = self.environ.get("PLUMBLINE_SPACK_URL") or "https://github.com/spack/spack.git"
        tag = self.environ.get("PLUMBLINE_SPACK_RELEASE") or "v1.1.0"
        return PinnedRelease("spack", address, tag, self.copy("spack"))

    @property
    def packages(self) -> PinnedRelease:
        """The package recipes."""
        address = self.environ.get("PLUMBLINE_SPACK_PACKAGES_URL")
        address = address or "https://github.com/spack/spack-packages.git"
        tag = self.environ.get("PLUMBLINE_SPACK_PACKAGES_RELEASE") or "v2026.03.0"
        return PinnedRelease("spack-packages", address, tag, self.copy("spack-packages"))

    def copy(self, name: str) -> Path:
        """Return the path of the cached copy of a release."""
        return self.cache / name if self.unpacked is None else self.unpacked[name]


def provide_spack(
    work: Path,
    say: Callable[[str], None],
    environ: Mapping[str, str] | None = None,
    unpacked: Mapping[str, Path] | None = None,
    again: bool = False,
) -> Spack | NoSpack:
    """Find or fetch a Spack. Tells ``say`` in one line when it starts to fetch something.

    :param work: work directory, where the Spacks that are asked for their version may write
    :param environ: environment variables; those of this process by default
    :param unpacked: folders of releases by name, out of a mirror: these and no others are taken
    :param again: whether a fetch that failed within a day is tried again
    """
    refused = RefusedFetches(work / REFUSED, again)
    settings = SpackSettings(os.environ if environ is None else environ, unpacked)
    if settings.environ.get("PLUMBLINE_NO_SPACK") == "1":
        return NoSpack("PLUMBLINE_NO_SPACK is set")
    passed_over: list[str] = []
    try:
        for origin, executable in iter_spack_candidates(settings, say, refused):
            version = read_spack_version(executable, work, settings.environ)
            if problem := explain_rejected_spack(version):
                passed_over.append(f"{executable} (from {origin}) {problem}")
                continue
            packages = obtain_release(settings.packages, say, refused)
            return Spack(executable, packages, version, origin, tuple(passed_over))
    except FetchError as error:
        passed_over.append(str(error))
    return NoSpack("; ".join(passed_over))


def iter_spack_candidates(
    settings: SpackSettings, say: Callable[[str], None], refused: RefusedFetches
) -> Iterator[tuple[str, Path]]:
    """Yield executables to try, each with its origin. Fetch only if none before was taken.

    :raises FetchError: if upstream cannot be had.
    """
    if settings.unpacked is not None:
        yield "mirror", settings.spack.copy / "bin" / "spack"
        return
    if root := settings.environ.get("SPACK_ROOT"):
        yield "SPACK_ROOT", Path(root, "bin", "spack")
    if found := shutil.which("spack", path=settings.environ.get("PATH", "")):
        yield "PATH", Path(found).absolute()
    origin = "cache" if settings.spack.copy.is_dir() else "fetched"
    yield origin, obtain_release(settings.spack, say, refused) / "bin" / "spack"


def obtain_release(
    release: PinnedRelease, say: Callable[[str], None], refused: RefusedFetches | None = None
) -> Path:
    """Obtain the cached copy of a release, fetched if it is not there.

    :param refused: what could not be fetched a while ago; None tries in any case
    :raises FetchError: in one line.
    """

    def fetch() -> None:
        say(f"fetching {release.name} {release.tag} from {release.address}")
        fetch_release(release.address, release.tag, release.copy)

    if not release.copy.is_dir():
        if refused:
            refused.fetch(f"{release.address} {release.tag}", fetch)
        else:
            fetch()
    return release.copy


def read_spack_version(executable: Path, work: Path, environ: Mapping[str, str]) -> str:
    """Read what ``spack --version`` prints; empty if it cannot be started or says nothing."""
    quiet = {
        "SPACK_PYTHON": sys.executable,
        "SPACK_DISABLE_LOCAL_CONFIG": "1",
        "SPACK_USER_CACHE_PATH": str(SpackLayout(work).user_cache),
    }
    command = [str(executable), "--version"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={**environ, **quiet, "PYTHONPATH": "", "PYTHONHOME": ""},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout.split() or [""])[0]


def explain_rejected_spack(version: str) -> str:
    """Explain why a Spack of this version is not taken; empty if it is."""
    match = VERSION.fullmatch(version)
    if not match:
        return "does not tell its version"
    if (int(match[1]), int(match[2])) < OLDEST:
        return f"is {version}, and 1.0 is the oldest that knows these recipes"
    return ""
