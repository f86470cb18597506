"""The command ``site``: a new site from nothing to its first verdict."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.formats import align_rows, microseconds
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_comma_list
from postprocess.cli.options import add_options
from postprocess.cli.parser import OUTPUT, WHERE, Command, Parser
from postprocess.commands import site_check
from postprocess.commands.site_check import find_file_problems, remove_on_failure
from postprocess.model import options
from postprocess.model.launch import FinishedLaunch
from postprocess.model.session import Request, Selection
from postprocess.runner.reframe_pass import make_plan, run_plan
from postprocess.session.lifecycle.context import LOOKED_AT, open_session_context
from site_configs.generate import write
from site_configs.generate.survey import NONE
from site_configs.generate.write import format_registered
from site_configs.mpi.family import Mpi
from site_configs.mpi.probe import find_companion_launcher
from site_configs.schedulers.base import Scheduler
from site_configs.schedulers.registry import LOCAL, find_scheduler
from site_configs.topology.layouts import Layout
from site_configs.validation.reading import SiteReading
from site_configs.validation.site_files import locate_site_file, read_site
from spack_envs.mirror.use import choose_mirror


def add_new_arguments(parser: Parser) -> None:
    parser.add_argument(
        "site", nargs="?", metavar="NAME", help="name of the site (default: that of the cluster or the host)"
    )
    where = parser.group(WHERE)
    where.add_argument(
        "--scheduler", choices=(NONE,), help="describe this machine alone, whatever scheduler it has"
    )
    where.add_argument(
        "--mpis",
        type=parse_comma_list,
        metavar="FAMILY,...",
        help="MPI families to install from wheels where there is none",
    )
    parser.group(OUTPUT).add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write to FILE, which must not exist (default: site_configs/NAME.py)",
    )


def run_new(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write a site file of the machine at hand. Returns the exit status."""
    chosen = (arguments.site, arguments.output, arguments.scheduler, arguments.mpis)
    progress = Progress()
    return write.write_new_site(work, *chosen, lambda: find_mirrored_wheels(work, progress), progress)


NEW = Command(
    "./plumbline site new mycluster",
    "",
    add_new_arguments,
    run_new,
    help="Look at this machine and write a site file, for you to read and correct.",
)


def find_mirrored_wheels(work: WorkDirectory, progress: Progress) -> Path | None:
    """Return the folder of wheels of the mirror in use; None without a mirror."""
    mirror = choose_mirror(work.root, None, progress)
    return mirror.wheels if mirror else None


CHECK = Path(__file__).resolve().parents[2] / "reframe_checks" / "luecke.py"
TRIALS = 5
SECONDS = 120  #: that a launch may take; a healthy one takes a few
HEAD = ("partition", "environment", "on its nodes", "result")


@dataclass(frozen=True, order=True)
class TrialRow:
    """A line of the table, and whether its launch works."""

    cells: tuple[str, ...]  #: in the order of ``HEAD``
    works: bool


def add_try_arguments(parser: Parser) -> None:
    """Add the site, and the option that chooses environments."""
    site_check.add_arguments(parser)
    add_options(parser, "--environment")


def run_try(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Launch two processes on every partition with every MPI. Returns the exit status."""
    return try_site(work, arguments.site, arguments.environment, Progress())


TRY = Command(
    "./plumbline site try mycluster",
    "a launch does not work",
    add_try_arguments,
    run_try,
    help="Launch two processes on every partition with every MPI, and report what works.",
)


def try_site(work: WorkDirectory, site: str, environments: Sequence[str], progress: Progress) -> int:
    """Try a site; 1 if something does not work.

    :raises UsageError: if there is something wrong with the site file.
    """
    path = locate_site_file(work.source, site)
    with work.held():
        reading = read_site(work, path)
        wrong, here = find_file_problems(reading, path, progress)
        if wrong:
            raise UsageError(f"{wrong[0]} (all that is wrong: ./plumbline site check {site})")
        session, done = launch_all(work, site, select_smallest(reading, path, environments), progress)
    rows = sorted([build_trial_row(launch) for launch in done] + find_untried(reading, environments, done))
    for line in align_rows([HEAD, *(row.cells for row in rows)], texts=len(HEAD)):
        progress.say_whole(line)
    failed = {row.cells[1] for row in rows if not row.works}
    for line in suggest_launcher(reading, failed, here.scheduler if here else None):
        progress.say(line)
    works = sum(row.works for row in rows)
    progress.say(f"{works} of {len(rows)} work" + (f"; files of the jobs: {session}" if failed else ""))
    return 1 if failed else 0


def launch_all(
    work: WorkDirectory, site: str, selection: Selection, progress: Progress
) -> tuple[Path, list[FinishedLaunch]]:
    """Start everything in a session of its own, of which nothing is stored as a measurement."""
    context = open_session_context(
        work, Request("try", ["./plumbline", *sys.argv[1:]], site, selection), progress
    )
    _, reframe = context.open_session("try")
    with remove_on_failure(reframe), progress.phase("set-up"):
        planned = make_plan(reframe, selection)
    (reframe.session / LOOKED_AT).touch()
    with progress.phase("running"):
        return reframe.session, run_plan(reframe, selection, planned, progress).finished


def select_smallest(reading: SiteReading, path: Path, environments: Sequence[str]) -> Selection:
    """Select a broadcast of 8 bytes between two processes: on one node, and on two where a partition has two.

    A broadcast also runs in a world of one, and so tells a launcher that starts many of these.
    """
    parts = [part["extras"] for part in reading.sound_configuration["systems"][0]["partitions"]]
    per_node = [1] if any(part["nodes"] > 1 for part in parts) else []
    per_node += [2] if any(part["cores_per_node"] > 1 for part in parts) else []
    choice = {
        options.ROUTINE.variable: ["bcast"],
        options.BYTES.variable: [8],
        options.PROCESSES.variable: [2],
        options.PER_NODE.variable: per_node,
        options.TRIAL_COUNT.variable: TRIALS,
        options.CACHE_STATE.variable: "warm",
        options.TIME_LIMIT: f"{SECONDS}s",
    }
    return Selection(path, environments, choice, checks=CHECK, tag="")


def build_trial_row(each: FinishedLaunch) -> TrialRow:
    launch = each.launch
    outcome = next(filter(None, map(each.failure, launch.cases)), each.outcome)
    where = " + ".join(map(str, Layout(launch.processes, launch.per_node).ranks_per_host))
    if outcome.records is None:
        result = f"{outcome.verdict}: {outcome.reason}"
    else:
        headline = outcome.records.cases[0].summary.headline  # type: ignore[attr-defined]  # mpicost's
        result = f"works: {microseconds(headline)} us for 8 B"
    cells = (launch.partition.partition(":")[2], launch.environment, where, result)
    return TrialRow(cells, works=outcome.records is not None)


def find_untried(
    reading: SiteReading, environments: Sequence[str], done: Sequence[FinishedLaunch]
) -> list[TrialRow]:
    """Find partitions and environments without a launch, which must not look as if they worked."""
    tried = {(launch.launch.partition.partition(":")[2], launch.launch.environment) for launch in done}
    parts = reading.sound_configuration["systems"][0]["partitions"]
    wanted = [
        (part["name"], name)
        for part in parts
        for name in part["environs"]
        if not environments or name in environments
    ]
    why = "not tried: two processes fit on none of its layouts"
    return [TrialRow((*place, "", why), works=False) for place in wanted if place not in tried]


def suggest_launcher(reading: SiteReading, environments: set[str], scheduler: Scheduler | None) -> list[str]:
    """Suggest the usual launcher of the MPIs that failed, where the site has another one.

    Nothing where it is not known what starts them: on simulated machines, and if a scheduler was not asked.
    """
    partitions = reading.sound_configuration["systems"][0]["partitions"]
    batch = any(find_scheduler(part["scheduler"]).batch for part in partitions)
    if any(part["extras"]["exact"] for part in partitions) or (batch and scheduler is None):
        return []
    found = []
    for entry in reading.sound_configuration["environments"]:
        if entry["name"] in environments:
            pair = (scheduler or LOCAL).choose_launcher(build_mpi(entry))
            words = list(pair.launcher) if isinstance(pair.launcher, tuple) else pair.launcher
            if words != entry["extras"]["launcher"]:
                python = format_registered(words) if isinstance(words, str) else repr(words)
                known = f"known to work with {entry['extras']['family']}"
                found.append(f"{entry['name']}: {known}: launcher={python} ({pair.why})")
    return found


def build_mpi(entry: Mapping[str, Any]) -> Mpi:
    """Build the MPI of a site's environment, as far as the choice of a launcher depends on it."""
    extras = entry["extras"]
    module = entry["modules"][0] if entry["modules"] else ""
    mpiexec = str(find_companion_launcher(Path(extras["mpicc"])))
    return Mpi(entry["name"], extras["family"], "", extras["library"], "", "", extras["mpicc"], mpiexec, module)


EXAMPLE = "./plumbline site new mycluster"
FAILS = "see the commands below"

COMMANDS = {"new": NEW, "check": site_check, "try": TRY}
