"""Forge offers: each function changes one thing that a bidder hands in."""

import json
from collections.abc import Callable
from pathlib import Path

from postprocess.extensions.procurement.offer import TELL
from tests.support.factories import record
from tests.support.factories.launch import case
from tests.support.factories.offer import edit_pass, edit_plan, edit_records, session_of

Forge = Callable[[Path], object]


def run(**changes: object) -> Forge:
    """Change the run record of the first launch of mpicost."""
    return lambda folder: edit_records(folder, lambda records: records[0].update(changes))


def witness(**changes: object) -> Forge:
    return lambda folder: edit_records(folder, lambda records: records[0].update(changes), "osu")


def raw(pattern: str, change: Callable[[Path], object]) -> Forge:
    """Change a file of the first pass."""
    return lambda folder: [change(path) for path in session_of(folder).glob(pattern)]


def built(old: str, new: str) -> Forge:
    """Change what the first pass records of the build of OSU."""
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


NODES = [{"name": name, "ranks": 1} for name in ("n1", "n2")]


APART = {"hosts": NODES, "per_node": 1, "ranks": record.ranks_of(NODES)}
