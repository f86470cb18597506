"""Models fitted to measured times: truth that was planted comes out again, and bad models draw nothing."""

import math

import numpy as np
import pytest

from postprocess.base.errors import UsageError
from postprocess.extensions.papers import taboada_models, taboada_tables
from postprocess.extensions.papers.command import Asked, build_figures, build_paper
from postprocess.extensions.papers.measurements import PaperMeasurements
from postprocess.extensions.papers.printed import load_history
from postprocess.model.case import Case
from postprocess.model.routines.taboada import HELD_OUT
from postprocess.model.routines.taboada import TOTALS as SIZES
from postprocess.model.verdict import CaseResult, Verdict
from tests.support.factories.papers import arrange_results, list_tables

HISTORY = load_history()
T0, TI, TB = 4e-6, 13e-6, 3.89e-9  #: of ScaMPI's send, as the paper has it
ALL_SIZES = sorted({*SIZES, *HELD_OUT})


def form(size: float, t0: float = T0, ti: float = TI, tb: float = TB) -> float:
    return t0 + tb * size + ti * tb * size / (t0 + tb * size)


def two_protocols(size: int) -> float:
    return 1.2e-6 + 0.5e-9 * size if size <= 16384 else 30e-6 + 0.1e-9 * size


def measure(seconds, counts=(2,), sizes=ALL_SIZES, routine="bcast") -> PaperMeasurements:
    """A session in which a routine took ``seconds(routine, n, p)``."""
    results = []
    for name in (routine,) if isinstance(routine, str) else routine:
        for p in counts:
            for size in sizes:
                case = Case(
                    "s", "m", "mpi", "mpicost", name, int(name == "pingpong"), "warm", "barrier", p, 1, size
                )
                n = taboada_models.find_model_size(name, size, p)
                results.append(CaseResult(case, Verdict.PASS, value=seconds(name, n, p)))
    return arrange_results(results)


def test_a_machine_of_latency_and_bandwidth_has_no_ti_and_no_error():
    fit = taboada_models.fit_model({size: 3e-6 + size / 350e6 for size in ALL_SIZES})
    assert (fit.t0, fit.tb) == (pytest.approx(3e-6), pytest.approx(1 / 350e6, rel=1e-6))
    assert abs(fit.ti) < 1e-3 * fit.t0
    assert len(fit.segments) == 1
    assert max(fit.errors.values()) < 1e-4 and fit.held_out == len(HELD_OUT) == 20


def test_the_paper_s_own_send_comes_out_and_hockney_is_worse():
    fit = taboada_models.fit_model({size: form(size) for size in ALL_SIZES})
    assert (fit.ti, fit.tb) == (pytest.approx(TI, rel=0.05), pytest.approx(TB, rel=0.01))
    assert fit.errors["model"] < 0.02
    assert 5 * fit.errors["model"] < fit.errors["Hockney"] < fit.errors["Hockney, model's t0 and tb"]
    assert fit.time(1024) == pytest.approx(form(1024), rel=0.03)


def test_a_change_of_protocol_is_found_and_fitted_in_segments():
    fit = taboada_models.fit_model({size: two_protocols(size) for size in ALL_SIZES})
    assert fit.breaks == [(16384, 65536)]
    assert fit.errors["in segments"] < 0.05 < fit.errors["Hockney"]
    assert fit.error == fit.errors["in segments"]
    assert fit.time(100_000) == pytest.approx(two_protocols(100_000), rel=0.05)
    (row,) = taboada_tables.build_model_tables(measure(lambda name, n, p: two_protocols(n)))[0].rows
    assert fit.errors["model"] > 2 * fit.errors["in segments"]
    assert row[-1].value == pytest.approx(100 * fit.errors["model"])  # of the t0, ti and tb beside it


def test_without_sizes_to_judge_by_the_errors_are_of_the_fitted_ones():
    fit = taboada_models.fit_model({size: form(size) for size in SIZES})
    assert (fit.held_out, set(fit.errors)) == (0, {*taboada_models.ERRORS})
    assert taboada_models.fit_model({8: 1e-6, 10_000: 2e-6, 1_000_000: 9e-5}) is None


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({2: 5.0, 4: 10.0, 8: 15.0, 16: 20.0}, "ceil(log2 p)"),
        ({2: 5.0, 4: 9.0, 8: 17.0, 16: 33.0}, "p"),
        ({2: 5.0, 4: 5.1, 8: 4.95}, "1"),
    ],
)
def test_what_a_parameter_grows_with_is_named(values, name):
    growth = taboada_models.fit_growth(values)
    assert taboada_models.name_growth(growth) == name
    for count, value in values.items():
        assert growth.at(count) == pytest.approx(value, rel=0.04)
    assert taboada_models.fit_growth({2: 1.0, 4: 2.0}) is None


def test_a_scan_of_as_many_steps_as_processes_is_named():
    def seconds(name: str, n: int, p: int) -> float:
        steps = p - 1 if name == "scan_sum" else math.ceil(math.log2(p))
        return steps * (3e-6 + n / 350e6)

    measured = measure(seconds, (2, 4, 8, 16, 32), routine=("scan_sum", "bcast"))
    table = taboada_tables.build_model_tables(measured)[0]
    named = {row[0]: row[5:7] for row in table.rows}
    assert named == {"bcast": ("ceil(log2 p)",) * 2, "scan_sum": ("p (log2 p would do)",) * 2}
    scan = next(row for row in table.rows if row[0] == "scan_sum")
    assert scan[2] == "-3 + 3 p"
    assert scan[8] == "350"  # F(p) / tb(p), at any p


def test_n_is_of_all_blocks_together_as_in_the_paper():
    assert (
        taboada_models.find_model_size("gather", 8, 16)
        == taboada_models.find_model_size("gather_as_sends", 8, 16)
        == 128
    )
    assert taboada_models.find_model_size("bcast_as_scatter_allgather", 8, 16) == 8


def test_ping_pong_is_the_send_of_the_fewest_processes_and_its_empty_message_its_start_however_short():
    measured = measure(lambda name, n, p: p * (3e-6 + n / 350e6 if n else 1e-6), (2, 8), routine="pingpong")
    (model,) = taboada_models.fit_measured(measured)
    assert (model.routine, list(model.fits), model.fits[2].t0) == ("send", [2], pytest.approx(2e-6))


def saved(times: dict[str, float]) -> PaperMeasurements:
    """Each routine costs so many times 1 us and 1 ns a byte."""
    return measure(lambda name, n, p: times[name] * (1e-6 + n * 1e-9), (4,), routine=tuple(times))


def test_a_composition_that_saves_time_is_found_by_models_and_by_measurement():
    times = {"bcast": 10.0, "scatter": 1.0, "allgather": 2.0, "bcast_as_scatter_allgather": 4.0}
    table = taboada_tables.build_model_tables(saved(times))[-1]
    row = ("bcast by scatter + allgather", "4", "always", "60%", "all 31 sizes")
    assert (table.rows[0][3:], table.rows[0][6].value) == (row, pytest.approx(60))


def test_a_composition_that_saves_nothing_is_said_to():
    times = {"bcast": 1.0, "scatter": 1.0, "allgather": 2.0, "bcast_as_scatter_allgather": 4.0}
    table = taboada_tables.build_model_tables(saved(times))[-1]
    assert table.rows[0][5:] == ("never", "-300%", "all 31 sizes")
    table = taboada_tables.build_model_tables(saved({k: v for k, v in times.items() if "_as_" not in k}))[-1]
    assert table.rows[0][6] == "not measured: bcast_as_scatter_allgather"


def shaken(seed: int = 1):
    noise = dict(zip(ALL_SIZES, np.exp(np.random.default_rng(seed).normal(0, 1.2, 40)), strict=False))
    return lambda name, n, p: form(n) * float(noise[n])


def test_a_model_that_is_off_by_more_than_a_quarter_draws_and_derives_nothing():
    measured = measure(shaken())
    (model,) = taboada_models.fit_measured(measured)
    assert not model.fits[2].is_good
    table = taboada_tables.build_model_tables(measured)[0]
    assert (table.rows[0][2:5], table.rows[0][7:9]) == (("no fit",) * 3, ("-", "-"))
    (figure,) = build_figures("taboada", measured)
    assert [line.name for line in figure.lines] == ["mpi"]
    assert figure.remark == "1 model off by more than a quarter, not drawn: bcast of mpi"


def test_a_fit_at_the_end_of_what_ti_may_be_is_refused_though_its_error_is_small():
    """Times that fall at first pull ti to -t0."""
    fit = taboada_models.fit_model(
        {size: 3e-6 if not size else 1e-6 + size / 350e6 for size in ALL_SIZES}, True
    )
    assert fit.ti == pytest.approx(-fit.t0, rel=1e-3)
    assert fit.is_degenerate and not fit.holds


def test_a_jump_between_segments_is_no_size_at_which_a_composition_becomes_faster():
    def seconds(name: str, n: int, p: int) -> float:
        alone = 1e-6 + n * (1e-9 if n <= 16384 else 4e-9)
        return {"bcast": alone, "scatter": 1e-6 + n * 1e-9, "allgather": 1e-6 + n * 1e-9}[name]

    measured = measure(seconds, (4,), routine=("bcast", "scatter", "allgather"))
    assert taboada_tables.build_model_tables(measured)[-1].rows[0][5] == "above a size of 16 KiB to 64 KiB"


def test_a_good_model_is_drawn_beside_hockney_and_the_measured_times():
    figure, send = build_figures("taboada", measure(lambda name, n, p: form(n), routine="pingpong"))
    assert [(panel.title, panel.unit, panel.scale) for panel in send.panels] == [
        ("latency", "s", "logarithmic"),
        ("bandwidth", "MB/s", "from zero"),
    ]
    assert [(line.name, line.modelled) for line in figure.lines] == [
        ("measured", False),
        ("model", True),
        ("Hockney", True),
    ]


def test_measured_models_are_held_against_one_in_print():
    measured = measure(lambda name, n, p: 2 * (9e-6 + 5.330e-9 * n), routine="pingpong")
    table = taboada_tables.build_against_table(measured, HISTORY, "Myrinet:MPICH-GM")
    assert table.rows[0][:4] == ("m", "mpi", "send", "2")
    assert table.rows[0][4] == "2"  # an empty message: 18 us over 9 us
    page = build_paper(Asked("taboada", "Myrinet:MPICH-GM"), measured)
    assert table.title in [table.title for table in list_tables(page)]


def test_where_time_is_latency_and_bandwidth_the_table_has_no_ti_whatever_rounding_leaves():
    def shown(ti):
        found = measure(lambda name, n, p: form(n, p * 3e-6, ti, 1 / 350e6), counts=(2, 4, 8))
        return taboada_tables.build_model_tables(found)[0].rows[0][3]

    assert shown(1e-9) == "0"
    assert shown(1e-6) != "0"


def test_a_send_is_held_against_what_the_network_can_do():
    send = measure(lambda name, n, p: 2e-6 + n / 200e6, routine="pingpong")
    table = taboada_tables.build_theory_table(send, taboada_tables.parse_theory(["1:400"]), HISTORY)
    assert table.rows[0][3:] == ("2", "1", "2.00", "200", "400", "50%")
    unknown = taboada_tables.build_theory_table(send, {}, HISTORY)
    assert unknown.rows[0][3:] == ("2", "-", "-", "200", "-", "-")
    printed = {row[0].partition(" (")[0] + ":" + row[1]: row[3:] for row in table.rows[1:]}
    assert printed["Myrinet:MPICH-GM"] == ("9", "7", "1.29", "187.6", "264", "71%")
    assert printed["SCI-single:ScaMPI"] == ("4", "1.46", "2.74", "257.1", "528", "49%")
    assert not any("Java" in name or "MPJ" in name for name in printed)


def test_a_theory_may_be_of_one_machine_and_each_is_told_once():
    found = taboada_tables.parse_theory(["1:400", "m=3:5"])
    send = measure(lambda name, n, p: 6e-6 + n / 5e6, routine="pingpong")
    assert taboada_tables.build_theory_table(send, found, HISTORY).rows[0][4:6] == ("3", "2.00")
    with pytest.raises(UsageError, match="names a machine twice"):
        taboada_tables.parse_theory(["1:400", "2:400"])


def test_what_is_missing_is_said_with_the_command_that_measures_it():
    told = taboada_tables.describe_missing(measure(lambda name, n, p: form(n), (2, 4), sizes=[8, 10_000]))
    assert told.startswith("Not measured: 0 and powers of four to 1 MiB, sizes to judge the models by, three ")
    assert told.endswith("./plumbline run --family taboada --processes 2,4,8")


def test_an_empty_message_that_is_not_sent_is_no_startup():
    """Many MPIs return from a reduction of nothing at once."""
    fit = taboada_models.fit_model({size: 3e-6 + size / 350e6 if size else 1e-8 for size in ALL_SIZES})
    assert (fit.held_out, fit.t0) == (20, pytest.approx(3e-6, rel=0.01))
    assert max(fit.errors.values()) < 0.01


def test_a_crossover_beyond_what_was_measured_is_none():
    def seconds(name: str, n: int, p: int) -> float:
        return {"bcast": 1e-6 + 2e-9 * n, "scatter": 9e-3 + 0.5e-9 * n, "allgather": 1e-6 + 0.5e-9 * n}[name]

    table = taboada_tables.build_model_tables(
        measure(seconds, (4,), routine=("bcast", "scatter", "allgather"))
    )[-1]
    assert table.rows[0][5] == "never"
