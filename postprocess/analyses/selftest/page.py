"""Format the self-test result: tables for a terminal, Markdown, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from postprocess.analyses.selftest.data import Begun, NightDone
from postprocess.analyses.selftest.injections import PLANTS
from postprocess.analyses.selftest.result import PlantScore, Quiet, Scores
from postprocess.analyses.selftest.score import FLAT
from postprocess.base.formats import plural, signed
from postprocess.base.text_table import NOT_PRINTED, Sheet, text
from postprocess.base.text_table import markdown as as_markdown
from postprocess.report import templating

MARKDOWN, JSON = "selftest.md", "selftest.json"


def sheets(scores: Scores) -> list[Sheet]:
    """The tables."""
    return [plants_sheet(scores.plants), quiet_sheet(scores)]


def plants_sheet(plants: Sequence[PlantScore]) -> Sheet:
    """What was caught of each plant, by Plumbline and by flat bands."""
    columns = (
        "planted",
        "intended",
        "realised",
        "beside",
        "targets",
        "promised",
        "caught",
        "cleared",
    )
    columns += ("missed", "accused", *(f"flat {band:.0%}" for band in FLAT))
    notes = [
        "planted: nights and environments. realised, beside: slower than in unchanged nights, the median "
        "case that was delayed and the median one beside it. Targets, and what follows, are cases in nights. "
        "Promised: how many the site's own bands should catch.",
        "accused: called regressed beside the plant, and not slowed. flat: what one launch and a flat band so "
        "much above the reference catch and accuse, from the same data.",
    ]
    notes += list(remarks(plants))
    rows = tuple((plant.name, PLANTS[plant.name].words, *cells(plant)) for plant in plants)
    return Sheet("Planted", ("plant", "what"), columns, rows, tuple(notes))


def cells(plant: PlantScore) -> tuple[str, ...]:
    """The numbers of one plant."""
    return (
        str(plant.plantings),
        signed(plant.intended),
        signed(plant.realised),
        signed(plant.drifted),
        str(plant.targets),
        f"{plant.promised:.1f}",
        str(plant.caught),
        str(plant.cleared),
        str(plant.missed),
        f"{plant.accused} of {plant.others}",
        *(f"{each.caught}, accused {each.false}" for each in plant.flat),
    )


def remarks(plants: Iterable[PlantScore]) -> Iterable[str]:
    """What the numbers alone do not tell."""
    for plant in plants:
        if not plant.worked:
            yield (
                f"{plant.name}: realised is {signed(plant.realised)} where {signed(plant.intended)} was "
                "intended: what it missed says little of the night"
            )
        if plant.common:
            yield (
                f"{plant.name}: told as one common cause in {plant.common} of "
                f"{plural(plant.plantings, 'planting')}"
            )
        if plant.name == "spikes":
            yield (
                "spikes: the filter takes out half of them, and the rest is in the headline; the median trial "
                f"is slower by {signed(plant.realised_median)}"
            )
        if not PLANTS[plant.name].must_show:
            yield f"{plant.name}: most fresh launches are well, so that cleared is right"


def quiet_sheet(scores: Scores) -> Sheet:
    """How often nothing was taken for something."""
    columns = ("nights", "cases", "screened", "predicted", "cleared", "regressed", "predicted")
    columns += ("common cause", *(f"flat {band:.0%}" for band in FLAT))
    rows = []
    for name, quiet in (("nothing planted", scores.unchanged), ("beside a plant", scores.beside)):
        rows.append((name, "in all", *numbers(quiet)))
        rows.append((name, "per 1000 cases and night", *shares(quiet)))
    return Sheet("Not slowed", ("nights", "count"), columns, tuple(rows))


def numbers(quiet: Quiet) -> tuple[str, ...]:
    """Counts and predictions."""
    return (
        str(quiet.nights),
        str(quiet.cases),
        str(quiet.screened),
        f"{quiet.screened_predicted:.3g}",
        str(quiet.cleared),
        str(quiet.regressed),
        f"{quiet.regressed_predicted:.2g}",
        str(quiet.common),
        *(str(each.false) for each in quiet.flat),
    )


def shares(quiet: Quiet) -> tuple[str, ...]:
    """The same per 1000 cases and night."""
    found = (quiet.screened, quiet.screened_predicted, quiet.cleared, quiet.regressed)
    found += (quiet.regressed_predicted, quiet.common, *(each.false for each in quiet.flat))
    return (NOT_PRINTED, NOT_PRINTED, *(f"{quiet.per_thousand(each):.3g}" for each in found))


def as_text(scores: Scores) -> str:
    """All for a terminal."""
    lines = [f"FAULT: {fault}" for fault in scores.faults]
    lines += [f"UNFINISHED: {scores.unfinished}"] if scores.unfinished else []
    lines = lines or ["every plant that must be caught was"]
    return "\n".join([*map(text, sheets(scores)), *lines]) + "\n"


def write(directory: Path, begun: Begun, nights: Sequence[NightDone], scores: Scores) -> Path:
    """Write ``selftest.md`` and ``selftest.json`` beside the rows; the path of the first.

    :raises UsageError: if they cannot be written.
    """
    page = directory / MARKDOWN
    data = {
        **asdict(begun),
        "nights": len(nights),
        "seconds": sum(night.seconds for night in nights),
        "scores": asdict(scores),
    }
    told = markdown(begun, nights, scores)
    templating.write({page: told, directory / JSON: json.dumps(data, indent=1) + "\n"})
    return page


def markdown(begun: Begun, nights: Sequence[NightDone], scores: Scores) -> str:
    """All as Markdown."""
    done = len(nights)
    word = "passed" if scores.passed else "FAILED" if scores.faults else "unfinished"
    lines = [f"# Self-test: {word}", ""]
    lines += [f"Site {begun.site}, {done} nights, {begun.references}; seed {begun.seed}.", ""]
    lines += [f"- {each}" for each in (*scores.faults, scores.unfinished) if each]
    for sheet in sheets(scores):
        lines += ["", f"## {sheet.title}", "", as_markdown(sheet)]
    lines += ["## Where", ""]
    lines += [
        f"- {plant.name}: {plural(plant.plantings, 'planting')} on {', '.join(plant.environments)}"
        for plant in scores.plants
    ]
    lines += [""]
    accused = sorted({key for plant in scores.plants for key in plant.accused_keys})
    lines += ["## Accused beside a plant", "", *(f"- {key}" for key in accused or ["nothing"])]
    return "\n".join(lines) + "\n"
