"""Prove by which transports the pairs of ranks of a night talk, in verbose starts of their own.

Its times count nowhere. Where the site file expects other transports, no case of such pairs is comparable; what
no library tells is told as unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from postprocess.base.files import read_text
from postprocess.base.progress import Progress
from postprocess.judging.retest import build_retest_choice
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import AGAIN
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import OWN_PROGRAM
from postprocess.model.session import Selection
from postprocess.model.verdict import FAILED_LAUNCH, CaseResult, Verdict
from postprocess.parsers.transports import (
    VERBOSE,
    WORDS,
    TransportPath,
    find_wrong_path,
    read_paths,
)
from postprocess.runner.reframe_pass import run_again
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.lifecycle.interrupted import LOOKED_AT
from site_configs.schema.transports import ExpectedTransport

MODE = "transports"

Place = tuple[str, str, str]  #: partition, environment, and class of pairs


@dataclass(frozen=True)
class TransportProof:
    """What the libraries of a night said of their transports."""

    paths: Mapping[Place, Sequence[TransportPath]]  #: none of a place: unknown
    expected: Mapping[Place, ExpectedTransport] = field(default_factory=dict)

    def apply(self, results: Sequence[CaseResult]) -> list[CaseResult]:
        """Return the results; those of pairs on another transport than the expected one are not comparable."""
        return [self.judge(each) for each in results]

    def judge(self, result: CaseResult) -> CaseResult:
        """Return one result; what failed or was skipped stays so."""
        case = result.case
        if result.verdict in (*FAILED_LAUNCH, Verdict.SKIPPED):
            return result
        for pairs in classify_pairs(case.processes, case.per_node):
            place = f"{case.system}:{case.partition}", case.environment, pairs
            if place not in self.expected:
                continue
            if wrong := find_wrong_path(self.paths.get(place, ()), pairs, self.expected[place]):
                return replace(result, verdict=Verdict.NOT_COMPARABLE, reason=wrong)
        return result

    def describe(self) -> Iterator[str]:
        """Describe in one line by what each environment talks, the unknown too."""
        told = [
            f"{environment} {WORDS[pairs]} {', '.join(map(str, paths)) or 'unknown'}"
            for (_, environment, pairs), paths in sorted(self.paths.items())
        ]
        if told:
            yield f"transports: {'; '.join(dict.fromkeys(told))}"


def classify_pairs(processes: int, per_node: int) -> list[str]:
    """Classify the pairs of ranks of a layout: those in a node, and those between nodes."""
    found = {"node": min(processes, per_node) > 1, "network": processes > per_node}
    return [pairs for pairs, there in found.items() if there]


def prove_transports(
    context: SessionContext, selection: Selection, finished: Sequence[FinishedLaunch]
) -> TransportProof:
    """Start one verbose launch for each environment and class of pairs, the smallest that was measured.

    Simulated machines have no transports.
    """
    chosen = choose_launches(finished)
    if not chosen:
        return TransportProof({})
    set_env = {
        environment: {**VERBOSE, **selection.set_env.get(environment, {})}
        for _, environment, _ in chosen
    }
    choice = selection.choice | {AGAIN: build_retest_choice(set(chosen.values()), {})}
    session, reframe = context.open_session(MODE)
    (session.directory / LOOKED_AT).touch()
    verbose = replace(selection, choice=choice, set_env=set_env, launches=1)
    with context.progress.phase(MODE):
        _, done = run_again(reframe, verbose, Progress(Console(quiet=True)))
    started: dict[Place, list[TransportPath]] = defaultdict(list)
    for launch in done.finished:
        output = read_output(launch, session.directory)
        for place in list_pairs(launch.launch):
            started[place] += [path for path in read_paths(output) if path.pairs == place[-1]]
    return TransportProof(
        {place: drop_repeated(started[place]) for place in chosen}, find_expected(finished)
    )


def drop_repeated(paths: Sequence[TransportPath]) -> list[TransportPath]:
    """Drop what several launches told alike."""
    return list({str(path): path for path in paths}.values())


def choose_launches(finished: Sequence[FinishedLaunch]) -> dict[Place, Case]:
    """Choose a case for each class of pairs of a partition and environment, with few processes."""
    found: dict[Place, Case] = {}
    for each in finished:
        if each.launch.exact or not each.outcome.records:
            continue
        for place in list_pairs(each.launch):
            some = [*each.launch.cases, *([found[place]] if place in found else [])]
            found[place] = min(some, key=rank_case)
    return found


def rank_case(case: Case) -> tuple[bool, int, int]:
    """Rank a case by what its launch costs; our own program first, which prints all that a library tells."""
    return case.program != OWN_PROGRAM, case.processes, case.bytes


def list_pairs(launch: PlannedLaunch) -> list[Place]:
    """List the classes of pairs of a launch with its place; none if it measures nothing."""
    if not launch.cases:
        return []
    pairs = classify_pairs(launch.cases[0].processes, launch.cases[0].per_node)
    return [(launch.partition, launch.environment, each) for each in pairs]


def find_expected(finished: Sequence[FinishedLaunch]) -> dict[Place, ExpectedTransport]:
    """Find what the site expects of each place, which plans have from its site file."""
    return {
        (each.launch.partition, each.launch.environment, pairs): ExpectedTransport.parse(text)
        for each in finished
        if not each.launch.exact
        for pairs, text in each.launch.transports.items()
    }


def read_output(launch: FinishedLaunch, session: Path) -> str:
    """Read all that a launch printed, on both streams of its job and where its program's own goes."""
    files = sorted(Path(launch.directory).glob("rfm_job.[oe][ur][tr]"))
    files += [launch.launch.output(session)]
    return "\n".join(read_text(each, "replace") for each in files if each.is_file())
