"""Where MPIs may be found on a machine: compiler wrappers on PATH."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from site_configs.mpi.probe import Candidate


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


def find_companion_launcher(wrapper: Path, launcher: str = "mpiexec") -> Path:
    """Find the launcher that belongs to a wrapper: the same directory, and the suffix of an ``mpicc``.

    Wrappers of other names, as Intel MPI's ``mpiicx``, share one launcher.

    :param launcher: its name without a suffix
    """
    name = wrapper.name
    return wrapper.with_name(name.replace("mpicc", launcher, 1) if "mpicc" in name else launcher)


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
        Candidate(mpicc, find_companion_launcher(mpicc), "path" if mpicc.name == "mpicc" else "debian")
        for mpicc in drop_wrapper_links(found)
    ]
