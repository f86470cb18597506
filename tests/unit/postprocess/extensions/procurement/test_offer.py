"""Violations and forgeries of an offer: each is found by its code, and an honest offer has none."""

import hashlib
import json
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.extensions.procurement.builds import OfferSources, find_changed_flags
from postprocess.extensions.procurement.command import list_next_steps
from postprocess.extensions.procurement.offer import PASSES, RULES, Patch, ToldFacts, open_offer
from postprocess.extensions.procurement.rules.rules import hash_rules
from postprocess.extensions.procurement.run_rules import check_offer, list_speed_limits
from postprocess.extensions.procurement.violations import Code, Violation, format_violations, is_rejected
from tests.support.factories.forgery import Forge, built, diff, name_patch, on_two_nodes, raw, run, solved
from tests.support.factories.launch import case
from tests.support.factories.offer import OFFICIAL, RULES_TEXT, add_pass, edit_records, make_offer, session_of
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT


def codes(folder: Path, issued: str = "") -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for violation in check_offer(open_offer(folder), OFFICIAL, issued):
        found.setdefault(violation.code.word, []).append(violation.format())
    return found


MORE = """\
[[case]]
name = "{name}"
program = "mpicost"
routine = "bcast"
bytes = [64]
nodes = {nodes}
per_node = "two"
demand = "information"
"""


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(RULES_TEXT, id="the sample"),
        pytest.param(RULES_TEXT.replace("[iterations]", 'cache = "evict"\n[iterations]'), id="caches"),
        pytest.param(RULES_TEXT + MORE.format(name="more", nodes=1), id="information not measured"),
        pytest.param(RULES_TEXT + MORE.format(name="far", nodes=9), id="information not possible"),
    ],
)
def test_an_honest_offer_has_no_violation(tmp_path: Path, rules: str) -> None:
    folder = make_offer(tmp_path / "offer", rules=rules)
    assert codes(folder, hash_rules(folder / RULES)) == {}


def test_the_same_core_of_two_nodes_is_not_shared(offer: Path) -> None:
    on_two_nodes(offer)
    run(ranks=[{"rank": rank, "host": f"n{rank + 1}", "cpus": "0"} for rank in (0, 1)])(offer)
    assert "binding-shared" not in codes(offer)


def test_one_fault_of_many_launches_is_one_line() -> None:
    found = [Violation(Code.SOURCE_OTHER, f"launch {number}", "mine") for number in (1, 2, 3)]
    found.insert(1, Violation(Code.SOURCE_OTHER, "launch 4", "yours"))
    found += [Violation(Code.ROW_MISSING, f"row {number}", "no launch") for number in (1, 2)]
    found += [Violation(Code.MACHINE_BUSY, f"pass {number}", f"{number}0%") for number in (1, 2)]
    memory = Code.FASTER_THAN_MEMORY
    found += [Violation(memory, f"launch {n}", f"{n} times as fast as", n) for n in (2.0, 3.0, 1.5)]
    assert [line.partition(";")[0] for line in format_violations(found)] == [
        "source-other: launch 1 and 2 more: mine",
        "source-other: launch 4: yours",
        "row-missing: row 1: no launch",
        "row-missing: row 2: no launch",
        "machine-busy (noted): pass 1 and 1 more: 10%",
        "faster-than-memory: launch 3.0 and 2 more: 3.0 times as fast as",
    ]


@pytest.mark.parametrize(("category", "wanted"), [("baseline", ["change-not-allowed"]), ("optimised", [])])
def test_a_change_needs_a_category_that_allows_it(tmp_path: Path, category: str, wanted: list[str]) -> None:
    """A named patch from which mpicost follows by its hash, and flags, which are told once for each build."""
    patched, flagged = (make_offer(tmp_path / name, category=category) for name in ("patched", "flagged"))
    name_patch("mpicost", diff("suite/src/faster.c"))(patched)
    run(source_hash=OFFICIAL.hash_patched([patched / "patches" / "a.patch"]))(patched)
    for number in (1, 2):
        edit_records(flagged, lambda r: r[0].update(compiler_flags="-Ofast -std=c11"), number=number)
    for folder in (patched, flagged):
        assert [violation.code.word for violation in check_offer(open_offer(folder), OFFICIAL)] == wanted


@pytest.mark.parametrize(
    ("forge", "code"),
    [
        (solved(patches=[hashlib.sha256(diff("c/a.c").encode()).hexdigest()]), None),
        (solved(parameters={"patches": ["a" * 64]}), "patch-other"),
        (built("official", "mirror"), "source-unchecked"),
    ],
)
def test_a_patch_of_osu_is_held_against_the_lock_file(tmp_path: Path, forge: Forge, code: str | None) -> None:
    folder = make_offer(tmp_path / "offer", category="optimised")
    name_patch("osu", diff("c/a.c"))(folder)
    forge(folder)
    assert set(codes(folder)) == ({code} if code else set())


def test_a_patch_is_applied_as_if_no_repository_were_above_it(tmp_path: Path, monkeypatch) -> None:
    """And nothing outside the suite is written, whatever a patch says."""
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))
    one, other, out = (tmp_path / name for name in ("one", "other", "out"))
    one.write_text(diff("suite/src/one.c"))
    other.write_text(diff("suite/src/other.c"))
    out.write_text(diff("../out.c"))
    both = OFFICIAL.hash_patched([one, other])
    assert len({OFFICIAL.hash, OFFICIAL.hash_patched([one]), both}) == 3
    assert OFFICIAL.hash_patched([out]) in ("", OFFICIAL.hash)
    sources = OfferSources(OFFICIAL, tmp_path, tuple(Patch("mpicost", n, "") for n in ("one", "other")))
    (tmp_path / "patches").mkdir()
    for path in (one, other):
        path.rename(tmp_path / "patches" / path.name)
    assert both in sources.patched


def test_without_git_a_named_patch_is_an_error_of_one_line(offer: Path, monkeypatch) -> None:
    name_patch("mpicost", diff("suite/src/a.c"))(offer)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match=r"git: .*; a patch is checked by it: install git"):
        codes(offer)


def test_a_failed_launch_is_noted_and_its_row_needs_another(offer: Path) -> None:
    raw("raw/*mpicost*.exit", lambda path: path.write_text("139\n"))(offer)
    found = check_offer(open_offer(offer), OFFICIAL)
    assert {violation.code.word for violation in found} == {"launch-crashed", "few-launches"}
    add_pass(offer, 6, 1.0)
    assert not is_rejected(check_offer(open_offer(offer), OFFICIAL))


def test_a_folder_in_which_nothing_was_measured_is_no_offer(tmp_path: Path) -> None:
    found = codes(make_offer(tmp_path / "offer", factors=()))
    assert found["row-missing"] == [
        "row-missing: passes.jsonl: nothing was measured; offer run measures it, where the machine can"
    ]


@pytest.mark.parametrize(("statistic", "key"), [("median", "steady"), ("p99", "p99")])
def test_values_are_those_of_the_records(tmp_path: Path, statistic: str, key: str) -> None:
    rules = RULES_TEXT.replace('limit = "1 s"', f'statistic = "{statistic}"')
    folder = make_offer(tmp_path / "offer", rules=rules)
    rows = open_offer(folder).rows
    assert [(row.key.case, row.key.bytes, row.unit, len(row.values)) for row in rows] == [
        ("broadcast", 8, "s", 5),
        ("broadcast", 1_000_000, "s", 5),
        ("allreduce", 8, "s", 5),
    ]
    first = next((session_of(folder) / "raw").glob("*mpicost*.jsonl")).read_text().split("\n")[1]
    assert rows[0].values[0] == pytest.approx(json.loads(first)[key])


@plants("files", "a line without its number", "passes of an offer", "", 2,
        "passes.jsonl: number: is missing")  # fmt: skip
def test_a_damaged_list_of_passes_is_an_error_of_one_line(offer: Path, declared: Declared) -> None:
    with (offer / PASSES).open("a") as file:
        file.write("{}\n")
    with declared.raises(UsageError, match=r"passes\.jsonl: number: is missing"):
        open_offer(offer)


#: What is not known to leave a program as it was published is a change.
USUAL_FLAGS = "-mtune=generic -march=x86-64 -O2 -frecord-gcc-switches -fasynchronous-unwind-tables"
TARGET_FLAGS = "-march=x86-64-v3 -mtune=generic -O2"


@pytest.mark.parametrize(
    ("program", "told", "by_spack", "wanted"),
    [
        ("mpicost", "-O3 -DNDEBUG -std=c11", False, []),
        ("mpicost", "-O3 -DNDEBUG -std=c11 -I/opt/include -g", False, []),
        ("mpicost", "-march=native -O3 -DNDEBUG -std=c11", False, ["-march=native"]),
        ("mpicost", "-O3 -O2 -std=c11", False, ["-O2"]),  # the last one holds
        ("osu", USUAL_FLAGS, True, []),
        ("osu", TARGET_FLAGS, True, []),  # Spack builds for the processor that it finds
        ("osu", TARGET_FLAGS, False, ["-march=x86-64-v3"]),
        ("osu", f"{USUAL_FLAGS}; {USUAL_FLAGS} -flto -ffast-math", True, ["-flto", "-ffast-math"]),
        ("osu", "-O2 -Wl,-z,now -Wl,--wrap=MPI_Send", True, ["-Wl,-z,now", "-Wl,--wrap=MPI_Send"]),
        ("imb", "-g", False, ["no -O"]),
        ("imb", "-DNDEBUG -O2 -DUSE_SHORTCUT", False, ["-DUSE_SHORTCUT"]),
        ("imb", "unknown", False, None),
        ("mpicost", " ", False, None),
    ],
)
def test_changed_flags_are_found(program, told, by_spack, wanted) -> None:
    assert find_changed_flags(program, told, by_spack) == wanted


DATA_SHEET = ToldFacts(link_gbit_per_s=80.0, memory_gbyte_per_s=20.0)  # 10 and 20 GB/s


@pytest.mark.parametrize(
    ("routine", "per_node", "cache", "unit", "limits"),
    [
        ("bcast", 1, "evict", "s", {"light": 5e-8, "wire": 1e-4}),
        ("bcast", 1, "warm", "s", {"light": 5e-8, "wire": 1e-4}),
        ("bcast", 2, "evict", "s", {"light": 5e-9, "memory": 5e-5}),
        ("bcast", 2, "flush", "s", {"light": 5e-9, "memory": 5e-5}),
        ("bcast", 2, "warm", "s", {"light": 5e-9}),  # the caches may have it
        ("reduce_scatter_sum", 1, "evict", "s", {"light": 5e-8}),  # each receives a part
        ("bw", 1, "warm", "MB/s", {"wire": 10_000.0}),
        ("bibw", 1, "warm", "MB/s", {"wire": 20_000.0}),  # both ways at once
        ("bw", 2, "warm", "MB/s", {}),
    ],
)
def test_limits_are_those_of_the_way_that_the_bytes_take(routine, per_node, cache, unit, limits):
    one = case(routine, 1_000_000, per_node=per_node, cache=cache)
    found = list_speed_limits(one, unit, DATA_SHEET)
    assert {limit.what: limit.value for limit in found} == pytest.approx(limits)


def test_what_is_not_told_is_no_limit() -> None:
    one = case("bw", 1_000_000, per_node=1, cache="warm")
    assert list_speed_limits(one, "MB/s", ToldFacts()) == []


def test_a_time_is_broken_from_below_and_a_rate_from_above() -> None:
    (_, wire) = list_speed_limits(case("bcast", 1_000_000, per_node=1), "s", DATA_SHEET)
    (rate,) = list_speed_limits(case("bw", 1_000_000, per_node=1), "MB/s", DATA_SHEET)
    assert wire.is_broken(0.9e-4, "s") and not wire.is_broken(1.1e-4, "s")
    assert rate.is_broken(10_001.0, "MB/s") and not rate.is_broken(9_999.0, "MB/s")


@pytest.mark.parametrize(
    ("codes", "commands"),
    [
        ((), ["sheet offer"]),
        ((Code.LAUNCH_CRASHED,), ["sheet offer"]),  # only noted
        ((Code.FEW_LAUNCHES, Code.TOLD_MISSING), ["run rules.toml --output offer", "check offer"]),
        ((Code.BINDING_SHARED, Code.ROW_MISSING), ["run rules.toml --output offer", "check offer"]),
    ],
)
def test_each_end_of_a_measurement_has_its_next_step(codes: tuple[Code, ...], commands: list[str]):
    found = [Violation(code, "passes.jsonl", "as it is") for code in codes]
    run = ["./plumbline", "offer", "run", "rules.toml", "--output", "offer"]
    steps = list_next_steps(Path("offer"), found, run)
    assert [" ".join(words) for _, words in steps] == [f"./plumbline offer {command}" for command in commands]
