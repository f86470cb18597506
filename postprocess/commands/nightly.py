"""The command ``nightly``: build, run, judge, keep, report."""

from __future__ import annotations

import argparse

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_session
from postprocess.cli.request import build_request
from postprocess.session.nightly.run import run_nightly

HELP = "Build, run and judge all cases; calibrate first where references are missing."
EXAMPLE = "./plumbline nightly --site mycluster --json summary.json"
FAILS = (
    "a case regressed, failed or has no usable reference (--strict: or is provisional or skipped)"
)

add_arguments = add_session


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Run a session and judge it. Returns the exit status."""
    return run_nightly(work, build_request(work, arguments), Progress())
