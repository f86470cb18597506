"""The page of an agreement: findings, ratios as tables and pictures, and why ratios are not 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from postprocess.base.sanitize import sanitize_line
from postprocess.extensions.agreement import text
from postprocess.extensions.agreement.compare import PAIRS, AgreementResult, ProgramComparison, RatioStatus
from postprocess.extensions.agreement.text import format_topic
from postprocess.model.session import Session
from postprocess.report import axes as small
from postprocess.report import legend
from postprocess.report.document import Document, Legend, Lines, Picture, Role, Section, Tone
from postprocess.report.plots import RING, choose_line_style
from postprocess.report.svg import INK, MUTED, FigureCanvasSVG, apply_style, render_inline_svg

WIDTH = 620  #: in CSS pixels, as the lengths below
ROW, HEAD, FOOT, LEFT, RIGHT = 26, 30, 44, 150, 14
LANES = (-0.27, 0.0, 0.27)  #: of the pairs, in rows
LEAST, MOST = 0.5, 2.0  #: that the axis shows at least
FAR = 20.0  #: a factor; what is further out is drawn at the edge
TICKS = (0.05, 0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10, 20)
SHADE: dict[str, Any] = {"color": MUTED, "alpha": 0.18, "linewidth": 0}
THICK = 5.0  #: of the shade of a range


@apply_style
def draw_ratio_plot(title: str, comparisons: Sequence[ProgramComparison]) -> str:
    """Draw the ratios of one MPI and layout. The shade behind a sign is the range that is expected of it.

    A ratio that disagrees has a ring. One without an interval has no line through its sign.
    """
    rows = [(topic, list(group)) for topic, group in groupby(comparisons, key=lambda e: e.topic)]
    height = ROW * len(rows) + HEAD + FOOT
    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    FigureCanvasSVG(figure)
    room = (LEFT / WIDTH, FOOT / height, 1 - (LEFT + RIGHT) / WIDTH, 1 - (HEAD + FOOT) / height)
    axes = figure.add_axes(room)
    axes.set_title(sanitize_line(title), y=1.0, pad=9)
    low, high = _scale_x(axes, comparisons)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.yaxis.set_major_locator(FixedLocator(range(len(rows))))
    axes.yaxis.set_major_formatter(FixedFormatter([sanitize_line(format_topic(topic)) for topic, _ in rows]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.tick_params(length=3)
    axes.axvline(1.0, color=INK, linewidth=0.8)
    for place in range(1, len(rows)):
        axes.axhline(place - 0.5, color=MUTED, linewidth=0.3)
    for place, (_, group) in enumerate(rows):
        for each in group:
            _ratio(axes, each, place, (low, high))
    label: dict[str, Any] = {"transform": axes.transAxes, "color": MUTED, "ha": "center"}
    axes.text(0.5, -34 / (ROW * len(rows)), "ratio; above 1 the first program is slower", **label)
    apart = sum(comparison.status is RatioStatus.DISAGREE for comparison in comparisons)
    return render_inline_svg(figure, f"{title}: {len(comparisons)} ratios of programs, {apart} disagree")


def _scale_x(axes: Axes, comparisons: Sequence[ProgramComparison]) -> tuple[float, float]:
    """Make a logarithmic axis for all ratios and intervals, or as far out as ``FAR``."""
    values = [
        value
        for comparison in comparisons
        for value in (
            comparison.ratio,
            *(comparison.interval or ()),
            comparison.expected.low,
            comparison.expected.high,
        )
    ]
    low, high = max(1 / FAR, min(LEAST, *values)) / 1.05, min(FAR, max(MOST, *values)) * 1.05
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    shown = [tick for tick in TICKS if low <= tick <= high]
    if len(shown) > small.MOST_TICKS + 2:
        shown = [tick for tick in shown if tick not in (0.8, 1.25)]
    small.set_ticks_x(axes, shown, [f"{tick:g}" for tick in shown])
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    return low, high


def _ratio(axes: Axes, each: ProgramComparison, place: int, ends: tuple[float, float]) -> None:
    """Draw the range as a shade, the interval as a line, the ratio as the sign of its pair."""
    style = PAIRS.index((each.over, each.under))
    lane = place + LANES[style]
    sign = choose_line_style(style) | {"markersize": 5.5}
    shade = [each.expected.low, each.expected.high]
    axes.plot(shade, [lane, lane], **SHADE | {"linewidth": THICK, "solid_capstyle": "butt"})
    if each.interval:
        line = sign | {"marker": "", "linewidth": 1.3, "linestyle": "solid"}
        axes.plot([_inside(end, ends) for end in each.interval], [lane, lane], **line)
    at = _inside(each.ratio, ends)
    axes.plot([at], [lane], clip_on=False, **sign | {"linestyle": "none"})
    if each.status is RatioStatus.DISAGREE:
        axes.plot([at], [lane], clip_on=False, **RING | {"markersize": 11})


def _inside(value: float, ends: tuple[float, float]) -> float:
    return min(max(value, ends[0]), ends[1])


PAGE = "agreement.html"
HOW_TO_READ = (
    "A case is a finding if its ratio is outside of the range by more than chance does among all ratios of the "
    "session: of a hundred sessions with three sound programs at most five name anything. 'open': the interval "
    "holds an end of the range.",
)


def build_agreement_document(session: Session, agreement: AgreementResult, failures: list[str]) -> Document:
    """Build what the pages say: findings, the ratios of each place, and why ratios are not 1."""
    findings = [text.format_disagreement(finding) for finding in agreement.findings]
    pairs = [(Markup(legend.draw_marker_key(n)), f"{over}/{under}") for n, (over, under) in enumerate(PAIRS)]
    signs = ("line: 95 % interval", "shade: expected", "ring: disagrees")
    keys = Legend([*pairs, *((Markup(), sign) for sign in signs)])
    chapters = [
        Section(
            place, (keys, Picture(partial(draw_ratio_plot, place, found), width=640), replace(table, title=""))
        )
        for place, table, found in text.build_ratio_tables(agreement.comparisons)
    ]
    return Document(
        "agree",
        (session.site, session.name),
        Tone.GOOD if agreement.good and not failures else Tone.BAD,
        text.format_agreement_title(agreement),
        [text.summarise_agreement(agreement)],
        [
            Section("", [Lines(Role.FINDING, findings)]),
            *chapters,
            Section("Not compared", [Lines(Role.DETAIL, text.format_gaps(agreement.gaps, most=None))]),
            Section("Why ratios are not 1", [Lines(Role.DETAIL, text.WHY), text.describe_expected_ranges()]),
        ],
        HOW_TO_READ,
        agreement_as_data(agreement, session.name),
        failures,
        report="launches, MPIs and all values",
    )


def agreement_as_data(agreement: AgreementResult, session: str) -> dict[str, Any]:
    """Return ratios, findings and gaps as data."""
    return {
        "session": session,
        "good": agreement.good,
        "ratios": [
            {
                **asdict(comparison.topic),
                "over": comparison.over,
                "under": comparison.under,
                "launches": comparison.launches,
                "ratio": comparison.ratio,
                "interval": comparison.interval,
                "definition": comparison.definition,
                "expected": [comparison.expected.low, comparison.expected.high],
                "reason": comparison.expected.reason,
                "standing": comparison.status.value,
            }
            for comparison in agreement.comparisons
        ],
        "findings": [
            {"name": finding.name, **asdict(finding.topic), "text": text.format_disagreement(finding)}
            for finding in agreement.findings
        ],
        "gaps": [{**asdict(gap.topic), "program": gap.program, "reason": gap.reason} for gap in agreement.gaps],
    }
