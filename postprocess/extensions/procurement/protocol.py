"""The protocol of an acceptance, as page, Markdown, CSV and JSON."""

import csv
import io
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from postprocess.base.formats import DASH, TextTable, factor, format_percent, number, plural, quantity
from postprocess.extensions.procurement.form_rows import describe_when
from postprocess.extensions.procurement.judge import ALL_PAIRS, EASY, Acceptance, JudgedRow
from postprocess.extensions.procurement.offer import OpenedOffer
from postprocess.extensions.procurement.rules.rules import Rules
from postprocess.extensions.procurement.violations import (
    Violation,
    count_broken,
    describe_broken,
    is_rejected,
    list_broken,
    times,
)
from postprocess.report.document import Document, Picture, Section, Tone, Toned, table_section
from postprocess.report.drawing import BAD, GOOD, MUTED, apply_style, render_inline_svg
from postprocess.report.rendering import render_html, render_markdown
from postprocess.stats.acceptance import Open, OperatingCharacteristic, RowVerdict

SCHEMA = 1
ACCEPT = ("acceptance.html", "acceptance.csv", "acceptance.json", "acceptance.md")
#: Columns of the CSV, by the keys of the JSON; their heads have no ``launches_``.
CSV_KEYS = (
    *("row", "demand", "verdict", "unit", "committed", "limit", "measured", "launches", "launches_more"),
    *("launches_apart", "why", "launches_needed", "slack"),
)
PICTURE = "How often a row of a machine so much slower than committed is met and missed"
NOTES = (
    "A row is named by its case, bytes, MPI and category.",
    "met: the confidence limits are within the commitment with its tolerance; missed: they are beyond.",
    "A row that was not run counts as missed; an undecided one says what would decide it.",
    "farther apart: launches whose cores were farther from each other than in any launch of the offer. "
    "They do not count, and others are made; if chance does not explain them, all must be within.",
    "committed / measured: of a rate the other way round. Above 1: better than committed.",
    "confidence: between which values the machine's own lies, in the unit of the row.",
)
TONES = {
    RowVerdict.MET: Tone.GOOD,
    RowVerdict.MISSED: Tone.BAD,
    RowVerdict.NOT_RUN: Tone.BAD,
    RowVerdict.UNDECIDED: Tone.FAIR,
}


@dataclass(frozen=True)
class Parties:
    """Who offered and who accepted, by the keys that sign."""

    offeror: str  #: as it is told
    root: str  #: of the offer
    offered_by: str  #: fingerprint of the key
    accepted_by: str  #: the same; empty where nobody signs

    @property
    def are_same(self) -> bool:
        """Whether one and the same has offered and accepts."""
        return bool(self.accepted_by) and self.offered_by == self.accepted_by

    @property
    def lines(self) -> list[str]:
        """Both, for people."""
        who = f"accepted by the key {self.accepted_by}" if self.accepted_by else "signed by nobody"
        same = " - one and the same: nobody but the offeror has accepted" if self.are_same else ""
        offered = f"offer of {self.offeror}, sealed by the key {self.offered_by}, root {self.root}"
        return [offered, who + same]


def render_protocol(
    offer: OpenedOffer,
    measured: OpenedOffer,
    parties: Parties,
    found: Acceptance,
    violations: Sequence[Violation],
) -> dict[str, str]:
    """Render the protocol of an acceptance as HTML, Markdown, CSV and JSON, by the names of the files.

    All of it is computed from the files of the acceptance: what was written is held against it.
    """
    rules = offer.rules
    html, table, data, markdown = ACCEPT
    facts = [
        *parties.lines,
        f"rules {offer.stored.header.rules}",
        f"measured on {', '.join(sorted({row.key.environment for row in found.rows}))}",
        f"launches {describe_when(measured)}",
    ]
    tables = (tabulate_acceptance(found), *tabulate_links(found), tabulate_violations(violations))
    curve = Picture(partial(draw_characteristic, found.characteristic), PICTURE, width=900)
    document = Document(
        "acceptance",
        [rules.title],
        find_tone(found, violations),
        describe_outcome(found, violations),
        [*facts, *describe_hardness(found), *describe_risks(rules, found)],
        [
            *(table_section(table, new_page=place == 1) for place, table in enumerate(tables)),
            Section("", [curve]),
        ],
        NOTES,
        failures=list_broken(violations),
        landscape=True,
    )
    told = build_acceptance_json(rules, parties, found, violations)
    return {
        html: render_html(document),
        markdown: render_markdown(document),
        table: format_acceptance_csv(found, violations),
        data: json.dumps(told, indent=1, allow_nan=False) + "\n",
    }


def find_status(found: Acceptance, violations: Sequence[Violation]) -> int:
    """Find the exit status: a run rule that was broken is no acceptance, whatever the rows say."""
    return 1 if is_rejected(violations) else found.status


def find_tone(found: Acceptance, violations: Sequence[Violation]) -> Tone:
    """Find the colour of the page: amber where rows are undecided, or most of them were met easily."""
    status = find_status(found, violations)
    easy = 2 * found.easy > len(found.rows)
    return {0: Tone.FAIR if easy else Tone.GOOD, 3: Tone.FAIR}.get(status, Tone.BAD)


def describe_outcome(found: Acceptance, violations: Sequence[Violation]) -> str:
    """Describe the outcome in a line: run rules that were broken, and how often, and rows by verdict."""
    counts = ", ".join(f"{count} {name}" for name, count in found.counts.items() if count)
    rows = f"of {plural(len(found.verdicts), 'row')}, {counts or 'none is committed'}"
    if is_rejected(violations):
        rules = plural(len(count_broken(violations)), "run rule")
        rows = f"{rules} broken ({describe_broken(violations)}); {rows}"
    easy = f"; {describe_easy(found)}" if found.easy else ""
    outcome = {0: "Accepted", 1: "Not accepted"}.get(find_status(found, violations), "Undecided")
    return f"{outcome}: {rows}{easy}"


def describe_easy(found: Acceptance) -> str:
    """Describe how many commitments test little."""
    whose = plural(found.easy, "commitment")
    return f"{whose} of {EASY:g} times what the machine does, or more: met easily"


def describe_hardness(found: Acceptance) -> list[str]:
    """Describe how hard the commitments were: nothing where no row was measured."""
    slacks = found.slacks
    if not slacks:
        return []
    middle, ends = statistics.median(slacks), (slacks[0], slacks[-1])
    return [
        f"how hard the commitments were: {factor(middle)} times what was measured in the median row, "
        f"{factor(ends[0])} to {factor(ends[1])} times in all; at 1.00 a row is met exactly, far above it no "
        "machine would miss it"
    ]


#: What the risks of a row rest on
ASSUMED = (
    "both risks assume that the launches are as different as those of other hours and days: what one hour does "
    "to all launches is not in their spread, so spread them over hours (accept goes on where it stopped)"
)


def describe_risks(rules: Rules, found: Acceptance) -> list[str]:
    """Describe both risks of a row, as the operating characteristic has them."""
    drawn, tolerance = found.characteristic, rules.tolerance
    beyond = tolerance + 0.1
    slow = drawn.met[nearest(drawn, beyond)]
    own = drawn.missed[nearest(drawn, 0.0)]
    looks = ", ".join(map(str, found.looks))
    return [
        f"rows are judged after {looks} launches, until they are decided; a row just within the tolerance of "
        f"{format_percent(tolerance)} is missed with a probability of {format_percent(rules.risk.good_failed)} "
        f"at most, one just beyond it is met with {format_percent(rules.risk.slow_accepted)} at most",
        f"at the launch spread of the median row, {format_percent(found.spread)}: a row as committed is missed "
        f"with a probability of {own:.1%}, one {format_percent(beyond)} slower is met with {slow:.1%}",
        ASSUMED,
    ]


def nearest(drawn: OperatingCharacteristic, slower: float) -> int:
    """Return the place of the point nearest to a slowdown."""
    return min(range(len(drawn.slower)), key=lambda n: abs(drawn.slower[n] - slower))


def describe_row_verdict(row: JudgedRow, most: int) -> str:
    """Describe a verdict; of an undecided row with what would decide.

    :param most: launches that the rules allow
    """
    judged = row.found
    if judged.why is None:
        return str(judged.verdict)
    if judged.why is Open.APART:
        what = f"{row.apart} of {plural(row.made, 'launch', 'es')} on cores farther apart than any of the offer"
    elif judged.why is Open.LOOK:
        what = f"{plural(judged.launches_more or 0, 'launch', 'es')} more"
    elif judged.needed is None:
        what = "no number of launches would decide"
    else:
        what = f"about {judged.needed} launches would decide, and the rules allow {most}"
    return f"{judged.verdict} ({what})"


def describe_launches(row: JudgedRow) -> str:
    """Describe how many launches count, and how many do not."""
    return f"{row.launches} (and {row.apart} farther apart)" if row.apart else str(row.launches)


def tabulate_acceptance(found: Acceptance) -> TextTable:
    rows = tuple(
        (
            row.key.key,
            row.demand,
            Toned(describe_row_verdict(row, found.rules.risk.most_launches), TONES[row.found.verdict]),
            quantity(row.committed, row.unit),
            quantity(row.limit, row.unit),
            quantity(row.value, row.unit),
            factor(row.slack),
            f"{number(row.bounds[0], row.unit)} to {number(row.bounds[1], row.unit)}" if row.bounds else DASH,
            describe_launches(row),
        )
        for row in found.rows
    )
    heads = (
        *("verdict", "committed", "with tolerance", "measured", "committed / measured", "confidence"),
        "launches",
    )
    return TextTable("Rows", ("row", "demand"), heads, rows)


def tabulate_links(found: Acceptance) -> tuple[TextTable, ...]:
    """Tabulate what all pairs of nodes say; nothing where the rules do not ask for them."""
    if found.links is None:
        return ()
    links = found.links
    more = f" ({plural(links.launches_more, 'launch', 'es')} more)" if links.launches_more else ""
    told = (("verdict", Toned(f"{links.verdict}{more}", TONES[links.verdict])), ("demand", links.demand))
    rows = [*told, *(("slow", each) for each in links.slow), *(("", remark) for remark in links.remarks)]
    return (TextTable("All pairs of nodes", ("", ""), (), tuple(rows)),)


def tabulate_violations(found: Sequence[Violation]) -> TextTable:
    rows = tuple(
        (violation.title, violation.place, f"{violation.text}; {violation.code.fix}")
        for violation in sorted(found, key=lambda each: not each.code.grave)
    )
    return TextTable("Violations of run rules", ("code", "place", "what, and the fix"), (), rows)


def list_protocol_rows(found: Acceptance) -> list[dict[str, Any]]:
    """List the rows of an acceptance for programs.

    ``slack``: how many times the measured is committed; ``launches_more``: until the look that would decide;
    ``launches_apart`` do not count; ``launches_needed`` in all would decide
    """
    return [
        {
            "row": row.key.key,
            "demand": row.demand,
            "verdict": str(row.found.verdict),
            "why": row.found.why,
            "launches_more": row.found.launches_more,
            "launches_needed": row.found.needed,
            "unit": row.unit,
            "committed": row.committed,
            "limit": row.limit,
            "measured": row.value,
            "slack": row.slack,
            "launches": row.launches,
            "launches_apart": row.apart,
        }
        for row in found.rows
    ]


def format_acceptance_csv(found: Acceptance, violations: Sequence[Violation]) -> str:
    """Format the rows of an acceptance as CSV, and after them each run rule that was broken."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, CSV_KEYS, lineterminator="\n")
    writer.writerow({key: key.removeprefix("launches_") for key in CSV_KEYS})
    writer.writerows(list_protocol_rows(found))
    if links := found.links:
        told = {"launches": links.launches, "launches_more": links.launches_more}
        writer.writerow({"row": ALL_PAIRS, "demand": links.demand, "verdict": str(links.verdict), **told})
    for word, count in count_broken(violations).items():
        writer.writerow({"row": f"run rule {word}", "demand": "must", "verdict": f"broken {times(count)}"})
    return stream.getvalue()


def build_acceptance_json(
    rules: Rules, parties: Parties, found: Acceptance, violations: Sequence[Violation]
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": "acceptance",
        "title": rules.title,
        "parties": {**asdict(parties), "same": parties.are_same},
        "status": find_status(found, violations),
        "counts": found.counts,
        "easy": found.easy,
        "broken": count_broken(violations),
        "risk": asdict(rules.risk),
        "looks": list(found.looks),
        "spread": found.spread,
        "characteristic": asdict(found.characteristic),
        "rows": list_protocol_rows(found),
        "links": asdict(found.links) | {"verdict": str(found.links.verdict)} if found.links else None,
        "violations": [violation.as_entry() for violation in violations],
    }


@apply_style
def draw_characteristic(drawn: OperatingCharacteristic) -> str:
    figure = Figure(figsize=(8.5, 3.4))
    axes = figure.subplots()
    slower = [100 * value for value in drawn.slower]
    axes.plot(slower, [100 * value for value in drawn.met], color=GOOD, linewidth=2, label="met")
    axes.plot(slower, [100 * value for value in drawn.missed], color=BAD, linewidth=2, label="missed")
    undecided = [100 * (1 - a - b) for a, b in zip(drawn.met, drawn.missed, strict=True)]
    axes.plot(slower, undecided, color=MUTED, linewidth=1.2, linestyle="--", label="undecided")
    axes.set_ylim(-4, 104)
    axes.set_xlabel("slower than committed, %")
    axes.set_ylabel("probability, %")
    axes.grid(True)
    axes.legend(frameon=False)
    figure.tight_layout()
    return render_inline_svg(figure, "operating characteristic: probability of met, missed, undecided")
