"""What each command of the command line does."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from postprocess import agree_command, links_command, linting, listing, night, summaries
from postprocess import doctor as doctor_page
from postprocess import mirror_command as mirrors
from postprocess import papers as views
from postprocess import site_check as checking_sites
from postprocess import site_new as making_sites
from postprocess import site_try as trying_sites
from postprocess.building import build_programs
from postprocess.calibration_pass import calibration
from postprocess.desk import Request
from postprocess.errors import UsageError
from postprocess.keeping import check_json_file
from postprocess.preparation import Prepared, prepare
from postprocess.programs import read_program
from postprocess.progress import Progress
from postprocess.reference_trials import as_references
from postprocess.reframe_driver import Selection
from postprocess.report import build_report
from postprocess.rounds import Demand
from postprocess.site_files import site_file
from postprocess.store import read_sessions
from postprocess.tables import verdict_table
from postprocess.workdir import WorkDirectory
from site_configs import inventory

Command = Callable[[WorkDirectory, argparse.Namespace], int]


#: Options that some programs do not have, or not with this value, and the programs that do.
OPTIONS_OF = {
    ("trials", None): ("mpicost",),
    ("iterations", None): ("osu", "imb"),
    ("cache", "flush"): ("mpicost",),
    ("cache", "rotate"): ("imb",),
}

#: Commands that measure as the references were measured.
HELD_AGAINST = ("nightly", "run", "list", "selftest")


def refuse_without_effect(arguments: argparse.Namespace) -> None:
    """An option that no chosen program has is a mistake, and its silence would be taken for a result.

    :raises UsageError: naming the option.
    """
    for (name, only), programs in OPTIONS_OF.items():
        value, chosen = getattr(arguments, name), arguments.program
        if value and only in (None, value) and chosen and not {*chosen} & {*programs}:
            raise UsageError(
                f"--{name} {value}: is for {' and '.join(programs)} only, and --program "
                f"{','.join(chosen)} chooses no such program; drop one of the two options"
            )


def selection(work: WorkDirectory, arguments: argparse.Namespace, launches: int = 1) -> Selection:
    """The user's choice in terms of the checks."""
    refuse_without_effect(arguments)
    choice = {
        "programs": arguments.program,
        "routines": arguments.routine,
        "sizes": arguments.bytes,
        "partitions": arguments.partition,
        "processes": arguments.processes,
        "per_node": arguments.per_node,
        "peers": arguments.peers,
        "trials": arguments.trials,
        "iterations": arguments.iterations,
        "cache": arguments.cache,
        "sync": arguments.sync,
        "time_limit": arguments.time_limit and f"{arguments.time_limit}s",
        "strict": getattr(arguments, "strict", False),
    }
    set_env: dict[str, dict[str, str]] = {}
    for environment, name, value in arguments.set_env:
        if arguments.environment and environment not in arguments.environment:
            raise UsageError(f"--set-env {environment}: is not among those of --environment")
        set_env.setdefault(environment, {})[name] = value
    return Selection(
        site=site_file(work.source, arguments.site),
        environments=arguments.environment,
        choice={name: value for name, value in choice.items() if value},
        launches=launches,
        set_env=set_env,
        oversubscribe=arguments.oversubscribe,
    )


def request(work: WorkDirectory, arguments: argparse.Namespace) -> Request:
    """The whole of what the user asks for."""
    json_file = getattr(arguments, "json", None)
    check_json_file(json_file)
    searched = getattr(arguments, "references", None)
    if searched and not searched.is_dir():
        raise UsageError(f"--references {searched}: is not a directory; name one that is there")
    references = searched or getattr(arguments, "output", None)
    chosen = selection(work, arguments, getattr(arguments, "launches", None) or 1)
    return Request(
        mode=arguments.name,
        command=["./plumbline", *sys.argv[1:]],
        site=arguments.site,
        selection=as_references(chosen) if arguments.name in HELD_AGAINST else chosen,
        families=arguments.mpis,
        strict=getattr(arguments, "strict", False),
        json_file=json_file,
        references=references and references.absolute(),  # ReFrame runs in another directory
        rerun_options=rerun_options(arguments),
    )


def rerun_options(arguments: argparse.Namespace) -> list[str]:
    """The options under which a case was measured, beside those that choose it."""
    words = ["--mpis", ",".join(arguments.mpis)] if arguments.mpis else []
    words += ["--oversubscribe"] if arguments.oversubscribe else []
    words += [f"--set-env={place}:{name}={value}" for place, name, value in arguments.set_env]
    if references := getattr(arguments, "references", None):
        words += ["--references", str(references)]
    return words


def nightly(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Build, run, judge, keep, report."""
    return night.night(work, request(work, arguments), Progress())


def calibrate(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure references."""
    demand = Demand(arguments.launches, arguments.at_most, arguments.afresh, arguments.seconds)
    asked = request(work, arguments)
    one = replace(asked, selection=replace(asked.selection, launches=1))
    return calibration(work, one, Progress(), demand)


def links(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Compare all pairs of nodes with each other, and name what is slow."""
    least, per_switch = arguments.least / 100, arguments.nodes_per_switch or 0
    demand = links_command.Demand(least, arguments.launches, per_switch)
    asked = request(work, arguments)
    return links_command.links(work, asked, demand, Progress())


def agree(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Compare mpicost, OSU and IMB with each other, and name who differs."""
    asked = request(work, arguments)
    return agree_command.agree(work, asked, arguments.launches, Progress())


def list_cases(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """The cases that would run, with an estimate of the time."""
    return listing.list_cases(work, request(work, arguments), Progress())


def setup(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Find or fetch everything that a session needs, and build the programs."""
    return set_up(work, arguments, build_programs)


def doctor(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """What was found on this machine, and why something is not usable."""
    return set_up(work, arguments, lambda *_: 0)


def set_up(
    work: WorkDirectory,
    arguments: argparse.Namespace,
    build: Callable[[WorkDirectory, Prepared, Progress], int],
) -> int:
    """Find or fetch everything that a session needs; then build, and fail if something does not build."""
    site_file(work.source, arguments.site)
    progress = Progress()
    with work.held():
        with progress.phase("set-up"):
            prepared = prepare(
                work, arguments.site, arguments.mpis, progress, True, arguments.mirror
            )
        doctor_page.show(work, prepared, progress)
        with progress.phase("build"):
            failures = build(work, prepared, progress)
    if failures:
        progress.say(f"{failures} program(s) could not be built: see the notes above")
    return 1 if failures else 0


def report(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write the report of a session again, and show its verdicts."""
    directory = finished_session(work, arguments.session)
    summary = summaries.load_summary(directory / "summary.json")
    paths = build_report(directory, read_sessions(work.store, [directory.name]))
    verdict_table(summary, Progress().console.width)
    for path in paths:
        print(path)
    return summary.exit_status


def papers(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show a session as the papers do, and write that with its pictures beside the report."""
    directory = finished_session(work, arguments.session)
    summary = summaries.load_summary(directory / "summary.json")
    found = views.parts(summary, arguments.against, arguments.processes)
    if not found:
        missing = "several process counts or partitions of mpicost"
        raise UsageError(f"{directory}: nothing to compare; choose a session with {missing}")
    print(views.as_text(found), flush=True)
    Progress().say("drawing the pictures")
    for path in views.write(directory, summary, found):
        print(path)
    return 0


def finished_session(work: WorkDirectory, name: str | None) -> Path:
    """The directory of a session that came to a summary, the last one unless named.

    :raises UsageError: if there is none.
    """
    directory = work.sessions / name if name else work.last_session()
    if directory is None or not (directory / "summary.json").exists():
        raise UsageError(
            f"{directory or work.sessions}: no finished session there; ./plumbline nightly makes one"
        )
    return directory


def lint(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Check the files that people write."""
    return linting.lint(work, arguments.paths, Progress())


def site_new(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write a site file of the machine at hand."""
    chosen = (arguments.site, arguments.output, arguments.scheduler, arguments.mpis)
    return making_sites.new(work, *chosen, Progress())


def site_check(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Say what is wrong with a site file, and what a night on it costs."""
    with work.held():
        return checking_sites.check(work, arguments.site, Progress())


def site_try(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Launch two processes on every partition with every MPI."""
    return trying_sites.attempt(work, arguments.site, arguments.environment, Progress())


def mirror_create(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Gather everything that a machine without a network needs."""
    with work.held():
        return mirrors.create(work, arguments.folder, arguments.source, Progress())


def mirror_check(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Verify a mirror."""
    return mirrors.check(arguments.folder, Progress())


def where(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Print the absolute path of a program of an environment."""
    if arguments.program == "mpicost":
        print(read_program(work.root, arguments.environment, "mpicost").path)
        return 0
    try:
        mpis = {mpi.name: mpi for mpi in inventory.load(work.root).mpis}
    except LookupError as error:
        raise UsageError(str(error)) from None
    if arguments.environment not in mpis:
        raise UsageError(f"--environment {arguments.environment}: not among {', '.join(mpis)}")
    print(getattr(mpis[arguments.environment], arguments.program))
    return 0


#: All tests: those of functions beside each other on all cores, those that start MPI programs or Spack alone.
ALL_TESTS = (
    ("-n", "auto", "-m", "not mpi and not spack"),
    ("-m", "mpi or spack"),
)


def test(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Run the tests of the package itself."""
    with work.held():
        prepare(work, "local", None, Progress())
    statuses = [
        subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            check=False,
            cwd=work.source,
            env=test_environment(work),
        ).returncode
        for words in ([arguments.words] if arguments.words else ALL_TESTS)
    ]
    return max(map(abs, statuses))


def test_environment(work: WorkDirectory) -> dict[str, str]:
    """The environment of the tests: the work directory's MPIs and programs are theirs to use."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return os.environ | {"PLUMBLINE_HOME": str(work.root), "PATH": path}
