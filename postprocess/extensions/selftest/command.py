"""The command ``selftest``: inject slowdowns into nights, and report what they catch."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import locate_ledger
from postprocess.calibration.schedule import LAUNCHES
from postprocess.cli.option_types import parse_comma_list, parse_count, parse_launches, parse_minutes
from postprocess.cli.options import SITE, TRIAL_COUNTS, add_json, add_options
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import HOW, WHAT, Parser
from postprocess.cli.request import build_request
from postprocess.extensions.selftest import data as nights
from postprocess.extensions.selftest.measure.night import SelftestDemand
from postprocess.extensions.selftest.measure.run import QUICK, conclude_selftest, run_selftest
from postprocess.model.routines.mpicost import CACHE, CACHES
from postprocess.session.lifecycle.injections import INJECTION_KINDS, list_unknown_injections

HELP = "Inject slowdowns into nightly runs; report detection rates and false alarms."
EXAMPLE = "./plumbline selftest --nights 10 --unchanged 40"
FAILS = "a plant was missed too often, or there were too many false alarms"


def add_arguments(parser: Parser) -> None:
    """Add the options that say what is planted, how often, and what is measured."""
    what = parser.group(WHAT)
    what.add_argument(
        "--plants",
        type=plants,
        metavar="NAME,...",
        help=f"only these plants (default: all {len(INJECTION_KINDS)}: {', '.join(INJECTION_KINDS)})",
    )
    what.add_argument(
        "--nights",
        type=parse_count,
        default=10,
        metavar="N",
        help="nights with each plant (default: %(default)s)",
    )
    what.add_argument(
        "--unchanged",
        type=parse_non_negative,
        default=10,
        metavar="N",
        help="nights with nothing planted (default: %(default)s)",
    )
    what.add_argument(
        "--routine",
        type=parse_comma_list,
        default=list(QUICK),
        metavar="NAME,...",
        help=f"only these routines (default: {','.join(QUICK)})",
    )
    what.add_argument("--again", type=Path, metavar="DIR", help="score what is in DIR again; run nothing")
    add_options(parser, *SITE, "--partition", "--environment")
    add_method(parser)
    add_output_directory(
        parser,
        "--output",
        "write the result to DIR; continue an interrupted self-test that is there",
        dest="directory",
    )
    add_json(parser)
    parser.set_defaults(program=["mpicost"])


def add_method(parser: Parser) -> None:
    """Add the options that say how a night is measured and judged."""
    how = parser.group(HOW)
    add_options(parser, *TRIAL_COUNTS)
    how.add_argument(
        "--cache",
        choices=CACHES,
        help=f"what mpicost does to the caches before each trial (default: {CACHE}); "
        "flush takes long on large caches",
    )
    how.add_argument(
        "--launches",
        type=parse_launches,
        default=LAUNCHES,
        metavar="N",
        help="launches of its own calibration (default: %(default)s)",
    )
    how.add_argument(
        "--sessions",
        type=parse_launches,
        default=1,
        metavar="N",
        help="bursts of its own calibration; with --spread as far apart as sessions (default: %(default)s)",
    )
    how.add_argument(
        "--spread",
        type=parse_minutes,
        default=0,
        metavar="MINUTES",
        help="spread the nights over so much time (default: one after the other)",
    )
    how.add_argument(
        "--references", type=Path, metavar="DIR", help="use the references in DIR, of an earlier self-test"
    )
    how.add_argument(
        "--seed", type=parse_non_negative, metavar="N", help="seed of the order of nights (default: random)"
    )
    add_options(parser, "--seconds-per-layout", "--time-limit")


def plants(text: str) -> list[str]:
    """Return names of plants, separated by commas."""
    words = parse_comma_list(text)
    if wrong := list_unknown_injections(words):
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(INJECTION_KINDS)}")
    return words


def parse_non_negative(text: str) -> int:
    """Return a whole number of zero or more."""
    return 0 if text == "0" else parse_count(text)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Plant, measure, judge, score."""
    if arguments.again:
        return conclude_selftest(arguments.again, Progress(), arguments.json)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    directory = (arguments.directory or work.root / "selftest" / stamp).absolute()
    refuse_other_folder(directory)
    if arguments.sessions > arguments.launches:
        raise UsageError(f"--sessions {arguments.sessions}: each has a launch at least; raise --launches")
    demand = SelftestDemand(
        directory=directory,
        plants=arguments.plants or list(INJECTION_KINDS),
        times=arguments.nights,
        unchanged=arguments.unchanged,
        launches=arguments.launches,
        seed=arguments.seed,
        sessions=arguments.sessions,
        spread=arguments.spread,
    )
    return run_selftest(work, build_request(work, arguments), demand, Progress())


def refuse_other_folder(directory: Path) -> None:
    """Refuse to begin in a folder that holds anything but a self-test.

    :raises UsageError: naming the folder and the fix
    """
    own = (directory / nights.FILE, locate_ledger(directory))
    if directory.is_dir() and any(directory.iterdir()) and not any(each.exists() for each in own):
        what = "is not empty and holds no self-test"
        raise UsageError(f"--output {directory}: {what}; choose another directory")
