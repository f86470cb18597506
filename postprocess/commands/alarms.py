"""The command ``alarms``: compare the number of alarms with the predicted one."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from postprocess.analyses import alarms
from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.formats import align_rows, factor, format_significant, format_whole, plural, wrap_all
from postprocess.base.progress import Progress
from postprocess.base.sanitize import sanitize_line
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_json, add_options
from postprocess.cli.parser import Parser

MOST_ALARMS = 20  #: that are listed, the last ones
WIDTH = 1000  #: of a table in a pipe: no line is folded


EXAMPLE = "./plumbline alarms --since 2026-11-01"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the options that choose nights, and those that classify alarms."""
    add_options(parser, "--since")
    parser.group("what to record").add_argument(
        "--mark",
        nargs=3,
        metavar=("WORD", "CASE", "SESSION"),
        help=f"mark an alarm as {alarms.REAL} (the machine had become slower) or {alarms.FALSE} (nothing was "
        "wrong)",
    )
    add_json(parser)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Note what people say of alarms, or show how many there were. Returns the exit status.

    :raises UsageError: if the log is damaged, or holds no such alarm.
    """
    path = work.root / alarms.FILE
    if arguments.mark:
        word, key, session = arguments.mark
        if word not in (alarms.REAL, alarms.FALSE):
            raise UsageError(f"--mark {word}: an alarm is {alarms.REAL} or {alarms.FALSE}; write one of them")
        with work.held():
            alarms.mark_alarm(path, session, key, word)
        Progress().say_whole(f"{key} of {session}: noted as {word}")
        return 0
    nights = [n for n in alarms.read_alarm_log(path) if n.started_utc >= (arguments.since or "")]
    if not nights:
        since = f" since {arguments.since}" if arguments.since else ""
        raise UsageError(f"{path}: holds no night{since}; ./plumbline nightly writes one each")
    show_alarms(Console(width=None if Console().is_terminal else WIDTH, highlight=False), nights)
    if arguments.json:
        write_summary(arguments.json, alarms_as_data(nights))
    return 0


HEAD = ("month", "alarms", "nights", "cases", "seen", "predicted", "95% range", "")
TEXTS = 2  #: columns of text, the first ones


def show_alarms(console: Console, nights: Sequence[alarms.NightAlarms]) -> None:
    """Show each site's table of months, its meaning, and the suspicious cases."""
    found = alarms.tally_by_month(nights)
    sites = sorted({month.site for month in found})
    for site in sites:
        months = [month for month in found if month.site == site]
        if len(sites) > 1:
            console.print(sanitize_line(site), markup=False)
        own = [night for night in nights if night.site == site]
        for line in [*format_months(months), *describe_alarms(months[-1], own)]:
            console.print(sanitize_line(line), soft_wrap=True, markup=False)


def format_months(months: Sequence[alarms.AlarmMonth]) -> list[str]:
    """Format the table of a site: a row for what looked slow in a month, and one for what regressed."""
    rows: list[tuple[str, ...]] = [HEAD]
    for month in months:
        whole = format_whole(month.nights), format_whole(month.judged)
        rows.append((month.name, "looked slow", *whole, *_cells(month.screened)))
        rows.append(("", "regressed", "", "", *_cells(month.regressed)))
    return align_rows(rows, TEXTS)


def _cells(tally: alarms.AlarmCount) -> tuple[str, ...]:
    low, high = (format_significant(end, 2) for end in tally.interval)
    return format_whole(tally.counted), factor(tally.predicted), f"{low} to {high}", tally.verdict


def describe_alarms(total: alarms.AlarmMonth, nights: Sequence[alarms.NightAlarms]) -> list[str]:
    """Describe what follows from the numbers of a site; a case and its session, to be copied, stay whole."""
    lines = [
        "predicted: by chance alone on a healthy machine; 95% range: of that number, by the nights themselves"
    ]
    if total.regressed.counted:
        told = [
            f"{format_whole(total.regressed.counted)} regressed: {format_whole(total.real)} real",
            f"{format_whole(total.false)} false",
            f"{format_whole(total.unmarked)} not marked",
        ]
        mark = f"./plumbline alarms --mark {alarms.REAL}|{alarms.FALSE} CASE SESSION"
        fix = f": real changes may be among them ({mark})" if total.unmarked else ""
        lines.append(", ".join(told) + fix)
    if total.common:
        lines.append(f"many cases were slow by one cause on {plural(total.common, 'night')}")
    if total.screened.dispersion > 1.5:
        lines.append(
            f"slow cases cluster on some nights: their variance is {total.screened.dispersion:.1f} times that "
            "of chance, which the range allows for"
        )
    lines = wrap_all(lines)
    alarmed = [(n, k) for n in nights for k in n.alarms][-MOST_ALARMS:]
    for night, key in alarmed:
        times = factor(night.regressed[key])
        lines.append(f"regressed: {key} {night.session}: {times}, {night.said.get(key, 'not marked')}")
    for key, number in alarms.find_often_cleared(nights):
        hosts, site = ", ".join(alarms.find_slow_hosts(nights, key)), total.site
        links = "./plumbline links" + (f" --site {site}" if site != "local" else "")
        advice = f"slow on {hosts} and on no other nodes: {links} finds sick nodes"
        cleared = f"cleared on {plural(number, 'night')}: {key}: {advice if hosts else 'calibrate it again'}"
        lines += wrap_all([cleared])
    return lines


def alarms_as_data(nights: Sequence[alarms.NightAlarms]) -> dict[str, Any]:
    return json.loads(
        json.dumps(
            {
                "schema": alarms.SCHEMA,
                "months": [
                    asdict(month) | {name: _entry(getattr(month, name)) for name in ("screened", "regressed")}
                    for month in alarms.tally_by_month(nights)
                ],
                "often_cleared": dict(alarms.find_often_cleared(nights)),
                "slow_on": {
                    key: alarms.find_slow_hosts(nights, key) for key, _ in alarms.find_often_cleared(nights)
                },
                "nights": [asdict(night) for night in nights],
            }
        )
    )


def _entry(tally: alarms.AlarmCount) -> dict[str, Any]:
    return asdict(tally) | {"interval": list(tally.interval), "verdict": tally.verdict}
