"""What is told of drift: many cases at once, the worst first, in the terminal, on the page and to programs."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from postprocess.analyses import drift_page, drift_report
from postprocess.analyses.drift import Trend, detect_trends
from postprocess.analyses.drift_findings import FEWEST, cluster_changes
from postprocess.main import main
from postprocess.report.rendering import render_html, render_markdown
from postprocess.results.store import write_session
from tests.support.factories.drift import CASE, nights, noise, session, started, stepped, write_nights
from tests.support.faults import Declared, plants

SINCE = "2026-09-01"
ROUTINES = ("bcast", "gather", "scatter", "alltoall", "allgather", "barrier")


def cases(environment: str, count: int, program: str = "mpicost") -> list:
    one = replace(CASE, environment=environment, program=program)
    return [replace(one, routine=ROUTINES[n % 6], bytes=8 * n) for n in range(count)]


def series(environment: str, count: int, stepping: int, **how) -> list:
    """Nights of some cases, the first of which step."""
    logs = [stepped(seed=seed, **how) if seed < stepping else noise(seed=seed) for seed in range(count)]
    return [nights(one, case) for one, case in zip(logs, cases(environment, count), strict=True)]


# ---------------------------------------------------------------- many at once


def test_a_step_of_an_environment_is_told_once():
    some = series("mpich-5.0.2", 8, 7, at=30, by=0.08)
    some += series("openmpi-5.0.9", 8, 0, at=30, by=0.08)
    (found,) = cluster_changes(detect_trends(some))
    assert drift_report.format_cluster_share(found) == "7 of 8 cases of laptop:cpu mpich-5.0.2 mpicost"
    assert len(found.changes) == 7
    assert found.slow
    assert found.began == started(30)


def test_a_step_of_a_whole_partition_is_told_once():
    some = [each for name in ("a", "b") for each in series(name, 6, 6, at=30, by=0.08)]
    some += series("c", 4, 0, at=30, by=0.08)
    (found,) = cluster_changes(detect_trends(some))
    assert drift_report.format_cluster_share(found) == "12 of 16 cases of laptop:cpu mpicost"


def test_steps_of_different_nights_are_told_apart():
    some = series("a", 6, 6, at=20, by=0.08) + series("b", 6, 6, at=40, by=0.08)
    first, second = sorted(cluster_changes(detect_trends(some)), key=lambda each: each.began)
    assert (first.place[2], second.place[2]) == ("a", "b")
    assert (first.began, second.began) == (started(20), started(40))


def test_slow_and_fast_are_never_one_change():
    some = series("a", 6, 6, at=30, by=0.08)
    some[:3] = [replace(each, values=each.references**2 / each.values) for each in some[:3]]
    assert {cluster.slow for cluster in cluster_changes(detect_trends(some))} == {True, False}
    for cluster in cluster_changes(detect_trends(some)):
        assert len({change.finding.slow for change in cluster.changes}) == 1


def test_what_lasts_and_what_is_over_are_never_one_change():
    """A lasting slowdown among others that are over must not be counted as over."""
    some = series("a", 6, 6, at=30, by=0.08)
    over = series("a", 12, 12, at=30, by=0.09, until=45)[6:]
    found = cluster_changes(detect_trends(some + over))
    assert [(cluster.slow, len(cluster.changes)) for cluster in found] == [(True, 6), (False, 6)]


def test_few_cases_are_told_one_by_one():
    some = series("a", 30, FEWEST - 1, at=30, by=0.08)
    assert [cluster.place for cluster in cluster_changes(detect_trends(some))] == [()] * (FEWEST - 1)
    small = series("a", FEWEST - 1, FEWEST - 1, at=30, by=0.08)  # all of a small place
    assert len(cluster_changes(detect_trends(small))) == FEWEST - 1
    rare = series("a", 30, 14, at=30, by=0.08)  # fewer than half of the place
    assert len(cluster_changes(detect_trends(rare))) == 14


def test_no_finding_is_lost_or_told_twice():
    some = series("a", 9, 6, at=20, by=0.08) + series("b", 7, 2, at=40, by=0.2)
    trends = detect_trends(some)
    told = [
        (change.trend.nights.case, change.finding)
        for cluster in cluster_changes(trends)
        for change in cluster.changes
    ]
    every = [(trend.nights.case, finding) for trend in trends for finding in trend.findings]
    assert len(told) == len(every)
    assert set(told) == set(every)


def mixed() -> dict:
    """A store's worth: a step of many, one case each that is slower, creeps, is faster, and was slower."""
    some = {case: stepped(40, 0.07, seed=seed) for seed, case in enumerate(cases("mpich-5.0.2", 6))}
    slow, creeping, fast, over, fine = cases("openmpi-5.0.9", 5)
    return some | {
        slow: stepped(30, 0.5, seed=11),
        creeping: noise(seed=12) + math.log1p(0.06),
        fast: stepped(20, -0.2, seed=13),
        over: stepped(20, 0.3, seed=14, until=35),
        fine: noise(seed=15),
    }


def test_what_is_slow_comes_first_and_what_is_over_last():
    found = cluster_changes(detect_trends([nights(logs, case) for case, logs in mixed().items()]))
    expected = ["slower", "slower", "slower", "faster", "was slower"]
    assert [drift_report.describe_direction(cluster.worst.finding) for cluster in found] == expected
    assert found[0].place
    assert found[1].worst.finding.size > found[2].worst.finding.size
    assert not any(cluster.slow for cluster in found[3:])


# ---------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A store that is written once and only read."""
    folder = tmp_path_factory.mktemp("nights") / "store"
    write_nights(folder, mixed())
    return folder


@pytest.fixture
def work(tmp_path, stored) -> Path:
    (tmp_path / "store").symlink_to(stored)
    return tmp_path


def drift(work: Path, *options: str) -> int:
    """The command on the nights since ``SINCE``."""
    return main(str(work), str(work), ["drift", "--since", SINCE, *options])


def read_last_sentence(said: str) -> str:
    """The last sentence, however it is wrapped."""
    return " ".join(said[said.rindex("drift: ") :].split())


def test_sixty_nights_from_store_to_page(work, capsys):
    assert drift(work, "--json", str(work / "drift.json")) == 1
    said = capsys.readouterr().out
    assert "6 of 6 cases of laptop:cpu mpich-5.0.2 mpicost" in said
    assert re.search(r"slower +step +2026-10-01 +\+[45]\d\.\d% .*\n  laptop:cpu:openmpi-5.0.9:", said)
    assert max(map(len, said.split("pictures: ")[0].splitlines())) <= 80
    last = read_last_sentence(said)
    assert last.startswith("drift: of 11 cases in 60 nights 8 slower, 1 faster (")
    assert last.endswith("), 1 for a while only")
    page = (work / "drift" / drift_page.PAGE).read_text()
    assert page.count('role="img"') == 10
    assert "8 cases became slower" in page
    assert not re.search(r"(src|href)=|url\((?!#)|<script|https?://", page.replace('href="#', ""))
    data = json.loads((work / "drift.json").read_text())
    assert (data["cases"], data["looked_at"], data["slower"], data["faster"]) == (11, 11, 8, 1)
    first = data["changes"][0]["cases"][0]
    assert first["began"] == started(40)
    assert first["session"] == session(40)
    assert first["change"] == pytest.approx(0.07, abs=0.02)


def test_status_0_where_nothing_is_slower(work, capsys):
    keys = [case.key for case in mixed()]
    for chosen in ([f"{keys[-1]},{keys[-3]}"], [keys[-1], keys[-3]]):
        assert drift(work, "--case", *chosen) == 0
        assert "0 slower, 1 faster" in read_last_sentence(capsys.readouterr().out)
    assert "No case became slower" in (work / "drift" / drift_page.PAGE).read_text()


def test_a_pattern_chooses_cases(work, capsys):
    assert drift(work, "--case", "*:mpich-5.0.2:*", "--output", str(work / "elsewhere")) == 1
    assert "of 6 cases" in capsys.readouterr().out
    written = sorted(path.name for path in (work / "elsewhere").iterdir())
    assert written == ["drift.html", "drift.md"]
    assert drift(work, "--output", str(work / "elsewhere")) == 1  # over what it has written


@plants("use", "a case, a site or a time of which there is no night", "options of `drift`", "", 2,
        "plumbline: ")  # fmt: skip
@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--case", "nobody"], "--case nobody: no night has one"),
        (["--site", "nowhere"], "--site nowhere: no nights; there are some of laptop"),
        (["--since", "yesterday"], "--since: 'yesterday' is not a date"),
        (["--since", "2099-01-01"], "--since 2099-01-01: no night from then on"),
        (["--since", "2026-10-26"], "nothing can be said of any case yet"),
        (["--json", "/dev/null/x.json"], "--json /dev/null/x.json"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(work, capsys, options, fault, declared: Declared):
    status, said = drift(work, *options), capsys.readouterr().err
    declared.check((), status, [said])
    assert fault in said
    assert said.count("\n") == 1


def test_no_option_is_blamed_that_was_not_given(tmp_path, capsys):
    assert main(str(tmp_path), str(tmp_path), ["drift"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"plumbline: {tmp_path / 'store'}: No such file") and said.count("\n") == 1
    (tmp_path / "store").mkdir()
    assert main(str(tmp_path), str(tmp_path), ["drift"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("plumbline: no night since ") and "--since" not in said


def test_cases_with_too_few_nights_are_counted(tmp_path, capsys):
    late = noise(seed=4)
    late[:-5] = np.nan
    write_nights(tmp_path / "store", {CASE: noise(), replace(CASE, routine="gather"): late})
    assert drift(tmp_path) == 0
    last = read_last_sentence(capsys.readouterr().out)
    assert "of 1 case in 60 nights 0 slower" in last
    assert "1 case not looked at" in last


def test_text_from_outside_does_nothing_on_the_page():
    """A date or a library string is data of a file that others wrote."""
    some = nights(stepped(30, 0.5))
    (trend,) = detect_trends([some])
    told = drift_page.build_drift_document([trend], cluster_changes([trend]), "<script>alert(1)</script>")
    assert "<script>" not in render_html(told) and "<script>" not in render_markdown(told)


@pytest.mark.parametrize(("program", "told"), [("mpicost", False), ("bindings", True)])
def test_a_page_tells_how_to_read_the_values_of_languages_where_there_are_any(program, told):
    (trend,) = detect_trends([nights(stepped(30, 0.5), case=replace(CASE, program=program))])
    page = render_markdown(drift_page.build_drift_document([trend], cluster_changes([trend]), SINCE))
    assert ("A launch of bindings says" in page) == told


# ---------------------------------------------------------------- the line of a night


def test_a_night_says_what_became_slower(work, monkeypatch):
    monkeypatch.setattr(drift_report, "day_before", lambda _: SINCE)
    said = drift_report.drift_note(work / "store")
    assert said.startswith("drift: 8 cases became slower over the nights, by +")
    assert said.endswith("./plumbline drift")


def test_a_night_is_silent_where_nothing_is_slower(tmp_path, monkeypatch):
    monkeypatch.setattr(drift_report, "day_before", lambda _: SINCE)
    write_nights(tmp_path, {CASE: stepped(30, -0.5)})
    assert drift_report.drift_note(tmp_path) == ""


def test_a_night_is_silent_before_there_are_enough(tmp_path, monkeypatch):
    def read(*_):
        raise AssertionError("read for nothing")

    monkeypatch.setattr(drift_report, "read_nights", read)
    write_nights(tmp_path, {CASE: stepped(5, 0.5)[:9]})
    assert drift_report.drift_note(tmp_path) == ""


def test_a_damaged_store_is_told_and_ends_no_night(tmp_path, monkeypatch):
    monkeypatch.setattr(drift_report, "day_before", lambda _: SINCE)
    write_nights(tmp_path, {CASE: noise()})
    (tmp_path / f"{session(60)}.parquet").write_bytes(b"nothing")
    said = drift_report.drift_note(tmp_path)
    assert said.startswith("drift: not looked for: ")
    assert session(60) in said


def test_a_session_of_no_cases_is_no_fault(tmp_path):
    write_nights(tmp_path / "store", {CASE: noise()})
    write_session(tmp_path / "store" / f"{session(61)}.parquet", [])
    assert drift(tmp_path) == 0


def test_a_trend_knows_whether_it_has_nights_enough():
    assert Trend(nights(noise(10)), (), ()).known
    assert not Trend(nights(noise(10), epoch=1), (), ()).known
