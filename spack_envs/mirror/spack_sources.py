"""Make the parts of a mirror that Spack needs: its release, its recipes and the sources of what is built.

Sources are gathered by ``spack mirror create``, which checks each against the checksum in its recipe.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.files import read_regular
from postprocess.base.records import parse_record
from postprocess.base.strict_json import parse_json
from spack_envs import provide
from spack_envs.layout import PACKAGE, SpackEnvironmentError, extract_spack_error, spack_environment_variables

CACHE = "_source-cache"  #: where Spack looks in a source mirror: files by checksum or commit
FAILED = re.compile(r"Warning: Error while fetching (\S+?)@\S+\n((?:[ \t]+.*\n?)*)")
SCRIPT = Path(__file__).parent.parent / "list_sources.py"


@dataclass(frozen=True)
class WantedSource:
    """A source that a recipe requires, identified by a checksum or by a commit."""

    package: str
    version: str
    sha256: str
    commit: str
    git: str


@dataclass(frozen=True)
class GivenSource:
    """A source from the user instead of upstream: a ``.tar.gz``, or a git repository."""

    package: str
    place: Path
    revision: str = "HEAD"


def archive_release(
    release: provide.PinnedRelease, target: Path, scratch: Path, say: Callable[[str], None]
) -> str:
    """Write the files of a release to ``target``, a ``.tar.gz``. Return the commit.

    The user's copy is used if it is this release.

    :raises FetchError: if it is not available. Raises OSError if ``target`` cannot be written.
    """
    clone = provide.obtain_release(release, say)
    commit = read_commit(clone)
    if commit != read_commit(clone, f"{release.tag}^{{commit}}"):
        clone = scratch / release.name
        say(f"fetching {release.name} {release.tag} from {release.address}")
        provide.fetch_release(release.address, release.tag, clone)
        commit = read_commit(clone)
    target.write_bytes(pack_commit(clone, commit, release.name))
    return commit


def read_commit(repository: Path, revision: str = "HEAD") -> str:
    """Read the commit of a revision; empty if the repository does not have it."""
    command = ["-C", str(repository), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    try:
        return provide.run_git(command, str(repository), 60).strip()
    except provide.FetchError:
        return ""


def pack_commit(repository: Path, commit: str, prefix: str) -> bytes:
    """Pack the files of a commit as a reproducible ``.tar.gz``."""
    command = ["git", "-C", str(repository), "archive", f"--prefix={prefix}/", commit]
    done = subprocess.run(command, capture_output=True, timeout=provide.FETCH_SECONDS, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["git failed"]
        raise provide.FetchError(f"{repository}: {lines[-1]}")
    return gzip.compress(done.stdout, mtime=0)


def prepare_substitute(given: GivenSource, wanted: WantedSource) -> tuple[bytes, str]:
    """Prepare the replacement of a source with a checksum: a ``.tar.gz``, and its origin in words.

    :raises FetchError: if it cannot be read.
    """
    if given.place.is_dir():
        commit = read_commit(given.place, given.revision)
        if not commit:
            raise provide.FetchError(f"{given.place}: is not a git repository with {given.revision}")
        data = pack_commit(given.place, commit, f"{wanted.package}-{wanted.version}")
        return data, f"a git copy (commit {commit[:12]})"
    try:
        data = read_regular(given.place)
    except OSError as error:
        raise provide.FetchError(f"{given.place}: {error.strerror}") from None
    if not data.startswith(b"\x1f\x8b"):
        raise provide.FetchError(f"{given.place}: is not a .tar.gz")
    return data, f"the file {given.place.name}"


def locate_archive(sha256: str) -> str:
    """Return where Spack looks in a mirror for a ``.tar.gz`` with this checksum."""
    return f"{CACHE}/archive/{sha256[:2]}/{sha256}.tar.gz"


def put_archive(data: bytes, folder: Path) -> str:
    """Put a ``.tar.gz`` where Spack looks for it in a mirror. Return its checksum. Raises OSError."""
    sha256 = hashlib.sha256(data).hexdigest()
    path = folder / locate_archive(sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return sha256


class SourceCollector:
    """Gather the sources of one environment into a folder.

    :param directory: directory of the environment, ready to be solved
    :param work: work directory, where Spack may write
    """

    def __init__(self, spack: provide.Spack, directory: Path, work: Path) -> None:
        self.spack = [str(spack.executable), "-e", str(directory)]
        self.variables = os.environ | spack_environment_variables(work, spack.executable)

    def wanted(self) -> list[WantedSource]:
        """Solve the environment, and return the sources that its packages are built from.

        :raises SpackEnvironmentError: if it cannot be solved.
        """
        self.run("concretize")
        output = self.run("python", str(SCRIPT))
        try:
            return parse_record(parse_json(output.splitlines()[-1]), list[WantedSource], exact=True)
        except (IndexError, ValueError):
            raise SpackEnvironmentError(f"spack python: said {output[:200]!r}") from None

    def gather(self, folder: Path, leave_out: Sequence[str], elsewhere: Mapping[str, Path]) -> dict[str, str]:
        """Put the sources into ``folder``, in Spack's layout. Existing files are kept.

        :param leave_out: packages whose sources come from elsewhere
        :param elsewhere: local repositories by the address that they replace
        :returns: why sources are not available, by package.
        """
        words = ["mirror", "create", "--all", "--directory", str(folder)]
        words += ["--exclude-specs", " ".join([PACKAGE, *leave_out])]
        done = self.call(words, {**self.variables, **redirect_git(elsewhere)})
        output = done.stdout + done.stderr
        failed = {match[1]: extract_detail(match[2]) for match in FAILED.finditer(output)}
        if done.returncode != 0 and not failed:
            raise extract_spack_error(output)
        drop_aliases(folder)
        return failed

    def run(self, *words: str) -> str:
        """Run a command of Spack that must succeed, and return its standard output."""
        done = self.call(words, self.variables)
        if done.returncode != 0:
            raise extract_spack_error(done.stdout + done.stderr)
        return done.stdout

    def call(self, words: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.spack, *words], env=env, capture_output=True, text=True, errors="replace", check=False
        )


def extract_detail(said: str) -> str:
    """Extract why a source could not be fetched, which is on the line after the failure."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return (lines[1:] or lines or ["Spack gives no reason"])[0]


def redirect_git(elsewhere: Mapping[str, Path]) -> dict[str, str]:
    """Return variables under which git uses a repository in place of an address."""
    variables = {"GIT_CONFIG_COUNT": str(len(elsewhere))}
    for number, (address, place) in enumerate(elsewhere.items()):
        variables[f"GIT_CONFIG_KEY_{number}"] = f"url.file://{place}.insteadOf"
        variables[f"GIT_CONFIG_VALUE_{number}"] = address
    return variables


def drop_aliases(folder: Path) -> None:
    """Remove the links with names for people: not every file system has links, and Spack does not need them."""
    for entry in folder.iterdir():
        if entry.name != CACHE:
            shutil.rmtree(entry)
