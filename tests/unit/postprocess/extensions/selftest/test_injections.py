"""Plants of a self-test: which cases they slow, the settings of the delay library, and the night of each."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.extensions.selftest import command
from postprocess.extensions.selftest.data import schedule_nights
from postprocess.judging.common_cause import COMMON_CASES
from postprocess.model.routines.mpicost import CONTROLS, ROUTINES
from postprocess.session.lifecycle import injections
from postprocess.stats.band import LARGE_BYTES
from tests.support.factories.launch import case as a_case
from tests.support.factories.selftest import BEGUN, KEYS, MPIS, SIZES, a_bench, quick
from tests.support.faults import Declared, plants
from tests.support.plumbline_runner import ROOT

CANNOT = {"tournament"}  # of ./plumbline links, which holds nothing against references


def test_every_routine_of_mpicost_can_be_delayed():
    """A new routine must be entered, or nothing of it would be a target. Controls call no MPI."""
    source = (ROOT / "suite" / "src" / "routines.c").read_text()
    routines = re.findall(r'^    \{"(\w+)", ', source, re.M)
    assert set(SIZES) == set(command.QUICK) < set(routines)
    composed = {routine.name for routine in ROUTINES if routine.on_request}
    cannot = CANNOT | composed | set(CONTROLS)
    assert {name for name in routines if not injections.list_mpi_functions(name)} == cannot
    for name in ("allreduce_max", "allreduce_sum"):
        assert injections.list_mpi_functions(name) == ("MPI_Allreduce",)


def test_a_plant_slows_what_calls_the_same_function_with_messages_of_its_sizes():
    everything = [*quick(), a_case("allreduce_max", 8, environment="a-1")]

    def slowed(*planted: str) -> set[tuple[str, str, int]]:
        found = filter(injections.Injection(*planted).slows, everything)
        return {(case.environment, case.routine, case.bytes) for case in found}

    sums = {("a-1", "allreduce_sum", 8), ("a-1", "allreduce_sum", 1_000_000)}
    assert slowed("a-1", "slower-5", "allreduce_sum") == {*sums, ("a-1", "allreduce_max", 8)}
    assert slowed("b-2", "large", "bcast") == {("b-2", "bcast", 10_000), ("b-2", "bcast", 1_000_000)}
    every = {(e.environment, e.routine, e.bytes) for e in everything if e.environment == "c-3"}
    assert slowed("c-3", "everything", "") == every
    assert not injections.Injection("a-1", "everything", "").slows(a_case("control_timer", environment="a-1"))
    assert not injections.Injection("a-1", "everything", "").slows(a_case(environment="a-1", program="osu"))


@pytest.mark.parametrize("name", injections.INJECTION_KINDS)
def test_the_library_is_told_what_is_planted(name: str):
    plant = injections.INJECTION_KINDS[name]
    told = injections.Injection("a-1", name, "" if plant.everything else "bcast").variables(
        Path("/opt/mpicost")
    )
    assert told.pop("LD_PRELOAD") == "/opt/mpicost/lib/libdelay.so"
    numbers = [float(told[f"PLUMBLINE_DELAY_{each}"]) for each in ("FRACTION", "LAUNCHES", "CALLS")]
    assert numbers == [plant.fraction, plant.launches, plant.calls] and plant.fraction > 0
    assert told["PLUMBLINE_DELAY_ROUTINES"] == ("all" if plant.everything else "MPI_Bcast")
    assert told.get("PLUMBLINE_DELAY_LEAST") == (str(LARGE_BYTES) if name == "large" else None)
    assert told.get("PLUMBLINE_DELAY_RANK") == ("1" if name == "one-rank" else None)


def test_of_a_ping_pong_one_rank_is_delayed():
    told = injections.Injection("a-1", "slower-5", "pingpong").variables(Path("/p"))
    assert told["PLUMBLINE_DELAY_RANK"] == "0"
    assert told["PLUMBLINE_DELAY_ROUTINES"] == "MPI_Recv,MPI_Send"


def test_every_environment_of_every_night_has_the_library_and_only_the_planted_one_a_delay():
    bench = a_bench()
    bench.prefixes = {name: Path("/opt") / name for name in MPIS}
    for plantings in ((), (injections.Injection("b-2", "slower-5", "bcast"),)):
        selection = bench.planting(plantings)
        assert selection.choice["planted"] == sorted(MPIS)
        for name, told in selection.set_env.items():
            assert told["LD_PRELOAD"] == f"/opt/{name}/lib/libdelay.so"
            delayed = float(told["PLUMBLINE_DELAY_LAUNCHES"]) > 0
            assert delayed == (bool(plantings) and name == "b-2")


def test_what_is_planted_in_which_words():
    assert injections.list_unknown_injections(["spikes", "x", "slower-5"]) == ["x"]
    # 10 of 50 trials, 5 removed
    assert injections.INJECTION_KINDS["spikes"].intended == pytest.approx(4 * 5 / 45)
    found = [name for name, plant in injections.INJECTION_KINDS.items() if not plant.must_show]
    assert found == ["some-launches"]
    expected = ["allreduce_sum", "alltoall", "bcast", "pingpong"]
    assert injections.list_injectable_routines(quick(), LARGE_BYTES) == expected
    assert "MPI_Barrier" in injections.FUNCTIONS["barrier"]


@pytest.mark.parametrize("environments", [MPIS[:1], MPIS[:2], MPIS, (*MPIS, "d-4")])
@pytest.mark.parametrize("times", [1, 3, 10])
def test_every_plant_comes_as_often_as_asked_and_over_all_mpis(environments, times: int):
    nights = schedule_nights(quick(environments), list(injections.INJECTION_KINDS.values()), times, 7, seed=1)
    assert [night.number for night in nights] == list(range(1, len(nights) + 1))
    assert sum(not night.plantings for night in nights) == 7
    plantings = [injection for night in nights for injection in night.plantings]
    come = Counter(injection.plant for injection in plantings)
    assert come.keys() == injections.INJECTION_KINDS.keys()
    assert all(number >= times for number in come.values())
    assert all(come[name] == times for name in injections.INJECTION_KINDS if name != "everything")
    for night in nights:
        assert len({injection.environment for injection in night.plantings}) == len(night.plantings)
        kinds = {injection.plant for injection in night.plantings}
        assert "everything" not in kinds or kinds == {"everything"}
        routines = [injection.routine for injection in night.plantings if injection.routine]
        assert len(set(routines)) == len(routines)  # each plant has as many as there are environments, or more
    if times == 10:
        where = Counter((injection.plant, injection.environment) for injection in plantings)
        assert min(where[plant, name] for plant in injections.INJECTION_KINDS for name in environments) >= 2
        of = {(injection.plant, injection.routine) for injection in plantings if injection.plant == "slower-10"}
        assert len(of) == len(SIZES)


def test_where_routines_are_too_few_each_comes_as_often_as_the_others():
    cases = [case for case in quick() if case.routine in ("bcast", "alltoall")]
    nights = schedule_nights(cases, [injections.INJECTION_KINDS["slower-10"]], 12, 0, seed=1)
    for night in nights:
        assert {injection.routine for injection in night.plantings} == {"bcast", "alltoall"}
    come = Counter(injection.routine for night in nights for injection in night.plantings)
    assert come == {"bcast": 6, "alltoall": 6}


def test_all_plants_of_a_night_are_too_few_for_one_cause():
    """Else none of a night's cases would be measured again, and the night would be another than at a site."""
    cases = quick()
    for night in schedule_nights(cases, list(injections.INJECTION_KINDS.values()), 10, 0, seed=5):
        if {injection.plant for injection in night.plantings} == {"everything"}:
            continue
        targets = [case for case in cases for planting in night.plantings if planting.slows(case)]
        assert 0 < len(targets) < COMMON_CASES


def test_the_order_follows_from_the_seed():
    plants = list(injections.INJECTION_KINDS.values())
    one, same, other = (schedule_nights(quick(), plants, 2, 5, seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other


@plants("use", "a plant that slows no case", "`selftest --plants`", "", 2,
        "large: slows no case of a-1")  # fmt: skip
def test_a_plant_that_slows_nothing_or_is_unknown_is_refused(declared: Declared):
    with declared.raises(UsageError):
        command.list_nights(replace(BEGUN, plants=("large",), keys=KEYS[:1]))
    with pytest.raises(UsageError, match="slower-1: is not a plant"):
        command.list_nights(replace(BEGUN, plants=("slower-1",)))
