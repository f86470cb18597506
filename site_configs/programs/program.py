"""The benchmark programs: one record each of all that is known by program and not by benchmark.

A further program is a record here, a parser in ``postprocess.parsers`` and a check in ``reframe_checks``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Program:
    """One program, which may be many executables."""

    name: str  #: as in every case: ``mpicost``, ``osu``, ``imb``
    package: str = ""  #: of Spack; empty for a part of another program
    folder: str = ""  #: with the executables, or with folders of them, below the prefix
    single: str = ""  #: the executable, if it is only one
    git: str = ""  #: repository that the source comes from, if it comes from one
    part_of: str = ""  #: the program that is built to have this one
    sample: str = ""  #: an executable by which it is known to be there
    example: str = ""  #: its folder as Spack installs it, if a site may declare one that is installed
    version: bytes = b""  #: pattern of its version in an executable
    level: str = "-O2"  #: of optimisation, as Spack's recipe has it
    own: bool = False  #: whether it is of the suite: its records and trials are those of mpicost
    on_request: bool = False  #: whether no night measures it
    needs_gpus: bool = False  #: whether nights measure it on partitions with GPUs only
    #: Whether a start measures all of its routines, and those that were not chosen are not looked at.
    whole: bool = False
    verified: bool = False  #: whether every launch verifies its data, also one whose times count
    in_turn: bool = False  #: whether a night may leave some of its MPIs to a later one
    launches: int = 1  #: of a calibration that a night makes by itself
    caches: tuple[str, ...] = ("warm",)  #: what it can do to the caches before each trial
    #: Value of each option that it has, where the user says nothing; None where that depends on the case.
    options: Mapping[str, Any] = field(default_factory=dict)


OWN = {"sync": "dissemination", "seconds_per_layout": None}  #: of the suite's programs
#: A launch of OSU or IMB takes minutes. Of five, all cases of OSU together tell how launches differ. IMB prints
#: means only: its references assert gross changes.
PROGRAMS = {
    program.name: program
    for program in (
        Program(
            "mpicost",
            "mpicost",
            "bin",
            single="mpicost",
            sample="mpicost",
            level="-O3",
            own=True,
            launches=20,
            caches=("evict", "flush", "warm"),
            options=OWN | {"cache": "evict", "trials": 51, "trial_rounds": 5},
        ),
        Program(
            "osu",
            "osu-micro-benchmarks",
            "libexec/osu-micro-benchmarks/mpi",
            sample="osu_latency",
            example="/sw/osu/libexec/osu-micro-benchmarks/mpi",
            version=rb"# OSU MPI[^\0\n]{0,60} v(\d[\w.]*)",
            in_turn=True,
            launches=5,
            options={"cache": "warm", "iterations": 100},
        ),
        Program(
            "imb",
            "intel-mpi-benchmarks",
            "bin",
            git="https://github.com/intel/mpi-benchmarks.git",
            sample="IMB-MPI1",
            example="/sw/imb/bin",
            version=rb"Intel\(R\) MPI Benchmarks (\d[\w.]*)",
            in_turn=True,
            caches=("warm", "rotate"),
            options={"cache": "warm", "iterations": 100},
        ),
        Program(
            "kernels",
            part_of="mpicost",
            level="-O3",
            own=True,
            on_request=True,
            launches=5,
            options=OWN | {"trials": 6},
        ),
        Program(
            "gpu",
            part_of="mpicost",
            level="-O3",
            own=True,
            needs_gpus=True,
            launches=20,
            options=OWN | {"trials": 51, "trial_rounds": 5},
        ),
        Program(
            "bindings",
            part_of="mpicost",
            on_request=True,
            whole=True,
            verified=True,
            launches=5,
            options={"cache": "warm"},
        ),
    )
}
#: The programs that are built, by themselves.
PRODUCTS = {program.name: program for program in PROGRAMS.values() if program.package}
#: Those that each night measures, on every partition.
NIGHTLY = tuple(each.name for each in PROGRAMS.values() if not each.on_request and not each.needs_gpus)
#: Those that may be installed already.
INSTALLABLE = {program.name: program for program in PROGRAMS.values() if program.example}


def find_product(name: str) -> str:
    return PROGRAMS[name].part_of or name if name in PROGRAMS else name


def find_programs(option: str) -> tuple[str, ...]:
    return tuple(program.name for program in PROGRAMS.values() if option in program.options)


def find_usual_values(option: str) -> dict[str, str | int]:
    """Find the value of an option, by program, where the user says nothing."""
    values = ((program.name, program.options.get(option)) for program in PROGRAMS.values())
    return {name: value for name, value in values if value is not None}


def find_programs_by_cache() -> dict[str, tuple[str, ...]]:
    """Find the programs that can do it to the caches, by each word of ``--cache``."""
    words = {word for program in PROGRAMS.values() for word in program.caches}
    return {
        word: tuple(program.name for program in PROGRAMS.values() if word in program.caches) for word in words
    }
