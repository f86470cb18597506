"""Each forgery of an offer is found by its code, and every code has one."""

import json
import shutil
from pathlib import Path

import pytest

from postprocess.extensions.procurement.offer import PASSES, RULES, TELL, open_offer
from postprocess.extensions.procurement.run_rules import check_offer
from postprocess.extensions.procurement.violations import Code, is_rejected
from tests.support.factories import benchmark, record
from tests.support.factories.forgery import (
    APART,
    Forge,
    built,
    diff,
    faster,
    light,
    name_patch,
    on_two_nodes,
    raw,
    run,
    solved,
    with_patch,
    witness,
)
from tests.support.factories.offer import OFFICIAL, edit, edit_pass, edit_plan, edit_records, session_of
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT


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
SLOW_TIMER = {"resolution": 0.004, "overhead": 0.0, "source": "jiffies"}
OTHER = {"set_env": {"mpich-5_0_2": {"MPIR_CVAR_X": "1"}}}
SIMULATED = {"partition": "cpu", "nodes": 1, "cores_per_node": 2, "exact": True}
ONE_CORE = {"partition": "cpu", "nodes": 1, "cores_per_node": 1}


# fmt: off
FORGERIES = (
    (plants("offers", "fewer launches", "rules of an offer", "", 1, "rules-other"),
     edit(RULES, "launches = 5", "launches = 3")),
    (plants("offers", "no name", "what a bidder tells", "", 1, "told-missing"), edit(TELL, '"A"', '" "')),
    (plants("offers", "no link", "what a bidder tells", "", 1, "told-missing"), edit(TELL, "200.0", "0.0")),
    (plants("offers", "no number", "what a bidder tells", "", 1, "told-damaged"),
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


def test_every_code_has_a_forgery_and_is_documented() -> None:
    """Codes of the form, the seal and the protocol have their tests beside those of what they are about."""
    words = {each.word: each for each in Code}
    forged = {words[mark.args[0].message] for mark, _ in FORGERIES}
    elsewhere = {Code.RULES_OLDER, *list(Code)[list(Code).index(Code.FORM_MISSING) :]}
    assert forged | elsewhere == set(Code) and len(forged) >= 30
    told = (ROOT / "docs" / "procurement.md").read_text()
    assert not [code.word for code in Code if f"`{code.word}`" not in told]
