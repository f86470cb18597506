"""What is said of the agreement of programs: samples, tables, picture, page, verdicts and exit status."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.analyses.agreement import text as words
from postprocess.analyses.agreement.compare import (
    PAIRS,
    PROGRAMS,
    Finding,
    Gap,
    Sample,
    Topic,
    form,
)
from postprocess.analyses.agreement.data import samples, topic_of, topics
from postprocess.analyses.agreement.page import write_page
from postprocess.analyses.agreement.plot import draw
from postprocess.base.text_table import text
from postprocess.commands.agree import accused, as_text, failures_of, judged
from postprocess.model.launch import Finished, Outcome
from postprocess.model.measurement import Measurement
from postprocess.model.mpicost import COMPARED
from postprocess.model.plan import Skip
from postprocess.model.verdict import Verdict
from tests.support.factories import launch as launch_samples

TOPIC = Topic("local:cpu", "mpich-5_0_2", "2x2", "alltoall", 65536)
UNDECIDED = (
    "Not decided (0 of {} ratios lie outside their range, unproved): "
    "more launches, or a quieter machine, are needed"
)
BARRIER = replace(TOPIC, routine="barrier", bytes=0)


def opinions(factor=3.0, launches=5, programs=PROGRAMS):
    """IMB is wrong by ``factor`` in one of two cases."""
    said = [
        Sample(
            topic,
            program,
            number,
            1e-6
            * (factor if (program, topic) == ("imb", TOPIC) else 1)
            * (1 + 0.01 * (number % 3 + PROGRAMS.index(program))),
            "s",
        )
        for topic in (TOPIC, BARRIER)
        for program in programs
        for number in range(launches)
    ]
    return form(said, {topic: dict.fromkeys(programs, "") for topic in (TOPIC, BARRIER)})


# --- words ---


def test_a_finding_tells_name_case_ratio_and_range():
    (found,) = opinions().findings
    line = words.finding(found)
    assert line.startswith("imb-alone: alltoall 64 KiB on local:cpu, mpich-5_0_2, 2x2: ")
    assert "mpicost over imb is 0.33 (" in line and "osu over imb is 0.33 (" in line
    assert "0.75 to 1.33 is expected" in line


@pytest.mark.parametrize(
    ("found", "headline", "summary"),
    [
        (
            opinions(),
            "1 case in which the programs disagree",
            "6 ratios: 4 agree, 2 disagree; 1 finding",
        ),
        (opinions(1.0), "The programs agree in all of 6 ratios", "6 ratios: 6 agree; 0 findings"),
        (
            opinions(9.0, 2),
            UNDECIDED.format(6),
            "6 ratios: 6 without an interval (fewer than 3 launches); 0 findings",
        ),
        (
            form([], {}),
            UNDECIDED.format(0),
            "0 ratios: none to judge; 0 findings",
        ),
    ],
)
def test_headline_and_summary(found, headline, summary):
    assert (words.headline(found), words.summary(found)) == (headline, summary)


def test_the_table_has_a_column_for_each_pair_and_marks_what_disagrees():
    ((place, sheet, compared),) = words.sheets(opinions().comparisons)
    assert place == "local:cpu, mpich-5_0_2, 2x2" and len(compared) == 6
    assert sheet.columns == ("mpicost/osu", "mpicost/imb", "osu/imb", "definition")
    row = next(row for row in sheet.rows if row[0] == "alltoall")
    assert row[1] == "64 KiB" and [cell.endswith(" DISAGREE") for cell in row[2:5]] == [
        False,
        True,
        True,
    ]
    assert row[5] == "1.00"
    assert "5 launches" in sheet.notes[0]
    assert "barrier" in text(sheet)


def test_a_pair_without_values_is_a_dash():
    ((_, sheet, _),) = words.sheets(opinions(programs=("osu", "imb")).comparisons)
    assert [row[2:4] for row in sheet.rows] == [("-", "-"), ("-", "-")]
    assert all(row[5] == "-" for row in sheet.rows)


def test_gaps_are_grouped_by_reason_and_counted_beyond_a_few():
    many = [Gap(replace(TOPIC, bytes=8 << n), "osu", "no Spack") for n in range(9)]
    (line,) = words.gaps([*many])
    assert line.startswith("local:cpu, mpich-5_0_2, 2x2: osu: no Spack: 9 cases: alltoall 8 B, ")
    assert line.endswith(" and 3 more")
    (whole,) = words.gaps(many, most=None)
    assert whole.count("alltoall") == 9
    assert len(words.gaps([many[0], Gap(TOPIC, "imb", "no value")])) == 2


def test_every_range_is_told_with_its_reason():
    assert all(len(row) == 5 and all(row) for row in words.ranges().rows)


# --- picture and page ---


def test_the_picture_rings_what_disagrees():
    (chapter,) = words.sheets(opinions().comparisons)
    (calm,) = words.sheets(opinions(1.0).comparisons)
    assert "2 disagree" in draw(chapter[0], chapter[2])
    assert draw(chapter[0], chapter[2]).count("--bad") > draw(calm[0], calm[2]).count("--bad") == 0


@pytest.mark.parametrize(
    "found", [opinions(1e9), opinions(1e-9), opinions(1.0, 2), opinions(1.0, 1)]
)
def test_the_picture_holds_whatever_there_is(found):
    for place, _, compared in words.sheets(found.comparisons):
        assert draw(place, compared).startswith("<svg")


def test_the_page_says_it_all_and_needs_nothing_else(tmp_path: Path):
    session = SimpleNamespace(directory=tmp_path, name="s1", site="<b>here</b>")
    found = opinions()
    page = write_page(session, found, ["something crashed"])
    html, markdown = page.read_text(), page.with_suffix(".md").read_text()
    for line in (words.finding(found.findings[0]), "something crashed", words.summary(found)):
        assert line in html
    assert "✗" in html and "<b>here" not in html and html.count("<svg") == 1 + len(PAIRS)
    assert 'src="http' not in html and "<script" not in html and "<link" not in html
    assert "imb-alone" in markdown and "Why ratios are not 1" in markdown
    data = json.loads(page.with_suffix(".json").read_text())
    assert not data["good"] and len(data["ratios"]) == 6
    assert {each["standing"] for each in data["ratios"]} == {"agree", "disagree"}


def test_a_page_with_a_failure_is_not_good(tmp_path: Path):
    session = SimpleNamespace(directory=tmp_path, name="s1", site="here")
    assert "✓" in write_page(session, opinions(1.0), []).read_text()
    assert "✗" in write_page(session, opinions(1.0), ["osu crashed"]).read_text()


def test_the_terminal_has_tables_gaps_failures_and_findings():
    found = opinions()
    lines = as_text(found, ["osu crashed"]).splitlines()
    assert lines[-1] == words.summary(found) and lines[-2] == words.finding(found.findings[0])
    assert lines[-3] == "osu crashed"


# --- from launches to samples, and back to verdicts ---


def finished(program, number=1, value=1e-6, sizes=(8,), verdict=None, **method):
    cases = tuple(launch_samples.case(size=size, program=program) for size in sizes)
    launch = launch_samples.planned(program=program, number=number, cases=cases, method=method)
    measurements = {case.variable: Measurement(value) for case in cases}
    records = SimpleNamespace(
        measurements=measurements, run={}, resolution=lambda unit: 0.0, processes=2
    )
    outcome = Outcome(None, verdict, "it crashed") if verdict else Outcome(records)
    return Finished(launch, outcome, 1.0, "", {})


def test_sizes_that_only_warm_up_are_not_compared():
    each = finished("imb", sizes=(4, 8), **{COMPARED: [8]})
    assert [sample.topic.bytes for sample in samples([each])] == [8]
    assert [topic.bytes for topic in topics([each.launch])] == [8]


def test_skipped_cases_are_topics_with_their_reason():
    case = launch_samples.case(program="osu")
    launch = replace(
        finished("osu").launch, cases=(), skips=(Skip(case, "no Spack"),), method={COMPARED: [8]}
    )
    assert topics([launch, finished("imb").launch]) == {
        topic_of(case): {"osu": "no Spack", "imb": ""}
    }


def test_a_launch_that_failed_says_nothing():
    assert not list(samples([finished("osu", verdict=Verdict.CRASHED)]))


def test_mpicost_is_compared_by_what_it_says_of_its_slowest_rank():
    each = finished("mpicost")
    (variable,) = each.measurements
    record = SimpleNamespace(slowest_mean=5e-7)
    each.outcome.records.measurements[variable] = Measurement(1e-6, record=record)
    (sample,) = samples([each])
    assert (sample.value, sample.compared) == (1e-6, 5e-7)


@pytest.mark.parametrize("wrong", PROGRAMS)
def test_the_cases_of_the_one_that_stands_alone_are_incorrect(wrong):
    done = [
        finished(program, number, (3e-6 if program == wrong else 1e-6) * (1 + number / 1000))
        for program in PROGRAMS
        for number in range(1, 7)
    ]
    found = form(samples(done), topics([each.launch for each in done]))
    verdicts = {each.case.program: each for each in judged(done, found.findings, "again")}
    assert {name for name, each in verdicts.items() if each.verdict == Verdict.INCORRECT} == {wrong}
    assert f"{wrong}-alone" in verdicts[wrong].reason and verdicts[wrong].rerun == "again"
    assert not failures_of(list(verdicts.values()))


@pytest.mark.parametrize("name", ["another name", "imb-alone"])
def test_who_is_accused_does_not_hang_on_how_a_finding_is_called(name: str, monkeypatch):
    monkeypatch.setattr(Finding, "name", property(lambda _: name))
    both = opinions(programs=("osu", "imb")).findings[0]
    assert accused(both) == {"osu", "imb"}
    assert accused(replace(both, alone="osu")) == {"osu"}


def test_where_it_cannot_be_told_both_are_accused():
    found = opinions(programs=("osu", "imb")).findings[0]
    assert accused(found) == {"osu", "imb"}


def test_a_failed_launch_is_told_and_no_agreement():
    done = [finished("osu", verdict=Verdict.CRASHED), finished("imb")]
    results = judged(done, [], "again")
    (line,) = failures_of(results)
    assert line == "local:cpu with mpich-5_0_2: osu: crashed: it crashed"
