"""Pages of what is made up: guidelines, agreement, history, an acceptance, offers side by side, a form."""

from dataclasses import replace
from pathlib import Path

from postprocess.extensions.agreement.command import format_agreement
from postprocess.extensions.agreement.compare import Gap
from postprocess.extensions.agreement.report import PAGE as AGREEMENT
from postprocess.extensions.agreement.report import build_agreement_document
from postprocess.extensions.procurement.accept import judge_measured
from postprocess.extensions.procurement.commitments import Commitment, write_commitments
from postprocess.extensions.procurement.comparison import (
    OfferedValue,
    RankedOffer,
    compare_offers,
    write_comparison,
)
from postprocess.extensions.procurement.judge import JudgedLinks
from postprocess.extensions.procurement.offer import RULES, open_offer
from postprocess.extensions.procurement.protocol import Parties, render_protocol
from postprocess.extensions.procurement.rules.rules import hash_rules
from postprocess.extensions.procurement.sealed import check_folder
from postprocess.extensions.procurement.violations import Code, Violation
from postprocess.features.compare.history import judge_history
from postprocess.features.compare.history_page import format_history_text, write_history
from postprocess.features.guidelines.judge import judge_guidelines, judge_overrides
from postprocess.features.guidelines.text import PAGE as GUIDELINES
from postprocess.features.guidelines.text import GuidelineResult, build_guideline_document, format_guidelines
from postprocess.model.session import Session
from postprocess.report.rendering import write_document
from postprocess.stats.acceptance import RowVerdict
from tests.golden.stage import Stage
from tests.support.factories.offer import DELIVERED, OFFICIAL, RULES_TEXT, make_offer
from tests.unit.postprocess.extensions.agreement.test_report import TOPIC, opinions
from tests.unit.postprocess.extensions.procurement.test_rank_papers import PRESENT, luecke, times
from tests.unit.postprocess.features.compare.test_history import CONTROL, STEADY, STEPPING, measure
from tests.unit.postprocess.features.guidelines.test_judge import effect, launches

#: Something on every page is hostile: markup, what Markdown would obey, and what a terminal would.
HOSTILE = "<b>x</b> | `y` **z** [a](http://b) \x1b[31m"
FACTORS = (1.0, 1.001, 1.002, 1.003, 1.004)  #: by which launches differ


def play(stage: Stage) -> None:
    """Write every page, and what the terminal shows beside it."""
    guidelines(stage)
    agreement(stage)
    history(stage)
    offers(stage)
    acceptance(stage)


def session_in(stage: Stage, name: str) -> Session:
    """A session with a folder of its own, at a site that nobody should have called so."""
    folder = stage.folder / name
    folder.mkdir()
    return Session(folder, name, HOSTILE, ["./plumbline"], False)


def keep_pages(stage: Stage, page: Path) -> None:
    """Keep a page and what was written beside it."""
    for path in sorted(page.parent.glob(f"{page.stem}.*")):
        stage.keep(path.name, path.read_text(encoding="utf-8"))


def guidelines(stage: Stage) -> None:
    """A violated guideline, with a setting that helps and an operation for which none does."""
    overrides = judge_overrides([effect(2.0), replace(effect(1), gains=(), setting="")], exact=False)
    found = GuidelineResult(
        tuple(judge_guidelines(launches(1.3))), tuple(overrides), (f"failed: {HOSTILE}",), ("n1 is busy",)
    )
    session = session_in(stage, "guidelines")
    document = build_guideline_document(session, found)
    keep_pages(stage, write_document(document, session.directory / GUIDELINES))
    stage.keep("guidelines.txt", format_guidelines(found))


def agreement(stage: Stage) -> None:
    """Three programs of which one is wrong, and one that lacks many cases."""
    gaps = tuple(Gap(replace(TOPIC, bytes=8 << n), "osu", HOSTILE) for n in range(9))
    found = replace(opinions(), gaps=gaps)
    session = session_in(stage, "agreement")
    document = build_agreement_document(session, found, [f"osu crashed: {HOSTILE}"])
    keep_pages(stage, write_document(document, session.directory / AGREEMENT))
    stage.keep("agreement.txt", format_agreement(found, ["osu crashed"]))


def history(stage: Stage) -> None:
    """Four versions: a case steps twice and crashes with one version, another does not, nor does a control."""
    steady = (1, 1, 1, 1)
    stored = measure({STEPPING: (1, None, 1.3, 1.1), STEADY: steady, CONTROL: steady})
    judged = judge_history(replace(stored, header=replace(stored.header, left_out={"mpich@3.4.3": HOSTILE})))
    folder = stage.folder / "history"
    folder.mkdir()
    keep_pages(stage, write_history(folder, judged))
    stage.keep("history.txt", format_history_text(judged))


def offers(stage: Stage) -> None:
    """Two offers side by side, of which one lacks rows and one shares a launch."""
    offered = [
        RankedOffer(
            name,
            violations,
            {
                place: OfferedValue("s", value, value / 2, f"mpi-of-{name}", "baseline")
                for place, value in times(machine).items()
                if machine == "myrinet" or place[0] != "bcast"
            },
        )
        for name, machine, violations in (("good", "myrinet", 0), (HOSTILE, "ethernet", 2))
    ]
    found = replace(compare_offers(luecke(), offered, times(PRESENT)), shared=(f"shared: {HOSTILE}",))
    keep_pages(stage, write_comparison(stage.folder / "offers", found))


def acceptance(stage: Stage) -> None:
    """An offer with its form; what was delivered keeps all rows, keeps none, or broke a run rule."""
    place = stage.folder / "acceptance"
    folder = make_offer(place / "offer", FACTORS)
    rows = [Commitment(row.key.key, max(row.values)) for row in open_offer(folder).rows]
    write_commitments(folder, hash_rules(folder / RULES), rows)
    stage.run("offer-form", ["offer", "sheet", folder], [folder / "offer.html"])
    links = JudgedLinks("must", RowVerdict.UNDECIDED, 3, 2, ("node n3",), (HOSTILE,))
    broken = Violation(Code.TOLD_MISSING, HOSTILE, "system")
    parties = Parties(HOSTILE, "root", "SHA256:one", "SHA256:one")
    for name, slower in {"met": 1.0, "missed": 1.3}.items():
        where = place / name
        make_offer(where / "measured", [slower * factor for factor in FACTORS], RULES_TEXT, day=DELIVERED)
        checked = check_folder(folder, OFFICIAL, final=True)
        found, violations = judge_measured(checked, where, OFFICIAL)
        if name == "missed":
            found, violations = replace(found, links=links), [*violations, broken]
        measured = open_offer(where / "measured")
        for file, text in render_protocol(checked.offer, measured, parties, found, violations).items():
            stage.keep(f"{name}.{file}", text)
