"""The command ``import``: what a site's own ReFrame ran."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_json, add_site
from postprocess.cli.parser import Parser
from postprocess.model.session import Request, Selection
from postprocess.session.imported import import_reports
from site_configs.validation.catalog import locate_site_file

HELP = "Judge, store and report what a site's own ReFrame ran with our checks."
EXAMPLE = "./plumbline import --site /sw/reframe/settings.py ~/.reframe/reports/run-report-7.json"
FAILS = "as of nightly"


def add_arguments(parser: Parser) -> None:
    """Add the reports."""
    parser.add_argument(
        "reports", nargs="+", type=Path, metavar="REPORT", help="report of ReFrame (--report-file)"
    )
    add_site(parser)
    add_json(parser)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Judge what the reports tell of. Returns the exit status of the session."""
    request = Request(
        mode="import",
        command=["./plumbline", *sys.argv[1:]],
        site=arguments.site,
        selection=Selection(site=locate_site_file(work.source, arguments.site)),
        json_file=arguments.json,
    )
    return import_reports(work, request, arguments.reports, Progress())
