"""The tables of one paper: whole as printed, and of sessions as far as these go."""

import csv
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from postprocess.base.errors import UsageError
from postprocess.base.formats import MISSING
from postprocess.extensions.papers import cells, rus_costs
from postprocess.extensions.papers.command import NO_SPREAD, Asked, build_paper
from postprocess.extensions.papers.luecke_spread import build_cold_table, build_spread_table, compute_spread
from postprocess.extensions.papers.measurements import arrange_sessions
from postprocess.extensions.papers.printed import load_history
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


def trials(*times, dropped=1):
    return LaunchTrials(1, np.array(times), np.zeros(len(times), bool), dropped, 1.0)


def test_the_spread_is_that_of_the_filtered_trials():
    spikes = compute_spread(trials(50.0, 1.0, 1.2, 0.8, *[1.0] * 8, 9.0))
    kept = np.array([1.0, 1.2, 0.8, *[1.0] * 8])
    assert (spikes.trials, spikes.removed) == (12, 1)
    assert spikes.deviation == pytest.approx(np.std(kept, ddof=1) / np.mean(kept))
    assert spikes.unfiltered == pytest.approx((kept.sum() + 9.0) / 12 / np.mean(kept))
    assert compute_spread(trials(50.0, 1.0)) is None


def test_the_spread_of_a_machine_stands_beside_that_in_print():
    planned = samples.cases(["torus"], ["simgrid-mpich"], [8], ["bcast", "scan_sum"])
    measured = arrange_results(samples.session(planned).results)
    steady, shaky = trials(9.0, *[1.0] * 10), trials(9.0, 0.5, 1.5, *[1.0] * 8)
    known = {"": {case.key: (steady,) for case in planned} | {planned[1].key: (steady, shaky)}}
    seven, every, t3e, origin = build_spread_table(measured, known, HISTORY).rows
    widest = compute_spread(shaky).deviation
    place = ("torus", "simgrid-mpich", "warm, dissemination")
    assert seven == (
        *(*place, "the paper's seven", "4", "10", f"{widest / 4:.2%}", f"{widest:.2%}", "0.00%"),
        *("1.000", "1.000", "bcast 10 kB, p = 8"),
    )
    assert every[:5] == (*place, "all", "6")
    seven = ("all", "-", "the paper's seven", "-", "-")
    assert t3e[:9] == ("T3E-900 (in print)", *seven, "2.32%", "18.24%", "0.48%")
    assert origin[:9] == ("Origin 3000 (in print)", *seven, "11.13%", "55.37%", "2.51%")


def test_an_mpi_that_hangs_may_have_fewer_trials_and_the_page_tells_how_many():
    """As the paper had it; its session has --trials 15, the other one 51."""
    planned = samples.cases(["torus"], counts=(8,), routines=["bcast"])
    one, other = (tuple(each for each in planned if each.environment == name) for name in samples.MPIS)
    whole = arrange_sessions(
        {name: samples.session(some).results for name, some in (("one", one), ("other", other))}
    )
    times = {"one": trials(*[1.0] * 51), "other": trials(*[1.0] * 15)}
    known = {
        name: {case.key: (times[name],) for case in some} for name, some in (("one", one), ("other", other))
    }
    asked = Asked("luecke2003", trials=known)
    tables = {table.title: table.rows for table in samples.list_tables(build_paper(asked, whole))}
    (title,) = (title for title in tables if title.startswith("Table I: "))
    shown = {(row[1], row[5]) for row in tables[title] if row[0] == "torus"}
    assert shown == {("simgrid-mpich", "50"), ("simgrid-ompi", "14")}
    assert tables["torus: time over that with simgrid-mpich"]


@pytest.mark.parametrize("paper", ["luecke2001", "luecke2003"])
def test_without_two_trials_that_count_there_is_no_spread_and_a_page_says_so(paper):
    planned = samples.cases(["torus"], ["simgrid-mpich"], [8], ["bcast"])
    measured = arrange_results(samples.session(planned).results)
    once = {"": {planned[0].key: (trials(9.0, 1.0),)}}
    assert build_spread_table(measured, once, HISTORY).rows == ()
    assert NO_SPREAD in samples.list_sentences(build_paper(Asked(paper, trials=once), measured))
    often = {"": {planned[0].key: (trials(9.0, 1.0, 2.0),)}}
    assert NO_SPREAD not in samples.list_sentences(build_paper(Asked(paper, trials=often), measured))


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
    assert build_cold_table(arrange_sessions({"one": warm, "two": []}), HISTORY).rows == ()


def test_a_lost_cost_is_missing():
    planned = samples.cases(["torus"], ["simgrid-mpich"], [32], ["gather"])
    night = samples.session(planned, lambda case: None if case.bytes == 10_000 else 1e-3)
    (table,) = rus_costs.build_cost_tables(arrange_results(night.results))
    assert table.rows[-1] == ("320000 B", "gather", MISSING)


def test_costs_of_loops_are_not_said_to_be_of_single_calls():
    (case,) = samples.cases(["torus"], ["simgrid-mpich"], [32], ["bcast"])[:1]
    for sync, said in (("loop", rus_costs.PIPELINED), ("barrier", rus_costs.SINGLE)):
        night = samples.session([replace(case, sync=sync)])
        (table,) = rus_costs.build_cost_tables(arrange_results(night.results))
        assert table.notes[-1] == said


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_a_number_in_full_in_each_line_and_what_it_is_of():
    rows = read_csv(cells.format_csv(build_paper(Asked("taboada"), None)))
    kept = ("quantity", "value", "unit", "machine", "mpi", "routine")
    assert [rows[0][name] for name in kept] == ["t0", "9.0", "us", "Myrinet", "MPICH-GM", "send"]
    lacking = [row for row in rows if not row["value"]]  # formulas, and what a paper leaves out
    assert all(row["note"] for row in lacking) and all(math.isfinite(float(r["value"] or 0)) for r in rows)


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


def test_printed_tables_need_no_session_and_can_be_taken_to_any_machine(tmp_path, sigterm_handler, capsys):
    assert run(tmp_path, "--paper", "luecke2001", "--against", "NT Cluster") == 0
    output, errors = capsys.readouterr()
    table = output.partition("bcast: time over that of the NT Cluster, 128 processes\n")[2].splitlines()
    assert [row.split() for row in table[1:3]] == [
        ["T3E-600", "1.67", "0.263"],
        ["Origin", "2000", "4.17", "0.395"],
    ]
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
    assert run(tmp_path, "latest", "--paper", "luecke2003", "--format", "csv") == 0
    assert read_csv(capsys.readouterr()[0]) == rows
    assert run(tmp_path, "--format", "csv") == 2
    assert "--format csv: is for --paper only" in capsys.readouterr()[1]


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
