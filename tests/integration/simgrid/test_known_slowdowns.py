"""Changes of a simulated machine with known answers: which cases must be called slow, and which must not.

With exact references every difference shows. What a person wants to know of a noisy machine is tried
with noise of a stated kind over the exact times: they are multiplied by exp(0.5% z), z standard normal.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from postprocess.model.case import Case
from postprocess.model.verdict import Verdict
from postprocess.stats.band import estimate_exact_references, estimate_references
from site_configs.simgrid import PLATFORMS
from tests.support.faults import Declared, each_of, plants
from tests.support.paths import SUITE
from tests.support.simgrid import build_for_simgrid, simulated
from tests.support.simulated_machine import PROCESSES, judge, machine_with, measure, switch, verdicts

TORUS = PLATFORMS / "torus.xml"
LARGE = {"bcast 1000000", "allreduce_sum 1000000", *(f"pingpong {peer} 1000000" for peer in (1, 3, 8))}
SMALL = {"barrier", "bcast 8", "allreduce_sum 8", "alltoall 8"}
SMALL |= {f"pingpong {peer} 8" for peer in (1, 3, 8)}
PINGPONG = {each for each in SMALL | LARGE if each.startswith("pingpong")}

SLOWER_LINKS = ('lat="1.8us"', 'lat="2.16us"')
NARROWER_LINKS = ('bw="350MBps"', 'bw="280MBps"')
SIGMA = 0.005  #: of the noise, on the logarithm
SEED = 2003
CALIBRATION = 20  #: launches
NIGHTS = 20

Times = dict[Case, float]


def of_verdict(wanted: str, found: dict[str, str]) -> set[str]:
    """The cases that got this verdict."""
    return {name for name, verdict in found.items() if verdict == wanted}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Times:
    times = measure(tmp_path_factory.mktemp("healthy"), TORUS)
    assert len(times) == len(SMALL | LARGE)
    return times


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Times]:
    """Times on a torus with other links."""
    found = {}
    for name, links in (("slower", SLOWER_LINKS), ("narrower", NARROWER_LINKS)):
        directory = tmp_path_factory.mktemp(name)
        found[name] = measure(directory, machine_with(directory, "torus", links))
    return found


def exactly(healthy: Times, times: Times, declared: Declared | None = None) -> dict[str, str]:
    """Verdicts against exact references; what is slow is held against what was declared."""
    references = estimate_exact_references({case: [time] for case, time in healthy.items()})
    said = judge(references, times)
    if declared:
        slow = [result for result in said.values() if result.verdict == Verdict.REGRESSED]
        assert slow
        for each in slow:
            declared.check_case(each.verdict, each.reason)
    return {name: each.verdict for name, each in said.items()}


def test_the_same_machine_gives_the_same_times_to_the_last_digit(healthy: Times, tmp_path: Path):
    assert measure(tmp_path, TORUS) == healthy


def test_the_order_of_the_cases_is_no_difference(healthy: Times, tmp_path: Path):
    found = exactly(healthy, measure(tmp_path, TORUS, seed=7))
    assert of_verdict("pass", found) == SMALL | LARGE


#: Links, and how many times as slow small and large messages are by them, from and to.
LINKS = {
    ("slower", (1.18, 1.2), (1, 1.001)): plants(
        "speed", "a fifth more latency of all links", "a simulated torus", "regressed", 1,
        " times as slow as its reference …, above the limit "),
    ("narrower", (1, 1.02), (1.249, 1.25)): plants(
        "speed", "a fifth less bandwidth of all links", "a simulated torus", "regressed", 1,
        " times as slow as its reference …, above the limit "),
}  # fmt: skip


@pytest.mark.parametrize("links", each_of(LINKS), ids=lambda links: links[0])
def test_other_links_slow_everything_down_and_what_they_concern_by_as_much(
    healthy: Times, changed: dict[str, Times], links, declared: Declared
):
    name, small, large = links
    assert of_verdict("regressed", exactly(healthy, changed[name], declared)) == SMALL | LARGE
    for case, time in changed[name].items():
        low, high = small if case.bytes <= 8 else large
        assert low < time / healthy[case] < high


@plants("speed", "one cable of 16 with a tenth of its bandwidth", "a simulated switch", "regressed", 1,
        " times as slow as its reference …, above the limit ")  # fmt: skip
def test_one_bad_cable_slows_what_goes_over_it(tmp_path: Path, declared: Declared):
    """It is that of rank 3. A ping-pong of other ranks does not know of it."""
    base = measure(tmp_path / "healthy", switch(tmp_path))
    found = exactly(base, measure(tmp_path / "bad", switch(tmp_path, slow=3)), declared)
    slow, untouched = of_verdict("regressed", found), of_verdict("pass", found)
    assert {"pingpong 3 8", "pingpong 3 1000000", "bcast 1000000"} <= slow
    assert {"allreduce_sum 8", "allreduce_sum 1000000", "barrier", "alltoall 8"} <= slow
    assert untouched == {f"pingpong {peer} {size}" for peer in (1, 8) for size in (8, 1_000_000)}


def test_another_place_that_is_as_good_is_no_difference(healthy: Times, tmp_path: Path):
    """The next plane of the torus, which looks the same from inside."""
    moved = measure(tmp_path, TORUS, hosts=[f"n{64 + rank}" for rank in range(PROCESSES)])
    assert of_verdict("pass", exactly(healthy, moved)) == SMALL | LARGE


@plants("speed", "processes strewn over the machine", "a simulated torus", "regressed", 1,
        " times as slow as its reference …, above the limit ")  # fmt: skip
def test_processes_strewn_over_the_torus_are_slow_with_small_messages(healthy, tmp_path, declared):
    strewn = measure(tmp_path, TORUS, hosts=[f"n{61 * rank}" for rank in range(PROCESSES)])
    found = exactly(healthy, strewn, declared)
    assert of_verdict("regressed", found) >= SMALL | PINGPONG
    assert of_verdict("fast", found) == {"allreduce_sum 1000000"}  # its messages meet no more


@plants("speed", "the algorithms of another MPI", "collectives on a simulated torus", "regressed", 1,
        " times as slow as its reference …, above the limit ")  # fmt: skip
def test_another_selector_changes_collectives_and_no_ping_pong(healthy: Times, tmp_path, declared):
    found = exactly(healthy, measure(tmp_path, TORUS, name="mvapich2"), declared)
    assert of_verdict("regressed", found) == {"alltoall 8", "allreduce_sum 8", "barrier"}
    assert of_verdict("fast", found) == {"allreduce_sum 1000000", "bcast 1000000"}
    assert of_verdict("pass", found) == PINGPONG | {"bcast 8"}


@plants("speed", "one more barrier in a broadcast", "mpicost on a simulated torus", "regressed", 1,
        " times as slow as its reference …, above the limit ")  # fmt: skip
def test_one_more_barrier_in_a_routine_is_seen_in_that_routine(healthy: Times, tmp_path, declared):
    program = with_barrier_in_bcast(tmp_path)
    found = exactly(healthy, measure(tmp_path, TORUS, program=program), declared)
    assert of_verdict("regressed", found) == {"bcast 8", "bcast 1000000"}
    assert of_verdict("pass", found) == (SMALL | LARGE) - {"bcast 8", "bcast 1000000"}


def with_barrier_in_bcast(directory: Path) -> Path:
    """mpicost with a change of its communication."""
    copy = directory / "suite"
    shutil.copytree(SUITE, copy)
    routines = copy / "src" / "routines.c"
    text = routines.read_text()
    call = "    MPI_Bcast("
    assert text.count(call) == 1
    routines.write_text(text.replace(call, f"    MPI_Barrier(x->comm);\n{call}"))
    build_for_simgrid(directory / "build", simulated().mpi.mpicc, copy)
    return directory / "build" / "mpicost"


def noisy(times: Times, draws: np.random.Generator, launches: int) -> dict[Case, list[float]]:
    """So many launches of a machine with noise."""
    return {case: list(times[case] * np.exp(SIGMA * draws.standard_normal(launches))) for case in sorted(times)}


def nights(healthy: Times, times: Times) -> list[dict[str, str]]:
    """Verdicts of some nights on a noisy machine that costs ``times``, and was calibrated when healthy."""
    draws = np.random.default_rng(SEED)
    references = estimate_references(noisy(healthy, draws, CALIBRATION))
    found = []
    for _ in range(NIGHTS):
        tonight = {case: values[0] for case, values in noisy(times, draws, 1).items()}
        found.append(verdicts(references, tonight))
    return found


def test_noise_alone_is_no_regression(healthy: Times):
    assert all(of_verdict("pass", night) == SMALL | LARGE for night in nights(healthy, healthy))


def test_a_tenth_slower_is_a_regression_in_spite_of_noise(healthy: Times):
    slow = {case: 1.1 * time for case, time in healthy.items()}
    assert all(of_verdict("regressed", night) == SMALL | LARGE for night in nights(healthy, slow))


@pytest.mark.parametrize(("name", "slow", "well"), [("slower", SMALL, LARGE), ("narrower", LARGE, SMALL)])
def test_under_noise_latency_condemns_the_small_and_bandwidth_the_large(healthy, changed, name, slow, well):
    for night in nights(healthy, changed[name]):
        assert of_verdict("regressed", night) == slow
        assert of_verdict("pass", night) == well
