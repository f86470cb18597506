"""Pairs of a tournament, means of ranks and loops of calls are believed only where they can be true."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from postprocess.model.conditions import method_of
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.mpicost import read_launch
from postprocess.stats.launches import bound_slowest_mean
from tests.support.factories import record as samples
from tests.support.factories.record import case_record, end_record, run_record
from tests.support.faults import Declared, plants

TIMES = samples.case_record("tournament", 8, peer=1)
GAMES = ((0, 5), (1, 4), (2, 3))


def pair(a: int, b: int, factor: float = 1.0) -> dict[str, Any]:
    """A pair, its times between the shortest and the longest of the case."""
    low, high = np.array(TIMES["t_min"]), np.array(TIMES["t_max"])
    return {"a": a, "b": b, "t": (low + (high - low) * factor).tolist()}


def launch(pairs: Any = None, processes: int = 6, **changes: Any) -> list[dict[str, Any]]:
    """A launch of one round; the slowest pair is the second one, in every trial."""
    if pairs is None:
        pairs = [pair(*game, factor) for game, factor in zip(GAMES, (0.25, 1, 0), strict=True)]
        pairs[1]["t"] = TIMES["t_max"]
    case = copy.deepcopy(TIMES) | {"pairs": pairs} | changes
    return [samples.run_record(1, processes), case, samples.end_record(1)]


@pytest.fixture
def refused(tmp_path):
    """Write a file and return the line of the error that reading it raises."""

    def read(records: list) -> str:
        path = samples.write(tmp_path / "out.jsonl", records)
        with pytest.raises(RecordError) as caught:
            read_launch(path)
        assert caught.value.verdict is Verdict.INCORRECT
        start = f"{path}: line 2: "
        assert str(caught.value).startswith(start)
        return str(caught.value).removeprefix(start)

    return read


def changed(which: int, **changes: Any) -> list[dict[str, Any]]:
    """The good launch with some fields of one pair changed."""
    records = launch()
    records[1]["pairs"][which] |= changes
    return records


def test_every_pair_is_kept_as_written(tmp_path):
    records = launch()
    path = samples.write(tmp_path / "a", records)
    (case,) = read_launch(path).cases
    assert case.variable == "tournament@1_8"
    assert tuple((time.a, time.b) for time in case.pairs) == GAMES
    for each, written in zip(case.pairs, records[1]["pairs"], strict=True):
        assert each.t.tolist() == written["t"]
    assert np.max([time.t for time in case.pairs], axis=0).tolist() == case.t_max.tolist()


def test_other_routines_have_no_pairs(tmp_path):
    path = samples.write(tmp_path / "a", samples.launch())
    assert {case.pairs for case in read_launch(path).cases} == {()}


def test_with_an_odd_number_one_rank_is_left_over(tmp_path):
    path = samples.write(tmp_path / "a", launch(processes=7, peer=7))
    assert len(read_launch(path).cases[0].pairs) == 3


def test_what_is_missing_is_named(refused):
    records = launch()
    for key in ("a", "b", "t"):
        less = copy.deepcopy(records)
        del less[1]["pairs"][2][key]
        assert refused(less) == f"pairs.{key}: is missing"
    del records[1]["pairs"][0]
    assert refused(records) == "pairs: 2 where 6 processes make 3"
    del records[1]["pairs"]
    assert refused(records) == "pairs: is missing"


@pytest.mark.parametrize(("processes", "peers"), [(6, (2, 3, 4, 5)), (7, (1, 2, 3, 4, 5, 6))])
def test_the_pairs_of_another_round_are_refused(refused, processes, peers):
    for peer in peers:
        said = refused(launch(processes=processes, peer=peer))
        assert said.endswith(f" do not meet in round {peer} of {processes} processes")


NO_PAIRS: list[Any] = [[], {}, [1], 3, "ab", [None]]
NO_RANKS = [(5, 0), (0, 0), (0, 6), (-1, 5), (0.0, 5), ("0", 5), (0, True), (0, 2**63)]
NO_TIMES = [0, 0.0, -1e-6, None, "1e-6", True, [1e-6]]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (launch(routine="pingpong"), "pairs: 'pingpong' is not played in pairs"),
        (launch(processes=7, peer=8), "peer: a tournament of 7 has no round 8"),
        *((launch(peer=peer), f"peer: a tournament of 6 has no round {peer}") for peer in (0, 6)),
        *((launch(pairs), "pairs: ") for pairs in NO_PAIRS),
        *((changed(0, a=a, b=b), "pairs") for a, b in NO_RANKS),
        *(
            (changed(1, a=a, b=b), f"pairs: {a} and {b} do not meet in round 1 of 6 processes")
            for a, b in [(0, 3), (1, 5), (2, 4)]
        ),
        (changed(1, a=0, b=5), "pairs: one of them is there twice"),
        (changed(2, median=1e-6), "pairs: 'median' is not a key of a pair"),
        *(
            (changed(2, t=(TIMES["t_min"] * 2)[:length]), f"pairs.t: has {length} entries where 51")
            for length in (0, 50, 52)
        ),
        *((changed(2, t=[*TIMES["t_min"][:-1], value]), "pairs.t: trial 51 is ") for value in NO_TIMES),
    ],
)
def test_pairs_that_cannot_be_are_refused(refused, records, said: str):
    assert refused(records).startswith(said)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "1e999"])
def test_a_time_is_finite(tmp_path, word):
    text = samples.text(changed(2, t=[*TIMES["t_min"][:-1], 0.0]))
    path = tmp_path / "a"
    path.write_text(text.replace(", 0.0]}", f", {word}]}}"))
    with pytest.raises(RecordError, match="finite") as caught:
        read_launch(path)
    assert caught.value.verdict is Verdict.INCORRECT


@pytest.mark.parametrize(
    ("which", "factor", "of"),
    [(1, 0.999999, "t_max"), (1, 1.000001, "t_max"), (0, 4.1, "t_max"), (2, 0.5, "t_min")],
)
def test_the_slowest_pair_is_the_time_of_the_trial_and_none_beats_the_fastest_rank(refused, which, factor, of):
    records = copy.deepcopy(launch())
    records[1]["pairs"][which]["t"][8] *= factor
    assert refused(records) == f"pairs: trial 9 disagrees with {of}"


# ---------------------------------------------------------------- the slowest mean of a rank


def written(tmp_path: Path, case: dict[str, Any], **run: Any) -> Path:
    """A launch of one broadcast with warm caches, for which ``case`` and ``run`` tell something else."""
    told = {"cache": "warm", "flush_bytes": 0} | run
    records = [run_record(1, **told), case_record("bcast", 8) | case, end_record(1, "warm")]
    return samples.write(tmp_path / "out.jsonl", records)


def bounds() -> tuple[float, float]:
    case = case_record("bcast", 8)
    return bound_slowest_mean(np.array(case["t_max"]), np.array(case["t_min"]), 2)


def test_it_is_there_where_trials_were_back_to_back_and_nowhere_else(tmp_path: Path):
    low, high = bounds()
    for mean in (low, (low + high) / 2, high):
        (case,) = read_launch(written(tmp_path, {"slowest_mean": mean}, back_to_back=5)).cases
        assert case.slowest_mean == mean
    (case,) = read_launch(written(tmp_path, {})).cases
    assert case.slowest_mean is None


@plants("output", "a mean of the slowest rank that its trials do not allow", "records of mpicost",
        "incorrect", 1, "disagrees with the trials")  # fmt: skip
@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 2])
def test_what_the_trials_do_not_allow_is_refused(tmp_path: Path, factor: float, declared: Declared):
    low, high = bounds()
    mean = low * factor if factor < 1 else high * factor
    with declared.raises(RecordError, match=r"slowest_mean: .* disagrees with the trials"):
        read_launch(written(tmp_path, {"slowest_mean": mean}, back_to_back=5))


ODD = [("slowest_mean", {"slowest_mean": mean}, 5) for mean in ("1", -1.0, True)]
ODD += [("slowest_mean", {}, 5)]
ODD += [("back_to_back", {"slowest_mean": sum(bounds()) / 2}, calls) for calls in (-1, "5", None, 0.5)]


@pytest.mark.parametrize(("key", "case", "calls"), ODD)
def test_a_lacking_or_odd_mean_or_number_of_calls_is_refused(tmp_path: Path, key: str, case: dict, calls):
    with pytest.raises(RecordError, match=key):
        read_launch(written(tmp_path, case, back_to_back=calls))


# ---------------------------------------------------------------- loops of calls

LOOP = {"sync": "loop", "loop_seconds": 0.01}


def test_a_loop_has_a_key_of_its_own(tmp_path: Path):
    launch = read_launch(written(tmp_path, {"calls": 250}, **LOOP))
    (record,) = launch.cases
    assert launch.case(record, "s", "p", "mpich-5.0.2").variant == "warm-loop"


@pytest.mark.parametrize(
    ("run", "case", "said"),
    [
        (LOOP, {}, "calls: is missing where sync is loop"),
        (LOOP, {"calls": 0}, "calls: 0"),
        ({}, {"calls": 1}, "calls: is there where sync is dissemination"),
        ({"sync": "loop"}, {"calls": 1}, "loop_seconds: is missing"),
        ({"loop_seconds": 0.01}, {}, "loop_seconds: is there where sync is dissemination"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, run: dict, case: dict, said: str):
    with pytest.raises(RecordError, match=said):
        read_launch(written(tmp_path, case, **run))


def test_how_long_a_loop_lasts_is_a_part_of_the_method():
    short, long = (method_of({**LOOP, "loop_seconds": value}, exact=True) for value in (0.01, 0.1))
    assert short != long and "loop_seconds" not in method_of({}, exact=True)
