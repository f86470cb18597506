"""What a session still has to build: mpicost before all else, and for several MPIs at once."""

from __future__ import annotations

from collections.abc import Sequence

from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import OWN_PROGRAMS, program_sort_key
from postprocess.model.session import Session
from postprocess.runner.reframe_pass import find_program
from postprocess.session.lifecycle.context import SessionContext
from postprocess.setup.build_programs import build_at_once
from site_configs.programs.program import find_product

FOLDER = "builds"  #: of a session: what Spack said while it built for several MPIs at once


def list_unbuilt(context: SessionContext, planned: Sequence[PlannedLaunch], program: str) -> list[str]:
    """List the environments that Spack has yet to build a program for."""
    return sorted(
        {
            launch.environment
            for launch in planned
            if launch.program == program
            and launch.cases
            and launch.environment in context.prepared.by_spack
            and find_program(context.work.root, launch) is None
        }
    )


def split_by_builds(context: SessionContext, planned: Sequence[PlannedLaunch]) -> list[list[str]]:
    """Split the programs of a plan: those of the suite come first where Spack must still compile another one.

    That takes minutes, and the first verdicts on the MPIs need not wait for it.
    """
    programs = sorted({launch.program for launch in planned}, key=program_sort_key)
    others = [name for name in programs if name not in OWN_PROGRAMS]
    unbuilt = any(list_unbuilt(context, planned, name) for name in others)
    own = [name for name in programs if name in OWN_PROGRAMS]
    return [own, others] if unbuilt and own else [programs]


def build_part(
    context: SessionContext, session: Session, planned: Sequence[PlannedLaunch], programs: Sequence[str]
) -> None:
    """Build some programs where several MPIs lack them. The session's checks find them, or tell what failed."""
    spack, progress = context.prepared.spack, context.progress
    if spack is None:
        return
    for program in programs:
        environments = list_unbuilt(context, planned, program)
        if len(environments) < 2:
            continue
        progress.say(f"building {program} for {', '.join(environments)}")
        with progress.phase("build"):
            folder = session.directory / FOLDER
            build_at_once(context.work, spack, environments, find_product(program), folder)
