"""What mpicost wrote is believed only if it is whole and agrees with itself."""

import copy
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.model.case import Case
from postprocess.model.measurement import CaseRecord
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.mpicost import read_launch
from postprocess.stats.launches import summarise_trials
from tests.support.factories import record as samples
from tests.support.faults import plants

GOOD = samples.launch()
GOOD_TEXT = samples.text(GOOD).encode()
RUN, BCAST, PINGPONG, END = 0, 1, 3, -1
IN_TRIAL = "rank 1 received -1 in element 9 instead of 1001.5, in trial 4"
LISTS = ("t_max", "t_min", "t_global", "skew", "late")


def damaged(place: int, **changes) -> list:
    """The good records with some fields of one of them changed; ``None`` stays a value."""
    records = copy.deepcopy(GOOD)
    records[place] |= changes
    return records


# ---------------------------------------------------------------- what is good


def test_a_good_file_is_read_whole(tmp_path):
    launch = read_launch(samples.write(tmp_path / "a", GOOD))
    assert launch.run == GOOD[RUN]
    assert launch.end == GOOD[END]
    expected = ["bcast_8", "bcast_1000000", "pingpong@1_8", "barrier_0"]
    assert [case.variable for case in launch.cases] == expected
    assert (launch.processes, launch.per_node) == (2, 2)
    assert (launch.cache, launch.sync) == ("evict", "dissemination")
    assert launch.mpi_library == GOOD[RUN]["mpi_library"]
    assert launch.resolution("s") == samples.RESOLUTION


def test_every_trial_is_kept_as_written(tmp_path):
    launch = read_launch(samples.write(tmp_path / "a", damaged(RUN, node_facts=[{"boost": "on"}])))
    for case, record in zip(launch.cases, GOOD[1:-1], strict=True):
        told = {name: getattr(case, name).tolist() for name in LISTS}
        assert told == {name: record[name] for name in told}
        assert case.summary == summarise_trials(np.array(record["t_max"]), None, 1, samples.RESOLUTION)


def test_a_record_gives_its_case(tmp_path):
    hosts = [{"name": "n1", "ranks": 2}, {"name": "n2", "ranks": 1}]
    records = samples.launch(processes=3, per_node=2, hosts=hosts)
    launch = read_launch(samples.write(tmp_path / "a", records))
    cases = [launch.case(record, "laptop", "cpu", "mpich-5.0.2") for record in launch.cases]
    where = ("laptop", "cpu", "mpich-5.0.2", "mpicost")
    assert cases[2] == Case(*where, "pingpong", 1, "evict", "dissemination", 3, 2, 8)
    assert [case.variable for case in cases] == [record.variable for record in launch.cases]


def read_one_case(tmp_path, case: dict, **run) -> CaseRecord:
    """The record of a launch with this case alone."""
    records = [samples.run_record(1, **run), case, samples.end_record(1)]
    (record,) = read_launch(samples.write(tmp_path / "a", records)).cases
    return record


@pytest.mark.parametrize(
    ("case", "run", "counted"),
    [
        ({"late": [0] * 41 + [1] * 10}, {"sync": "window"}, 40),  # late ones do not count
        ({"dropped": 5}, {"dropped": 5}, 46),
        ({"trials": 1, "dropped": 0}, {"trials": 1, "dropped": 0}, 1),
        ({"trials": 20}, {"relative_error": 0.05}, 19),  # sampling may stop early if asked
        ({"visits": [26, 25]}, {"rounds": 2}, 50),  # the first rounds may have one more
        ({"visits": [3] + [2] * 24}, {"rounds": 25}, 50),
    ],
)
def test_the_trials_of_a_case_are_those_that_count(tmp_path, case, run, counted):
    record = read_one_case(tmp_path, samples.case_record("bcast", 8, **case), **run)
    assert record.summary.kept + record.summary.removed == counted
    assert record.late.tolist() == [bool(flag) for flag in case.get("late", [0] * len(record.t_max))]


def test_times_of_a_simulated_machine_may_have_no_skew_and_an_idle_rank(tmp_path):
    zeros = [0.0] * samples.TRIALS
    records = damaged(BCAST, skew=zeros, t_min=zeros)
    records[RUN]["timer"]["resolution"] = 0
    assert read_launch(samples.write(tmp_path / "a", records)).resolution("s") == 0.0


def test_statistics_may_differ_by_rounding_only(tmp_path, refused):
    headline = GOOD[BCAST]["headline"]
    read_launch(samples.write(tmp_path / "a", damaged(BCAST, headline=headline * (1 + 5e-10))))
    refused(damaged(BCAST, headline=headline * (1 + 2e-9)), "line 2: headline: ")


# ---------------------------------------------------------------- what does not arrive whole


@given(st.integers(min_value=0, max_value=len(GOOD_TEXT) - 1))
@settings(max_examples=300)
def test_a_file_cut_anywhere_is_incomplete(tmp_path_factory, length):
    path = tmp_path_factory.mktemp("cut") / "out.jsonl"
    path.write_bytes(GOOD_TEXT[:length])
    with pytest.raises(RecordError) as caught:
        read_launch(path)
    assert caught.value.verdict is Verdict.INCOMPLETE


LINES = GOOD_TEXT.splitlines(keepends=True)


@plants("output", "cut, empty, binary or mixed with other lines, in 16 ways", "records of mpicost",
        "incomplete", 1, "…")  # fmt: skip
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n", "line 1: not a whole JSON object"),
        (b"\x00\xff\xfe garbage \x80\n", "line 1: not a whole JSON object"),
        (b"\x7fELF\x02\x01\x01" + bytes(range(256)), "line 1"),
        (GOOD_TEXT[:-1], "line 6: the line is cut off"),
        (GOOD_TEXT[:-20], "line 6: the line is cut off"),
        (b"".join(LINES[:-1]), "no end record; 4 of 4 cases are there"),
        (b"".join(LINES[:-2]), "no end record; 3 of 4 cases are there"),
        (b"".join(LINES[:1]), "no end record; 0 of 4 cases are there"),
        (b"".join(LINES[:2] + LINES[3:]), "3 of 4 cases are there"),
        (b"".join(LINES[1:]), "line 1: record: the run record before it is missing"),
        (b"".join(LINES[-1:]), "line 1: record: the run record before it is missing"),
        (b"".join([*LINES[:2], b"Segmentation fault\n", *LINES[2:]]), "line 3: not a whole"),
        (b"".join([*LINES[:2], b"\n", *LINES[2:]]), "line 3: not a whole JSON object"),
        (b"".join([LINES[0], LINES[1][:300] + b"\n", *LINES[2:]]), "line 2: not a whole"),
        (b"".join([LINES[0], LINES[1].replace(b"bcast", b"\xff"), *LINES[2:]]), "line 2: not a"),
    ],
)
def test_what_is_not_whole_is_incomplete(refused, content, said):
    refused(content, said, Verdict.INCOMPLETE)


def test_a_file_that_is_not_there_is_incomplete(tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(RecordError) as caught:
            read_launch(path)
        assert caught.value.verdict is Verdict.INCOMPLETE
        assert str(caught.value).startswith(f"{path}: ")


@plants("programs", "every trial late", "records of mpicost", "incomplete", 1,
        "line 2: late: none of 51 trials is left")  # fmt: skip
@pytest.mark.parametrize("late", [[0] + [1] * 50, [1] * 51])
def test_no_trial_in_time_is_incomplete(refused, late):
    records = damaged(BCAST, late=late)
    records[RUN]["sync"] = "window"
    refused(records, verdict=Verdict.INCOMPLETE)


# ---------------------------------------------------------------- what cannot be true


def spoilt(key: str, value: float, trial: int = 7) -> list:
    """The good records with one number of one list of one case replaced."""
    records = copy.deepcopy(GOOD)
    records[BCAST][key][trial - 1] = value
    return records


@pytest.mark.parametrize("key", LISTS[:-1])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-9, "1e-6", None, True])
def test_a_time_is_a_finite_number_that_is_not_negative(refused, key, value):
    refused(spoilt(key, value))


@pytest.mark.parametrize("key", ["t_max", "t_global"])
def test_no_operation_takes_no_time(refused, key):
    records = spoilt(key, 0.0)
    records[BCAST]["t_min"][6] = 0.0
    refused(records, f"line 2: {key}: trial 7 is 0.0, not more than zero")


@plants("output", "nan, inf and 1e400 as C writes them", "records of mpicost", "incorrect", 1,
        "is not a finite number")  # fmt: skip
@pytest.mark.parametrize("spelling", [b"nan", b"-nan", b"inf", b"-inf", b"1e400"])
def test_the_c_library_spells_nan_its_own_way(refused, spelling):
    refused(GOOD_TEXT.replace(repr(GOOD[BCAST]["t_max"][0]).encode(), spelling, 1))


STATISTICS = ["headline", "median", "minimum", "p90", "p99"]
FLAGS = ["filter_saturated", "bimodal"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *product(STATISTICS, [0.0, -1.0, "1e-6", None, True]),
        *product(FLAGS, ["false", 0, None]),
        *((key, not GOOD[BCAST][key]) for key in FLAGS),
    ],
)
def test_a_statistic_is_the_one_of_the_trials(refused, key, value):
    refused(damaged(BCAST, **{key: value}), f"line 2: {key}: ")


@plants("output", "a statistic that is off by a thousandth", "records of mpicost", "incorrect", 1,
        "disagrees with the trials")  # fmt: skip
@pytest.mark.parametrize("key", STATISTICS)
def test_a_statistic_that_is_a_little_off_is_wrong(refused, key):
    refused(damaged(BCAST, **{key: GOOD[BCAST][key] * 1.001}), f"line 2: {key}: ")


@plants("output", "a count of trials that is off by one", "records of mpicost", "incorrect", 1,
        "line 2: ")  # fmt: skip
@pytest.mark.parametrize("key", ["kept", "candidates", "removed"])
@pytest.mark.parametrize("change", [1, -1, 0.0, "text"])
def test_a_count_is_the_one_of_the_trials(refused, key, change):
    value = GOOD[BCAST][key]
    wrong = str(value) if change == "text" else value + change
    refused(damaged(BCAST, **{key: wrong}), f"line 2: {key}: ")


@given(st.integers(min_value=2, max_value=51), st.floats(min_value=0.5, max_value=0.999))
def test_a_trial_cannot_be_exchanged_after_the_fact(tmp_path_factory, trial, factor):
    """Any trial that entered the headline is tied to it."""
    records = copy.deepcopy(GOOD)
    times = records[BCAST]["t_max"]
    times[trial - 1] *= factor
    records[BCAST]["t_min"][trial - 1] *= factor / 2
    path = samples.write(tmp_path_factory.mktemp("changed") / "a", records)
    before = summarise_trials(np.array(GOOD[BCAST]["t_max"]), None, 1, samples.RESOLUTION)
    if summarise_trials(np.array(times), None, 1, samples.RESOLUTION) != before:
        with pytest.raises(RecordError) as caught:
            read_launch(path)
        assert caught.value.verdict is Verdict.INCORRECT


@plants("data", "data that was not verified", "records of mpicost", "incorrect", 1, ": verified: ")
@pytest.mark.parametrize("place", [BCAST, END])
@pytest.mark.parametrize("value", [False, "true", 1, None])
def test_data_that_is_not_verified_is_incorrect(refused, place, value):
    refused(damaged(place, verified=value))


RECEIVED = samples.receive_wrong_data(GOOD, BCAST)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (damaged(BCAST, verified=False, trials=0, **{key: [] for key in LISTS}), "wrong data: bcast"),
        pytest.param(damaged(BCAST, verified=False)[:2], "wrong data: bcast with 8 bytes", marks=plants(
            "data", "wrong data, and no end", "records of mpicost", "incorrect", 1, "wrong data")),
        pytest.param(samples.text(RECEIVED).encode()[:-9], IN_TRIAL, marks=plants(
            "data", "wrong data, and the file cut off", "records of mpicost", "incorrect", 1,
            "rank 1 received -1 in element 9 instead of 1001.5, in trial 4")),
    ],
)  # fmt: skip
def test_wrong_data_outranks_whatever_else_is_missing(refused, content, said):
    refused(content, said)


def test_cases_beside_one_with_wrong_data_keep_their_values(tmp_path):
    """All that is known of the wrong data is told."""
    found = read_launch(samples.write(tmp_path / "a", samples.receive_wrong_data(GOOD, PINGPONG)))
    assert found.wrong == {"pingpong@1_8": f"wrong data: pingpong with 8 bytes, peer 1: {IN_TRIAL}"}
    healthy = read_launch(samples.write(tmp_path / "b", GOOD)).measurements
    assert {name: each.value for name, each in found.measurements.items()} == {
        name: each.value for name, each in healthy.items() if name not in found.wrong
    }


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"received": None}, "no number up to 1e150 in element 9 instead of 1001.5, in trial 4"),
        ({"moment": "before", "trial": 0}, "instead of 1001.5, before the trials"),
        ({"moment": "after", "trial": 0}, "instead of 1001.5, after the trials"),
    ],
)
def test_what_was_wrong_is_told(tmp_path, changes, told):
    records = samples.receive_wrong_data(GOOD, BCAST, **changes)
    (reason,) = read_launch(samples.write(tmp_path / "a", records)).wrong.values()
    assert reason.endswith(told)


@plants("data", "wrong data that cannot be: another rank, trial or moment", "records of mpicost",
        "incorrect", 1, "line 2: wrong.")  # fmt: skip
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("rank", 2), ("rank", -1), ("index", -4097), ("received", "1"), ("expected", True)),
        *(("moment", "later"), ("moment", "before"), ("trial", 0), ("trial", 52)),
    ],
)
def test_wrong_data_that_cannot_be_is_refused(refused, key, value):
    refused(samples.receive_wrong_data(GOOD, BCAST, **{key: value}))


@pytest.mark.parametrize(
    "damage",
    [
        lambda records: records.pop(),
        lambda records: records[END].update(verified=True),
        lambda records: records[BCAST].update(verified=True),
        lambda records: records[PINGPONG]["t_max"].pop(),
        lambda records: records[PINGPONG].update(headline=1.0),
        lambda records: records[END].update(cases=3),
        lambda records: records.append(records[PINGPONG]),
    ],
)
def test_wrong_data_is_no_excuse_for_another_fault(refused, damage):
    """Nothing of the launch counts then, and both are named."""
    records = copy.deepcopy(RECEIVED)
    damage(records)
    refused(records, "" if records[BCAST]["verified"] else IN_TRIAL)


@plants("output", "another unit", "records of mpicost", "incorrect", 1, "line 2: unit: ")
@pytest.mark.parametrize("unit", ["us", "ms", "S", "", 1, None])
def test_the_unit_is_seconds(refused, unit):
    refused(damaged(BCAST, unit=unit))


@plants("output", "a list of trials that is shorter or longer", "records of mpicost", "incorrect", 1,
        "line 2: ")  # fmt: skip
@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("change", ["shorter", "longer", "empty", "scalar"])
def test_every_list_has_an_entry_per_trial(refused, key, change):
    first, *others = GOOD[BCAST][key]
    wrong = {"shorter": others, "longer": [first, first, *others], "empty": [], "scalar": first}
    refused(damaged(BCAST, **{key: wrong[change]}), f"line 2: {key}: ")


@pytest.mark.parametrize("late", [[0] * 50 + [1], [2] + [0] * 50, [False] * 51, ["0"] * 51])
def test_late_flags_are_bits_and_need_a_window(refused, late):
    refused(damaged(BCAST, late=late), "line 2: late: ")


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            damaged(BCAST, trials=50, **{key: GOOD[BCAST][key][:-1] for key in LISTS}),
            "trials: 50 where the run record says 51",
        ),
        (
            [samples.run_record(1), samples.case_record("bcast", 8, trials=20), samples.end_record(1)],
            "trials: 20",
        ),
        (
            [
                samples.run_record(1, relative_error=0.05),
                samples.case_record("bcast", 8, trials=52),
                samples.end_record(1),
            ],
            "trials: 52",
        ),
        (spoilt("t_min", GOOD[BCAST]["t_max"][6] * 1.01), "t_min: trial 7 is above its t_max"),
        ([GOOD[0], GOOD[1], GOOD[1], *GOOD[3:]], "line 3: record: case bcast_8 is there twice"),
    ],
)
def test_trials_and_cases_are_as_many_as_planned_and_agree(refused, records, said):
    refused(records, said)


@pytest.mark.parametrize(
    ("planned", "ended", "verdict"),
    [
        (4, 3, Verdict.INCORRECT),
        (4, 5, Verdict.INCORRECT),
        (3, 4, Verdict.INCORRECT),
        (3, 3, Verdict.INCORRECT),
        (5, 4, Verdict.INCOMPLETE),
        (5, 5, Verdict.INCOMPLETE),
    ],
)
def test_counts_agree(refused, planned, ended, verdict):
    records = damaged(RUN, cases=planned)
    records[END]["cases"] = ended
    told = refused(records, verdict=verdict)
    assert "4 found" in told or "4 of 5 cases are there" in told


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([*LINES, LINES[-1]], "line 7: record: end after the end"),
        ([*LINES, LINES[1]], "line 7: record: case after the end"),
        ([*LINES, LINES[0]], "line 7: record: run after the end"),
        ([LINES[0], *LINES], "line 2: record: a second run"),
        ([*LINES, *LINES], "line 7: record: run after the end"),
        ([LINES[0], b"[1, 2]\n", *LINES[1:]], "line 2: [1, 2] is not a record"),
        ([LINES[0], b'{"record": 5}\n', *LINES[1:]], "line 2: record: 5 is not of type str"),
        ([LINES[0], b'{"a": 1, "a": 2}\n', *LINES[1:]], "line 2: 'a': the key is there twice"),
    ],
)
def test_records_come_in_their_order(refused, lines, said):
    refused(b"".join(lines), said)


def test_measurements_of_a_launch_are_made_once(tmp_path):
    records = read_launch(samples.write(tmp_path / "a", GOOD))
    assert records.measurements is records.measurements
