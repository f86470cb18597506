"""Machine against machine, with the printed ratio beside."""

from dataclasses import replace

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.formats import MISSING, NOT_PRINTED
from postprocess.extensions.papers import luecke_page, luecke_ratios
from postprocess.extensions.papers.luecke_ratios import RatioBasis
from postprocess.extensions.papers.measurements import arrange_sessions
from postprocess.extensions.papers.printed import load_history
from postprocess.model.case import Case
from postprocess.model.verdict import CaseResult, Verdict
from tests.support.factories import papers as samples
from tests.support.factories.papers import arrange_results
from tests.support.faults import Declared, plants

HISTORY = load_history()
TORUS = RatioBasis("torus", 128)


def measured(planned=None, seconds=samples.modelled):
    return arrange_results(samples.session(samples.cases() if planned is None else planned, seconds).results)


def result(partition, value, **changes):
    case = Case("simulated", partition, "simgrid-mpich", "mpicost", "bcast", 0, "warm", "barrier", 128, 1, 8)
    verdict = changes.pop("verdict", Verdict.PASS)
    return CaseResult(replace(case, **changes), verdict, value=value)


def table(these, routine="bcast", basis=TORUS):
    return next(t for t in luecke_ratios.build_paper_tables(these, HISTORY, basis) if t.routine == routine)


def row(these, machine, size=8, routine="bcast", basis=TORUS):
    rows = table(these, routine, basis).rows
    return next(r for r in rows if (r.machine, r.operation.bytes) == (machine, size))


def test_a_ratio_is_time_over_time_with_the_same_mpi():
    def seconds(case):
        return {"torus": 2.0, "hypercube": 5.0}.get(case.partition, 7.0) * (
            3 if case.environment == "simgrid-ompi" and case.partition == "hypercube" else 1
        )

    found = row(measured(seconds=seconds), "hypercube")
    assert found.ratios == {"simgrid-mpich": 2.5, "simgrid-ompi": 7.5}
    assert (found.printed.ratio, found.printed.source) == (2.5, "Luecke 2001 Table 2")
    assert found.over_printed("simgrid-mpich") == 1
    assert found.over_printed("simgrid-ompi") == 3


def test_every_printed_ratio_of_a_machine_that_is_modelled_stands_beside_one_of_the_session():
    rows = [
        r for t in luecke_ratios.build_paper_tables(measured(), HISTORY, TORUS) for r in t.rows if r.printed
    ]
    shown = {(r.printed.machine, r.printed.routine, r.printed.bytes) for r in rows}
    modelled = {each.machine for each in HISTORY.stand_ins}
    expected = {
        (r.machine, r.routine, r.bytes)
        for r in HISTORY.ratios
        if r.machine in modelled and r.against == "T3E-600" and r.routine != "allreduce_sum"
    }
    assert shown == expected  # the made-up session has no allreduce
    assert len(rows) == len(shown)


@pytest.mark.parametrize(
    "other",
    [RatioBasis("torus", 64), RatioBasis("fattree", 128), RatioBasis("ethernet", 128)],
    ids=["another count", "no machine of the papers", "no printed ratio against it"],
)
def test_nothing_printed_stands_where_it_is_of_something_else(other):
    these = measured()
    assert not any(r.printed for t in luecke_ratios.build_paper_tables(these, HISTORY, other) for r in t.rows)


def test_a_machine_of_another_site_stands_for_nothing():
    local = arrange_results(
        [replace(r, case=replace(r.case, system="local")) for r in samples.session(samples.cases()).results]
    )
    assert luecke_ratios.find_stand_ins(local, HISTORY) == {}
    assert not any(r.printed for t in luecke_ratios.build_paper_tables(local, HISTORY, TORUS) for r in t.rows)


def test_other_operators_have_no_printed_ratio():
    both = [result("torus", 1.0), result("hypercube", 2.0)]
    maximum = [replace(r, case=replace(r.case, routine="reduce_max")) for r in both]
    tables = luecke_ratios.build_paper_tables(arrange_results([*both, *maximum]), HISTORY, TORUS)
    assert {table.routine for table in tables for row in table.rows if row.printed} == {"bcast"}


def test_a_fitted_ratio_is_shown_and_is_no_evidence():
    these = measured()
    fitted, other = row(these, "hypercube"), row(these, "myrinet")
    assert fitted.printed and not fitted.is_evidence
    assert other.is_evidence
    printed = luecke_ratios.format_ratio_table(these, table(these))
    assert {r[-1] for r in printed.rows if r[:2] == ("8 B", "hypercube")} == {"2.5 (fitted)"}
    tables = luecke_ratios.build_paper_tables(these, HISTORY, TORUS)
    nearness = luecke_page.describe_nearness(these, HISTORY, tables)
    assert {r[0]: r[3] for r in nearness.rows} == {"hypercube": "12", "myrinet": "14", "ethernet": "14"}
    _, drawn = luecke_page.build_agreement_plots(tables)
    assert {*map(len, drawn.values())} == {40}


@pytest.mark.parametrize("lost", ["torus", "hypercube"])
def test_a_missing_time_is_missing_and_never_a_number(lost):
    these = measured(seconds=samples.without(lost, 128))
    if lost == "torus":  # nothing to hold anything against
        assert luecke_ratios.choose_basis(these, HISTORY, None, None) == RatioBasis("torus", 96)
        return
    found = row(these, "hypercube")
    assert set(found.ratios.values()) == {None}
    assert found.over_printed("simgrid-mpich") is None
    cells = [r for r in luecke_ratios.format_ratio_table(these, table(these)).rows if r[1] == "hypercube"]
    assert all(r[2:4] == (MISSING, MISSING) for r in cells)
    nearness = luecke_page.describe_nearness(
        these, HISTORY, luecke_ratios.build_paper_tables(these, HISTORY, TORUS)
    )
    lines = [r for r in nearness.rows if r[0] == "hypercube"]
    assert {r[3:] for r in lines} == {("12", "0", MISSING, MISSING, MISSING)}


@pytest.mark.parametrize(
    ("lost", "values"),
    [
        ([result("hypercube", 2.0, verdict=Verdict.INCORRECT)], None),
        ([result("hypercube", 2.0, verdict=Verdict.INCOMPLETE)], None),
        ([result("hypercube", 2.0, verdict=Verdict.CRASHED)], None),
        ([result("hypercube", 2.0, verdict=Verdict.TIMEOUT)], None),
        ([result("hypercube", None, peer=1), result("hypercube", 2.0, peer=2)], None),
        ([result("hypercube", 4.0, peer=1), result("hypercube", 2.0, peer=2)], 3.0),
    ],
    ids=["incorrect", "incomplete", "crashed", "timeout", "without a partner", "the median over partners"],
)
def test_a_value_that_is_no_time_of_the_routine_is_missing(lost, values):
    these = arrange_results([result("torus", 1.0), *lost, result("myrinet", 3.0)])
    assert row(these, "hypercube").ratios == {"simgrid-mpich": values}
    assert row(these, "myrinet").ratios == {"simgrid-mpich": 3.0}


def test_what_was_skipped_is_not_missing():
    skipped = [result("torus", None, bytes=10_000, verdict=Verdict.SKIPPED)]
    both = [result("torus", 1.0), result("hypercube", 2.0)]
    assert [r.operation.bytes for r in table(arrange_results(both + skipped)).rows] == [8]


def test_of_several_layouts_the_one_with_the_most_processes_per_node_counts():
    these = arrange_results(
        [result("torus", 1.0), result("hypercube", 2.0, per_node=2), result("hypercube", 9.0)]
    )
    assert row(these, "hypercube").ratios == {"simgrid-mpich": 2.0}


def test_only_mpis_that_two_machines_share_have_a_column():
    planned = samples.cases(["torus"]) + samples.cases(["myrinet"], ["simgrid-mpich"])
    assert table(measured(planned)).environments == ("simgrid-mpich",)


def test_conditions_are_never_mixed():
    warm, flush = result("torus", 1.0), result("hypercube", 2.0, cache="flush")
    these = arrange_results([warm, flush, result("myrinet", 3.0)])
    assert row(these, "hypercube").ratios == {"simgrid-mpich": None}
    assert luecke_ratios.format_ratio_table(these, table(these)).labels == ("size", "cache", "machine")


# What to compare against.


def test_the_usual_basis_is_the_t3e_at_the_count_of_the_papers():
    counts = [*samples.LADDER, 256]
    assert luecke_ratios.choose_basis(measured(samples.cases(counts=counts)), HISTORY, None, None) == TORUS


def test_without_machines_of_the_papers_it_is_the_first_at_the_largest_shared_count():
    these = arrange_results(
        [
            result("cpu", 1.0, system="local"),
            result("gpu", 1.0, system="local"),
            result("gpu", 1.0, system="local", processes=256),
        ]
    )
    assert luecke_ratios.choose_basis(these, HISTORY, None, None) == RatioBasis("cpu", 128)


@pytest.mark.parametrize(
    ("machine", "processes", "said"),
    [
        ("venus", None, "--against venus: not a partition of the session; it has ethernet, fattree"),
        ("torus:mpich", None, "--against torus:mpich: no MPI of torus; it has simgrid-mpich"),
        ("origin 2000", None, "--against origin 2000: not a partition"),
        (None, 512, "--processes 512: not in the session; in it torus can be compared at"),
        ("myrinet", 5, "--against myrinet --processes 5: not in the session"),
    ],
)
def test_what_the_session_lacks_is_refused_in_one_line(machine, processes, said):
    with pytest.raises(UsageError) as error:
        luecke_ratios.choose_basis(measured(), HISTORY, machine, processes)
    assert str(error.value).startswith(said) and "\n" not in str(error.value)


@plants("use", "a session of one partition", "`papers --against`", "", 2,
        "has one partition, torus")  # fmt: skip
@pytest.mark.parametrize(("machine", "processes"), [("torus", None), (None, 128)])
def test_one_partition_has_nothing_to_compare(machine, processes, declared: Declared):
    alone = measured(samples.cases(["torus"]))
    assert luecke_ratios.choose_basis(alone, HISTORY, None, None) is None
    with declared.raises(UsageError, match="has one partition, torus"):
        luecke_ratios.choose_basis(alone, HISTORY, machine, processes)


def test_an_empty_message_has_a_size_and_a_barrier_has_none():
    both = [
        result(machine, time, routine=routine, bytes=0)
        for machine, time in (("torus", 1.0), ("hypercube", 2.0))
        for routine in ("barrier", "bcast")
    ]
    these = arrange_results(both)
    shown = [
        luecke_ratios.format_ratio_table(these, table(these, routine)).rows[0][0]
        for routine in ("barrier", "bcast")
    ]
    assert shown == ["", "0 B"]


def test_partitions_without_a_common_mpi_are_compared_each_with_its_own_as_in_the_papers():
    these = arrange_results(
        [
            result("torus", 2.0, environment="cray-mpich-8"),
            result("hypercube", 5.0, environment="openmpi-4"),
            result("myrinet", 6.0, environment="mpich-5"),
        ]
    )
    basis = luecke_ratios.choose_basis(these, HISTORY, None, None)
    assert basis == RatioBasis("torus", 128, "cray-mpich-8")
    rows = {r.machine: r for r in table(these, basis=basis).rows}
    assert {name: r.ratios for name, r in rows.items()} == {
        "hypercube": {"openmpi-4": 2.5},
        "myrinet": {"mpich-5": 3.0},
    }
    assert rows["hypercube"].over_printed("openmpi-4") == 1
    shown = luecke_ratios.format_ratio_table(these, table(these, basis=basis))
    assert shown.title == "bcast: time over that of torus with cray-mpich-8, 128 processes"
    assert shown.rows[0] == ("8 B", "hypercube", NOT_PRINTED, "2.50 (1.00)", "2.5 (fitted)")


def test_an_mpi_is_held_against_another_on_the_same_machine():
    these = measured(samples.cases(["torus"]))
    basis = luecke_ratios.choose_basis(these, HISTORY, "torus:simgrid-mpich", 64)
    assert basis == RatioBasis("torus", 64, "simgrid-mpich")
    assert row(these, "torus", basis=basis).ratios == pytest.approx({"simgrid-ompi": 1.2})


@pytest.mark.parametrize(
    ("sessions", "may_join", "machines"),
    [
        ({"one": {"system": "a"}, "two": {"system": "b"}}, True, ["a:torus", "b:torus"]),
        ({"one": {}, "two": {}}, True, ["one:torus", "two:torus"]),
        ({"one": {"routine": "pingpong"}, "two": {}}, True, ["torus"]),
        ({"one": {"routine": "pingpong"}, "two": {}}, False, ["one:torus", "two:torus"]),
        (
            {"one": {"routine": "pingpong"}, "two": {}, "again": {"routine": "pingpong"}},
            True,
            ["again:torus", "one:torus"],
        ),
    ],
    ids=["two sites", "the same", "different things", "not to be joined", "two of three"],
)
def test_sessions_of_a_partition_are_one_machine_if_they_complement_each_other(sessions, may_join, machines):
    results = {name: [result("torus", 1.0, **changes)] for name, changes in sessions.items()}
    these = arrange_sessions(results, lambda one, other: may_join)
    assert these.machines == machines
    assert sorted(name for session in these.sessions.values() for name in session) == sorted(sessions)


# As it is shown.


def test_nearness_counts_factors_of_two():
    def seconds(case):
        known = {(r.machine, r.routine, r.bytes): r.ratio for r in HISTORY.ratios}
        names = {each.partition: each.machine for each in HISTORY.stand_ins}
        printed = known.get((names.get(case.partition), case.routine, case.bytes), 1.0)
        return printed * (1.9 if case.environment == "simgrid-mpich" else 1 / 2.1)

    def exact(case):
        return 1.0 if case.partition == "torus" else seconds(case)

    these = measured(seconds=exact)
    table = luecke_page.describe_nearness(
        these, HISTORY, luecke_ratios.build_paper_tables(these, HISTORY, TORUS)
    )
    lines = {(r[0], r[2]): r[3:] for r in table.rows}
    assert lines["myrinet", "simgrid-mpich"] == ("14", "14", "14", "1.90", "1.90")
    assert lines["myrinet", "simgrid-ompi"] == ("14", "14", "0", "2.10", "0.48")
