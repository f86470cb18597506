"""The programs that Spack builds on each MPI, and where they are in what it installs."""

from __future__ import annotations

from dataclasses import dataclass

IMB = "https://github.com/intel/mpi-benchmarks.git"


@dataclass(frozen=True)
class Product:
    """One program, which may be many executables."""

    name: str  #: as in every case: ``mpicost``, ``osu``, ``imb``
    package: str  #: of Spack
    folder: str  #: with the executables, or with folders of them, below the prefix
    single: str = ""  #: the executable, if it is only one
    git: str = ""  #: repository that the source comes from, if it comes from one


PRODUCTS = {
    product.name: product
    for product in (
        Product("mpicost", "mpicost", "bin", single="mpicost"),
        Product("osu", "osu-micro-benchmarks", "libexec/osu-micro-benchmarks/mpi"),
        Product("imb", "intel-mpi-benchmarks", "bin", git=IMB),
    )
}
