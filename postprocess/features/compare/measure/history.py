"""The history of an MPI from beginning to end: each round launches every version once, in a drawn order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.formats import duration, first_of, plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.features.compare import data, history_page
from postprocess.features.compare.data import ComparedSide, ComparisonHeader
from postprocess.features.compare.history import LEAST_ROUNDS, draw_round, judge_history
from postprocess.features.compare.measure import run
from postprocess.features.compare.measure.bench import ComparisonBench
from postprocess.features.compare.measure.fitting import remove_trials
from postprocess.model.session import Request
from postprocess.session.lifecycle.context import SessionContext, open_session_context
from postprocess.stats.paired_verdicts import EXACT_LADDERS
from site_configs.mpi import wheels
from site_configs.mpi.family import ABI_SUFFIX, parse_mpi_word, split_release
from site_configs.mpi.inventory import collect_inventory, find_release
from site_configs.mpi.layers import KNOWN
from site_configs.validation.site_files import read_usable_site
from spack_envs.mirror.use import choose_mirror

USUAL_ROUNDS = 10
EXACT_ROUNDS = EXACT_LADDERS[0][0]  #: of simulated time
LEAST_VERSIONS = 2


@dataclass(frozen=True, kw_only=True)
class HistoryDemand(run.Demand):
    """What the user asked for of versions."""

    words: tuple[str, ...]  #: a family, releases of it, or environments of the site


@dataclass
class HistoryBench(ComparisonBench):
    """What every pass of a history needs: its sides are versions, by the names of their environments."""

    rounds_a_block: ClassVar[int] = 1

    @property
    def what_is_timed(self) -> str:
        return f"a round of {plural(len(self.header.versions), 'version')}"

    def count_least_rounds(self, exact: bool) -> int:
        """Count how often each version is launched at least, its trial run included."""
        return (EXACT_ROUNDS if exact else LEAST_ROUNDS) + 1

    def plan_rounds(self) -> int:
        """Fix the number of rounds by the time that there is.

        :raises TooFewSecondsError: if it does not suffice for the fewest
        """
        stored = self.stored
        if stored.looks:
            return stored.looks[0]
        once = stored.block_seconds(0)
        least, rounds = (EXACT_ROUNDS, EXACT_ROUNDS) if stored.is_exact else (LEAST_ROUNDS, USUAL_ROUNDS)
        seconds = self.header.seconds
        if seconds is not None:
            rounds = min(int((seconds - once) / max(once, 0.1)), 2 * USUAL_ROUNDS)
        if rounds < least:
            raise self.refuse_for_time()
        about = f"{self.what_is_timed} takes about {duration(once)}"
        progress = self.context.progress
        progress.say(f"{about}: {plural(rounds, 'round')} in about {duration(once * rounds)}")
        data.append_record(self.path, data.PlannedLooks((rounds,)))
        return rounds

    def run_rounds(self, rounds: int) -> None:
        """Launch every version once in each round; what is there of an earlier call is not launched again."""
        progress = self.context.progress
        # the cases of which the trial run of a version has a value
        wanted = {name: self.stored.list_cases(name, block=0) for name in self.header.sides}
        for number in range(1, rounds + 1):
            done = {each.side for each in self.stored.passes if each.block == number}
            if not self.has_time(self.stored, number):
                progress.note("the time is up: fewer rounds than planned count")
                return
            for position, name in enumerate(draw_round(self.header.seed, number, list(wanted))):
                if name not in done and wanted[name]:
                    self.run_pass(number, position, name, wanted[name])
            progress.say(f"round {number} of {rounds}")


def run_history(work: WorkDirectory, request: Request, demand: HistoryDemand, progress: Progress) -> int:
    """Measure all versions of an MPI, judge, show. Returns the exit status."""
    with work.held():
        labels = list(demand.words)
        left_out: dict[str, str] = {}
        if request.site == "local":
            labels, left_out = find_releases(work, labels, progress)
            request = replace(request, families=labels)
        context = open_session_context(work, request, progress)
        asked = describe_demand(context, demand, labels, left_out)
        for version in asked.versions:
            progress.say(f"  {version.label} ({version.environment})")
        path, stored = run.find_or_begin(work, demand.directory, asked, progress)
        bench = HistoryBench(context, stored.header, path)
        try:
            bench.run_trials()
            rounds = bench.plan_rounds()
            remove_trials(path)
        except UsageError as error:
            run.discard_refused(context, path, error)
            raise
        bench.run_rounds(rounds)
    return conclude_history(path.parent, progress, request.json_file)


def find_releases(
    work: WorkDirectory, words: Sequence[str], progress: Progress
) -> tuple[list[str], dict[str, str]]:
    """Install the wheels of all releases asked for: those that work, and why others are left out.

    :param words: families, of which all released versions are meant, and releases such as ``mpich@4.3.2``
    :raises UsageError: if a word is neither
    """
    chosen = choose_mirror(work.root, None, progress)
    folder = chosen.wheels if chosen else None
    labels: list[str] = []
    for word in words:
        try:
            labels += list_labels(word, folder)
        except wheels.WheelError as error:
            raise UsageError(f"--history {word}: {error}") from None
    found = collect_inventory(work.root, labels, progress.say, wheel_folder=folder)
    usable = [each for each in labels if find_release(found, work.root, each)]
    left_out = {}
    for label in labels:
        if label not in usable:
            family, version = split_release(parse_mpi_word(label).plain)
            prefix = str(wheels.find_wheel_prefix(family, work.root / "mpi", version))
            why = [e.problem for e in found.unusable if e.mpicc == label or prefix in e.mpicc]
            left_out[label] = first_of(why, 1) or "cannot be had on this machine"
            progress.note(f"{label} is left out: {left_out[label]}")
    return usable, left_out


def list_labels(word: str, folder: Path | None) -> list[str]:
    """List the releases that a word means: all of a family, or of a library below an MPI, or the one it names.

    ``ucx`` means all releases of UCX below MPICH, ``libfabric`` all that can be had below Intel MPI.

    :raises UsageError: if it is no such word
    :raises WheelError: if the package index offers none
    """
    asked = parse_mpi_word(f"{next(iter(KNOWN[word].env))}+{word}" if word in KNOWN else word)
    family, version = split_release(asked.plain)
    layer, named = split_release(asked.layer)
    if family not in wheels.FAMILIES:
        choice = ", ".join((*wheels.FAMILIES, *KNOWN))
        raise UsageError(f"--history {word}: is not a family or release of one; choose of {choice}")
    if layer:
        below = [named] if named else wheels.list_offered_versions(layer, folder)
        return [f"{asked.plain}+{layer}@{each}" for each in below]
    offered = [version] if version else wheels.list_offered_versions(family, folder)
    return [f"{family}@{each}{ABI_SUFFIX if asked.by_abi else ''}" for each in offered]


def describe_demand(
    context: SessionContext, demand: HistoryDemand, labels: Sequence[str], left_out: Mapping[str, str]
) -> ComparisonHeader:
    """Describe a history as it begins.

    :raises UsageError: if a version is not there, or there are fewer than two
    """
    declared = run.index_environments(read_usable_site(context.work, context.request.selection.site))
    if context.request.site != "local" and len(labels) == 1:
        own = [each for each in declared if each.startswith(f"{labels[0]}-")]
        labels = sorted(own, key=wheels.split_version) or labels
    versions = tuple(ComparedSide(label, run.find_environment(context, declared, label)) for label in labels)
    if len({version.environment for version in versions}) < max(LEAST_VERSIONS, len(versions)):
        there = first_of([version.label for version in versions], None) or "none"
        raise UsageError(f"--history: needs two different versions or more; there are {there}")
    return run.begin_header(
        context,
        demand,
        old=versions[0],
        new=versions[-1],
        choice=run.choose_with_controls(context.request.selection.choice),
        control=False,
        differences=(),
        versions=versions,
        left_out=dict(left_out),
    )


def conclude_history(directory: Path, progress: Progress, json_file: Path | None = None) -> int:
    """Judge a history, write its pages and show it. Returns the exit status.

    :raises UsageError: if the folder has none
    """
    judged = judge_history(data.read_comparison(directory / data.FILE))
    written = history_page.write_history(directory, judged)
    print(history_page.format_history_text(judged), end="", flush=True)
    if json_file:
        write_summary(json_file, history_page.build_history_json(judged))
    progress.say(f"{written}; every value: {directory / data.FILE}")
    return judged.status
