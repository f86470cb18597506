"""Builds mpicost once per environment: through Spack where a Spack was found, otherwise with CMake."""

import os
import shutil
from pathlib import Path
from shlex import quote

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from postprocess.programs import Program, write_program
from site_configs.common import work_directory
from spack_envs.build import location_command, spack_environment_variables, spec_command

SUITE = Path(__file__).resolve().parent.parent / "suite"
LOCATION, SPEC = "location.txt", "spec.txt"


class build_mpicost(rfm.CompileOnlyRegressionTest):
    """The program ``mpicost`` of one environment. Nothing is rebuilt that has not changed."""

    descr = "Build mpicost"
    sourcesdir = None
    build_locally = True

    #: Spack's executable; empty where the suite is to be built with CMake alone.
    #:
    #: :default: the variable ``PLUMBLINE_SPACK``, which Plumbline sets when it has found a Spack
    spack = variable(str, value=os.environ.get("PLUMBLINE_SPACK", ""))

    #: Where the built program is; known after the build.
    program: Path

    @run_before("compile")
    def choose_build_system(self):
        """Spack's environment and CMake's build directory are in the work directory and outlive the session."""
        if self.spack:
            self.build_with_spack()
        else:
            self.build_with_cmake()

    def build_with_spack(self):
        directory = Path(self.current_environ.extras["spack_environment"])
        self.build_system = "Spack"
        self.build_system.environment = str(directory)
        self.env_vars = spack_environment_variables(work_directory(), Path(self.spack))
        self.postbuild_cmds = [
            f"{location_command(directory)} > {LOCATION}",
            f"{spec_command(directory)} > {SPEC}",
        ]

    def build_with_cmake(self):
        directory = work_directory() / "build" / self.current_environ.name
        self.build_system = "CMake"
        self.build_system.configuredir = quote(str(SUITE))
        self.build_system.builddir = quote(str(directory))
        self.build_system.flags_from_environ = False
        self.build_system.max_concurrency = 2
        wrapper = (
            shutil.which(self.current_environ.extras["mpicc"])
            or self.current_environ.extras["mpicc"]
        )
        self.build_system.config_opts = [
            "-G Ninja",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DMPI_C_COMPILER={quote(wrapper)}",
            f"-DCMAKE_INSTALL_PREFIX={quote(str(directory / 'installed'))}",
        ]
        self.postbuild_cmds = [
            f"cmake --install {quote(str(directory))}",
            f"echo {quote(str(directory / 'installed'))} > {LOCATION}",
            f"echo cmake > {SPEC}",
        ]

    @sanity_function
    def keep_program(self):
        """The build left an executable; where it is, is kept for the runs and for people."""
        prefix, spec = (Path(self.stagedir, name).read_text().strip() for name in (LOCATION, SPEC))
        self.program = Path(prefix, "bin", "mpicost")
        if not os.access(self.program, os.X_OK):
            raise SanityError(f"the build ended well but {self.program} is not there")
        write_program(
            work_directory(), Program(self.current_environ.name, "mpicost", str(self.program), spec)
        )
        return True
