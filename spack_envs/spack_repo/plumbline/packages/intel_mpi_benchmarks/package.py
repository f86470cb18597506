"""Intel MPI Benchmarks, optimised, and one program after the other, each with all build jobs.

Why not Spack's own recipe, seen in v2026.03.0 with IMB 2021.11:

- It knows 2021.7 at most.
- It builds with ``make -j`` while the programs share object files, and passes ``TARGET=...``, at which the
  top Makefile builds everything.
- The Makefiles force ``-O0`` and ``-Werror`` on whoever calls them. Without optimisation the benchmark's own
  loop is timed along; with ``-Werror`` a newer compiler stops at a warning, and GCC 12 at the C++ header of
  Open MPI 4.1.
"""

import functools
import os
import pathlib
import subprocess

from spack.package import copy, filter_file, install, mkdir, run_after, version, working_dir
from spack_repo.builtin.packages.intel_mpi_benchmarks import package as builtin
from spack_repo.plumbline.build_record import telling, write_build_record
from spack_repo.plumbline.file_access import FILE_ACCESS

#: Verification of data is a choice of the compiler's, so that it needs executables of its own.
CHECK = "-DCHECK -DOMPI_SKIP_MPICXX"
CHECKED = "-check"  #: behind their names

#: IMB-MT needs it; the Makefile knows only compilers that are called by their bare names.
THREADS = "-fopenmp"


class IntelMpiBenchmarks(builtin.IntelMpiBenchmarks):
    """The recipe of Spack with another way to build."""

    git = "https://github.com/intel/mpi-benchmarks.git"
    version("2021.11", tag="IMB-v2021.11", commit="1a7cada09754be3ccf60c2698305a4c020b52e28")

    level = "-O2"
    build_directory = "."

    @property
    def build_targets(self):
        """The executables by their names; ``IMB-MPI1`` and so on."""
        suites = ("mpi1", "nbc", "rma", "p2p", "ext", "mt", *(["io"] if self.has_file_access else []))
        chosen = [name.upper() for name in suites if self.spec.variants[name].value]
        return [f"IMB-{name}" for name in chosen]

    @functools.cached_property
    def has_file_access(self):
        """Return whether the MPI has MPI-IO, without which IMB-IO is not built."""
        source = pathlib.Path(self.stage.path, "file_access.c")
        source.write_text(FILE_ACCESS)
        command = [self.spec["mpi"].mpicc, str(source), "-o", str(source.with_suffix(""))]
        return subprocess.run(command, check=False).returncode == 0

    @property
    def checked(self):
        """The executables that are built once more, to verify their data."""
        return [name for name in self.build_targets if name in ("IMB-MPI1", "IMB-NBC", "IMB-RMA")]

    def edit(self, spec, prefix):
        """The compilers, and Makefiles that let the level be chosen."""
        os.environ.update(CC=spec["mpi"].mpicc, CXX=spec["mpi"].mpicxx)
        with working_dir(self.stage.source_path):
            for makefile in ("src_cpp/Makefile", "src_c/P2P/Makefile"):
                filter_file(r"-O[0-3]\b", self.level, makefile)
                filter_file(r"\s-Werror\b", "", makefile)

    def build(self, spec, prefix):
        """Build the programs in turn, since they share object files: in their own folders, as ``make`` of the
        folder above starts each without the jobs that it was given itself.
        """
        with working_dir(self.stage.source_path):
            for program in self.build_targets:
                folder = "src_c/P2P" if program == "IMB-P2P" else "src_cpp"
                target = f"TARGET={program.removeprefix('IMB-')}"
                own = [f"CXXFLAGS={THREADS}"] if program == "IMB-MT" else []
                self.module.make("-C", folder, target, *own)
                copy(f"{folder}/{program}", program)
            for program in self.checked:
                target = f"TARGET={program.removeprefix('IMB-')}"
                self.module.make("-C", "src_cpp", "clean", target)
                self.module.make("-C", "src_cpp", target, f"CPPFLAGS={CHECK}")
                copy(f"src_cpp/{program}", f"{program}{CHECKED}")

    def install(self, spec, prefix):
        """The executables, and beside them those that verify their data."""
        mkdir(prefix.bin)
        with working_dir(self.stage.source_path):
            for program in [*self.build_targets, *(f"{name}{CHECKED}" for name in self.checked)]:
                install(program, prefix.bin)

    def setup_build_environment(self, env):
        """Open MPI 4's C++ interface is not used, and its header makes compilers complain."""
        super().setup_build_environment(env)
        env.append_flags("CPPFLAGS", "-DOMPI_SKIP_MPICXX")

    def flag_handler(self, name, flags):
        """Each executable shall tell how it was compiled."""
        return telling(name, flags)

    @run_after("install")
    def keep_flags(self):
        """All of its executables are compiled alike, IMB-MT with threads beside, or this is an error."""
        executables = [pathlib.Path(self.prefix.bin, name) for name in self.build_targets]
        write_build_record(self, "imb", executables, self.level, some=THREADS)
