"""What a site's own ReFrame ran, judged, stored and reported like a night. Nothing is measured again."""

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.records import Journal, parse_record
from postprocess.base.sanitize import sanitize_line
from postprocess.base.strict_json import parse_json, read_json
from postprocess.base.workdir import WorkDirectory
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch, list_places, read_launch_file, read_plan, write_launch
from postprocess.model.session import Request, Session
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.reframe_report import ReportedTest, find_blocking_test, parse_test_entry
from postprocess.references.catalog import load_catalog
from postprocess.results import store
from postprocess.runner.reframe import ReframeDriver
from postprocess.runner.reframe_pass import finish_launch
from postprocess.session.lifecycle.context import IMPORTED, SessionContext
from postprocess.session.lifecycle.finish import finish_session
from postprocess.setup import PreparedMachine
from spack_envs.installation import locate_program_file

OLDEST_REFRAME = (4, 10, 3)  #: that the checks run under
PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd", b"PK\x03\x04")  #: how packed files begin
LOG = "imported.jsonl"  #: of the work directory: the launches that are stored, for when sessions are gone
MAINTAINER = "plumbline"  #: of every check of ours, as ReFrame's report has it
PASSED = {"pass", str(Verdict.PROVISIONAL)}  #: what ReFrame's table says of a value that fails no test
#: Phases of ReFrame in which a test that fails has planned nothing.
BEFORE_PLAN = ("startup", "setup")


@dataclass(frozen=True)
class ImportedTest:
    """A test of ours: what ReFrame says of it, and the folder that has its plan and raw files."""

    report: Path
    entry: ReportedTest
    folder: Path | None  #: None if it was left out, before it planned anything
    others: list[ReportedTest]  #: of its run: the builds that it needs
    run: str = ""  #: what ReFrame calls the run; empty if it does not tell

    def __str__(self) -> str:
        return f"{self.entry.test} on {self.entry.partition} with {self.entry.environment}"

    @property
    def why_left_out(self) -> str:
        """Why it planned nothing, in ReFrame's words."""
        blocked = find_blocking_test(self.others, self.entry)
        return (blocked.reason if blocked else self.entry.reason) or self.entry.result


@dataclass(frozen=True)
class ImportedLaunch:
    """A launch of such a test: as it was planned, and as it is called in the session."""

    test: ImportedTest
    planned: PlannedLaunch
    launch: PlannedLaunch


@dataclass(frozen=True)
class Imported:
    """A launch that was imported before: a line of the log."""

    token: str
    session: str
    run: str = ""  #: what ReFrame calls the run


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
                    folder = find_files(path, case, entry)
                    tests.append(ImportedTest(path, entry, folder, entries, name_run(document)))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a report of ReFrame's") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UsageError(f"{path}: {explain_no_report(path)}") from None
    if not tests:
        raise UsageError(f"{path}: has no test of Plumbline's; name another report")
    return tests


def name_run(document: dict[str, Any]) -> str:
    """Return what ReFrame calls the run of a report; empty if it does not tell."""
    return str(document.get("session_info", {}).get("uuid", ""))


def explain_no_report(path: Path) -> str:
    """Explain why a file cannot be read as a report: it is damaged, of another version, or something else."""
    data = files.read_regular(path)
    text = data.decode(errors="replace").strip()
    if not text:
        return "is empty; ReFrame wrote no report, or the disk was full: name another"
    if data.startswith(PACKED):
        return "is packed; unpack it first"
    try:
        document = parse_json(text)
    except ValueError:
        if text[0] == "{" and not text.endswith("}"):
            return "is cut off; ReFrame was ended while it wrote it, or the disk was full: name another"
        return "is not a report of ReFrame's, and no JSON; name a --report-file"
    about = document.get("session_info") if isinstance(document, dict) else None
    version = about.get("version") if isinstance(about, dict) else None
    if not isinstance(version, str):
        return "is not a report of ReFrame's; name a --report-file"
    if list(map(int, re.findall(r"\d+", version)[:3])) < list(OLDEST_REFRAME):
        oldest = ".".join(map(str, OLDEST_REFRAME))
        return f"is a report of ReFrame {sanitize_line(version)}; run the checks with {oldest} or newer"
    return f"is a report of ReFrame {sanitize_line(version)}, and damaged; name another"


def find_files(path: Path, case: dict[str, Any], entry: ReportedTest) -> Path | None:
    """Find the folder with the plan of a test: ReFrame moves what it keeps of a test that passed.

    None for a test that was left out before it planned anything, as after a failed build.

    :raises UsageError: if there is none: then what the test was to measure is unknown.
    """
    for key in ("stagedir", "outputdir"):
        if case[key] and Path(case[key], "plan").is_dir():
            return Path(case[key])
    if entry.result != "pass" and (not case["stagedir"] or entry.phase in BEFORE_PLAN):
        return None
    fix = "import it where ReFrame's stage and output folders are, before they are used again"
    raise UsageError(f"{path}: {entry.test}: its files are gone; {fix}")


def import_reports(work: WorkDirectory, request: Request, paths: Sequence[Path], progress: Progress) -> int:
    """Judge what is in reports of ReFrame, in a new session. Returns its exit status.

    A test that was left out fails the session: which cases it would have had is unknown.

    :raises UsageError: for the first report that cannot be read as a whole, or was imported before.
    """
    tests = [test for path in paths for test in read_imported_tests(path)]
    ran, left_out = [each for each in tests if each.folder], [e for e in tests if not e.folder]
    if not ran:
        told = f"{left_out[0]} was left out: {left_out[0].why_left_out}"
        raise UsageError(f"{left_out[0].report}: no test was run; {told}")
    with work.held():
        discard_unfinished_imports(work)
        launches = number_launches(ran, find_imported(work))
        context = SessionContext(work, request, PreparedMachine(None, None), progress)
        session, reframe = context.open_session(request.mode)
        finished = [import_launch(session, reframe, launch) for launch in launches]
        catalog = load_catalog(context.reference_roots, list_places(e.launch for e in finished))
        evaluated = evaluate_launches(finished, catalog, request.site, request.rerun_options)
        results = [doubt_passed_case(result, finished) for result in evaluated]
        progress.note(
            f"imported {plural(len(finished), 'launch', 'es')} of {plural(len(paths), 'ReFrame report')}: slow "
            "cases count as regressed (no confirmation), those that ReFrame passed as suspect; missing cases "
            "are not looked for"
        )
        entries = [asdict(Imported(e.launch.token, session.name, e.test.run)) for e in launches]
        Journal(work.root / LOG, "make room").append(*entries)
        for test in left_out:
            progress.note(f"{test} was left out, and its cases are missing: {test.why_left_out}")
        return finish_session(context, session, finished, results, whole=not left_out)


def doubt_passed_case(result: CaseResult, finished: Sequence[FinishedLaunch]) -> CaseResult:
    """Return a slow case as suspect if ReFrame passed it: only the mean of its trials is slow, or the median.

    ReFrame judges the value of each launch by the band of one launch; that of a median is narrower.
    """
    variable = result.case.variable
    said = {run.asserted.get(variable) for run in finished if result.case in run.launch.cases}
    if result.verdict is not Verdict.REGRESSED or not (result.by_headline or said <= PASSED):
        return result
    reason = f"{result.reason}; nothing confirmed it: ./plumbline nightly does"
    return replace(result, verdict=Verdict.SUSPECT, reason=reason)


def discard_unfinished_imports(work: WorkDirectory) -> None:
    """Remove imports that did not come as far as the store, as on a full disk: all they hold are copies."""
    plans = work.sessions.glob(f"*/plan/{IMPORTED}.*.json")
    for session in {path.parent.parent for path in plans}:
        if not (work.store / f"{session.name}{store.SUFFIX}").exists():
            shutil.rmtree(session)


def find_imported(work: WorkDirectory) -> dict[str, Imported]:
    """Find each launch that was imported before, by its token: in the log and the sessions."""
    found = {}
    plans = sorted(work.sessions.glob(f"*/plan/{IMPORTED}.*.json"))
    for path in plans:
        token = read_launch_file(path).token
        found[token] = Imported(token, path.parent.parent.name)
    log = work.root / LOG
    for line in files.read_text(log, "replace").splitlines() if log.exists() else ():
        try:
            entry = parse_record(parse_json(line), Imported)
        except ValueError:  # cut off, by a kill or a full disk: then the session has it
            continue
        if entry.token in found or (work.store / f"{entry.session}{store.SUFFIX}").exists():
            found[entry.token] = entry
    return found


def number_launches(tests: Sequence[ImportedTest], known: Mapping[str, Imported]) -> list[ImportedLaunch]:
    """Give the launches of these tests numbers: in the session, those of one place are of one test.

    :param known: launches that are stored, by their tokens
    :raises UsageError: if a launch is stored, or if two tests left one: the second wrote over the first.
    """
    numbers: Counter[str] = Counter()
    tokens: set[str] = set()
    found = []
    for test in tests:
        for planned in read_plan(test.folder) if test.folder else ():
            if earlier := known.get(planned.token):
                told = f"{test} was imported before, in session {earlier.session}"
                if earlier.run and test.run and earlier.run != test.run:
                    told = (
                        f"{test}: another run wrote over its files, which were imported in session "
                        f"{earlier.session}; import each report before the next run"
                    )
                raise UsageError(f"{test.report}: {told}; leave this report out")
            if planned.token in tokens:
                fix = "import each report before the next run, once"
                raise UsageError(f"{test.folder}: is of two runs, or was named twice; {fix}")
            tokens.add(planned.token)
            place = replace(planned, test=IMPORTED, number=0).name
            numbers[place] += 1
            launch = replace(planned, test=IMPORTED, number=numbers[place])
            found.append(ImportedLaunch(test, planned, launch))
    return found


def import_launch(session: Session, reframe: ReframeDriver, one: ImportedLaunch) -> FinishedLaunch:
    """Copy plan, raw files and the record of its program into a session, and assess the launch.

    Plan and raw files get the launch's name in the session.
    """
    folder = one.test.folder
    assert folder  # it has planned something
    write_launch(session.directory, one.launch)
    for source in sorted((folder / "raw").glob("*")):
        if source.name.startswith(f"{one.planned.name}."):
            kept = one.launch.name + source.name.removeprefix(one.planned.name)
            files.replace_files({session.directory / "raw" / kept: files.read_regular(source)})
    built = locate_program_file(Path(), one.launch.environment, one.launch.program)
    if (record := folder / built).exists():  # mpicost says itself how it was built
        files.replace_files({session.directory / built: files.read_regular(record)})
    entry = replace(one.test.entry, test=IMPORTED, directory=str(folder))
    return finish_launch(one.launch, reframe, [*one.test.others, entry])
