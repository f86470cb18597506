"""Facts beside the figures: what differs is told, what is the same or only lies elsewhere is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postprocess.base.documents.records import parse_record
from postprocess.base.errors import UsageError
from postprocess.features.compare.facts import (
    FactDifference,
    SideFacts,
    compare_facts,
    describe_shared_program,
    read_facts,
    summarise_facts,
)
from postprocess.features.compare.text import tabulate_facts
from tests.support.faults import Declared, plants


def told(version: str = "4.3.2", prefix: str = "/opt/a", **more: Any) -> dict[str, Any]:
    """What a launch tells."""
    eager = {"name": "EAGER", "verbosity": "tuner basic", "scope": "all", "value": "8192"}
    params = {"name": "FILES", "verbosity": "user all", "scope": "all", "value": f"{prefix}/etc"}
    return {
        "record": "facts",
        "schema": 1,
        "mpi_library": f"MPICH Version:      {version}\nMPICH ABI:  17:2:5",
        "mpi_standard": "4.1",
        "linked_as": f"{prefix}/lib/libmpi.so.12",
        "objects": [
            {"path": f"{prefix}/lib/libmpi.so.12", "id": f"text:{version}"},
            {"path": "/usr/lib/libc.so.6", "id": "93ac61"},
            {"path": f"{prefix}/bin/mpicost", "id": version},
        ],
        "variables": [eager, params],
        "transports": {"btl": "self, vader"},
        "environment": {"PMIX_RANK": "0", "I_MPI_INFO_MODE": prefix, "UCX_TLS": "sm"},
        **more,
    }


def parsed(said: dict[str, Any]) -> SideFacts:
    return parse_record(said, SideFacts)


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    found = compare_facts(parsed(old), parsed(new))
    return [(each.kind, each.name, each.old, each.new) for each in found]


def test_the_same_mpi_in_another_place_differs_in_nothing() -> None:
    assert differences(told(), told(prefix="/home/b")) == []


def test_each_kind_of_difference_is_told_by_name() -> None:
    now = {"name": "EAGER", "verbosity": "tuner basic", "scope": "all", "value": "65536"}
    added = {"name": "NEW", "verbosity": "user basic", "scope": "all"}
    new = told(
        "5.0.2",
        mpi_standard="5.0",
        linked_as="/opt/a/lib/libmpi.so.14",
        variables=[now, added],
        environment={"UCX_TLS": "tcp", "PMIX_RANK": "1"},
        transports={"btl": "self, sm"},
    )
    assert differences(told(), new) == [
        ("MPI", "MPICH Version", "4.3.2", "5.0.2"),
        ("MPI", "MPI standard", "4.1", "5.0"),
        ("MPI", "ABI (linked as)", "libmpi.so.12", "libmpi.so.14"),
        ("transport", "btl", "self, vader", "self, sm"),
        ("loaded library", "libmpi.so.12", "text:4.3.2", "text:5.0.2"),
        ("environment variable", "UCX_TLS", "sm", "tcp"),
        ("control variable", "EAGER", "8192", "65536"),
        ("control variable", "FILES", "PREFIX/etc", None),
        ("control variable", "NEW", None, "empty"),
    ]
    found = compare_facts(parsed(told()), parsed(new))
    told_whole, told_counted = summarise_facts(found)[3], summarise_facts(found)[-1]
    assert told_whole == "btl: self, vader -> self, sm"
    assert told_counted == "control variable, by name: 1 only old, 1 only new, 1 different"
    off = compare_facts(parsed(told()), parsed(told(environment={"UCX_TLS": "none"})))
    assert summarise_facts(off) == ["environment variable, by name: 1 different"]
    titles = [each.title for each in tabulate_facts(found)]
    assert titles[-3:] == [
        "control variable, user basic: 1 differs",
        "control variable, user all: 1 differs",
        "control variable, tuner basic: 1 differs",
    ]


def test_what_changed_stands_before_what_came_or_went() -> None:
    some = [
        FactDifference("control variable", name, old, new, "user basic")
        for name, old, new in (("a", None, "1"), ("b", "1", None), ("c", "1", "2"))
    ]
    (table,) = tabulate_facts(some)
    assert [row[0] for row in table.rows] == ["c", "b", "a"]


@plants("files", "what an MPI told of itself, damaged", "facts of a comparison", "", 2,
        "is damaged")  # fmt: skip
@pytest.mark.parametrize(
    ("name", "value"), [("linked_as", None), ("mpi_library", 7), ("objects", {"a": 1}), ("variables", [{}])]
)
def test_damaged_facts_are_refused_in_one_line(tmp_path, name: str, value: Any, declared):
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(told(**{name: value})) + "\n")
    with declared.raises(UsageError, match=r"facts\.json: .*is damaged") as caught:
        read_facts(path)
    assert "\n" not in str(caught.value)


def test_a_launch_of_several_starts_has_told_its_facts_in_each(tmp_path):
    path = tmp_path / "facts.json"
    first, second = (json.dumps(told(linked_as=name)) for name in ("one", "two"))
    path.write_text(f"{first}\n{second}\n")
    assert read_facts(path).linked_as == "one"
    path.write_text(f"{first}\n{second[:-9]}\n")
    with pytest.raises(UsageError, match="is damaged"):
        read_facts(path)


@plants("programs", "a launch that leaves no facts", "facts of a comparison", "", 2,
        "the launch told nothing of its MPI")  # fmt: skip
def test_a_launch_that_told_nothing_is_said(tmp_path: Path, declared: Declared) -> None:
    with declared.raises(UsageError):
        read_facts(tmp_path / "facts.json")


def test_a_long_library_text_without_names_is_one_fact() -> None:
    old = parsed(told(mpi_library="Open MPI v5.0.8, ident: 5.0.8"))
    (other,) = compare_facts(parsed(told()), old)  # nor do two families have names in common
    assert other.old == "MPICH Version: 4.3.2 MPICH ABI: 17:2:5" and other.new.startswith("Open MPI")
    (found,) = compare_facts(old, replace(old, mpi_library="Open MPI v5.0.11, ident: 5.0.11"))
    assert (found.name, found.new) == ("MPI library", "Open MPI v5.0.11, ident: 5.0.11")


def test_both_sides_ran_the_same_file_only_if_both_say_so() -> None:
    own, one, other = (
        parsed(told(**({"standard_abi": {"version": "1.0", "program": name, "library": "/x"}} if name else {})))
        for name in ("", "0123456789abcdef", "fedcba9876543210")
    )
    said = "Both sides ran the same file (0123456789abcdef), built once against the standard ABI 1.0 of MPI"
    assert describe_shared_program(one, one) == said
    others = ((one, other), (one, own), (own, one), (own, own), (None, one), (one, None))
    assert [describe_shared_program(*pair) for pair in others] == [""] * len(others)
    for part in ({"program": "x"}, {"version": "1.0", "library": "/x"}):  # whose own file cannot be read
        assert describe_shared_program(unread := replace(one, standard_abi=part), unread) == ""
