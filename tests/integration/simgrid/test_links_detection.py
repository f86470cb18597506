"""The doctor on simulated machines whose bad cables are known: what it must name, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from site_configs.simgrid import PLATFORMS
from tests.support.faults import Declared, plants
from tests.support.plumbline_runner import Ended, Workshop
from tests.support.simulated_networks import direct, groups, star, write_partitions, write_site

MACHINES = {
    "healthy": star(8, {}),
    "node": star(8, {"c3": 0.25}),
    "link": direct(8, {"d2-5": 0.25}),
    "path": groups(16, 2, {"g1-2": 0.1}),
}


#: Nodes of a fat tree with 16 a switch: one alone on the last, half of it, one alone behind two full ones.
PARTLY_FILLED = (17, 24, 33)


def measure(workshop: Workshop, site: Path, *words: str) -> tuple[Ended, dict[str, Any]]:
    """All machines of a site in one session, and its JSON page."""
    before = list(workshop.home.glob("sessions/*"))
    ended = workshop.run("links", "--site", str(site), *words)
    pages = [page for page in workshop.home.glob("sessions/*/links.json") if page.parent not in before]
    assert len(pages) == 1, ended.output + ended.errors
    return ended, json.loads(pages[0].read_text())


@pytest.fixture(scope="module")
def sweep(workshop: Workshop) -> tuple[Ended, dict[str, Any]]:
    """All machines in one session."""
    return measure(workshop, write_site(workshop.home, MACHINES))


def found(page: dict[str, Any], partition: str) -> list[tuple[str, list[list[str]]]]:
    """Kind and nodes of everything that is named on a machine."""
    (each,) = (each for each in page["sweeps"] if each["partition"] == f"drawn:{partition}")
    return [(one["kind"], one["who"]) for one in each["findings"]]


def test_a_healthy_machine_has_no_findings(sweep):
    assert found(sweep[1], "healthy") == []


@plants("speed", "a node whose cable has a quarter of its bandwidth", "a simulated star", "", 1,
        "node n3")  # fmt: skip
def test_a_node_with_a_bad_cable_is_one_finding(sweep, declared: Declared):
    assert found(sweep[1], "node") == [("node", [["n3"]])]
    declared.check((), sweep[0].status, [sweep[0].output])


@plants("speed", "a cable between two nodes with a quarter of its bandwidth", "a simulated network", "", 1,
        "link n2-n5")  # fmt: skip
def test_a_bad_cable_between_two_nodes_is_that_link(sweep, declared: Declared):
    assert found(sweep[1], "link") == [("link", [["n2", "n5"]])]
    declared.check((), sweep[0].status, [sweep[0].output])


@plants("speed", "a cable between two groups with a tenth of its bandwidth", "a simulated network", "", 1,
        "path ")  # fmt: skip
def test_a_bad_cable_between_two_groups_is_the_path_that_their_pairs_share(sweep, declared):
    declared.check((), sweep[0].status, [sweep[0].output])
    ((kind, who),) = found(sweep[1], "path")
    assert kind == "path"
    assert sorted(map(sorted, who)) == [[f"n{a}", f"n{b}"] for a in (2, 3) for b in (4, 5)]


def test_the_session_says_so(sweep):
    ended, page = sweep
    assert (ended.status, page["failures"]) == (1, [])
    assert "heat maps:" in ended.said


def test_nodes_of_partly_filled_switches_are_healthy(tmp_path: Path, workshop: Workshop):
    """The synchroniser releases their ranks one after the other; that is in no pair's time."""
    file = PLATFORMS / "fattree.xml"
    site = write_partitions(tmp_path, {f"of{nodes}": (nodes, file) for nodes in PARTLY_FILLED})
    ended, page = measure(workshop, site, "--trials", "2", "--nodes-per-switch", "16")
    for nodes in PARTLY_FILLED:
        assert found(page, f"of{nodes}") == []
    assert (ended.status, page["failures"]) == (0, [])
