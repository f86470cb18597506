"""The launch of each side that tells what its MPI is and how it is set; its times do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.features.compare.data import ComparedSide, ComparisonPass, SharedCase
from postprocess.features.compare.differences.facts import SideFacts, read_facts
from postprocess.features.compare.differences.transports import VERBOSE, read_transports
from postprocess.features.compare.measure.sides import select_side
from postprocess.features.compare.measure.values import find_own_case
from postprocess.judging.retest import build_retest_choice
from postprocess.model.interposed import WITNESS
from postprocess.model.options import AGAIN
from postprocess.model.routines.mpicost import OWN_PROGRAM, OWN_PROGRAMS
from postprocess.model.session import Selection
from postprocess.runner.reframe_pass import run_again
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.lifecycle.interrupted import LOOKED_AT
from spack_envs.programs import find_mpicost_prefix

TOLD = "PLUMBLINE_FACTS"  #: names the file in which the witness tells them
MODE = "compare"


def take_facts(
    context: SessionContext, selection: Selection, side: ComparedSide, case: SharedCase
) -> SideFacts:
    """Launch a case of a side with the witness in front, and read what it tells; then once more, verbosely.

    :raises UsageError: if it tells nothing
    """
    witness = find_mpicost_prefix(context.work.root, side.environment) / WITNESS
    if not witness.exists():
        raise UsageError(f"{witness}: is not there; simulated machines have none")
    chosen = select_side(context, selection, replace(side, plant=""))
    again = build_retest_choice([find_own_case(case, side.environment)], {})
    chosen = replace(chosen, choice=chosen.choice | {AGAIN: again})
    own = dict(chosen.set_env.get(side.environment, {}))
    with TemporaryDirectory(prefix="facts-", dir=context.work.root) as scratch:
        told = {TOLD: str(path := Path(scratch, "facts.json"))}
        if case.program in OWN_PROGRAMS:  # the others have it in front anyway
            told["LD_PRELOAD"] = ":".join(filter(None, [str(witness), own.get("LD_PRELOAD", "")]))
        launch_unstored(context, replace(chosen, set_env={side.environment: own | told}))
        facts = read_facts(path)
    verbose = replace(chosen, set_env={side.environment: {**VERBOSE, **own}})
    return replace(facts, transports=read_transports(launch_unstored(context, verbose)))


def launch_unstored(context: SessionContext, selection: Selection) -> str:
    """Launch what is selected, of which nothing is stored; return all that it printed."""
    session, reframe = context.open_session(MODE)
    (session.directory / LOOKED_AT).touch()
    run_again(reframe, selection, Progress(Console(quiet=True)))
    return reframe.read_job_outputs()


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
