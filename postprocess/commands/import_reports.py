"""The command ``import``: what a site's own ReFrame ran."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import SITE, add_options, add_summary_outputs
from postprocess.cli.parser import Parser
from postprocess.cli.request import list_outputs, list_rerun_options, locate_searched
from postprocess.model.session import Request, Selection
from postprocess.session.nightly.imported import import_reports
from site_configs.validation.site_files import locate_site_file

HELP = "Judge, store and report what a site's own ReFrame ran with our checks."
EXAMPLE = "./plumbline import --site /sw/reframe/settings.py ~/.reframe/reports/run-report-7.json"
FAILS = "as of nightly"


def add_arguments(parser: Parser) -> None:
    """Add the reports."""
    parser.add_argument(
        "reports", nargs="+", type=Path, metavar="REPORT", help="report of ReFrame (--report-file)"
    )
    add_options(parser, *SITE)
    add_options(parser, "--references")
    add_summary_outputs(parser)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Judge what the reports tell of. Returns the exit status of the session."""
    request = Request(
        mode=arguments.name,
        command=["./plumbline", *sys.argv[1:]],
        site=arguments.site,
        selection=Selection(site=locate_site_file(work.source, arguments.site)),
        references=locate_searched(arguments),
        **list_outputs(arguments),
        rerun_options=list_rerun_options(arguments),
    )
    return import_reports(work, request, arguments.reports, Progress())
