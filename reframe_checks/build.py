"""Builds mpicost once per environment: through Spack where a Spack was found, otherwise with CMake."""

import os
from pathlib import Path
from shlex import quote

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from postprocess.programs import Program, write_program
from site_configs.common import work_directory
from spack_envs.build import PACKAGE, location_command, locked_hash, spack_environment_variables

SUITE = Path(__file__).resolve().parent.parent / "suite"
LOCATION = "location.txt"  #: in the stage directory; holds the prefix that was installed to


class build_mpicost(rfm.CompileOnlyRegressionTest):
    """The program ``mpicost`` of one environment. Nothing is rebuilt that has not changed."""

    descr = "Build mpicost"
    sourcesdir = None
    build_locally = True
    build_time_limit = "30m"

    #: Spack's executable; empty where the suite is to be built with CMake alone.
    #:
    #: :default: the variable ``PLUMBLINE_SPACK``, which Plumbline sets when it has found a Spack
    spack = variable(str, value=os.environ.get("PLUMBLINE_SPACK", ""))

    #: Where the built program is; known after the build.
    program: Path

    @run_before("compile")
    def choose_build_system(self):
        """Spack's environment and CMake's build directory are in the work directory and outlive the session."""
        self.environment = Path(self.current_environ.extras["spack_environment"])
        self.by_spack = bool(self.spack) and (self.environment / "spack.yaml").is_file()
        if self.by_spack:
            self.build_with_spack()
        else:
            self.build_with_cmake()

    def build_with_spack(self):
        self.build_system = "Spack"
        self.build_system.environment = str(self.environment)
        self.env_vars = spack_environment_variables(work_directory(), Path(self.spack))
        self.postbuild_cmds = [f"{location_command(self.environment)} > {LOCATION}"]

    def build_with_cmake(self):
        extras = self.current_environ.extras
        directory = work_directory() / "build" / extras.get("build", self.current_environ.name)
        self.build_system = "CMake"
        self.build_system.configuredir = quote(str(SUITE))
        self.build_system.builddir = quote(str(directory))
        self.build_system.flags_from_environ = False
        self.build_system.max_concurrency = 2
        wrapper = quote(extras["mpicc"])
        variable_of_wrapper = extras.get("compiler_variable", "MPI_C_COMPILER")
        self.build_system.config_opts = [
            "-G Ninja",
            "-DCMAKE_BUILD_TYPE=Release",
            f'-D{variable_of_wrapper}="$(command -v {wrapper})"',  # found once the modules are loaded
            f"-DCMAKE_INSTALL_PREFIX={quote(str(directory / 'installed'))}",
        ]
        # Builds of several partitions, or of environments that share one, must not meet in it.
        lock = quote(f"{directory}.lock")
        self.prebuild_cmds = [f"mkdir -p {quote(str(directory))}", f"exec 9> {lock}", "flock 9"]
        self.postbuild_cmds = [
            f"cmake --install {quote(str(directory))}",
            f"echo {quote(str(directory / 'installed'))} > {LOCATION}",
        ]

    @sanity_function
    def keep_program(self):
        """The build left an executable; where it is, is kept for the runs and for people."""
        prefix = Path(self.stagedir, LOCATION).read_text().strip()
        self.program = Path(prefix, "bin", PACKAGE)
        if not os.access(self.program, os.X_OK):
            raise SanityError(f"the build ended well but {self.program} is not there")
        spec = f"{PACKAGE}/{locked_hash(self.environment)}" if self.by_spack else "cmake"
        program = Program(self.current_environ.name, PACKAGE, str(self.program), spec)
        write_program(work_directory(), program)
        return True
