"""Notes on nodes whose set-up has changed, or differs from that of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.model.launch import FinishedLaunch
from postprocess.session.nightly.node_facts import FILE, describe_node_facts, describe_odd_nodes
from tests.support.factories.launch import finished
from tests.support.faults import Declared, plants

HOSTS = [{"name": "n1", "ranks": 2}]
FAST, SAVING = {"governor": "performance", "boost": "on"}, {"governor": "powersave", "boost": "on"}


def launch_with(session: Path, *facts: dict[str, str]) -> FinishedLaunch:
    """A launch whose node has these facts."""
    session.mkdir(exist_ok=True)
    run = finished(session)
    assert run.outcome.records
    record = {**run.outcome.records.run, "hosts": HOSTS, "node_facts": list(facts)}
    records = replace(run.outcome.records, run=record)
    return replace(run, outcome=replace(run.outcome, records=records))


@plants("environment", "a governor that saves power since the last night", "mpicost", "", 0,
        "note: governor of n1 is powersave, and was performance on 2026-11-01")  # fmt: skip
def test_what_changed_on_a_node_is_told_once(tmp_path: Path, declared: Declared) -> None:
    before, now = launch_with(tmp_path / "a", FAST), launch_with(tmp_path / "b", SAVING)
    assert describe_node_facts(tmp_path, [before], "2026-11-01T01:00:00Z") == []
    lines = describe_node_facts(tmp_path, [now], "2026-11-02T01:00:00Z")
    declared.check((), 0, [f"note: {line}" for line in lines])
    assert len(lines) == 1
    assert describe_node_facts(tmp_path, [now], "2026-11-03T01:00:00Z") == []


def test_a_fact_that_is_gone_is_told(tmp_path: Path) -> None:
    describe_node_facts(tmp_path, [launch_with(tmp_path / "a", FAST)], "2026-11-01T01:00:00Z")
    rest = launch_with(tmp_path / "b", {"boost": "on"})
    (line,) = describe_node_facts(tmp_path, [rest], "2026-11-02T01:00:00Z")
    assert line == "governor of n1 is not told, and was performance on 2026-11-01"


def test_what_is_known_may_be_damaged(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
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
    assert len(lines) == 11
    assert lines[-1] == f"and 10 more such facts in {FILE}"
