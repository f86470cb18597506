"""OSU Micro-Benchmarks, with the optimisation level set on purpose.

Seen in 7.4: its configure takes autoconf's ``-g -O2`` where nobody says otherwise, and nothing of it is
kept in what is installed.
"""

import pathlib

from spack.package import filter_file, run_after
from spack_repo.builtin.packages.osu_micro_benchmarks import package as builtin
from spack_repo.plumbline.build_record import telling, write_build_record


class OsuMicroBenchmarks(builtin.OsuMicroBenchmarks):
    """The recipe of Spack, for C alone: what is measured here are MPI programs in C."""

    level = "-O2"

    def patch(self):
        """``osu_latency_mt`` of 7.4 ends without MPI_Finalize, which Open MPI takes for a crash."""
        source = "c/mpi/pt2pt/standard/osu_latency_mt.c"
        filter_file(r"\bomb_lat_mt_session_finalize\(omb_init_h\)", "omb_mpi_finalize(omb_init_h)", source)

    def configure_args(self):
        """The level for both compilers."""
        return [*super().configure_args(), f"CFLAGS={self.level}", f"CXXFLAGS={self.level}"]

    def flag_handler(self, name, flags):
        """Each executable shall tell how it was compiled."""
        return telling(name, flags)

    @run_after("install")
    def keep_flags(self):
        """All of its executables are compiled alike, or this is an error."""
        folder = pathlib.Path(self.prefix.libexec, "osu-micro-benchmarks", "mpi")
        write_build_record(self, "osu", sorted(folder.rglob("osu_*")), self.level)
