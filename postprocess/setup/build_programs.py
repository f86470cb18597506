"""Builds the programs of every MPI with Spack before a session needs them, and keeps what was built."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from postprocess.base.formats import duration
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.setup.build_at_once import BuildOutcome, build_at_once
from postprocess.setup.prepare import PreparedMachine
from spack_envs.errors import SpackEnvironmentError
from spack_envs.products import PRODUCTS
from spack_envs.programs import keep_installed


def build_programs(work: WorkDirectory, prepared: PreparedMachine, progress: Progress) -> int:
    """Build every program for every MPI that has a Spack environment, a program for all MPIs at once.

    One that cannot be built is noted and does not keep the others from it.

    :returns: how many could not be built although their source is there. Without a source, a program's cases
        are skipped and counted in every session.
    """
    if prepared.spack is None or not prepared.by_spack:
        progress.say(f"programs: built by the first session, with {prepared.built_with}")
        return 0
    failures = 0
    with TemporaryDirectory(prefix="plumbline-builds-") as scratch:
        for name in PRODUCTS:
            outcomes = build_at_once(
                work, prepared.spack, prepared.by_spack, name, Path(scratch), progress.now
            )
            failures += sum(not keep_built(work, each, progress) for each in outcomes)
    return failures


def keep_built(work: WorkDirectory, outcome: BuildOutcome, progress: Progress) -> bool:
    """Keep what was built, and say so; whether it was built, or has no source to build from."""
    name = outcome.environment
    if outcome.done is None:
        progress.note(f"{name}: {outcome.problem}")
        return outcome.without_source
    try:
        program = keep_installed(work.root, name, outcome.done)
    except SpackEnvironmentError as error:
        progress.note(f"{name}: {outcome.done.program}: {error}")
        return False
    source = "" if program.source == "official" else f" from {program.source}"
    facts = f"{duration(outcome.seconds)}; {program.compiler} {program.flags}"
    progress.say(f"{name}: {program.name} {program.version}{source} is built ({facts})")
    return True
