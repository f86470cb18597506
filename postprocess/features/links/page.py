"""The page of a sweep: what was found, and heat maps of all pairs; the same as JSON for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import count, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from postprocess.base.formats import size
from postprocess.base.sanitize import sanitize_line
from postprocess.features.links import detect
from postprocess.features.links.data import PairSweep
from postprocess.features.links.detect import Matrix, SweepAnalysis
from postprocess.features.links.text import LinkFinding
from postprocess.model.session import Session
from postprocess.report import document

#: Ratios at which the next colour begins, the colour's name, and what the legend says of it.
STEPS = (
    (0.0, "fast", "below 0.9"),
    (0.9, "even", "0.9 to 1.1"),
    (1.1, "slow1", "to 1.25"),
    (1.25, "slow2", "to 1.5"),
    (1.5, "slow3", "to 2"),
    (2.0, "slow4", "to 4"),
    (4.0, "slow5", "above 4"),
)
HOW_TO_READ = (
    "A colour is the time of a pair over what the faster of its two nodes needs with its median partner.",
    f"What is compared are medians and means of the trials of a launch, {document.NOT_STEADY}. Nodes and links "
    "are compared with each other, not with yesterday: what slows all of them alike is not seen here, nor a "
    "cable over which most nodes reach some partner.",
    "A node is slow if it is so with nearly all of its partners; a link if the pair is slower than the worst "
    "pair of ordinary nodes; both in every launch. A node that is alone on a far switch looks slow too, unless "
    "--nodes-per-switch is given.",
    "p-values are multiplied by all that was looked at: of a hundred sweeps of a healthy machine at most one "
    "names anything.",
)
MISSING = -1
SIDE = 520  #: of the square of all cells, in CSS pixels, as far as cells are not too large or small
LARGEST_CELL, SMALLEST_CELL = 30, 2
LETTER = 6.2  #: width of a letter of a node's name
LINE = 11  #: height of a name: more do not fit
ROOM = 8  #: around a mark
LEAST_FRAME = 6  #: width of the frame around a row: what it marks must be seen in it
_numbers = count()


@dataclass(frozen=True, eq=False)
class PairHeatMap:
    """The data of a heat map. ``ratios``: (nodes, nodes), nan where nothing was measured."""

    title: str
    nodes: Sequence[str]
    ratios: Matrix
    slow_nodes: Sequence[int] = ()
    slow_pairs: Sequence[tuple[int, ...]] = ()


def draw_heat_map(shown: PairHeatMap) -> str:
    """Draw one ``<svg>`` element that fetches nothing; its classes are those of ``links.css``."""
    names = [sanitize_line(name) for name in shown.nodes]
    number = len(names)
    cell = min(max(SIDE / number, SMALLEST_CELL), LARGEST_CELL)
    edge = 14 + LETTER * min(max(map(len, names)), 16)
    side = edge + cell * number + ROOM
    hatch = f"hatch-{next(_numbers)}"
    body = [
        f'<defs><pattern id="{hatch}" width="6" height="6" patternUnits="userSpaceOnUse">'
        '<path class="hatch" d="M0 6L6 0"/></pattern></defs>',
        f'<g transform="translate({edge:.1f} {edge:.1f})">',
        *draw_cells(shown.ratios, cell, hatch),
        f'<rect class="frame" width="{cell * number:.2f}" height="{cell * number:.2f}"/>',
        *draw_marks(shown, cell),
        *draw_labels(names, {*shown.slow_nodes, *np.ravel(shown.slow_pairs).astype(int)}, cell),
        "</g>",
    ]
    spoken = escape(sanitize_line(f"{shown.title}: {describe_heat_map(shown, names)}"))
    start = f'<svg viewBox="0 0 {side:.0f} {side:.0f}" width="{side:.0f}" role="img" aria-label="{spoken}">'
    return start + "".join(body) + "</svg>"


def describe_heat_map(shown: PairHeatMap, names: Sequence[str]) -> str:
    """Describe a heat map in words, for those who cannot see it."""
    marked = [names[node] for node in shown.slow_nodes]
    marked += ["-".join(names[node] for node in pair) for pair in shown.slow_pairs[:20]]
    return f"all pairs of {len(names)} nodes; marked: {', '.join(marked) or 'nothing'}"


def assign_colour_steps(ratios: Matrix) -> NDArray[np.int64]:
    """Assign the colour of each cell by its number, ``MISSING`` where there is no ratio."""
    limits = [least for least, _, _ in STEPS[1:]]
    return np.where(np.isnan(ratios), MISSING, np.searchsorted(limits, ratios, side="right"))


def draw_cells(ratios: Matrix, cell: float, hatch: str) -> Iterator[str]:
    """Draw one path for each colour. The diagonal is left empty."""
    parts: dict[int, list[str]] = {}
    for row, colours in enumerate(assign_colour_steps(ratios)):
        column = 0
        for colour, same in groupby(colours):
            length = len(list(same))
            parts.setdefault(int(colour), []).append(
                f"M{column * cell:.4g} {row * cell:.4g}h{length * cell:.4g}v{cell:.4g}H{column * cell:.4g}z"
            )
            column += length
    for colour, found in sorted(parts.items()):
        how = f'fill="url(#{hatch})"' if colour == MISSING else f'class="{STEPS[colour][1]}"'
        yield f'<path {how} d="{"".join(found)}"/>'
    for place in range(len(ratios)):
        at = f"{place * cell:.4g}"
        yield f'<rect class="self" x="{at}" y="{at}" width="{cell:.4g}" height="{cell:.4g}"/>'


def draw_marks(shown: PairHeatMap, cell: float) -> Iterator[str]:
    """Draw a frame around the row and the column of a slow node, and around both cells of a slow pair."""
    whole, away = cell * len(shown.nodes), max(0.0, (LEAST_FRAME - cell) / 2)
    for node in shown.slow_nodes:
        at, across = node * cell - away, cell + 2 * away
        yield f'<rect class="mark" x="0" y="{at:.4g}" width="{whole:.4g}" height="{across:.4g}"/>'
        yield f'<rect class="mark" x="{at:.4g}" y="0" width="{across:.4g}" height="{whole:.4g}"/>'
    room = max(0.0, (ROOM - cell) / 2)
    for pair in shown.slow_pairs:
        for row, column in (pair, pair[::-1]):
            x, y, size = column * cell - room, row * cell - room, cell + 2 * room
            yield f'<rect class="mark" x="{x:.4g}" y="{y:.4g}" width="{size:.4g}" height="{size:.4g}"/>'


def draw_labels(names: Sequence[str], marked: set[int], cell: float) -> Iterator[str]:
    """Draw names on both axes, as many as fit: those that are marked before the others."""
    for place in sorted(choose_label_positions(len(names), marked, cell)):
        middle = (place + 0.5) * cell
        how = ' class="named"' if place in marked else ""
        name = escape(names[place] if len(names[place]) <= 16 else names[place][:15] + "…")
        yield f'<text{how} x="-6" y="{middle + 3.5:.1f}" text-anchor="end">{name}</text>'
        yield f'<text{how} transform="translate({middle + 3.5:.1f} -6) rotate(-90)">{name}</text>'


def choose_label_positions(number: int, marked: set[int], cell: float) -> set[int]:
    """Choose the places that get a label: none nearer than ``LINE`` to another."""
    every = max(1, int(np.ceil(LINE / cell)))
    chosen: list[int] = []
    for place in [*sorted(marked), *range(0, number, every)]:
        if all(abs(place - other) * cell >= LINE for other in chosen):
            chosen.append(place)
    return set(chosen)


PAGE = "links.html"


@dataclass(frozen=True)
class SweepReport:
    """A sweep with its analysis, findings and remarks."""

    sweep: PairSweep
    analysis: SweepAnalysis
    findings: Sequence[LinkFinding]
    remarks: Sequence[str]

    @property
    def title(self) -> str:
        return f"{self.sweep.partition}, {self.sweep.environment}"


def build_links_document(
    session: Session, told: Sequence[SweepReport], failures: Sequence[str], headline: str
) -> document.Document:
    """Build what the pages say: for each sweep what stands out, with a heat map of each measure."""
    good = not failures and not any(report.findings for report in told)
    return document.Document(
        "links",
        (session.site, session.name),
        document.Tone.GOOD if good else document.Tone.BAD,
        headline,
        (document.BESIDE,),
        list(map(build_sweep_section, told)),
        HOW_TO_READ,
        links_as_data(told, failures, session.name),
        failures,
        styles=["links.css"],
    )


def build_sweep_section(report: SweepReport) -> document.Section:
    steps = [(document.css_key(name), meaning) for _, name, meaning in STEPS]
    maps = build_pair_heat_maps(report.sweep, report.analysis)
    blocks: list[document.Block] = [
        document.Lines(document.Role.FINDING, [found.text for found in report.findings]),
        document.Lines(document.Role.REMARK, report.remarks),
        document.Legend(
            [*steps, (document.css_key("missing"), "not measured"), (document.css_key("marked"), "named")]
        ),
        *(document.Picture(partial(draw_heat_map, shown), shown.title, width=0) for shown in maps),
    ]
    return document.Section(report.title, blocks)


def links_as_data(told: Sequence[SweepReport], failures: Sequence[str], session: str) -> dict[str, Any]:
    sweeps = [
        {
            "partition": report.sweep.partition,
            "environment": report.sweep.environment,
            "nodes": list(report.sweep.nodes),
            "findings": [
                {
                    "kind": found.kind,
                    "who": [[report.sweep.nodes[node] for node in who] for who in found.who],
                    "text": found.text,
                }
                for found in report.findings
            ],
            "remarks": list(report.remarks),
        }
        for report in told
    ]
    return {"session": session, "failures": list(failures), "sweeps": sweeps}


def build_pair_heat_maps(sweep: PairSweep, analysis: SweepAnalysis) -> list[PairHeatMap]:
    """Build the heat maps of all pairs with all nodes busy, by size and statistic."""
    shown = []
    for measure in sweep.measures:
        nodes = [node.who[0] for node in analysis.nodes if node.measure is measure]
        same = (measure.bytes, measure.statistic)  # the pairs' measure may lack the slow nodes
        pairs = [pair.who for pair in analysis.pairs if (pair.measure.bytes, pair.measure.statistic) == same]
        title = f"{size(measure.bytes)}, all nodes busy, {measure.statistic} of the trials"
        ratios = detect.compute_pair_ratios(measure.log)
        shown.append(PairHeatMap(title, sweep.nodes, ratios, nodes, pairs))
    return shown
