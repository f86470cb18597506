"""The command ``run``: what ``nightly`` does, for a selection of cases, and recorded as a run."""

from __future__ import annotations

from postprocess.commands import nightly

HELP = "Measure and judge a selection of cases; not recorded as a nightly run."
EXAMPLE = "./plumbline run --routine bcast,reduce_sum --processes 2,4"
FAILS = nightly.FAILS

add_arguments = nightly.add_arguments
run = nightly.run
