"""An MPI on this machine, and what makes programs ready for it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from site_configs.mpi import wheels
from site_configs.mpi.allocation import strip_allocation
from site_configs.mpi.family import Mpi, join_lines, spare_network
from site_configs.mpi.probe import ProbeError, run_step

SOURCES = Path(__file__).resolve().parents[4] / "suite" / "bindings"
MPI_LIBRARY = re.compile(r"=> (\S*/libmpi(?:ch)?\.so\S*)")  #: in a line of ldd
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
    jars: Path | None = None  #: the same of jars

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
