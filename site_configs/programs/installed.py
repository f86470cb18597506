"""Benchmark programs that are there already and need not be built: what a site declares, or a wheel brings.

A program comes from one place: what the site declares goes first, then Spack, then CMake (``mpicost`` only),
then a wheel (IMB only). Where there is none of them, the reason is told; nothing is absent in silence.
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
from site_configs.programs.program import INSTALLABLE, PROGRAMS

SITE, SPACK, CMAKE, WHEEL = "site", "spack", "cmake", "wheel"
Folder = Annotated[
    str, Meta(pattern="^/", description=f"an absolute path, as in {INSTALLABLE['imb'].example!r}")
]
UNKNOWN = "unknown"
MOST_BYTES = 64_000_000
VERSIONS = [re.compile(program.version) for program in PROGRAMS.values() if program.version]
#: The compiler that made the benchmark comes before GCC, which made the start-up code of every program.
COMPILERS = (
    re.compile(rb"Intel\(R\) oneAPI DPC\+\+/C\+\+ Compiler \d[\w.]*"),
    re.compile(rb"clang version \d[\w.]*"),
    re.compile(rb"GCC: \([^)\0]{0,60}\) (?P<version>\d[\w.]*)"),
)
PRODUCER = re.compile(rb"GNU C(?:\+\+)?\d+ (?P<version>\d[\w.]*) (?P<flags>-[^\0]{0,2000})")
UNFOUND = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)  #: in what ``ldd`` prints
#: Of ``extras``: folder of the library of the standard ABI, where programs use that.
STANDARD_ABI = "standard_abi"
#: Why an environment of the standard ABI has neither OSU nor IMB.
ONLY_MPICOST = "of the standard ABI of MPI, only mpicost is built"


@dataclass(frozen=True)
class Installed:
    """One program that is installed for one MPI."""

    folder: Folder  #: with the executables, or with folders of them
    #: Needed to run; values as a shell reads them
    env: Mapping[str, str] = field(default_factory=dict)
    origin: str = SITE

    def __post_init__(self) -> None:
        check_fields(self)


#: Programs that a site declares. A plain folder is one that the site has installed itself.
Programs = Annotated[
    Mapping[Annotated[str, one_of(sorted(INSTALLABLE))], Folder | Installed],
    Meta(description=f"{{'imb': {INSTALLABLE['imb'].example!r}}}"),
]


def build_extras(
    programs: Mapping[str, str | Installed], lacking: Mapping[str, str], unfit: Sequence[str] = ()
) -> dict:
    """Build the ``extras`` on installed programs. A plain folder is one that the site declares."""
    there = {name: each if isinstance(each, Installed) else Installed(each) for name, each in programs.items()}
    return {
        "programs": {name: each.folder for name, each in there.items()},
        "program_env": {name: dict(each.env) for name, each in there.items() if each.env},
        "program_origin": {name: each.origin for name, each in there.items()},
        "lacking": dict(lacking),
        "unfit": list(unfit),
    }


def find_program_source(program: str, extras: Mapping[str, Any], spack: str) -> str:
    """Find where a program of an environment comes from; empty if it cannot be had.

    :param spack: Spack's executable; empty where no Spack can be had.
    """
    if extras.get(STANDARD_ABI):
        return CMAKE if program == "mpicost" else ""
    origin = extras.get("program_origin", {}).get(program, "")
    if origin == SITE:
        return SITE
    if bool(spack) and Path(extras.get("spack_environment", ""), "spack.yaml").is_file():
        return SPACK
    return CMAKE if program == "mpicost" else origin


def explain_missing_program(program: str, extras: Mapping[str, Any], spack: str) -> str:
    """Explain why an environment has no such program, as in ``skipped: no Spack``; empty if it has one.

    The parameters are those of :func:`find_program_source`.
    """
    if find_program_source(program, extras, spack):
        return ""
    if extras.get(STANDARD_ABI):
        return ONLY_MPICOST
    reason = "no Spack environment for this MPI" if spack else "no Spack"
    more = extras.get("lacking", {}).get(program, "")
    return f"{reason}; {more}" if more else reason


def is_lack_foreseen(program: str, extras: Mapping[str, Any], spack: str) -> bool:
    """Return whether an environment lacks a program for a reason that was known before anything was tried.

    Then the lack is no failure of its MPI. A program that failed a trial, that Spack cannot build for this MPI
    alone, or of which nothing is said, is none of these. For parameters see :func:`find_program_source`.
    """
    if find_program_source(program, extras, spack):
        return False
    told = program in extras.get("lacking", {}) and program not in extras.get("unfit", ())
    return bool(extras.get(STANDARD_ABI)) or (not spack and told)


def find_executable(folder: Path, name: str) -> Path | None:
    """Find an executable in a folder or below it; OSU keeps each kind of benchmark in one of its own."""
    found = list_executables(folder, name)
    return found[0] if found else None


def explain_unloadable(folder: str, name: str, env: Mapping[str, str] | None) -> str:
    """Explain why an installed executable cannot be started; empty if nothing is known against it.

    :param env: that it needs to run, values as a shell reads them; None if they cannot be known here.
    """
    path = find_executable(Path(folder), name)
    if path is None:
        return f"{folder} has no {name}"
    lacking = [] if env is None else list_missing_libraries(path, tuple(env.items()))
    return f"{path} needs {', '.join(lacking)}, which is not found" if lacking else ""


@functools.cache
def list_missing_libraries(path: Path, env: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """List the libraries that the loader does not find, but those of an MPI; none where no loader tells."""
    script = "".join(f"export {name}={value}\n" for name, value in env) + 'exec ldd "$0"'
    words = ["bash", "-c", script, str(path)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(name for name in UNFOUND.findall(done.stdout) if not name.startswith("libmpi"))


def list_executables(folder: Path, name: str) -> list[Path]:
    """List all files of that name in a folder and, at most two levels down, in its folders."""
    below = (path for pattern in ("*", "*/*", "*/*/*") for path in folder.glob(pattern))
    return sorted(path for path in below if path.name == name and path.is_file())


def describe_missing_executables(program: str, folder: str) -> str:
    """Describe what is wrong with a declared folder on the machine that it is on; empty if nothing is."""
    path = Path(folder)
    if not path.is_dir():
        return f"{folder}: is no folder"
    name = INSTALLABLE[program].sample
    found = list_executables(path, name)
    if not found:
        return f"{folder}: has no {name}; write the folder as in {INSTALLABLE[program].example!r}"
    if len(found) > 1:
        two = " and ".join(map(str, found[:2]))
        return f"{folder}: has {name} more than once ({two}); write the folder of one of them"
    return ""


@dataclass(frozen=True)
class ExecutableFacts:
    """The facts of one executable; ``unknown`` if it does not tell."""

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
    version = next((match[1] for each in VERSIONS if (match := each.search(data))), None)
    if producer := PRODUCER.search(data):
        compiler, flags = (f"gcc {decode_text(producer['version'])}", decode_text(producer["flags"]).strip())
    else:
        found = next((match for each in COMPILERS if (match := each.search(data))), None)
        compiler, flags = format_compiler(found), UNKNOWN
    return ExecutableFacts(decode_text(version) if version else UNKNOWN, compiler, flags)


def format_compiler(found: re.Match[bytes] | None) -> str:
    """Format a compiler's name and version as people write them."""
    if not found:
        return UNKNOWN
    return f"gcc {decode_text(found['version'])}" if found.groupdict() else decode_text(found[0])


def decode_text(data: bytes) -> str:
    return data.decode("ascii", "replace")
