"""Debian's gfortran, MPICH and Open MPI, each with the modules ``mpi`` and ``mpi_f08``, unpacked without root.

No wheel of an MPI has both. Nothing is installed: what the machine finds on its search path stays as it is.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

#: With what they load that a machine without them may lack.
PACKAGES = (
    *("gfortran-12", "libgfortran-12-dev", "libgfortran5", "libquadmath0"),
    *("mpich", "libmpich12", "libmpich-dev", "libslurm38"),
    *("openmpi-bin", "openmpi-common", "libopenmpi3", "libopenmpi-dev", "libpmix2"),
    *("libucx0", "libhwloc15", "libevent-core-2.1-7", "libevent-pthreads-2.1-7", "libmunge2"),
)
MACHINE = "x86_64-linux-gnu"
LIMIT = 300  #: seconds to fetch all, 35 MB


class Missing(Exception):
    """One line: why they cannot be had."""


@dataclass(frozen=True)
class DebianFortran:
    """A folder to search for ``gfortran``, and the prefix of each MPI."""

    bin: Path
    prefixes: dict[str, Path]  #: by family


def unpack_fortran(folder: Path) -> DebianFortran:
    """Fetch and unpack the packages, and write wrappers that find what is in them.

    :raises Missing: if they cannot be had here
    """
    for program in ("apt-get", "dpkg-deb", "gcc"):
        if shutil.which(program) is None:
            raise Missing(f"no {program} on PATH, which takes Debian's packages of Fortran")
    run(folder, "apt-get", "download", *PACKAGES)
    root = folder / "root"
    for package in sorted(folder.glob("*.deb")):
        run(folder, "dpkg-deb", "-x", str(package), str(root))
    libraries = root / "usr" / "lib" / MACHINE
    compiler = root / "usr" / "lib" / "gcc" / MACHINE / "12"
    own = run(folder, "gcc", "-print-libgcc-file-name").strip().rpartition("/")[0]
    real = root / "usr" / "bin" / f"{MACHINE}-gfortran-12"
    if not real.exists():
        raise Missing(f"Debian's gfortran-12 is not of {MACHINE}")
    gfortran = write_script(
        folder / "bin" / "gfortran",
        f'case "$1" in -dump*) exec {real} "$@" ;; esac\n'
        f'exec {real} -B{compiler}/ -B{own}/ -fno-use-linker-plugin "$@" -L{compiler} -L{own} -L{libraries}',
    )
    load = f"-Wl,--disable-new-dtags,-rpath,{libraries}"
    found = f'export LD_LIBRARY_PATH="{libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    modules = libraries / "fortran" / "gfortran-mod-15"
    interfaces = "-lmpi_usempif08 -lmpi_usempi_ignore_tkr -lmpi_mpifh"
    parts = {  # headers, the library, those of Fortran, the launcher and what it needs
        "mpich": (f"{root}/usr/include/{MACHINE}/mpich", "-lmpich", "-lmpichfort", "mpiexec.hydra", ""),
        "openmpi": (
            *(f"{libraries}/openmpi/include", f"-L{libraries}/openmpi/lib -lmpi"),
            *(f"-L{libraries}/fortran/gfortran {interfaces}", "orterun"),
            f"export OPAL_PREFIX={root}/usr OMPI_MCA_mca_base_component_show_load_errors=0\n",
        ),
    }
    prefixes = {}
    for family, (headers, library, fortran, launcher, more) in parts.items():
        prefixes[family] = folder / family
        programs = folder / family / "bin"
        before, after = f"gcc -I{headers}", f"-L{libraries} {load} {library}"
        show = f'[ "$1" = -show ] && exec echo {before} {after}'  # CMake asks so
        write_script(programs / "mpicc", f'{show}\nexec {before} "$@" {after}')
        write_script(
            programs / "mpifort",
            f'exec {gfortran} -I{modules / family} "$@" -L{libraries} {load} {fortran} {library}',
        )
        write_script(programs / "mpiexec", f'{more}{found}\nexec {root}/usr/bin/{launcher} "$@"')
    return DebianFortran(folder / "bin", prefixes)


def write_script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run(folder: Path, *words: str) -> str:
    """Run a command in a folder and return what it says. Raises Missing if it fails."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()
        raise Missing(f"{words[0]}: {next((line for line in said if line.startswith('E: ')), said[-1])}")
    return done.stdout
