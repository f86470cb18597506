"""What people read of an agreement: tables, findings and gaps, pictures, and why ratios are not 1."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from postprocess.base.formats import NOT_PRINTED, TextTable, factor, first_of, plural, size
from postprocess.base.sanitize import sanitize_line
from postprocess.extensions.agreement import compare
from postprocess.model.session import Session
from postprocess.report import drawing as small
from postprocess.report import plots
from postprocess.report.document import BESIDE, Document, Legend, Lines, Picture, Role, Section, Tone, Toned
from postprocess.report.drawing import INK, MUTED, FigureCanvasSVG, apply_style, render_inline_svg
from postprocess.report.plots import RING, choose_line_style

MARKS = {
    compare.RatioStatus.AGREE: "",
    compare.RatioStatus.OPEN: " open",
    compare.RatioStatus.DISAGREE: " DISAGREE",
    compare.RatioStatus.UNJUDGED: " no interval",
}
MOST_NAMED = 6  #: cases that a gap names in a terminal before it only counts them
WHY = (
    "Mean of maxima against maximum of means: mpicost averages the slowest rank of each call; OSU and IMB take "
    "the slowest rank's average. The first is never smaller. Here mpicost's value by their definition is "
    "compared; the column 'definition' is its headline over that.",
    "Filtered mean: mpicost leaves out at most a tenth of its trials, the largest, if they are above 1.8 "
    "medians. OSU and IMB average all, and so does the value compared. The column 'definition' shows both.",
    "Half round trip: all three halve the time of a ping-pong. mpicost reads both ranks' clocks and takes the "
    "longer time, OSU and IMB that of rank 0.",
    "Loop without barrier: OSU and IMB time ping-pong, and IMB MPI_Barrier, in a loop. mpicost's ranks leave a "
    "barrier before each call, and one of them leaves it first.",
    "First calls: some MPIs take new pages of memory in the first hundreds of calls, 20 us and more for each. "
    "So mpicost and OSU make 500 untimed calls per size. IMB makes a tenth of its timed calls; so it measures "
    "half of each size first, and that is not compared.",
    "Between two trials there is one barrier and nothing else. In a nightly run mpicost also verifies the "
    "data, which warms the receive buffer, and synchronises twice: its times can be a third of these, or "
    "several times as long.",
)


def summarise_agreement(agreement: compare.AgreementResult) -> str:
    words = [
        f"{agreement.count(status)} {name}"
        for status, name in (
            (compare.RatioStatus.AGREE, "agree"),
            (compare.RatioStatus.OPEN, "open (more --launches decide)"),
            (compare.RatioStatus.DISAGREE, "disagree"),
            (
                compare.RatioStatus.UNJUDGED,
                f"without an interval (fewer than {compare.FEWEST_LAUNCHES} launches)",
            ),
        )
        if agreement.count(status)
    ]
    ratios = plural(len(agreement.comparisons), "ratio")
    found = plural(len(agreement.findings), "finding")
    return f"{ratios}: {', '.join(words) or 'none to judge'}; {found}"


def format_agreement_title(agreement: compare.AgreementResult) -> str:
    if agreement.findings:
        return f"{plural(len(agreement.findings), 'case')} in which the programs disagree"
    if not agreement.good:
        doubt = f"{agreement.doubtful} of {len(agreement.comparisons)} ratios lie outside their range"
        return f"Not decided ({doubt}, unproved): more launches, or a quieter machine, are needed"
    shown = agreement.count(compare.RatioStatus.AGREE)
    if shown == len(agreement.comparisons):
        return f"The programs agree in all of {plural(shown, 'ratio')}"
    return f"The programs agree in {shown} of {plural(len(agreement.comparisons), 'ratio')}; none disagrees"


def format_topic_place(topic: compare.Topic) -> str:
    return f"{topic.place}, {topic.environment}, {topic.layout}"


def format_topic(topic: compare.Topic) -> str:
    return f"{topic.routine} {size(topic.bytes)}" if topic.bytes else topic.routine


def format_disagreement(found: compare.Disagreement) -> str:
    """Format a finding in one line: its name, the case, and the ratios outside their range."""
    ratios = "; ".join(format_ratio_outside_range(comparison) for comparison in found.comparisons)
    return f"{found.name}: {format_topic(found.topic)} on {format_topic_place(found.topic)}: {ratios}"


def format_ratio_outside_range(each: compare.ProgramComparison) -> str:
    limits = f"{each.expected.low:g} to {each.expected.high:g}"
    return f"{each.over} over {each.under} is {format_ratio_interval(each)}, and {limits} is expected"


def format_ratio_interval(each: compare.ProgramComparison) -> str:
    if each.interval is None:
        return factor(each.ratio)
    return f"{factor(each.ratio)} ({factor(each.interval[0])} to {factor(each.interval[1])})"


def format_gaps(found: Sequence[compare.Gap], most: int | None = MOST_NAMED) -> list[str]:
    """Format a line for each program and reason in each place, with the cases; ``most`` of them by name."""
    lines = []
    by_reason = sorted(found, key=lambda gap: (format_topic_place(gap.topic), gap.program, gap.reason, gap))
    for (place, program, reason), group in groupby(
        by_reason, key=lambda gap: (format_topic_place(gap.topic), gap.program, gap.reason)
    ):
        names = [format_topic(gap.topic) for gap in group]
        count = plural(len(names), "case")
        lines.append(f"{place}: {program}: {reason}: {count}: {first_of(names, most)}")
    return lines


def build_ratio_tables(
    comparisons: Iterable[compare.ProgramComparison],
) -> list[tuple[str, TextTable, list[compare.ProgramComparison]]]:
    """Build, for each place, MPI and layout, its title, its table and its comparisons."""
    ordered = sorted(comparisons, key=lambda each: (format_topic_place(each.topic), each.topic))
    return [
        (place, build_ratio_table(place, found), found)
        for place, group in groupby(ordered, key=lambda each: format_topic_place(each.topic))
        if (found := list(group))
    ]


def build_ratio_table(place: str, comparisons: Sequence[compare.ProgramComparison]) -> TextTable:
    """Build a line for each operation and size, a column for each pair of programs."""
    rows = []
    for topic, group in groupby(comparisons, key=lambda each: each.topic):
        by_pair = {(each.over, each.under): each for each in group}
        rows.append(
            (
                topic.routine,
                size(topic.bytes) if topic.bytes else "",
                *(format_ratio_cell(by_pair.get(pair)) for pair in compare.PAIRS),
                compute_definition_factor(list(by_pair.values())),
            )
        )
    launches = sorted({comparison.launches for comparison in comparisons})
    ends = dict.fromkeys((launches[0], launches[-1]))
    counts = "launches" if launches == [1] else f"{' to '.join(map(str, ends))} launches"
    return TextTable(
        place,
        ("routine", "size"),
        (*(f"{over}/{under}" for over, under in compare.PAIRS), "definition"),
        tuple(rows),
        (
            f"ratio, and its 95 % interval over {counts}; above 1: the first is slower. mpicost by the "
            "definition of the others; 'definition': its own headline over that",
        ),
    )


def build_narrow_tables(comparisons: Iterable[compare.ProgramComparison]) -> list[TextTable]:
    """Build a table of each place for a terminal: a line for each ratio."""
    return [
        TextTable(
            place,
            ("operation", "programs"),
            ("ratio", "95 % interval", "is"),
            tuple(
                (
                    format_topic(comparison.topic),
                    f"{comparison.over}/{comparison.under}",
                    factor(comparison.ratio),
                    " to ".join(map(factor, comparison.interval)) if comparison.interval else NOT_PRINTED,
                    describe_status(comparison.status),
                )
                for comparison in found
            ),
            ("above 1: the first program is slower",),
        )
        for place, _, found in build_ratio_tables(comparisons)
    ]


def describe_status(status: compare.RatioStatus) -> str:
    """Describe how a ratio stands, so that what disagrees is seen at once."""
    return status.value.upper() if status is compare.RatioStatus.DISAGREE else status.value


def format_ratio_cell(each: compare.ProgramComparison | None) -> str:
    """Format a ratio with its interval and status; a dash where a program has no value."""
    if each is None:
        return NOT_PRINTED
    cell = format_ratio_interval(each) + MARKS[each.status]
    return Toned(cell, Tone.BAD) if each.status is compare.RatioStatus.DISAGREE else cell


def compute_definition_factor(found: Sequence[compare.ProgramComparison]) -> str:
    """Format the factor between mpicost's definition and another program's, from mpicost's own trials."""
    own = [comparison.definition for comparison in found if comparison.over == "mpicost"]
    return factor(own[0]) if own else NOT_PRINTED


def describe_expected_ranges() -> TextTable:
    rows = tuple(
        (
            ", ".join(f"{over}/{under}" for over, under in expected.pairs),
            ", ".join(expected.routines) if expected.routines else "any other",
            f"up to {size(expected.most_bytes)}" if expected.most_bytes < 2**60 else "any other",
            f"{expected.low:g} to {expected.high:g}",
            expected.reason,
        )
        for expected in compare.RANGES
    )
    return TextTable("Ranges that are expected", ("ratio", "routine", "size", "range", "why"), (), rows)


WIDTH = 620  #: in CSS pixels, as the lengths below
ROW, HEAD, FOOT, LEFT, RIGHT = 26, 30, 44, 150, 14
LANES = (-0.27, 0.0, 0.27)  #: of the pairs, in rows
LEAST, MOST = 0.5, 2.0  #: that the axis shows at least
FAR = 20.0  #: a factor; what is further out is drawn at the edge
TICKS = (0.05, 0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10, 20)
SHADE: dict[str, Any] = {"color": MUTED, "alpha": 0.18, "linewidth": 0}
THICK = 5.0  #: of the shade of a range


@apply_style
def draw_ratio_plot(title: str, comparisons: Sequence[compare.ProgramComparison]) -> str:
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
    apart = sum(comparison.status is compare.RatioStatus.DISAGREE for comparison in comparisons)
    return render_inline_svg(figure, f"{title}: {len(comparisons)} ratios of programs, {apart} disagree")


def _scale_x(axes: Axes, comparisons: Sequence[compare.ProgramComparison]) -> tuple[float, float]:
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


def _ratio(axes: Axes, each: compare.ProgramComparison, place: int, ends: tuple[float, float]) -> None:
    """Draw the range as a shade, the interval as a line, the ratio as the sign of its pair."""
    style = compare.PAIRS.index((each.over, each.under))
    lane = place + LANES[style]
    sign = choose_line_style(style) | {"markersize": 5.5}
    shade = [each.expected.low, each.expected.high]
    axes.plot(shade, [lane, lane], **SHADE | {"linewidth": THICK, "solid_capstyle": "butt"})
    if each.interval:
        line = sign | {"marker": "", "linewidth": 1.3, "linestyle": "solid"}
        axes.plot([_inside(end, ends) for end in each.interval], [lane, lane], **line)
    at = _inside(each.ratio, ends)
    axes.plot([at], [lane], clip_on=False, **sign | {"linestyle": "none"})
    if each.status is compare.RatioStatus.DISAGREE:
        axes.plot([at], [lane], clip_on=False, **RING | {"markersize": 11})


def _inside(value: float, ends: tuple[float, float]) -> float:
    return min(max(value, ends[0]), ends[1])


PAGE = "agreement.html"
HOW_TO_READ = (
    "A case is a finding if its ratio is outside of the range by more than chance does among all ratios of the "
    "session: of a hundred sessions with three sound programs at most five name anything. 'open': the interval "
    "holds an end of the range.",
)


def build_agreement_document(
    session: Session, agreement: compare.AgreementResult, failures: list[str]
) -> Document:
    """Build what the pages say: findings, the ratios of each place, and why ratios are not 1."""
    findings = [format_disagreement(finding) for finding in agreement.findings]
    pairs = [
        (Markup(plots.draw_marker_key(n)), f"{over}/{under}") for n, (over, under) in enumerate(compare.PAIRS)
    ]
    signs = ("line: 95 % interval", "shade: expected", "ring: disagrees")
    keys = Legend([*pairs, *((Markup(), sign) for sign in signs)])
    chapters = [
        Section(
            place, (keys, Picture(partial(draw_ratio_plot, place, found), width=640), replace(table, title=""))
        )
        for place, table, found in build_ratio_tables(agreement.comparisons)
    ]
    return Document(
        "agree",
        (session.site, session.name),
        Tone.GOOD if agreement.good and not failures else Tone.BAD,
        format_agreement_title(agreement),
        [summarise_agreement(agreement), BESIDE],
        [
            Section("", [Lines(Role.FINDING, findings)]),
            *chapters,
            Section("Not compared", [Lines(Role.DETAIL, format_gaps(agreement.gaps, most=None))]),
            Section("Why ratios are not 1", [Lines(Role.DETAIL, WHY), describe_expected_ranges()]),
        ],
        HOW_TO_READ,
        agreement_as_data(agreement, session.name),
        failures,
    )


def agreement_as_data(agreement: compare.AgreementResult, session: str) -> dict[str, Any]:
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
            {"name": finding.name, **asdict(finding.topic), "text": format_disagreement(finding)}
            for finding in agreement.findings
        ],
        "gaps": [{**asdict(gap.topic), "program": gap.program, "reason": gap.reason} for gap in agreement.gaps],
    }
