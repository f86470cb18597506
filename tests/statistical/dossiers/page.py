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
            each.name,
            INJECTION_KINDS[each.name].words,
            *map(str, (each.dossiers, each.void)),
            *map(format_signed, (each.intended, each.realised)),
            str(each.targets),
            DASH if each.promised is None else f"{each.promised:.1f}",
            *map(str, (each.caught, each.undecided, each.missed, each.beyond)),
            *map(str, (each.waved, each.others, each.accused)),
        )
        for each in plants
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
            each.name,
            str(each.dossiers),
            DASH if each.accusing is None else str(each.accusing),
            DASH if each.accusing is None else f"{ERROR * each.dossiers:.1f}",
            str(each.cases),
            str(each.accused),
            str(each.verdicts.get(PairedVerdict.FASTER, 0)),
            *(format_percent(each.share(verdict)) for verdict in told),
        )
        for each in scores
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
        {**asdict(begun), "dossiers": done, "spent": sum(each.seconds for each in dossiers)},
    )
