"""Build a program for an environment once, by Spack or CMake, or use the installed one."""

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import reframe as rfm
import yaml
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from postprocess.base.files import read_text, write_text
from postprocess.base.processes import start_module
from postprocess.base.records import read_record
from postprocess.base.sanitize import quote_word, quote_words
from reframe_checks.common.selection_guard import refuse_unmatched_choices
from reframe_checks.common.user_options import is_in_session
from site_configs.common import work_directory
from site_configs.mpi.layers import LIBRARY
from site_configs.programs import installed
from site_configs.programs.program import PROGRAMS
from site_configs.schema.facts import EnvironmentFacts
from site_configs.schema.reframe_request import current_request
from site_configs.schema.variables import SESSION
from spack_envs.installation import RECORD, BuiltBinary, Installation, keep_installed, write_program

SOURCE = Path(__file__).resolve().parents[2]
RESULT = "installed.json"  #: file in the stage directory: what Spack has installed
STANDARD_ABI_BUILD = "standard-abi"  #: folder of the one build for all MPIs with the standard ABI
LINKED = "linked_to"  #: file in that folder: the library that the program is linked to
LOCATION = "location.txt"  #: file in the stage directory: the prefix that CMake or a site's Spack installed to
#: folder in the stage directory: environment of ReFrame's own Spack build
SPACK_ENVIRONMENT = "spack_environment"


class BuildProgram(rfm.CompileOnlyRegressionTest):
    """A program of one environment, rebuilt only if something has changed. A subclass names the program."""

    sourcesdir = None
    build_locally = True
    build_time_limit = "60m"

    #: Name of the program, as in cases: ``imb``.
    #:
    #: :required: yes
    name_of_program = ""

    #: Spack's executable; empty without Spack.
    #:
    #: :default: the one that Plumbline has found, if any
    spack = variable(str, value=current_request().spack)

    #: Has the executables, or subfolders of them; known after the build.
    folder: Path

    #: The executable that shows that the program is there; known after the build.
    program: Path

    @run_after("setup")
    def check_selection(self):
        """Refuse a selection with a word that matches nothing, before anything is built."""
        refuse_unmatched_choices()

    @run_before("compile")
    def choose_build_system(self):
        """Choose the source of the program: site, Spack or CMake. Its folder outlives the session.

        A program that is not available is no error here: the checks that need it say why they are skipped.
        """
        self.origin = installed.find_program_source(
            self.name_of_program, self.current_environ.extras, self.spack
        )
        if self.origin == installed.SPACK:
            self.build_with_spack()
        elif self.origin == installed.CMAKE and self.spec:
            self.build_spec()
        elif self.origin == installed.CMAKE:
            self.build_with_cmake()
        else:
            self.build_system = "CustomBuild"
            self.build_system.commands = ["true"]

    def build_with_spack(self):
        words = [*start_module(SOURCE, "spack_envs.install"), work_directory(), self.spack]
        words += [self.current_environ.extras["spack_environment"], self.name_of_program]
        words += [Path(self.stagedir, RESULT)]
        self.build_system = "CustomBuild"
        self.build_system.commands = [quote_words(words)]

    @property
    def spec(self) -> str:
        """What the site's own Spack installs (``spack_spec``); empty if it has none, or is not used."""
        extras = self.current_environ.extras
        return "" if extras.get(installed.STANDARD_ABI) else extras.get("spack_spec", "")

    def build_spec(self):
        """Build by ReFrame's own support of Spack, into the install tree of the site's Spack.

        The recipe and the sources are those of this checkout; Spack rebuilds what has changed in them.
        """
        links = work_directory() / "spack" / "links"
        links.mkdir(parents=True, exist_ok=True)
        settings = {
            "specs": [self.spec],
            "repos": {"plumbline": str(SOURCE / "spack_envs" / "spack_repo" / "plumbline")},
            "develop": {"mpicost": {"spec": "mpicost@main", "path": str(SOURCE / "suite")}},
            "config": {"develop_stage_link": f"{links}/{{name}}-{{hash:7}}"},
            "view": False,
        }
        path = Path(self.stagedir, SPACK_ENVIRONMENT, "spack.yaml")
        write_text(path, yaml.safe_dump({"spack": settings}))
        self.build_system = "Spack"
        self.build_system.environment = SPACK_ENVIRONMENT
        package = PROGRAMS[self.name_of_program].package
        self.postbuild_cmds = [f"spack -e {SPACK_ENVIRONMENT} location -i {package} > {LOCATION}"]

    def build_with_cmake(self):
        raise NotImplementedError(f"{self.name_of_program} is not built with CMake")

    @sanity_function
    def keep_program(self):
        """Check that the executables are there, and record where and how they were built."""
        if not self.origin:
            return True
        roots = {work_directory(), Path(os.environ.get(SESSION, work_directory()))}
        if self.origin == installed.SPACK:
            done = read_record(Path(self.stagedir, RESULT), Installation)
            self.folder = done.folder
        else:
            self.folder = self.folder_without_spack()
        sample = PROGRAMS[self.name_of_program].sample
        self.program = installed.find_executable(self.folder, sample)
        if not self.program or not os.access(self.program, os.X_OK):
            raise SanityError(f"the build ended well but {self.folder} has no {sample}")
        for root in roots:
            if self.origin == installed.SPACK:
                self.kept = keep_installed(root, self.current_environ.name, done)
            else:
                self.kept = self.program_without_spack()
                write_program(root, self.kept)
        return True

    def folder_without_spack(self) -> Path:
        return Path(self.current_environ.extras["programs"][self.name_of_program])

    def program_without_spack(self) -> BuiltBinary:
        path = self.folder / PROGRAMS[self.name_of_program].single
        about = (self.current_environ.name, self.name_of_program, str(path), self.origin)
        facts = installed.read_facts(self.program)
        built = BuiltBinary(*about, facts.version, facts.compiler, facts.flags)
        if self.origin == installed.CMAKE and self.spec:
            record = read_record(Path(self.folder.parent, RECORD), dict[str, str])
            return replace(built, spec=record["spec"])
        return built


# Which files of an MPI a program is built with, by size and change time: commands that print them.
#
# An MPI may be replaced in place, also by older files. Tools that compare times would then rebuild nothing.
#
# Environments may share a build, and each knows its MPI by its own files. So each keeps its list in the folder
# of the build, and compares only with that. One that finds another MPI empties the folder with all lists: then
# the others find no list of theirs, and keep what was built since.
#: list in the stage directory and, with the user's name as suffix, in the folder of the build
FILES = "mpi_files"
PROBE = "mpi_files"  #: file in the stage directory: a program that only includes MPI's header
#: Selects lines that are paths of existing files: not temporary files of a compiler, nor the probe that is
#: compiled, which some compilers name by a path of this session.
STATE = f"grep '^/' | grep -v '/{PROBE}[.][a-z]*$' | sort -u | xargs -r -d '\\n' stat -Lc '%n %s %Y'"


def print_state(paths: str) -> str:
    """Return a command that prints name, size and change time of files. It never fails.

    :param paths: commands that print paths, and perhaps other lines
    """
    return f"{{ {{ {paths}; }} 2>/dev/null | {STATE} 2>/dev/null || true; }}"


def print_wrapped_files(wrapper: str) -> str:
    """Return commands that print a wrapper, the headers that it includes and the libraries that it links."""
    source, library = f"{PROBE}.c", f"{PROBE}.so"
    return "; ".join(
        [
            f"printf '#include <mpi.h>\\n' > {source}",
            f"printf '%s\\n' {wrapper}",
            f"{wrapper} -M {source} | tr -s ' \\\\' '\\n\\n'",
            f"{wrapper} -shared -fPIC {source} -o {library} -Wl,-t",
        ]
    )


def print_abi_files(library: str) -> str:
    """Return commands that print the library of the standard ABI, and possible places of its header."""
    above = " ".join(f'"$(dirname {library})/{up}include/mpi_abi.h"' for up in ("../", "../../", "../../../"))
    return f"printf '%s\\n' {library} {above}"


def compare_files(paths: str, folder: Path, user: str) -> Iterator[str]:
    """Yield commands that empty the folder of a build if a user's MPI has changed.

    :param paths: commands that print paths, and perhaps other lines
    """
    place, before = quote_word(str(folder)), quote_word(str(folder / f"{FILES}.{user}"))
    yield f"{print_state(paths)} > {FILES}"
    yield f"test ! -e {before} || cmp -s {FILES} {before} || {{ rm -rf {place}; mkdir -p {place}; }}"


def keep_files(folder: Path, user: str) -> Iterator[str]:
    """Yield the command that keeps what :func:`compare_files` compares next time."""
    yield f"cp {FILES} {quote_word(str(folder / f'{FILES}.{user}'))}"


def write_script(path: Path, container: Sequence[str], program: str) -> Iterator[str]:
    """Yield the commands that write a script which starts a program inside a container, in the same folder."""
    here = """sh -c 'cd "$0" && exec "$@"' "$PWD" """
    text = f'#!/bin/sh\nexec {shlex.join(container)} {here}{shlex.quote(program)} "$@"\n'
    yield f"mkdir -p {quote_word(str(path.parent))}"
    yield f"printf '%s' {quote_word(text)} > {quote_word(str(path))}"
    yield f"chmod +x {quote_word(str(path))}"


@dataclass(frozen=True)
class CmakeMpi:
    """How CMake gets the MPI of an environment."""

    options: Sequence[str]
    files: str  #: commands that print the files of the MPI that a program is built with
    prepare: Sequence[str] = ()  #: commands in the build folder, before CMake
    check: Sequence[str] = ()  #: commands that empty the build folder if it is useless


def choose_mpi(facts: EnvironmentFacts, folder: Path, variable: str) -> CmakeMpi:
    """Choose how CMake gets an MPI: by its wrapper, by a script that enters its container, or by its ABI.

    :param variable: CMake's variable for a wrapper
    """
    if facts.standard_abi:
        # It stays linked to the library of the first MPI, or each further one would rebuild it. If that MPI is
        # gone, so is its header, and the build begins anew.
        linked, place = quote_word(str(folder / LINKED)), quote_word(str(folder))
        library = quote_word(f"{facts.standard_abi}/{LIBRARY}")
        return CmakeMpi(
            [f'-DMPICOST_STANDARD_ABI="$(cat {linked})"'],
            print_abi_files(f'"$(cat {linked} 2>/dev/null || printf %s {library})"'),
            [f"test -e {linked} || printf '%s\\n' {library} > {linked}"],
            [f'test -e "$(cat {linked} 2>/dev/null)" || {{ rm -rf {place}; mkdir -p {place}; }}'],
        )
    if facts.container:
        # CMake would look outside the container for the paths that a wrapper prints; from a compiler it needs
        # none. Ninja cannot change the rpath of the result.
        script = folder / "container" / "mpicc"
        compiler = f"-DCMAKE_C_COMPILER={quote_word(str(script))}"
        commands = write_script(script, facts.container, facts.wrappers[0])
        image = f"printf '%s\\n' {quote_words(facts.container)}"  # the image is among the words
        return CmakeMpi([compiler, "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON"], image, [*commands])
    wrappers = " || ".join(f"command -v {quote_word(wrapper)}" for wrapper in facts.wrappers)
    wrapper = f'"$({wrappers})"'  # found once the modules are loaded
    return CmakeMpi([f"-D{variable}={wrapper}"], print_wrapped_files(wrapper))


class build_mpicost(BuildProgram):
    """The program ``mpicost``, built by Spack if one was found, otherwise by CMake."""

    descr = "Build mpicost"
    name_of_program = "mpicost"

    def build_with_cmake(self):
        extras = self.current_environ.extras
        facts = EnvironmentFacts.of(self.current_environ)
        name = self.current_environ.name  # it may be any in another site's configuration
        build_name = name if "mpicc" in extras else f"{self.current_system.name}.{name}"
        if facts.standard_abi:
            build_name = STANDARD_ABI_BUILD
        directory = work_directory() / "build" / extras.get("build", build_name)
        installed_to = f"echo {quote_word(str(directory / 'installed'))} > {LOCATION}"
        if current_request().built:
            self.build_system = "CustomBuild"
            self.build_system.commands = [installed_to]
            return
        self.build_system = "CMake"
        self.build_system.configuredir = quote_word(str(SOURCE / "suite"))
        self.build_system.builddir = quote_word(str(directory))
        self.build_system.flags_from_environ = False
        self.build_system.max_concurrency = 2
        mpi = choose_mpi(facts, directory, extras.get("compiler_variable", "MPI_C_COMPILER"))
        self.build_system.config_opts = [
            *(["-G Ninja"] if is_in_session() or shutil.which("ninja") else []),
            "-DCMAKE_BUILD_TYPE=Release",
            *mpi.options,
            f"-DCMAKE_INSTALL_PREFIX={quote_word(str(directory / 'installed'))}",
        ]
        # Builds of several partitions, or of environments that share one, must not collide in it.
        lock = quote_word(f"{directory}.lock")
        folder, stamp = quote_word(str(directory)), quote_word(str(directory / "made_for"))
        made_for = " ".join([quote_word(str(SOURCE)), folder, *map(quote_word, facts.container)])
        user = f"{self.current_partition.fullname}:{name}".replace(":", ".")
        self.prebuild_cmds = [
            f"mkdir -p {folder}",
            f"exec 9> {lock}",
            "flock 9",
            *mpi.check,
            *compare_files(mpi.files, directory, user),
            # CMake refuses a build from another place: a copied work directory, or another clone.
            f"printf '%s\\n' {made_for} | cmp -s - {stamp} || {{ rm -rf {folder}; mkdir -p {folder}; "
            f"printf '%s\\n' {made_for} > {stamp}; }}",
            *keep_files(directory, user),
            *mpi.prepare,
            "unset PYTHONPATH PYTHONHOME PYTHONSAFEPATH",  # cmake and ninja may be Python scripts
        ]
        self.postbuild_cmds = [f"cmake --install {quote_word(str(directory))}", installed_to]

    def folder_without_spack(self) -> Path:
        return Path(read_text(Path(self.stagedir, LOCATION)).strip(), "bin")
