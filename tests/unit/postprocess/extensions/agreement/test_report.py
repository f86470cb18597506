"""What is said of the agreement of programs: samples, tables, picture, page, verdicts and exit status."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.extensions.agreement import report as words
from postprocess.extensions.agreement.command import (
    extract_samples,
    find_suspect_program,
    format_agreement,
    judge_agreement,
    list_agreement_failures,
    list_topics,
    topic_of,
)
from postprocess.extensions.agreement.compare import (
    PROGRAMS,
    Disagreement,
    Gap,
    ProgramSample,
    Topic,
    compare_programs,
)
from postprocess.extensions.agreement.report import build_agreement_document, draw_ratio_plot
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.measurement import Measurement
from postprocess.model.plan import SkippedCase
from postprocess.model.routines.mpicost import COMPARED
from postprocess.model.session import Session
from postprocess.model.verdict import Verdict
from postprocess.report.document import Tone
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
        ProgramSample(
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
    return compare_programs(said, {topic: dict.fromkeys(programs, "") for topic in (TOPIC, BARRIER)})


# --- words ---


@pytest.mark.parametrize(
    ("found", "headline", "summary"),
    [
        (opinions(), "1 case in which the programs disagree", "6 ratios: 4 agree, 2 disagree; 1 finding"),
        (opinions(1.0), "The programs agree in all of 6 ratios", "6 ratios: 6 agree; 0 findings"),
        (
            *(opinions(9.0, 2), UNDECIDED.format(6)),
            "6 ratios: 6 without an interval (fewer than 3 launches); 0 findings",
        ),
        (*(compare_programs([], {}), UNDECIDED.format(0)), "0 ratios: none to judge; 0 findings"),
    ],
)
def test_headline_and_summary(found, headline, summary):
    expected = (headline, summary)
    assert (words.format_agreement_title(found), words.summarise_agreement(found)) == expected


def test_a_pair_without_values_is_a_dash():
    ((_, table, _),) = words.build_ratio_tables(opinions(programs=("osu", "imb")).comparisons)
    assert [row[2:4] for row in table.rows] == [("-", "-"), ("-", "-")]
    assert all(row[5] == "-" for row in table.rows)


def test_gaps_are_grouped_by_reason_and_counted_beyond_a_few():
    many = [Gap(replace(TOPIC, bytes=8 << n), "osu", "no Spack") for n in range(9)]
    (line,) = words.format_gaps([*many])
    assert line.startswith("local:cpu, mpich-5_0_2, 2x2: osu: no Spack: 9 cases: alltoall 8 B, ")
    assert line.endswith(" and 3 more")
    (whole,) = words.format_gaps(many, most=None)
    assert whole.count("alltoall") == 9
    assert len(words.format_gaps([many[0], Gap(TOPIC, "imb", "no value")])) == 2


# --- picture and page ---


def test_the_picture_rings_what_disagrees():
    (chapter,) = words.build_ratio_tables(opinions().comparisons)
    (calm,) = words.build_ratio_tables(opinions(1.0).comparisons)
    assert "2 disagree" in draw_ratio_plot(chapter[0], chapter[2])
    assert (
        draw_ratio_plot(chapter[0], chapter[2]).count("--bad")
        > draw_ratio_plot(calm[0], calm[2]).count("--bad")
        == 0
    )


@pytest.mark.parametrize("found", [opinions(1e9), opinions(1e-9), opinions(1.0, 2), opinions(1.0, 1)])
def test_the_picture_holds_whatever_there_is(found):
    for place, _, compared in words.build_ratio_tables(found.comparisons):
        assert draw_ratio_plot(place, compared).startswith("<svg")


def test_a_page_with_a_finding_or_a_failure_is_not_good(tmp_path: Path):
    session = Session(tmp_path, "s1", "here", ["./plumbline"], False)
    tones = [
        build_agreement_document(session, opinions(factor), failures).tone
        for factor, failures in ((1.0, []), (3.0, []), (1.0, ["osu crashed"]))
    ]
    assert tones == [Tone.GOOD, Tone.BAD, Tone.BAD]


# --- from launches to samples, and back to verdicts ---


def finished(program, number=1, value=1e-6, sizes=(8,), verdict=None, **method):
    cases = tuple(launch_samples.case(size=size, program=program) for size in sizes)
    launch = launch_samples.planned(program=program, number=number, cases=cases, method=method, asserted=False)
    measurements = {case.variable: Measurement(value) for case in cases}
    records = SimpleNamespace(
        measurements=measurements, wrong={}, run={}, resolution=lambda unit: 0.0, processes=2
    )
    outcome = LaunchOutcome(None, verdict, "it crashed") if verdict else LaunchOutcome(records)
    return FinishedLaunch(launch, outcome, 1.0, "", {})


def test_sizes_that_only_warm_up_are_not_compared():
    each = finished("imb", sizes=(4, 8), **{COMPARED: [8]})
    assert [sample.topic.bytes for sample in extract_samples([each])] == [8]
    assert [topic.bytes for topic in list_topics([each.launch])] == [8]


def test_skipped_cases_are_topics_with_their_reason():
    case = launch_samples.case(program="osu")
    launch = replace(
        finished("osu").launch, cases=(), skips=(SkippedCase(case, "no Spack"),), method={COMPARED: [8]}
    )
    found = list_topics([launch, finished("imb").launch])
    assert found == {topic_of(case): {"osu": "no Spack", "imb": ""}}


def test_a_launch_that_failed_says_nothing():
    assert not list(extract_samples([finished("osu", verdict=Verdict.CRASHED)]))


def test_mpicost_is_compared_by_what_it_says_of_its_slowest_rank():
    each = finished("mpicost")
    (variable,) = each.measurements
    record = SimpleNamespace(slowest_mean=5e-7)
    each.outcome.records.measurements[variable] = Measurement(1e-6, record=record)
    (sample,) = extract_samples([each])
    assert (sample.value, sample.compared) == (1e-6, 5e-7)


@pytest.mark.parametrize("wrong", PROGRAMS)
def test_the_cases_of_the_one_that_stands_alone_are_incorrect(wrong):
    done = [
        finished(program, number, (3e-6 if program == wrong else 1e-6) * (1 + number / 1000))
        for program in PROGRAMS
        for number in range(1, 7)
    ]
    found = compare_programs(extract_samples(done), list_topics([each.launch for each in done]))
    verdicts = {result.case.program: result for result in judge_agreement(done, found.findings, "again")}
    assert {name for name, each in verdicts.items() if each.verdict == Verdict.INCORRECT} == {wrong}
    assert f"{wrong}-alone" in verdicts[wrong].reason and verdicts[wrong].rerun == "again"
    assert not list_agreement_failures(list(verdicts.values()))


@pytest.mark.parametrize("name", ["another name", "imb-alone"])
def test_who_is_accused_does_not_hang_on_how_a_finding_is_called(name: str, monkeypatch):
    monkeypatch.setattr(Disagreement, "name", property(lambda _: name))
    both = opinions(programs=("osu", "imb")).findings[0]
    assert find_suspect_program(both) == {"osu", "imb"}
    assert find_suspect_program(replace(both, alone="osu")) == {"osu"}


def test_a_failed_launch_is_told_and_no_agreement():
    done = [finished("osu", verdict=Verdict.CRASHED), finished("imb")]
    results = judge_agreement(done, [], "again")
    (line,) = list_agreement_failures(results)
    assert line == "local:cpu with mpich-5_0_2: osu: crashed: it crashed"


def test_a_terminal_shows_what_is_not_as_expected_and_counts_the_rest():
    text = format_agreement(opinions(), [])
    rows = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    assert "alltoall" in rows and "barrier" not in rows
    assert "1 case in which all programs agree: on the page\n" in text
    assert "2 cases in which all programs agree" in format_agreement(opinions(1.0), [])
