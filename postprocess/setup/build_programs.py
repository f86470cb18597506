"""Builds the programs of every MPI with Spack before a session needs them, and keeps what was built."""

from __future__ import annotations

import time

from postprocess.base.formats import duration
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.setup.prepare import PreparedMachine
from spack_envs.errors import SourceError, SpackEnvironmentError
from spack_envs.install import Builder
from spack_envs.layout import SpackLayout
from spack_envs.products import PRODUCTS, Product
from spack_envs.programs import keep_installed
from spack_envs.provide import Spack


def build_programs(work: WorkDirectory, prepared: PreparedMachine, progress: Progress) -> int:
    """Build every program for every MPI that has a Spack environment.

    One that cannot be built is noted and does not keep the others from it.

    :returns: how many could not be built although their source is there. Without a source, a program's cases
        are skipped and counted in every session.
    """
    if prepared.spack is None or not prepared.by_spack:
        progress.say(f"programs: built by the first session, with {prepared.built_with}")
        return 0
    failures = 0
    for name in prepared.by_spack:
        for product in PRODUCTS.values():
            failures += not build_program(work, prepared.spack, name, product, progress)
    return failures


def build_program(
    work: WorkDirectory, spack: Spack, name: str, product: Product, progress: Progress
) -> bool:
    """Build one program for one MPI, and say so; whether it was built, or has no source to build from."""
    what = f"{name}: {product.name}"
    directory = SpackLayout(work.root).environment(name)
    builder = Builder(
        work.root, spack.executable, directory, lambda line: progress.now(f"{what}: {line}")
    )
    begin = time.monotonic()
    try:
        done = builder.install(product.name)
        program = keep_installed(work.root, name, done)
    except SpackEnvironmentError as error:
        progress.note(f"{what}: {error}")
        return isinstance(error, SourceError)
    spent = duration(time.monotonic() - begin)
    source = "" if program.source == "official" else f" from {program.source}"
    facts = f"{spent}; {program.compiler} {program.flags}"
    progress.say(f"{what} {program.version}{source} is built ({facts})")
    return True
