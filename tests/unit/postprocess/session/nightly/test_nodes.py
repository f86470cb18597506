"""Lines on who is late, and what is remembered of the launches of earlier nights."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from postprocess.model.launch import FinishedLaunch
from postprocess.session.nightly.nodes import (
    FACTS_FILE,
    LATE_FILE,
    describe_late_nodes,
    describe_node_facts,
    describe_odd_nodes,
)
from tests.support.factories.launch import finished
from tests.support.faults import Declared, plants

NODES, LAUNCHES = 4, 20


def probe(random: np.random.Generator, period: float | None) -> dict[str, Any]:
    """A rank of two seconds, beside a daemon of 1 ms with this period or beside nothing."""
    told: dict[str, Any] = {"voluntary": 0, "involuntary": 9, "faults": 9, "quantum": 1e-6, "span": 0.04}
    if period is None:
        return told | {"waited": 0.002, "lost": 0.0, "longest": 0.0}
    times = np.arange(random.uniform(0, period), 0.04, period)
    detours = [[float(when) + 1e-9, 1e-3] for when in times]
    return told | {"waited": 0.2, "lost": 1e-3 * len(detours), "longest": 1e-3, "detours": detours}


def night(session: Path, period: float | None, load: float = 0.0) -> list[FinishedLaunch]:
    """Launches on four nodes, the third of which has the daemon; others wait for this share of the time."""
    session.mkdir(exist_ok=True)
    random, run = np.random.default_rng(5), finished(session)
    assert run.outcome.records
    hosts = [{"name": f"n{number}", "ranks": 1} for number in range(NODES)]
    ranks = [{"rank": number, "host": f"n{number}", "cpus": "1"} for number in range(NODES)]
    record = {**run.outcome.records.run, "hosts": hosts, "ranks": ranks, "processes": NODES}
    launches = []
    for _ in range(LAUNCHES):
        told = [probe(random, period if number == 2 else None) for number in range(NODES)]
        for each in told:
            each["waited"] += 2 * load
            each["lost"] += 0.04 * load
        end = {"lateness": {"watched": 2.0, "ranks": told}}
        records: Any = replace(run.outcome.records, run=record, end=end)  # type: ignore[type-var]
        launches.append(replace(run, outcome=replace(run.outcome, records=records)))
    return launches


@plants("environment", "a daemon of 1 ms every 10 ms on one node of four", "mpicost", "", 0,
        "note: n2 (rank 2, CPU 1) is late: in 20 of 20 launches its rank waited for the processor for 10% "
        "of the time, the others for 0.1%, 1 ms every 10 ms")  # fmt: skip
def test_a_node_with_a_daemon_is_named(tmp_path: Path, declared: Declared) -> None:
    lines = describe_late_nodes(tmp_path, night(tmp_path / "a", 0.01))
    declared.check((), 0, [f"note: {line}" for line in lines])
    assert len(lines) == 1


def test_in_a_healthy_night_and_on_a_busy_machine_nobody_stands_out(tmp_path: Path) -> None:
    for name, period, load in (("well", None, 0.0), ("busy", 0.01, 0.4)):
        assert describe_late_nodes(tmp_path / name, night(tmp_path / name, period, load)) == []


def test_what_is_remembered_may_be_damaged(tmp_path: Path) -> None:
    (tmp_path / LATE_FILE).write_text("{")
    assert len(describe_late_nodes(tmp_path, night(tmp_path / "a", 0.01))) == 1
    assert len(describe_late_nodes(tmp_path, night(tmp_path / "b", 0.01))) == 1
    assert '"n2"' in (tmp_path / LATE_FILE).read_text()


FAST, SAVING = {"governor": "performance", "boost": "on"}, {"governor": "powersave", "boost": "on"}


def launch_with(session: Path, *facts: dict[str, str], first: int = 1) -> FinishedLaunch:
    """A launch whose nodes, n1 and so on, have these facts."""
    session.mkdir(exist_ok=True)
    run = finished(session)
    assert run.outcome.records
    hosts = [{"name": f"n{number}", "ranks": 2} for number in range(first, first + len(facts))]
    record = {**run.outcome.records.run, "hosts": hosts, "node_facts": list(facts)}
    records = replace(run.outcome.records, run=record)
    return replace(run, outcome=replace(run.outcome, records=records))


@plants("environment", "a governor that saves power since the last night", "mpicost", "", 0,
        "note: governor of n1 is powersave, and was performance on 2026-11-01")  # fmt: skip
def test_what_changed_on_a_node_is_told_once(tmp_path: Path, declared: Declared) -> None:
    before, lines, again = tell_nights(tmp_path, [(FAST, "")], [(SAVING, "")], [(SAVING, "")])
    declared.check((), 0, [f"note: {line}" for line in lines])
    assert (len(lines), before, again) == (1, [], [])


STILL, BOOST, SLOW = {"governor": "performance"}, {"boost": "on"}, {"boost": "off"}
BOX, OTHER = "mpich-box", "openmpi-box"
SAVES = "governor of n1 is powersave, and was performance on 2026-11-0"
GONE = "governor of n1 is not reported, and was "
#: Nights by what they show: facts and container of each launch; and what they say.
NIGHTS = {
    "a fact that is gone": ([[(FAST, "")], [(BOOST, "")]], {2: f"{GONE}performance on 2026-11-01"}),
    "a container that hides no change": (
        [[(FAST, ""), (BOOST, "")], [(SAVING, ""), (BOOST, "")]], {2: f"{SAVES}1"}),
    "another container": ([[(STILL, BOX)], [(FAST, OTHER)], [(STILL, BOX)], [(FAST, OTHER)]], {}),
    "what a container tells no more": ([[(FAST, BOX)], [(STILL, BOX)]], {}),
    "beside launches outside": ([[({}, BOX), (FAST, "")], [(FAST, BOX), (FAST, "")]], {}),
    "a change that a container told": (
        [[(FAST, "")], [(FAST, BOX)], [(SAVING, BOX)], [(SAVING, BOX)], [(SAVING, "")]], {3: f"{SAVES}2"}),
    "what a container alone hides": (
        [[(BOOST, BOX)], [(FAST, "")], [(BOOST, BOX)], [(FAST, "")], [(BOOST, BOX)], [(SAVING, "")],
         [(BOOST, "")]],
        {6: f"{SAVES}4", 7: f"{GONE}powersave on 2026-11-06"}),
    "what a container tells otherwise": (
        [[(FAST, "")], [(SLOW, BOX)]], {2: "boost of n1 is off, and was on on 2026-11-01"}),
}  # fmt: skip


@pytest.mark.parametrize("what", NIGHTS)
def test_what_a_container_hides_is_no_change_and_what_it_tells_is(tmp_path: Path, what: str) -> None:
    nights, told = NIGHTS[what]
    lines = dict(enumerate(tell_nights(tmp_path, *nights), 1))
    assert {day: line for day, line in lines.items() if line} == {day: [line] for day, line in told.items()}


def enter_container(run: FinishedLaunch, environment: str = "mpich-box") -> FinishedLaunch:
    return replace(run, launch=replace(run.launch, in_container=True, environment=environment))


def tell_nights(work: Path, *nights: Sequence[tuple[dict[str, str], str]]) -> list[list[str]]:
    """What some nights, a day apart, say of the set-up of n1: facts and container of each of their launches."""
    told = []
    for day, launches in enumerate(nights, 1):
        runs = [launch_with(work / f"{day}{number}", facts) for number, (facts, _) in enumerate(launches)]
        boxed = [
            enter_container(run, box) if box else run for run, (_, box) in zip(runs, launches, strict=True)
        ]
        told.append(describe_node_facts(work, boxed, f"2026-11-{day:02}T01:00:00Z"))
    return told


@plants("environment", "boost that a container reports for the first time, in nights of this container alone",
        "mpicost", "", 0, "note: boost of n1 is on, and was not reported on 2026-11-02")  # fmt: skip
def test_what_appears_in_nights_of_one_container_is_told_once(tmp_path: Path, declared: Declared) -> None:
    less, more = [(STILL, "mpich-box")], [(FAST, "mpich-box")]
    *before, now, then = tell_nights(tmp_path, less, less, more, more)
    declared.check((), 0, [f"note: {line}" for line in now])
    assert (len(now), [*before, then]) == (1, [[], [], []])


def test_a_node_that_only_a_container_saw_does_not_differ_by_what_is_hidden() -> None:
    nodes = {f"n{number}": dict(FAST) for number in range(6)} | {"n3": {"boost": "on"}}
    assert [*describe_odd_nodes(nodes)] == ["governor of n3 is not reported; most other nodes have performance"]
    assert [*describe_odd_nodes(nodes, ["n3"])] == []
    assert [*describe_odd_nodes({"n0": FAST, "n1": {}, "n2": {}, "n3": {}}, ["n1", "n2", "n3"])] == []


def test_a_night_knows_which_nodes_containers_alone_saw(tmp_path: Path) -> None:
    bare = launch_with(tmp_path / "a", *[FAST] * 6)
    boxed = launch_with(tmp_path / "b", {"boost": "on"}, first=7)
    assert describe_node_facts(tmp_path / "a", [bare, enter_container(boxed)], "now") == []
    (line,) = describe_node_facts(tmp_path / "b", [bare, boxed], "now")
    assert line == "governor of n7 is not reported; most other nodes have performance"


def test_what_is_known_may_be_damaged(tmp_path: Path) -> None:
    (tmp_path / FACTS_FILE).write_text("{")
    assert describe_node_facts(tmp_path, [launch_with(tmp_path / "a", FAST)], "now") == []
    (line,) = describe_node_facts(tmp_path, [launch_with(tmp_path / "b", SAVING)], "later")
    assert line.startswith("governor of n1 is powersave")


@plants("environment", "one node of six whose boost is off", "mpicost", "", 0,
        "note: boost of n3 is off; most other nodes have on")  # fmt: skip
def test_a_node_that_differs_from_the_others_is_told(declared: Declared) -> None:
    nodes = {f"n{number}": dict(FAST) for number in range(6)}
    assert [*describe_odd_nodes(nodes)] == []
    nodes["n3"]["boost"] = "off"
    declared.check((), 0, [f"note: {line}" for line in describe_odd_nodes(nodes)])


@pytest.mark.parametrize("boosts", [["on", "off"], ["on", "on", "off", "off"], ["on", "off", "fast"]])
def test_where_most_are_not_alike_none_is_odd(boosts: list[str]) -> None:
    nodes = {f"n{number}": {"boost": boost} for number, boost in enumerate(boosts)}
    assert [*describe_odd_nodes(nodes)] == []


def test_many_changes_are_cut_to_what_one_reads(tmp_path: Path) -> None:
    facts = {f"network eth{number:02}": "100" for number in range(20)}
    describe_node_facts(tmp_path, [launch_with(tmp_path / "a", facts)], "then")
    other = dict.fromkeys(facts, "10")
    lines = describe_node_facts(tmp_path, [launch_with(tmp_path / "b", other)], "now")
    assert (len(lines), lines[-1]) == (11, f"and 10 more such facts in {FACTS_FILE}")
