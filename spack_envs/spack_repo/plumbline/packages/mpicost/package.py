"""Recipe of mpicost, the benchmark program of Plumbline. Built from a checkout, never downloaded."""

import json
import pathlib
import shutil

from spack.package import Executable, InstallError, depends_on, run_after, run_before, version
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.plumbline.build_record import telling, write_build_record
from spack_repo.plumbline.source_digest import source_digest

#: In the checkout that this recipe is in.
BESIDE = pathlib.Path(__file__).resolve().parents[5] / "suite"


class Mpicost(CMakePackage):
    """Times MPI calls by the methods of Luecke et al. and records every trial."""

    version("main")

    level = "-O3"
    generator("ninja")
    depends_on("c", type="build")
    depends_on("cmake@3.13:", type="build")
    depends_on("mpi@3:")

    @property
    def has_code(self):
        """Whether Spack stages a source: only what ``develop:`` names. Nothing is fetched."""
        return "dev_path" in self.spec.variants

    @property
    def root_cmakelists_dir(self):
        """Where CMake begins."""
        return str(self.source_folder)

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
        if not self.source_folder.is_dir():
            raise InstallError(
                f"{self.source_folder}: is not there; add the repository of recipes in its checkout "
                "(spack repo add), or name the folder suite/ of one in `develop:`"
            )
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

    def test_two_processes(self):
        """send and verify data between two processes of the MPI that it was built with"""
        mpiexec = Executable(str(self.spec["mpi"].prefix.bin.mpiexec))
        words = ("--routine", "bcast,barrier", "--trials", "3", "--cache", "warm")
        output = pathlib.Path("smoke.jsonl")
        mpiexec("-n", "2", str(self.prefix.bin.mpicost), *words, "--output", str(output))
        first, *_, last = map(json.loads, output.read_text().splitlines())
        assert (first["processes"], last["record"], last["verified"]) == (2, "end", True), last

    @property
    def source_folder(self) -> pathlib.Path:
        """The checkout's folder that is built."""
        named = self.spec.variants.get("dev_path")
        return pathlib.Path(named.value) if named else BESIDE

    @property
    def digest_file(self) -> pathlib.Path:
        """Where an installation keeps the digest of what it was built from."""
        return pathlib.Path(self.prefix, "share", "mpicost", "sources.sha256")
