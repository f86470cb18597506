"""The tables of one paper: whole as printed, and of sessions as far as these go."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from postprocess.base.errors import UsageError
from postprocess.base.text_table import MISSING
from postprocess.extensions.papers.common.data import arrange_sessions
from postprocess.extensions.papers.common.printed import load_history
from postprocess.extensions.papers.forms import PAPERS, build_printed_tables
from postprocess.extensions.papers.luecke.chained import build_cold_table
from postprocess.extensions.papers.luecke.spread import build_spread_table, compute_spread
from postprocess.extensions.papers.one_paper import NO_SPREAD, Asked, build_paper, format_paper
from postprocess.extensions.papers.rus import costs
from postprocess.main import main
from postprocess.report.trial_selection import LaunchTrials
from postprocess.results.store import write_session
from tests.support.factories import papers as samples
from tests.support.factories import report as report_samples
from tests.support.factories.papers import arrange_results
from tests.support.factories.report import SESSION
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

HISTORY = load_history()


def tables(paper, against=None):
    return {t.title: t for t in build_printed_tables(HISTORY, paper, against)}


def trials(*times, dropped=1):
    return LaunchTrials(1, np.array(times), np.zeros(len(times), bool), dropped, 1.0)


# In print.


def test_every_printed_number_is_in_a_table():
    cells = {
        paper: sum(len(t.rows) * len(t.columns) for t in build_printed_tables(HISTORY, paper, None))
        for paper in PAPERS
    }
    texts = {name: sum(f.paper == each.text for f in HISTORY.figures) for name, each in PAPERS.items()}
    own = {name: cells[name] - texts[name] for name in PAPERS}
    bandwidths = 2 * 4 * 4
    assert own == {
        "luecke2001": 64,
        "luecke2003": 0,
        "rus": 72 + bandwidths,
        "taboada": 147 * 7 + 21 * 3 + 180,
        "commtest": 0,
    }
    assert sum(texts.values()) == len(HISTORY.figures)


def test_figures_of_the_text_are_in_words_with_their_units():
    rows = tables("commtest")["Figures of the text"].rows
    assert ("swap", "8", "65536..131072", "protocol change", "65536 bytes") in [r[2:] for r in rows]
    assert all("_" not in row[5] for row in rows)
    taboada = [row[5:] for row in tables("taboada")["Figures of the text"].rows]
    assert ("replace always", "yes") in taboada
    assert ("random messages in accuracy test", "20") in taboada


def test_printed_ratios_can_be_taken_to_any_machine_the_nt_cluster_too():
    rows = tables("luecke2001")["bcast: time over that of the T3E-600, 128 processes"].rows
    assert ("NT Cluster", "0.6", "3.8") in rows
    rows = tables("luecke2001", "NT Cluster")["bcast: time over that of the NT Cluster, 128 processes"]
    assert rows.rows[0] == ("T3E-600", "1.67", "0.263")
    assert rows.rows[1][0] == "Origin 2000"
    assert rows.rows[1][1:] == ("4.17", "0.395")


def test_what_follows_from_a_model_stands_where_the_paper_errs_and_only_there():
    models = [t for t in build_printed_tables(HISTORY, "taboada", None) if "peaks" in t.title]
    assert len(models) == 4
    follows = [cell for t in models for row in t.rows for cell in (row[6], row[8]) if cell]
    assert sorted(follows) == sorted(["165.1", "1021", "22.73", "25.17", "2385", "1107", "1193", "343.7"])


def test_a_crossover_in_print_stands_beside_that_of_the_model():
    table = tables("taboada")["Where a composition is faster than what it replaces"]
    assert len(table.rows) == 21
    row = ("SCI-dual", "MPJ/Ibis", "allgather by gather + bcast", "16", "above 45 KiB")
    assert (*row, "below 44.33 KiB", "50% at 1 KiB") in table.rows


# Of sessions.


def test_the_spread_is_that_of_the_filtered_trials():
    spikes = compute_spread(trials(50.0, 1.0, 1.2, 0.8, *[1.0] * 8, 9.0))
    kept = np.array([1.0, 1.2, 0.8, *[1.0] * 8])
    assert (spikes.trials, spikes.removed) == (12, 1)
    assert spikes.deviation == pytest.approx(np.std(kept, ddof=1) / np.mean(kept))
    assert spikes.unfiltered == pytest.approx((kept.sum() + 9.0) / 12 / np.mean(kept))
    assert compute_spread(trials(50.0, 1.0)) is None


def test_the_spread_of_a_machine_stands_beside_that_in_print():
    planned = samples.cases(["torus"], ["simgrid-mpich"], [8], ["bcast"])
    measured = arrange_results(samples.session(planned).results)
    steady, shaky = trials(9.0, *[1.0] * 10), trials(9.0, 0.5, 1.5, *[1.0] * 8)
    known = {"": {planned[0].key: (steady,), planned[1].key: (steady, shaky)}}
    rows = build_spread_table(measured, known, HISTORY).rows
    widest = compute_spread(shaky).deviation
    place = ("torus", "simgrid-mpich", "warm, dissemination")
    seven, every, t3e, origin = rows
    assert seven == (
        *(*place, "the paper's seven", "3", f"{widest / 3:.2%}", f"{widest:.2%}", "0.00%"),
        *("1.000", "1.000", "bcast 10 kB, p = 8"),
    )
    assert every[:5] == (*place, "all", "3")
    seven = ("all", "-", "the paper's seven", "-")
    assert t3e[:8] == ("T3E-900 (in print)", *seven, "2.32%", "18.24%", "0.48%")
    assert origin[:8] == ("Origin 3000 (in print)", *seven, "11.13%", "55.37%", "2.51%")


def test_the_spread_of_the_paper_s_tests_is_apart_from_that_of_others():
    planned = samples.cases(["torus"], ["simgrid-mpich"], [8], ["bcast", "scan_sum"])
    measured = arrange_results(samples.session(planned).results)
    known = {"": {case.key: (trials(9.0, *[1.0] * 10),) for case in planned}}
    counts = {row[3]: row[4] for row in build_spread_table(measured, known, HISTORY).rows[:2]}
    assert counts == {"the paper's seven": "3", "all": "5"}


@pytest.mark.parametrize("paper", ["luecke2001", "luecke2003"])
def test_without_two_trials_that_count_there_is_no_spread_and_a_page_says_so(paper):
    planned = samples.cases(["torus"], ["simgrid-mpich"], [8], ["bcast"])
    measured = arrange_results(samples.session(planned).results)
    once = {"": {planned[0].key: (trials(9.0, 1.0),)}}
    assert build_spread_table(measured, once, HISTORY) is None
    assert NO_SPREAD in build_paper(Asked(paper, trials=once), measured)[0].remarks
    often = {"": {planned[0].key: (trials(9.0, 1.0, 2.0),)}}
    assert NO_SPREAD not in build_paper(Asked(paper, trials=often), measured)[0].remarks


def test_cold_caches_of_one_session_are_held_against_warm_ones_of_another():
    def night(cache, seconds, sizes):
        planned = samples.cases(["torus"], ["simgrid-mpich"], [8], ["bcast"])
        planned = [replace(c, cache=cache) for c in planned if c.bytes in sizes]
        return samples.session(planned, seconds).results

    warm = night("warm", lambda _: 2e-6, (8, 10_000))
    flushed = night("flush", lambda case: 20e-6 if case.bytes == 8 else None, (8, 10_000, 1_000_000))
    again = night("warm", lambda _: 4e-6, (8,))
    sessions = {"one": warm, "two": flushed, "three": again}
    table = build_cold_table(arrange_sessions(sessions), HISTORY)
    place = ("simulated", "torus", "simgrid-mpich")
    assert table.rows == ((*place, "bcast", "8 B", "dissemination", "8", "6.67", "-"),)
    assert table.notes == ("in print: 10 of bcast of 8 B on the Origin 2000, 128 processes, flushed",)
    assert build_cold_table(arrange_sessions({"one": warm, "two": []}), HISTORY) is None


def test_costs_have_the_bandwidths_of_rus_and_say_what_is_not_measured():
    planned = samples.cases(["torus"], ["simgrid-mpich"], [32], ["bcast", "gather", "alltoall"])
    lost = next(c for c in planned if c.routine == "gather" and c.bytes == 10_000)
    night = samples.session(planned, lambda case: None if case == lost else 1e-3)
    (measured, printed) = build_paper(Asked("rus"), arrange_results(night.results))
    (table,) = (t for t in measured.tables if "time of a call" in t.title)
    assert table.labels == ("buffer", "routine")
    assert [row for row in table.rows if row[0] in ("10000 B", "320000 B")] == [
        ("10000 B", "bcast", "1000 (320)"),
        ("320000 B", "gather", MISSING),
        ("320000 B", "alltoall", "1000 (10240)"),
    ]
    assert measured.remarks[0].startswith("Not measured: buffers of 1 KiB, 1 MiB; ./plumbline run --family rus")
    assert (measured.title, printed.title) == ("Measured", "In print")


def test_costs_of_loops_are_not_said_to_be_of_single_calls():
    (case,) = samples.cases(["torus"], ["simgrid-mpich"], [32], ["bcast"])[:1]
    for sync, said in (("loop", costs.PIPELINED), ("barrier", costs.SINGLE)):
        night = samples.session([replace(case, sync=sync)])
        (table,) = costs.build_cost_tables(arrange_results(night.results))
        assert table.notes[-1] == said


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_a_number_in_full_in_each_line_and_what_it_is_of():
    rows = read_csv(format_paper(build_paper(Asked("taboada"), None), "csv"))
    kept = ("quantity", "value", "unit", "machine", "mpi", "routine")
    assert [rows[0][name] for name in kept] == ["t0", "9.0", "us", "Myrinet", "MPICH-GM", "send"]
    lacking = [row for row in rows if not row["value"]]  # formulas, and what a paper leaves out
    assert all(row["note"] for row in lacking) and all(math.isfinite(float(r["value"] or 0)) for r in rows)


def test_csv_of_sessions_is_drawn_without_more_than_matplotlib():
    planned = samples.cases(["torus"], ["simgrid-mpich"], [8, 32], ["bcast"])
    night = samples.session(planned)
    rows = read_csv(format_paper(build_paper(Asked("rus"), arrange_results(night.results)), "csv"))
    points = [
        (float(r["processes"]), float(r["value"]))
        for r in rows
        if (r["part"], r["quantity"], r["bytes"]) == ("Measured", "time of a call", "1000000")
    ]
    (line,) = Figure().subplots().plot(*zip(*points, strict=True))
    times = [samples.modelled(case) * 1e6 for case in planned if case.bytes == 1_000_000]
    assert list(line.get_ydata()) == pytest.approx(times, rel=1e-12)
    assert list(line.get_xdata()) == [8, 32]


def test_markdown_has_each_table():
    text = format_paper(build_paper(Asked("luecke2001"), None), "markdown")
    assert sum(line.startswith("**") for line in text.splitlines()) == 9 + 1
    assert "| Ethernet Linux Cluster | 10 | 25.6 |" in text


@plants("use", "a machine that the paper has not", "`papers --against`", "", 2,
        "--against ")  # fmt: skip
@pytest.mark.parametrize(
    ("paper", "against", "said"),
    [
        (
            "rus",
            "NT Cluster",
            "--against NT Cluster: rus has no such machine; leave it out, or choose of T3E-512",
        ),
        ("commtest", "venus", "--against venus: commtest has no such machine; leave it out"),
        ("luecke2001", "venus", "--against venus: there is no session, and in print are T3E-600"),
    ],
)
def test_what_a_paper_lacks_is_refused(paper, against, said, declared: Declared):
    with declared.raises(UsageError, match=re.escape(said)):
        build_paper(Asked(paper, against), None)


# The command.


def run(home, *words):
    return main(str(ROOT), str(home), ("papers", *words))


def test_printed_tables_need_no_session(tmp_path, sigterm_handler, capsys):
    assert run(tmp_path, "--paper", "luecke2001", "--against", "NT Cluster") == 0
    output, errors = capsys.readouterr()
    assert "barrier: time over that of the NT Cluster, 128 processes" in output
    assert errors == ""


def test_a_stored_session_has_its_spread(tmp_path, sigterm_handler, capsys):
    night = report_samples.healthy_night(report_samples.few_cases())
    night.write(tmp_path / "sessions" / SESSION)
    write_session(tmp_path / "store" / f"{SESSION}.parquet", night.rows)
    assert run(tmp_path, "--paper", "luecke2003", "--format", "csv") == 0
    rows = read_csv(capsys.readouterr()[0])
    spread = {row["quantity"]: row for row in rows if row["mpi"].startswith("mpich")}
    assert float(spread["cases"]["value"]) > 0
    assert (float(spread["average"]["value"]) > 0, spread["average"]["unit"]) == (True, "%")


def test_a_session_is_compared_with_the_form_of_the_paper(tmp_path, sigterm_handler, capsys):
    night = samples.session(samples.cases(counts=(8, 128)))
    night = replace(night, more=night.more | {"notes": ["machine is 83% busy"]})
    night.write(tmp_path / "sessions" / SESSION)
    assert run(tmp_path, "--paper", "luecke2001", "--against", "torus:simgrid-ompi") == 0
    output = capsys.readouterr()[0]
    assert "bcast: time over that of torus with simgrid-ompi, 128 processes" in output
    assert "Simulated machines are models of links" in output
    assert f"{SESSION}: machine is 83% busy" in output
    assert "bcast: time over that of the T3E-600, 128 processes" in output
