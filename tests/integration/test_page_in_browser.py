"""The page of a night in a real browser: search, counts, sort, keys, print, a narrow screen, and no request."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from postprocess.model.verdict import CaseResult, Verdict
from postprocess.report import session_report, trial_selection
from postprocess.report.first_screen import Past, Step
from postprocess.results.query import Night
from postprocess.results.summary import parse_summary
from postprocess.session.lifecycle.past import build_entry, render_index
from tests.support.browser import Browser, needs_browser, open_browser
from tests.support.factories import report as samples
from tests.support.faults import plants

pytestmark = needs_browser
INJECTED = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
LAST = date(2026, 11, 21)  #: the session's own night
VISIBLE = "[...document.querySelectorAll('.cases > details:not([hidden])')]"


def cell(number: int) -> str:
    """Read a column of what is shown."""
    return f"{VISIBLE}.map(each => each.querySelectorAll('summary i')[{number}].textContent)"


def write_page(folder, night, name, past=None):
    summary = parse_summary(night.document())
    trials = trial_selection.read_trials(night.frame(), samples.SESSION)
    path = folder / f"{name}.html"
    path.write_text(session_report.render_html(summary, trials, past=past), encoding="utf-8")
    return path


def make_past(results: Sequence[CaseResult], nights: int = 60) -> Past:
    """A past of so many nights, in which every tenth case stepped and every seventh had another MPI before.

    The last night is the session's own.
    """
    random = np.random.default_rng(7)
    found: dict[str, tuple[Night, ...]] = {}
    steps: dict[str, list[Step]] = {}
    measured = [each for each in results if each.value and each.reference]
    for number, result in enumerate(measured):
        center = float(result.reference or 1.0)
        values = center * random.lognormal(0, 0.02, nights)
        values[: nights // 3] *= 1.15 if number % 7 == 0 else 1.0
        values[nights // 2 :] *= 1.08 if number % 10 == 0 else 1.0
        values[-1] = result.value
        found[result.case.key] = tuple(
            make_night(result, nights - 1 - n, float(values[n]), earlier=n < nights // 3 and number % 7 == 0)
            for n in range(nights)
        )
        if number % 10 == 0:
            begun = found[result.case.key][nights // 2]
            steps[result.case.key] = [Step(begun.session, f"step of +8.0% in time from {begun.day}")]
    return Past(found, steps)


def make_night(result: CaseResult, ago: int, value: float, earlier: bool = False) -> Night:
    """One night so many days ago; an earlier one is of another MPI and reference."""
    day = str(LAST - timedelta(days=ago))
    verdict = str(result.verdict) if ago == 0 else "suspect" if ago == 5 else "pass"
    scale = 1.15 if earlier else 1.0
    low, high = result.band or (0.9 * value, 1.1 * value)
    return Night(
        day,
        verdict,
        result.unit,
        value,
        scale * float(result.reference or value),
        (scale * low, scale * high),
        f"{day}-1",
        "before" if earlier else "now",
    )


def crowd(night):
    """The same night, in which every tenth case failed or is suspect, each for a reason of its own."""
    verdicts = {0: Verdict.REGRESSED, 10: Verdict.SUSPECT}
    results = [
        replace(r, verdict=verdicts[n % 20], reason=f"{n} times as slow") if n % 10 == 0 else r
        for n, r in enumerate(night.results)
    ]
    return replace(night, results=results)


def widen(night):
    """The same night on four times as many MPIs."""
    results = [
        replace(result, case=replace(result.case, environment=f"{result.case.environment}-{number}"))
        for result in night.results
        for number in range(4)
    ]
    return replace(night, results=results)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def nights():
    return samples.bad_night(samples.few_cases()), samples.healthy_night(samples.few_cases()[::2])


@pytest.fixture(scope="module")
def pages(tmp_path_factory, nights):
    folder = tmp_path_factory.mktemp("pages")
    bad, quiet = nights
    hostile = samples.hostile(bad, INJECTED)
    return {
        "bad": write_page(folder, bad, "bad", make_past(bad.results)),
        "quiet": write_page(folder, quiet, "quiet", make_past(quiet.results)),
        "hostile": write_page(folder, hostile, "hostile"),
        "crowded": write_page(folder, crowd(bad), "crowded"),
        "wide": write_page(folder, widen(quiet), "wide"),
    }


@pytest.fixture
def bad(browser: Browser, pages) -> Browser:
    browser.show()
    browser.open(pages["bad"])
    return browser


def search(browser: Browser, text: str) -> None:
    browser.press("/", "/")
    browser.write(text)


def test_a_search_by_words_and_conditions_shows_what_it_says(bad, nights):
    results = [r for r in nights[0].results if r.verdict != "skipped"]
    assert bad.run(f"{VISIBLE}.length") == len(results)
    search(bad, "bcast p=16 bytes>8Ki slowdown>1.2 verdict=regressed")
    expected = [
        r
        for r in results
        if (r.case.routine, r.case.processes, str(r.verdict)) == ("bcast", 16, "regressed")
        and r.case.bytes > 8192
    ]
    assert len(expected) == 2
    assert bad.run(cell(2)) == [str(r.case.bytes) for r in expected]
    assert bad.run("document.querySelector('output').textContent") == f"2 of {len(results)} cases"
    bad.press("Escape")
    search(bad, "verdict!=pass,cleared bytes=1M,100k")
    assert set(bad.run(cell(2))) <= {"1000000", "100000"}
    assert not set(bad.run(cell(0))) & {"pass", "cleared"}
    bad.press("Escape")
    search(bad, "bytes>x")
    assert "not understood: bytes>x" in bad.run("document.querySelector('output').textContent")


def test_counts_and_cells_of_the_map_filter(bad):
    bad.run("document.querySelector('.counts [data-search$=regressed]').click()")
    assert set(bad.run(cell(0))) == {"regressed"}
    assert bad.run("document.querySelector('.counts [data-search$=regressed]').ariaCurrent") == "true"
    bad.run("document.querySelector('.counts [data-search$=regressed]').click()")
    assert len(set(bad.run(cell(0)))) > 3
    bad.run("document.querySelector('.map td.bad').click()")
    assert len({*bad.run(cell(1))}) == len({*bad.run(cell(4))}) == len({*bad.run(cell(2))}) == 1


def test_a_column_sorts_both_ways_and_what_has_no_number_is_last(bad):
    for descending in (True, False):
        bad.run("document.querySelector('[data-key=slowdown]').click()")
        shown = bad.run(cell(7))
        numbers = [float(each) for each in shown if each != "-"]
        assert numbers == sorted(numbers, reverse=descending)
        assert "-" in shown
        assert "-" not in shown[: len(numbers)]


def test_the_address_keeps_search_and_order(bad, browser, pages):
    search(bad, "alltoall p=8")
    bad.run("document.querySelector('[data-key=bytes]').click()")
    fragment, shown = bad.run("location.hash"), bad.run(cell(2))
    browser.open(pages["bad"], fragment)
    assert browser.run("document.querySelector('input').value") == "alltoall p=8"
    assert browser.run(cell(2)) == shown == sorted(shown, key=int, reverse=True)


def test_keys_find_the_search_and_clear_it(bad):
    search(bad, "barrier")
    assert bad.run("document.activeElement.type") == "search"
    assert set(bad.run(cell(1))) == {"barrier"}
    bad.press("Escape")
    assert bad.run("document.querySelector('input').value") == ""
    assert bad.run("document.activeElement === document.body")


def test_a_link_opens_its_case_even_if_a_search_hides_it(bad):
    search(bad, "barrier")
    bad.run("document.querySelector('.group a').click()")
    bad.wait_until(f"{VISIBLE}.filter(each => each.open).length === 1")
    shown = bad.run("document.querySelector('.cases > [open] .pair > svg').getBoundingClientRect().height")
    assert shown > 100


def test_a_row_opens_with_its_history_diagrams_and_trials(bad):
    search(bad, "verdict=regressed alltoall")
    row = "document.querySelector('.cases > details:not([hidden])')"
    size = f"(() => {{ const r = {row}.querySelector('summary svg').getBoundingClientRect();"
    before = bad.run(f"{size} return [r.width, r.height] }})()")
    bad.run(f"{row}.querySelector('summary').click()")
    after = bad.run(f"{size} return [r.width, r.height] }})()")
    assert after[0] > 5 * before[0]
    assert after[1] > 5 * before[1]
    shapes = bad.run(f"[...{row}.querySelectorAll('summary path')].map(each => each.className.baseVal)")
    assert {"b", "x", ""} <= set(shapes)
    assert bad.run(f"{row}.querySelectorAll('.pair > svg').length") == 2
    assert bad.run(f"{row}.querySelectorAll('.pair figure svg[aria-label^=Trials]').length") == 1
    told = bad.run(f"{row}.querySelector('.told').textContent")
    assert told.startswith("60 nights, 2026-09-23 to 2026-11-21")


@pytest.mark.parametrize("width", [400, 1280])
def test_an_opened_history_has_values_and_dates_beside_it(browser, pages, width):
    browser.show(width)
    browser.open(pages["bad"])
    row = "document.querySelector('.cases > details:has(path.x)')"
    boxes = f"[...{row}.querySelectorAll('summary text')].map(each => each.getBoundingClientRect())"
    assert browser.run(f"{boxes}.every(box => box.width === 0)")
    browser.run(f"{row}.open = true")
    labels = browser.run(f"[...{row}.querySelectorAll('summary text')].map(e => e.textContent)")
    assert all(label.endswith(" µs") for label in labels[:3])
    assert [labels[3], labels[-1]] == ["2026-09-23", "2026-11-21"]
    frame = f"{row}.querySelector('summary svg').getBoundingClientRect()"
    inside = "box => box.left >= frame.left && box.right <= frame.right && box.bottom <= frame.bottom"
    assert browser.run(f"(frame => {boxes}.every({inside}))({frame})")


def test_steps_and_epochs_are_drawn_and_told(bad):
    search(bad, "step")
    assert bad.run(f"{VISIBLE}.length") > 3
    assert bad.run(f"{VISIBLE}.every(each => each.querySelector('summary path.t'))")
    bad.press("Escape")
    search(bad, "another reference or MPI")
    assert bad.run(f"{VISIBLE}.length") > 3
    assert bad.run(f"{VISIBLE}.every(each => each.querySelector('summary path.e'))")


def test_the_page_asks_for_nothing_and_complains_of_nothing(bad, pages):
    bad.run("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert bad.list_requests() == [pages["bad"].as_uri()]
    assert bad.list_complaints() == []
    addresses = re.findall(r'(?:href|src|url)[=(]"?([^")\s]*)', pages["bad"].read_text())
    assert all(address.startswith("#") for address in addresses)


@plants("security", "`<img onerror>` and `<script>` in every name, note and reason",
        "the page of a night, in a browser", "", 0,
        "<img src=x onerror=…><script>document.title=…</script>")  # fmt: skip
def test_hostile_names_stay_text(browser, pages, declared):
    browser.open(pages["hostile"])
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true })")
    search(browser, "onerror")
    assert "taken" not in browser.run("document.title").replace(INJECTED, "")
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 1
    shown = browser.run("document.body.textContent")
    assert shown.count(INJECTED) > 20
    declared.check((), 0, [" ".join(shown.split())])
    assert browser.list_complaints() == []


@pytest.mark.parametrize("name", ["bad", "quiet"])
def test_nothing_is_wider_than_a_telephone(browser, pages, name):
    browser.show(400)
    browser.open(pages[name])
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert browser.run("document.documentElement.scrollWidth") == 400
    cut = browser.run(
        "[...document.querySelectorAll('.cases > details i')].filter(each =>"
        " each.getBoundingClientRect().right > 400).length"
    )
    assert cut == 0


def test_the_index_of_sessions_leads_to_their_pages(browser, pages, tmp_path, nights):
    entries = [
        build_entry(parse_summary(night.document()), f"{name}.html")
        for name, night in zip(("bad", "quiet"), nights, strict=True)
    ]
    for name in ("bad", "quiet"):
        (tmp_path / f"{name}.html").write_bytes(pages[name].read_bytes())
    index = tmp_path / "index.html"
    index.write_text(render_index(entries), encoding="utf-8")
    browser.show(400)
    browser.open(index)
    assert browser.run("document.documentElement.scrollWidth") == 400
    assert browser.list_complaints() == []
    browser.run("void setTimeout(() => document.querySelector('.links a.bad').click())")
    browser.wait_until("location.pathname.endsWith('/bad.html') && document.title")
    assert "6 of 171 cases failed" in browser.run("document.title")


@pytest.mark.parametrize("name", ["quiet", "crowded"])
def test_a_night_prints_on_two_pages(browser, pages, name):
    browser.show()
    browser.open(pages[name])
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", browser.print_page())) <= 2


def test_a_map_of_many_mpis_fits_on_a_printed_sheet(browser, pages):
    browser.show(700)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        browser.open(pages["wide"])
        widths = browser.run(
            "[...document.querySelectorAll('.map')].map(map => map.getBoundingClientRect().width)"
        )
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
    assert widths
    assert max(widths) <= 700


def test_a_dark_screen_gets_a_dark_page(browser, pages):
    colours = []
    for dark in (False, True):
        browser.show(dark=dark)
        browser.open(pages["quiet"])
        colours.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(253, 253, 252)", "rgb(21, 23, 26)"]


def test_without_its_script_the_page_shows_everything(browser, pages, nights):
    browser.show()
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages["bad"])
        shown = sum(r.verdict != "skipped" for r in nights[0].results)
        assert browser.run(f"{VISIBLE}.length") == shown
        assert browser.run("document.querySelector('.search').hidden")
        heights = f"{VISIBLE}.map(each => each.getBoundingClientRect().height > 10)"
        assert all(browser.run(heights))
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
