"""What questions to years of nights cost: Plumbline's store, and ReFrame's own database beside it.

    python -m tests.performance.store_benchmark [ROWS] [--reframe ROWS,ROWS] [--folder DIR] [--small]

Makes up nights of 5,000 cases, writes them as sessions are written, and asks each question in a process of its
own: seconds from the question to the answer, and the most memory the process ever had. ReFrame's database is
filled by ReFrame's own code with as many values, 20 in a test as in a job of Plumbline. Five years, the
default, are 9.1 million rows: 1.3 GB of disk and ten minutes. ``--small``, 200 nights of 500 cases without
ReFrame, takes a minute. All of it is removed at the end.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import polars as pl

from postprocess.analyses.drift import detect_trends
from postprocess.analyses.drift_findings import cluster_changes, read_nights
from postprocess.results.query import read_headlines
from tests.support.factories.store import FIRST_NIGHT, SIZES_OF_A_LAUNCH, Site
from tests.support.paths import ROOT

CASES = 5000
SMALL_CASES, SMALL_NIGHTS = 500, 200
YEAR = 365  #: nights
SERIES = ["key", "started_utc", "launch", "value", "unit"]
#: What a test of ReFrame's report holds beside its values, about as long as that of a real one.
TESTCASE = {f"attribute_{number}": f"a value of that attribute {number}" for number in range(60)}


# Questions to the store. Each returns the number of rows that it looked at.


def one_case(folder: Path, site: Site, nights: int) -> int:
    return read_headlines(folder, keys=[site.keys()[site.cases // 2].key]).height


def last_night(folder: Path, site: Site, nights: int) -> int:
    """The verdicts of the last night, each with what its case was like for a year."""
    since = FIRST_NIGHT + timedelta(days=max(nights - YEAR, 0))
    columns = [*SERIES, "verdict", "reason", "reference", "lower", "upper"]
    year = read_headlines(folder, since=since.strftime("%Y-%m-%d"), columns=columns)
    last = year.filter(pl.col("started_utc") == pl.col("started_utc").max())
    usual = year.group_by("key").agg(
        pl.col("value").median().alias("median"), pl.col("value").quantile(0.95).alias("p95")
    )
    assert last.join(usual, on="key").height == site.cases
    return year.height


def drift(folder: Path, site: Site, nights: int) -> int:
    """What became slower, by ``./plumbline drift`` over everything: of each case the last nights count."""
    trends = detect_trends(read_nights(folder, since=None))
    cluster_changes(trends)
    assert len(trends) == site.cases
    return sum(len(trend.nights.values) for trend in trends)


QUESTIONS: dict[str, Callable[[Path, Site, int], int]] = {
    "history of one case": one_case,
    "last night's verdicts, with a year of context": last_night,
    "drift: every case examined": drift,
}


# The same to ReFrame's database.


def reframe_storage(folder: Path) -> object:
    """ReFrame's storage with its database in a folder."""
    os.environ["RFM_SQLITE_DB_FILE"] = str(folder / "results.db")
    from reframe.core import config, runtime
    from reframe.frontend.reporting.storage import StorageBackend

    site = config.load_config("<builtin>")
    site.select_subconfig("generic")
    site.add_sticky_option("storage/sqlite_db_file", str(folder / "results.db"))
    runtime.init_runtime(site)
    return StorageBackend.create("sqlite")


def reframe_report(frame: pl.DataFrame, number: int) -> dict:
    began = (FIRST_NIGHT + timedelta(days=number)).timestamp()
    session = f"00000000-0000-0000-0000-{number:012d}"
    cases = []
    for index, begin in enumerate(range(0, frame.height, SIZES_OF_A_LAUNCH)):
        part = frame.slice(begin, SIZES_OF_A_LAUNCH)
        values = {
            f"cluster:cpu:{row['routine']}_{row['key']}": [row["value"], 1e-6, -0.1, 0.1, "s", "pass"]
            for row in part.select("routine", "key", "value").to_dicts()
        }
        names = {"name": f"launch {index}", "system": "cluster", "partition": "cpu"}
        cases.append(TESTCASE | names | {
            "environ": "mpich", "uuid": f"{session}:0:{index}", "perfvalues": values,
            "job_completion_time_unix": began + index,
        })  # fmt: skip
    info = {"uuid": session, "time_start_unix": began, "time_end_unix": began + 3600}
    return {"session_info": info, "runs": [{"testcases": cases}], "restored_cases": []}


def fill_reframe(folder: Path, site: Site, nights: int) -> int:
    """Store nights with ReFrame's own code."""
    storage = reframe_storage(folder)
    for number in range(nights):
        storage.store(reframe_report(site.night(number), number))
    return nights * site.cases


def reframe_question(name_pattern: str | None, year: bool) -> Callable[[Path, Site, int], int]:
    """A question for the tests of a name, or all; of the last year, or ever. The answer has their values."""

    def ask(folder: Path, site: Site, nights: int) -> int:
        from reframe.frontend.reporting.utility import QuerySelectorTestcase

        storage = reframe_storage(folder)
        begin = FIRST_NIGHT + timedelta(days=max(nights - YEAR, 0) if year else 0)
        end = FIRST_NIGHT + timedelta(days=nights)
        period = (begin.timestamp(), end.timestamp())
        found = storage.fetch_testcases(QuerySelectorTestcase(time_period=period), name_pattern)
        return sum(len(case["perfvalues"]) for case in found)

    return ask


REFRAME_QUESTIONS = {
    "history of one case": reframe_question("launch 0$", year=False),
    "last night's verdicts, with a year of context": reframe_question(None, year=True),
    "drift: every value of every case": reframe_question(None, year=False),
}
STEPS = {"store": QUESTIONS, "ReFrame": {"filling the database": fill_reframe, **REFRAME_QUESTIONS}}


# Putting them.


def answer(kind: str, name: str, folder: Path, site: Site, nights: int) -> None:
    """Answer one question in this process, and print what that cost."""
    begin = time.perf_counter()
    rows = STEPS[kind][name](folder, site, nights)
    seconds = time.perf_counter() - begin
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(json.dumps([rows, seconds, int(peak[1]) / 1000]))


def put(kind: str, name: str, folder: Path, site: Site, nights: int, label: str = "") -> None:
    """Put a question in a new process, and print its row of the table."""
    words = ["--ask", kind, name, "--folder", str(folder), "--cases", str(site.cases)]
    command = [sys.executable, "-m", "tests.performance.store_benchmark", str(nights * site.cases), *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    rows, seconds, peak = json.loads(done.stdout.splitlines()[-1])
    print(f"{kind:8} {label or name:46} {rows:>10,} rows {seconds:8.2f} s {peak:7.0f} MB", flush=True)


def write(folder: Path, site: Site, nights: int) -> None:
    """Write the nights, and say what they take."""
    begin = time.perf_counter()
    for number in range(nights):
        site.write(folder, number)
        if number and number % 200 == 0:
            print(f"written: {number} of {nights} nights", flush=True)
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    seconds = time.perf_counter() - begin
    print(f"{nights} nights of {site.cases} cases: {size / 1e6:.0f} MB, made in {seconds:.0f} s")


def compare(folder: Path, site: Site, rows: int, reframe_rows: Sequence[int]) -> None:
    """The whole benchmark."""
    store, nights = folder / "store", max(rows // site.cases, 1)
    store.mkdir()
    write(store, site, nights)
    put("store", "history of one case", store, site, nights, "history of one case, all files new")
    for name in QUESTIONS:
        put("store", name, store, site, nights)
    size = sum(path.stat().st_size for path in (store / "headlines").iterdir())
    print(f"index of headlines: {size / 1e6:.0f} MB")
    for number in reframe_rows:
        database = folder / f"reframe-{number}"
        database.mkdir()
        for name in STEPS["ReFrame"]:
            put("ReFrame", name, database, site, max(number // site.cases, 1))
        print(f"database: {(database / 'results.db').stat().st_size / 1e6:.0f} MB", flush=True)


def main(words: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="?", type=int, default=1826 * CASES)
    parser.add_argument("--reframe", default="50000,150000,500000")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--small", action="store_true", help="a site that takes a minute, no ReFrame")
    parser.add_argument("--ask", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(words)
    if chosen.small:
        chosen.rows, chosen.cases, chosen.reframe = SMALL_NIGHTS * SMALL_CASES, SMALL_CASES, ""
    site = Site(chosen.cases)
    if chosen.ask:
        answer(*chosen.ask, chosen.folder, site, chosen.rows // chosen.cases)
        return
    numbers = [int(word) for word in chosen.reframe.split(",") if word]
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        compare(Path(scratch), site, chosen.rows, numbers)


if __name__ == "__main__":
    main()
