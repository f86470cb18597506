"""From the records of launches to matrices of pairs: nothing is passed over, and every trial is kept."""

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from postprocess.base.errors import UsageError
from postprocess.features.links import data
from postprocess.features.links.command import describe_missed_pairs
from postprocess.features.links.text import check_sweep_launch
from postprocess.model.verdict import Verdict
from tests.support.factories import record
from tests.support.factories.links import TRIALS, Tournament
from tests.support.faults import Declared, plants

SEVEN = tuple(f"n{number}" for number in range(1, 8))


def seconds(a: str, b: str, size: int) -> float:
    """Different for each pair and size."""
    low, high = sorted((int(a[1:]), int(b[1:])))
    return 1e-6 * (low + high / 16) * (1 + size)


@pytest.mark.parametrize("nodes", [SEVEN[:4], SEVEN[:5], SEVEN], ids=len)
def test_every_pair_has_its_own_time(tmp_path: Path, nodes):
    done = Tournament(seconds, nodes).finished(tmp_path)
    assert not data.find_unplayed_pairs(done)
    (sweep,) = data.build_sweeps([done])
    assert (sweep.nodes, sweep.launches, sweep.missing) == (nodes, 1, [])
    assert sweep.pairs == len(nodes) * (len(nodes) - 1) // 2
    kinds = [(each.bytes, each.statistic) for each in sweep.measures]
    assert kinds == [(8, "mean"), (8, "median"), (1_000_000, "mean"), (1_000_000, "median")]
    for measure in sweep.measures:
        for a, b in combinations(range(len(nodes)), 2):
            expected = pytest.approx(seconds(nodes[a], nodes[b], measure.bytes))
            assert measure.times[0, a, b] == measure.times[0, b, a] == expected
        assert np.isnan(measure.times[0].diagonal()).all()
    assert sweep.quiet[8][0, 0, 2] == pytest.approx(seconds("n1", "n3", 8))
    assert np.isnan(sweep.quiet[8][0, 1, 2])


def test_ranks_are_told_by_their_nodes_whatever_their_order(tmp_path: Path):
    launches = [
        Tournament(seconds, nodes, number=number).finished(tmp_path)
        for number, nodes in enumerate([("n1", "n2", "n10", "n4"), ("n10", "n4", "n2", "n1")], 1)
    ]
    (sweep,) = data.build_sweeps(launches)
    assert sweep.nodes == ("n1", "n2", "n4", "n10")
    assert not sweep.missing
    for measure in sweep.measures:
        np.testing.assert_array_equal(measure.times[0], measure.times[1])


@plants("stale", "a round in which the wrong ranks play", "a sweep of links", "incorrect", 1,
        "do not meet in round 2 of 4 processes")  # fmt: skip
def test_a_round_in_which_the_wrong_ranks_played_is_incorrect(tmp_path: Path, declared: Declared):
    def again(records):
        """The second round repeats the first one."""
        first, second = [
            each for each in records if each.get("routine") == "tournament" and each["bytes"] == 8
        ][:2]
        second.update({**first, "peer": second["peer"]})

    done = check_sweep_launch(Tournament(seconds).finished(tmp_path, again))
    declared.check_case(done.outcome.verdict, done.outcome.reason)
    assert not data.build_sweeps([done])


@plants("data", "wrong data in one round", "a sweep of links", "incorrect", 1,
        "wrong data: tournament")  # fmt: skip
def test_wrong_data_of_one_round_fails_the_whole_sweep(tmp_path: Path, declared: Declared):
    def damage(records):
        records[:] = record.receive_wrong_data(records, len(records) - 2)

    done = Tournament(seconds).finished(tmp_path, damage, code="1\n")
    assert done.outcome.records
    done = check_sweep_launch(done)
    declared.check_case(done.outcome.verdict, done.outcome.reason)
    assert not data.build_sweeps([done])


class Shortened(Tournament):
    """A tournament whose first round was never planned."""

    @property
    def rounds(self) -> range:
        return super().rounds[1:]


@plants("output", "a round that was not played", "a sweep of links", "incomplete", 1,
        "pairs missing in launch 1: n1-n4, n2-n3")  # fmt: skip
def test_a_round_that_was_not_planned_is_incomplete_and_names_the_pairs(tmp_path, declared):
    done = check_sweep_launch(Shortened(seconds).finished(tmp_path))
    declared.check_case(done.outcome.verdict, done.outcome.reason)
    assert not data.build_sweeps([done])


def test_two_ranks_on_a_node_are_no_pair_of_nodes(tmp_path: Path):
    def crowd(records):
        records[0]["ranks"][1]["host"] = "n1"

    done = Tournament(seconds).finished(tmp_path, crowd)
    if done.outcome.records:  # else the records were refused before
        done = check_sweep_launch(done)
    assert done.outcome.verdict == Verdict.INCORRECT


def test_launches_on_different_nodes_lack_pairs_and_they_are_named(tmp_path: Path):
    launches = [
        Tournament(seconds, nodes, number=number).finished(tmp_path)
        for number, nodes in enumerate([("n1", "n2", "n3", "n4"), ("n1", "n2", "n3", "n5")], 1)
    ]
    (sweep,) = data.build_sweeps(launches)
    assert ("n4", "n5") in sweep.missing and ("n1", "n2") not in sweep.missing
    assert len(sweep.missing) == 7
    assert "n1-n4, n1-n5, n2-n4, n2-n5, n3-n4 and 2 more" in describe_missed_pairs(sweep)


def test_a_failed_launch_takes_its_sweep_along(tmp_path: Path):
    good = Tournament(seconds).finished(tmp_path)
    bad = Tournament(seconds, number=2).finished(tmp_path, lambda records: records.pop())
    assert bad.outcome.records is None
    assert not data.build_sweeps([good, bad])


def test_late_and_dropped_trials_do_not_count(tmp_path: Path):
    done = Tournament(seconds).finished(tmp_path)
    for pair in data.iter_pair_trials(done):
        assert pair.counts.tolist() == [False, *[True] * (TRIALS - 1)]


def test_every_trial_of_every_pair_is_kept(tmp_path: Path):
    done = Tournament(seconds).finished(tmp_path)
    path = data.write_pair_trials(tmp_path, "20261121T120000Z-1", [done])
    rows = pl.read_parquet(path).filter(routine="tournament", bytes=8, node_a="n2", node_b="n3")
    assert rows["t"].to_list() == [Tournament(seconds).trials("n2", "n3", 8)]
    assert pl.read_parquet(path).height == 2 * (6 + 3)
    with pytest.raises(UsageError, match="20261121T120000Z-1"):
        data.write_pair_trials(tmp_path, "20261121T120000Z-1", [done])
