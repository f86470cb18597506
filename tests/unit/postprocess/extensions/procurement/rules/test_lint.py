"""Rules: each fault with its line, key and fix; layouts by name; the sets that come with Plumbline."""

from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.extensions.procurement.rules.layouts import (
    MachineFacts,
    build_offer_choice,
    plan_offer,
    resolve_layout,
)
from postprocess.extensions.procurement.rules.rules import (
    FOLDER,
    RuleCase,
    find_layout_faults,
    lint_rules,
    lint_text,
    list_rule_sets,
    parse_quantity,
    read_rules,
)
from postprocess.main import main
from postprocess.model.options import check_choice, select_wanted

CLUSTER = MachineFacts("cpu", nodes=21, cores_per_node=9, nics_per_node=2)
SOUND = """\
schema = 1
title = "t"
[iterations]
osu = 7
[category.baseline]
text = "as it is"
[[case]]
name = "a"
program = "mpicost"
routine = "bcast"
bytes = [8, 1000]
nodes = "all"
per_node = "core"
[[case]]
name = "b"
program = "osu"
routine = "bibw"
bytes = [67108864]
nodes = "two"
per_node = "one"
launches = 5
limit = "12 GB/s"
[[reference]]
case = "b"
bytes = 67108864
value = "10 GB/s"
"""


@pytest.mark.parametrize("name", list_rule_sets())
def test_a_set_that_comes_with_plumbline_has_no_fault(name: str) -> None:
    rules, faults = lint_rules(FOLDER / f"{name}.toml")
    assert not faults and rules is not None


def test_sound_rules_are_read_whole() -> None:
    rules, faults = lint_text(SOUND)
    assert not faults and rules
    one, two = rules.case
    assert (rules.launches_of(one), rules.launches_of(two)) == (10, 5)
    assert rules.reference_of("b", 67108864) == 10_000
    assert (one.demand, one.statistic, rules.tolerance_of(one)) == ("must", "median", 0.05)


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "said"),
    [
        ("schema = 1", "schema = 2", 1, "schema", "this version knows 1"),
        ("schema = 1", "schema = one", 1, "", "Invalid value"),
        ('title = "t"', 'tilte = "t"', 0, "title", "is missing"),
        ('title = "t"', 'title = "t"\nlauches = 3', 3, "lauches", "is not a known key"),
        ('title = "t"', 'title = "t"\ntell = ["colour"]', 3, "tell", "'colour' is none of"),
        ('title = "t"', 'title = "t"\none_row_with = ["x"]', 3, "one_row_with", "not a family"),
        ("[category.baseline]", "[category.other]", 0, "category", "has no baseline"),
        ("osu = 7", "osu = 0", 4, "iterations.osu", "Expected `int` >= 1"),
        ('program = "osu"', 'program = "nccl"', 16, "case[1].program", "Invalid enum value"),
        ('program = "osu"', 'program = "bindings"', 16, "case[1].program", "nothing to commit to"),
        ('program = "osu"', 'program = "kernels"', 17, "case[1].routine", "bibw: is not a kernel"),
        (
            'program = "osu"\nroutine = "bibw"',
            'program = "kernels"\nroutine = "sor_B"',
            18,
            "case[1].bytes",
            "sor_B has [18000000]",
        ),
        ("osu = 7", "kernels = 7", 3, "iterations", "Invalid enum value"),
        ('routine = "bcast"', 'routine = "bcats"', 10, "case[0].routine", "no such routine"),
        ('routine = "bcast"', 'routine = "control_timer"', 10, "case[0].routine", "no such"),
        ("[8, 1000]", "[8, 8]", 11, "case[0].bytes", "has a size twice"),
        ("[8, 1000]", "[]", 11, "case[0].bytes", "length >= 1"),
        ("[8, 1000]", "[0]", 11, "case[0].bytes", "sends no empty messages"),
        ('nodes = "all"', 'nodes = "half"', 12, "case[0].nodes", "'half' is none of"),
        ('nodes = "two"', 'nodes = "nearest pair"', 19, "case[1].nodes", "cannot choose its pair"),
        ('nodes = "two"', 'nodes = "one"', 20, "case[1].per_node", "a single process sends no message"),
        ('per_node = "one"', 'per_node = "120%"', 20, "case[1].per_node", "'120%' is none of"),
        ("launches = 5", "launches = 2", 21, "case[1].launches", "ask for 3 or more"),
        ("launches = 5", "launches = 50", 21, "case[1].launches", "more than risk.most_launches"),
        ("launches = 5", "launches = 1001", 21, "case[1].launches", "Expected `int` <= 1000"),
        ("launches = 5", 'statistic = "p99"', 21, "case[1].statistic", "no 99th percentile"),
        ("launches = 5", 'mpi = "lam"', 21, "case[1].mpi", "'lam' is none of"),
        ("12 GB/s", "12 gallons", 22, "case[1].limit", "is not a quantity"),
        ("10 GB/s", "-1 us", 26, "reference[0].value", "is not a quantity"),
        ("bytes = 67108864", "bytes = 8", 25, "reference[0].bytes", ""),
        ("12 GB/s", "1e-320 us", 22, "case[1].limit", "is not a quantity"),
        ("12 GB/s", "1e308 GB/s", 22, "case[1].limit", "is not a quantity"),
        ("launches = 5", "tolerance = nan", 0, "", "'nan' is not a finite number"),
        ("launches = 5", "weight = inf", 0, "", "'inf' is not a finite number"),
        ("launches = 5", "weight = 1e200", 0, "", "is larger than any number here"),
        ("launches = 5", f"a = {'[' * 3000}", 0, "", "nested too deep"),
        ('name = "b"', 'name = "a"', 15, "case[1].name", "is there twice"),
        ('name = "b"', 'name = "b/c"', 15, "case[1].name", "not a name"),
        ('per_node = "core"', 'per_node = "core"\nbetter = "higher"', 14, "case[0].better", "times"),
        ('per_node = "core"', 'per_node = "core"\ndemand = "wish"', 14, "case[0].demand", "Invalid"),
        ('per_node = "core"', 'per_node = "core"\ntolerance = 0.0', 14, "case[0].tolerance", "> 0.0"),
    ],
)
def test_a_fault_has_line_key_and_fix(old: str, new: str, line: int, key: str, said: str) -> None:
    assert SOUND.count(old) == 1
    _, faults = lint_text(SOUND.replace(old, new))
    if key == "reference[0].bytes":  # of no row: the case is what is told
        line, key, said = 24, "reference[0].case", "no case b has 8 bytes"
    found = next(fault for fault in faults if fault.key == key)
    assert found.line == line and said in found.text


def test_the_first_fault_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(SOUND.replace("schema = 1", "schema = 9"))
    with pytest.raises(UsageError, match=r"r\.toml:1: schema: is 9"):
        read_rules(path)
    with pytest.raises(UsageError, match="offer new"):
        read_rules(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("nodes", "per_node", "layout"),
    [
        ("all", "core", "189x9"),
        ("all", "one", "21x1"),
        ("all", "nic", "42x2"),
        ("all", "80%", "168x8"),  # at least 80% of 9
        ("95%", "one", "20x1"),  # at least 95% of 21
        ("95%", "50%", "100x5"),
        ("two", "core", "18x9"),
        ("one", "two", "2x2"),
        (3, 4, "12x4"),
    ],
)
def test_a_layout_by_name_is_at_least_what_is_asked_for(nodes, per_node, layout: str) -> None:
    case = RuleCase("a", "osu", "alltoall", (8,), nodes, per_node)
    assert str(resolve_layout(case, CLUSTER).layout) == layout


def test_a_kernel_may_be_committed_to_on_a_single_core() -> None:
    case = RuleCase("a", "kernels", "sor_A", (8_000_000,), "one", "one")
    assert str(resolve_layout(case, CLUSTER).layout) == "1x1"
    assert not [*find_layout_faults(case)]
    assert [key for key, _ in find_layout_faults(replace(case, program="osu"))] == ["per_node"]


def test_pairs_are_the_first_and_the_last_node_of_all() -> None:
    near, far = (
        resolve_layout(RuleCase("a", "mpicost", "pingpong", (8,), f"{word} pair", "one"), CLUSTER)
        for word in ("nearest", "farthest")
    )
    assert (str(near.layout), near.peer, str(far.layout), far.peer) == ("21x1", 1, "21x1", 20)


@pytest.mark.parametrize(
    ("nodes", "per_node", "problem"),
    [
        (22, "one", "it needs 22 nodes, and there are 21"),
        ("all", 10, "it needs 10 cores a node, and there are 9"),
        ("one", "one", "it is a single process"),
    ],
)
def test_a_layout_that_a_machine_has_not_says_why(nodes, per_node, problem: str) -> None:
    case = RuleCase("a", "osu", "alltoall", (8,), nodes, per_node)
    assert resolve_layout(case, CLUSTER).problem == problem


def test_the_choice_of_a_pass_is_one_that_checks_know_and_combines_what_a_launch_does() -> None:
    rules, _ = lint_text(SOUND.replace('name = "b"', 'name = "b"').replace("[8, 1000]", "[8]"))
    assert rules
    plan = plan_offer(rules, CLUSTER)
    choice = build_offer_choice(rules, plan)
    check_choice(choice)
    assert (choice["partitions"], choice["iterations"]) == (["cpu"], 7)
    wanted = select_wanted(choice["wanted"], program="osu", layout="2x1", partition="cpu")
    assert wanted is not None and wanted["bibw"].sizes == (67108864,)
    assert select_wanted(choice["wanted"], program="osu", layout="4x1") == {}
    assert select_wanted(None) is None


@pytest.mark.parametrize(("text", "value", "unit"), [
    ("2.5 us", 2.5e-6, "s"), ("3 ms", 3e-3, "s"), ("4 s", 4.0, "s"), ("7 MB/s", 7.0, "MB/s"),
    ("12GB/s", 12e3, "MB/s"),
])  # fmt: skip
def test_a_quantity_has_a_unit(text: str, value: float, unit: str) -> None:
    assert parse_quantity(text) == (pytest.approx(value), unit)


def test_new_writes_a_set_once_and_check_names_its_faults(tmp_path: Path, capsys) -> None:
    def plumbline(*words: str) -> int:
        return main(str(tmp_path), str(tmp_path / "home"), ["offer", *words])

    path = tmp_path / "rules.toml"
    assert plumbline("new", str(path), "--set", "luecke") == 0
    assert plumbline("new", str(path)) == 2
    assert "is there already" in capsys.readouterr().err
    assert plumbline("check", str(path), "--no-cost") == 0
    assert "12 cases, 27 rows" in capsys.readouterr().out
    path.write_text(path.read_text().replace('routine = "gather"', 'routine = "gatter"'))
    assert plumbline("check", str(path), "--no-cost") == 1
    line = path.read_text().splitlines().index('routine = "gatter"') + 1
    assert f"rules.toml:{line}: case[6].routine: gatter" in capsys.readouterr().err
