"""Failures that are expected: just those, and only for a while."""

import time
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from postprocess.base.errors import UsageError
from postprocess.judging import retest
from postprocess.judging.common_cause import find_common_causes
from postprocess.model.verdict import HEALTHY, CaseResult, Verdict, compute_exit_status
from postprocess.references import decisions
from postprocess.references.decisions import COLUMNS, KEYS, MOST_DAYS
from postprocess.report import overview, session_report
from postprocess.report.terminal import render_terminal
from postprocess.results.summary import parse_summary
from tests.support.factories.common import Noise, calibrated, cases, night
from tests.support.factories.launch import case
from tests.support.factories.report import few_cases, healthy_night
from tests.support.faults import Declared, plants

HEADER = "\t".join(COLUMNS)
TODAY = date(2026, 11, 22)
ROW = dict.fromkeys(KEYS, "*") | {
    "routine": "bcast",
    "verdicts": "regressed",
    "factor": "1.5",
    "reason": "the switch is being replaced",
    "ticket": "NET-7",
    "expires": "2026-12-31",
}


def written(tmp_path: Path, *rows: dict[str, str], text: str = "") -> Path:
    path = tmp_path / "local" / decisions.NAME
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = ["\t".join((ROW | row)[column] for column in COLUMNS) for row in rows]
    path.write_text(text or "".join(f"{line}\n" for line in (HEADER, *lines)))
    return path


def slow(factor: float = 1.3, verdict: Verdict = Verdict.REGRESSED, **changes) -> CaseResult:
    return CaseResult(
        case(**changes), verdict, "is slow", value=factor * 1e-6, reference=1e-6, band=(0, 1.1e-6)
    )


def excused(path: Path, result: CaseResult, today: date = TODAY) -> CaseResult:
    known, problems = decisions.parse_expected_file(path, TODAY)
    assert not problems
    return decisions.apply_expected_failures([result], {"local": known}, today)[0]


def test_what_fails_as_expected_keeps_its_verdict_and_counts_as_healthy(tmp_path: Path):
    result = excused(written(tmp_path, {}), slow())
    assert result.verdict is Verdict.REGRESSED
    assert result.expected == "the switch is being replaced (NET-7)"
    assert result.reason == f"is slow; expected until 2026-12-31: {result.expected}"
    assert compute_exit_status([result], strict=False) == 0
    assert compute_exit_status([result], strict=True) == 1
    assert compute_exit_status([result, slow(routine="barrier")], strict=False) == 1


@pytest.mark.parametrize(
    "result",
    [
        *(slow(verdict=verdict) for verdict in Verdict if verdict is not Verdict.REGRESSED),
        *(slow(1.51), slow(routine="barrier")),
        *(replace(slow(), reference=None), replace(slow(), value=None)),
    ],
)
def test_another_verdict_than_expected_or_worse_or_unknown_or_another_case_fails(tmp_path, result):
    assert excused(written(tmp_path, {}), result).expected == ""


def test_on_its_last_day_it_holds_and_then_no_more(tmp_path: Path):
    path = written(tmp_path, {})
    assert excused(path, slow(), date(2026, 12, 31)).expected
    late = excused(path, slow(), date(2027, 1, 1))
    assert late.expected == "" and compute_exit_status([late], strict=False) == 1


def test_several_verdicts_and_patterns(tmp_path: Path):
    row = {"verdicts": "crashed,timeout", "factor": "-", "environment": "mpich-*", "bytes": "1*"}
    path = written(tmp_path, row)
    for verdict in (Verdict.CRASHED, Verdict.TIMEOUT):
        assert excused(path, slow(verdict=verdict, size=1000)).expected
        assert not excused(path, slow(verdict=verdict, size=8)).expected
        assert not excused(path, slow(verdict=verdict, size=10, environment="openmpi-5")).expected


def test_a_routine_or_an_environment_is_enough_of_a_name(tmp_path: Path):
    assert excused(written(tmp_path, {"routine": "*", "environment": "mpich-*"}), slow()).expected
    assert excused(written(tmp_path, {"routine": "b?ast"}), slow()).expected


def test_an_expectation_of_another_system_says_nothing(tmp_path: Path):
    known, _ = decisions.parse_expected_file(written(tmp_path, {}), TODAY)
    (found,) = decisions.apply_expected_failures([slow()], {"elsewhere": known}, TODAY)
    assert found.expected == ""


@plants("files", "a cell that cannot be or excuses too much, in 27 ways",
        "expected failures", "", 2, "expected.tsv: row 2: ")  # fmt: skip
@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"verdicts": "pass"}, "verdicts: 'pass': choose from regressed"),
        ({"verdicts": "regressed,regressed"}, "verdicts: one is there twice"),
        ({"verdicts": ""}, "verdicts: ''"),
        ({"verdicts": "crashed"}, "factor: only what regressed has one"),
        ({"factor": "1"}, "factor: '1'; write the most slowdown"),
        ({"factor": "fast"}, "factor: 'fast'"),
        ({"factor": ""}, "factor: ''"),
        ({"factor": "1e9"}, "factor: '1e9'"),
        ({"factor": "-"}, "factor: '-'; write the most slowdown of regressed, as in 1.3"),
        ({"verdicts": "crashed,regressed", "factor": "-"}, "factor: '-'; write the most slowdown"),
        ({"reason": "  "}, "reason: '  '; write why"),
        ({"reason": "broken"}, "reason: 'broken'; write why"),
        ({"expires": ""}, "expires: ''; write a day"),
        ({"expires": "31.12.2026"}, "expires: '31.12.2026'; write a day"),
        ({"expires": "20261231"}, "expires: '20261231'; write a day"),
        ({"expires": "2026-02-30"}, "expires: '2026-02-30'; write a day"),
        ({"expires": str(TODAY + timedelta(days=MOST_DAYS + 1))}, "more than 400 days ahead"),
        ({"routine": ""}, "routine: '' is not a pattern"),
        ({"routine": "bcast|barrier"}, "routine: 'bcast|barrier' is not a pattern"),
        ({"routine": "*"}, "fits every case"),
        ({"routine": "**"}, "fits every case"),
        ({"routine": "?*"}, "fits every case"),
        ({"routine": "*", "partition": "*?", "processes": "?"}, "fits every case"),
        ({"routine": "*", "environment": "*-*", "bytes": "8"}, "name a routine or an environment"),
        ({"routine": "*", "program": "mpicost"}, "name a routine or an environment"),
        ({"routine": "?*", "partition": "cpu", "processes": "64"}, "fits every routine of every"),
        ({"verdicts": "regressed,incorrect"}, "verdicts: 'incorrect': choose from regressed"),
    ],
)
def test_a_row_with_a_fault_stops_the_session_in_one_line(
    tmp_path: Path, row, fault, monkeypatch: pytest.MonkeyPatch, declared: Declared
):
    monkeypatch.setattr(decisions, "utc_today", lambda: TODAY)
    path = written(tmp_path, row)
    (problem,) = decisions.parse_expected_file(path, TODAY)[1]
    assert problem.startswith(f"{path}: row 2: ") and fault in problem and "\n" not in problem
    with declared.raises(UsageError):
        decisions.load_expected_failures([tmp_path], ["local"])


@plants("files", "no table", "expected failures", "", 2, "expected.tsv: ")
@pytest.mark.parametrize("text", ["", "colour\n", HEADER, f"{HEADER}\nx\n", "\0\n"])
def test_a_damaged_file_stops_the_session(tmp_path: Path, text: str, declared: Declared):
    path = written(tmp_path, text=text or "\n")
    with declared.raises(UsageError, match=str(path)):
        decisions.load_expected_failures([tmp_path], ["local"])


def test_a_file_that_cannot_be_read_has_one_fault_and_no_row(tmp_path: Path):
    path = written(tmp_path, {})
    path.write_bytes(b"\xff" + path.read_bytes())
    rows, (problem,) = decisions.parse_expected_file(path, TODAY)
    assert rows == [] and problem.startswith(f"{path}: ")


def test_a_row_that_is_there_twice_or_says_less_than_one_above_is_named(tmp_path: Path):
    less = {"bytes": "8", "factor": "1.2", "expires": "2026-12-01"}
    more = [{"factor": "2"}, {"expires": "2027-01-31"}, {"verdicts": "regressed,crashed"}]
    path = written(tmp_path, {}, {}, less, *more)
    problems = decisions.parse_expected_file(path, TODAY)[1]
    found = [text.partition(" has no")[0] for text in problems]
    assert found == [f"{path}: row {row}:" for row in (3, 4)]


def test_the_first_root_with_a_file_counts(tmp_path: Path):
    written(tmp_path / "b", {})
    roots = [tmp_path / "a", tmp_path / "b"]
    (known,) = decisions.load_expected_failures(roots, ["local"])["local"]
    assert known.row == 2
    assert decisions.load_expected_failures([tmp_path / "a"], ["local"]) == {}


def noted(path: Path, *results: CaseResult, today: date = TODAY, whole: bool = True) -> list[str]:
    known, _ = decisions.parse_expected_file(path, TODAY)
    return list(decisions.check_expected_failures(results, {"local": known}, today, whole))


def test_what_is_wrong_with_an_expectation_is_noted(tmp_path: Path):
    path = written(tmp_path, {})
    fine, skipped = (slow(verdict=verdict) for verdict in (Verdict.PASS, Verdict.SKIPPED))
    assert noted(path, slow()) == []
    assert "no longer fails" in noted(path, fine)[0]
    assert noted(path, fine, slow(size=9)) == []
    assert noted(path, skipped) == []
    assert "nothing that is measured fits" in noted(path, slow(routine="barrier"))[0]
    assert noted(path, fine, whole=False) == noted(path, whole=False) == []
    for whole in (True, False):
        (line,) = noted(path, slow(), today=date(2027, 1, 1), whole=whole)
        assert "row 2: expired on 2026-12-31" in line


def test_lint_names_what_expired_and_what_fits_no_case(tmp_path: Path):
    path = written(tmp_path, {})
    assert decisions.lint_expected_file(path, TODAY, [case()]) == []
    assert "expired on" in decisions.lint_expected_file(path, date(2027, 1, 1))[0]
    (said,) = decisions.lint_expected_file(path, TODAY, [case("barrier", 0)])
    assert "no case with a reference" in said


def test_every_failing_verdict_but_wrong_data_can_be_expected_and_no_other():
    assert set(decisions.VERDICTS.values()) == set(Verdict) - HEALTHY - {Verdict.INCORRECT}


def test_what_a_common_cause_slows_is_not_excused_and_its_rows_say_so(tmp_path: Path):
    random, quiet = np.random.default_rng(1), Noise(night=0.003, launch=0.003, own=0.02)
    catalog = calibrated(random, cases(), quiet)
    measured = night(random, cases(), catalog, quiet, lambda _: 0.07)
    causes = find_common_causes(measured, catalog, {})
    named = retest.name_confirmed_causes(measured, causes)
    after = [replace(result, reason=f"another sentence; {result.reason}") for result in named]
    failing = [result for result in after if result.cause]
    rows = [{key: str(getattr(result.case, key)) for key in KEYS} for result in failing]
    path = written(tmp_path, *rows)
    known, problems = decisions.parse_expected_file(path, TODAY)
    assert not problems and 0 < len(failing) < len(after)
    final = decisions.apply_expected_failures(after, {"local": known}, TODAY)
    assert final == after and compute_exit_status(final, strict=False) == 1
    lines = noted(path, *after, whole=False)
    assert len(lines) == len(rows)
    assert "row 2: did not apply to 1 case that it expects, which one cause slows" in lines[0]


@pytest.mark.parametrize("verdict", [Verdict.INCOMPLETE, Verdict.CRASHED, Verdict.TIMEOUT])
def test_a_session_that_measured_nothing_fails_whatever_is_expected(tmp_path: Path, verdict):
    path = written(tmp_path, {"verdicts": str(verdict), "factor": "-"})
    lost = excused(path, replace(slow(verdict=verdict), value=None))
    assert lost.expected
    assert compute_exit_status([lost], strict=False) == 1
    assert compute_exit_status([lost, CaseResult(case(), Verdict.SKIPPED)], strict=False) == 1
    assert compute_exit_status([lost, CaseResult(case(), Verdict.PASS)], strict=False) == 0


def test_the_day_is_that_of_utc(tmp_path: Path, monkeypatch):
    """An hour before midnight UTC it is tomorrow already in the east."""

    def problems(day: date) -> list[str]:
        path = written(tmp_path, {"expires": str(day)})
        return decisions.parse_expected_file(path)[1]

    monkeypatch.setattr(decisions, "datetime", Late)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        farthest = Late.now(timezone.utc).date() + timedelta(days=MOST_DAYS)
        assert problems(farthest) == []
        (problem,) = problems(farthest + timedelta(days=1))
        assert "more than 400 days ahead" in problem
    finally:
        monkeypatch.undo()
        time.tzset()


class Late(datetime):
    """A clock an hour before midnight, UTC."""

    @classmethod
    def now(cls, tz=None):
        return datetime(2031, 11, 22, 23, tzinfo=timezone.utc).astimezone(tz)


def summary_of_expected(strict: bool):
    """A good night, but that one case crashed as expected."""
    night = healthy_night(few_cases())
    summary = parse_summary(night.document())
    first, *others = summary.results
    reason = "died; expected until 2026-12-31: a known fault"
    failure = CaseResult(first.case, Verdict.CRASHED, reason, expected="a known fault")
    results = (failure, *others)
    status = compute_exit_status(results, strict)
    return replace(summary, results=results, strict=strict, exit_status=status)


@pytest.mark.parametrize("strict", [False, True])
def test_table_headline_last_line_and_status_agree(strict: bool):
    summary = summary_of_expected(strict)
    assert summary.good is not strict
    assert bool(summary.failed) is strict
    text = render_terminal(summary, 200, terminal=False)
    assert "expected until" in text  # listed, whatever it counts for
    assert "1 failed as expected" in overview.format_last_line(summary)
    assert ("No other failure" in overview.format_headline(summary)) is not strict
    words = " ".join(text.split())  # it may be wrapped
    assert words.endswith("(strict, exit status 1)" if strict else "(exit status 0)")
    html, markdown = (session_report.render_html(summary, {}), session_report.render_markdown(summary))
    for page in (html, markdown):
        assert "a known fault" in page
        assert ("No other failure" in page) is not strict
