"""The result of a self-test of ``compare``: tables for a terminal, Markdown, JSON."""

from collections.abc import Sequence
from dataclasses import asdict

from postprocess.base.formats import DASH, TextTable, format_percent, format_signed, plural
from postprocess.extensions.selftest.page import SelftestPage
from postprocess.session.lifecycle.injections import INJECTION_KINDS
from postprocess.stats.paired_verdicts import ERROR, PairedVerdict
from tests.statistical.dossiers.schedule import DossiersHeader, FinishedDossier
from tests.statistical.dossiers.score import DossierScores, PlantedScore, UnchangedScore


def build_dossier_tables(scores: DossierScores) -> list[TextTable]:
    tables = [build_plant_table(scores.plants), build_unchanged_table(scores.unchanged)]
    if scores.accused:
        rows = tuple((f"dossier {number}", key, f"{ratio:.3f}") for number, key, ratio in scores.accused)
        columns = ("times as slow",)
        tables.append(TextTable("Called slower, and not slowed", ("dossier", "case"), columns, rows))
    return tables


def build_plant_table(plants: Sequence[PlantedScore]) -> TextTable:
    columns = ("dossiers", "void", "intended", "realised", "targets", "promised", "caught")
    columns += ("undecided", "missed", "beyond margin", "waved through", "beside", "falsely called")
    rows = tuple(
        (
            plant.name,
            INJECTION_KINDS[plant.name].words,
            *map(str, (plant.dossiers, plant.void)),
            *map(format_signed, (plant.intended, plant.realised)),
            str(plant.targets),
            DASH if plant.promised is None else f"{plant.promised:.1f}",
            *map(str, (plant.caught, plant.undecided, plant.missed, plant.beyond)),
            *map(str, (plant.waved, plant.others, plant.accused)),
        )
        for plant in plants
    )
    notes = (
        "Targets, and what follows, are cases in dossiers; void dossiers, whose controls without MPI moved, "
        "are left out. Realised: ratio of the median target. Promised: how many the scatter of their pairs "
        "lets the last look catch. Caught: called slower. Missed: proven not slower.",
        f"Waved through: proven not worse, of those that are slower by more than their margin; {ERROR:.0%} of "
        "them may be. Falsely called: called slower, of the cases beside the plant.",
    )
    return TextTable("Planted", ("plant", "what"), columns, rows, notes)


def build_unchanged_table(scores: Sequence[UnchangedScore]) -> TextTable:
    """Build the table of what the rules said of cases that nothing had slowed."""
    columns = ("dossiers", "calling any slower", "allowed", "cases", "slower", "faster")
    columns += ("same", "not slower", "undecided")
    told = (PairedVerdict.SAME, PairedVerdict.NOT_SLOWER, PairedVerdict.UNDECIDED)
    rows = tuple(
        (
            score.name,
            str(score.dossiers),
            DASH if score.accusing is None else str(score.accusing),
            DASH if score.accusing is None else f"{ERROR * score.dossiers:.1f}",
            str(score.cases),
            str(score.accused),
            str(score.verdicts.get(PairedVerdict.FASTER, 0)),
            *(format_percent(score.share(verdict)) for verdict in told),
        )
        for score in scores
    )
    note = (
        f"allowed: {ERROR:.0%} of the dossiers. Beside a plant, {ERROR:.0%} of all cases called slower may be "
        "wrongly so."
    )
    return TextTable("Not slowed", ("cases",), columns, rows, (note,))


def build_dossier_page(
    begun: DossiersHeader, dossiers: Sequence[FinishedDossier], scores: DossierScores
) -> SelftestPage:
    """Build what is shown of a self-test of ``compare``."""
    done, budget = len(dossiers), f" of {begun.seconds} s at most" if begun.seconds else ""
    return SelftestPage(
        "self-test of compare",
        scores,
        "all that is promised was kept",
        (
            f"Site {begun.site}, {plural(done, 'dossier')}{budget}, {scores.void} void; seed {begun.seed}.",
            "Each holds an MPI against itself; the library of delays is loaded on both sides.",
        ),
        build_dossier_tables(scores),
        {**asdict(begun), "dossiers": done, "spent": sum(dossier.seconds for dossier in dossiers)},
    )
