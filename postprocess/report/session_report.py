"""The report of a session: ``report.md``, and ``report.html`` with its pictures in one file."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from postprocess.base import formats, sanitize
from postprocess.base.formats import TextTable
from postprocess.base.grouping import group_pairs
from postprocess.model.groups import count_lines
from postprocess.model.verdict import CaseResult, Verdict, count_verdicts, find_varying_fields
from postprocess.report import (
    document,
    first_screen,
    overview,
    panels,
    rendering,
    trial_selection,
    trials_picture,
)
from postprocess.report.case_table import CaseTable, build_case_table
from postprocess.report.curves import Curves, build_curves
from postprocess.report.document import (
    Block,
    Commands,
    Document,
    Drawing,
    Group,
    Lines,
    Linked,
    Named,
    Phrase,
    Role,
    Section,
    Tone,
    Toned,
)
from postprocess.report.grids import build_grid, build_limit_map, build_verdict_map
from postprocess.report.overview import CLASSES, Sensitivity, assess_sensitivity
from postprocess.report.trial_selection import LaunchTrials
from postprocess.results.summary import SessionSummary, SummaryLaunch
from site_configs.topology.machine import Cache

PLACES = ("system", "partition", "program")
CONDITIONS = ("cache", "sync")
MOST_GROUPS = 150  #: of what failed, and of what is to look at
MOST_OPEN = 15  #: of these those that are not folded
MOST_PRINTED = 6  #: of these those that are printed
MOST_OF_ONE_GROUP = 30  #: cases that are named of those of which the same is said
MOST_NEWS = 4  #: cases that are named of those that changed in one way
MOST_LAUNCHES = 200  #: of those that failed, and of the others
HOW_TO_READ = (
    "The value of a case is the median of its launches. It is held against a reference, the center of earlier "
    "launches on this machine, inside a band that follows from how launches and sessions differ.",
    "The headline, the mean of the papers without spikes (more than 1.8 medians, at most a tenth of the "
    "trials), has a limit of its own, for slow trials that are few.",
    "A result is provisional if one night could not have detected even twice the time. Fast means suspiciously "
    "far below the band, and is not a failure.",
    "Slowdown is how many times as slow as its reference a case is, for times and bandwidths alike: above 1 is "
    "worse. The limit is the smallest slowdown that one night calls with 90% probability.",
    "1 kB is 1000 bytes, 1 KiB 1024, 1 MB/s a million bytes per second.",
    "The pictures and all cases are in report.html, the same without them in report.md, the numbers in "
    "summary.json, every trial in the store.",
)
MEANING = (
    "A detection limit is the smallest slowdown that is called with 90% probability. One night calls what is "
    "grossly slower; what lies just above its band is called when further nights find it slow too. From how "
    "the launches and sessions behind each reference differ, with Student's t on the logarithm. References "
    "learn from good nights, and detection limits fall."
)
NO_TRIALS: Mapping[str, Sequence[LaunchTrials]] = {}


class _CaseNames:
    """How cases are named: by key, and on a page by what they are, with a link to their row in the table."""

    def __init__(self, results: Sequence[CaseResult], table: CaseTable) -> None:
        self.everywhere = find_varying_fields(results, PLACES)
        own = group_pairs(((result.case.program, result.case.routine), result) for result in results)
        self.fields = {
            place: self.everywhere + find_varying_fields(same, CONDITIONS) for place, same in own.items()
        }
        self.rows = {row.result.case.key: f"#{row.name}" for row in table.rows if row.name}

    def name(self, result: CaseResult) -> Named:
        case = result.case
        label = f"{case.label} {formats.size(case.bytes)}" if case.bytes else case.label
        where = self._locate(result, self.fields[case.program, case.routine])
        return Named(case.key, label, where, self.rows.get(case.key, ""))

    def locate(self, result: CaseResult) -> str:
        """Tell where all cases of a group are."""
        return self._locate(result, self.everywhere)

    def _locate(self, result: CaseResult, fields: Iterable[str]) -> str:
        case = result.case
        spread = f", {case.per_node} per node" if case.per_node != case.processes else ""
        parts = [case.environment, f"{formats.plural(case.processes, 'process', 'es')}{spread}"]
        return " · ".join([*parts, *(str(getattr(case, name)) for name in fields)])


def build_document(
    summary: SessionSummary, past: first_screen.Past, trials: Mapping[str, Sequence[LaunchTrials]] = NO_TRIALS
) -> Document:
    """Build the document of a session.

    :param past: the nights of its cases
    :param trials: of the session, by the key of their case; without any there are no pictures of trials
    """
    curves = build_curves(summary.results, summary.strict, panels.list_environments(summary.results))
    drawn, not_drawn = trial_selection.select_trials(summary, trials)
    table = build_case_table(summary.results, summary.strict, curves, past, drawn)
    names = _CaseNames(summary.results, table)
    groups = first_screen.list_numbered_groups(summary)
    host = summary.machine.host or "an unnamed host"
    wrong = overview.describe_contradiction(summary)
    tone, headline = first_screen.conclude_session(summary, past.rounds)
    ran = formats.plural(len(summary.launches), "launch", "es")
    mpis = formats.plural(len(summary.environments), "MPI")
    measured = {result.case.program for result in summary.results if result.verdict is not Verdict.SKIPPED}
    sections = [
        Section("New", list(_list_news(summary, past, names)), half=True),
        Section("Next", list(_list_proposals(summary, past)), half=True),
        Section("Notes", [Lines(Role.CAVEAT, count_lines(summary.notes))]),
        *_build_groups("What failed", summary, [group for group in groups if group.failed], names),
        *_build_groups("To look at", summary, [group for group in groups if not group.failed], names),
        Section("Not run, not judged", [Lines(Role.ITEM, list(_list_not_judged(summary)))]),
        _build_maps(summary),
        *_build_limits(assess_sensitivity(summary)),
        _build_case_list(table, past, not_drawn),
        _build_curves(curves),
        Section("What ran", [Lines(Role.ITEM, list(_list_what_ran(summary)))]),
        _build_failed_launches(summary),
        Section("MPIs and programs", _tabulate_programs(summary), folded=True, printed=""),
        _build_launches(summary),
    ]
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
            f"{ran} on {mpis}, {'strict, ' if summary.strict else ''}exit status {summary.exit_status}",
            *filter(None, [overview.format_expected_failures(summary.results)]),
            *filter(None, [first_screen.describe_sight(summary.results)]),
            *map(_tell_round, past.rounds),
        ],
        sections=sections,
        how_to_read=(*filter(None, [document.describe_judged(measured)]), *HOW_TO_READ),
        failures=[f"Contradiction: {wrong}"] if wrong else [],
        styles=["night.css"],
        counts=[
            _count(word, number, {result.verdict for result in summary.failed})
            for word, number in count_verdicts(summary.results).items()
        ],
        script="cases.js",
    )


def _count(word: str, number: int, failed: Container[Verdict]) -> Linked:
    """Return how many cases have a verdict, with the search that shows them."""
    skipped = word == Verdict.SKIPPED
    tone = Tone.BAD if Verdict(word) in failed else Verdict(word).tone
    search = "" if skipped else f"verdict={word}"
    return Linked(f"{formats.format_whole(number)} {word}", "" if skipped else "#cases", tone, search)


def _tell_round(each: first_screen.LaterRound) -> Linked:
    return Linked(f"{each.sentence} (session {each.session})", f"../{each.session}/report.html", each.tone)


def _list_news(summary: SessionSummary, past: first_screen.Past, names: _CaseNames) -> Iterator[Lines]:
    """List what the night before did not say."""
    if past.problem:
        yield Lines(Role.CAVEAT, [past.problem])
        return
    news = first_screen.find_news(summary, past)
    yield Lines(Role.REMARK, [f"{news.line[0].upper()}{news.line[1:]}."])
    items, marks = [], []
    for item in news.items:
        named = [part for result in item.results[:MOST_NEWS] for part in (names.name(result), "; ")][:-1]
        left = len(item.results) - MOST_NEWS
        more = f" and {formats.format_whole(left)} more" if left > 0 else ""
        items.append(Phrase(f"{item.what}: ", *named, more))
        marks.append(Toned(formats.format_whole(len(item.results)), item.tone))
    yield Lines(Role.ITEM, items, marks)


def _list_proposals(summary: SessionSummary, past: first_screen.Past) -> Iterator[Block]:
    """List what to do next, with its cost."""
    proposals = first_screen.propose_next(summary, past.rounds)
    for proposal in proposals:
        yield Commands(proposal.sentence, [proposal.command] if proposal.command else [], folded=False)
    if not proposals:
        comes = ": the next night comes by itself" if summary.good else ""
        yield Lines(Role.REMARK, [f"Nothing to do{comes}."])


def _build_groups(
    title: str, summary: SessionSummary, groups: Sequence[first_screen.NumberedGroup], names: _CaseNames
) -> Iterator[Section]:
    """Build the sections of cases that are not healthy, by what is said of them; not all are printed."""
    proposed = {proposal.command for proposal in first_screen.propose_next(summary)}
    found = [_build_group(group, names, proposed) for group in groups[:MOST_GROUPS]]
    left = formats.plural(len(groups) - MOST_PRINTED, "further group")
    yield Section(title, found[:MOST_PRINTED])
    yield Section("", found[MOST_PRINTED:MOST_OPEN], printed=f"{left}: on the screen's page.")
    more = f"{title}: {formats.format_whole(len(groups) - MOST_OPEN)} more"
    unlisted = len(groups) - len(found)
    rest = [
        Lines(Role.DETAIL, [f"{formats.plural(unlisted, 'further group')} in summary.json"] if unlisted else [])
    ]
    yield Section(more, [*found[MOST_OPEN:], *rest], folded=True, printed="")


def _build_group(numbered: first_screen.NumberedGroup, names: _CaseNames, proposed: Container[str]) -> Group:
    group, results = numbered.group, numbered.group.results
    tone = Tone.BAD if numbered.failed else group.verdict.tone
    mark = Toned(f"{group.verdict.sign} {group.verdict}", tone)
    command = "" if numbered.again in proposed else numbered.again
    if len(results) == 1:
        why = _join(overview.explain(results[0]), _tell_figures(results[0]))
        return Group(mark, names.name(results[0]), why=why, command=command)
    left = len(results) - MOST_OF_ONE_GROUP
    return Group(
        mark,
        formats.plural(len(results), "case"),
        names.locate(results[0]) if group.at_one_place else "",
        [
            (
                names.name(result),
                _join(overview.format_numbers(result), _tell_band(result), _tell_figures(result)),
            )
            for result in results[:MOST_OF_ONE_GROUP]
        ],
        f"and {formats.format_whole(left)} more like these: all are in summary.json" if left > 0 else "",
        group.reason,
        command,
    )


def _join(*texts: str) -> str:
    return "; ".join(filter(None, texts))


def _tell_band(result: CaseResult) -> str:
    return f"band {formats.format_band(result.band, result.unit)}" if result.band else ""


def _tell_figures(result: CaseResult) -> str:
    """Tell what else a program printed of a case."""
    return ", ".join(f"{name} {value:.6g}" for name, value in (result.figures or {}).items())


LAUNCH_LABELS = ("outcome", "program", "environment", "partition", "reason", "directory")
LAUNCH_COLUMNS = ("processes", "per node", "launch", "time")


def _tabulate_launches(launches: Sequence[SummaryLaunch]) -> TextTable:
    rows = tuple(
        (
            Toned(launch.outcome, Tone.BAD) if launch.failed else launch.outcome,
            *(launch.name, launch.environment, launch.partition, launch.reason, launch.directory),
            *(str(launch.processes), str(launch.per_node), str(launch.launch)),
            formats.duration(launch.seconds),
        )
        for launch in launches[:MOST_LAUNCHES]
    )
    left = len(launches) - len(rows)
    notes = (f"{formats.plural(left, 'further launch', 'es')} in summary.json",) if left else ()
    return TextTable("", LAUNCH_LABELS, LAUNCH_COLUMNS, rows, notes)


def _build_failed_launches(summary: SessionSummary) -> Section:
    failed = sorted((launch for launch in summary.launches if launch.failed), key=lambda each: each.outcome)
    return Section("Launches that failed", [_tabulate_launches(failed)], printed="")


def _build_launches(summary: SessionSummary) -> Section:
    """Build the section of all other launches, which may be hundreds."""
    others = sorted((launch for launch in summary.launches if not launch.failed), key=lambda each: each.outcome)
    counts = {
        "failed": len(summary.launches) - len(others),
        "skipped": sum(launch.outcome == "skipped" for launch in others),
    }
    told = "".join(f", {formats.format_whole(number)} {word}" for word, number in counts.items() if number)
    title = f"Launches: {formats.format_whole(len(summary.launches))}{told}"
    return Section(title, [_tabulate_launches(others)], folded=True, printed="", only_page=True)


def _list_not_judged(summary: SessionSummary) -> Iterator[str]:
    """List why cases were not run, and why no reference judged others."""
    for what, reason, number in overview.count_not_judged(summary.results):
        yield f"{what}: {formats.plural(number, 'case')}: {reason}"


def _build_maps(summary: SessionSummary) -> Section:
    """Build the maps of routine by size; where there are no pictures, a table of verdicts for each program."""
    grid = build_grid(summary)
    tables = [
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
    verdicts = build_verdict_map(summary.results, summary.strict)
    context = {"verdicts": verdicts, "limits": build_limit_map(summary.results), "classes": CLASSES}
    draw = partial(rendering.render_fragment, "maps.html.j2", context)
    return Section("Cases by routine", [Drawing(draw, tables)] if tables else [])


def _build_case_list(table: CaseTable, past: first_screen.Past, not_drawn: int) -> Section:
    """Build the table of all cases, which only a page has: its script searches and sorts it."""
    context = {
        "table": table,
        "keys": trials_picture.draw_sign_keys(),
        "history": bool(past.nights),
        "not_drawn": not_drawn,
        "figures": _tell_figures,
    }
    draw = partial(rendering.render_fragment, "cases.html.j2", context, trials=trials_picture.draw_trials)
    return Section("All cases", [Drawing(draw)] if table.rows else [], printed="")


def _build_curves(curves: Curves) -> Section:
    draw = partial(rendering.render_fragment, "curves.html.j2", {"curves": curves})
    title = "Values over bytes and processes"
    return Section(title, [Drawing(draw)] if curves.sections else [], printed="")


def _build_limits(sensitivity: Sensitivity | None) -> Iterator[Section]:
    """Build the sections on the smallest slowdowns that are called."""
    if sensitivity is None:
        return
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
        (result.case.key, *_format_limits(result.detectable, result.detectable_soon))
        for result in sensitivity.worst
    )
    highest = TextTable("", ("highest detection limits",), ("tonight", "within three nights"), worst)
    yield Section("Detection limits", [Lines(Role.REMARK, [sensitivity.line])])
    yield Section(
        "Detection limits by program, MPI and size",
        [Lines(Role.REMARK, [MEANING]), limits, highest],
        folded=True,
        printed="",
    )


def _format_limits(*limits: float | None) -> Iterator[str]:
    return (formats.format_percent(limit, "nothing") for limit in limits)


def _list_what_ran(summary: SessionSummary) -> Iterator[str]:
    """List the machine, the command and the phases."""
    machine = summary.machine
    cores = f"{formats.plural(machine.cores, 'core')} in {formats.plural(machine.sockets, 'socket')}"
    yield f"machine: {machine.cpu_model or 'unknown processor'}, {cores}, kernel {machine.kernel or 'unknown'}"
    if caches := ", ".join(map(_describe_cache, machine.caches)):
        yield f"caches: {caches}"
    if processes := sorted({result.case.processes for result in summary.results}):
        yield f"processes: {', '.join(map(str, processes))}"
    yield f"built with: {summary.built_with}"
    yield f"command: {' '.join(summary.command)}"
    if phases := [f"{name} {formats.duration(seconds)}" for name, seconds in summary.phases.items()]:
        yield f"time: {', '.join(phases)}"


def _describe_cache(cache: Cache) -> str:
    shared = f" shared by {cache.shared_by}" if cache.shared_by > 1 else ""
    return f"L{cache.level} {cache.type} {formats.binary_size(cache.bytes)}{shared}"


def _tabulate_programs(summary: SessionSummary) -> list[TextTable]:
    """Tabulate the MPIs and the programs."""
    libraries = tuple(
        (
            environment.name,
            "; ".join(sanitize.sanitize_lines(environment.library)) or "unknown",
            environment.origin,
            environment.mpicc,
            environment.mpiexec,
        )
        for environment in summary.environments
    )
    programs = tuple(
        (program.program, program.environment, program.version, program.compiler, program.flags, program.spec)
        for program in summary.programs
    )
    library = "library, as the running program reports it"
    return [
        TextTable("", ("MPI", library, "from", "compiler wrapper", "launcher"), (), libraries),
        TextTable("", ("program", "MPI", "version", "compiler", "flags", "from"), (), programs),
    ]


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
    told = build_document(summary, past or first_screen.Past(), trials)
    rendering.write_pages({markdown: rendering.render_markdown(told), html: rendering.render_html(told)})
    return markdown, html


def render_markdown(summary: SessionSummary, past: first_screen.Past | None = None) -> str:
    """Render the report without pictures, for a mail or an issue."""
    return rendering.render_markdown(build_document(summary, past or first_screen.Past()))


def render_html(
    summary: SessionSummary, trials: Mapping[str, Sequence[LaunchTrials]], past: first_screen.Past | None = None
) -> str:
    """Render the report as one page that needs nothing but itself."""
    return rendering.render_html(build_document(summary, past or first_screen.Past(), trials))
