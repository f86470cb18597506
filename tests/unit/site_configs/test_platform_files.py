"""The files of simulated machines: each number has a source, and nobody takes a model for a machine."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from site_configs.simgrid import PLATFORMS, hosts_of

FILES = sorted(PLATFORMS.glob("*.xml"))
#: What the head of a file must give a source for.
FACTS = ("topology", "bw", "lat", "hosts", "loopback")
SOURCE = re.compile(
    r"\[(20\d\d, (section|table|test) \d|Taboada et al., section \d|chosen|rate of the standard)"
)
MOST = 1024  #: processes that can be asked for


def head(path: Path) -> str:
    """The comment of a platform file."""
    found = re.search(r"<!--(.*?)-->", path.read_text(), re.DOTALL)
    assert found, path
    return found[1]


def facts(path: Path) -> dict[str, str]:
    """What the head says of each fact, with its source."""
    parts = re.split(rf"^ +({'|'.join(FACTS)})  +", head(path), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_there_are_the_papers_machines_and_a_modern_one():
    assert [path.stem for path in FILES] == ["ethernet", "fattree", "hypercube", "myrinet", "torus"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_that_it_is_a_model(path: Path):
    assert "A model of" in head(path)
    assert re.search(r"Not a validated|Of no particular machine", head(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_number_has_a_source(path: Path):
    found = facts(path)
    assert set(found) == set(FACTS)
    for fact, text in found.items():
        assert SOURCE.search(text), f"{path.name}: {fact}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_one_cluster_in_plain_link_numbers(path: Path):
    root = ElementTree.parse(path).getroot()
    factors = {prop.attrib["id"]: prop.attrib["value"] for prop in root.iter("prop")}
    assert factors["smpi/lat-factor"] == factors["smpi/bw-factor"] == "0:1"
    assert len(list(root.iter("cluster"))) == 1
    assert next(root.iter("cluster")).attrib["id"] == path.stem


@pytest.mark.parametrize(
    ("name", "per_node"), [("torus", 1), ("hypercube", 2), ("myrinet", 2), ("ethernet", 2), ("fattree", 4)]
)
def test_a_machine_has_room_for_1024_processes(name: str, per_node: int):
    hosts = hosts_of(PLATFORMS / f"{name}.xml")
    assert (len(set(hosts)) * per_node, hosts[0]) == (MOST, "n0")


@pytest.mark.parametrize("name", ["torus", "hypercube", "fattree"])
def test_the_sides_of_a_network_have_as_many_places_as_hosts(name: str):
    cluster = next(ElementTree.parse(PLATFORMS / f"{name}.xml").getroot().iter("cluster"))
    sides = cluster.attrib["topo_parameters"]
    if name == "fattree":
        sides = sides.split(";")[1]
    product = 1
    for side in sides.split(","):
        assert int(side) > 1  # SimGrid 3.32 crashes on a torus with a side of 1
        product *= int(side)
    assert product == len(hosts_of(PLATFORMS / f"{name}.xml"))


def test_the_readme_names_every_file():
    text = (PLATFORMS / "README.md").read_text()
    assert all(f"`{path.name}`" in text for path in FILES)


def test_a_platform_without_a_cluster_is_named(tmp_path: Path):
    file = tmp_path / "none.xml"
    file.write_text('<platform version="4.1"><zone id="top" routing="Full"/></platform>')
    with pytest.raises(ValueError, match=r"none\.xml: has no cluster in its zone"):
        hosts_of(file)
