"""Violations and forgeries of an offer: each is found by its code, and an honest offer has none."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.extensions.procurement.builds import OfferSources, find_changed_flags
from postprocess.extensions.procurement.command import list_next_steps
from postprocess.extensions.procurement.offer import PASSES, RULES, TELL, Patch, ToldFacts, open_offer
from postprocess.extensions.procurement.rules.rules import hash_rules
from postprocess.extensions.procurement.run_rules import check_offer, list_speed_limits
from postprocess.extensions.procurement.violations import Code, Violation, format_violations, is_rejected
from tests.support.factories import benchmark, record
from tests.support.factories.launch import case
from tests.support.factories.offer import (
    OFFICIAL,
    RULES_TEXT,
    add_pass,
    edit,
    edit_pass,
    edit_plan,
    edit_records,
    make_offer,
    session_of,
)
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

Forge = Callable[[Path], object]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_offer(tmp_path_factory.mktemp("honest") / "offer")


@pytest.fixture
def offer(honest: Path, tmp_path: Path) -> Path:
    """A copy to forge."""
    return shutil.copytree(honest, tmp_path / "offer")


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


def run(**changes: object) -> Forge:
    """Changes the run record of the first launch of mpicost."""
    return lambda folder: edit_records(folder, lambda records: records[0].update(changes))


def witness(**changes: object) -> Forge:
    return lambda folder: edit_records(folder, lambda records: records[0].update(changes), "osu")


def raw(pattern: str, change: Callable[[Path], object]) -> Forge:
    """Changes a file of the first pass."""
    return lambda folder: [change(path) for path in session_of(folder).glob(pattern)]


def built(old: str, new: str) -> Forge:
    """Changes what the first pass tells of the build of OSU."""
    return raw("programs/*/osu.json", lambda p: p.write_text(p.read_text().replace(old, new)))


def solved(**changes: object) -> Forge:
    """Changes what Spack's lock file of the first pass says of OSU."""

    def forge(path: Path) -> None:
        told = json.loads(path.read_text())
        told["concrete_specs"]["lwan"] |= changes
        path.write_text(json.dumps(told))

    return raw("programs/*/osu.lock", forge)


def diff(name: str) -> str:
    """A patch that adds a file."""
    return f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+int faster;\n"


def name_patch(program: str, patch: str | None) -> Forge:
    """Names a patch, and keeps it if there is one."""

    def forge(folder: Path) -> None:
        told = f'[[patch]]\nprogram = "{program}"\nfile = "a.patch"\ntext = "faster"\n'
        with (folder / TELL).open("a") as file:
            file.write(told)
        (folder / "patches").mkdir()
        if patch is not None:
            (folder / "patches" / "a.patch").write_text(patch)

    return forge


def with_patch(program: str, patch: str) -> Forge:
    """Measures by another source in a category that allows it, and names a patch."""

    def forge(folder: Path) -> None:
        name_patch(program, patch)(folder)
        for number in range(1, 6):
            edit_pass(folder, number, category="optimised")
        run(source_hash="f" * 16)(folder)

    return forge


def faster(folder: Path) -> None:
    """Takes a megabyte from every time of the first launch: the records stay whole."""

    quick = record.case_record("bcast", 1_000_000, scale=1e-7)
    edit_records(folder, lambda records: records.__setitem__(2, quick))


def light(folder: Path) -> None:
    quick = record.case_record("bcast", 8, scale=1e-9)
    edit_records(folder, lambda records: records.__setitem__(1, quick))


def on_two_nodes(folder: Path) -> None:
    """The same values, as if the two processes had a link between them."""
    faster(folder)
    for path in list(session_of(folder).rglob("*mpicost.2x2*")):
        path.rename(path.with_name(path.name.replace("2x2", "2x1")))
    edit_plan(folder, cases=tuple(case("bcast", size, per_node=1) for size in (8, 1_000_000)))
    run(**APART)(folder)


def print_zero(folder: Path) -> None:
    """OSU prints times below its last digit as 0.00."""
    zeros = benchmark.osu_text(rows={8: benchmark.allreduce_row(8, 0.0)})
    raw("raw/osu*.txt", lambda path: path.write_text(zeros))(folder)


def overdue(folder: Path) -> None:
    """Ended by ``timeout`` before the witness wrote its end."""
    edit_records(folder, lambda records: records.pop(), "osu")
    raw("raw/osu*.exit", lambda path: path.write_text("124\n"))(folder)


def drop_pass(folder: Path) -> None:
    """Hides a bad pass."""
    lines = (folder / PASSES).read_text().splitlines(keepends=True)
    (folder / PASSES).write_text("".join(lines[:2] + lines[3:]))
    shutil.rmtree(session_of(folder, 2))


def drop_and_renumber(folder: Path) -> None:
    """Hides a bad pass, and numbers those behind it anew."""
    drop_pass(folder)
    first, *lines = (folder / PASSES).read_text().splitlines()
    lines = [json.dumps(json.loads(line) | {"number": n}) for n, line in enumerate(lines, 1)]
    (folder / PASSES).write_text("".join(f"{line}\n" for line in (first, *lines)))


def drop_and_hash(folder: Path) -> None:
    """Hides a bad pass, and makes the hashes behind it right, but not the numbers."""
    drop_pass(folder)
    edit_pass(folder, 2)


def repeat_launch(folder: Path) -> None:
    """Hands in the first pass again as the second."""
    one, two = session_of(folder, 1), session_of(folder, 2)
    shutil.rmtree(two)
    shutil.copytree(one, two)


def wrong_data(folder: Path) -> None:
    edit_records(folder, lambda r: r.__setitem__(slice(None), record.receive_wrong_data(r, 1)))
    next((session_of(folder) / "raw").glob("*mpicost*.exit")).write_text("1\n")


OBJECT = [{"path": "/opt/fast.so", "text": "0123456789abcdef"}]
BOUND = [{"rank": rank, "host": "n1", "cpus": "0"} for rank in (0, 1)]
UNBOUND = [{"rank": rank, "host": "n1", "cpus": ""} for rank in (0, 1)]
HALF_BOUND = [*BOUND[:1], *UNBOUND[1:]]
NODES = [{"name": name, "ranks": 1} for name in ("n1", "n2")]
APART = {"hosts": NODES, "per_node": 1, "ranks": record.ranks_of(NODES)}
SLOW_TIMER = {"resolution": 0.004, "overhead": 0.0, "source": "jiffies"}
OTHER = {"set_env": {"mpich-5_0_2": {"MPIR_CVAR_X": "1"}}}
SIMULATED = {"partition": "cpu", "nodes": 1, "cores_per_node": 2, "exact": True}
ONE_CORE = {"partition": "cpu", "nodes": 1, "cores_per_node": 1}

# fmt: off
FORGERIES = (
    (plants("offers", "fewer launches", "rules of an offer", "", 1, "rules-other"),
     edit(RULES, "launches = 5", "launches = 3")),
    (plants("offers", "no name", "what a bidder states", "", 1, "told-missing"), edit(TELL, '"A"', '" "')),
    (plants("offers", "no link", "what a bidder states", "", 1, "told-missing"), edit(TELL, "200.0", "0.0")),
    (plants("offers", "no number", "what a bidder states", "", 1, "told-damaged"),
     edit(TELL, "200.0", '"fast"')),
    (plants("offers", "own category", "passes of an offer", "", 1, "category-unknown"),
     lambda f: edit_pass(f, category="tuned")),
    (plants("offers", "a variable", "passes of an offer", "", 1, "change-not-allowed"),
     lambda f: edit_pass(f, **OTHER)),
    (plants("offers", "a flag", "records of mpicost in an offer", "", 1, "change-not-allowed"),
     run(compiler_flags="-O3 -march=native -std=c11")),
    (plants("offers", "a flag of OSU", "build records of an offer", "", 1, "change-not-allowed"),
     built("-O2", "-O2 -ffast-math")),
    (plants("offers", "no flags", "build records of an offer", "", 0, "flags-unchecked"),
     built("-O2", "unknown")),
    (plants("offers", "a pass dropped", "passes of an offer", "", 1, "pass-taken-out"), drop_pass),
    (plants("offers", "a pass dropped, others renumbered", "passes of an offer", "", 1, "pass-taken-out"),
     drop_and_renumber),
    (plants("offers", "a pass dropped, hashes made right", "passes of an offer", "", 1, "pass-taken-out"),
     drop_and_hash),
    (plants("offers", "no files", "files of an offer", "", 1, "session-missing"),
     lambda f: shutil.rmtree(session_of(f))),
    (plants("offers", "files without a pass", "files of an offer", "", 1, "session-unlisted"),
     lambda f: (f / "sessions" / "x").mkdir()),
    (plants("offers", "half a plan", "plan of an offer", "", 1, "plan-damaged"),
     raw("plan/luecke*", lambda p: p.write_text("{"))),
    (plants("offers", "a pass repeated", "passes of an offer", "", 1, "launch-twice"), repeat_launch),
    (plants("offers", "an exit code", "records of mpicost in an offer", "", 1, "launch-crashed"),
     raw("raw/*mpicost*.exit", lambda p: p.write_text("139\n"))),
    (plants("offers", "no end", "records of mpicost in an offer", "", 1, "launch-crashed"),
     raw("raw/*mpicost*.exit", lambda p: p.unlink())),
    (plants("offers", "its time was up", "witness of OSU in an offer", "", 1, "launch-timeout"), overdue),
    (plants("offers", "no witness", "witness of OSU in an offer", "", 1, "not-finalised"),
     raw("raw/*.witness.jsonl", lambda p: p.unlink())),
    (plants("offers", "no end record", "witness of OSU in an offer", "", 1, "not-finalised"),
     lambda f: edit_records(f, lambda r: r.pop(), "osu")),
    (plants("offers", "a rank lacks", "witness of OSU in an offer", "", 1, "launch-incorrect"),
     lambda f: edit_records(f, lambda r: r[-1].update(arrived=1), "osu")),
    (plants("offers", "a trial", "records of mpicost in an offer", "", 1, "launch-incorrect"),
     lambda f: edit_records(f, lambda r: r[1]["t_max"].__setitem__(7, 1e-9))),
    (plants("offers", "a headline", "records of mpicost in an offer", "", 1, "launch-incorrect"),
     lambda f: edit_records(f, lambda r: r[1].update(headline=1e-7))),
    (plants("offers", "a case dropped", "records of mpicost in an offer", "", 1, "launch-incomplete"),
     lambda f: edit_records(f, lambda r: r.pop(1))),
    (plants("offers", "wrong data", "records of mpicost in an offer", "", 1, "data-wrong"), wrong_data),
    (plants("offers", "another token", "records of mpicost in an offer", "", 1, "records-foreign"),
     run(token="f" * 32)),
    (plants("offers", "no token asked for", "plan of an offer", "", 1, "records-foreign"),
     lambda f: edit_plan(f, token="")),
    (plants("offers", "another command", "records of mpicost in an offer", "", 1, "records-foreign"),
     run(command=["mpicost", "--cache=warm"])),
    (plants("offers", "another day", "records of mpicost in an offer", "", 1, "records-foreign"),
     run(date_utc="2026-11-20T09:00:00Z")),
    (plants("offers", "another MPI", "records of mpicost in an offer", "", 1, "mpi-other"),
     run(mpi_library="Open MPI v5.0.11")),
    (plants("offers", "another release", "records of mpicost in an offer", "", 1, "mpi-other"),
     run(mpi_library="MPICH Version: 5.0.21")),
    (plants("offers", "another MPI under OSU", "witness of OSU in an offer", "", 1, "mpi-other"),
     witness(mpi_library="Open MPI v5.0.11")),
    (plants("offers", "a process on each of two nodes",
            "records of mpicost in an offer", "", 1, "layout-other"),
     run(**APART)),
    (plants("offers", "called simulated", "plan of an offer", "", 1, "mpi-other"),
     lambda f: edit_plan(f, exact=True)),
    (plants("offers", "a machine called simulated", "passes of an offer", "", 1, "mpi-other"),
     lambda f: edit_pass(f, machine=SIMULATED)),
    (plants("offers", "other caches", "rules of an offer", "", 1, "cache-other"),
     edit(RULES, "schema = 1", 'schema = 1\ncache = "flush"')),
    (plants("offers", "two ranks on a core", "records of mpicost in an offer", "", 1, "binding-shared"),
     run(ranks=BOUND)),
    (plants("offers", "unbound", "records of mpicost in an offer", "", 0, "binding-unknown"),
     run(ranks=UNBOUND)),
    (plants("offers", "one rank unbound", "records of mpicost in an offer", "", 0, "binding-unknown"),
     run(ranks=HALF_BOUND)),
    (plants("offers", "a library in front", "records of mpicost in an offer", "", 1, "interposed"),
     run(interposed=OBJECT)),
    (plants("offers", "a library in front of OSU", "witness of OSU in an offer", "", 1, "interposed"),
     witness(interposed=OBJECT)),
    (plants("offers", "on one rank", "records of mpicost in an offer", "", 1, "ranks-differ"),
     run(interposed_elsewhere={"rank": 1, "interposed": OBJECT})),
    (plants("offers", "the delay library", "records of mpicost in an offer", "", 1, "delayed"),
     run(environment={"PLUMBLINE_DELAY_PLANTED": "1"})),
    (plants("offers", "another source", "records of mpicost in an offer", "", 1, "source-other"),
     run(source_hash="f" * 16)),
    (plants("offers", "another OSU", "build records of an offer", "", 1, "source-other"),
     built("official", "mirror")),
    (plants("offers", "no build", "build records of an offer", "", 1, "build-unknown"),
     raw("programs/*/osu.json", lambda p: p.unlink())),
    (plants("offers", "no build of mpicost", "build records of an offer", "", 1, "build-unknown"),
     raw("programs/*/mpicost.json", lambda p: p.unlink())),
    (plants("offers", "no lock", "lock file of Spack in an offer", "", 1, "build-unknown"),
     raw("programs/*/osu.lock", lambda p: p.unlink())),
    (plants("offers", "the lock of another build", "build records of an offer", "", 1, "build-unknown"),
     built("/lwan", "/kzen")),
    (plants("offers", "an OSU of the site", "build records of an offer", "", 0, "source-unchecked"),
     built("benchmarks/lwan", "site")),
    (plants("offers", "a recipe of one's own", "lock file of Spack in an offer", "", 1, "source-other"),
     solved(namespace="acme")),
    (plants("offers", "another commit", "lock file of Spack in an offer", "", 1, "source-other"),
     solved(parameters={"commit": "c" * 40})),
    (plants("offers", "a patch of the recipe", "lock file of Spack in an offer", "", 1, "source-other"),
     solved(patches=["a" * 64])),
    (plants("offers", "a patch named", "patches of an offer", "", 1, "patch-missing"),
     name_patch("mpicost", None)),
    (plants("offers", "an empty patch", "patches of an offer", "", 1, "patch-void"), name_patch("mpicost", "")),
    (plants("offers", "a patch in words", "patches of an offer", "", 1, "patch-void"),
     name_patch("mpicost", "+ faster")),
    (plants("offers", "a patch of something else", "patches of an offer", "", 1, "patch-void"),
     name_patch("mpicost", diff("docs/a.c"))),
    (plants("offers", "a patch of OSU's text", "patches of an offer", "", 1, "patch-void"),
     name_patch("osu", diff("README.md"))),
    (plants("offers", "another patch", "patches of an offer", "", 1, "patch-other"),
     with_patch("mpicost", diff("suite/src/a.c"))),
    (plants("offers", "fewer iterations of OSU", "rules of an offer", "", 1, "few-iterations"),
     edit(RULES, "osu = 200", "osu = 300")),
    (plants("offers", "rows of another family", "rules of an offer", "", 1, "row-missing"),
     edit(RULES, 'limit = "1 s"', 'limit = "1 s"\nmpi = "openmpi"')),
    (plants("offers", "fewer trials", "rules of an offer", "", 1, "few-iterations"),
     edit(RULES, "mpicost = 51", "mpicost = 99")),
    (plants("offers", "more are asked for", "rules of an offer", "", 1, "few-launches"),
     edit(RULES, "launches = 5", "launches = 6")),
    (plants("offers", "a value of 0.00 counts for none", "output of OSU in an offer", "", 1, "few-launches"),
     print_zero),
    (plants("offers", "a size more", "rules of an offer", "", 1, "row-missing"),
     edit(RULES, "bytes = [8, 1000000]", "bytes = [8, 64, 1000000]")),
    (plants("offers", "a machine too small", "rules of an offer", "", 1, "row-missing"),
     edit(RULES, 'nodes = "one"\nper_node = "two"\nlimit', 'nodes = "two"\nper_node = "two"\nlimit')),
    (plants("offers", "a larger machine", "passes of an offer", "", 1, "layout-not-asked"),
     lambda f: [edit_pass(f, number, machine=ONE_CORE) for number in range(1, 6)]),
    (plants("offers", "another family", "rules of an offer", "", 1, "family-missing"),
     edit(RULES, '["mpich"]', '["openmpi"]')),
    (plants("offers", "no kernel", "records of mpicost in an offer", "", 1, "facts-missing"), run(kernel="")),
    (plants("offers", "no processor", "records of mpicost in an offer", "", 1, "facts-missing"),
     run(cpu_model="")),
    (plants("offers", "another processor", "records of mpicost in an offer", "", 1, "machine-differs"),
     run(cpu_model="a faster one")),
    (plants("offers", "steps of 4 ms", "records of mpicost in an offer", "", 1, "clock-coarse"),
     run(timer=SLOW_TIMER)),
    (plants("offers", "a busy machine", "passes of an offer", "", 0, "machine-busy"),
     lambda f: edit_pass(f, others=0.5)),
    (plants("offers", "time goes back", "passes of an offer", "", 1, "clock-backwards"),
     lambda f: edit_pass(f, 3, began_utc="2026-11-21T09:01:00Z")),
    (plants("offers", "ended before it began", "passes of an offer", "", 1, "clock-backwards"),
     lambda f: edit_pass(f, 5, ended_utc="2026-11-21T09:04:59Z")),
    (plants("offers", "faster than light", "records of mpicost in an offer", "", 1, "faster-than-light"),
     light),
    (plants("offers", "faster than its links", "records of mpicost in an offer", "", 1, "faster-than-wire"),
     on_two_nodes),
    (plants("offers", "faster than memory", "records of mpicost in an offer", "", 1, "faster-than-memory"),
     faster),
)
# fmt: on


@pytest.mark.parametrize(
    "forge", [pytest.param(forge, marks=mark, id=mark.args[0].planted) for mark, forge in FORGERIES]
)
def test_a_forgery_is_found_by_its_code(offer: Path, forge: Forge, declared: Declared) -> None:
    forge(offer)
    found = check_offer(open_offer(offer), OFFICIAL)
    told = [violation.code.word for violation in found if violation.code.word == declared.fault.message]
    declared.check((), int(is_rejected(found)), told)


def test_the_same_core_of_two_nodes_is_not_shared(offer: Path) -> None:
    on_two_nodes(offer)
    run(ranks=[{"rank": rank, "host": f"n{rank + 1}", "cpus": "0"} for rank in (0, 1)])(offer)
    assert "binding-shared" not in codes(offer)


def test_every_code_has_a_forgery_and_is_documented() -> None:
    """Codes of the form, the seal and the protocol have their tests beside those of what they are about."""
    words = {each.word: each for each in Code}
    forged = {words[mark.args[0].message] for mark, _ in FORGERIES}
    elsewhere = {Code.RULES_OLDER, *list(Code)[list(Code).index(Code.FORM_MISSING) :]}
    assert forged | elsewhere == set(Code) and len(forged) >= 30
    told = (ROOT / "docs" / "procurement.md").read_text()
    assert not [code.word for code in Code if f"`{code.word}`" not in told]


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
