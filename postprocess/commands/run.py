"""The command ``run``: what ``nightly`` does, for a selection of cases, and recorded as a run."""

from __future__ import annotations

import argparse

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_session
from postprocess.cli.request import build_request
from postprocess.commands import nightly
from postprocess.session.nightly.run import run_nightly

HELP = "Measure and judge a selection of cases; not recorded as a nightly run."
EXAMPLE = "./plumbline run --routine bcast,reduce_sum --processes 2,4"
FAILS = nightly.FAILS

add_arguments = add_session


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure a selection and judge it. Returns the exit status."""
    return run_nightly(work, build_request(work, arguments), Progress())
