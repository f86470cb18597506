"""Where MPIs may be found on a machine: compiler wrappers on PATH, and environment modules."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from postprocess.base.shell_words import quote_word
from site_configs.mpi.probe import Candidate, ProbeError, run_step

MODULE = re.compile(
    r"(^|[/_-])(open-?mpi\d*|mpich\d*|mvapich\d*|intel-?mpi|impi|cray-mpich)([/_-]|$)", re.I
)
MODULE_SECONDS = 30


def list_wrappers(directory: Path) -> Iterator[Path]:
    """List ``mpicc`` and its alternatives (``mpicc.mpich``, ``mpicc.openmpi`` on Debian) in one directory."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for name in names:
        path = directory / name
        if (name == "mpicc" or name.startswith("mpicc.")) and os.access(path, os.X_OK):
            yield path


def find_companion_launcher(mpicc: Path) -> Path:
    """Find the launcher that belongs to a wrapper: the same directory, the same suffix."""
    return mpicc.with_name(mpicc.name.replace("mpicc", "mpiexec", 1))


def drop_wrapper_links(paths: Sequence[Path]) -> list[Path]:
    """Drop a plain ``mpicc`` that is a link to another wrapper of the list."""
    alternatives = {path for path in paths if path.name != "mpicc"}
    return [path for path in paths if not (path.is_symlink() and is_link_to(path, alternatives))]


def is_link_to(link: Path, targets: set[Path]) -> bool:
    """Return whether following the link step by step meets one of the targets."""
    seen = set()
    while link.is_symlink() and link not in seen:
        seen.add(link)
        target = link.parent / os.readlink(link)
        link = Path(os.path.realpath(target.parent), target.name)
        if link in targets:
            return True
    return False


def find_on_path(path: str) -> list[Candidate]:
    """Find the MPIs on a search path, each directory once, in its order."""
    found: list[Path] = []
    directories: set[Path] = set()
    for name in filter(None, path.split(os.pathsep)):
        real = Path(os.path.realpath(name))
        if real not in directories:
            directories.add(real)
            found += list_wrappers(real)
    return [
        Candidate(
            mpicc, find_companion_launcher(mpicc), "path" if mpicc.name == "mpicc" else "debian"
        )
        for mpicc in drop_wrapper_links(found)
    ]


def run_module_shell(command: str) -> str:
    """Run a command in a login shell, which has ``module``; return its output, empty if it fails."""
    try:
        return run_step(["bash", "-lc", command], os.environ, "modules", MODULE_SECONDS)
    except ProbeError:
        return ""


def read_module_path(modules: Sequence[str]) -> str:
    """Read the search path once these modules are loaded; empty if they cannot be."""
    names = " ".join(map(quote_word, modules))
    output = run_module_shell(f'module load {names} >&2 && echo "$PATH"')
    return (output.splitlines() or [""])[-1]


def list_mpi_modules() -> list[str]:
    """List the environment modules whose name is that of an MPI, as ``module avail`` lists them."""
    if not (os.environ.get("MODULESHOME") or os.environ.get("LMOD_CMD")) or not shutil.which(
        "bash"
    ):
        return []
    lines = run_module_shell("module -t avail 2>&1").splitlines()
    names = [line.strip().removesuffix("(default)") for line in lines]
    return [name for name in names if MODULE.search(name) and not name.endswith((":", "/"))]


def find_in_modules() -> list[Candidate]:
    """Find one candidate for each environment module whose name is that of an MPI."""
    return [candidate for module in list_mpi_modules() if (candidate := find_in_module(module))]


def find_in_module(module: str) -> Candidate | None:
    """Find the wrapper that a module puts on PATH, with the search paths that the module sets; None if none."""
    names = ("PATH", "LD_LIBRARY_PATH", "I_MPI_ROOT")
    shown = "; ".join(f'echo "${{{name}-}}"' for name in names)
    output = run_module_shell(
        "before=$(command -v mpicc); "
        f"module load {quote_word(module)} >&2 && after=$(command -v mpicc) && "
        f'test "$after" != "$before" && echo "$after" && {{ {shown}; }}'
    )
    lines = output.splitlines()[-1 - len(names) :]  # before them, what the user's profile prints
    if len(lines) <= len(names) or not Path(lines[0]).is_absolute():
        return None
    mpicc = Path(lines[0])
    env = tuple((name, value) for name, value in zip(names, lines[1:], strict=True) if value)
    return Candidate(mpicc, find_companion_launcher(mpicc), "module", module=module, env=env)
