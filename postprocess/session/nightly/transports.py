"""Prove by which transports pairs of ranks talk, in verbose starts of their own, whose times count nowhere.

No case is comparable whose pairs talk by another transport than the site file expects, or, where it expects
nothing, than when they were last calibrated; nor one that talks by TCP in a node, or between nodes that have a
faster network. Such an environment is not calibrated either. What no library tells is told as unknown.
"""

import math
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.records import recall, remember
from postprocess.judging.outcome import read_exit_code
from postprocess.judging.retest_targets import build_retest_choice
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
    judge_packets,
    read_paths,
)
from postprocess.references.provenance import find_transports, read_provenance
from postprocess.references.reference_file import find_reference_file
from postprocess.runner.reframe_pass import run_again
from postprocess.session.lifecycle.context import LOOKED_AT, SessionContext
from postprocess.session.nightly.nodes import add_node_facts, list_fabrics
from site_configs.mpi.layers import shares_memory
from site_configs.schedulers.base import Ending
from site_configs.schema.transports import ExpectedTransport
from site_configs.topology.layouts import Layout

MODE = "transports"
FILE = "transports.json"  #: in a work directory
NODES_AWAY = (Ending.TAKEN_AWAY, Ending.NEVER_STARTED)
#: Has the test that is named as our own program
OWN_CHECK = Path(__file__).resolve().parents[3] / "reframe_checks" / "luecke.py"
CHEAP = {"trials": 2, "cache": "warm"}  #: options of a launch whose times count nowhere

Place = tuple[str, str, str]  #: partition, environment, and class of pairs


@dataclass(frozen=True)
class KnownTransports:
    """By what each place talked when it was calibrated, or seen first."""

    schema: int = 1
    #: By the words of a place; none if its library does not tell
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ReferenceOrigin:
    provenance: Mapping[str, Any]
    reviewed: bool  #: or only the work directory's own


@dataclass(frozen=True)
class TransportProof:
    """What the libraries of a night said of their transports."""

    paths: Mapping[Place, Sequence[TransportPath]]  #: none of a place: unknown
    expected: Mapping[Place, ExpectedTransport] = field(default_factory=dict)
    known: KnownTransports = KnownTransports()
    #: The references of each partition and environment that has some
    references: Mapping[tuple[str, str], ReferenceOrigin] = field(default_factory=dict)
    #: Environments with variables set by hand: what they talk by tells nothing of other sessions
    by_hand: Collection[str] = ()
    #: Places whose verbose start failed without a word of its transports
    silent: Collection[Place] = ()
    #: Partitions of which a job lost its nodes or got none: what needs as many was not started there
    unproven: Collection[str] = ()
    #: Devices of a fast network that is up on all nodes, by the place of pairs between them
    fabrics: Mapping[Place, Sequence[str]] = field(default_factory=dict)
    #: Environments that were asked for on a library by which no MPI talks through memory
    without_memory: Collection[str] = ()

    def apply(self, results: Sequence[CaseResult]) -> list[CaseResult]:
        """Return the results; those whose pairs talk otherwise than they should are not comparable."""
        return [self.judge(result) for result in results]

    def judge(self, result: CaseResult) -> CaseResult:
        """Return one result; what failed or was skipped stays so."""
        case = result.case
        if result.verdict in (*FAILED_LAUNCH, Verdict.SKIPPED):
            return result
        for pairs in classify_pairs(case.processes, case.per_node):
            place = f"{case.system}:{case.partition}", case.environment, pairs
            if fault := self.find_fault(place, case):
                return replace(result, verdict=Verdict.NOT_COMPARABLE, reason=fault, outdated="")
        return result

    def find_faults(self) -> dict[str, str]:
        """Find the environments with a place whose transports are wrong, each with what is wrong."""
        faults: dict[str, list[str]] = defaultdict(list)
        for place in sorted(self.paths):
            if fault := self.find_fault(place):
                faults[place[1]].append(f"on {place[0]} {fault}")
        return {environment: "; ".join(found) for environment, found in faults.items()}

    def find_fault(self, place: Place, case: Case | None = None) -> str:
        """Find what is wrong with the transports of a place, with the library's own line; empty if nothing.

        :param case: that is judged; None for whatever is measured there
        """
        if place in self.expected and place in self.silent:
            where = f"{WORDS[place[-1]]} the site expects {self.expected[place].text!r}"
            return f"{where}, but the start that should show it failed"
        if place in self.expected:
            return find_wrong_path(self.paths.get(place, ()), place[-1], self.expected[place])
        return self.find_avoidable(place) or self.find_change(place, case)

    def find_avoidable(self, place: Place) -> str:
        """Find TCP where there is better, unless the site file expects something there.

        In a node memory is shared; between nodes a faster network may be up.
        """
        pairs = place[-1]
        better = "memory is shared" if pairs == "node" and place[1] not in self.without_memory else ""
        if devices := self.fabrics.get(place):
            better = f"{', '.join(devices)} is up"
        for path in self.paths.get(place, ()):
            if better and path.is_tcp and place not in self.expected:
                fix = f"mend it, or say transports={{'{pairs}': '{path}'}} in the site file"
                return f"{WORDS[pairs]} its MPI uses {path}, where {better}; {fix}: {path.line}"
        return ""

    def find_change(self, place: Place, case: Case | None = None) -> str:
        """Find a way that a place did not use when its references were measured, or when it was seen first."""
        *where, pairs = place
        if where[1] in self.by_hand:
            return ""
        origin = self.references.get((where[0], where[1]))
        told = find_transports(origin.provenance, case).get(pairs) if origin else None
        before = told or self.known.places.get(" ".join(place), ())
        for path in self.paths.get(place, ()):
            if before and str(path) not in before:
                used = f"{WORDS[pairs]} its MPI uses {path}, and used {', '.join(before)} before"
                review = "; then ./plumbline references propose" if told and origin and origin.reviewed else ""
                return f"{used}; if that is meant, run ./plumbline calibrate{review}: {path.line}"
        return ""

    def remember(self, path: Path, afresh: bool = False, environments: Collection[str] | None = None) -> None:
        """Remember by what each place talks, if it is not known yet and nothing is wrong with it.

        :param afresh: whether what is known counts no more: of what was calibrated
        :param environments: that are remembered; None for all
        """
        known = recall(path, KnownTransports).places
        told = {
            " ".join(place): tuple(map(str, paths))
            for place, paths in self.paths.items()
            if place not in self.silent and place[1] not in self.by_hand and not self.find_avoidable(place)
            if environments is None or place[1] in environments
        }
        kept = {words: paths for words, paths in known.items() if paths or words not in told}
        places = {**known, **told} if afresh else {**told, **kept}
        if places != known:
            remember(path, KnownTransports(places=places))

    def describe(self) -> Iterator[str]:
        """Describe in one line by what each environment talks; what was unknown before is not told again."""
        told = [
            f"{place[1]} {WORDS[place[-1]]} {', '.join(map(str, paths)) or self.describe_unknown(place)}"
            for place, paths in sorted(self.paths.items())
            if paths or place in self.silent or " ".join(place) not in self.known.places
        ]
        if told:
            yield f"transports: {'; '.join(dict.fromkeys(told))}"
        for partition in sorted(self.unproven):
            yield (f"transports on {partition}: not all are read, for a job there lost its nodes or got none")

    def describe_unknown(self, place: Place) -> str:
        return "unknown (its start failed)" if place in self.silent else "unknown"


def classify_pairs(processes: int, per_node: int) -> list[str]:
    """Classify the pairs of ranks of a layout: those in a node, and those between nodes."""
    found = {"node": min(processes, per_node) > 1, "network": processes > per_node}
    return [pairs for pairs, there in found.items() if there]


def prove_transports(
    context: SessionContext,
    selection: Selection,
    launches: Sequence[PlannedLaunch],
    calibrating: bool = False,
    measured: bool = False,
) -> TransportProof:
    """Start one verbose launch for each environment and class of pairs, the smallest of these launches.

    What was started before by the same command is not started again. Simulated machines have no transports.

    :param calibrating: whether a user calibrates, so that what was known before counts no more
    :param measured: whether the launches have been made: then nothing is left to build, and the starts may run
        beside each other; those that stay silent are made once more, one after the other
    """
    chosen = choose_launches(launches)
    if not chosen:
        return TransportProof({})
    unheard = {place: case for place, case in chosen.items() if place not in context.heard}
    checks = selection.checks or choose_checks(launches, unheard.values())
    asked = replace(selection, checks=checks, built=measured)
    sessions = [listen(context, asked, unheard, calibrating, beside=measured)] if unheard else []
    silent = {place: case for place, case in unheard.items() if place not in context.heard}
    if measured and silent:  # some sites and devices let only one program run at a time
        sessions.append(listen(context, asked, silent, calibrating, beside=False))
    mpis = context.prepared.inventory.mpis if context.prepared.inventory else ()
    proof = TransportProof(
        {place: context.heard.get(place, ()) for place in chosen},
        find_expected(launches),
        KnownTransports() if calibrating else recall(context.work.root / FILE, KnownTransports),
        {} if calibrating else find_origins(context, chosen),
        selection.set_env,
        frozenset(chosen) - context.heard.keys(),
        fabrics=find_fabrics(context),
        without_memory={mpi.name for mpi in mpis if not shares_memory(mpi)},
    )
    if not proof.find_faults():  # what is wrong stays, for people to read
        for session in sessions:
            shutil.rmtree(session, ignore_errors=True)
    return proof


def find_origins(context: SessionContext, places: Collection[Place]) -> dict[tuple[str, str], ReferenceOrigin]:
    """Find the references of these places: they tell transports in a work directory that has seen nothing."""
    found = {}
    for partition, environment in sorted({place[:2] for place in places}):
        system, _, name = partition.partition(":")
        if path := find_reference_file(context.reference_roots, system, name, environment):
            reviewed = context.work.provisional not in path.parents
            found[partition, environment] = ReferenceOrigin(read_provenance(path), reviewed)
    return found


def listen(
    context: SessionContext, selection: Selection, cases: Mapping[Place, Case], shown: bool, beside: bool
) -> Path:
    """Start a case of each place verbosely, and keep in the context what its library says.

    Returns the folder of the session.

    :param shown: whether its progress is shown, since programs may have to be built first
    :param beside: whether the starts may run beside each other; none of them is timed
    """
    choice = selection.choice | CHEAP | {AGAIN: build_retest_choice(set(cases.values()), {})}
    session, reframe = context.open_session(MODE)
    (session.directory / LOOKED_AT).touch()
    verbose = replace(selection, choice=choice, verbose=VERBOSE, launches=1, side_by_side=beside)
    progress = context.progress if shown else context.quiet.progress
    with context.progress.phase(MODE):
        context.progress.now(
            f"one start of {', '.join(sorted({place[1] for place in cases}))}, once it is built"
        )
        _, done = run_again(reframe, verbose, progress)
    context.progress.move(MODE, "build", done.build_seconds)
    hear(context, done.finished, session.directory, cases)
    return session.directory


def hear(
    context: SessionContext, started: Sequence[FinishedLaunch], session: Path, places: Collection[Place]
) -> None:
    """Keep in the context what the libraries of verbose starts say, and what networks their nodes have."""
    add_node_facts(context.node_facts, started)
    said: dict[Place, list[TransportPath]] = defaultdict(list)
    ended_well: set[Place] = set()
    for launch in started:
        if launch.run:
            context.proven[launch.launch.partition, launch.launch.environment] = launch
        output = read_output(launch, session)
        ended = read_exit_code(launch.launch.ending(session))  # its table may be full of what was told
        places_of = list_pairs(launch.launch)
        for place in places_of:
            told = [path for path in read_paths(output) if path.pairs == place[-1]]
            alone = len(places_of) == 1  # else the packets may be of the other pairs
            said[place] += told or (judge_packets(place[-1], launch.tcp_packets) if alone else [])
            ended_well |= {place} if ended == 0 else set()
            if place[-1] == "network":
                context.nodes.setdefault(place, []).append(frozenset(launch.node_facts))
    context.heard.update(
        {place: drop_repeated(said[place]) for place in places if said[place] or place in ended_well}
    )


def find_fabrics(context: SessionContext) -> dict[Place, list[str]]:
    """Find the fast networks that all nodes of a verbose start have, by what any launch saw of these nodes."""
    return {
        place: sorted(
            {
                device
                for nodes in starts
                for device in list_fabrics({node: context.node_facts[place[0]][node] for node in nodes})
            }
        )
        for place, starts in context.nodes.items()
    }


def drop_repeated(paths: Sequence[TransportPath]) -> list[TransportPath]:
    """Drop what several launches told alike."""
    return list({str(path): path for path in paths}.values())


def prove_measured(
    context: SessionContext, selection: Selection, finished: Sequence[FinishedLaunch]
) -> TransportProof:
    """Prove the transports of what a session measured, and remember those that were not known.

    Where a job lost its nodes or got none, nothing is started that needs as many: it might wait for hours.
    """
    add_node_facts(context.node_facts, finished)
    lost: dict[str, int] = {}  #: nodes of the smallest such job, by partition
    for run in finished:
        if run.outcome.job_end in NODES_AWAY:
            nodes = count_nodes(run.launch)
            lost[run.launch.partition] = min(nodes, lost.get(run.launch.partition, nodes))
    there: list[PlannedLaunch] = []
    unproven: set[str] = set()
    for launch in [run.launch for run in finished if run.outcome.records]:
        heard = all(place in context.heard for place in list_pairs(launch))
        if heard or count_nodes(launch) < lost.get(launch.partition, math.inf):
            there.append(launch)
        else:
            unproven.add(launch.partition)
    proof = prove_transports(context, selection, there, measured=True)
    proof.remember(context.work.root / FILE)
    return replace(proof, unproven=unproven)


def count_nodes(launch: PlannedLaunch) -> int:
    """Count the nodes of a launch, by its first case; 1 if it measures nothing."""
    if not launch.cases:
        return 1
    return len(Layout(launch.cases[0].processes, launch.cases[0].per_node).ranks_per_host)


def choose_launches(launches: Sequence[PlannedLaunch]) -> dict[Place, Case]:
    """Choose a case for each class of pairs of a partition and environment, with few processes."""
    found: dict[Place, Case] = {}
    for launch in launches:
        for place in [] if launch.exact else list_pairs(launch):
            some = [*launch.cases, *([found[place]] if place in found else [])]
            found[place] = min(some, key=rank_case)
    return found


def choose_checks(launches: Sequence[PlannedLaunch], cases: Iterable[Case]) -> Path | None:
    """Choose the check file of these cases where all are of nightly mpicost: other files take time to load."""
    sought = set(cases)
    tests = {launch.test.partition("_")[0] for launch in launches if not sought.isdisjoint(launch.cases)}
    return OWN_CHECK if tests == {OWN_PROGRAM} else None


def rank_case(case: Case) -> tuple[bool, int, int]:
    """Rank a case by what its launch costs; our own program first, which prints all that a library tells."""
    return case.program != OWN_PROGRAM, case.processes, case.bytes


def list_pairs(launch: PlannedLaunch) -> list[Place]:
    """List the classes of pairs of a launch with its place; none if it measures nothing."""
    if not launch.cases:
        return []
    pairs = classify_pairs(launch.cases[0].processes, launch.cases[0].per_node)
    return [(launch.partition, launch.environment, name) for name in pairs]


def find_expected(launches: Sequence[PlannedLaunch]) -> dict[Place, ExpectedTransport]:
    """Find what the site expects of each place, which plans have from its site file."""
    return {
        (launch.partition, launch.environment, pairs): ExpectedTransport.parse(text)
        for launch in launches
        if not launch.exact
        for pairs, text in launch.transports.items()
    }


def read_output(launch: FinishedLaunch, session: Path) -> str:
    """Read all that a launch printed, on both streams of its job and where its program's own goes."""
    paths = sorted(Path(launch.directory).glob("rfm_job.[oe][ur][tr]"))
    paths += [launch.launch.output(session)]
    return "\n".join(files.read_text(path, "replace") for path in paths if path.is_file())
