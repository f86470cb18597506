"""The command ``guidelines``: find operations that lose to what has the same result, and what helps.

Open MPI: parameters ``coll_tuned_*_algorithm`` of its component ``tuned``; MPICH: control variables
``MPIR_CVAR_*_INTRA_ALGORITHM``; Intel MPI: ``I_MPI_ADJUST_*``; SimGrid: ``smpi/*``. A setting that a
release does not know changes nothing, or fails its launches: either is seen, and it is not advised.
"""

import argparse
import json
import math
import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from postprocess.base.errors import UsageError
from postprocess.base.files import write_output
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import LAUNCHING, PLACES, TRIAL_COUNTS, add_json, add_options
from postprocess.cli.parser import HOW, Parser
from postprocess.cli.request import build_request
from postprocess.features.guidelines import judge, text
from postprocess.judging.evaluate import evaluate_flagged
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import BYTES, PARTITION, PER_NODE, PROCESSES, PROGRAM, ROUNDS, ROUTINE, VARIANTS
from postprocess.model.routines.guidelines import Measured
from postprocess.model.session import Request, Selection, Session
from postprocess.model.verdict import FAILED_LAUNCH, CaseResult, Verdict, compute_exit_status
from postprocess.report.rendering import write_document
from postprocess.runner.reframe_pass import make_plan
from postprocess.session.lifecycle import finish
from postprocess.session.lifecycle.context import (
    SessionContext,
    measure_in_new_session,
    measure_in_session,
    open_session_context,
    refused_session,
    report_plan,
)
from site_configs.families import find_family
from site_configs.mpi.family import SIMULATED_LIBRARY, identify_library

STAND_INS = "SMPI_STAND_INS"  #: further words for its launcher, which add up

#: Routines of mpicost, by what the MPIs call their operation.
OPERATIONS = {
    "barrier": "barrier",
    "bcast": "bcast",
    "scatter": "scatter",
    "gather": "gather",
    "allgather": "allgather",
    "alltoall": "alltoall",
    "reduce_sum": "reduce",
    "allreduce_sum": "allreduce",
    "scan_sum": "scan",
    "reduce_scatter_sum": "reduce_scatter",
    "reduce_scatter_block_sum": "reduce_scatter_block",
}

#: Algorithms of SimGrid 3.32 that are right for any number of processes.
SIMGRID = {
    "bcast": ("binomial_tree", "flattree", "NTSB", "scatter_LR_allgather", "ompi_pipeline"),
    "scatter": ("ompi_basic_linear", "ompi_binomial"),
    "gather": ("ompi_basic_linear", "ompi_binomial", "ompi_linear_sync"),
    "allgather": ("bruck", "ring", "pair", "GB", "NTSLR"),
    "alltoall": ("basic_linear", "bruck", "ring", "pair_light_barrier"),
    "reduce": ("binomial", "flat_tree", "scatter_gather", "ompi_pipeline", "ompi_binary"),
    "allreduce": ("lr", "rdb", "redbcast", "ompi_ring_segmented"),
    "barrier": ("ompi_recursivedoubling", "ompi_bruck", "ompi_tree"),
    "reduce_scatter": ("ompi_basic_recursivehalving", "ompi_ring", "mpich_pair"),
}


@dataclass(frozen=True)
class Override:
    """An algorithm of one operation, and the variables that choose it."""

    name: str  #: such as ``bcast binomial``
    variables: Mapping[str, str] = field(hash=False)


def list_overrides(library: str, routine: str) -> list[Override]:
    """List the overrides of a routine of mpicost, for the MPI that named itself; none for an unknown one."""
    operation = OPERATIONS.get(routine, "")
    if library.startswith(SIMULATED_LIBRARY):
        return [
            Override(f"{operation} {each}", {STAND_INS: f"--cfg=smpi/{operation}:{each}"})
            for each in SIMGRID.get(operation, ())
        ]
    family = find_family(identify_library(library)[0])
    variable = family.algorithm_variable.format(name=operation, NAME=operation.upper())
    return [
        Override(f"{operation} {name}", {**family.algorithm_settings, variable: value})
        for name, value in family.algorithms.get(operation, {}).items()
    ]


def merge_overrides(overrides: Sequence[Override]) -> dict[str, str]:
    """Merge the variables of overrides of different operations, which are in force together."""
    merged: dict[str, str] = {}
    for override in overrides:
        for name, value in override.variables.items():
            both = [merged[name], value] if name == STAND_INS and name in merged else [value]
            merged[name] = " ".join(both)
    return merged


MODE = "guidelines"
LOOKING = 2  #: rounds in which all settings are launched, to choose from them
LEAST_GAIN = 1.05  #: factor by which a setting must look faster to be measured anew
TriedLaunch = tuple[int, Sequence[Override], judge.LaunchTimes]  #: round, overrides in force, times


@dataclass(frozen=True)
class OverrideBench:
    """What every pass of the trials needs."""

    context: SessionContext
    selection: Selection
    launches: int  #: in which a setting that looked good is measured anew

    def try_all(
        self, judged: Sequence[judge.JudgedGuideline], launches: Sequence[judge.LaunchTimes]
    ) -> list[judge.JudgedOverride]:
        """Try the settings for every operation that lost, place by place; their effect, judged together."""
        libraries = {times.place: times.library for times in launches}
        exact = any(times.exact for times in launches)
        series: list[judge.OverrideSeries] = []
        for place, operations in judge.list_losers(judge.select_violated(judged)).items():
            candidates = {
                operation: list_overrides(libraries[place], operation.routine) for operation in operations
            }
            series += self.try_place(place, candidates)
        return judge.judge_overrides(series, exact)

    def try_place(
        self, place: judge.Place, candidates: Mapping[Measured, Sequence[Override]]
    ) -> list[judge.OverrideSeries]:
        """Try the settings of one place. Operations without one that looked good have no values."""
        progress = self.context.progress
        most = max(map(len, candidates.values()), default=0)
        progress.say(f"{place}: {plural(most, 'setting')} for {plural(len(candidates), 'operation')}")
        by_routine = {each.routine: list(found) for each, found in candidates.items()}
        looked = self.measure(place, list(candidates), by_routine, LOOKING)
        best = {each: choose_best(each, looked, found) for each, found in candidates.items()}
        chosen: dict[str, list[Override]] = {}
        for each, override in best.items():
            if override and override not in chosen.setdefault(each.routine, []):
                chosen[each.routine].append(override)
        measured = self.measure(place, [each for each in best if best[each]], chosen, self.launches)
        return [
            judge.OverrideSeries(
                place,
                each,
                override.name if override else "",
                override.variables if override else {},
                len(candidates[each]),
                tuple(list_gains(each, override, measured)) if override else (),
            )
            for each, override in best.items()
        ]

    def measure(
        self,
        place: judge.Place,
        operations: Sequence[Measured],
        overrides: Mapping[str, Sequence[Override]],
        rounds: int,
    ) -> list[TriedLaunch]:
        """Measure operations in rounds: as they are, and with the overrides of all routines in turn.

        The n-th overrides of all routines are in force together: none of them changes another routine's
        algorithm.
        """
        deep = max(map(len, overrides.values()), default=0)
        if not deep:
            return []
        settings = [[override[n] for override in overrides.values() if n < len(override)] for n in range(deep)]
        named = {f"setting{n + 1}": each for n, each in enumerate(settings)}
        variants = [{"name": name, "variables": merge_overrides(each)} for name, each in named.items()]
        choice = {
            **self.selection.choice,
            ROUNDS: rounds,
            VARIANTS: variants,
            ROUTINE.variable: sorted({measured.routine for measured in operations}),
            PARTITION.variable: [place.partition.partition(":")[2]],
            PROCESSES.variable: [place.processes],
            PER_NODE.variable: [place.per_node],
        }
        choice.pop(BYTES.variable, None)
        if sizes := sorted({measured.bytes for measured in operations if measured.bytes}):
            choice[BYTES.variable] = sizes
        selection = replace(self.selection, environments=[place.environment], choice=choice)
        session, _, done = measure_in_new_session(self.context, MODE, "overrides", selection)
        again = shlex.join(self.context.request.command)
        results = evaluate_flagged(done.finished, lambda _: None, Verdict.INCORRECT, again)
        finish.store_trials(self.context.work, session, done.finished, results)
        failed = [run for run in done.finished if run.outcome.verdict in FAILED_LAUNCH]
        if failed:
            names = sorted({run.launch.start for run in failed})
            tried = [over.name for name in names for over in named.get(name, ())]
            what = ", ".join(tried) or "no setting"
            count = plural(len(failed), "launch", "es")
            self.context.progress.note(f"{place}: {count} failed with {what}")
        return [
            ((times.number - 1) // (1 + len(named)), named.get(times.setting, ()), times)
            for times in judge.extract_times(done.finished)
        ]


def choose_best(
    operation: Measured, looked: Sequence[TriedLaunch], candidates: Iterable[Override]
) -> Override | None:
    """Choose the override that looked best for an operation; None if none looked good."""
    gains = {override.name: list_gains(operation, override, looked) for override in candidates}
    found = {
        override: statistics.median(gains[override.name]) for override in candidates if gains[override.name]
    }
    best = max(found, key=lambda each: found[each], default=None)
    return best if best and found[best] > math.log(LEAST_GAIN) else None


def list_gains(operation: Measured, override: Override, measured: Sequence[TriedLaunch]) -> list[float]:
    """List ln(without / with) an override, of each round that has both."""
    usual = {number: each.times.get(operation) for number, force, each in measured if not force}
    found = []
    for number, force, each in sorted(measured, key=lambda one: one[0]):
        time, other = each.times.get(operation), usual.get(number)
        if override in force and time and other:
            found.append(math.log(other / time))
    return found


TAG = "guidelines"


@dataclass(frozen=True)
class GuidelineDemand:
    """What the user asked for beyond a session's request."""

    launches: int
    overrides: bool  #: whether settings of the MPI are tried
    strict: bool  #: whether a violated guideline fails the session


def run_guidelines(work: WorkDirectory, asked: Request, demand: GuidelineDemand, progress: Progress) -> int:
    """Measure and judge guidelines. Returns the exit status."""
    if demand.launches < judge.FEWEST_LAUNCHES:
        raise UsageError(
            f"--launches {demand.launches}: there is no interval of fewer than {judge.FEWEST_LAUNCHES}"
        )
    with work.held():
        context = open_session_context(work, asked, progress)
        asked = context.request
        choice = {**asked.selection.choice, ROUNDS: demand.launches, PROGRAM.variable: ["mpicost"]}
        selection = replace(asked.selection, tag=TAG, choice=choice, launches=1)
        session, reframe = context.open_session(asked.mode)
        with refused_session(session), progress.phase("set-up"):
            planned = make_plan(reframe, selection)
        report_plan(planned, progress, selection.choice)
        progress.say(f"{plural(sum(bool(launch.cases) for launch in planned), 'launch', 'es')} in all")
        _, done = measure_in_session(context, reframe, "running", selection, planned)
        try:
            launches = list(judge.extract_times(done.finished))
            with progress.phase("analysis"):
                judged = judge.judge_guidelines(launches)
            overrides: list[judge.JudgedOverride] = []
            if demand.overrides and judge.select_violated(judged):
                bench = OverrideBench(context, selection, demand.launches)
                overrides = bench.try_all(judged, launches)
        except (UsageError, OSError):
            raise
        except Exception as error:
            return finish.finish_unanalysed(context, session, done.finished, error)
        return finish_guidelines(context, session, done.finished, judged, overrides, demand)


def finish_guidelines(
    context: SessionContext,
    session: Session,
    finished: Sequence[FinishedLaunch],
    judged: Sequence[judge.JudgedGuideline],
    overrides: Sequence[judge.JudgedOverride],
    demand: GuidelineDemand,
) -> int:
    """Write store, summary, report and page, and show what was found; the exit status."""
    again = shlex.join(context.request.command)
    results = evaluate_flagged(finished, lambda _: None, Verdict.INCORRECT, again)
    notes = tuple(context.progress.notes)
    found = text.GuidelineResult(tuple(judged), tuple(overrides), tuple(list_failures(results)), notes)
    bad = found.failures or not found.judged or (demand.strict and found.violated)
    status = 1 if bad else compute_exit_status(results, strict=False)
    summary = finish.build_session_summary(context, session, finished, results, status)
    with context.progress.phase("analysis"):
        summary, _ = finish.write_files(context, session, finished, summary)
    print(text.format_guidelines(found), end="", flush=True)
    with context.progress.phase("analysis"):
        page = write_document(text.build_guideline_document(session, found), session.directory / text.PAGE)
    if file := context.request.json_file:
        write_output(file, json.dumps(text.build_guideline_json(found, session.name), indent=1) + "\n")
    quiet = replace(context, request=replace(context.request, json_file=None))
    return finish.end_session(quiet, session, summary, f"every guideline: {page}")


def list_failures(results: Sequence[CaseResult]) -> list[str]:
    """List the ways in which launches failed, in a line each."""
    lines = {
        f"{result.case.system}:{result.case.partition} with {result.case.environment}: "
        f"{result.verdict}: {result.reason}"
        for result in results
        if result.verdict not in (Verdict.PASS, Verdict.SKIPPED)
    }
    return sorted(lines)


EXAMPLE = "./plumbline guidelines --environment openmpi-5_0_11 --routine bcast,bcast_as_sends"
FAILS = "a launch failed, or --strict and a guideline is violated"


def add_arguments(parser: Parser) -> None:
    """Add the options that say what is compared, in how many launches, and what fails."""
    add_options(
        parser,
        *PLACES,
        "--bytes",
        *TRIAL_COUNTS,
        bytes=" (default: 8 times the powers of four, to 512 KiB)",
        trials="trials of mpicost per case and launch (default: the site's, else 51)",
    )
    how = parser.group(HOW)
    both = "launches, each with both sides of every guideline (default: %(default)s; one in simulated time)"
    add_options(parser, "--launches", launches=both)
    parser.set_defaults(launches=8)
    how.add_argument(
        "--no-overrides", action="store_true", help="try no settings of the MPI for the operations that lose"
    )
    how.add_argument("--strict", action="store_true", help="let a violated guideline fail the session")
    add_options(parser, *LAUNCHING)
    add_json(parser)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure and judge guidelines. Returns the exit status."""
    demand = GuidelineDemand(arguments.launches, not arguments.no_overrides, arguments.strict)
    arguments.strict = False  # of cases nothing is asserted
    return run_guidelines(work, build_request(work, arguments), demand, Progress())
