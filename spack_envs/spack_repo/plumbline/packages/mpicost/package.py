"""Recipe of mpicost, the benchmark program of Plumbline. Built from a checkout, never downloaded."""

import pathlib
import shutil

from spack.package import depends_on, run_after, run_before, version
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.plumbline.build_record import telling, write_build_record
from spack_repo.plumbline.source_digest import source_digest


class Mpicost(CMakePackage):
    """Times MPI calls by the methods of Luecke et al. and records every trial."""

    manual_download = True
    download_instr = (
        "mpicost is built from a checkout of Plumbline: name its folder suite/ in `develop:`."
    )

    version("main")

    level = "-O3"
    generator("ninja")
    depends_on("c", type="build")
    depends_on("cmake@3.13:", type="build")
    depends_on("mpi@3:")

    def cmake_args(self):
        """FindMPI would take any MPI of the machine; a wrong MPI_C_COMPILER is an error."""
        return [self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc)]

    def flag_handler(self, name, flags):
        """The program shall tell how it was compiled."""
        return telling(name, flags)

    def detect_dev_src_change(self):
        """By content: Spack's own test, by time of change, misses an older file that is put back."""
        try:
            recorded = self.digest_file.read_text()
        except OSError:
            return True
        return recorded != source_digest(self.source_folder)

    @run_before("cmake")
    def start_afresh(self):
        """Ninja too goes by time of change, so what an earlier build left must not be reused."""
        self.digest = source_digest(self.source_folder)
        shutil.rmtree(self.build_directory, ignore_errors=True)

    @run_after("install")
    def record_digest(self):
        """The digest taken before the build: a file that was edited during it counts as changed."""
        self.digest_file.parent.mkdir(parents=True, exist_ok=True)
        self.digest_file.write_text(self.digest)

    @run_after("install")
    def keep_flags(self):
        """What CMake's Release has come to."""
        write_build_record(self, "mpicost", [self.prefix.bin.mpicost], self.level)

    @property
    def source_folder(self) -> pathlib.Path:
        """The checkout's folder that is built."""
        return pathlib.Path(self.spec.variants["dev_path"].value)

    @property
    def digest_file(self) -> pathlib.Path:
        """Where an installation keeps the digest of what it was built from."""
        return pathlib.Path(self.prefix, "share", "mpicost", "sources.sha256")
