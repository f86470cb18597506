"""Questions to recorded nights: history, drift, alarms, stored comparisons, tables of the papers, exports."""

import math
from dataclasses import replace

from postprocess.analyses.alarms import FILE, append_night, summarise_night_alarms
from postprocess.extensions.papers.command import PAPERS
from postprocess.results.store import write_session
from tests.golden.stage import Stage
from tests.support.factories import papers
from tests.support.factories.drift import CASE, noise, session, started, write_nights
from tests.support.factories.report import SESSION, bad_night, few_cases, healthy_night
from tests.unit.postprocess.features.compare.measure.test_stored import NEW, OLD, session_rows

ROUTINES = ("bcast", "gather", "scatter", "alltoall", "allgather", "barrier")
SINCE = "2026-09-01"


def play(stage: Stage) -> None:
    """Ask what every command that launches nothing tells of nights in the store."""
    nights(stage)
    comparisons(stage)
    tables(stage)
    alarms(stage)


def nights(stage: Stage) -> None:
    """Sixty nights of six cases, of which four become slower and one drifts."""
    cases = {}
    for number, routine in enumerate(ROUTINES):
        logs = noise(seed=number)
        if number < 4:
            logs[30:] += math.log(1.08)
        elif number == 4:
            logs += [0.002 * night for night in range(len(logs))]
        cases[replace(CASE, routine=routine)] = logs
    write_nights(stage.home / "store", cases)
    told = stage.folder / "drift.json"
    words = ["drift", "--since", SINCE, "--json", told]
    pages = sorted(path.name for path in (stage.home / "drift").glob("*"))
    stage.run("drift", words, [told])
    for page in sorted((stage.home / "drift").glob("*")):
        assert page.name not in pages
        stage.keep(f"drift.{page.name}", page.read_text(encoding="utf-8"))
    stage.run("drift-of-a-case", ["drift", "--since", SINCE, "--case", "*:barrier:*"])
    stage.run("history", ["history", "bcast", "--since", SINCE])
    stage.run("history-of-nothing", ["history", "nothing"])
    stage.run("export", ["export", "--since", "2026-10-25", "--case", "*:bcast:*"])
    for night in range(60):
        (stage.home / "store" / f"{session(night)}.parquet").unlink()
    assert started(0).startswith(SINCE)


def comparisons(stage: Stage) -> None:
    """Two stored sessions: alike, one slower, and one with a case that failed."""
    slow = {ROUTINES[1]: 2.0, ROUTINES[2]: 0.5, ROUTINES[3]: 1.03}
    for name, rows in {OLD: session_rows(OLD), NEW: session_rows(NEW, slow, 1)}.items():
        write_session(stage.home / "store" / f"{name}.parquet", rows)
    for name, words in {"stored": [OLD, NEW], "same": [OLD, OLD]}.items():
        folder = stage.folder / name
        stage.run(f"compare-{name}", ["compare", "--stored", *words, "--output", folder])
        for page in sorted(folder.glob("comparison.*")):
            stage.keep(f"compare-{name}.{page.name}", page.read_text(encoding="utf-8"))


def tables(stage: Stage) -> None:
    """The tables of each paper, as printed and of a session of the made-up machines."""
    made = papers.cases(("torus", "myrinet"), ("simgrid-mpich",), (2, 16, 128))
    papers.session(made).write(stage.home / "sessions" / SESSION)
    for paper in PAPERS:
        stage.run(f"paper-{paper}", ["papers", "--paper", paper, SESSION])
    for form in ("csv", "markdown", "html"):
        words = ["papers", "--paper", "luecke2001", "--format", form]
        stage.run(f"paper-as-{form}", [*words, SESSION])
    stage.run("papers", ["papers", SESSION, "--processes", "16"])
    for page in sorted((stage.home / "sessions" / SESSION).glob("papers.*")):
        stage.keep(f"papers.{page.name}", page.read_text(encoding="utf-8"))
    stage.run("papers-against", ["papers", SESSION, "--against", "t3e"])


def alarms(stage: Stage) -> None:
    """A log of a good and a bad night, and a mark."""
    for day, night in {"20": healthy_night(few_cases()), "21": bad_night(few_cases())}.items():
        name, began = f"202611{day}T090000Z-4711", f"2026-11-{day}T09:00:00Z"
        logged = summarise_night_alarms(name, began, "local", night.results)
        append_night(stage.home / FILE, logged)
    told = stage.folder / "alarms.json"
    stage.run("alarms", ["alarms", "--json", told], [told])
