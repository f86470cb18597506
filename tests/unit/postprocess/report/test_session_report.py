"""The report: complete, one harmless file that needs nothing else, written whole or not at all."""

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest
from markdown_it import MarkdownIt

from postprocess.base import files, formats
from postprocess.base.errors import UsageError
from postprocess.base.sanitize import sanitize_line
from postprocess.model.verdict import Verdict
from postprocess.report import case_table, curves, session_report, trial_selection
from postprocess.report.first_screen import Past, find_news
from postprocess.results.query import Night
from postprocess.results.summary import parse_summary
from tests.support.factories import report as samples
from tests.support.factories import size as sizes
from tests.support.faults import plants

VOID = {"meta", "br", "img", "link", "input", "hr"}
NO_TRIALS = pl.DataFrame()  #: which take longest to draw
MARKDOWN = MarkdownIt("gfm-like", {"linkify": False, "html": True})


class Page(HTMLParser):
    """Tags in order, attributes, text, and whether every tag was closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        self.text = "".join(self.words)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def values(self, name):
        return [value for key, value in self.attributes if key == name]


def html_of(night: samples.Night, frame: pl.DataFrame = NO_TRIALS) -> str:
    trials = trial_selection.read_trials(frame, samples.SESSION)
    return session_report.render_html(parse_summary(night.document()), trials)


def markdown_of(night: samples.Night) -> str:
    return session_report.render_markdown(parse_summary(night.document()))


def title_of(night: samples.Night) -> str:
    """The title of the Markdown, without what it is of."""
    return markdown_of(night).splitlines()[0].removeprefix("# Plumbline nightly: ")


@pytest.fixture(scope="module")
def bad() -> samples.Night:
    return samples.bad_night(samples.few_cases())


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


@pytest.fixture(scope="module")
def html(bad) -> str:
    return html_of(bad, bad.frame())


@plants("lost", "a full disk", "the report of a session", "", 2,
        ": cannot be written: No space left")  # fmt: skip
def test_a_report_that_cannot_be_written_changes_nothing(bad, tmp_path, monkeypatch, declared):
    directory, summary = bad.write(tmp_path), parse_summary(bad.document())
    for name in ("report.md", "report.html"):
        (directory / name).write_text("earlier")

    def full(*arguments):
        raise OSError(28, "No space left on device", str(directory / "report.html"))

    monkeypatch.setattr(files.os, "fsync", full)
    with declared.raises(UsageError) as error:
        session_report.build_report(directory, summary, {})
    assert str(error.value).isprintable()
    assert {path.name for path in directory.iterdir()} == {"summary.json", "report.md", "report.html"}
    assert (directory / "report.md").read_text() == "earlier"
    assert (directory / "report.html").read_text() == "earlier"


def test_the_page_is_well_formed(html, page):
    assert html.startswith("<!DOCTYPE html>\n")
    assert page.open == []
    ids = Counter(page.values("id"))
    assert [name for name, number in ids.items() if number > 1] == []
    assert {target[1:] for target in page.values("href")} <= set(ids)


def test_the_page_needs_nothing_from_outside(html, page):
    assert page.tags.count("script") == 1
    script = re.search("<script>(.*?)</script>", html, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not {name for name, _ in page.attributes if name.startswith("on") or name == "src"}
    assert all(target.startswith("#") for target in page.values("href"))
    assert not re.search(r"https?:|@import|@font-face|javascript:|data:", html)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))
    assert "default-src 'none'" in html


def test_the_page_follows_the_colour_scheme_and_prints(html):
    assert "prefers-color-scheme: dark" in html and "@media print" in html
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", html))
    assert used <= set(re.findall(r"(--[a-z0-9-]+):", html))


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ("pass pass pass", "✓ No failure in 3 cases"),
        ("pass cleared fast", "✓ No failure in 3 cases"),
        ("pass provisional skipped", "✓ No failure in 2 cases, 1 of them provisional, 1 skipped"),
        ("provisional provisional", "? No gross change in 2 cases, all provisional"),
        ("provisional skipped", "? No gross change in 1 case, all provisional, 1 skipped"),
        ("skipped skipped", "✗ Nothing was measured: 2 skipped"),
        ("pass no-reference", "✗ 1 of 2 cases failed"),
        ("", "✗ Nothing was measured"),
    ],
)
def test_the_headline_promises_no_more_than_was_asserted(verdicts, sentence):
    planned = [c for c in samples.cases((2, 4)) if c.routine == "barrier"]
    night = samples.Night()
    for case, word in zip(planned, verdicts.split(), strict=False):
        samples.without_value(Verdict(word), "")(night, case, None)
    assert title_of(night) == sentence


def test_a_session_that_failed_otherwise_is_not_called_good():
    night = samples.healthy_night([c for c in samples.cases((2,)) if c.routine == "barrier"])
    night.more = {"exit_status": 1}
    assert title_of(night) == "✗ No case failed, but the session did"
    assert "✓" not in Page(html_of(night)).text.split("Verdicts")[0]


def test_a_status_of_zero_that_the_cases_deny_is_named(bad):
    night = replace(bad, more={"exit_status": 0})
    for text in (Page(html_of(night)).text, markdown_of(night)):
        assert "Contradiction" in text and "✓" not in text[:40]


def test_every_failed_case_with_trials_has_its_picture(bad, page):
    labels = page.values("aria-label")
    for r in (r for r in parse_summary(bad.document()).failed if r.value is not None):
        name = f"Trials of {r.case.label} {r.case.bytes} bytes, {r.case.environment}"
        assert any(label.startswith(name) for label in labels if label)


def test_a_skipped_launch_has_not_failed():
    """A night without Spack skips dozens of starts, among which one that failed must not drown."""
    night = samples.healthy_night([c for c in samples.cases((2,)) if c.routine == "barrier"], 3)
    [ran, *_] = night.document()["launches"]
    skipped = ran | {"program": "osu", "start": "bcast", "outcome": "skipped", "reason": "no Spack"}
    night.more["launches"] = [skipped, ran]
    assert "Launches that failed" not in markdown_of(night)
    assert "Launches: 2, 1 skipped" in Page(html_of(night)).text
    night.more["launches"] += [ran | {"outcome": "crashed", "reason": "signal 11"}]
    assert "Launches: 3, 1 failed, 1 skipped" in Page(html_of(night)).text
    failed = markdown_of(night).split("## Launches that failed")[1].split("##")[0]
    assert "signal 11" in failed and "no Spack" not in failed


def test_each_note_stands_once(bad):
    html = html_of(replace(bad, more={"notes": ["one", "two", "two"]}))
    assert re.findall('<p class="note">(.*?)</p>', html) == ["one", "two (2 times)"]
    assert '<p class="note">' not in html_of(replace(bad, more={"notes": []}))


def test_values_of_languages_are_explained_where_there_are_any(bad):
    said = "A launch of bindings says"
    case = replace(samples.few_cases()[0], program="bindings", routine="bcast.rust")
    assert said not in markdown_of(bad)
    assert said in markdown_of(samples.healthy_night([case]))


def test_how_to_read_names_the_programs_that_were_measured_and_no_others(bad):
    assert "A launch of mpicost says" in markdown_of(bad)
    kernels = markdown_of(samples.healthy_night([replace(samples.few_cases()[0], program="kernels")]))
    assert "A launch of kernels says its steady time" in kernels
    assert not re.search("mpicost|OSU|IMB", kernels.split("## How to read this")[1])


def test_what_was_found_before_is_not_new_again(bad):
    summary = parse_summary(bad.document())
    slow = next(r for r in summary.failed if r.verdict is Verdict.REGRESSED)
    other = next(r for r in summary.results if r.verdict is Verdict.PASS)
    suspect = next(r for r in summary.results if r.verdict is Verdict.CLEARED)
    suspect = replace(suspect, verdict=Verdict.SUSPECT)
    summary = replace(summary, results=(slow, other, suspect))
    night = Night("2026-11-20", "regressed", "s", 1e-6, 1e-6, None)
    nights = {result.case.key: (night, night) for result in (slow, other, suspect)}
    news = find_news(summary, Past(nights))
    assert news.day == "2026-11-20"
    told = {each.what: each.results for each in news.items}
    assert told["no longer regressed"] == (other,)
    assert [each.tone for each in news.items if suspect in each.results] == ["fair"]
    assert told["now suspect (regressed before)"] == (suspect,)
    assert all(slow not in found for found in told.values())
    assert find_news(summary, Past()).line.startswith("the first night")


def test_without_a_store_there_are_no_trials_and_the_rest_is_there(bad):
    page = Page(html_of(bad))
    assert not any(label.startswith("Trials of") for label in page.values("aria-label") if label)
    assert "What failed" in page.text


@pytest.fixture(scope="module")
def hostile_and_plain(bad):
    """Few cases, of every verdict that the bad night has."""
    night = samples.bad_night(samples.few_cases()[::5])
    assert {r.verdict for r in night.results} == {r.verdict for r in bad.results}
    frame = night.frame()
    return [
        (samples.hostile(night, text), frame, text) for text in (samples.HOSTILE, "x" * len(samples.HOSTILE))
    ]


def test_hostile_text_adds_nothing_to_the_page(hostile_and_plain):
    (hostile, frame, text), (plain, _, _) = hostile_and_plain
    found, expected = Page(html_of(hostile, frame)), Page(html_of(plain, frame))
    assert found.open == []
    breaks = {"br"}  # between the lines of a library string
    assert [t for t in found.tags if t not in breaks] == [t for t in expected.tags if t not in breaks]
    assert [name for name, _ in found.attributes] == [name for name, _ in expected.attributes]
    assert found.text.count(sanitize_line(text)) >= 20
    assert found.text.replace("\n", "").isprintable()


def test_hostile_text_adds_nothing_to_the_markdown(hostile_and_plain):
    (hostile, _, _), (plain, _, _) = hostile_and_plain
    found, expected = (MARKDOWN.parse(markdown_of(night)) for night in (hostile, plain))
    assert [token.type for token in found] == [token.type for token in expected]
    quiet = {"text", "text_special", "strong_open", "strong_close", "softbreak", "code_inline"}
    for token in found:
        assert {child.type for child in token.children or []} <= quiet
    assert markdown_of(hostile).replace("\n", "").isprintable()


@pytest.mark.parametrize("text", ["a\nb\r\nc|d\n\n# e", "```", "````\n# f", "    g", "1. h"])
def test_no_text_breaks_out_of_its_place_in_the_markdown(bad, text):
    night = samples.hostile(bad, text)
    kinds = [token.type for token in MARKDOWN.parse(markdown_of(night))]
    assert kinds == [token.type for token in MARKDOWN.parse(markdown_of(samples.hostile(bad, "x")))]


def test_a_very_bad_night_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_selection, "MOST_FAILED", 5)
    monkeypatch.setattr(trial_selection, "MOST_DRAWN", 5)
    monkeypatch.setattr(curves, "MOST_CURVES", 30)
    night = samples.Night()
    planned = samples.cases()
    random = samples.np.random.default_rng(3)
    for case in planned:
        samples.slow(2.5)(night, case, random)
    text = html_of(night, night.frame())
    found = Page(text)
    labels = [label for label in found.values("aria-label") if label]
    assert sum(label.startswith("Trials of") for label in labels) == 5
    assert sum(": over " in label for label in labels) == 30
    assert f"those of {len(planned) - 5} more are not drawn" in found.text
    assert len(text) < 3_000_000


@pytest.fixture(scope="module")
def three() -> samples.Night:
    return sizes.three_programs()


@pytest.fixture(scope="module")
def three_html(three) -> str:
    return html_of(three)


@pytest.fixture(scope="module")
def three_page(three_html) -> Page:
    return Page(three_html)


def test_every_program_has_its_section(three_html, three_page):
    assert three_page.open == []
    heads = re.findall(r'<tr class="head"><th colspan="\d+">(\w+)</th>', three_html)
    assert heads == ["mpicost", "imb", "osu"] * 2
    assert {target[1:] for target in three_page.values("href")} <= set(three_page.values("id"))


def test_bandwidth_is_told_as_bandwidth(three, three_page):
    text = markdown_of(three)
    slow = [r for r in three.results if r.unit == "MB/s" and r.verdict is Verdict.REGRESSED]
    assert len(slow) == 4
    for report_text in (text, three_page.text):
        for r in slow:
            assert formats.quantity(r.value, "MB/s") in report_text
    drawn = [label for label in three_page.values("aria-label") if label]
    assert any(label.startswith("bw") and ": over bytes" in label for label in drawn)
    assert any("MB/s" in line and " 2 times as slow" in line for line in text.splitlines())


def test_figures_of_a_failed_case_are_told(three_page):
    assert re.search(r"Iterations 1000, Min [\d.]+, Max [\d.]+", three_page.text)


def test_hostile_names_of_figures_are_shown_and_not_obeyed(three):
    few = [r for r in three.results if r.case.routine == "bw" and r.case.bytes >= 2**16]
    hostile = replace(three, results=[replace(r, figures={samples.HOSTILE: 1.0}) for r in few])
    plain = replace(three, results=[replace(r, figures={"x": 1.0}) for r in few])
    pages = [Page(html_of(night)) for night in (hostile, plain)]
    assert pages[0].tags == pages[1].tags


def test_a_large_night_is_a_page_that_opens(monkeypatch):
    """Thousands of cases: a page of less than a kilobyte for each that it has, and says what it leaves out."""
    monkeypatch.setattr(session_report, "MOST_GROUPS", 20)
    monkeypatch.setattr(case_table, "MOST_CASES", 1000)
    planned = sizes.cases(routines=15)
    night = sizes.three_programs(planned)
    slow = {case: sizes.measured(case, 3.0) for case in planned[::50]}
    night.results = list(({r.case: r for r in night.results} | slow).values())
    assert len(night.results) > 1500
    text = html_of(night)
    page = Page(text)
    assert len(text) < 1_000_000
    ran = sum(r.verdict is not Verdict.SKIPPED for r in night.results)
    assert f"{ran - 1000:,} further cases in summary.json" in page.text
    assert re.search(r"\d+ further groups in summary.json", page.text)
