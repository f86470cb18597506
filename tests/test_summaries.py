"""The summary file: read back as it was written, and refused when it cannot be trusted."""

from __future__ import annotations

import json

import pytest

from postprocess.errors import UsageError
from postprocess.summaries import load_summary, parse_summary
from tests import report_samples as samples


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
        (lambda d: d.update(schema=2), "schema"),
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
