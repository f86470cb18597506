"""Software that needs no build: MPIs and IMB from the Python package index, and the jars of MPJ Express.

A trial shows whether IMB fits an MPI: in a ping-pong of two processes, a preloaded library reads
MPI_Get_library_version. It must be the string that the MPI itself reports.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.base import files
from postprocess.base.sanitize import quote_word
from site_configs import families
from site_configs.mpi.family import LAYERS, Mpi, join_lines
from site_configs.mpi.probe import Candidate, ProbeError, run_step, runnable_scratch, strip_allocation
from site_configs.programs.installed import WHEEL, Installed

LOCKS = Path(__file__).parent.parent / "wheels_lock"
FAMILIES = tuple(sorted(lock.stem for lock in LOCKS.glob("*.lock")))
PINNED = re.compile(r"^([\w-]+)==", re.M)  #: package in a line of a lock file
NEVER = "99999"  #: a version that is never released
PLACEHOLDER = "0.0.0"  #: a version that reserves the name of a package, without an MPI
OFFERED = re.compile(r"\(from versions: ([^)]+)\)")  #: pip's message on a version that does not exist


@dataclass(frozen=True)
class Carrier:
    """A family whose wheels contain a library below MPIs that has no wheel of its own."""

    family: str
    folder: str  #: folder of the library in the wheel
    files: tuple[str, ...]  #: files of the library
    releases: Mapping[str, str]  #: release of the family, by the release of the library in it


CARRIERS = {
    "libfabric": Carrier(
        "mpich",
        "lib/mpich",
        ("libfabric.so.1", "libfabric"),
        {"1.22.0": "4.3.2", "2.4.0": "5.0.1", "2.5.1": "5.0.2"},
    )
}


class WheelError(Exception):
    """What is not available without a build, and why, in one line."""


def find_lock(name: str) -> Path:
    """Return the lock file of a family of MPIs, or of a library below them that has its own wheel."""
    lock = LOCKS / f"{name}.lock"
    return LOCKS / "layers" / lock.name if name in LAYERS else lock


def read_locked_version(family: str) -> str:
    return files.read_text(find_lock(family)).split()[0].partition("==")[2]


def find_wheel_prefix(family: str, root: Path, version: str = "") -> Path:
    """Return where a version of a family, or the pinned one, is or would be installed below ``root``."""
    return root / f"{family}-{version or read_locked_version(family)}"


def list_requirements(family: str, version: str) -> list[str]:
    """List the requirements for pip: the pinned files by hash, or another version by number.

    :raises WheelError: if no wheel has this version of a library
    """
    if carrier := CARRIERS.get(family):
        if version not in carrier.releases:
            choice = ", ".join(carrier.releases)
            fix = f"choose of {choice}, or name where it is installed: {family}@/opt/{family}"
            raise WheelError(f"{family} {version}: no wheel has it; {fix}")
        return list_requirements(carrier.family, carrier.releases[version])
    lock = find_lock(family)
    if version in ("", read_locked_version(family)):
        return ["--require-hashes", "-r", str(lock)]
    return [f"{name}=={version}" for name in PINNED.findall(files.read_text(lock))]


def install_wheels(family: str, root: Path, folder: Path | None = None, version: str = "") -> Candidate:
    """Install a family's wheels below ``root`` once, and return its compiler wrapper and launcher.

    :raises WheelError: as in :func:`install_prefix`
    """
    prefix = install_prefix(family, root, folder, version)
    return Candidate(prefix / "bin" / "mpicc", prefix / "bin" / "mpiexec", "wheel", prefix=prefix)


def install_prefix(family: str, root: Path, folder: Path | None = None, version: str = "") -> Path:
    """Install the wheels of a family, or of a library below MPIs, below ``root`` once; return their prefix.

    :param folder: folder of wheels, as their only source; None for the package index
    :param version: a version other than the pinned one
    :raises WheelError: if the index has no wheel for this machine or cannot be reached.
    """
    prefix = find_wheel_prefix(family, root, version)
    if not prefix.exists():
        unfinished = root / f"{prefix.name}.{os.getpid()}.unfinished"
        try:
            if carrier := CARRIERS.get(family):
                pip_install(family, unfinished / WHEEL, folder, version)
                keep_library(carrier, unfinished)
            else:
                pip_install(family, unfinished, folder, version)
            unfinished.rename(prefix)
        except OSError as error:
            if not prefix.exists():
                raise WheelError(f"{family}: {error}") from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return prefix


def keep_library(carrier: Carrier, prefix: Path) -> None:
    """Keep only the library of a carrier's wheel, because an MPI would use the files beside it, too."""
    wheel, kept = prefix / WHEEL, prefix / "lib"
    kept.mkdir()
    for name in carrier.files:
        (wheel / carrier.folder / name).rename(kept / name)
    shutil.rmtree(wheel)


def pip_install(family: str, prefix: Path, folder: Path | None, version: str = "") -> None:
    """Install a family's wheels without dependencies into its own prefix (``--target`` would lose ``lib``).

    Intel's wheel requires a libfabric that the index does not have and one node does not need.
    """
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    only = ["--isolated", "--no-index", "--find-links", str(folder)] if folder else []
    pip = [sys.executable, "-I", "-m", "pip", "install", *only]
    command = [*pip, *options, *list_requirements(family, version), "--prefix", str(prefix)]
    prefix.mkdir(parents=True)
    result = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    if result.returncode != 0:
        lines = (result.stderr.strip() or "pip failed").splitlines()
        if nearest := list_nearest_versions(version, lines):
            raise WheelError(
                f"{family} {version}: the package index has no such wheel for this machine; "
                f"the nearest are {', '.join(nearest)}"
            )
        errors = [line for line in lines if line.startswith("ERROR: ")]
        raise WheelError(f"{family}: {(errors or lines)[-1]}")


def list_nearest_versions(version: str, said: Sequence[str]) -> list[str]:
    """List the offered versions next to one that is not offered, as pip lists them; empty if it lists none."""
    offered = next((match[1].split(", ") for line in said if (match := OFFERED.search(line))), [])
    versions = [candidate for candidate in offered if version and candidate[:1].isdigit()]
    ordered = sorted({*versions, version}, key=split_version)
    place = ordered.index(version) if version else 0
    return [near for near in ordered[max(place - 2, 0) : place + 3] if near in versions]


def list_offered_versions(family: str, folder: Path | None = None) -> list[str]:
    """List the versions with wheels for this machine, the oldest first, with the last build of each.

    pip lists them when asked for a version that does not exist.

    :param folder: folder of wheels, as their only source; None for the package index
    :raises WheelError: if there are none, or the index cannot be reached
    """
    if family in CARRIERS:
        return list(CARRIERS[family].releases)
    package = PINNED.findall(files.read_text(find_lock(family)))[0]
    only = ["--isolated", "--no-index", "--find-links", str(folder)] if folder else []
    options = ["--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--dry-run"]
    command = [sys.executable, "-I", "-m", "pip", "install", *only, *options, f"{package}=={NEVER}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    match = OFFERED.search(done.stderr)
    offered = [word for word in match[1].split(", ") if word[:1].isdigit()] if match else []
    latest = {build.partition(".post")[0]: build for build in sorted(offered, key=split_version)}
    latest.pop(PLACEHOLDER, None)
    if not latest:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        raise WheelError(f"{family}: no wheel for this machine: {(errors or ['pip failed'])[-1]}")
    return list(latest.values())


def split_version(version: str) -> list[tuple[int, str]]:
    """Split a version so that its numbers sort as numbers."""
    return [(int(digits or 0), rest) for digits, rest in re.findall(r"(\d*)([^\d]*)", version)]


LIBRARY = "libmpi.so.12"  #: library of the binary interface that MPICH, Intel MPI and others share
LIBRARY_FOLDERS = ("lib", "lib64", "lib/release")
EXECUTABLE = "IMB-MPI1"
ENDED = "# All processes entering MPI_Finalize"
BEGIN, END = "plumbline: a world of 2 of", "plumbline: end"
WITNESS = r"""
#include <mpi.h>
#include <stdio.h>
int MPI_Finalize(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(library, &length);
    if (rank == 0) printf("plumbline: a world of %d of\n%s\nplumbline: end\n", size, library);
    fflush(stdout);
    return PMPI_Finalize();
}
"""


@dataclass(frozen=True)
class Imb:
    """IMB for one MPI of the inventory, or why there is none without a build."""

    mpicc: str  #: compiler wrapper of the MPI, which it identifies together with the module
    module: str
    folder: str = ""
    libraries: str = ""  #: folder that must be searched first for the MPI's libraries
    problem: str = ""
    foreseen: bool = False  #: whether the problem was known without a trial, and is no failure of this MPI

    @property
    def installed(self) -> Installed:
        """The declaration for the environment of a site."""
        value = f'{quote_word(self.libraries)}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
        return Installed(self.folder, {"LD_LIBRARY_PATH": value}, WHEEL)


def list_imb_folders(mpis: Sequence[Mpi], wheel_root: Path) -> list[Path]:
    """List folders with IMB: those of MPIs of the machine, and of a wheel if it is installed."""
    prefixes = [Path(mpi.prefix) for mpi in mpis if families.find_family(mpi.family).brings_imb]
    prefixes += [
        wheel_root / f"{name}-{read_locked_version(name)}"
        for name in FAMILIES
        if families.find_family(name).brings_imb
    ]
    folders = [prefix / "bin" for prefix in prefixes]
    return [folder for folder in folders if (folder / EXECUTABLE).is_file()]


def try_imb(mpi: Mpi, folders: Iterable[Path], say: Callable[[str], None]) -> Imb:
    """Try the IMB of these folders with an MPI, its own first; return the first that fits."""
    bin_folder = Path(mpi.prefix, "bin")
    folder = next(iter(sorted(folders, key=lambda candidate: candidate != bin_folder)), None)
    there = [path for name in LIBRARY_FOLDERS if ((path := Path(mpi.prefix, name)) / LIBRARY).exists()]
    if folder is None:
        problem = "no Intel MPI is here to bring IMB"
    elif not there:
        problem = f"Intel MPI's IMB needs {LIBRARY}, which this MPI has not"
    else:
        say(f"trying IMB under {mpi.name}")
        problem = explain_imb_unfit(mpi, folder / EXECUTABLE, there[0])
    if problem:
        foreign = not families.find_family(mpi.family).shares_mpich_abi and not there
        return Imb(mpi.mpicc, mpi.module, problem=problem, foreseen=folder is None or foreign)
    return Imb(mpi.mpicc, mpi.module, str(folder), str(there[0]))


def explain_imb_unfit(mpi: Mpi, executable: Path, libraries: Path) -> str:
    """Explain why IMB does not fit an MPI; empty if it does."""
    try:
        library = run_imb_for_library(mpi, executable, libraries)
    except ProbeError as error:
        return f"Intel MPI's IMB does not run under this MPI: {error}"
    if library != mpi.library:
        return f"Intel MPI's IMB runs on another MPI than this: {library[:80]}"
    return ""


def run_imb_for_library(mpi: Mpi, executable: Path, libraries: Path) -> str:
    """Run IMB as measurements will, and return its MPI_Get_library_version.

    :raises ProbeError: if IMB does not complete with two processes.
    """
    env = strip_allocation(os.environ) | families.find_family(mpi.family).oversubscribed | mpi.env
    before = env.get("LD_LIBRARY_PATH", "")
    search = f"{libraries}:{before}" if before else str(libraries)
    with runnable_scratch("plumbline-imb-") as scratch:
        source, witness = Path(scratch, "witness.c"), Path(scratch, "witness.so")
        sizes = Path(scratch, "sizes")
        source.write_text(WITNESS)
        sizes.write_text("8\n")
        compiling = [mpi.mpicc, "-shared", "-fPIC", str(source), "-o", str(witness)]
        run_step(compiling, env, "compiling a witness")
        start = [*mpi.launcher, "-n", "2", "env", f"LD_LIBRARY_PATH={search}"]
        options = ["-npmin", "2", "-msglen", str(sizes), "-iter", "1", "-iter_policy", "off"]
        words = [*start, f"LD_PRELOAD={witness}", str(executable), *options, "PingPong"]
        return parse_imb_library(run_step(words, env, "starting"))


def parse_imb_library(output: str) -> str:
    """Parse the library version in IMB's output. Raises ProbeError if IMB did not end, or printed none."""
    before, began, rest = output.partition(BEGIN)
    library, ended, _ = rest.partition(END)
    if ENDED not in before or not began or not ended:
        last = join_lines(output)[-120:] or "no output"
        raise ProbeError(f"it did not end with a world of 2: {last}")
    return join_lines(library)


PINS = LOCKS / "bindings" / "mpj.sha256"  #: digests in the format of ``sha256sum``
#: Debian's packages with the jars, and their folders
PACKAGES = (
    "libmpj-java",
    "liblog4j1.2-java",
    "libcommons-cli-java",
    "libcommons-codec-java",
    "libcommons-io-java",
)
FOLDERS = (Path("usr/share/mpj/lib"), Path("usr/share/java"))
FETCH_LIMIT = 300.0  #: seconds


def read_pinned_jars() -> Iterator[tuple[str, str]]:
    """Read name and SHA-256 of each jar."""
    for line in files.read_text(PINS).splitlines():
        pinned, name = line.split()
        yield name, pinned


def list_installed_folders() -> list[Path]:
    """List where jars may be installed: below ``MPJ_HOME`` if that is set, else Debian's folders."""
    home = os.environ.get("MPJ_HOME")
    debian = [Path("/", folder) for folder in FOLDERS]
    return [Path(home, "lib"), Path(home).parent / "java", debian[1]] if home else debian


def copy_jar(name: str, pinned: str, folders: Sequence[Path], target: Path) -> str:
    """Copy a jar from the first folder that has the pinned one. Return why none has it, or an empty text."""
    jars = [folder / name for folder in folders if (folder / name).exists()]
    for jar in jars:
        content = files.read_regular(jar)
        if hashlib.sha256(content).hexdigest() == pinned:
            (target / name).write_bytes(content)
            return ""
    if jars:
        return f"{jars[0]}: is not the file that {PINS.name} pins"
    return f"{folders[0] / name} is missing; Debian has it in {PACKAGES[0]}"


def copy_jars(folders: Sequence[Path], target: Path) -> dict[str, str]:
    """Copy every pinned jar into a folder. Return the reasons for those that are in none of the folders."""
    target.mkdir(parents=True, exist_ok=True)
    reasons = {name: copy_jar(name, pinned, folders, target) for name, pinned in read_pinned_jars()}
    return {name: why for name, why in reasons.items() if why}


def can_fetch() -> bool:
    """Return whether Debian's packages can be fetched and unpacked here, which needs no root."""
    return all(shutil.which(name) for name in ("apt-get", "dpkg-deb"))


def gather_jars(target: Path) -> dict[str, str]:
    """Collect the pinned jars in a folder: present or installed ones, else those of Debian's packages.

    :returns: the reason for each that is not available
    """
    folders = [*list_installed_folders(), target]
    lacking = copy_jars(folders, target)
    if not lacking or not can_fetch():
        return lacking
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        try:
            return copy_jars([*folders, *fetch_packages(Path(scratch))], target)
        except WheelError as error:
            return dict.fromkeys(lacking, str(error))


def fetch_packages(folder: Path) -> list[Path]:
    """Fetch Debian's packages and unpack them below a folder; return the folders of their jars.

    :raises WheelError: if apt-get or dpkg-deb fails
    """
    _run(["apt-get", "download", *PACKAGES], folder)
    for package in sorted(folder.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(folder)], folder)
    return [folder / jar_folder for jar_folder in FOLDERS]


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=FETCH_LIMIT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WheelError(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()
        errors = [line for line in lines if line.startswith("E: ")]
        raise WheelError(f"{command[0]}: {(errors or lines)[-1]}")
