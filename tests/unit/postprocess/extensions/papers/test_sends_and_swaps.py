"""Operations over the messages that they could be made of: RUS, Luecke's predictions, COMMTEST's commtest."""

import math
from dataclasses import replace

import pytest

from postprocess.base.errors import UsageError
from postprocess.extensions.papers import (
    commtest,
    luecke_models,
    luecke_ratios,
    luecke_spread,
    rus_costs,
    rus_sends,
)
from postprocess.extensions.papers.command import PAPERS, Asked, build_figures, build_paper
from postprocess.extensions.papers.measurements import Place, arrange_sessions
from postprocess.extensions.papers.printed import load_history
from postprocess.model.case import Case
from postprocess.model.verdict import CaseResult, Verdict
from tests.support.factories import papers as samples
from tests.support.factories.papers import arrange_results

HISTORY = load_history()
ALPHA, BETA = 4e-6, 1 / 350e6
PLACE = Place("torus", "simgrid-mpich", "warm", "dissemination")


def result(routine, size, processes, seconds, machine="torus", mpi="simgrid-mpich"):
    peer = int(routine.startswith("pingpong"))
    place = ("simulated", machine, mpi, "mpicost", routine, peer, "warm", "dissemination")
    return CaseResult(Case(*place, processes, 1, size), Verdict.PASS, value=seconds)


def night(routines, counts=(8, 32), sizes=(8, 1024, 4096, 65536)):
    """Times by alpha and beta of messages, each routine as the paper's model has it."""
    model = luecke_models.AlphaBeta(ALPHA, BETA, 2, 0.0, 2)
    found = [result("pingpong", s, 2, ALPHA + s * BETA) for s in sizes if "pingpong" in routines]
    for routine in routines:
        if routine != "pingpong":
            found += [result(routine, s, p, model.predict(routine, s, p)) for s in sizes for p in counts]
    return found


# Luecke et al.


def test_alpha_and_beta_come_out_of_ping_pong_and_predict_the_rest():
    measured = arrange_results(night(("pingpong", *luecke_models.PREDICTED)))
    fit = luecke_models.fit_alpha_beta(measured, PLACE)
    assert (fit.alpha, fit.beta) == (pytest.approx(ALPHA, rel=1e-6), pytest.approx(BETA, rel=1e-6))
    for prediction in luecke_models.predict_times(measured):
        assert prediction.error == pytest.approx(0, abs=1e-9)
    assert luecke_models.build_prediction_tables(arrange_results(night(("bcast",)))) == []


def test_a_prediction_that_is_far_off_is_told_and_not_drawn():
    results = night(("pingpong",)) + [result("bcast", 8, p, 10 * math.log2(p) * ALPHA) for p in (8, 32)]
    measured = arrange_results(results)
    assert luecke_models.build_prediction_tables(measured)[1].rows == ()
    assert luecke_models.describe_refused(measured).startswith("1 predictions from alpha and beta, all off")
    lines = [line for f in build_figures("luecke2001", measured) for line in f.lines]
    assert not any(line.modelled for line in lines)
    good = arrange_results(night(("pingpong", "bcast")))
    lines = [line for f in build_figures("luecke2001", good) for line in f.lines]
    assert any(line.modelled for line in lines)


# RUS.


def test_a_broadcast_is_held_against_a_tree_of_sends():
    results = night(("pingpong",)) + [result("bcast", 4096, p, 100e-6) for p in (32, 256)]
    table = rus_sends.build_tree_table(arrange_results(results))
    send = ALPHA + 4096 * BETA
    shown = {row[5]: (row[7], float(row[9])) for row in table.rows}
    assert shown["32"] == ("5", pytest.approx(100e-6 / (5 * send), abs=0.005))
    assert shown["256"] == ("8", pytest.approx(100e-6 / (8 * send), abs=0.005))


def test_gather_is_held_against_its_loop_of_sends_that_was_measured():
    measured = [result("gather", 1024, 8, 6e-5), result("gather_as_sends", 1024, 8, 4e-5)]
    results = [*night(("pingpong",)), *measured]
    (row,) = rus_sends.build_tree_table(arrange_results(results)).rows
    assert (row[7], row[10]) == ("7", "1.50")


def test_reduce_is_held_against_its_sends_and_its_arithmetic():
    """A tree of eight has three levels, each a send and a local sends."""
    send, local = ALPHA + 4096 * BETA, 2e-6
    reduces = [result("reduce_sum", 4096, p, 30e-6) for p in (8, 32)]
    without = arrange_results([*night(("pingpong",)), *reduces])
    assert rus_sends.build_reduction_table(without).rows == ()
    assert "takes no simulated time" in rus_sends.describe_missing_arithmetic(without)
    real = replace(without, systems={"torus": ("local", "torus")})
    assert "--routine reduce_local_sum" in rus_sends.describe_missing_arithmetic(real)
    whole = arrange_results([*night(("pingpong",)), *reduces, result("reduce_local_sum", 4096, 8, local)])
    (row,) = rus_sends.build_reduction_table(whole).rows
    assert row[3:8] == ("reduce_sum", "4 KiB", "8", "30.0", "3")
    assert row[9:] == ("6.00", f"{30e-6 / (3 * (send + local)):.2f}")
    assert rus_sends.describe_missing_arithmetic(whole) == ""


def test_the_send_model_has_two_formulas_where_the_protocol_changes():
    sizes = [2**k for k in range(3, 21)]
    slow = [
        result("pingpong", s, 2, 15e-6 + (0.0032e-6 * s if s < 4096 else 9e-6 + 0.003e-6 * s)) for s in sizes
    ]
    (row,) = rus_sends.build_send_table(arrange_results(slow)).rows
    assert (row[5], row[7]) == ("2 KiB", "4 KiB")
    assert row[4].startswith("15 + 0.0032") and row[6].startswith("24 + 0.003")
    (row,) = rus_sends.build_send_table(arrange_results(night(("pingpong",)))).rows
    assert row[5:8] == ("all", "-", "-")


def test_the_send_model_takes_the_sweep_where_it_has_more_sizes():
    few = night(("pingpong",))
    many = [result("pingpong_standard", 2**k, 2, ALPHA + 2**k * BETA) for k in range(12)]
    _, found = arrange_results([*few, *many]).collect_sends(PLACE)
    assert len(found) == 12


def test_a_message_is_one_between_two_nodes_where_both_were_measured():
    """Two ranks of one node are no two processors of the network."""

    def pair(per_node: int, seconds: float) -> CaseResult:
        known = result("pingpong", 8, 2, seconds)
        return replace(known, case=replace(known.case, per_node=per_node))

    measured = arrange_results([pair(2, 1e-6), pair(1, 9e-6)])
    between, found = measured.collect_sends(PLACE)
    assert (between, found) == ("2 nodes, of 2x1", {8: 9e-6})
    alone = arrange_results([pair(2, 1e-6)])
    between, found = alone.collect_sends(PLACE)
    assert (between, found) == ("1 node, of 2x2", {8: 1e-6})


def test_the_eager_threshold_is_where_a_standard_send_begins_to_wait():
    sizes = [2**k for k in range(3, 15)]
    found = []
    for s in sizes:
        one = ALPHA + s * BETA
        standard = one if s <= 1024 else 2 * one
        times = {"standard": standard, "synchronous": 2 * one, "buffered": 1.5 * standard}
        found += [result(f"pingpong_{mode}", s, 2, time) for mode, time in times.items()]
    (row,) = rus_sends.build_mode_table(arrange_results(found)).rows
    assert row[4:] == ("8 B", "16 KiB", "2.00", "1.00", "1.50", "1.50", "1 KiB")
    assert rus_sends.build_mode_table(arrange_results(night(("pingpong",)))).rows == ()


def test_a_sweep_of_settings_has_a_column_for_each_and_names_the_shortest():
    def pingpongs(seconds):
        return [result("pingpong_standard", size, 2, time) for size, time in seconds.items()]

    sessions = {"one": pingpongs({8: 1e-6, 8192: 9e-6}), "two": pingpongs({8: 1.01e-6, 8192: 5e-6})}
    words = ["run", "--set-env", "simgrid-mpich:LIMIT=4096", "--set-env=other:X=1"]
    settings = {"one": {}, "two": rus_sends.read_settings(words)}
    assert settings["two"] == {"simgrid-mpich": "LIMIT=4096", "other": "X=1"}
    table = rus_sends.build_sweep_table(replace(arrange_sessions(sessions), settings=settings))
    assert table.columns == ("as it is", "LIMIT=4096", "shortest")
    assert [row[4:] for row in table.rows] == [
        ("8 B", "1.00", "1.01", "-"),
        ("8 KiB", "9.00", "5.00", "LIMIT=4096"),
    ]
    assert rus_sends.build_sweep_table(arrange_sessions({"one": sessions["one"]})).rows == ()


def test_costs_are_held_against_those_in_print():
    results = [result("gather", 32, 32, 26e-6), result("bcast", 8, 32, 63.2e-6), result("gather", 8, 32, 1e-6)]
    table = rus_costs.build_against_table(arrange_results(results), HISTORY)
    assert [row[3:] for row in table.rows] == [
        ("bcast", "8 B", "32", "63.2", "31.6", "2"),
        ("gather", "1 KiB", "32", "26", "52", "0.5"),
    ]
    pipelined, unknown = table.notes
    assert pipelined.startswith("in print: means of calls that overlap")
    assert unknown.startswith("8 B of gather, scatter and alltoall are in no row")


# COMMTEST.


def shifts(share: float):
    """Alone a swap has the whole link; of a ring, above 32 KiB, only a share of it."""
    sizes = [2**k for k in range(3, 22)]
    alone = [result("rightshift", s, 2, ALPHA + s * BETA) for s in sizes]
    ring = [result("rightshift", s, 8, ALPHA + s * BETA / (share if s > 32768 else 1)) for s in sizes]
    return arrange_results([*alone, *ring])


@pytest.mark.parametrize(("share", "lowest", "onset"), [(0.25, "0.25", "64 KiB"), (1.0, "1.00", "none")])
def test_contention_has_the_link_s_share_as_its_factor_and_a_size_where_it_begins(share, lowest, onset):
    table, _, changes = commtest.build_contention_tables(shifts(share))
    (row,) = table.rows
    assert (*row[3:5], row[8], row[10]) == ("ring", "8", lowest, onset)
    assert changes.rows[0][-1] == "none"  # the ring's break is contention


@pytest.mark.parametrize(
    ("factors", "onset"),
    [({8: 1.0, 16: 0.95}, None), ({8: 0.5, 16: 0.5, 32: 0.4}, 32)],
    ids=["little is lost", "from 8 on they are far apart"],
)
def test_contention_begins_where_more_is_lost_than_at_the_least_size(factors, onset):
    assert commtest.find_onset(factors) == onset


def test_a_protocol_changes_where_all_experiments_and_ways_to_send_show_it():
    def seconds(size: int) -> float:
        return 1e-6 + size * 1e-9 if size < 65536 else 60e-6 + size * 1e-9

    sizes = [2**k for k in range(3, 22)]
    found = [
        result(f"swap_{who}_{how}", s, 8, seconds(s))
        for who in ("first", "next", "half", "ring")
        for how in ("sendrecv", "ordered")
        for s in sizes
    ]
    found += [result("swap_first_synchronous", s, 8, 1e-6 + s * 1e-9) for s in sizes]
    changes = commtest.build_contention_tables(arrange_results(found))[-1]
    assert changes.rows[0][-1] == "32 KiB to 64 KiB"


def test_swaps_of_several_protocols_count_by_the_fastest_and_beside_sleepers():
    sizes = [2**k for k in range(6, 22)]
    found = []
    for s in sizes:
        alone = ALPHA + s * BETA
        found += [result("swap_first_sendrecv", s, 8, 2 * alone), result("swap_first_ordered", s, 8, alone)]
        found += [result("swap_half_sendrecv", s, 8, ALPHA + 4 * s * BETA)]
        found += [result("rightshift", s, 2, 9 * alone)]  # of fewer processes: not what 8 are held against
    (row,) = commtest.build_contention_tables(arrange_results(found))[0].rows
    assert (row[3:5], row[8]) == (("i with i+P/2", "8"), "0.25")
    figure = build_figures("commtest", arrange_results(found))[0]
    alone = next(line for line in figure.panels[0].lines if line.name == "0 with 1")
    assert alone.points[0].value == pytest.approx(2 * 64 / (ALPHA + 64 * BETA) / 1e6)
    missing = commtest.describe_missing_swaps(arrange_results(found))
    assert missing.startswith("Not measured: i with i+1, ring; ./plumbline run ")


def test_the_x_of_rus_is_the_report_s_buffer():
    found = [result("gather", 1024, p, 1e-5 * p) for p in (8, 32)]
    found += [result("gather", 256, 32, 1e-5)]
    (figure,) = build_figures("rus", arrange_results(found))
    panel, *_ = figure.panels
    assert panel.x == "buffer" and panel.scale == "from zero"
    points = {line.name: [point.x for point in line.points] for line in panel.lines}
    assert points == {"p = 8": [8192], "p = 32": [8192, 32768]}


def test_a_line_far_above_the_others_is_left_out_of_a_second_panel():
    found = [
        result("bcast", 8, p, seconds * p, machine)
        for machine, seconds in (("torus", 1e-6), ("myrinet", 2e-6), ("ethernet", 1e-4))
        for p in (2, 8)
    ]
    (figure,) = build_figures("luecke2001", arrange_results(found))
    whole, rescaled, *_ = figure.panels
    assert (whole.unit, whole.scale) == ("ms", "linear")
    assert [line.name for line in rescaled.lines] == ["myrinet", "torus"]


def test_two_processes_are_no_contention_where_more_were_measured():
    """They swap with each other in every experiment."""

    def rows(counts):
        names = ("swap_first_sendrecv", "swap_half_sendrecv", "swap_next_sendrecv")
        found = [result(name, 64, p, 1e-6) for name in names for p in counts]
        table = commtest.build_contention_tables(arrange_results(found))[0]
        return [row[3:5] for row in table.rows]

    assert rows((2, 8)) == [("i with i+1", "8"), ("i with i+P/2", "8")]
    assert rows((2,)) == [("i with i+1", "2"), ("i with i+P/2", "2")]


def test_platforms_are_compared_alone_and_beside_others():
    sizes = [64, 4096, 65536]
    found = [
        result(f"swap_{who}_sendrecv", s, 8, 1e-6 + s * 1e-9, machine)
        for machine in ("torus", "myrinet")
        for who in ("first", "next")
        for s in sizes
    ]
    figures = build_figures("commtest", arrange_results(found))
    assert [(panel.title, panel.scale) for panel in figures[0].panels] == [
        ("all sizes, log-log", "logarithmic"),
        ("to 2 MiB, log-linear", "from zero"),
        ("to 128 KiB, log-linear", "from zero"),
    ]
    titles = [figure.title for figure in figures]
    assert [t for t in titles if t.startswith("Platforms")] == [
        "Platforms, 0 with 1: bandwidth in both directions",
        "Platforms, i with i+1: bandwidth in both directions",
    ]


# Luecke, Kraeva and Ju: library against library.


def test_a_library_over_another_has_a_factor_for_each_test_and_size():
    planned = samples.cases(["torus"], counts=(8, 32), routines=["bcast"])
    measured = arrange_results(samples.session(planned).results)
    (table,) = luecke_spread.build_library_tables(measured)
    assert table.title == "torus: time over that with simgrid-mpich"
    assert {row[3] for row in table.rows} == {"1.20 (1.20 to 1.20)"}
    (table,) = luecke_spread.build_library_tables(measured, "simgrid-ompi")
    assert {row[3] for row in table.rows} == {"0.83 (0.83 to 0.83)"}


# Against machines in print.


def test_a_machine_in_print_is_reached_by_way_of_one_that_stands_for_another():
    planned = samples.cases(["torus", "fattree"], ["simgrid-mpich"], [128], ["bcast"])
    measured = arrange_results(samples.session(planned).results)
    tables, missing = luecke_ratios.build_chained_tables(measured, HISTORY, "NT Cluster")
    assert missing == ""
    (table,) = tables
    torus = next(row for row in table.rows if row[0] == "torus")
    # T3E over NT: 1 / 0.6 and 1 / 3.8, measured and in print alike
    assert torus[3:] == ("1.67", "1.67", "0.26", "0.26")
    fat = next(row for row in table.rows if row[0] == "fattree")
    times = {c.partition: samples.modelled(c) for c in planned if c.bytes == 8}
    assert float(fat[3]) == pytest.approx(times["fattree"] / times["torus"] / 0.6, abs=0.01)
    assert fat[4] == "-"


def test_without_such_a_machine_the_command_is_told():
    planned = samples.cases(["fattree"], counts=[128])
    measured = arrange_results(samples.session(planned).results)
    page = build_paper(Asked("luecke2001", "NT Cluster"), measured)
    assert any("--site simulated --partition torus" in remark for remark in samples.list_sentences(page))


def test_a_machine_may_be_named_by_its_session_and_site():
    planned = samples.cases(["torus", "myrinet"], ["simgrid-mpich"], [128], ["bcast"])
    measured = arrange_results(samples.session(planned).results)
    page = build_paper(Asked("luecke2001", "simulated:myrinet"), measured)
    assert any("time over that of myrinet" in table.title for table in samples.list_tables(page))
    with pytest.raises(UsageError, match="not a partition"):
        build_paper(Asked("luecke2001", "elsewhere:myrinet"), measured)


# Pages.


@pytest.mark.parametrize("paper", PAPERS)
def test_two_processes_are_said_to_tell_little(paper):
    def remarks(most):
        pair = [result("bcast", 8, count, 1e-6) for count in {2, most}]
        return samples.list_sentences(build_paper(Asked(paper), arrange_results(pair)))

    assert any("2 processes only" in remark for remark in remarks(2))
    assert not any("2 processes only" in remark for remark in remarks(4))
