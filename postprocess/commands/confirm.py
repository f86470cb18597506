"""The command ``confirm``: measure again, now, what the last night left suspect."""

from __future__ import annotations

import argparse

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_session
from postprocess.cli.request import build_request
from postprocess.session.nightly.confirm import run_confirmation

HELP = "Measure again, in a session of its own, what the last night left suspect."
EXAMPLE = "./plumbline confirm --site mycluster"
FAILS = "a case that was suspect is regressed, failed, or could not be measured again"

add_arguments = add_session


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure suspects again. Returns the exit status."""
    return run_confirmation(work, build_request(work, arguments), Progress())
