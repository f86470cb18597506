"""The launch of each side that tells what its MPI is and how it is set; its times do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from postprocess.analyses.compare.data import ComparedSide, ComparisonPass, SharedCase
from postprocess.analyses.compare.facts import SideFacts, read_facts
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.judging.retest import build_retest_choice
from postprocess.model.interposed import WITNESS
from postprocess.model.mpicost import OWN_PROGRAM
from postprocess.model.options import AGAIN
from postprocess.model.session import Selection
from postprocess.runner.reframe_pass import run_again
from postprocess.session.compare.sides import select_side
from postprocess.session.compare.values import find_own_case
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.lifecycle.interrupted import LOOKED_AT
from spack_envs.programs import find_mpicost_prefix

TOLD = "PLUMBLINE_FACTS"  #: names the file in which the witness tells them
MODE = "compare"


def take_facts(
    context: SessionContext, selection: Selection, side: ComparedSide, case: SharedCase
) -> SideFacts:
    """Launch a case of a side with the witness in front, and read what it tells.

    :raises UsageError: if it tells nothing
    """
    witness = find_mpicost_prefix(context.work.root, side.environment) / WITNESS
    if not witness.exists():
        raise UsageError(f"{witness}: is not there; simulated machines have none")
    session, reframe = context.open_session(MODE)
    (session.directory / LOOKED_AT).touch()  # nothing of it is to be stored
    chosen = select_side(context, selection, replace(side, plant=""))
    path = session.directory / "facts.json"
    own = dict(chosen.set_env.get(side.environment, {})) | {TOLD: str(path)}
    if case.program == OWN_PROGRAM:  # the others have it in front anyway
        own["LD_PRELOAD"] = ":".join(filter(None, [str(witness), own.get("LD_PRELOAD", "")]))
    again = build_retest_choice([find_own_case(case, side.environment)], {})
    selected = replace(
        chosen, choice=chosen.choice | {AGAIN: again}, set_env={side.environment: own}
    )
    run_again(reframe, selected, Progress(Console(quiet=True)))
    return read_facts(path)


def choose_case(passes: Sequence[ComparisonPass], side: str) -> SharedCase | None:
    """Choose the case whose launch tells: of our own program if there is one, with the most processes."""
    found = [
        SharedCase.from_key(key)
        for each in passes
        if each.side == side
        for launch in each.launches
        for key, said in launch.cases.items()
        if said.value is not None
    ]
    return max(
        found,
        key=lambda each: (
            each.program == OWN_PROGRAM,
            int(each.layout.partition("x")[0]),
            -each.bytes,
        ),
        default=None,
    )
