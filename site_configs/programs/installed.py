"""Benchmark programs that need not be built: declared by a site, or brought by a wheel.

A program comes from one place: the site's declaration, then Spack, then CMake (``mpicost`` only), then a wheel
(IMB only). If it is in none of them, the reason is reported; nothing is silently absent.
"""

import functools
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from postprocess.base import files
from site_configs.annotations import check_fields, one_of
from site_configs.programs.program import INSTALLABLE, PROGRAMS, find_product

SITE, SPACK, CMAKE, WHEEL = "site", "spack", "cmake", "wheel"
Folder = Annotated[
    str, Meta(pattern="^/", description=f"an absolute path, as in {INSTALLABLE['imb'].example!r}")
]
UNKNOWN = "unknown"
MOST_BYTES = 64_000_000
VERSIONS = [re.compile(program.version) for program in PROGRAMS.values() if program.version]
#: The compiler of the benchmark comes before GCC, which compiled the start-up code of every program.
COMPILERS = (
    re.compile(rb"Intel\(R\) oneAPI DPC\+\+/C\+\+ Compiler \d[\w.]*"),
    re.compile(rb"clang version \d[\w.]*"),
    re.compile(rb"GCC: \([^)\0]{0,60}\) (?P<version>\d[\w.]*)"),
)
PRODUCER = re.compile(rb"GNU C(?:\+\+)?\d+ (?P<version>\d[\w.]*) (?P<flags>-[^\0]{0,2000})")
UNFOUND = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)  #: a missing library in the output of ``ldd``
#: In ``extras``: folder of the library of the standard ABI, if programs use that.
STANDARD_ABI = "standard_abi"
#: Why an environment with the standard ABI has neither OSU nor IMB.
ONLY_MPICOST = "of the standard ABI of MPI, only mpicost is built"


@dataclass(frozen=True)
class Installed:
    """One program that is installed for one MPI."""

    folder: Folder  #: with the executables, or with subfolders of them
    #: Needed to run; values as a shell reads them
    env: Mapping[str, str] = field(default_factory=dict)
    origin: str = SITE

    def __post_init__(self) -> None:
        check_fields(self)


#: Programs that a site declares. A plain folder means that the site installed the program itself.
Programs = Annotated[
    Mapping[Annotated[str, one_of(sorted(INSTALLABLE))], Folder | Installed],
    Meta(description=f"{{'imb': {INSTALLABLE['imb'].example!r}}}"),
]


def build_extras(
    programs: Mapping[str, str | Installed], lacking: Mapping[str, str], unfit: Sequence[str] = ()
) -> dict:
    """Build the ``extras`` on installed programs. A plain folder is one that the site declares."""
    there = {
        name: entry if isinstance(entry, Installed) else Installed(entry) for name, entry in programs.items()
    }
    return {
        "programs": {name: entry.folder for name, entry in there.items()},
        "program_env": {name: dict(entry.env) for name, entry in there.items() if entry.env},
        "program_origin": {name: entry.origin for name, entry in there.items()},
        "lacking": dict(lacking),
        "unfit": list(unfit),
    }


def find_program_source(program: str, extras: Mapping[str, Any], spack: str) -> str:
    """Find the source of a program in an environment; empty if it is not available.

    :param spack: Spack's executable; empty without Spack.
    """
    if extras.get(STANDARD_ABI):
        return CMAKE if program == "mpicost" else ""
    origin = extras.get("program_origin", {}).get(program, "")
    if origin == SITE:
        return SITE
    if spack and is_packaged(program) and Path(extras.get("spack_environment", ""), "spack.yaml").is_file():
        return SPACK
    return CMAKE if program == "mpicost" else origin


def explain_missing_program(program: str, extras: Mapping[str, Any], spack: str) -> str:
    """Explain why an environment lacks a program, as in ``skipped: no Spack``; empty if it has it.

    The parameters are those of :func:`find_program_source`.
    """
    if find_program_source(program, extras, spack):
        return ""
    if extras.get(STANDARD_ABI):
        return ONLY_MPICOST
    if not is_packaged(program):
        return f"the site file does not say where it is (programs={{{program!r}: ...}})"
    reason = "no Spack environment for this MPI" if spack else "no Spack"
    more = extras.get("lacking", {}).get(program, "")
    return f"{reason}; {more}" if more else reason


def is_lack_foreseen(program: str, extras: Mapping[str, Any], spack: str) -> bool:
    """Return whether an environment lacks a program for a reason that was known without a trial.

    Then the lack is no failure of its MPI. A program that failed a trial, that Spack cannot build for this MPI
    alone, or about which nothing is known, is not such a case. A site declares a program without a package, or
    does not have it. For parameters see :func:`find_program_source`.
    """
    if find_program_source(program, extras, spack):
        return False
    declared = program in extras.get("lacking", {}) and program not in extras.get("unfit", ())
    return bool(extras.get(STANDARD_ABI)) or not is_packaged(program) or (not spack and declared)


def is_packaged(program: str) -> bool:
    """Return whether Spack can build a program, or the one that it is part of."""
    return bool(PROGRAMS[find_product(program)].package)


def find_executable(folder: Path, name: str) -> Path | None:
    """Find an executable in a folder or below it; OSU has a subfolder per kind of benchmark."""
    executables = list_executables(folder, name)
    return executables[0] if executables else None


def explain_unloadable(folder: str, name: str, env: Mapping[str, str] | None) -> str:
    """Explain why an installed executable cannot be started; empty if nothing is known against it.

    :param env: that it needs to run, values as a shell reads them; None if unknown here.
    """
    path = find_executable(Path(folder), name)
    if path is None:
        return f"{folder} has no {name}"
    lacking = [] if env is None else list_missing_libraries(path, tuple(env.items()))
    return f"{path} needs {', '.join(lacking)}, which is not found" if lacking else ""


@functools.cache
def list_missing_libraries(path: Path, env: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """List the libraries that the loader does not find, except an MPI's; empty if there is no loader."""
    script = "".join(f"export {name}={value}\n" for name, value in env) + 'exec ldd "$0"'
    words = ["bash", "-c", script, str(path)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(name for name in UNFOUND.findall(done.stdout) if not name.startswith("libmpi"))


def list_executables(folder: Path, name: str) -> list[Path]:
    """List all files with this name in a folder and up to two levels below its subfolders."""
    below = (path for pattern in ("*", "*/*", "*/*/*") for path in folder.glob(pattern))
    return sorted(path for path in below if path.name == name and path.is_file())


def describe_missing_executables(program: str, folder: str) -> str:
    """Describe what is wrong with a declared folder on the machine that has it; empty if nothing is."""
    path = Path(folder)
    if not path.is_dir():
        return f"{folder}: is not a folder"
    name = INSTALLABLE[program].sample
    executables = list_executables(path, name)
    if not executables:
        return f"{folder}: has no {name}; write the folder as in {INSTALLABLE[program].example!r}"
    if len(executables) > 1:
        two = " and ".join(map(str, executables[:2]))
        return f"{folder}: has {name} more than once ({two}); write the folder of one of them"
    return ""


@dataclass(frozen=True)
class ExecutableFacts:
    """The facts of one executable; ``unknown`` if it does not contain them."""

    version: str = UNKNOWN
    compiler: str = UNKNOWN
    flags: str = UNKNOWN


def read_facts(executable: Path) -> ExecutableFacts:
    """Read the facts of an executable; all unknown if it cannot be read."""
    try:
        with files.open_regular(executable) as file:
            return parse_facts(file.read(MOST_BYTES))
    except OSError:
        return ExecutableFacts()


def parse_facts(data: bytes) -> ExecutableFacts:
    version = next((match[1] for pattern in VERSIONS if (match := pattern.search(data))), None)
    if producer := PRODUCER.search(data):
        compiler, flags = (f"gcc {decode_text(producer['version'])}", decode_text(producer["flags"]).strip())
    else:
        compiler_match = next((match for pattern in COMPILERS if (match := pattern.search(data))), None)
        compiler, flags = format_compiler(compiler_match), UNKNOWN
    return ExecutableFacts(decode_text(version) if version else UNKNOWN, compiler, flags)


def format_compiler(found: re.Match[bytes] | None) -> str:
    """Format a compiler's name and version as people write them."""
    if not found:
        return UNKNOWN
    return f"gcc {decode_text(found['version'])}" if found.groupdict() else decode_text(found[0])


def decode_text(data: bytes) -> str:
    return data.decode("ascii", "replace")
