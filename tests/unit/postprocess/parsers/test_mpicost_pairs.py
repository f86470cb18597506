"""The pairs of a tournament are believed only if they are all there and agree with the trials."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.mpicost import read_launch
from tests.support.factories import record as samples

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
    assert tuple((each.a, each.b) for each in case.pairs) == GAMES
    for each, written in zip(case.pairs, records[1]["pairs"], strict=True):
        assert each.t.tolist() == written["t"]
    assert np.max([each.t for each in case.pairs], axis=0).tolist() == case.t_max.tolist()


def test_other_routines_have_no_pairs(tmp_path, refused):
    path = samples.write(tmp_path / "a", samples.launch())
    assert {case.pairs for case in read_launch(path).cases} == {()}
    said = refused(launch(routine="pingpong"))
    assert said == "pairs: 'pingpong' is not played in pairs"


def test_with_an_odd_number_one_rank_is_left_over(tmp_path, refused):
    path = samples.write(tmp_path / "a", launch(processes=7, peer=7))
    assert len(read_launch(path).cases[0].pairs) == 3
    assert refused(launch(processes=7, peer=8)) == "peer: a tournament of 7 has no round 8"


@pytest.mark.parametrize("peer", [0, 6])
def test_a_round_that_is_not_there(refused, peer):
    assert refused(launch(peer=peer)) == f"peer: a tournament of 6 has no round {peer}"


@pytest.mark.parametrize("pairs", [[], {}, [1], 3, "ab", [None]])
def test_pairs_are_a_list_of_objects(refused, pairs):
    assert refused(launch(pairs)).startswith("pairs: ")


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


@pytest.mark.parametrize(
    ("a", "b"), [(5, 0), (0, 0), (0, 6), (-1, 5), (0.0, 5), ("0", 5), (0, True), (0, 2**63)]
)
def test_a_pair_is_two_ranks_in_ascending_order(refused, a, b):
    assert refused(changed(0, a=a, b=b)).startswith("pairs")


@pytest.mark.parametrize(("a", "b"), [(0, 3), (1, 5), (2, 4)])
def test_no_rank_plays_with_another_one_than_the_round_says(refused, a, b):
    said = f"pairs: {a} and {b} do not meet in round 1 of 6 processes"
    assert refused(changed(1, a=a, b=b)) == said


@pytest.mark.parametrize(("processes", "peers"), [(6, (2, 3, 4, 5)), (7, (1, 2, 3, 4, 5, 6))])
def test_the_pairs_of_another_round_are_refused(refused, processes, peers):
    for peer in peers:
        said = refused(launch(processes=processes, peer=peer))
        assert said.endswith(f" do not meet in round {peer} of {processes} processes")


@pytest.mark.parametrize(
    ("which", "changes", "said"),
    [
        (1, {"a": 0, "b": 5}, "one of them is there twice"),
        (2, {"median": 1e-6}, "'median' is no key of a pair"),
    ],
)
def test_no_pair_is_there_twice_or_has_more_keys(refused, which, changes, said):
    assert refused(changed(which, **changes)) == f"pairs: {said}"


@pytest.mark.parametrize("length", [0, 50, 52])
def test_a_pair_has_a_time_for_every_trial(refused, length):
    times = (TIMES["t_min"] * 2)[:length]
    assert refused(changed(2, t=times)).startswith(f"pairs.t: has {length} entries where 51")


@pytest.mark.parametrize("value", [0, 0.0, -1e-6, None, "1e-6", True, [1e-6]])
def test_a_time_is_a_number_above_zero(refused, value):
    times = [*TIMES["t_min"][:-1], value]
    assert refused(changed(2, t=times)).startswith("pairs.t: trial 51 is ")


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
