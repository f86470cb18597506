"""Gathers wheels for a mirror: what lock files name, for the Python and the platform at hand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.files import read_text
from spack_envs.mirror.manifest import MissingPart, describe_file

PACK = 8  #: packages that pip is asked for at once
PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class LockedPackage:
    """One package of a lock file."""

    name: str
    version: str
    text: str  #: as it stands there
    hashes: frozenset[str]


def parse_lock_file(text: str) -> Iterator[LockedPackage]:
    """Parse the packages of a lock file."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for block in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if pin := PIN.match(block):
            hashes = frozenset(HASH.findall(block))
            yield LockedPackage(pin["name"], pin["version"], " ".join(block.split()), hashes)


def gather_wheel_files(
    locks: Iterable[Path], wheels: Path, scratch: Path, now: Callable[[str], None]
) -> tuple[set[str], list[MissingPart]]:
    """Put the wheels that lock files name into the folder ``wheels``. What is there and right is kept.

    pip takes them from where the user's settings say, and holds each against the hashes of its lock file.

    :param scratch: an empty folder on the same file system
    :param now: is told what goes on
    :returns: names of the files that belong there, and the packages that could not be had.
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
    """Let pip download what is not excluded here by its markers. Returns the error, or nothing."""
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
    said = (done.stderr.strip() or "pip failed").splitlines()
    errors = [line for line in said if line.startswith("ERROR: ")]
    return (errors or said)[-1].removeprefix("ERROR: ")


def move_downloads(scratch: Path, wheels: Path) -> set[str]:
    """Give complete downloads their place. Returns their names."""
    names = {path.name for path in scratch.glob("*.whl")}
    for name in names:
        os.replace(scratch / name, wheels / name)
    return names
