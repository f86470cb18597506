"""What a site's own ReFrame ran, judged, stored and reported like a night. Nothing is measured again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.strict_json import read_json
from postprocess.base.workdir import WorkDirectory
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch, list_places, read_plan, write_launch
from postprocess.model.session import Request, Session
from postprocess.parsers.reframe_report import ReportedTest, parse_test_entry
from postprocess.references.catalog import load_catalog
from postprocess.runner.reframe import ReframeDriver
from postprocess.runner.reframe_pass import finish_launch
from postprocess.session.context import SessionContext
from postprocess.session.finish import finish_session
from postprocess.setup.prepare import PreparedMachine

MAINTAINER = "plumbline"  #: of every check of ours, as ReFrame's report has it


@dataclass(frozen=True)
class ImportedTest:
    """A test of ours: what ReFrame says of it, and the folder that has its plan and raw files."""

    entry: ReportedTest
    folder: Path
    others: list[ReportedTest]  #: of its run: the builds that it needs


def read_imported_tests(path: Path) -> list[ImportedTest]:
    """Read our tests of a report of ReFrame's.

    :raises UsageError: if it is none, has no test of ours, or if the files of one are gone.
    """
    tests = []
    try:
        document = read_json(path)
        for run in document["runs"]:
            entries = [parse_test_entry(case) for case in run["testcases"]]
            for case, entry in zip(run["testcases"], entries, strict=True):
                if MAINTAINER in case["maintainers"] and not entry.fixture:
                    tests.append(ImportedTest(entry, find_files(path, case), entries))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a report of ReFrame's") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UsageError(f"{path}: is no report of ReFrame's; name a --report-file") from None
    if not tests:
        raise UsageError(f"{path}: has no test of Plumbline's; name another report")
    return tests


def find_files(path: Path, case: dict[str, Any]) -> Path:
    """Find the folder with the plan of a test: ReFrame moves what it keeps of a test that passed.

    :raises UsageError: if there is none, so that nobody can tell what the test was to measure.
    """
    for key in ("stagedir", "outputdir"):
        if case[key] and Path(case[key], "plan").is_dir():
            return Path(case[key])
    fix = "import it where ReFrame's stage and output folders are, before they are used again"
    raise UsageError(f"{path}: {case['unique_name']}: its files are gone; {fix}")


def import_reports(
    work: WorkDirectory, request: Request, paths: Sequence[Path], progress: Progress
) -> int:
    """Judge what is in reports of ReFrame's, in a new session; its exit status.

    :raises UsageError: for the first report that cannot be read as a whole.
    """
    tests = [test for path in paths for test in read_imported_tests(path)]
    with work.held():
        context = SessionContext(work, request, PreparedMachine(None, None), progress)
        session, reframe = context.open_session(request.mode)
        finished = import_launches(session, reframe, tests)
        catalog = load_catalog(context.reference_roots, list_places(e.launch for e in finished))
        results = evaluate_launches(finished, catalog, request.site)
        progress.note(
            f"imported {plural(len(finished), 'launch', 'es')} of {plural(len(paths), 'report')} of ReFrame's: "
            "nothing was measured again, so what is slow counts as regressed, and what is missing is not sought"
        )
        return finish_session(context, session, finished, results)


def import_launches(
    session: Session, reframe: ReframeDriver, tests: Sequence[ImportedTest]
) -> list[FinishedLaunch]:
    """Copy what each launch left into the session, numbered anew, and assess it.

    :raises UsageError: if two tests left one launch: the second one wrote over the first.
    """
    numbers: Counter[str] = Counter()
    tokens: set[str] = set()
    finished = []
    for test in tests:
        for planned in read_plan(test.folder):
            if planned.token in tokens:
                fix = "import each report before the next run, once"
                raise UsageError(f"{test.folder}: is of two runs, or was named twice; {fix}")
            tokens.add(planned.token)
            place = replace(planned, test="imported", number=0).name
            numbers[place] += 1
            launch = replace(planned, test="imported", number=numbers[place])
            copy_launch(test.folder, planned, session.directory, launch)
            entry = replace(test.entry, test="imported", directory=str(test.folder))
            finished.append(finish_launch(launch, reframe, [*test.others, entry]))
    return finished


def copy_launch(folder: Path, planned: PlannedLaunch, session: Path, launch: PlannedLaunch) -> None:
    """Copy plan and raw files of a launch into a session, under its name there."""
    write_launch(session, launch)
    for source in sorted((folder / "raw").glob("*")):
        if source.name.startswith(f"{planned.name}."):
            kept = launch.name + source.name.removeprefix(planned.name)
            files.replace_files({session / "raw" / kept: files.read_regular(source)})
