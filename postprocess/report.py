"""The report of a session: ``report.md``, and ``report.html`` with its pictures in one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from postprocess import atomic, formats, harmless, legend, overview, plots, series, sizes, trials
from postprocess.errors import UsageError
from postprocess.grid import grid
from postprocess.misses import BOUNDS, CLASSES, misses
from postprocess.sharpening import TARGET
from postprocess.summaries import SessionSummary, load_summary
from postprocess.verdicts import CaseResult, Verdict, count, is_healthy

PLACES = ("system", "partition", "program")
CONDITIONS = ("cache", "sync")
TEMPLATES = Path(__file__).parent / "templates"
MOST_TROUBLES = 150  #: entries of what failed
MOST_OF_ONE_TROUBLE = 30  #: cases that are named of those that share a cause
MOST_OPEN = 15  #: entries of what failed that are not folded
MOST_ROWS = 40  #: of the grid, unless it is unfolded
MOST_OUTLIERS = 60
MOST_CASES = 3000  #: in the table of all cases
MOST_LAUNCHES = 400
SIGNS = {
    Verdict.PASS: "✓",
    Verdict.CLEARED: "✓",
    Verdict.FAST: "»",
    Verdict.PROVISIONAL: "~",
    Verdict.SKIPPED: "–",
    Verdict.NO_REFERENCE: "?",
    Verdict.NOT_COMPARABLE: "≠",
}


def build_report(session_dir: Path, frame: pl.DataFrame) -> tuple[Path, Path]:
    """Write the report of a session beside its ``summary.json``.

    ``frame`` holds rows of the results store, of which only those of the session are used; without
    any the report has no pictures of trials. Returns the paths of ``report.md`` and ``report.html``,
    which appear whole or not at all.

    Raises:
        SummaryError: the summary cannot be used.
        UsageError: the store lacks a column, or a report cannot be written.
    """
    summary = load_summary(session_dir / "summary.json")
    pages = {
        session_dir / "report.md": render_markdown(summary),
        session_dir / "report.html": render_html(summary, frame),
    }
    write(pages)
    return session_dir / "report.md", session_dir / "report.html"


def write(pages: Mapping[Path, str]) -> None:
    """Write pages that belong together, whole or not at all.

    :raises UsageError: if they cannot be written.
    """
    try:
        atomic.replace({path: text.encode("utf-8") for path, text in pages.items()})
    except OSError as error:
        problem = (
            f"{error.filename or next(iter(pages)).parent}: cannot be written: {error.strerror}"
        )
        raise UsageError(f"{problem}; make room or change its rights") from None


def render_markdown(summary: SessionSummary) -> str:
    """The report without pictures, for a mail or an issue."""
    return markdown_templates().get_template("report.md.j2").render(_context(summary))


def render_html(summary: SessionSummary, frame: pl.DataFrame) -> str:
    """The report as one page that needs nothing but itself."""
    known = trials.read(frame, summary.session)
    failed, not_drawn = trials.of_failed(summary, known)
    own = [r for r in summary.results if r.case.program == overview.OWN]
    names = series.environments(summary.results)
    return (
        html_templates()
        .get_template("report.html.j2")
        .render(
            _context(summary),
            chapters=series.chapters(own, summary.strict, names),
            own=own[:MOST_CASES],
            own_columns=overview.varying(own, ("system", "partition", *CONDITIONS)),
            own_left_out=max(0, len(own) - MOST_CASES),
            programs=sizes.by_program(summary.results, summary.strict, names),
            line_keys=line_keys(names),
            keys={name: Markup(key) for name, key in legend.keys().items()},
            failed_trials=failed,
            not_drawn=not_drawn,
            other_trials=trials.representative(summary, known),
            anchors={shown.result.case.key: f"trials-{n}" for n, shown in enumerate(failed, 1)},
        )
    )


def _context(summary: SessionSummary) -> dict[str, Any]:
    """What both reports say."""
    troubles = overview.troubles(summary.failed)
    chosen = overview.some_of_each([each.results[0] for each in troubles], MOST_TROUBLES)
    named = {result.case for result in chosen}
    troubles = [each for each in troubles if each.results[0].case in named]
    outliers = overview.some_of_each(summary.outliers, MOST_OUTLIERS)
    launches = sorted(summary.launches, key=lambda launch: (not launch.failed, launch.outcome))
    return {
        "summary": summary,
        "headline": overview.headline(summary),
        "last_line": overview.last_line(summary),
        "contradiction": overview.contradiction(summary),
        "counts": count(summary.results),
        "troubles": troubles,
        "most_open": MOST_OPEN,
        "most_of_one": MOST_OF_ONE_TROUBLE,
        "reruns": [r.rerun for each in troubles for r in each.results[:MOST_OF_ONE_TROUBLE]],
        "failed_not_named": len(summary.failed) - sum(len(each.results) for each in troubles),
        "outliers": outliers,
        "outliers_not_named": len(summary.outliers) - len(outliers),
        "skipped": overview.reasons(summary.results, Verdict.SKIPPED),
        "grid": grid(summary, MOST_ROWS),
        "whole_grid": grid(summary),
        "misses": misses(summary),
        "classes": CLASSES,
        "classes_seen": BOUNDS.index(TARGET) + 1,
        "places": overview.varying(summary.results, PLACES),
        "qualifiers": _qualifiers(summary.results),
        "processes": sorted({r.case.processes for r in summary.results}),
        "launches": launches[:MOST_LAUNCHES],
        "launches_left_out": max(0, len(launches) - MOST_LAUNCHES),
        "launches_failed": sum(launch.failed for launch in launches),
        "launches_skipped": sum(launch.outcome == "skipped" for launch in launches),
    }


def _qualifiers(results: Sequence[CaseResult]) -> dict[tuple[str, str], tuple[str, ...]]:
    """By program and routine what must stand beside the name of a case, for others differ in it."""
    everywhere = overview.varying(results, PLACES)
    found: dict[tuple[str, str], list[CaseResult]] = {}
    for result in results:
        found.setdefault((result.case.program, result.case.routine), []).append(result)
    return {place: everywhere + overview.varying(own, CONDITIONS) for place, own in found.items()}


def line_keys(names: Sequence[str]) -> dict[str, Markup]:
    """The sign of each environment's line, in the order of their styles."""
    return {name: Markup(legend.key_of_line(n)) for n, name in enumerate(names)}


def markdown_templates() -> jinja2.Environment:
    """Templates of Markdown: what they print is harmless."""
    return _environment(autoescape=False, finalize=_as_markdown)


def html_templates() -> jinja2.Environment:
    """Templates of pages: what they print is harmless, and they can draw."""
    environment = _environment(autoescape=True, finalize=_as_html)
    environment.globals.update(quantity=_finished(_quantity))
    environment.filters.update(
        panel=lambda panel: Markup(plots.lines(panel)),
        trials=lambda shown: Markup(plots.trials(shown)),
    )
    return environment


def _environment(**options: Any) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.globals.update(
        plural=formats.plural,
        ratio=_finished(formats.ratio),
        percent=_finished(formats.percent),
        number=_finished(formats.number),
        quantity=_finished(formats.quantity),
        band=_finished(formats.band),
        is_healthy=is_healthy,
    )
    environment.filters.update(
        us=_finished(formats.microseconds),
        factor=_finished(formats.factor),
        whole=_finished(formats.whole),
        size=_finished(formats.size),
        binary_size=_finished(formats.binary_size),
        duration=_finished(formats.duration),
        lines=harmless.lines,
        code_block=_code_block,
        sign=lambda verdict: SIGNS.get(verdict, "✗"),
    )
    return environment


def _quantity(value: float | None, unit: str) -> str:
    """As everywhere, with the Greek letter that a page can show."""
    return formats.quantity(value, unit).replace(" us", " µs")


def _finished(write: Callable[..., str]) -> Callable[..., Markup]:
    """A writer of numbers whose output is not escaped again."""
    return lambda *values: Markup(write(*values))


def _as_html(value: object) -> object:
    """What a template prints, before it is escaped: finished markup as it is, the rest harmless."""
    return value if isinstance(value, Markup) else harmless.one_line(value)


def _as_markdown(value: object) -> str:
    return value if isinstance(value, Markup) else harmless.markdown(value)


def _code_block(commands: list[str]) -> Markup:
    """A Markdown code block of one line each that no line can end."""
    text = "\n".join(map(harmless.one_line, commands))
    fence = harmless.fence(text)
    return Markup(f"{fence}\n{text}\n{fence}")
