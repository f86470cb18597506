"""Facts beside the figures: what differs is told, what is the same or only lies elsewhere is not."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from postprocess.base.errors import UsageError
from postprocess.base.records import parse_record
from postprocess.features.compare import facts
from postprocess.features.compare.cases import ComparedCase, ComparisonVerdict
from postprocess.features.compare.data import NEW, OLD, SharedCase
from postprocess.features.compare.next_steps import explain_slower
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


def parsed(said: dict[str, Any]) -> facts.SideFacts:
    return parse_record(said, facts.SideFacts)


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    found = facts.compare_facts(parsed(old), parsed(new))
    return [(difference.kind, difference.name, difference.old, difference.new) for difference in found]


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
    found = facts.compare_facts(parsed(told()), parsed(new))
    told_whole, told_counted = facts.summarise_facts(found)[3], facts.summarise_facts(found)[-1]
    assert told_whole == "btl: self, vader -> self, sm"
    assert told_counted == "control variable, by name: 1 only old, 1 only new, 1 different"
    off = facts.compare_facts(parsed(told()), parsed(told(environment={"UCX_TLS": "none"})))
    assert facts.summarise_facts(off) == ["environment variable, by name: 1 different"]
    titles = [table.title for table in tabulate_facts(found)]
    assert titles[-3:] == [
        "control variable, user basic: 1 differs",
        "control variable, user all: 1 differs",
        "control variable, tuner basic: 1 differs",
    ]


def test_what_changed_stands_before_what_came_or_went() -> None:
    some = [
        facts.FactDifference("control variable", name, old, new, "user basic")
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
        facts.read_facts(path)
    assert "\n" not in str(caught.value)


def test_a_launch_of_several_starts_has_told_its_facts_in_each(tmp_path):
    path = tmp_path / "facts.json"
    first, second = (json.dumps(told(linked_as=name)) for name in ("one", "two"))
    path.write_text(f"{first}\n{second}\n")
    assert facts.read_facts(path).linked_as == "one"
    path.write_text(f"{first}\n{second[:-9]}\n")
    with pytest.raises(UsageError, match="is damaged"):
        facts.read_facts(path)


@plants("programs", "a launch that leaves no facts", "facts of a comparison", "", 2,
        "the launch recorded no facts of its MPI")  # fmt: skip
def test_a_launch_that_told_nothing_is_said(tmp_path: Path, declared: Declared) -> None:
    with declared.raises(UsageError):
        facts.read_facts(tmp_path / "facts.json")


def test_a_long_library_text_without_names_is_one_fact() -> None:
    old = parsed(told(mpi_library="Open MPI v5.0.8, ident: 5.0.8"))
    (other,) = facts.compare_facts(parsed(told()), old)  # nor do two families have names in common
    assert other.old == "MPICH Version: 4.3.2 MPICH ABI: 17:2:5" and other.new.startswith("Open MPI")
    (found,) = facts.compare_facts(old, replace(old, mpi_library="Open MPI v5.0.11, ident: 5.0.11"))
    assert (found.name, found.new) == ("MPI library", "Open MPI v5.0.11, ident: 5.0.11")


def test_both_sides_ran_the_same_file_only_if_both_say_so() -> None:
    own, one, other = (
        parsed(told(**({"standard_abi": {"version": "1.0", "program": name, "library": "/x"}} if name else {})))
        for name in ("", "0123456789abcdef", "fedcba9876543210")
    )
    said = "Both sides ran the same file (0123456789abcdef), built once against the standard ABI 1.0 of MPI"
    assert facts.describe_shared_program(one, one) == said
    others = ((one, other), (one, own), (own, one), (own, own), (None, one), (one, None))
    assert [facts.describe_shared_program(*pair) for pair in others] == [""] * len(others)
    for part in ({"program": "x"}, {"version": "1.0", "library": "/x"}):  # whose own file cannot be read
        assert facts.describe_shared_program(unread := replace(one, standard_abi=part), unread) == ""


KIB = 1024


def launches(
    side: str, limit: int, empty: float = 1e-6, rate: float = 1e10, layout: str = "2x2"
) -> list[facts.FingerprintLaunch]:
    """Three launches of a library that needs a handshake of 4 us beyond a limit."""
    random = np.random.default_rng(limit)
    found = []
    for number in range(3):
        times = [
            (empty + n / rate + (4e-6 if n > limit else 0)) * float(np.exp(random.normal(0, 0.01)))
            for n in facts.SIZES
        ]
        found.append(facts.FingerprintLaunch(side, number, "cpu", layout, "s", 1.0, facts.SIZES, tuple(times)))
    return found


def fingerprint(
    old: Sequence[facts.FingerprintLaunch], new: Sequence[facts.FingerprintLaunch]
) -> list[facts.FingerprintPair]:
    return facts.build_fingerprints([*old, *new])


def case(size: int, verdict: ComparisonVerdict, routine: str = "bcast", layout: str = "4x4") -> ComparedCase:
    shared = SharedCase("cpu", "mpicost", routine, "evict-barrier", layout, size)
    ratio = 1.5 if verdict == ComparisonVerdict.SLOWER else 1.0
    return ComparedCase(
        shared, verdict, "", "s", 1e-6, ratio * 1e-6, None, 6, ratio, None, None, None, 0.05, {}, {}
    )


MOVED = fingerprint(launches(OLD, 64 * KIB), launches(NEW, 8 * KIB))
SLOW = [case(n, ComparisonVerdict.SLOWER) for n in (16 * KIB, 20_000, 32 * KIB)]


def test_empty_message_bandwidth_and_switch_are_those_put_in() -> None:
    (pair,) = MOVED
    assert pair.old.empty == pytest.approx(1e-6, rel=0.05)
    assert pair.new.bandwidth == pytest.approx(1e10, rel=0.1)
    assert [switch.below for switch in pair.old.switches] == [64 * KIB]
    assert [switch.below for switch in pair.new.switches] == [8 * KIB]
    told = facts.tell_fingerprint(pair)
    assert told[2][0] == "switches after, inside a node (cpu)"
    assert told[2][1].startswith("64 KiB (1.") and told[2][2].startswith("8 KiB (")
    assert facts.describe_fingerprint(MOVED)["cpu/2x2"]["new"]["launches"] == 3


def placed(
    some: Sequence[facts.FingerprintLaunch], cores: Sequence[float | None], moved: bool = False
) -> list[facts.FingerprintLaunch]:
    both = zip(some, cores, strict=True)
    return [replace(each, core_latency=where, moved=moved) for each, where in both]


def test_launches_on_like_cores_are_held_against_each_other() -> None:
    """A message takes 1 us on near cores and 3 on far ones, whichever side it is of."""
    near, far = launches(OLD, KIB), launches(OLD, KIB, empty=3e-6)
    old = placed([*near[:2], far[0]], (5e-8, 5.2e-8, 2.4e-7))
    near, far = launches(NEW, KIB), launches(NEW, KIB, empty=3e-6)
    new = placed([near[0], *far[:2]], (5.1e-8, 2.5e-7, 2.5e-7))
    (pair,) = fingerprint(old, new)
    assert pair.old.empty == pytest.approx(pair.new.empty, rel=0.05)
    assert not fingerprint(old[:2], new[1:])
    moved = placed(launches(OLD, KIB), [None] * 3, moved=True)
    assert not fingerprint(moved, launches(NEW, KIB))


def test_the_place_counts_in_which_both_sides_have_the_most_launches() -> None:
    old = [*launches(OLD, KIB), *placed(launches(OLD, KIB)[:2], (2.5e-7,) * 2)]
    old[:3] = placed(old[:3], (5e-8,) * 3)
    new = placed(launches(NEW, KIB), (5e-8, 2.5e-7, 2.5e-7))
    (pair,) = fingerprint([*old, *placed(launches(OLD, KIB), (5e-8,) * 3)], new)
    assert (pair.old.launches, pair.new.launches) == (2, 2)


def test_a_side_alone_is_no_fingerprint() -> None:
    assert not fingerprint(launches(OLD, 1024), [])


def test_a_moved_switch_covers_the_slower_cases_in_between() -> None:
    others = [case(n, ComparisonVerdict.SAME) for n in (8, KIB, 10**6)]
    said = explain_slower([*SLOW, *others], MOVED)
    assert said == (
        "A switch of ping-pong inside a node (cpu) that went from 64 KiB to 8 KiB covers 3 of 3 slower cases"
    )
    inside = [*SLOW, case(24 * KIB, ComparisonVerdict.SAME), *others]
    assert explain_slower(inside, MOVED).endswith("3 of 3 slower cases, and 1 that is not")


def test_only_a_control_variable_names_the_switch() -> None:
    fact = facts.FactDifference(facts.VARIABLE, "EAGER_LIMIT", "65536", "8192")
    assert explain_slower(SLOW, MOVED, [fact]).startswith("EAGER_LIMIT that went from 64 KiB to 8")
    for other in (replace(fact, new="16384"), replace(fact, old="8192"), replace(fact, old="no")):
        assert explain_slower(SLOW, MOVED, [other]).startswith("A switch of ping-pong")


BACKWARDS = fingerprint(launches(OLD, 8 * KIB), launches(NEW, 64 * KIB))
SAME, SLOWER = ComparisonVerdict.SAME, ComparisonVerdict.SLOWER


@pytest.mark.parametrize(
    ("cases", "pairs"),
    [
        ([case(n, SLOWER) for n in (8, KIB, 2 * KIB)], MOVED),  # elsewhere
        ([*SLOW[:2], *(case(n, SLOWER) for n in (8, 16, 32, 64))], MOVED),  # less than half
        ([*SLOW, *(case(n, SAME) for n in range(9000, 9005))], MOVED),  # most of it is not slower
        ([case(n, SLOWER, layout="4x2") for n in (16 * KIB, 20_000)], MOVED),  # between nodes
        (SLOW, BACKWARDS),  # messages became faster
    ],
)
def test_nothing_is_claimed_beyond_the_data(cases, pairs: list[facts.FingerprintPair]) -> None:
    slower = sum(each.verdict == SLOWER for each in cases)
    found = explain_slower(cases, pairs)
    assert found == f"Nothing in the fingerprint covers half of the {slower} slower cases"


def test_one_slower_case_is_explained_by_nothing() -> None:
    said = explain_slower([*SLOW[:1], case(8, SAME)], MOVED)
    assert said == "One slower case alone is not explained by the fingerprint"
    assert explain_slower([case(8, SAME)], MOVED) == explain_slower(SLOW, []) == ""


def test_start_up_and_bandwidth_cover_their_own_sizes() -> None:
    late = fingerprint(launches(OLD, 64 * KIB), launches(NEW, 64 * KIB, empty=2.5e-6))
    small = [case(n, ComparisonVerdict.SLOWER) for n in (8, 64, KIB)]
    assert explain_slower(small, late).startswith("An empty message that takes 2.5")
    narrow = fingerprint(launches(OLD, 64 * KIB), launches(NEW, 64 * KIB, rate=5e9))
    large = [case(n, ComparisonVerdict.SLOWER) for n in (10**6, 2 * 10**6)]
    assert explain_slower(large, narrow).startswith("A bandwidth of 4985 MB/s in place of 9969")


def test_what_only_another_device_of_the_mpi_reads_is_no_setting_to_try() -> None:
    """Every MPICH lists the control variables of all devices."""

    def side(release: str, device: str) -> facts.SideFacts:
        names = ("CH3_EAGER_MAX_MSG_SIZE", "NEMESIS_NETMOD", "CH4_NUM_VCIS", "BCAST_MIN_PROCS")
        variables = [
            {"name": f"MPIR_CVAR_{name}", "verbosity": "user basic", "value": release[0]} for name in names
        ]
        library = f"MPICH Version:      {release}\nMPICH Device:\t{device}\n"
        return parsed(told(mpi_library=library, variables=variables))

    def tried(old: facts.SideFacts, new: facts.SideFacts) -> list[str]:
        return list(facts.find_settings_to_try(facts.compare_facts(old, new), new))

    of_all = "MPIR_CVAR_BCAST_MIN_PROCS"
    ch3, ch4 = side("4.3.2", "ch3:nemesis"), side("5.0.2", "ch4:ofi")
    assert tried(ch4, ch3) == tried(ch3, ch4) == [of_all]
    own = ["MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE", "MPIR_CVAR_NEMESIS_NETMOD"]
    assert tried(ch3, side("5.0.2", "ch3:sock")) == [of_all, *own]
    assert tried(side("4.3.2", "ch4:ucx"), ch4) == [of_all, "MPIR_CVAR_CH4_NUM_VCIS"]
