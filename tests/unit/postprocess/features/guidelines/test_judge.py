"""Guidelines: the catalogue, what is called violated, and what a setting is said to do."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from postprocess.features.guidelines import command, judge
from postprocess.features.guidelines.text import (
    GuidelineResult,
    build_guideline_document,
    format_ratio,
    list_caveats,
)
from postprocess.model.routines import guidelines
from postprocess.model.routines.mpicost import BARRIER, find_routine
from postprocess.model.session import Session
from postprocess.report.document import Tone

PLACE = judge.Place("local:cpu", "openmpi-5_0_11", "4x4")
BCAST, SENDS = guidelines.Measured("bcast", 8), guidelines.Measured("bcast_as_sends", 8)
BROKEN = guidelines.Guideline(guidelines.Rule.COMPOSITION, BCAST, SENDS)


def launches(factor: float, spread: float = 0.01, count: int = 8, seed: int = 3):
    """Launches in which the operation takes ``factor`` times its composition; each has a speed of its own."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        speed, own = 1e-6 * random.lognormal(0, 0.3), random.lognormal(0, spread)
        times = {BCAST: speed * factor * own, SENDS: speed}
        found.append(judge.LaunchTimes(PLACE, number + 1, "", "Open MPI v5.0.11", False, times))
    return found


@pytest.mark.parametrize(
    ("factor", "standing"),
    [
        (1.3, judge.Standing.VIOLATED),
        (1.0, judge.Standing.HOLDS),
        (0.5, judge.Standing.HOLDS),
        (1.02, judge.Standing.HOLDS),  # proven slower, and by too little to be a violation
    ],
)
def test_what_is_plain_is_said_though_launches_differ_more(factor: float, standing: judge.Standing) -> None:
    (found,) = judge.judge_guidelines(launches(factor))
    assert (found.guideline, found.standing) == (BROKEN, standing)
    assert found.ratio == pytest.approx(factor, rel=0.02)
    low, high = found.limits or (0, 0)
    assert low < factor * 1.02 and factor * 0.98 < high


def test_too_few_launches_prove_nothing_and_noise_leaves_it_open() -> None:
    assert [guideline.standing for guideline in judge.judge_guidelines(launches(2, count=5))] == [
        judge.Standing.UNJUDGED
    ]
    assert [guideline.standing for guideline in judge.judge_guidelines(launches(1.1, spread=0.4))] == [
        judge.Standing.OPEN
    ]


def test_of_many_sound_guidelines_hardly_one_is_accused() -> None:
    """All are corrected together: at the edge of being the same, one in twenty would be accused otherwise."""
    random = np.random.default_rng(5)
    accused = 0
    for _ in range(20):
        sizes = [8 * 2**power for power in range(20)]
        found = []
        for number in range(8):
            times = {guidelines.Measured("gather", size): random.lognormal(0, 0.2) for size in sizes}
            times |= {guidelines.Measured("gather_as_sends", size): random.lognormal(0, 0.2) for size in sizes}
            found.append(judge.LaunchTimes(PLACE, number + 1, "", "", False, times))
        composed = [
            guideline
            for guideline in judge.judge_guidelines(found)
            if guideline.guideline.rule is guidelines.Rule.COMPOSITION
        ]
        assert len(composed) == 20
        accused += bool(judge.select_violated(composed))
    assert accused <= 3


def test_simulated_time_needs_one_launch() -> None:
    (once,) = launches(1.2, count=1)
    (found,) = judge.judge_guidelines([replace(once, exact=True)])
    assert (found.standing, found.launches) == (judge.Standing.VIOLATED, 1)
    (even,) = launches(1.0, spread=0, count=1)
    assert [guideline.standing for guideline in judge.judge_guidelines([replace(even, exact=True)])] == [
        judge.Standing.HOLDS
    ]


def test_a_launch_that_lacks_a_side_does_not_count() -> None:
    whole = launches(1.3)
    half = replace(whole[0], number=9, times={BCAST: 1.0})
    (found,) = judge.judge_guidelines([*whole, half])
    assert found.launches == len(whole)


def test_sizes_are_held_against_each_other() -> None:
    """More bytes in less time, and parts in less time than the whole."""
    small, large = guidelines.Measured("bcast", 8), guidelines.Measured("bcast", 32)
    assert guidelines.list_guidelines([small, large]) == [
        guidelines.Guideline(guidelines.Rule.MONOTONY, small, large),
        guidelines.Guideline(guidelines.Rule.SPLITTING, large, small, 4),
    ]
    growing = [
        replace(each, times={small: 1e-6 * (1 + 0.001 * each.number), large: 5e-6}) for each in launches(1)
    ]
    split = next(guideline for guideline in judge.judge_guidelines(growing) if guideline.guideline.times == 4)
    assert (split.standing, split.guideline.rule) == (judge.Standing.VIOLATED, guidelines.Rule.SPLITTING)
    assert judge.list_losers([split]) == {PLACE: [large]}


def test_the_catalogue_has_every_composition_and_a_barrier() -> None:
    table = guidelines.list_table()
    found = guidelines.list_guidelines(
        [guidelines.Measured(name, size) for name in table for size in table[name]]
    )
    composed = {
        guideline.general.routine for guideline in found if guideline.rule is guidelines.Rule.COMPOSITION
    }
    assert composed == {name for name in table if find_routine(name).replaces}
    barrier = guidelines.Guideline(
        guidelines.Rule.SPECIALISATION, guidelines.Measured(BARRIER, 0), guidelines.Measured("allreduce_sum", 8)
    )
    assert barrier in found
    assert {guideline.special.routine for guideline in found} >= set(guidelines.list_operations())
    assert all(find_routine(name).has_size(size) for name in table for size in table[name])


LIBRARIES = {
    "Open MPI v5.0.11, package": "OMPI_MCA_coll_tuned_reduce_algorithm",
    "MPICH Version:      5.0.2": "MPIR_CVAR_REDUCE_INTRA_ALGORITHM",
    "Intel(R) MPI Library 2021.19 for Linux": "I_MPI_ADJUST_REDUCE",
    "SMPI Version 3.32": "SMPI_STAND_INS",
}


@pytest.mark.parametrize(("library", "variable"), LIBRARIES.items())
def test_each_mpi_has_its_own_settings(library: str, variable: str) -> None:
    found = command.list_overrides(library, "reduce_sum")
    assert len({override.name for override in found}) == len(found) > 2
    assert all(variable in override.variables for override in found)
    for routine in command.OPERATIONS:
        assert find_routine(routine).name == routine
    assert command.list_overrides(library, "rightshift") == []
    assert command.list_overrides("Fine MPI 3", "reduce_sum") == []


def test_settings_of_several_operations_are_in_force_together() -> None:
    one, other = (command.list_overrides("SMPI Version 3.32", name)[0] for name in ("bcast", "gather"))
    words = command.merge_overrides([one, other])["SMPI_STAND_INS"].split()
    assert [word.rpartition(":")[0] for word in words] == ["--cfg=smpi/bcast", "--cfg=smpi/gather"]


def effect(factor: float, spread: float = 0.02, rounds: int = 8) -> judge.OverrideSeries:
    gains = np.random.default_rng(1).normal(math.log(factor), spread, rounds)
    return judge.OverrideSeries(PLACE, BCAST, "bcast chain", {"NAME": "2"}, 9, tuple(gains))


def test_a_setting_is_advised_only_if_it_is_proven_to_help() -> None:
    none = replace(effect(1), setting="", variables={}, gains=())
    found = judge.judge_overrides([effect(2.0), effect(1.0), none, effect(1.2, spread=0.5)], exact=False)
    assert [override.helps for override in found] == [True, False, False, False]
    assert found[0].ratio == pytest.approx(0.5, rel=0.03)
    low, high = found[0].limits or (0, 0)
    assert low <= found[0].ratio <= high < 1


def test_the_best_setting_is_chosen_by_the_same_rounds() -> None:
    """The slow second round slows both; a setting that only looks good in a fast round does not win."""
    good, bad = command.Override("good", {"A": "1"}), command.Override("bad", {"A": "2"})

    def told(number: int, force: list[command.Override], time: float):
        return number, force, judge.LaunchTimes(PLACE, number, "", "", False, {BCAST: time})

    looked = [
        *(told(0, [], 10.0), told(0, [good], 8.0), told(0, [bad], 9.9)),
        *(told(1, [], 20.0), told(1, [good], 16.0), told(1, [bad], 19.8)),
    ]
    assert command.list_gains(BCAST, good, looked) == pytest.approx([math.log(1.25)] * 2)
    assert command.choose_best(BCAST, looked, [bad, good]) is good
    assert command.choose_best(BCAST, looked, [bad]) is None
    assert command.choose_best(SENDS, looked, [good]) is None


def test_two_processes_are_said_to_tell_little() -> None:
    (line,) = list_caveats([replace(PLACE, layout="2x2")])
    assert "with 2 processes" in line and "not algorithms" in line
    assert list_caveats([replace(PLACE, layout="4x1")]) == []


def test_a_violated_guideline_is_no_page_that_is_called_good(tmp_path: Path) -> None:
    """Though it is no failure of the session. What else the pages say is among the golden outputs."""
    session = Session(tmp_path, "guidelines", "local", ["./plumbline"], False)
    tones = [
        build_guideline_document(
            session, GuidelineResult(tuple(judge.judge_guidelines(launches(factor))), ())
        ).tone
        for factor in (1.0, 1.3)
    ]
    assert tones == [Tone.GOOD, Tone.BAD]


def test_a_ratio_of_simulated_time_has_no_interval() -> None:
    exact = judge.judge_guidelines([replace(launches(1.2, spread=0, count=1)[0], exact=True)])
    assert format_ratio(exact[0].ratio, exact[0].limits) == "1.20"
