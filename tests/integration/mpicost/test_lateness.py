"""What a launch tells of who was held up, on real MPIs and in simulated time."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postprocess.judging.lateness import find_late_places, watch_launch
from postprocess.parsers.mpicost import read_launch
from postprocess.session.nightly.nodes import describe_late_place
from suite.benchmark.simulator import SIMULATE
from tests.support.faults import Declared, plants
from tests.support.mpicost import FAMILIES, library, preload, program
from tests.support.simgrid import simulated

CASES = ("--routine", "barrier,allreduce_sum:8", "--trials", "5", "--cache", "warm")
HOSTS = 128
PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="top" routing="Floyd">
{}
</zone></platform>
"""
HOST = '<host id="n{0}" speed="1Gf"/>'
LINK = '<link id="l{0}" bandwidth="{1}" latency="{2}"/>'
ROUTE = '<route src="{1}" dst="{2}"><link_ctn id="l{0}"/></route>'
USUAL, WIDE = ("12.5GBps", "0.5us"), ("200GBps", "0.5us")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_rank_that_is_held_up_tells_how_much_it_lost(family: str, tmp_path: Path) -> None:
    """Other load only adds to what is planted: 3 ms of every 10 are lost at least."""
    program(family).measure(2, tmp_path / "out", *CASES, wrapper=preload(library(family, "held_rank")))
    told = read_launch(tmp_path / "out").lateness
    assert told is not None and len(told.ranks) == 2
    held = told.ranks[1]
    assert held.lost >= 0.2 * held.span
    assert held.longest >= 0.0029
    assert held.detours


@pytest.mark.parametrize("family", FAMILIES)
def test_a_launch_tells_what_the_kernel_counts(family: str, tmp_path: Path) -> None:
    program(family).measure(2, tmp_path / "out", *CASES)
    told = read_launch(tmp_path / "out").lateness
    assert told is not None
    for rank in told.ranks:
        if rank.waited is not None and Path("/proc/self/schedstat").exists():
            assert rank.waited <= max(told.watched, rank.span) * 1.01 + 0.01  # a rank may begin before rank 0
        assert (rank.interrupts is not None) is Path("/proc/interrupts").exists()
    assert told.reach == ()  # of one host


def test_interrupts_of_some_cpus_are_added_up(tmp_path: Path) -> None:
    file = tmp_path / "interrupts"
    file.write_text("      CPU0 CPU2 CPU3\n 24:  1  10  100  chip edge\nLOC:  2  20  200 local\nERR:  7\n")
    driver = program("mpich").build / "lateness_driver"

    def count(cpus: str) -> str:
        return subprocess.run([driver, file, cpus], capture_output=True, text=True, check=True).stdout.strip()

    assert [count(cpus) for cpus in ("0", "2-3", "1", "0-3")] == ["3", "330", "0", "333"]
    assert subprocess.run([driver, tmp_path / "none", "0"], check=False).returncode == 1


def name_late_nodes(
    folder: Path, slow: dict[int, tuple[str, str]], hosts: int = HOSTS, per_switch: int = HOSTS, known: int = 0
) -> Sequence[str]:
    """Simulate a launch on hosts of which some have another link, and name those that are late.

    :param known: nodes per switch, as the site tells them
    """
    numbers, switches = range(hosts), range(-(-hosts // per_switch))
    parts = [HOST.format(number) for number in numbers]
    parts += [f'<router id="{name}"/>' for name in ("core", *(f"s{number}" for number in switches))]
    parts += [LINK.format(number, *slow.get(number, USUAL)) for number in numbers]
    parts += [LINK.format(f"s{number}", *WIDE) for number in switches]
    parts += [ROUTE.format(number, f"n{number}", f"s{number // per_switch}") for number in numbers]
    parts += [ROUTE.format(f"s{number}", f"s{number}", "core") for number in switches]
    (folder / "platform.xml").write_text(PLATFORM.format("\n".join(parts)))
    (folder / "hosts").write_text("".join(f"n{number}\n" for number in numbers))
    words = [simulated().mpi.mpiexec[0], *SIMULATE, "-platform", folder / "platform.xml"]
    words += ["-hostfile", folder / "hosts", "-n", str(hosts), simulated().build / "mpicost", "--cache", "warm"]
    words += ["--trials", "2", "--rounds", "1", "--routine", "barrier", "--output", folder / "out"]
    subprocess.run(words, check=True, capture_output=True)
    records = read_launch(folder / "out")
    assert records.lateness is not None and records.lateness.ranks == ()
    launch = SimpleNamespace(exact=True, nodes_per_switch=known)
    run: Any = SimpleNamespace(run=records.run, lateness=records.lateness, launch=launch)
    watches = [*watch_launch(run)]
    return [describe_late_place(late, [run], watches) for late in find_late_places(watches)]


@plants("environment", "a simulated node of 128 whose link has six times the latency", "mpicost", "", 0,
        "note: n77 is late: in 1 of 1 launches its messages take 3.48 times as long")  # fmt: skip
def test_a_simulated_node_with_a_slow_link_is_named(tmp_path: Path, declared: Declared) -> None:
    lines = name_late_nodes(tmp_path, {77: ("12.5GBps", "3us")})
    declared.check((), 0, [f"note: {line}" for line in lines])
    assert len(lines) == 1


def test_a_simulated_node_with_a_tenth_of_the_bandwidth_is_named(tmp_path: Path) -> None:
    (line,) = name_late_nodes(tmp_path, {5: ("1.25GBps", "0.5us")})
    assert line.startswith("n5 is late: ")


def test_a_healthy_simulated_machine_names_nobody(tmp_path: Path) -> None:
    assert name_late_nodes(tmp_path, {}) == []


SLOW = ("12.5GBps", "3us")


@pytest.mark.parametrize("hosts", [17, 18, 33, 35, 48])
def test_a_healthy_node_that_is_alone_behind_its_switch_is_not_named(hosts: int, tmp_path: Path) -> None:
    """Who does not know of switches cannot tell it from a node with a slow link."""
    assert name_late_nodes(tmp_path, {}, hosts, 16, 16) == []
    if hosts == 17:
        (line,) = name_late_nodes(tmp_path, {}, hosts, 16)
        assert line.startswith("n16 is late: ")


@pytest.mark.parametrize(
    ("hosts", "late"), [(17, 16), (33, 32), (17, 3), (18, 16), (20, 18), (33, 20), (48, 5)]
)
def test_behind_whatever_switch_a_slow_link_is_named(hosts: int, late: int, tmp_path: Path) -> None:
    (line,) = name_late_nodes(tmp_path, {late: SLOW}, hosts, 16, 16)
    print(line)
    assert line.startswith(f"n{late} is late: ")
