"""Format the self-test result: tables for a terminal, and the document of its pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from postprocess.base import formats
from postprocess.extensions.selftest import score
from postprocess.extensions.selftest.data import FinishedNight, SelftestHeader
from postprocess.report.document import Document, Lines, Role, Section, Tone, table_section
from postprocess.session.lifecycle.injections import INJECTION_KINDS

PAGE = "selftest.html"


def build_selftest_tables(scores: score.SelftestScores) -> list[formats.TextTable]:
    tables = [build_injection_table(scores.plants), build_false_alarm_table(scores)]
    return tables + ([build_falsely_called_table(scores.accused)] if scores.accused else [])


def build_injection_table(plants: Sequence[score.InjectionScore]) -> formats.TextTable:
    """Build the table of what Plumbline, and flat bands, caught of each injection."""
    columns: tuple[str, ...] = ("planted", "intended", "realised", "beside", "targets", "promised", "caught")
    columns += ("suspect", "cleared", "missed", "false alarms", *(f"flat {band:.0%}" for band in score.FLAT))
    notes = [
        "planted: nights and environments. realised, beside: slower than in unchanged nights, the median "
        "case that was delayed and the median one beside it. Targets, and what follows, are cases in nights. "
        "Promised: how many the bands and call limits should catch. suspect: slow again, but no more than "
        "other hours may bring; at a site the next night decides.",
        "false alarms: called regressed beside the plant, and not slowed. flat: what one launch and a flat "
        "band so much above the reference catch, with their false alarms, from the same data.",
    ]
    notes += list(describe_selftest_limits(plants))
    rows = tuple(
        (plant.name, INJECTION_KINDS[plant.name].words, *format_injection_cells(plant)) for plant in plants
    )
    return formats.TextTable("Planted", ("plant", "what"), columns, rows, tuple(notes))


def format_injection_cells(plant: score.InjectionScore) -> tuple[str, ...]:
    return (
        str(plant.plantings),
        *map(formats.format_signed, (plant.intended, plant.realised, plant.drifted)),
        str(plant.targets),
        f"{plant.promised:.1f}",
        *map(str, (plant.caught, plant.suspect, plant.cleared, plant.missed)),
        f"{plant.accused} of {plant.others}",
        *(f"{result.caught}, false {result.false}" for result in plant.flat),
    )


def describe_selftest_limits(plants: Iterable[score.InjectionScore]) -> Iterable[str]:
    for plant in plants:
        if not plant.worked:
            yield (
                f"{plant.name}: realised is {formats.format_signed(plant.realised)} "
                f"where {formats.format_signed(plant.intended)} was intended: "
                "what it missed says little of the night"
            )
        if plant.common:
            yield (
                f"{plant.name}: reported as one common cause in {plant.common} of "
                f"{formats.plural(plant.plantings, 'planting')}"
            )
        if INJECTION_KINDS[plant.name].calls < 1:
            yield (
                f"{plant.name}: the filter takes out half of them, and the rest is in the headline; "
                f"the median trial is slower by {formats.format_signed(plant.realised_median)}"
            )
        if not INJECTION_KINDS[plant.name].must_show:
            yield f"{plant.name}: most fresh launches are well, so that cleared is right"


def build_false_alarm_table(scores: score.SelftestScores) -> formats.TextTable:
    columns: tuple[str, ...] = ("nights", "cases", "beyond band", "predicted", "cleared", "suspect", "called")
    columns += ("predicted", "common cause", *(f"flat {band:.0%}" for band in score.FLAT))
    rows = []
    for name, quiet in (("nothing planted", scores.unchanged), ("beside a plant", scores.beside)):
        rows.append((name, "in all", *format_false_alarm_counts(quiet)))
        rows.append((name, "per 1000 cases and night", *format_false_alarm_rates(quiet)))
    return formats.TextTable("Not slowed", ("nights", "count"), columns, tuple(rows))


def format_false_alarm_counts(quiet: score.FalseAlarmScore) -> tuple[str, ...]:
    return (
        *map(str, (quiet.nights, quiet.cases, quiet.screened)),
        f"{quiet.screened_predicted:.3g}",
        *map(str, (quiet.cleared, quiet.suspect, quiet.regressed)),
        f"{quiet.regressed_predicted:.2g}",
        str(quiet.common),
        *(str(result.false) for result in quiet.flat),
    )


def format_false_alarm_rates(quiet: score.FalseAlarmScore) -> tuple[str, ...]:
    """Format the counts of false alarms per 1000 cases and night."""
    found: tuple[float, ...] = (quiet.screened, quiet.screened_predicted, quiet.cleared, quiet.suspect)
    found += (
        quiet.regressed,
        quiet.regressed_predicted,
        quiet.common,
        *(result.false for result in quiet.flat),
    )
    return (formats.NOT_PRINTED, formats.NOT_PRINTED, *(f"{quiet.per_thousand(value):.3g}" for value in found))


def build_falsely_called_table(accused: Sequence[score.FalselyCalledCase]) -> formats.TextTable:
    """Build the table of the cases that were called though nothing had slowed them, and of why."""
    columns = ("beside", "value", "band up to", "fresh values", "call limit", "common cause")
    rows = tuple(
        (
            f"night {case.night}",
            case.key,
            case.beside or formats.NOT_PRINTED,
            f"{case.slower:.3f}",
            f"{case.band:.3f}",
            ", ".join(f"{value:.3f}" for value in case.fresh) or formats.NOT_PRINTED,
            f"{case.call:.3f}" if case.call else formats.NOT_PRINTED,
            case.cause or formats.NOT_PRINTED,
        )
        for case in accused
    )
    note = "All values are multiples of the reference."
    return formats.TextTable("Called, and not slowed", ("night", "case"), columns, rows, (note,))


@dataclass(frozen=True)
class SelftestPage:
    """All that is shown and written of a self-test's result."""

    title: str
    scores: score.Outcome
    well: str  #: what is said if nothing is wrong
    told: Sequence[str]  #: what was measured
    tables: Sequence[formats.TextTable]
    facts: Mapping[str, Any]  #: beside the scores, for programs
    places: Sequence[str] = ()

    @property
    def text(self) -> str:
        lines = [f"FAULT: {fault}" for fault in self.scores.faults]
        lines += [f"UNFINISHED: {self.scores.unfinished}"] if self.scores.unfinished else []
        return "\n".join([*map(formats.render_text, self.tables), *(lines or [self.well])]) + "\n"

    @property
    def document(self) -> Document:
        """The same as pages."""
        faults = [*self.scores.faults, *filter(None, [self.scores.unfinished])]
        tone = Tone.BAD if self.scores.faults else Tone.FAIR if faults else Tone.GOOD
        sections = [table_section(table) for table in self.tables]
        sections.append(Section("Where", [Lines(Role.ITEM, self.places)]))
        headline = self.scores.word.capitalize()
        return Document(self.title, (), tone, headline, self.told, sections, (), self.data, faults)

    @property
    def data(self) -> dict[str, Any]:
        return {**self.facts, "scores": asdict(self.scores)}


def build_selftest_page(
    begun: SelftestHeader, nights: Sequence[FinishedNight], scores: score.SelftestScores
) -> SelftestPage:
    over = f" spread over {begun.spread:g} min" if begun.spread else ""
    seconds = sum(night.seconds for night in nights)
    return SelftestPage(
        "self-test",
        scores,
        "every plant that must be caught was",
        (
            f"Site {begun.site}, {len(nights)} nights{over}, {begun.references}; seed {begun.seed}.",
            "The library of delays is loaded into every launch, idle where nothing is planted.",
        ),
        build_selftest_tables(scores),
        {**asdict(begun), "nights": len(nights), "seconds": seconds},
        [
            f"{plant.name}: {formats.plural(plant.plantings, 'planting')} on {', '.join(plant.environments)}"
            for plant in scores.plants
        ],
    )
