"""The report of a session: ``report.md``, and ``report.html`` with its pictures in one file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from postprocess.base import formats, sanitize
from postprocess.base.formats import TextTable
from postprocess.base.grouping import group_pairs
from postprocess.model.groups import count_lines
from postprocess.model.verdict import CaseResult, count_verdicts, find_varying_fields
from postprocess.report import document, first_screen, overview, panels, plots, trial_selection
from postprocess.report.case_table import build_case_table
from postprocess.report.curves import build_curves
from postprocess.report.document import Block, Commands, Document, Lines, Role, Section, Tone, table_section
from postprocess.report.grids import build_grid, build_limit_map, build_verdict_map
from postprocess.report.overview import CLASSES, MOST_IN_GROUP, Sensitivity, assess_sensitivity, explain
from postprocess.report.trial_selection import LaunchTrials
from postprocess.results.summary import SessionSummary
from site_configs.mpi.exchange import BINDINGS

MOST_GROUPS = 150  #: of what failed, and of what is to look at
MOST_OF_ONE_GROUP = 30  #: cases that are named of those that failed for one cause
MOST_NEWS = 4  #: cases that are named of those that changed in one way
MOST_LAUNCHES = 400
HOW_TO_READ = (
    "The value of a case of mpicost is the mean of the fastest quarter of its trials, each the time of the "
    "slowest process, without the first trial; of OSU and IMB it is what they print.",
    "Slowdown is how many times as slow as its reference a case is, for times and bandwidths alike.",
    "The pictures and all cases are in report.html, the numbers in summary.json, every trial in the store.",
)


def build_document(summary: SessionSummary, past: first_screen.Past) -> Document:
    """Build the document of a session.

    :param past: the nights of its cases
    """
    groups = first_screen.list_numbered_groups(summary)
    host = summary.machine.host or "an unnamed host"
    wrong = overview.describe_contradiction(summary)
    languages = any(each.case.program == BINDINGS for each in summary.results)
    sections = [
        Section("New", [Lines(Role.ITEM, list(_list_news(summary, past)))]),
        Section("Next", list(_list_proposals(summary, past))),
        Section("Notes", [Lines(Role.ITEM, count_lines(summary.notes))]),
        _build_groups("What failed", summary, [each for each in groups if each.failed]),
        _build_launches(summary),
        _build_groups("To look at", summary, [each for each in groups if not each.failed]),
        Section("Not run, not judged", [Lines(Role.ITEM, list(_list_not_judged(summary)))]),
        Section("Cases by routine and MPI", _build_grid(summary)),
        _build_limits(assess_sensitivity(summary)),
        Section("What ran", _list_what_ran(summary)),
    ]
    tone, headline = first_screen.conclude_session(summary, past.rounds)
    return Document(
        kind=summary.mode,
        where=(
            f"{summary.site} on {host}",
            f"{summary.started_utc} to {summary.ended_utc}",
            f"session {summary.session}, Plumbline {summary.plumbline}",
        ),
        tone=Tone(tone),
        headline=headline,
        facts=[
            overview.format_last_line(summary),
            *filter(None, [first_screen.describe_sight(summary.results)]),
            *(
                f"suspects measured again at {each.started}: {each.line} (session {each.session})"
                for each in past.rounds
            ),
        ],
        sections=sections,
        how_to_read=(*HOW_TO_READ, *([document.JUDGED_LANGUAGE] if languages else [])),
        failures=[f"Contradiction: {wrong}"] if wrong else [],
    )


def _list_news(summary: SessionSummary, past: first_screen.Past) -> Iterator[str]:
    """List what the night before did not say."""
    if past.problem:
        yield past.problem
        return
    news = first_screen.find_news(summary, past)
    yield news.line
    for item in news.items:
        named = ", ".join(result.case.key for result in item.results[:MOST_NEWS])
        left = len(item.results) - MOST_NEWS
        yield f"{item.what}: {named}" + (f" and {formats.format_whole(left)} more" if left > 0 else "")


def _list_proposals(summary: SessionSummary, past: first_screen.Past) -> Iterator[Block]:
    """List what to do next, with its cost."""
    for each in first_screen.propose_next(summary, past.rounds):
        why = f"{each.why} ({each.cost})" if each.cost else each.why
        yield Commands(why, [each.command]) if each.command else Lines(Role.ITEM, [why])


def _build_groups(title: str, summary: SessionSummary, groups: Sequence[first_screen.NumberedGroup]) -> Section:
    """Build the section of cases that are not healthy, by what is said of them."""
    shown = groups[:MOST_GROUPS]
    table = TextTable(
        "", ("group", "verdict", "case"), ("value", "reference", "band", "slowdown"), tuple(_list_rows(shown))
    )
    why = [f"{each.number}: {told}" for each in shown if (told := _explain(each))]
    if left := len(groups) - len(shown):
        why.append(f"{formats.plural(left, 'further group')} in summary.json")
    proposed = {each.command for each in first_screen.propose_next(summary)}
    again = [each.again for each in shown if each.again and each.again not in proposed]
    commands = [Commands("One group again", again)] if again else []
    return Section(title, [table, Lines(Role.ITEM, why), *commands] if groups else [])


def _list_rows(groups: Iterable[first_screen.NumberedGroup]) -> Iterator[tuple[str, ...]]:
    """List the rows of groups: their first cases, and how many more there are."""
    for each in groups:
        results = each.group.results
        most = MOST_OF_ONE_GROUP if each.failed else MOST_IN_GROUP
        for result in results[:most]:
            yield (
                str(each.number),
                str(result.verdict),
                result.case.key,
                formats.quantity(result.value, result.unit),
                formats.number(result.reference, result.unit),
                formats.format_band(result.band, result.unit),
                formats.factor(result.slowdown),
            )
        if left := len(results) - len(results[:most]):
            more = f"{formats.format_whole(left)} more like these"
            yield (str(each.number), str(each.group.verdict), more, *[formats.DASH] * 4)


def _explain(each: first_screen.NumberedGroup) -> str:
    """Explain the verdict of a group; the numbers are in the table."""
    results = each.group.results
    return explain(results[0]) if len(results) == 1 and results[0].reason else each.group.reason


def _build_launches(summary: SessionSummary) -> Section:
    failed = sorted((each for each in summary.launches if each.failed), key=lambda each: each.outcome)
    rows = tuple(
        (
            launch.outcome,
            launch.name,
            launch.environment,
            launch.partition,
            launch.reason,
            launch.directory,
            str(launch.processes),
            str(launch.launch),
            f"{launch.seconds:.1f}",
        )
        for launch in failed[:MOST_LAUNCHES]
    )
    labels = ("outcome", "program", "environment", "partition", "reason", "directory")
    table = TextTable("Launches that failed", labels, ("processes", "launch", "seconds"), rows)
    return table_section(table)


def _list_not_judged(summary: SessionSummary) -> Iterator[str]:
    """List why cases were not run, and why no reference judged others."""
    for what, reason, number in overview.count_not_judged(summary.results):
        yield f"{what}: {formats.plural(number, 'case')}: {reason}"


def _build_grid(summary: SessionSummary) -> list[Block]:
    """Build a table of verdicts for each program."""
    grid = build_grid(summary)
    return [
        TextTable(
            f"{section.program}: {section.counts}",
            ("routine", *grid.columns),
            (),
            tuple(
                (row.name, *(cell.text if cell else formats.DASH for cell in row.cells)) for row in section.rows
            ),
        )
        for section in grid.sections
    ]


def _build_limits(sensitivity: Sensitivity | None) -> Section:
    """Build the section on the smallest slowdowns that are called."""
    if sensitivity is None:
        return Section("", [])
    names = [name if name in ("more", CLASSES[-1]) else f"up to {name}" for name in CLASSES]
    rows = tuple(
        (
            *row.name,
            formats.format_whole(row.cases),
            *(formats.format_whole(number) if number else formats.DASH for number in row.shares),
            *_format_limits(row.median, row.most),
        )
        for row in sensitivity.rows
    )
    columns = ("cases", *names, "median", "90th percentile")
    limits = TextTable("", ("program", "environment", "bytes"), columns, rows)
    worst = tuple(
        (each.case.key, *_format_limits(each.detectable, each.detectable_soon)) for each in sensitivity.worst
    )
    highest = TextTable("", ("highest detection limits",), ("tonight", "within three nights"), worst)
    meaning = "A detection limit is the smallest slowdown that is called with 90% probability."
    return Section("Detection limits", [Lines(Role.REMARK, [sensitivity.line, meaning]), limits, highest])


def _format_limits(*limits: float | None) -> Iterator[str]:
    return (formats.format_percent(limit, "nothing") for limit in limits)


def _list_what_ran(summary: SessionSummary) -> list[Block]:
    """List the machine, the MPIs, the programs and the phases."""
    machine = summary.machine
    processes = sorted({result.case.processes for result in summary.results})
    facts = [
        f"machine: {machine.cpu_model or 'unknown processor'}, {formats.plural(machine.cores, 'core')}, "
        f"kernel {machine.kernel or 'unknown'}",
        f"processes: {', '.join(map(str, processes))}",
        f"built with: {summary.built_with}",
        f"command: {' '.join(summary.command)}",
    ]
    libraries = tuple(
        (each.name, "; ".join(sanitize.sanitize_lines(each.library)), each.origin, each.mpiexec)
        for each in summary.environments
    )
    programs = tuple(
        (each.program, each.environment, each.version, each.compiler, each.flags, each.spec)
        for each in summary.programs
    )
    phases = tuple((name, formats.duration(seconds)) for name, seconds in summary.phases.items())
    return [
        Lines(Role.ITEM, facts),
        TextTable("", ("MPI", "library, as the running program reports it", "from", "launcher"), (), libraries),
        TextTable("", ("program", "MPI", "version", "compiler", "flags", "from"), (), programs),
        TextTable("", ("phase",), ("time",), phases),
    ]


PLACES = ("system", "partition", "program")
CONDITIONS = ("cache", "sync")
MOST_OPEN = 15  #: entries of what failed that are not folded
MOST_PRINTED = 6  #: entries of what failed, and of what is to look at, that are printed


def build_report(
    session_dir: Path,
    summary: SessionSummary,
    trials: Mapping[str, Sequence[LaunchTrials]],
    past: first_screen.Past | None = None,
) -> tuple[Path, Path]:
    """Write the report of a session beside its ``summary.json``.

    ``trials`` are those of the session, by the key of their case; without any the report has no pictures of
    trials. ``past`` are the nights of its cases. Returns the paths of ``report.md`` and ``report.html``, which
    appear whole or not at all.

    :raises UsageError: if a report cannot be written.
    """
    markdown, html = session_dir / "report.md", session_dir / "report.html"
    pages = {markdown: render_markdown(summary, past), html: render_html(summary, trials, past)}
    document.write_pages(pages)
    return markdown, html


def render_markdown(summary: SessionSummary, past: first_screen.Past | None = None) -> str:
    """Render the report without pictures, for a mail or an issue."""
    return document.render_markdown(build_document(summary, past or first_screen.Past()))


def render_html(
    summary: SessionSummary, trials: Mapping[str, Sequence[LaunchTrials]], past: first_screen.Past | None = None
) -> str:
    """Render the report as one page that needs nothing but itself."""
    past = past or first_screen.Past()
    drawn, not_drawn = trial_selection.select_trials(summary, trials)
    names = panels.list_environments(summary.results)
    curves = build_curves(summary.results, summary.strict, names)
    table = build_case_table(summary.results, summary.strict, curves, past, drawn)
    groups = first_screen.list_numbered_groups(summary)
    proposals = first_screen.propose_next(summary, past.rounds)
    launches = sorted(summary.launches, key=lambda launch: (not launch.failed, launch.outcome))
    tone, headline = first_screen.conclude_session(summary, past.rounds)
    context: dict[str, Any] = {
        "summary": summary,
        "tone": tone,
        "session": summary.session,
        "headline": headline,
        "contradiction": overview.describe_contradiction(summary),
        "counts": count_verdicts(summary.results),
        "sight": first_screen.describe_sight(summary.results),
        "news": first_screen.find_news(summary, past),
        "proposals": proposals,
        "proposed": [each.command for each in proposals],
        "past": past,
        "notes": count_lines(summary.notes),
        "broken": [group for group in groups if group.failed],
        "doubtful": [group for group in groups if not group.failed],
        "most_open": MOST_OPEN,
        "most_printed": MOST_PRINTED,
        "most_groups": MOST_GROUPS,
        "most_of_one": MOST_OF_ONE_GROUP,
        "not_judged": overview.count_not_judged(summary.results),
        "maps": (build_verdict_map(summary.results, summary.strict), build_limit_map(summary.results)),
        "sensitivity": assess_sensitivity(summary),
        "classes": CLASSES,
        "curves": curves,
        "table": table,
        "anchors": {row.result.case.key: row.name for row in table.rows if row.name},
        "keys": plots.draw_sign_keys(),
        "not_drawn": not_drawn,
        "script": document.read_script("cases.js"),
        "places": find_varying_fields(summary.results, PLACES),
        "qualifiers": _qualifiers(summary.results),
        "processes": sorted({r.case.processes for r in summary.results}),
        "launches": launches[:MOST_LAUNCHES],
        "launches_left_out": max(0, len(launches) - MOST_LAUNCHES),
        "launches_failed": sum(launch.failed for launch in launches),
        "launches_skipped": sum(launch.outcome == "skipped" for launch in launches),
    }
    return document.render_html_template("report.html.j2", context, trials=plots.draw_trials)


def _qualifiers(results: Sequence[CaseResult]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return, by program and routine, the fields in which its cases differ, to be shown with each case."""
    everywhere = find_varying_fields(results, PLACES)
    found = group_pairs(((result.case.program, result.case.routine), result) for result in results)
    return {place: everywhere + find_varying_fields(own, CONDITIONS) for place, own in found.items()}
