"""Reports of a site's own ReFrame: each is stored once, and what was left out or is no report is told."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postprocess.main import main
from postprocess.model.launch import LaunchOutcome
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.session.lifecycle import finish
from postprocess.session.nightly.imported import doubt_passed_case
from tests.support.factories import record
from tests.support.factories.launch import CASES, PLACE, VALUES, finished, leave, planned
from tests.support.faults import each_of, plants
from tests.support.paths import ROOT

LEFT_OUT = LaunchOutcome(None, Verdict.INCOMPLETE, "")
SITE = str(ROOT / "site_configs" / "local.py")


def ran(folder: Path, token: str) -> dict[str, Any]:
    """What ReFrame reports of a test of one launch, which left its files in this folder."""
    launch = replace(planned(), token=token, options=("--trials=51",))
    told = {"token": token, "command": ["mpicost", "--trials=51", f"--token={token}"]}
    first, *cases, end = record.launch(**told)
    leave(folder, launch, [first, *cases, end | {"token": token}])
    launch.span(folder).write_text("1795251600\n1795251613\n")  # as the records tell
    place = ":".join(PLACE[:2])
    values = {
        f"{place}:{name}": [value, None, None, None, unit, "pass"] for name, (value, unit) in VALUES.items()
    }
    return told_of("luecke_0", result="pass", stagedir=str(folder), perfvalues=values)


def told_of(name: str, **more: Any) -> dict[str, Any]:
    """What ReFrame reports of any test of ours."""
    system, partition, environment = PLACE
    case = {"unique_name": name, "system": system, "partition": partition, "environ": environment}
    case |= {"maintainers": ["plumbline"], "fixture": False, "stagedir": None, "outputdir": None}
    return case | more


def not_built(folder: Path) -> list[dict[str, Any]]:
    """A build that failed, and a test that ReFrame left out for it."""
    folder.mkdir()
    (folder / "build.err").write_text("cc: no such compiler\n")
    failed = {"result": "fail", "fail_phase": "compile_wait", "fail_reason": "exit code 127"}
    where = {"stagedir": str(folder), "build_stderr": "build.err", "fixture": True}
    needs = ["build_mpicost", ":".join(PLACE[:2]), PLACE[2]]
    skipped = told_of("luecke_0", result="skip", dependencies_actual=[needs])
    return [told_of("build_mpicost", **failed, **where), skipped]


def write(path: Path, *cases: dict[str, Any], run: str = "") -> Path:
    about = {"session_info": {"uuid": run, "version": "4.10.4"}} if run else {}
    path.write_text(json.dumps(about | {"runs": [{"testcases": cases}]}))
    return path


def plumbline_import(home: Path, *words: Path | str) -> int:
    return main(str(ROOT), str(home), ["import", "--site", SITE, *map(str, words)])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def kept(home: Path) -> list[list[Path]]:
    """All sessions, and all that is stored of them."""
    return [sorted(home.glob(pattern)) for pattern in ("sessions/*", "store/*.parquet")]


def test_a_report_is_stored_once(tmp_path: Path, home: Path, capfd) -> None:
    """Beside another one too: then nothing of both is stored."""
    first = write(tmp_path / "first.json", ran(tmp_path / "1", "a"), ran(tmp_path / "2", "b"))
    summary = tmp_path / "summary.json"
    assert plumbline_import(home, first, "--json", summary) == 1, capfd.readouterr()
    cases = json.loads(summary.read_text())["cases"]
    assert {(case["verdict"], case["launches"]) for case in cases} == {("no-reference", 2)}
    before = kept(home)
    assert list(map(len, before)) == [1, 1]
    second = write(tmp_path / "second.json", ran(tmp_path / "3", "c"))
    capfd.readouterr()
    assert plumbline_import(home, second, first) == 2
    session = before[0][0].name
    told = f"{first}: luecke_0 on local:cpu with mpich-5_0_2 was imported before, in session {session}"
    assert capfd.readouterr().err == f"plumbline: {told}; leave this report out\n"
    assert plumbline_import(home, second, second) == 2
    assert "is of two runs, or was named twice" in capfd.readouterr().err
    assert kept(home) == before


@plants("stale", "files of a later run, and sessions that are gone", "a report of ReFrame that is imported",
        "", 2, "another run wrote over its files, which were | was imported before, in session")  # fmt: skip
def test_a_report_whose_files_are_of_another_run_is_not_called_imported(tmp_path, home: Path, capfd, declared):
    case = ran(tmp_path / "1", "b")
    later = write(tmp_path / "later.json", case, run="2")
    assert plumbline_import(home, later) == 1, capfd.readouterr()
    earlier = write(tmp_path / "earlier.json", case, run="1")
    capfd.readouterr()
    status = plumbline_import(home, earlier)
    told = capfd.readouterr().err
    assert "another run wrote over its files" in told
    shutil.rmtree(home / "sessions")
    assert plumbline_import(home, later) == 2
    again = capfd.readouterr().err
    assert "was imported before" in again and len(kept(home)[1]) == 1
    declared.check((), status, [told, again])


OLDER = '{"session_info": {"version": "4.3.3"}, "runs": [{"testcases": [{"name": "x"}]}]}'
NO_REPORTS = {
    b"": plants("files", "nothing", "a report of ReFrame", "", 2, "is empty; ReFrame wrote no report"),
    b'{"runs": [{"testca': plants("files", "the end lost", "a report of ReFrame", "", 2,
        "is cut off; ReFrame was ended while it wrote it"),
    b"\x1f\x8b\x08packed": plants("files", "packed", "a report of ReFrame", "", 2,
        "is packed; unpack it first"),
    OLDER.encode(): plants("files", "of an older ReFrame", "a report of ReFrame", "", 2,
        "is a report of ReFrame 4.3.3; run the checks with 4.10.3 or newer"),
    b"[1]": plants("files", "another kind of file", "a report of ReFrame", "", 2,
        "is not a report of ReFrame's; name a --report-file"),
}  # fmt: skip


@pytest.mark.parametrize("data", each_of(NO_REPORTS))
def test_why_a_file_is_no_report_is_told(tmp_path, home: Path, capfd, data: bytes, declared):
    (tmp_path / "report.json").write_bytes(data)
    status = plumbline_import(home, tmp_path / "report.json")
    declared.check((), status, [capfd.readouterr().err])


def test_what_a_report_left_out_fails_the_session(tmp_path, home: Path, monkeypatch):
    """Its cases are unknown, and all others may be healthy. What was measured is stored all the same."""
    monkeypatch.setattr(finish, "compute_exit_status", lambda *_: 0)
    build = not_built(tmp_path / "build")
    report = write(tmp_path / "report.json", *build, ran(tmp_path / "1", "a"))
    summary = tmp_path / "summary.json"
    assert plumbline_import(home, report, "--json", summary) == 1
    told = json.loads(summary.read_text())
    line = "luecke_0 on local:cpu with mpich-5_0_2 was left out, and its cases are missing: the build failed"
    assert any(note.startswith(f"{line}: exit code 127: cc: no such") for note in told["notes"])
    assert (told["exit_status"], len(kept(home)[1])) == (1, 1)


@plants("files", "nothing in it ran", "a report of ReFrame that is imported", "", 2,
        "no test was run; luecke_0 on local:cpu with mpich-5_0_2 was left out: the build")  # fmt: skip
def test_a_report_in_which_nothing_ran_is_refused(tmp_path, home: Path, capfd, declared):
    report = write(tmp_path / "report.json", *not_built(tmp_path / "build"))
    assert plumbline_import(home, report) == 2
    told = capfd.readouterr().err
    assert "no test was run; luecke_0 on local:cpu with mpich-5_0_2 was left out: the build" in told
    assert told.count("\n") == 1 and kept(home) == [[], []]
    declared.check((), 2, [told])


GONE = told_of("luecke_0", result="pass", stagedir="", outputdir="/nowhere")
STRANGE = told_of("stream", result="pass") | {"maintainers": ["somebody"]}


@plants("files", "missing, no JSON, of other checks, or with its files gone",
        "a report of ReFrame that is imported", "", 2, "report.json: ")  # fmt: skip
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "No such file or directory; name a report of ReFrame's"),
        ("not JSON", "is not a report of ReFrame's"),
        ("[]", "is not a report of ReFrame's"),
        ('{"runs": [{"testcases": [{}]}]}', "is not a report of ReFrame's"),
        ('{"runs": []}', "has no test of Plumbline's"),
        (json.dumps({"runs": [{"testcases": [STRANGE]}]}), "has no test of Plumbline's"),
        (json.dumps({"runs": [{"testcases": [GONE]}]}), "luecke_0: its files are gone; import it"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path, home, capfd, text, told, declared):
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text)
    assert plumbline_import(home, path) == 2
    said = capfd.readouterr().err
    assert said.startswith(f"plumbline: {path}: ") and told in said and said.count("\n") == 1
    assert kept(home) == [[], []]
    declared.check((), 2, [said])


@pytest.mark.parametrize(
    ("by_headline", "said", "verdict"),
    [
        (True, ("pass",), "suspect"),
        (False, ("fail",), "regressed"),
        (False, ("pass", "provisional", "pass"), "suspect"),  # the median alone is beyond its band
        (False, ("pass", "fail", "fail"), "regressed"),
        (False, ("no-reference",), "regressed"),  # then; by the reference of today
        (False, (None,), "regressed"),
    ],
)
def test_what_reframe_passed_is_suspect_at_most(tmp_path, by_headline, said, verdict) -> None:
    """Only a night measures again what the mean of all trials or the median of launches calls slow."""
    slow = CaseResult(CASES[0], Verdict.REGRESSED, "1.2 times as slow", by_headline=by_headline)
    launches = [
        finished(tmp_path, number=number, said={CASES[0].variable: word} if word else {})
        for number, word in enumerate(said, 1)
    ]
    other = finished(tmp_path, number=9, cases=CASES[1:], said={CASES[0].variable: "fail"}, outcome=LEFT_OUT)
    judged = doubt_passed_case(slow, [*launches, other])
    assert str(judged.verdict) == verdict
    assert ("nothing confirmed it" in judged.reason) == (verdict == "suspect")
    assert doubt_passed_case(replace(slow, verdict=Verdict.PASS), launches).verdict is Verdict.PASS
