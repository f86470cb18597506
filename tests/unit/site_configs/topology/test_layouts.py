"""Process counts worth measuring: powers of two, and both sides of each boundary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_configs.topology.layouts import (
    Layout,
    Topology,
    layouts,
    list_boundary_counts,
    list_kernel_layouts,
    list_process_counts,
)

TOPOLOGIES = st.builds(
    Topology,
    cores_per_node=st.integers(1, 300),
    sockets_per_node=st.integers(1, 8),
    nodes=st.integers(1, 100),
    nodes_per_switch=st.integers(0, 40),
)


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        (Topology(1), []),
        (Topology(2), [2]),
        (Topology(4), [2, 4]),
        (Topology(6), [2, 4, 6]),
        (Topology(8, sockets_per_node=2), [2, 4, 5, 8]),
        (Topology(3, sockets_per_node=2), [2, 3]),
        (Topology(1, sockets_per_node=2), []),
        (Topology(4, nodes=2), [2, 4, 5, 8]),
        (Topology(4, nodes=3), [2, 4, 5, 8, 12]),
        (Topology(1, nodes=4), [2, 4]),
        (
            Topology(64, sockets_per_node=2, nodes=4, nodes_per_switch=2),
            [2, 4, 8, 16, 32, 33, 64, 65, 128, 129, 256],
        ),
    ],
)
def test_known_ladders(topology: Topology, expected: list[int]):
    assert list_process_counts(topology) == expected


#: Of Luecke, Kraeva and Ju (2003), section 1, but for 126, which is no boundary
ORIGIN = [2, 4, 8, 16, 17, 32, 33, 48, 49, 64, 65, 80, 81, 96, 97, 112, 113, 128]


def test_boundaries_are_those_of_the_paper_on_a_hypercube():
    found = list_boundary_counts(Topology(2, nodes=64, nodes_per_switch=8))
    assert {*ORIGIN} <= {*found}
    assert {*found} - {*ORIGIN} == {3, 5}  # of nodes


@pytest.mark.parametrize(
    ("topology", "there"),
    [
        (Topology(4, 1, 128, 16), {48, 96, 64, 65, 128, 129, 192, 193, 448, 449, 512}),
        (Topology(64, 2, 3), {32, 33, 64, 65, 128, 129, 192, 48, 96}),
        (Topology(8, nodes=100, nodes_per_switch=4), {32, 33, 256, 257, 512, 513, 768, 769, 800}),
        (Topology(1), set()),
    ],
)
def test_every_kind_of_boundary_has_both_sides(topology: Topology, there: set[int]):
    found = list_boundary_counts(topology)
    assert there <= {*found}
    assert found == sorted({*found})
    assert {*list_process_counts(topology)} <= {*found}
    assert all(2 <= count <= topology.cores for count in found)


@given(TOPOLOGIES)
def test_a_ladder_rises_to_all_cores_by_every_power_and_both_sides_of_every_boundary(topology: Topology):
    found = list_process_counts(topology)
    assert (found, topology.cores in found) == (sorted(set(found)), topology.cores >= 2)
    node = topology.cores_per_node
    boundaries = [node // topology.sockets_per_node, node, node * topology.nodes_per_switch]
    wanted = {2**exponent for exponent in range(1, 20)}
    wanted |= {count + more for count in boundaries for more in (0, 1)}
    wanted.add(topology.cores)
    assert set(found) == {count for count in wanted if 2 <= count <= topology.cores}


@pytest.mark.parametrize(
    ("key", "value", "least"),
    [
        *(("cores_per_node", 0, 1), ("sockets_per_node", 0, 1), ("nodes", -1, 1), ("nodes_per_switch", -1, 0)),
        *(("nodes", value, 1) for value in (True, 2.0, float("nan"), "2", None)),
    ],
)
def test_a_topology_that_cannot_be_is_refused_in_one_line(key, value, least):
    line = f"Topology: {key}: {value!r}: write a whole number, {least} or more"
    with pytest.raises(ValueError, match=f"^{line}$"):
        Topology(**{"cores_per_node": 8, key: value})


# Layouts: how many of the processes share a node.


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        (Topology(1), ""),
        (Topology(4), "2x2 4x4"),
        (Topology(1, nodes=4), "2x1 4x1"),
        (Topology(2, nodes=4), "2x1 2x2 3x2 4x1 4x2 8x2"),
        (Topology(4, nodes=2), "2x1 2x2 4x2 4x4 5x4 8x4"),
        (Topology(3, nodes=3), "2x1 2x2 3x1 3x3 4x3 8x3 9x3"),
        (Topology(2, nodes=6, nodes_per_switch=3), "2x1 2x2 3x1 3x2 4x1 4x2 6x1 6x2 7x2 8x2 12x2"),
    ],
)
def test_known_layouts(topology: Topology, expected: str):
    assert " ".join(map(str, layouts(topology))) == expected


@given(TOPOLOGIES)
def test_layouts_fit_and_full_ones_are_the_ladder(topology: Topology):
    found = layouts(topology)
    assert found == sorted(set(found))
    full = [layout for layout in found if layout.per_node == min(layout.processes, topology.cores_per_node)]
    assert {layout.processes for layout in full} >= set(list_process_counts(topology))
    for layout in found:
        assert 1 <= layout.per_node <= min(layout.processes, topology.cores_per_node)
        assert len(layout.ranks_per_host) <= topology.nodes


@given(st.builds(Layout, st.integers(1, 5000), st.integers(1, 300)))
def test_hosts_are_filled_one_after_the_other(layout: Layout):
    ranks = layout.ranks_per_host
    assert sum(ranks) == layout.processes
    assert all(number == layout.per_node for number in ranks[:-1])
    assert 1 <= ranks[-1] <= layout.per_node


def test_kernels_are_placed_ever_more_densely():
    assert " ".join(map(str, list_kernel_layouts(2, 1))) == "1x1 2x2"
    found = list_kernel_layouts(16, 8)
    assert {Layout(1, 1), Layout(8, 1), Layout(8, 2), Layout(16, 2), Layout(64, 8)} <= {*found}
    assert max(found) == Layout(128, 16)


def test_kernels_have_two_ranks_a_core_where_it_has_hardware_threads():
    assert " ".join(map(str, list_kernel_layouts(2, 1, 2))) == "1x1 2x2 4x4"
    more = {*list_kernel_layouts(16, 8, 4)} - {*list_kernel_layouts(16, 8)}
    assert more == {Layout(32 * nodes, 32) for nodes in (1, 2, 4, 8)}
