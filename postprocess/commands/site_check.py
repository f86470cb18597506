"""Estimate the cost of a night on a site, before anything ran."""

import argparse
import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from postprocess.base import strict_json
from postprocess.base.errors import UsageError, propose_or_list
from postprocess.base.formats import align_rows, duration, plural, size
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import Parser
from postprocess.model.case import format_case_names
from postprocess.model.plan import PlannedLaunch, list_places, list_planned_cases, read_plan
from postprocess.model.routines.kernels import KERNELS
from postprocess.model.session import Selection
from postprocess.parsers.reframe_report import read_report
from postprocess.references.catalog import load_catalog
from postprocess.results import launch_costs
from postprocess.runner.reframe import ReframeDriver, RefusedError
from postprocess.runner.reframe_pass import NoCaseSelected, make_plan
from postprocess.session.nightly.calibrate import choose_automatic_launches
from postprocess.session.nightly.estimate import choose_launch_counts, repeat_launches
from site_configs.schedulers.base import Scheduler
from site_configs.schedulers.registry import find_scheduler
from site_configs.topology.layouts import Layout
from site_configs.topology.machine import describe_own_limits, find_unknown_limits, read_quota_cpus
from site_configs.validation import rules
from site_configs.validation.reading import SiteFault, SiteReading
from site_configs.validation.rules import LocalMachine
from site_configs.validation.site_files import locate_site_file, read_site

HEAD = ("partition", "environment", "launches", "cases", "nodes", "time", "node-hours")


@dataclass(frozen=True)
class NightCost:
    """What launches take. Nodes are exclusive: a launch on a part of a node costs all of it.

    A simulated machine costs the one node on which it is simulated.
    """

    launches: int
    cases: int
    nodes: int  #: of the largest launch; simulated ones where the machine is
    seconds: float
    node_seconds: float

    @property
    def words(self) -> tuple[str, ...]:
        """For the table, as far as its columns are numbers."""
        hours = f"{self.node_seconds / 3600:.2f}"
        counts = (str(number) for number in (self.launches, self.cases, self.nodes))
        return (*counts, duration(self.seconds), hours)


def estimate_night_cost(launches: Sequence[PlannedLaunch], known: dict) -> NightCost:
    together = launch_costs.list_jobs(launches)
    nodes = list(map(count_job_nodes, together))
    exact = [job.launches[0].exact for job in together]
    taken = [1 if simulated else count for simulated, count in zip(exact, nodes, strict=True)]
    seconds = [launch_costs.estimate_job_seconds(each, known) for each in together]
    return NightCost(
        launches=sum(len(job.launches) for job in together),
        cases=len({case for launch in launches for case in launch.cases}),
        nodes=max(nodes, default=0),
        seconds=sum(seconds),
        node_seconds=sum(count * each for count, each in zip(taken, seconds, strict=True)),
    )


def count_job_nodes(job: launch_costs.Job) -> int:
    first = job.launches[0]
    return len(Layout(first.processes, first.per_node).ranks_per_host)


def show_costs(
    work: WorkDirectory, night: Sequence[PlannedLaunch], others: Sequence[PlannedLaunch], progress: Progress
) -> None:
    """Show the table of a night's cost on each partition with each environment, and its sum."""
    known = launch_costs.read_job_seconds(work)
    places = dict.fromkeys((launch.partition, launch.environment) for launch in night)
    rows: list[tuple[str, ...]] = [HEAD]
    for place in places:
        own = [launch for launch in night if (launch.partition, launch.environment) == place]
        rows.append((place[0].partition(":")[2], place[1], *estimate_night_cost(own, known).words))
    for row in align_rows(rows, texts=2):
        progress.say_whole(row)
    total = estimate_night_cost(night, known)
    sums = f"{plural(total.cases, 'case')} in {plural(total.launches, 'launch', 'es')}"
    hours = f"{total.node_seconds / 3600:.2f} node-hours"
    progress.say(f"a night is {sums}: about {duration(total.seconds)} and {hours}")
    for line in (describe_estimate(night, known), *launch_costs.describe_flush(night)):
        progress.say(line)
    first = estimate_night_cost(repeat_for_calibration(night), known)
    sums = f"{plural(first.launches, 'launch', 'es')} more: about {duration(first.seconds)}"
    hours = f"{first.node_seconds / 3600:.2f} node-hours"
    progress.say(f"a night without references calibrates first, {sums} and {hours}")
    if others:
        more = estimate_night_cost(others, known)
        sums = f"{plural(more.cases, 'case')} in {plural(more.launches, 'launch', 'es')}"
        progress.say(f"checks that are not part of a night: {sums}")


def repeat_for_calibration(night: Sequence[PlannedLaunch]) -> list[PlannedLaunch]:
    """Return the launches of a night as often as a first calibration makes each of them."""
    return [
        replace(launch, number=number)
        for launch in night
        if launch.number == 1
        for number in range(1, choose_automatic_launches(launch) + 1)
    ]


def describe_estimate(launches: Sequence[PlannedLaunch], known: dict) -> str:
    """Describe the source of the estimate: measured in this work directory, or a rule of thumb."""
    together = launch_costs.list_jobs(launches)
    measured = sum(job.key in known for job in together)
    rest = len(together) - measured
    parts = [f"{plural(measured, 'job')} as long as the last time"] if measured else []
    kernels = ", kernels by their sizes" if any(each.program == KERNELS for each in together) else ""
    thumb = (
        f"{launch_costs.ROUGH_START:g} s a start, {launch_costs.ROUGH_TRIAL * 1e3:g} ms a trial, "
        f"{launch_costs.ROUGH_SIZE:g} s a size, {launch_costs.ROUGH_RATE / 1e9:g} GB/s{kernels}"
    )
    if together and all(job.launches[0].exact for job in together):
        message = f"{launch_costs.ROUGH_SIMULATED_MESSAGE * 1e6:g} us a message of a trial"
        thumb = f"{launch_costs.ROUGH_SIMULATED_RANK * 1e3:g} ms to start a simulated rank, {message}"
    parts += [f"{plural(rest, 'job')} roughly, {thumb}"] if rest else []
    return f"estimated: {'; '.join(parts)}; whole nodes, no waiting in a queue"


HELP = "List every error of a site file, and the cost of a nightly run."
EXAMPLE = "./plumbline site check mycluster"
FAILS = "the site file has an error"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("site", metavar="NAME", help="site file, by name or path")


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Check a site file. Returns 1 if something is wrong."""
    with work.held():
        return check_site(work, arguments.site, Progress())


def check_site(work: WorkDirectory, site: str, progress: Progress) -> int:
    """Check the site of a name or path; 1 if something is wrong."""
    path = locate_site_file(work.source, site)
    found = find_problems(work, path, progress)
    for problem in found:
        progress.say(problem)
    progress.say_whole(f"{path}: {'ok' if not found else f'{len(found)} wrong'}")
    return 1 if found else 0


def find_problems(work: WorkDirectory, path: Path, progress: Progress, as_file: bool = False) -> list[str]:
    """Find what is wrong with a site file, one line each; if nothing is, report the cost of a night.

    :param as_file: programs that the file needs may be missing on this machine, which is noted.
    """
    reading = read_site(work, path)
    usable = not (as_file and reading.not_installed)
    if not usable:
        progress.say(f"note: {path}: only the file is looked at: {reading.not_installed}")
        reading = read_site(work, path, only_looking=True)
    found, here = find_file_problems(reading, path, progress, usable)
    scheduler = here.scheduler if here else None
    if found:
        return found
    progress.say(f"{path}: trying every check on it, without running any")
    try:
        with progress.phase("dry run"):
            trial = dry_run_site(work, path)
    except UsageError as error:
        return [f"{path}: {error}"]
    if trial.night:
        night = repeat_launches(trial.night, choose_launch_counts(work, trial.night))
        show_costs(work, night, trial.others, progress)
    if trial.not_built:
        cases = plural(trial.not_built, "case")
        progress.say(f"not counted: {cases} of OSU and IMB that Spack builds, where there is a Spack")
    wrong = [
        *find_unmeasured_routines(reading, trial),
        *find_too_long_launches(reading, trial.night, scheduler),
    ]
    reviewed = [root for root in work.reference_roots if root != work.provisional]
    wrong += find_unmeasured_references(reviewed, trial.planned)
    for partition in [] if wrong else reading.sound_configuration["systems"][0]["partitions"]:
        told = (
            describe_unusable_nodes(partition, scheduler),
            describe_refused_jobs(partition, here),
            describe_limits(partition),
            describe_shell_limits(partition),
        )
        for line in filter(None, told):
            progress.say(line)
    return [f"{path}: {text}" for text in wrong]


def find_file_problems(
    reading: SiteReading, path: Path, progress: Progress, usable: bool = True
) -> tuple[list[str], LocalMachine | None]:
    """Find what is wrong with the file itself, and with its machine; return these and the machine.

    :param usable: whether the file can be used on this machine, if this is its machine.
    """
    found, here = rules.find_site_faults(reading), None
    if not usable:
        pass
    elif not found and rules.is_here(reading):
        here = rules.inspect_machine(reading)
        found = rules.find_machine_faults(reading, here)
    elif not found:
        patterns = ", ".join(reading.sound_configuration["systems"][0]["hostnames"])
        progress.say(
            f"note: this host is none of {patterns} (hostnames), so modules, compilers and scheduler are "
            "not looked at"
        )
    return [f"{format_place(path, fault)}: {fault.text}" for fault in found], here


def describe_unusable_nodes(partition: Mapping[str, Any], scheduler: Scheduler | None) -> str:
    """Describe the nodes of a partition that are down or taken out; empty if there are none.

    :param scheduler: of this machine; None if the site is another machine
    """
    if scheduler is None or not scheduler.batch:
        return ""
    usable = scheduler.count_usable_nodes(partition.get("access", []))
    if not usable or not usable.why:
        return ""
    there = f"partition {partition['name']}: {plural(usable.count, 'node')} can be used"
    return f"{there}; a night skips what needs more: {usable.why}"


def describe_refused_jobs(partition: Mapping[str, Any], here: LocalMachine | None) -> str:
    """Describe why jobs with the options of a partition are refused now; empty if they are not.

    :param here: this machine; None if the site is another one
    """
    refused = next(iter(here.find_refused_options(partition.get("access", [])) if here else ()), None)
    what = f"a job with the options in access ({' '.join(partition.get('access', []))}) is refused"
    return f"partition {partition['name']}: {what}: {refused.said}" if refused else ""


def format_place(path: Path, fault: SiteFault) -> str:
    """Format where a fault is, as editors and compilers write it."""
    return f"{path}:{fault.line}" if fault.line else str(path)


@dataclass(frozen=True)
class DryRun:
    """What a dry run of every check on a site tells."""

    night: list[PlannedLaunch]
    others: list[PlannedLaunch]  #: of checks that no night runs
    tables: list[dict[str, list[int]]]  #: sizes of each routine, of each check
    not_built: int = 0  #: cases of programs that are not there before Spack has built them
    planned: list[PlannedLaunch] = field(default_factory=list)  #: all of it, with what is skipped


def dry_run_site(work: WorkDirectory, path: Path) -> DryRun:
    """Try every check on a site by a dry run. Raises UsageError if ReFrame refuses the site under any check."""
    reframe = ReframeDriver(work.source, work.root, work.new_session(), work.reference_roots, None)
    with remove_on_failure(reframe):
        try:
            planned = make_plan(reframe, Selection(path, tag="", only_looking=True))
        except NoCaseSelected:
            planned = []
        except UsageError:
            if bare := next(describe_without_case(reframe.session), ""):
                raise UsageError(bare) from None
            raise
        nightly = {test.test for test in read_report(reframe.report) if Selection.tag in test.tags}
        tables = read_measured_sizes(reframe.report)
    shutil.rmtree(reframe.session, ignore_errors=True)
    launches = [launch for launch in planned if launch.cases]
    night = [launch for launch in launches if launch.test in nightly]
    others = [launch for launch in launches if launch.test not in nightly]
    not_built = sum(skip.unavailable for launch in planned for skip in launch.skips)
    return DryRun(night, others, tables, not_built, planned)


def describe_without_case(session: Path) -> Iterator[str]:
    for launch in read_plan(session):
        if not launch.all_cases:
            title = f"partition {launch.partition.partition(':')[2]!r}: defaults: left_out_above"
            fix = "leave less out, or take that layout out of layouts"
            yield f"{title}: leaves nothing of {launch.test} with {launch.environment}; {fix}"


def find_unmeasured_references(roots: Sequence[Path], planned: Sequence[PlannedLaunch]) -> list[str]:
    """Find reviewed references of cases that no check measures on this site any more, one line a file.

    A file with a fault is left to the lint of references.
    """
    found, there, used = [], set(list_planned_cases(planned)), list_places(planned)
    try:
        sets = load_catalog(roots, used).sets.values()
    except UsageError:
        return []
    fix = "measure it again, or remove the rows"
    for reference_set in sets:
        if lost := sorted(reference_set.references.keys() - there):
            what = f"{plural(len(lost), 'case')} in it that no check of this site measures"
            found.append(f"{reference_set.path}: {what} ({format_case_names(lost)}); {fix}")
    for partition in sorted({place for place, _ in used}):
        system, name = partition.split(":")
        for path in (path for root in roots for path in sorted((root / system / name).glob("*.tsv"))):
            if (partition, path.stem) not in used:
                found.append(f"{path}: {path.stem} is not on {partition} any more; bring it back or remove it")
    return found


def read_measured_sizes(report: Path) -> list[dict[str, list[int]]]:
    """Read the routines that the checks in ReFrame's report measure, with their sizes in bytes."""
    runs = strict_json.read_json(report)["runs"]
    entries = [entry for run in runs for entry in run["testcases"]]
    return [entry["table"] for entry in entries if "table" in entry]


def find_unmeasured_routines(reading: SiteReading, trial: DryRun) -> list[str]:
    """Find where a night would measure nothing, or leave out what does not exist, one line each."""
    if not trial.night:
        return ["a night on it measures nothing; see its layouts, peers and left_out_above"]
    found = []
    there = {(launch.partition.partition(":")[2], launch.environment) for launch in trial.night}
    for partition in reading.sound_configuration["systems"][0]["partitions"]:
        title = f"partition {partition['name']!r}"
        for name in partition["environs"]:
            if (partition["name"], name) not in there:
                fix = "see its layouts, peers and left_out_above"
                found.append(f"{title}: a night measures nothing with {name}; {fix}")
        for word, choice in find_unknown_limits(limits_of(partition), trial.tables):
            what = f"{title}: defaults: left_out_above: {word!r}: no check measures it"
            found.append(f"{what}; {propose_or_list(word, choice)}")
    return found


def limits_of(partition: Mapping[str, Any]) -> dict[str, int]:
    """Return the most processes at which a night measures a routine, or a routine at one size."""
    return partition["extras"]["defaults"].get("left_out_above", {})


def describe_limits(partition: Mapping[str, Any]) -> str:
    """Describe what a night leaves out on a partition above which count of processes; empty for nothing."""
    by_count: dict[int, list[str]] = {}
    for word, limit in sorted(limits_of(partition).items()):
        routine, _, at = word.partition(":")
        by_count.setdefault(limit, []).append(f"{routine} of {size(int(at))}" if at else routine)
    parts = [
        f"above {plural(limit, 'process', 'es')} {', '.join(by_count[limit])}" for limit in sorted(by_count)
    ]
    return f"{partition['name']}: a night leaves out {'; '.join(parts)}" if parts else ""


def describe_shell_limits(partition: Mapping[str, Any]) -> str:
    """Describe the limits of the shell that launches on a partition have; empty where nothing is known."""
    scheduler = find_scheduler(partition["scheduler"])
    if partition["extras"].get("exact"):
        return ""
    if scheduler.batch:
        return f"{partition['name']}: {scheduler.limits_of_jobs}" if scheduler.limits_of_jobs else ""
    limits = describe_own_limits(read_quota_cpus())
    fix = "a night from another shell, as cron's, may have others, and is then not comparable"
    return f"{partition['name']}: launches have the limits of the shell: {limits}; {fix}"


def find_too_long_launches(
    reading: SiteReading, night: Sequence[PlannedLaunch], scheduler: Scheduler | None
) -> list[str]:
    """Find launches whose time limit is longer than their queue's: they would never start."""
    found = []
    for partition in reading.sound_configuration["systems"][0]["partitions"]:
        limit = rules.find_longest_job(partition, scheduler)
        own = [launch for launch in night if launch.partition.partition(":")[2] == partition["name"]]
        longest = max(own, key=read_asked_seconds, default=None)
        if limit and longest and read_asked_seconds(longest) > limit:
            layout = f"{longest.processes} processes, {longest.per_node} per node"
            asked = f"a job of {layout} asks for {duration(read_asked_seconds(longest))}"
            fix = "name a queue for longer jobs in access, or fewer nodes in the topology"
            found.append(
                f"partition {partition['name']!r}: {asked}, and its queue ends jobs after "
                f"{duration(limit)}; {fix}"
            )
    return found


def read_asked_seconds(launch: PlannedLaunch) -> float:
    """Read the seconds that a launch's job may last."""
    return max(launch.time_limit, launch.job_limit)


LOG = "site.log"  #: in the work directory: what ReFrame printed when it last refused a site


@contextlib.contextmanager
def remove_on_failure(reframe: ReframeDriver) -> Iterator[None]:
    """Remove a session in which nothing was measured, if this fails; a complaint names where its log is now."""
    try:
        yield
    except BaseException as error:
        log = reframe.work / LOG
        with contextlib.suppress(FileNotFoundError):
            reframe.log.replace(log)
        shutil.rmtree(reframe.session, ignore_errors=True)
        if isinstance(error, RefusedError):
            raise RefusedError(error.said, log) from None
        raise
