"""C, Fortran and Rust: compiled for an MPI by its own wrappers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from postprocess.extensions.agreement.bindings.bench import SOURCES, Bench, Unavailable
from postprocess.extensions.agreement.bindings.exchange import Program

NO_MODULE = re.compile(r"Fatal Error: (.*?)(?: compilation terminated|$)")  #: of gfortran


def prepare_c(bench: Bench) -> Program:
    """Compile the program in C."""
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
    """Find the Fortran wrapper beside that of C; Debian's have the MPI's name behind a dot.

    :raises Unavailable: if there is none
    """
    names = [mpicc.name.replace("mpicc", name) for name in ("mpifort", "mpif90", "mpifc")]
    for name in dict.fromkeys(names):
        if name != mpicc.name and mpicc.with_name(name).exists():
            return mpicc.with_name(name)
    raise Unavailable(f"no Fortran in this MPI: none of {', '.join(names)} beside {mpicc}")


def find_module_folders(bench: Bench) -> list[Path]:
    """Find Intel MPI's modules of the compiler at hand, which its wrapper seeks elsewhere; else nothing.

    It has a folder for each version of gfortran; the last one up to the compiler's reads its modules.
    """
    by_version = {
        split_number(folder.name): folder
        for folder in Path(bench.mpi.prefix, "include", "mpi", "gfortran").glob("[0-9]*")
    }
    if not by_version:
        return []
    try:
        own = split_number(bench.run("gfortran", "-dumpfullversion").strip())
    except Unavailable:
        raise Unavailable("no Fortran compiler: gfortran is not on PATH") from None
    fit = [version for version in by_version if version[0] <= own[0]]
    return [by_version[max(fit)]] if fit else []


def split_number(version: str) -> tuple[int, ...]:
    """Split a version of numbers alone."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def prepare_rust(bench: Bench) -> Program:
    """Build the program in Rust, by cargo in a folder for each MPI that lasts; a second time takes a second."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise Unavailable("cargo is not on PATH")
    clang = next(bench.unpack_wheel("libclang").rglob("libclang*.so*"), None)
    if clang is None:
        raise Unavailable("the wheel of libclang has no libclang.so")
    headers = bench.run("cc", "-print-file-name=include").strip()  # those of the compiler's own
    target = bench.lasting / "bindings" / f"rust-{bench.mpi.name}"
    variables = {
        "MPICC": bench.mpi.mpicc,
        "LIBCLANG_PATH": str(clang.parent),
        "BINDGEN_EXTRA_CLANG_ARGS": f"-I{headers}",
        "RUSTFLAGS": f"-Clink-arg=-Wl,-rpath,{bench.library.parent}",
    }
    manifest = str(SOURCES / "rust" / "Cargo.toml")
    words = ("build", "--release", "--locked", "--quiet", "--manifest-path", manifest)
    bench.run(cargo, *words, "--target-dir", str(target), **variables)
    return Program((str(target / "release" / "exchange"),))
