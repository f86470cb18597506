"""A site's leave to compare what differs is never silent."""

from __future__ import annotations

from pathlib import Path

from launch_samples import CASES, PLACE, book_of, finished, reframe_says

from postprocess.acceptance import accepted_notes
from postprocess.judgement import verdicts

ACCEPTS = {"compiler": "gcc 13 was measured against 12 in May"}
OTHER = {"compiler": "gcc 13.1.0"}


def outcome(tmp_path: Path, accepts: dict[str, str]):
    book = book_of(finished(tmp_path / "before"))
    said = reframe_says(finished(tmp_path / "before"), book)
    done = finished(tmp_path / "now", said=said, run=OTHER, accepts=accepts)
    return verdicts([done], book, PLACE[0]), accepted_notes([done], book)


def test_another_compiler_is_not_comparable_and_named(tmp_path: Path):
    results, notes = outcome(tmp_path, {})
    assert {str(result.verdict) for result in results} == {"not-comparable"}
    assert "compiler is 'gcc 13.1.0', and" in results[0].reason
    assert notes == []


def test_what_the_site_accepts_is_judged_and_told_once(tmp_path: Path):
    results, notes = outcome(tmp_path, ACCEPTS)
    assert {str(result.verdict) for result in results} == {"pass"}
    (line,) = notes
    assert line.startswith(f"{len(CASES)} cases compared although compiler is 'gcc 13.1.0', and")
    assert line.endswith(f"accepted by the site: {ACCEPTS['compiler']}")


def test_leave_for_another_difference_is_none(tmp_path: Path):
    results, notes = outcome(tmp_path, {"flags": "whatever they may be"})
    assert {str(result.verdict) for result in results} == {"not-comparable"} and notes == []
