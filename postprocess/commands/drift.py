"""The command ``drift``: find steps and slow trends over many nights."""

import argparse
from collections.abc import Sequence

from postprocess.analyses import drift_report
from postprocess.analyses.drift import NightSeries, detect_trends
from postprocess.analyses.drift_findings import cluster_changes, day_before, read_nights
from postprocess.analyses.drift_page import PAGE, build_drift_document
from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_json, add_options
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import READ, Parser
from postprocess.model.case import matches_patterns
from postprocess.report.rendering import write_document

DAYS = 365  #: that are looked at unless told otherwise


EXAMPLE = "./plumbline drift --since 2026-09-01 --case '*:allreduce*:*'"
FAILS = "a case became slower and still is"


def add_arguments(parser: Parser) -> None:
    """Add the options that choose nights and cases, and where the page goes."""
    add_options(parser, "--since", "--case", since="a year ago")
    parser.group(READ).add_argument(
        "--site", metavar="NAME", help="only cases of this site (default: all in the results store)"
    )
    add_json(parser)
    add_output_directory(
        parser, "--output", "write the pages to DIR (default: the work directory)", pages=[PAGE, "drift.md"]
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Look for what became slower over the nights. Returns 1 if something did and still is.

    :raises UsageError: for anything that is the user's to mend, and if nothing can be said of any case.
    """
    progress = Progress()
    since = arguments.since or day_before(DAYS)
    series = select_series(read_nights(work.store, since, say=progress.say), arguments.case, arguments.site)
    if not series:
        when = f"--since {since}: no night from then on" if arguments.since else f"no night since {since}"
        raise UsageError(f"{when} in {work.store}; ./plumbline nightly makes one")
    trends = detect_trends(series)
    if not any(trend.known for trend in trends):
        raise UsageError(f"nothing can be said of any case yet: {drift_report.explain_too_few_nights()}")
    found = cluster_changes(trends)
    if found:
        print(*drift_report.format_drift(found), "", sep="\n")
    directory = arguments.output or work.root / "drift"
    page = write_document(build_drift_document(trends, found, since), directory / PAGE)
    if arguments.json:
        write_summary(arguments.json, drift_report.drift_as_data(trends, found, since))
    progress.say_whole(f"pictures: {page}")
    progress.say(drift_report.summarise_drift(trends, found))
    return 1 if any(cluster.slow for cluster in found) else 0


def select_series(
    series: Sequence[NightSeries], patterns: Sequence[str], site: str | None
) -> list[NightSeries]:
    """Select the cases that the user asks for. Raises UsageError naming what is not there."""
    systems = sorted({each.case.system for each in series})
    if site and site not in systems:
        raise UsageError(f"--site {site}: no nights; there are some of {', '.join(systems) or 'none'}")
    some = [each for each in series if site in (None, each.case.system)]
    for pattern in patterns:
        if not any(matches_patterns(each.case.key, [pattern]) for each in some):
            such = f", such as {some[0].case.key}" if some else ""
            raise UsageError(f"--case {pattern}: no night has one; name a key or a pattern{such}")
    return [each for each in some if matches_patterns(each.case.key, patterns)]
