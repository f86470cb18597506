"""The analysis of all pairs of nodes: what is named on made-up machines, and what is not."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.features.links import detect
from tests.support.factories.links import Machine

#: Of a healthy machine; with at most one false alarm in a hundred two are very unlikely.
SWEEPS = 40
EXACT = Machine(node_spread=0, pair_spread=0, noise=0, disturbed=0, launches=1)


def named(analysis: detect.SweepAnalysis) -> set[tuple[int, ...]]:
    """Every node and pair that is named."""
    return {node.who for node in (*analysis.nodes, *analysis.pairs)}


def rate(machine: Machine, who: tuple[int, ...] | None = None, sweeps: int = SWEEPS) -> float:
    """Share of sweeps that name this, or anything at all."""
    found = [named(detect.analyse_sweep(machine.measures((sweeps, n)))) for n in range(sweeps)]
    return sum(who in each if who else bool(each) for each in found) / sweeps


@pytest.fixture
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would have been detected, half of the work, is left out where only names count."""
    monkeypatch.setattr(detect, "compute_detection_limits", lambda *_: None)


@pytest.mark.usefixtures("no_limits")
@pytest.mark.parametrize("nodes", [4, 8, 16])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"noise": 0.05, "tail": 2.0},
        {"disturbed": 0.05},
        {"node_spread": 0.05},
        {"pair_spread": 0.04},
        {"per_switch": 4},
        {"busy": 0.05},
    ],
    ids=str,
)
def test_a_healthy_machine_is_healthy(nodes, more):
    machine = Machine(nodes=nodes, launches=detect.count_launches_needed(nodes, 4), **more)
    assert rate(machine) <= 1 / SWEEPS


@pytest.mark.usefixtures("no_limits")
@pytest.mark.parametrize(
    ("machine", "who"),
    [
        (Machine(nodes=8, launches=5, slow_nodes={3: 1.2}), (3,)),
        (Machine(nodes=16, launches=4, slow_nodes={3: 1.2}), (3,)),
        (Machine(nodes=64, launches=4, slow_nodes={3: 1.2}), (3,)),
        (Machine(nodes=8, launches=5, noise=0.05, tail=2.0, slow_nodes={3: 1.5}), (3,)),
        (Machine(nodes=4, launches=7, slow_pairs={(1, 2): 2.0}), (1, 2)),
        (Machine(nodes=8, launches=4, slow_pairs={(1, 6): 2.0}), (1, 6)),
        (Machine(nodes=64, slow_pairs={(1, 60): 2.0}), (1, 60)),
        (Machine(nodes=16, per_switch=4, slow_pairs={(1, 15): 4.0}), (1, 15)),
        (Machine(nodes=16, launches=4, per_switch=4, slow_nodes={3: 2.0}), (3,)),
    ],
    ids=str,
)
def test_a_planted_fault_is_named(machine, who):
    assert rate(machine, who, sweeps=20) >= 0.8


def test_a_slow_node_is_one_finding_and_its_pairs_are_none():
    found = detect.analyse_sweep(replace(EXACT, slow_nodes={5: 1.9}).measures((1,)), exact=True)
    assert named(found) == {(5,)}
    assert [node.factor for node in found.nodes] == pytest.approx([1.9] * 4)
    assert all(node.slow == node.of == 15 for node in found.nodes)


def test_a_slow_pair_does_not_name_its_nodes():
    found = detect.analyse_sweep(replace(EXACT, slow_pairs={(2, 7): 2.0}).measures((1,)), exact=True)
    assert named(found) == {(2, 7)}
    assert all(pair.factor == pytest.approx(2.0) for pair in found.pairs)


def test_a_node_with_some_of_its_pairs_slow_has_bad_links():
    pairs = {(0, other): 3.0 for other in range(1, 8)}
    found = detect.analyse_sweep(replace(EXACT, slow_pairs=pairs).measures((1,)), exact=True)
    assert named(found) == set(pairs)
    pairs = {(0, other): 3.0 for other in range(1, 11)}
    found = detect.analyse_sweep(replace(EXACT, slow_pairs=pairs).measures((1,)), exact=True)
    assert (0,) not in named(found)


@pytest.mark.parametrize("factor", [1.0, 1.09])
def test_trifles_are_not_named(factor):
    machine = replace(EXACT, slow_nodes={1: factor}, slow_pairs={(2, 3): factor})
    assert not named(detect.analyse_sweep(machine.measures((1,)), exact=True))
    assert named(detect.analyse_sweep(replace(machine, slow_nodes={1: 1.12}).measures((1,)), exact=True))


def test_a_passing_disturbance_of_a_pair_is_not_a_bad_link():
    measure = replace(EXACT, launches=4).measure(np.random.default_rng(1))
    measure.times[:3, 2, 7] = measure.times[:3, 7, 2] = 9.0
    assert not named(detect.analyse_sweep([measure]))


def test_one_launch_cannot_tell_a_bad_link_from_a_disturbance():
    machine = replace(EXACT, slow_pairs={(2, 7): 9.0})
    found = detect.analyse_sweep(machine.measures((1,)))
    assert not found.pairs
    assert {suspect.who for suspect in found.suspects} == {(2, 7)}
    assert all(math.isinf(limit.pair) for limit in found.limits)


def test_the_more_others_are_disturbed_the_less_sure_is_what_is_slow_throughout():
    excess = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, math.nan]])
    slow = detect.find_persistent_excess(excess, 0.5)
    assert slow.tolist() == [True, False, False, False]
    assert detect.compute_p_values(excess, slow, 0.5)[0] == pytest.approx(2 / 4 * 1 / 3)
    excess[1, 0] = math.nan
    found = detect.compute_p_values(excess, detect.find_persistent_excess(excess, 0.5), 0.5)[0]
    assert found == pytest.approx(2 / 4)


def test_the_more_is_looked_at_the_surer_it_must_be():
    machine = replace(EXACT, nodes=8, slow_nodes={2: 2.0}, launches=5)
    (measure,) = machine.measures((1,))[:1]
    few, many = detect.analyse_sweep([measure] * 2), detect.analyse_sweep([measure] * 40)
    assert few.looked_at * 20 == many.looked_at
    assert few.nodes and few.p(few.nodes[0]) <= detect.ALPHA
    assert not many.nodes and many.p(many.suspects[0]) > detect.ALPHA


def test_pairs_of_two_switches_are_compared_with_their_kind_where_it_is_known():
    machine = replace(EXACT, per_switch=8, slow_pairs={(0, 1): 1.6})
    measures = machine.measures((1,))
    switch = tuple(node // 8 for node in range(16))
    known = [replace(measure, switch=switch) for measure in measures]
    assert not named(detect.analyse_sweep(measures, exact=True))
    assert named(detect.analyse_sweep(known, exact=True)) == {(0, 1)}


def test_missing_pairs_are_no_findings():
    (measure,) = replace(EXACT, launches=4, slow_nodes={5: 2.0}).measures((1,))[:1]
    measure.times[:, 3, :] = measure.times[:, :, 3] = np.nan
    measure.times[0, 8, 9] = measure.times[0, 9, 8] = np.nan
    found = detect.analyse_sweep([measure])
    assert named(found) == {(5,)}
    assert (found.nodes[0].of, found.looked_at) == (14, 15 + 15 * 14 // 2)


@pytest.mark.parametrize("machine", [Machine(nodes=8, launches=5), Machine(nodes=16, launches=4)], ids=str)
def test_what_would_have_been_seen_is_seen(machine):
    limits = detect.analyse_sweep(machine.measures((0,))).limits
    node = max(limit.node for limit in limits)
    pair = max(limit.pair for limit in limits)
    assert rate(replace(machine, slow_nodes={2: 1 + node}), (2,), 20) >= 0.8
    assert rate(replace(machine, slow_pairs={(1, 5): 1 + pair}), (1, 5), 20) >= 0.8


def test_what_else_would_have_been_seen_is_told_beside_a_finding():
    machine = replace(EXACT, launches=5, slow_nodes={2: 3.0})
    found = detect.analyse_sweep(machine.measures((1,)))
    assert named(found) == {(2,)}
    assert all(limit.node == pytest.approx(0.1) for limit in found.limits)


def test_enough_launches_are_enough_for_a_bad_link():
    for nodes in (4, 6, 8, 16, 64):
        launches = detect.count_launches_needed(nodes, 4)
        machine = replace(EXACT, nodes=nodes, launches=launches, slow_pairs={(1, 2): 3.0})
        assert named(detect.analyse_sweep(machine.measures((1,)))) == {(1, 2)}
    assert detect.count_launches_needed(256, 4) == 4


def test_interval_is_that_of_the_sign_test():
    values = np.arange(21.0)
    # Of 21 at most 5 are below the median with 1.3%, at most 6 with 3.9%.
    assert detect.compute_median_interval(values) == (5.0, 15.0)
    assert detect.compute_median_interval(values[:5]) == (0.0, 4.0)


@settings(max_examples=50)
@given(st.lists(st.floats(-5, 5) | st.just(math.nan), min_size=1, max_size=12), st.floats(0, 1))
def test_quantiles_leave_out_what_is_missing(values, share):
    ours = detect.compute_quantile(np.array(values), share)
    there = [value for value in values if not math.isnan(value)]
    if there:
        assert ours == pytest.approx(np.quantile(there, share), abs=1e-9)
    else:
        assert math.isnan(ours)


@settings(max_examples=25)
@given(st.permutations(range(8)), st.floats(1e-7, 1e3))
def test_names_and_units_do_not_matter(order, unit):
    machine = Machine(nodes=8, launches=4, slow_nodes={1: 2.0}, slow_pairs={(4, 6): 3.0})
    (measure,) = machine.measures((5,))[:1]
    other = detect.PairTimes(8, "median", measure.times[:, order, :][:, :, order] * unit)
    back = {tuple(sorted(order[node] for node in who)) for who in named(detect.analyse_sweep([other]))}
    assert back == named(detect.analyse_sweep([measure])) == {(1,), (4, 6)}
