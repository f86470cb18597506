"""What the command ``selftest`` accepts, and how it begins."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from pathlib import Path

from postprocess.analyses.selftest.injections import PLANTS, unknown
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.rounds import LAUNCHES
from postprocess.cli.option_types import comma_list, count, trials
from postprocess.cli.options import add_json, add_site
from postprocess.cli.request import request
from postprocess.model.mpicost import CACHE, CACHES, TRIALS
from postprocess.session.selftest import QUICK, Demand, conclude, selftest


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""

    def plants(text: str) -> list[str]:
        words = comma_list(text)
        if wrong := unknown(words):
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(PLANTS)}")
        return words

    def whole(text: str) -> int:
        return 0 if text == "0" else count(text)

    add_site(parser)
    parser.add_argument(
        "--environment", type=comma_list, default=[], help="only these environments"
    )
    parser.add_argument(
        "--partition", type=comma_list, default=[], help="only these partitions of the site"
    )
    parser.add_argument(
        "--routine",
        type=comma_list,
        default=list(QUICK),
        help=f"these routines (default: {','.join(QUICK)})",
    )
    parser.add_argument("--trials", type=trials, help=f"of mpicost, per case (default: {TRIALS})")
    parser.add_argument(
        "--cache", choices=CACHES, help=f"before each trial (default: {CACHE}); warm is less noisy"
    )
    parser.add_argument(
        "--plants",
        type=plants,
        default=list(PLANTS),
        help=f"only these plants (default: all {len(PLANTS)}: {', '.join(PLANTS)})",
    )
    parser.add_argument(
        "--nights", type=count, default=10, help="of each plant (default: %(default)s)"
    )
    parser.add_argument(
        "--unchanged",
        type=whole,
        default=10,
        help="nights with nothing planted (default: %(default)s)",
    )
    parser.add_argument(
        "--launches",
        type=count,
        default=LAUNCHES,
        help="of its own calibration, where the site has no references (default: %(default)s)",
    )
    parser.add_argument(
        "--references",
        type=Path,
        metavar="DIR",
        help="hold against the references here and no others",
    )
    parser.add_argument(
        "--output",
        type=Path,
        dest="directory",
        metavar="DIR",
        help="for the result; one that is there goes on where it was interrupted",
    )
    parser.add_argument("--seed", type=whole, help="of the order of nights (default: random)")
    add_json(parser)
    parser.add_argument(
        "--again", type=Path, metavar="DIR", help="score the nights of a folder again; run nothing"
    )
    parser.add_argument("--time-limit", type=count, help="seconds after which a launch is ended")
    parser.set_defaults(program=["mpicost"])


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Plant, measure, judge, score."""
    if arguments.again:
        return conclude(arguments.again, Progress(), arguments.json)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    demand = Demand(
        directory=(arguments.directory or work.root / "selftest" / stamp).absolute(),
        plants=arguments.plants,
        times=arguments.nights,
        unchanged=arguments.unchanged,
        launches=arguments.launches,
        seed=arguments.seed,
    )
    return selftest(work, request(work, arguments), demand, Progress())
