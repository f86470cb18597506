"""What comparisons catch on this machine: ``python -m tests.statistical.dossiers --help``.

Each dossier compares an MPI with itself: the new side is delayed in a known way, and on the old side the
library of delays is loaded and idle. That proves the rules of ``compare``, not a machine, and takes hours.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_comma_list, parse_count
from postprocess.cli.options import SITE, TRIAL_COUNTS, add_json, add_options
from postprocess.cli.parser import HOW, WHAT, Parser
from postprocess.cli.request import build_request
from postprocess.extensions.selftest.command import QUICK, parse_non_negative, plants
from postprocess.model.routines.mpicost import CACHE, CACHES
from site_configs.schema.variables import work_directory
from tests.statistical.dossiers.measure import DossierDemand, conclude_dossiers, measure_dossiers
from tests.statistical.dossiers.schedule import USUAL_PLANTS
from tests.support.paths import ROOT


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(prog="python -m tests.statistical.dossiers", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", help="for the result; goes on there")
    what = parser.group(WHAT)
    what.add_argument("--again", action="store_true", help="score what is in DIR; run nothing")
    what.add_argument("--plants", type=plants, metavar="NAME,...", default=list(USUAL_PLANTS))
    what.add_argument("--times", type=parse_count, default=3, metavar="N", help="of each plant")
    what.add_argument("--unchanged", type=parse_non_negative, default=12, metavar="N")
    what.add_argument("--routine", type=parse_comma_list, default=list(QUICK), metavar="NAME,...")
    how = parser.group(HOW)
    how.add_argument("--cache", choices=CACHES, help=f"(default: {CACHE})")
    how.add_argument("--seconds", type=parse_count, metavar="SECONDS", help="for each dossier")
    how.add_argument("--seed", type=parse_non_negative, metavar="N")
    add_options(parser, *SITE, "--partition", "--environment")
    add_options(parser, *TRIAL_COUNTS, "--time-limit")
    add_json(parser)
    parser.set_defaults(name="selftest", program=["mpicost"], launches=1)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Plant, measure, judge, score. Returns the exit status."""
    directory = arguments.directory.absolute()
    if arguments.again:
        return conclude_dossiers(directory, Progress(), arguments.json)
    work = WorkDirectory(work_directory(), ROOT)
    demand = DossierDemand(
        directory=directory,
        plants=arguments.plants,
        times=arguments.times,
        unchanged=arguments.unchanged,
        seconds=arguments.seconds,
        seed=arguments.seed,
    )
    return measure_dossiers(work, build_request(work, arguments), demand, Progress())


def main(words: Sequence[str] | None = None) -> int:
    """Run the script. Returns the exit status."""
    try:
        return run(build_parser().parse_args(words))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
