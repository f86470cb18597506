"""Keeps beside a program how it was really compiled: read back from its executables."""

import json
import pathlib
import re
import subprocess

from spack.package import InstallError

#: Makes GCC write its version and all of its options into each object file.
RECORD = "-frecord-gcc-switches"
SECTION = ".GCC.command.line"
LINE = re.compile(r"^\s*\[\s*[0-9a-f]+\]\s+GNU \S+ (\S+) (.*\S)\s*$", re.MULTILINE)
LEVEL = re.compile(r"(?<!\S)-O\S*")


def telling(name, flags):
    """For a recipe's ``flag_handler``: Spack's compiler wrapper adds RECORD to each call of a compiler."""
    return ([*flags, RECORD] if name in ("cflags", "cxxflags") else flags, None, None)


def write_build_record(package, program, executables, level, some=""):
    """Write ``share/plumbline/build.json`` into an installation.

    :param program: Plumbline's name of it
    :param executables: the paths to read from
    :param level: such as ``-O2``; all that was compiled must have been with just this
    :param some: a word that only some executables are compiled with, and no fact of the program
    :raises InstallError: if an executable is not there, does not tell, or tells another level.
    """
    found = {
        (release, " ".join(word for word in flags.split() if word != some))
        for path in executables
        for release, flags in compilations(pathlib.Path(path))
    }
    if not found:
        raise InstallError(f"{program}: nothing was installed")
    for _, flags in sorted(found):
        if (LEVEL.findall(flags) or ["none"])[-1] != level:
            raise InstallError(f"{program}: compiled with {flags}, and not with {level}")
    record = {
        "program": program,
        "version": str(package.spec.version),
        "compiler": "; ".join(sorted({f"gcc {release}" for release, _ in found})),
        "flags": "; ".join(sorted({flags for _, flags in found})),
        "source": getattr(package, "replaced_source", "official"),
        "spec": package.spec.format("{name}{@version}{variants}{/hash}"),
        "mpi": package.spec["mpi"].format("{name}{@version}"),
        "target": str(package.spec.target),
    }
    path = pathlib.Path(package.prefix, "share", "plumbline", "build.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def compilations(path):
    """GCC's release and options for everything that an executable was made of.

    :raises InstallError: if it does not tell.
    """
    command = ["readelf", "--wide", f"--string-dump={SECTION}", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InstallError(f"{path}: cannot be read back: {error}") from None
    lines = LINE.findall(done.stdout)
    if not lines:
        raise InstallError(f"{path}: has no {SECTION}: was it compiled with GCC and {RECORD}?")
    return lines
