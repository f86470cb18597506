"""Measure the page of a large night: ``python -m tests.performance.page_size [--cases N] [--nights N]``.

A made-up store is read and the page written as a night does it, and Chromium opens it from its file, if it is
here. Exit status 1: the page is larger or slower than promised.
"""

import argparse
import tempfile
import time
from pathlib import Path

import polars as pl

from postprocess.base.workdir import WorkDirectory
from postprocess.model.case import Case
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.report.session_report import render_html
from postprocess.results.summary import SessionSummary, parse_summary
from postprocess.session.lifecycle.past import read_past
from tests.support.browser import find_browser, open_browser
from tests.support.factories import report as samples
from tests.support.factories.store import Site, session_name
from tests.support.paths import ROOT

MOST_BYTES = 2 * 2**20
MOST_SECONDS = 2.0  #: to the first paint
MOST_SEARCH = 0.5  #: seconds of a search
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
SHOWN = "document.querySelectorAll('.cases > details').length"
SEARCH = """(() => { const input = document.querySelector('.search input'); const begun = performance.now();
input.value = 'routine7 p<9 slowdown>1.01'; input.dispatchEvent(new Event('input'));
document.body.offsetHeight; return performance.now() - begun })()"""


def make_summary(frame: pl.DataFrame, number: int) -> SessionSummary:
    """The summary of a night of the store: one case in a hundred regressed, one in a hundred is suspect."""
    results = []
    for place, row in enumerate(frame.iter_rows(named=True)):
        slow = {7: (Verdict.REGRESSED, 1.4), 57: (Verdict.SUSPECT, 1.2)}
        verdict, times = slow.get(place % 100, (Verdict.PASS, 1.0))
        reason = "" if verdict is Verdict.PASS else f"{times} times as slow as its reference"
        results.append(
            CaseResult(
                Case.from_key(row["key"]),
                verdict,
                reason,
                value=row["value"] * times,
                reference=row["reference"],
                band=(row["lower"], row["upper"]),
                launches=5,
                reference_launches=20,
                detectable=row["detectable"],
                spread=0.03,
            )
        )
    started = frame["started_utc"][0]
    more = {"session": session_name(number), "started_utc": started, "ended_utc": started}
    return parse_summary(samples.Night(results, more=more).document())


def measure_in_browser(page: Path, folder: Path) -> tuple[float, float]:
    """Seconds to the first paint, and of a search."""
    with open_browser(folder) as browser:
        browser.show()
        browser.open(page)
        assert browser.run(SHOWN) > 0
        end = time.monotonic() + 30
        while not (painted := browser.run(PAINTED)) and time.monotonic() < end:
            time.sleep(0.05)
        return float(painted) / 1000, browser.run(SEARCH) / 1000


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--keep", type=Path, help="write the page here too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = WorkDirectory(Path(name) / "home", ROOT)
        work.store.mkdir(parents=True)
        site = Site(asked.cases)
        for number in range(asked.nights):
            site.write(work.store, number)
        summary = make_summary(site.night(asked.nights - 1), asked.nights - 1)
        begun = time.monotonic()
        past = read_past(work, summary)
        read = time.monotonic() - begun
        html = render_html(summary, {}, past=past)
        rendered = time.monotonic() - begun - read
        page = asked.keep or Path(name) / "report.html"
        page.write_text(html, encoding="utf-8")
        size = page.stat().st_size
        print(f"{asked.cases} cases, {asked.nights} nights: {size / 2**20:.2f} MiB")
        print(f"nights read in {read:.1f} s, page made in {rendered:.1f} s")
        bad = size > MOST_BYTES
        if find_browser():
            painted, searched = measure_in_browser(page, Path(name) / "browser")
            print(f"first paint after {painted:.2f} s, a search takes {searched:.2f} s")
            bad |= painted > MOST_SECONDS or searched > MOST_SEARCH
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
