"""Provide a Spack with its package recipes: found, fetched as the pinned release, or from a mirror.

A failed fetch is remembered for a day, so that without a network no session waits for one again.

The order of search is $SPACK_ROOT, ``spack`` on PATH, the copy in the user's cache, upstream. The recipes are
always those of the pinned release, because later ones cannot be used without a network. If the user has named a
mirror, both come from it, and nothing else is searched.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from postprocess.base import files
from postprocess.base.processes import run_captured
from spack_envs.layout import SpackEnvironmentError, build_attribute, spack_environment_variables

ANSWER_SECONDS = 10.0  #: an upstream that takes longer to answer counts as unreachable
FETCH_SECONDS = 1800.0
LEFTOVER_SECONDS = 86400.0

#: Never ask for a password, and give up a transfer that has stalled for 20 s.
QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=5",
    "GIT_HTTP_LOW_SPEED_LIMIT": "1000",
    "GIT_HTTP_LOW_SPEED_TIME": "20",
}
REMEMBERED = 86400.0  #: seconds


class FetchError(Exception):
    """A release is not available. The text is one line."""


def fetch_release(address: str, tag: str, target: Path, timeout: float = ANSWER_SECONDS) -> None:
    """Put the files of ``tag`` into ``target``, unless another process has done so meanwhile.

    :param timeout: seconds that upstream has for its first answer
    :raises FetchError: if git is missing, upstream does not answer or lacks the tag, or the disk is full.
    """
    refs = [f"refs/tags/{tag}", f"refs/heads/{tag}"]
    if not run_git(["ls-remote", "--", address, *refs], address, timeout).strip():
        raise FetchError(f"{address}: has no release {tag}")
    try:
        remove_leftovers(target.parent)
        with files.new_folder(target) as folder:
            options = ["--quiet", "--depth=1", f"--branch={tag}"]
            run_git(["clone", *options, "--", address, str(folder)], address, FETCH_SECONDS)
    except OSError as error:
        raise FetchError(f"{error.filename}: {error.strerror}") from None


def run_git(arguments: list[str], address: str, seconds: float) -> str:
    """Run a git command, and return its standard output.

    :raises FetchError: if git is missing, fails or takes longer than ``seconds``. Its helpers are stopped too.
    """
    if shutil.which("git") is None:
        raise FetchError(f"{address}: git is not on PATH")
    command = ["git", "-c", "advice.detachedHead=false", *arguments]
    try:
        done = run_captured(command, {**QUIET, **os.environ}, seconds)
    except subprocess.TimeoutExpired:
        raise FetchError(f"{address}: no answer in {seconds:g} s") from None
    if done.returncode != 0:
        raise FetchError(f"{address}: {extract_git_error(done.stderr)}")
    return done.stdout


def extract_git_error(errors: str) -> str:
    """Extract git's error message without the address, which it repeats."""
    lines = [line for line in errors.splitlines() if line.startswith(("fatal:", "error:"))]
    text = lines[0].partition(": ")[2] if lines else "git failed"
    return re.sub(r"^unable to access '[^']*': ", "", text)


def remove_leftovers(folder: Path) -> None:
    """Remove leftovers of processes that were killed more than a day ago."""
    for path in folder.glob(".incoming-*"):
        if time.time() - path.stat().st_mtime > LEFTOVER_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class RefusedFetches:
    """A file that records which fetches failed, when, and why. An unusable file counts as empty."""

    path: Path
    again: bool = False  #: whether failed fetches are retried all the same

    def fetch(self, what: str, attempt: Callable[[], None]) -> None:
        """Fetch something, unless that failed within a day.

        :raises FetchError: with the reason, earlier or new
        """
        refusals = {} if self.again else self._read()
        when, reason = refusals.get(what, (0.0, ""))
        if 0.0 <= time.time() - when < REMEMBERED:
            raise FetchError(reason)
        try:
            attempt()
        except FetchError as error:
            refusals = self._read() | {what: (time.time(), str(error))}
            with suppress(OSError):
                files.write_text(self.path, json.dumps(refusals, indent=1))
            raise

    def _read(self) -> dict[str, tuple[float, str]]:
        """Read the recorded failures; empty if the file has another form."""
        try:
            entries = json.loads(files.read_text(self.path))
            return {str(key): (float(when), str(why)) for key, (when, why) in entries.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}


RECIPE = '''"""Written by Plumbline: this source is not the official one, and so has another checksum."""

from spack.package import version
from spack_repo.{namespace}.packages.{folder}.package import {name} as Official


class {name}(Official):
    """The same recipe with the source of the mirror."""

    replaced_source = {origin!r}
    version({version!r}, sha256={sha256!r})
{inherited}'''


@dataclass(frozen=True)
class Substitute:
    """A source that a mirror has instead of the official one."""

    package: str
    version: str
    origin: str
    sha256: str


@dataclass(frozen=True)
class MirroredSources:
    """The sources of a mirror, in Spack's layout of a source mirror."""

    folder: Path
    substitutes: tuple[Substitute, ...] = ()

    @property
    def entry(self) -> dict[str, object]:
        """The entry of the mirror in Spack's section ``mirrors``."""
        return {"url": f"file://{self.folder}", "source": True, "binary": False}


def unpack_release(archive: Path, sha256: str, root: Path) -> Path:
    """Unpack a release's archive below ``root`` once, and return its folder.

    :raises SpackEnvironmentError: if the archive does not have this checksum or cannot be unpacked.
    """
    target = root / f"{archive.name.removesuffix('.tar.gz')}-{sha256[:16]}"
    if target.is_dir():
        return target
    try:
        data = files.read_regular(archive)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise SpackEnvironmentError(f"{archive}: is damaged; ./plumbline mirror create mends it")
        with files.new_folder(target) as folder:
            extract_archive(data, archive, folder)
    except OSError as error:
        raise SpackEnvironmentError(f"{error.filename}: {error.strerror}") from None
    return target


def extract_archive(data: bytes, archive: Path, folder: Path) -> None:
    """Unpack the verified bytes, not the file, which may have changed meanwhile."""
    command = ["tar", "-xzf", "-", "--strip-components=1", "--no-same-owner", "-C", str(folder)]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["tar failed"]
        raise SpackEnvironmentError(f"{archive}: cannot be unpacked: {lines[0]}")


def write_repository(root: Path, ours: Path, substitutes: Sequence[Substitute]) -> dict[str, str]:
    """Write a package repository with the checksums of substitutes; return its path by name, or an empty one.

    Spack still tests the checksum, against another value. The hash of a spec changes with it, so that a build
    from another source is never taken for the official one.

    :param ours: our repository; recipes inherit from it or, if it has none, from Spack's
    """
    if not substitutes:
        return {}
    texts = {substitute.package: write_recipe(substitute, ours) for substitute in substitutes}
    digest = hashlib.sha256("\0".join(texts.values()).encode()).hexdigest()[:8]
    name = f"mirror_{digest}"  # Spack's index is keyed by the names of repositories
    repository = root / name / "spack_repo" / name
    files.write_text(repository / "repo.yaml", f"repo:\n  namespace: {name}\n  api: v2.0\n")
    for package, text in texts.items():
        files.write_text(repository / "packages" / find_package_folder(package) / "package.py", text)
    return {name: str(repository)}


def write_recipe(substitute: Substitute, ours: Path) -> str:
    """Write the recipe of a package whose source is replaced, derived from its usual recipe."""
    folder = find_package_folder(substitute.package)
    has_own = (ours / "packages" / folder / "package.py").exists()
    return RECIPE.format(
        namespace="plumbline" if has_own else "builtin",
        folder=folder,
        name="".join(word.capitalize() for word in substitute.package.split("-")),
        origin=substitute.origin,
        version=substitute.version,
        sha256=substitute.sha256,
        inherited=build_attribute(ours, folder),
    )


def find_package_folder(package: str) -> str:
    return package.replace("-", "_")


OLDEST = (1, 0)
REFUSED = "spack-refused.json"  #: file in the work directory
VERSION = re.compile(r"(\d+)\.(\d+)\S*")


@dataclass(frozen=True)
class Spack:
    executable: Path
    packages: Path  #: checkout of the package recipes
    version: str
    origin: str  #: ``mirror``, ``SPACK_ROOT``, ``PATH``, ``cache`` or ``fetched``
    passed_over: tuple[str, ...] = ()  #: one line per Spack that was found but not used


@dataclass(frozen=True)
class NoSpack:
    """No Spack is available. The reason is one line."""

    reason: str


@dataclass(frozen=True)
class PinnedRelease:
    """A release of one repository, and the place of its copy."""

    name: str
    address: str
    tag: str
    copy: Path


@dataclass(frozen=True)
class SpackSettings:
    """The settings in environment variables, and the unpacked releases of a mirror."""

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
        address = self.environ.get("PLUMBLINE_SPACK_URL") or "https://github.com/spack/spack.git"
        tag = self.environ.get("PLUMBLINE_SPACK_RELEASE") or "v1.1.0"
        return PinnedRelease("spack", address, tag, self.copy("spack"))

    @property
    def packages(self) -> PinnedRelease:
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
    """Find or fetch a Spack. Call ``say`` with one line before fetching something.

    :param work: work directory, where Spacks may write when asked for their version
    :param environ: environment variables; those of this process by default
    :param unpacked: folders of releases by name, from a mirror: only these are used
    :param again: whether to retry a fetch that failed within a day
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
    """Yield executables to try, with their origins. Fetch only if none before was accepted.

    :raises FetchError: if upstream is not available.
    """
    if settings.unpacked is not None:
        yield "mirror", settings.spack.copy / "bin" / "spack"
        return
    if root := settings.environ.get("SPACK_ROOT"):
        yield "SPACK_ROOT", Path(root, "bin", "spack")
    if spack := shutil.which("spack", path=settings.environ.get("PATH", "")):
        yield "PATH", Path(spack).absolute()
    origin = "cache" if settings.spack.copy.is_dir() else "fetched"
    yield origin, obtain_release(settings.spack, say, refused) / "bin" / "spack"


def obtain_release(
    release: PinnedRelease, say: Callable[[str], None], refused: RefusedFetches | None = None
) -> Path:
    """Return the cached copy of a release, fetched if it is missing.

    :param refused: earlier failures; None tries in any case
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
    """Read the output of ``spack --version``; empty if it cannot be started or prints nothing."""
    quiet = spack_environment_variables(work, executable, environ) | {"PYTHONPATH": "", "PYTHONHOME": ""}
    command = [str(executable), "--version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, env={**environ, **quiet}
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout.split() or [""])[0]


def explain_rejected_spack(version: str) -> str:
    """Explain why a Spack of this version is not used; empty if it is."""
    match = VERSION.fullmatch(version)
    if not match:
        return "does not report its version"
    if (int(match[1]), int(match[2])) < OLDEST:
        return f"is {version}, and 1.0 is the oldest that knows these recipes"
    return ""
