"""The languages, and how the program of each is made ready for an MPI; or why it cannot be had."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from postprocess.extensions.agreement.bindings.exchange import Program
from site_configs.mpi import wheels
from site_configs.mpi.allocation import strip_allocation
from site_configs.mpi.family import Mpi, join_lines, spare_network
from site_configs.mpi.probe import ProbeError, run_step

SOURCES = Path(__file__).resolve().parents[4] / "suite" / "bindings"
MPI_LIBRARY = re.compile(r"=> (\S*/libmpi(?:ch)?\.so\S*)")  #: in a line of ldd
NO_MODULE = re.compile(r"Fatal Error: (.*)")  #: of gfortran
BUILD_LIMIT = 600.0  #: seconds


class Unavailable(Exception):
    """One line: why a language cannot be had with an MPI."""


@dataclass(frozen=True)
class Bench:
    """An MPI on this machine, and where programs for it are made."""

    mpi: Mpi
    folder: Path  #: of this call
    lasting: Path  #: for what is worth keeping: wheels and builds that take long
    wheels: Path | None = None  #: the only place to take wheels from; None for the package index

    @cached_property
    def env(self) -> dict[str, str]:
        """The environment of compilers and launchers."""
        own = self.mpi.env | spare_network(self.mpi.family, os.environ)
        return strip_allocation(os.environ) | own

    @property
    def c_program(self) -> Path:
        """The program in C, with which all others are compared."""
        return self.folder / "c"

    @cached_property
    def library(self) -> Path:
        """The file of the MPI library that programs in C load.

        :raises Unavailable: if it is not to be seen
        """
        found = MPI_LIBRARY.search(self.run("ldd", str(self.c_program)))
        if not found:
            raise Unavailable(f"{self.c_program.name} of {self.mpi.mpicc} loads no libmpi")
        return Path(found[1])

    def run(self, *words: str, **more: str) -> str:
        """Run a command that makes something ready.

        :raises Unavailable: if it fails
        """
        try:
            return run_step([*words], self.env | more, Path(words[0]).name, BUILD_LIMIT)
        except ProbeError as error:
            raise Unavailable(str(error)) from None

    def unpack_wheel(self, name: str) -> Path:
        """Return where a pinned wheel is unpacked; it is fetched once.

        :raises Unavailable: if it cannot be had
        """
        self.lasting.joinpath("bindings").mkdir(exist_ok=True)
        try:
            return wheels.install_wheels(f"bindings/{name}", self.lasting, self.wheels).root
        except wheels.WheelError as error:
            raise Unavailable(join_lines(str(error))) from None


@dataclass(frozen=True)
class Language:
    """A language with its binding; ``name`` begins with the word by which it is chosen."""

    name: str
    title: str
    prepare: Callable[[Bench], Program]


def prepare_c(bench: Bench) -> Program:
    """Compile the program in C."""
    bench.run(bench.mpi.mpicc, "-O2", str(SOURCES / "exchange.c"), "-o", str(bench.c_program))
    return Program((str(bench.c_program),))


def prepare_fortran(bench: Bench, module: str) -> Program:
    """Compile the program in Fortran by the MPI's own wrapper, with ``mpi_f08`` or ``mpi``."""
    wrapper = find_fortran_wrapper(Path(bench.mpi.mpicc))
    program = bench.folder / module
    options = ["-DF08"] if module == "mpi_f08" else []
    for folder in find_module_folders(bench):
        options += ["-I", str(folder)]
    source = str(SOURCES / "exchange.F90")
    try:
        bench.run(str(wrapper), "-O2", *options, source, "-o", str(program))
    except Unavailable as error:
        if fatal := NO_MODULE.search(str(error)):
            raise Unavailable(
                f"no module {module} that the compiler reads: {fatal[1].strip()}"
            ) from None
        raise
    return Program((str(program),))


def find_fortran_wrapper(mpicc: Path) -> Path:
    """Find the Fortran wrapper beside that of C; Debian's have the MPI's name behind a dot.

    :raises Unavailable: if there is none
    """
    names = [mpicc.name.replace("mpicc", name) for name in ("mpifort", "mpif90", "mpifc")]
    for name in dict.fromkeys(names):
        if name != mpicc.name and mpicc.with_name(name).exists():
            return mpicc.with_name(name)
    raise Unavailable(f"no Fortran in this MPI: none of {', '.join(names)} beside {mpicc}")


def find_module_folders(bench: Bench) -> list[Path]:
    """Find Intel MPI's modules of the compiler at hand, which its wrapper seeks elsewhere; else nothing.

    It has a folder for each version of gfortran; the last one up to the compiler's reads its modules.
    """
    by_version = {
        split_number(folder.name): folder
        for folder in Path(bench.mpi.prefix, "include", "mpi", "gfortran").glob("[0-9]*")
    }
    if not by_version:
        return []
    try:
        own = split_number(bench.run("gfortran", "-dumpfullversion").strip())
    except Unavailable:
        raise Unavailable("no Fortran compiler: gfortran is not on PATH") from None
    fit = [version for version in by_version if version[0] <= own[0]]
    return [by_version[max(fit)]] if fit else []


def split_number(version: str) -> tuple[int, ...]:
    """Split a version of numbers alone."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def prepare_mpi4py(bench: Bench, style: str, level: str) -> Program:
    """Find the interpreter with the wheel of mpi4py and the MPI's library named to it."""
    root = bench.unpack_wheel("mpi4py")
    packages = next(iter(root.glob("lib/python*/site-packages")), root)
    variables = {
        "PYTHONPATH": str(packages),
        "MPI4PY_LIBMPI": str(bench.library),
        "OPENBLAS_NUM_THREADS": "1",
    }
    only = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI"
    bench.run(sys.executable, "-c", only, **variables)
    return Program((sys.executable, str(SOURCES / "exchange.py"), style, level), variables)


LANGUAGES = (
    Language("c", "C", prepare_c),
    Language("c-again", "C again", prepare_c),
    *(
        Language(f"fortran-{module}", f"Fortran {module}", partial(prepare_fortran, module=module))
        for module in ("mpi_f08", "mpi")
    ),
    *(
        Language(
            f"mpi4py-{style}-{level}",
            f"mpi4py {style}, {level}",
            partial(prepare_mpi4py, style=style, level=level),
        )
        for style in ("buffers", "pickled")
        for level in ("single", "default")
    ),
)
KINDS = tuple(dict.fromkeys(each.name.partition("-")[0] for each in LANGUAGES))[1:]


def select_languages(kinds: Sequence[str] = ()) -> list[Language]:
    """Select C, and the languages of these kinds; all of none."""
    chosen = {"c", *(kinds or KINDS)}
    return [each for each in LANGUAGES if each.name.partition("-")[0] in chosen]
