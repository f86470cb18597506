"""Prepare the programs of ``suite/bindings`` on an MPI, with what each language needs."""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from postprocess.base.files import read_regular, read_text, write_text
from site_configs.families import find_family
from site_configs.mpi import wheels
from site_configs.mpi.exchange import RANKS, C, Program
from site_configs.mpi.family import Mpi, join_lines, spare_network
from site_configs.mpi.probe import ProbeError, run_step, strip_allocation

SOURCES = Path(__file__).resolve().parents[2] / "suite" / "bindings"
MPI_LIBRARY = re.compile(r"=> (\S*/libmpi(?:ch)?\.so\S*)")  #: the MPI library in a line of ldd
BUILD_LIMIT = 600.0  #: seconds


class Unavailable(Exception):
    """Why a language is not available with an MPI, in one line."""


@dataclass(frozen=True)
class Bench:
    """An MPI on this machine, and the folders for programs that use it."""

    mpi: Mpi
    folder: Path  #: folder of this call
    lasting: Path  #: for lasting things: wheels and slow builds
    wheels: Path | None = None  #: the only source of wheels; None for the package index
    jars: Path | None = None  #: the same for jars
    say: Callable[[str], object] = str  #: shows a line about something slow that is done once

    @cached_property
    def env(self) -> dict[str, str]:
        additions = self.mpi.env | spare_network(self.mpi.family, os.environ)
        return strip_allocation(os.environ) | additions

    @property
    def c_program(self) -> Path:
        return self.folder / C

    @cached_property
    def library(self) -> Path:
        """The file of the MPI library that C programs load. Raises Unavailable if it cannot be found."""
        match = MPI_LIBRARY.search(self.run("ldd", str(self.c_program)))
        if not match:
            raise Unavailable(f"{self.c_program.name} of {self.mpi.mpicc} loads no libmpi")
        return Path(match[1])

    def run(self, *words: str, **more: str) -> str:
        """Run a command of the preparation. Raises Unavailable if it fails."""
        try:
            return run_step([*words], self.env | more, Path(words[0]).name, BUILD_LIMIT)
        except ProbeError as error:
            raise Unavailable(str(error)) from None

    def unpack_wheel(self, name: str) -> Path:
        """Return the folder of an unpacked pinned wheel, which is fetched once.

        :raises Unavailable: if it is not available
        """
        self.lasting.joinpath("bindings").mkdir(exist_ok=True)
        if not wheels.find_wheel_prefix(f"bindings/{name}", self.lasting).exists():
            self.say(f"installing {name} from its wheel")
        try:
            return wheels.install_wheels(f"bindings/{name}", self.lasting, self.wheels).root
        except wheels.WheelError as error:
            raise Unavailable(join_lines(str(error))) from None


MPJ_SAYS = "MPJ Express"  #: MPJ Express's name for its library
PACKAGES = "PLUMBLINE_MPI4PY"  #: variable with the place of mpi4py; ``exchange.py`` reads it


def prepare_mpi4py(bench: Bench, style: str, level: str) -> Program:
    """Prepare the interpreter with the wheel of mpi4py and the path of the MPI's library."""
    root = bench.unpack_wheel("mpi4py")
    packages = next(iter(root.glob("lib/python*/site-packages")), root)
    variables = {PACKAGES: str(packages), "MPI4PY_LIBMPI": str(bench.library), "OPENBLAS_NUM_THREADS": "1"}
    only = (
        f"import os, sys; sys.path.insert(0, os.environ['{PACKAGES}']); "
        "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI"
    )
    bench.run(sys.executable, "-I", "-c", only, **variables)
    return Program((sys.executable, "-I", str(SOURCES / "exchange.py"), style, level), variables)


def prepare_intel_java(bench: Bench) -> Program:
    """Compile the program for Intel MPI's own binding, whose library needs one from another wheel."""
    java = find_program("java", "JDK"), find_program("javac", "JDK")
    jar = Path(bench.mpi.prefix, own := find_family(bench.mpi.family).java)
    if not own or not jar.exists():
        raise Unavailable("no Java binding in this MPI")
    runtime = next(bench.unpack_wheel("intel-cmplr-lib-rt").rglob("libintlc.so.5"), None)
    if runtime is None:
        raise Unavailable("the wheel of intel-cmplr-lib-rt has no libintlc.so.5")
    bench.run(java[1], "-cp", str(jar), "-d", str(bench.folder), str(SOURCES / "Exchange.java"))
    libraries = str(bench.library.parent)
    variables = {"LD_LIBRARY_PATH": libraries, "LD_PRELOAD": str(runtime)}
    options = ("-cp", f"{jar}:{bench.folder}", f"-Djava.library.path={libraries}")
    return Program((java[0], *options, "Exchange"), variables, library=bench.mpi.prefix)


def prepare_mpj(bench: Bench) -> Program:
    """Compile the program for MPJ Express, whose ranks are threads of one JVM, without an MPI."""
    java = find_program("java", "JDK"), find_program("javac", "JDK")
    home = bench.folder / "mpj"
    provide_jars(bench, home)
    jar = home / "lib" / "mpj.jar"
    bench.run(java[1], "-cp", str(jar), "-d", str(bench.folder), str(SOURCES / "ExchangeMpj.java"))
    start = (java[0], "-jar", str(home / "lib" / "starter.jar"), "-np", str(RANKS))
    command = ("-dev", "multicore", "-cp", str(bench.folder), "ExchangeMpj")
    return Program(command, {"MPJ_HOME": str(home)}, start, MPJ_SAYS)


def find_program(name: str, part_of: str = "") -> str:
    """Find a program on PATH. Raises Unavailable if it is not there.

    :param part_of: what is missing then, as ``JDK``
    """
    path = shutil.which(name)
    if path is None:
        raise Unavailable(f"{f'no {part_of}: ' if part_of else ''}{name} is not on PATH")
    return path


def provide_jars(bench: Bench, home: Path) -> None:
    """Put MPJ Express and the jars that it needs into one folder, because it looks for them beside its own.

    They come from the mirror if that is the only source; else from an installation, else from Debian's
    packages, which are fetched once.

    :raises Unavailable: if one is missing, or is not the pinned one
    """
    if bench.jars:
        lacking = wheels.copy_jars([bench.jars], home / "lib")
    else:
        kept = bench.lasting / "bindings" / "jars"
        lacking = wheels.gather_jars(kept) or wheels.copy_jars([kept], home / "lib")
    if lacking:
        raise Unavailable(next(iter(lacking.values())))


#: gfortran's error for a missing module
NO_MODULE = re.compile(r"Fatal Error: (.*?)(?: compilation terminated|$)")


def prepare_c(bench: Bench) -> Program:
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
            raise Unavailable(f"no module {module} that the compiler reads: {fatal[1].strip()}") from None
        raise
    return Program((str(program),))


def find_fortran_wrapper(mpicc: Path) -> Path:
    """Find the Fortran wrapper beside that of C; Debian's have the MPI's name as a suffix.

    :raises Unavailable: if there is none
    """
    names = [mpicc.name.replace("mpicc", name) for name in ("mpifort", "mpif90", "mpifc")]
    for name in dict.fromkeys(names):
        if name != mpicc.name and mpicc.with_name(name).exists():
            return mpicc.with_name(name)
    raise Unavailable(f"no Fortran in this MPI: none of {', '.join(names)} beside {mpicc}")


def find_module_folders(bench: Bench) -> list[Path]:
    """Find Intel MPI's modules for the installed compiler, which its wrapper does not find; else empty.

    It has a folder per version of gfortran; the compiler reads those of the last version up to its own.
    """
    by_version = {
        split_number(folder.name): folder
        for folder in Path(bench.mpi.prefix, "include", "mpi", "gfortran").glob("[0-9]*")
    }
    if not by_version:
        return []
    try:
        compiler = split_number(bench.run("gfortran", "-dumpfullversion").strip())
    except Unavailable:
        raise Unavailable("no Fortran compiler: gfortran is not on PATH") from None
    fit = [version for version in by_version if version[0] <= compiler[0]]
    return [by_version[max(fit)]] if fit else []


def split_number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def find_rust_folder(bench: Bench) -> Path:
    """Return the lasting folder in which cargo builds for an MPI."""
    return bench.lasting / "bindings" / f"rust-{bench.mpi.name}"


MADE_FOR = "made_for"  #: file in such a folder: the files of the MPI, each with its change time


def drop_stale_build(bench: Bench, target: Path) -> None:
    """Remove a build for an MPI that has since been replaced in the same place."""
    files = [os.path.realpath(path) for path in (bench.mpi.mpicc, bench.library)]
    made_for = "".join(f"{os.stat(file).st_ctime_ns} {file}\n" for file in files)
    stamp = target / MADE_FOR
    if target.exists() and not (stamp.exists() and read_text(stamp) == made_for):
        bench.say(f"{bench.mpi.name} has changed: what the crate mpi was built for is gone")
        shutil.rmtree(target)
    target.mkdir(exist_ok=True)
    write_text(stamp, made_for)


def look_for_rust(bench: Bench) -> Program:
    """Return the program in Rust where it would be. Raises Unavailable if nothing could build it."""
    find_program("cargo")
    return Program((str(find_rust_folder(bench) / "release" / "exchange"),))


def prepare_rust(bench: Bench) -> Program:
    """Build the program in Rust by cargo, in a lasting folder per MPI; a second time takes a second.

    The crate contains the MPI's header, and cargo does not notice when that changes.
    """
    cargo = find_program("cargo")
    clang = next(bench.unpack_wheel("libclang").rglob("libclang*.so*"), None)
    if clang is None:
        raise Unavailable("the wheel of libclang has no libclang.so")
    headers = bench.run("cc", "-print-file-name=include").strip()  # those of the compiler itself
    target = find_rust_folder(bench)
    variables = {
        "MPICC": bench.mpi.mpicc,
        "LIBCLANG_PATH": str(clang.parent),
        "BINDGEN_EXTRA_CLANG_ARGS": f"-I{headers}",
        "RUSTFLAGS": f"-Clink-arg=-Wl,-rpath,{bench.library.parent}",
    }
    drop_stale_build(bench, target)
    program = target / "release" / "exchange"
    if not program.exists():
        bench.say(f"building the crate mpi for {bench.mpi.name}, which takes minutes; once")
    manifest = str(SOURCES / "rust" / "Cargo.toml")
    words = ("build", "--release", "--locked", "--quiet", "--manifest-path", manifest)
    bench.run(cargo, *words, "--target-dir", str(target), **variables)
    return Program((str(program),))


@dataclass(frozen=True)
class Language:
    """A language with its binding; ``name`` begins with the word that selects it."""

    name: str
    title: str
    prepare: Callable[[Bench], Program]
    look: Callable[[Bench], Program] | None = None  #: the same without a build, if that takes minutes


CONTROL = "c-again"  #: the same program once more
LANGUAGES = (
    Language(C, "C", prepare_c),
    Language(CONTROL, "C again", prepare_c),
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
    Language("java-intel", "Java, Intel's binding", prepare_intel_java),
    Language("java-mpj", "Java, MPJ Express (threads)", prepare_mpj),
    Language("rust", "Rust mpi", prepare_rust, look_for_rust),
)
KINDS = tuple(dict.fromkeys(language.name.partition("-")[0] for language in LANGUAGES))[1:]


def select_languages(kinds: Sequence[str] = ()) -> list[Language]:
    """Select C and the languages of these kinds; without kinds, all of them."""
    chosen = {C, *(kinds or KINDS)}
    return [language for language in LANGUAGES if language.name.partition("-")[0] in chosen]


@dataclass(frozen=True)
class Ready:
    """The prepared programs of an MPI, and why others are not available, by language."""

    programs: Mapping[str, Program]
    lacking: Mapping[str, str]


def prepare_languages(
    bench: Bench, languages: Sequence[Language], say: Callable[[str], object] = str, only_looking: bool = False
) -> Ready:
    """Prepare the programs of languages, C before those that need it.

    :param say: gets what goes on now
    :param only_looking: whether nothing is started: slow builds are looked for, but not made
    """
    programs: dict[str, Program] = {}
    lacking: dict[str, str] = {}
    for language in languages:
        say(f"{bench.mpi.name}: making {language.title} ready")
        try:
            make = (only_looking and language.look) or language.prepare
            programs[language.name] = make(bench)
        except Unavailable as why:
            lacking[language.name] = str(why)
    return Ready(programs, lacking)


def hash_sources() -> str:
    """Hash the sources of all programs: other sources measure something else."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*")):
        if path.is_file() and path.suffix != ".md":
            digest.update(f"{path.relative_to(SOURCES)}\0".encode() + read_regular(path))
    return digest.hexdigest()[:16]
