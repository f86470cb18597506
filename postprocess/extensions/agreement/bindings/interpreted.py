"""Python and Java: an interpreter or a virtual machine, told where the MPI is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from postprocess.extensions.agreement.bindings.bench import SOURCES, Bench, Unavailable
from postprocess.extensions.agreement.bindings.exchange import RANKS, Program
from site_configs.mpi import jars

MPJ_SAYS = "MPJ Express"  #: for a library
PACKAGES = "PLUMBLINE_MPI4PY"  #: variable that tells the program where mpi4py is; ``exchange.py`` reads it


def prepare_mpi4py(bench: Bench, style: str, level: str) -> Program:
    """Find the interpreter with the wheel of mpi4py and the MPI's library named to it."""
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
    """Compile the program for Intel MPI's own binding, whose library lacks one that is a wheel of its own."""
    java = find_java("java"), find_java("javac")
    jar = Path(bench.mpi.prefix, "share", "java", "mpi.jar")
    if bench.mpi.family != "intel-mpi" or not jar.exists():
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
    """Compile the program for MPJ Express, whose ranks are threads of one JVM: no MPI is in it."""
    java = find_java("java"), find_java("javac")
    home = bench.folder / "mpj"
    provide_jars(bench, home)
    jar = home / "lib" / "mpj.jar"
    bench.run(java[1], "-cp", str(jar), "-d", str(bench.folder), str(SOURCES / "ExchangeMpj.java"))
    start = (java[0], "-jar", str(home / "lib" / "starter.jar"), "-np", str(RANKS))
    command = ("-dev", "multicore", "-cp", str(bench.folder), "ExchangeMpj")
    return Program(command, {"MPJ_HOME": str(home)}, start, MPJ_SAYS)


def find_java(name: str) -> str:
    """Find a program of a JDK. Raises Unavailable if it is not there."""
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"no JDK: {name} is not on PATH")
    return found


def provide_jars(bench: Bench, home: Path) -> None:
    """Put MPJ Express and the jars that it needs into one folder: it looks for them beside its own.

    From the mirror where that is the only place, else those that are installed, else Debian's packages, which
    are fetched once.

    :raises Unavailable: if one is missing, or is not the pinned one
    """
    if bench.jars:
        lacking = jars.copy_jars([bench.jars], home / "lib")
    else:
        kept = bench.lasting / "bindings" / "jars"
        lacking = jars.gather_jars(kept) or jars.copy_jars([kept], home / "lib")
    if lacking:
        raise Unavailable(next(iter(lacking.values())))
