"""The summary file: read back as it was written, and refused when it cannot be trusted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from postprocess.base.errors import UsageError
from postprocess.results.summary import load_summary, parse_summary
from tests.support.factories import report as samples
from tests.support.factories import size as sizes


@pytest.fixture
def document():
    return json.loads(json.dumps(samples.bad_night(samples.few_cases()).document()))


def test_results_come_back_as_they_were_written(tmp_path):
    night = samples.bad_night(samples.few_cases())
    summary = load_summary(night.write(tmp_path) / "summary.json")
    assert list(summary.results) == night.results
    assert summary.session == samples.SESSION
    assert summary.environments[1].library == samples.LIBRARIES["mpich-5.0.2"]
    assert summary.machine.caches[2].shared_by == 8


def test_failed_and_good(document):
    summary = parse_summary(document)
    words = {str(result.verdict) for result in summary.failed}
    assert words == {"regressed", "timeout", "incorrect"}
    assert not summary.good


POWER = ("q", "detectable", "spread", "degrees")


def powerless(results):
    """The same results, of which nobody says what they could have shown."""
    return tuple(replace(each, **dict.fromkeys(POWER), provisional=False) for each in results)


def earlier(document):
    """The same summary as the version before wrote it, which knew no program but mpicost."""
    added = {
        "launches": ("program", "start", "cases"),
        "cases": ("figures", *POWER, "expected", "provisional"),
    }
    del document["programs"]
    for key, names in added.items():
        for each in document[key]:
            for name in names:
                del each[name]
    return document | {"schema": 1}


def test_figures_and_units_come_back_as_they_were_written(tmp_path):
    night = sizes.three_programs()
    summary = load_summary(night.write(tmp_path) / "summary.json")
    assert list(summary.results) == night.results
    assert {result.unit for result in summary.results} == {"s", "MB/s"}
    (found,) = [
        r for r in summary.results if r.case.key.endswith("mpich-5.0.2:osu:bw:warm-barrier:2x2:8")
    ]
    assert set(found.figures) == {"Iterations", "Min", "Max"}


def test_a_summary_of_before_a_case_knew_its_power_is_still_read(document):
    now = parse_summary(document)
    for case in document["cases"]:
        for name in (*POWER, "expected", "provisional"):
            del case[name]
    then = parse_summary(document | {"schema": 2})
    assert then == replace(now, results=powerless(now.results))


def test_a_summary_of_the_first_version_is_still_read(document):
    now = parse_summary(document)
    then = parse_summary(earlier(document))
    assert then.results == powerless(now.results)
    assert then.programs == ()
    assert {(launch.program, launch.start, launch.cases) for launch in then.launches} == {
        ("mpicost", "", 0)
    }


def test_a_cause_comes_back_whatever_the_reason_says():
    night = samples.bad_night(samples.few_cases())
    told = replace(night.results[0], reason="another sentence", cause="cpu: everything 7% slower")
    document = replace(night, results=[told, *night.results[1:]]).document()
    assert parse_summary(json.loads(json.dumps(document))).results[0] == told


def test_the_causes_of_a_summary_without_their_key_are_still_read(document):
    cause = "common cause: cpu: everything 7% slower (median of 126 cases)"
    document["cases"][0]["reason"] = f"{cause}; 9.1 us is above 8.5 us; so were 2 of 2"
    for case in document["cases"]:
        del case["cause"]
    first, *others = parse_summary(document).results
    assert first.cause == cause
    assert not any(each.cause for each in others)


@pytest.mark.parametrize("key", ["launches", "cases"])
def test_damage_of_the_version_before_is_one_line_too(document, key):
    for value in ("x", ["x"], [[]]):
        with pytest.raises(UsageError, match=f"there: {key}"):
            parse_summary(earlier(json.loads(json.dumps(document))) | {key: value}, "there")


def wrong_counts(document):
    document["counts"]["pass"] += 1


def unknown_verdict(document):
    document["cases"][2]["verdict"] = "fine"


def same_case_twice(document):
    document["cases"].append(document["cases"][0])
    document["counts"][document["cases"][0]["verdict"]] += 1


def half_a_band(document):
    document["cases"][0]["band"] = [1.0]


def text_for_a_value(document):
    document["cases"][0]["value"] = "fast"


def name_that_is_no_name(document):
    document["cases"][0]["routine"] = "<b>"


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda d: d.pop("schema"), "schema"),
        (lambda d: d.update(schema=4), "schema: 4 is none of 1, 2 and 3"),
        (lambda d: d.pop("notes"), "notes"),
        (lambda d: d.update(exit_status="0"), "exit_status"),
        (lambda d: d.update(strict=0), "strict"),
        (lambda d: d.update(cases={}), "cases"),
        (lambda d: d["machine"].pop("host"), "host"),
        (lambda d: d["phases"].update(build=-1), "build"),
        (lambda d: d["launches"][3].pop("outcome"), "launches[3]: outcome"),
        (lambda d: d["environments"][0].update(library=None), "environments[0]: library"),
        (lambda d: d["cases"][1]["statistics"].pop("p90"), "cases[1]: p90"),
        (unknown_verdict, "cases[2]: verdict"),
        (wrong_counts, "counts"),
        (same_case_twice, "twice"),
        (half_a_band, "cases[0]: band"),
        (text_for_a_value, "cases[0]: value"),
        (name_that_is_no_name, "cases[0]: routine"),
        (lambda d: d["cases"][0].update(unit="ms"), "cases[0]: unit"),
        (lambda d: d["cases"][0].update(figures=[]), "cases[0]: figures"),
        (lambda d: d["cases"][0].update(figures={"max": "3"}), "cases[0]: figures.max"),
        (lambda d: d["launches"][0].pop("program"), "launches[0]: program"),
        (lambda d: d["programs"][0].update(flags=None), "programs[0]: flags"),
        (lambda d: d.pop("programs"), "programs"),
    ],
)
def test_damage_is_one_line_with_file_key_and_fix(document, damage, named):
    damage(document)
    with pytest.raises(UsageError) as error:
        parse_summary(document, "there/summary.json")
    text = str(error.value)
    assert text.startswith("there/summary.json: ")
    assert named in text
    assert "run the session again" in text
    assert text.isprintable()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"schema": NaN}', b"\xff"])
def test_a_file_that_is_no_summary_is_named(tmp_path, content):
    path = tmp_path / "summary.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"summary\.json: "):
        load_summary(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"summary\.json: No such file"):
        load_summary(tmp_path / "summary.json")
