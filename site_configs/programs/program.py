"""The benchmark programs: one record per program of all that does not depend on the benchmark.

A new program is a record here, a parser in ``postprocess.parsers`` and a check in ``reframe_checks``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Program:
    """One program, which may consist of many executables."""

    name: str  #: name in every case: ``mpicost``, ``osu``, ``imb``
    package: str = ""  #: Spack's package; empty for a part of another program
    folder: str = ""  #: with the executables, or with subfolders of them, below the prefix
    single: str = ""  #: the executable, if there is only one
    git: str = ""  #: repository of the source, if there is one
    part_of: str = ""  #: the program whose build contains this one
    sample: str = ""  #: an executable that shows that the program is there
    example: str = ""  #: its folder as installed by Spack, if a site may declare an installed one
    version: bytes = b""  #: pattern of its version in an executable
    level: str = "-O2"  #: level of optimisation, as in Spack's recipe
    own: bool = False  #: whether it is part of the suite, with records and trials like mpicost
    on_request: bool = False  #: whether no night measures it
    needs_gpus: bool = False  #: whether nights measure it only on partitions with GPUs
    #: Whether a start measures all of its routines, and those that were not chosen are ignored.
    whole: bool = False
    verified: bool = False  #: whether every launch verifies its data, also one whose times count
    in_turn: bool = False  #: whether a night may leave some of its MPIs to a later one
    launches: int = 1  #: launches of an automatic calibration
    caches: tuple[str, ...] = ("warm",)  #: what it can do to the caches before each trial
    #: Default of each option that it has; None if that depends on the case.
    options: Mapping[str, Any] = field(default_factory=dict)


OWN = {"sync": "dissemination", "seconds_per_layout": None}  #: values for the suite's programs
#: A launch of OSU or IMB takes minutes. With five launches, all cases of OSU together show how launches differ.
#: IMB prints means only: its references assert gross changes.
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
#: Programs that are built separately.
PRODUCTS = {program.name: program for program in PROGRAMS.values() if program.package}
#: Programs that each night measures, on every partition.
NIGHTLY = tuple(
    program.name for program in PROGRAMS.values() if not program.on_request and not program.needs_gpus
)
#: Programs that may be installed already.
INSTALLABLE = {program.name: program for program in PROGRAMS.values() if program.example}


def find_product(name: str) -> str:
    return PROGRAMS[name].part_of or name if name in PROGRAMS else name


def find_programs(option: str) -> tuple[str, ...]:
    return tuple(program.name for program in PROGRAMS.values() if option in program.options)


def find_usual_values(option: str) -> dict[str, str | int]:
    """Return the default of an option, by program."""
    values = ((program.name, program.options.get(option)) for program in PROGRAMS.values())
    return {name: value for name, value in values if value is not None}


def find_programs_by_cache() -> dict[str, tuple[str, ...]]:
    """Return the programs that support each word of ``--cache``."""
    words = {word for program in PROGRAMS.values() for word in program.caches}
    return {
        word: tuple(program.name for program in PROGRAMS.values() if word in program.caches) for word in words
    }
