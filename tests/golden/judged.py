"""Recorded files judged again: reports of ReFrame, comparisons, offers, acceptances, sweeps, the ledger."""

import contextlib
import io
from dataclasses import replace
from unittest import mock

from rich.console import Console

from postprocess.base.progress import Progress
from postprocess.calibration.ledger import append_launches
from postprocess.calibration.update import update_references
from postprocess.extensions.procurement.accept import judge_measured
from postprocess.extensions.procurement.commitments import Commitment, write_commitments
from postprocess.extensions.procurement.offer import RULES, open_offer
from postprocess.extensions.procurement.rules.rules import hash_rules
from postprocess.extensions.procurement.sealed import check_folder
from postprocess.features.compare import data
from postprocess.features.compare.measure.run import conclude
from postprocess.features.links.page import PAGE, build_links_document
from postprocess.model.session import Session
from postprocess.report.rendering import write_document
from postprocess.results.summary import load_summary
from site_configs.topology.machine import Machine
from tests.golden.numbers import show
from tests.golden.stage import Stage
from tests.support.factories.comparison import make_pass, write_comparison
from tests.support.factories.ledger import launch
from tests.support.factories.offer import DELIVERED, OFFICIAL, RULES_TEXT, make_offer
from tests.unit.postprocess.features.compare.test_dossier import BARRIER, BCAST, HEADER
from tests.unit.postprocess.features.links.test_text import EXACT, told_of
from tests.unit.postprocess.session.nightly import test_imported as imported

MACHINE = Machine("n1", "a processor", "6.1", 2, 2, 1, 2**34, ())


def play(stage: Stage) -> None:
    """Judge everything that is recorded."""
    report(stage)
    ledger(stage)
    comparison(stage)
    sweep(stage)
    offers(stage)


def ledger(stage: Stage) -> None:
    """Propose references of launches of three days, and of a fourth on which the machine was slower."""
    days = [launch(1e-6 * (1 + 0.01 * day), day) for day in (1, 2, 3)]
    append_launches(stage.home, "20261103T010000Z-1", days)
    told = stage.folder / "proposal.json"
    stage.run("propose", ["references", "propose", "--json", told], [told])
    update_references(stage.home / "references", days)
    append_launches(stage.home, "20261104T010000Z-1", [launch(2e-6, 4)])
    stage.run("propose-slower", ["references", "propose"])
    stage.run("recompute", ["references", "recompute"])
    stage.run("lint", ["lint", stage.home / "references"])
    for path in sorted((stage.home / "references").rglob("*.*")):
        stage.keep(path.name, path.read_text(encoding="utf-8"))


def report(stage: Stage) -> None:
    """Import what a site's own ReFrame ran: three launches that count, and a build that failed."""
    ran = [imported.ran(stage.folder / name, name) for name in ("one", "two", "six")]
    broken = imported.not_built(stage.folder / "build")
    path = imported.write(stage.folder / "report.json", *ran, *broken)
    told, other = stage.folder / "imported.json", stage.folder / "junit.xml"
    with mock.patch("postprocess.results.summary.read_machine", lambda: MACHINE):
        words = ["import", path, "--site", imported.SITE, "--json", told]
        stage.run("import", words, [told])
    (session,) = (stage.home / "sessions").glob("*")
    stage.keep("import.report.md", (session / "report.md").read_text(encoding="utf-8"))
    assert load_summary(session / "summary.json").results and not other.exists()
    stage.run("import-again", words)


def comparison(stage: Stage) -> None:
    """Judge pairs of which one case became a third slower, and one with wrong data."""
    folder = stage.folder / "comparison"
    passes = []
    for block in range(1, 7):
        for position, side in enumerate((data.OLD, data.NEW)):
            off = 1 + 0.001 * ((3 * block + 2 * position) % 5)
            slow = 1.33 if side == data.NEW else 1.0
            cases = {BCAST: data.CaseValue(1e-6 * off * slow, "s"), BARRIER: data.CaseValue(1e-6 * off, "s")}
            passes.append(make_pass(block, position, side, cases))
    write_comparison(folder / data.FILE, data.StoredComparison(HEADER, (6,), tuple(passes)))
    told = stage.folder / "comparison.json"
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = conclude(folder, progress(output), told)
    stage.keep("compare.txt", f"{output.getvalue()}--- exit status {status}\n")
    for page in sorted(folder.glob("comparison.*")):
        stage.keep(f"compare.{page.name}", page.read_text(encoding="utf-8"))


def sweep(stage: Stage) -> None:
    """Show a sweep with a slow node and a slow link."""
    folder = stage.folder / "links"
    folder.mkdir()
    told = told_of(replace(EXACT, slow_nodes={3: 1.9}, slow_pairs={(1, 6): 5.0}))
    session = Session(folder, "links", "local", ["./plumbline"], False)
    write_document(build_links_document(session, [told], ["n1 failed"], "2 findings"), folder / PAGE)
    for path in sorted(folder.glob("links.*")):
        stage.keep(f"links{path.suffix}", path.read_text(encoding="utf-8"))


def offers(stage: Stage) -> None:
    """Check an offer and its form, one whose launches differ, and hold what was delivered against it."""
    good = (1.0, 1.001, 1.002, 1.003, 1.004)
    folder = make_offer(stage.folder / "accept" / "offer", good)
    stage.run("offer-open", ["offer", "check", folder])
    rows = [
        Commitment(row.key.key, (max if row.unit == "s" else min)(row.values))
        for row in open_offer(folder).rows
    ]
    write_commitments(folder, hash_rules(folder / RULES), rows)
    stage.run("offer", ["offer", "check", folder])
    stage.run("offer-sheet", ["offer", "sheet", folder])
    for path in sorted(folder.glob("*.csv")):
        stage.keep(f"offer-{path.name}", path.read_text(encoding="utf-8"))
    rules = stage.folder / "new.toml"
    stage.run("offer-new", ["offer", "new", rules, "--set", "quick"], [rules])
    for name, slower in {"met": 1.0, "missed": 1.3}.items():
        place = stage.folder / name
        make_offer(place / "measured", [slower * value for value in good], RULES_TEXT, day=DELIVERED)
        checked = check_folder(folder, OFFICIAL, final=True)
        found, broken = judge_measured(checked, place, OFFICIAL)
        told = [show(row) for row in found.rows] + [str(violation) for violation in broken]
        stage.keep(f"accepted-{name}.txt", "".join(f"{line}\n" for line in told))


def progress(output: io.StringIO) -> Progress:
    """A progress that tells into a text."""
    return Progress(Console(file=output, width=80))
