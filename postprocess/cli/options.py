"""The options that several commands share, and those of the commands that measure."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.calibration.rounds import LAUNCHES
from postprocess.cli.option_types import (
    Gather,
    assignment,
    comma_list,
    count,
    counts,
    json_file,
    moment,
    programs,
    sizes,
    trials,
)
from postprocess.model.benchmark import ITERATIONS, ROTATE
from postprocess.model.mpicost import CACHE, CACHES, SYNC, SYNCHRONISERS, TRIALS, WARM


def add_site(parser: argparse.ArgumentParser) -> None:
    """The options that say where to run."""
    parser.add_argument(
        "--site", default="local", help="site file by name or path (default: this machine)"
    )
    parser.add_argument(
        "--mpis",
        type=comma_list,
        help="MPI families wanted on this machine (default: mpich,openmpi,intel-mpi)",
    )


def add_places(parser: argparse.ArgumentParser) -> None:
    """The options that say which routines, and where."""
    parser.add_argument(
        "--environment",
        type=comma_list,
        default=[],
        help="only these environments, as in mpich-5_0_2",
    )
    parser.add_argument(
        "--routine", type=comma_list, default=[], help="only these routines, as in bcast,reduce_sum"
    )
    parser.add_argument(
        "--partition", type=comma_list, default=[], help="only these partitions of the site"
    )
    parser.add_argument(
        "--processes", type=counts, default=[], help="these process counts instead of the ladder's"
    )
    parser.add_argument(
        "--per-node", type=counts, default=[], help="only these numbers of processes per node"
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The options that say what to run, and where."""
    add_site(parser)
    add_places(parser)
    parser.add_argument(
        "--program", type=programs, default=[], help="only these programs, as in mpicost,osu,imb"
    )
    parser.add_argument(
        "--peers", type=counts, default=[], help="only these partners of rank 0 in ping-pong"
    )
    parser.add_argument(
        "--bytes",
        type=sizes,
        default=[],
        help="these message sizes instead of the usual ones (mpicost: multiples of 8)",
    )
    parser.add_argument("--trials", type=trials, help=f"of mpicost, per case (default: {TRIALS})")
    parser.add_argument(
        "--iterations", type=count, help=f"of OSU and IMB, per size (default: {ITERATIONS})"
    )
    add_launching(parser)


def add_launching(parser: argparse.ArgumentParser, cache: str = CACHE) -> None:
    """The options that say how a launch is made."""
    parser.add_argument(
        "--cache",
        choices=(*CACHES, ROTATE),
        help=f"of mpicost before each trial (default: {cache}); rotate: IMB with changing buffers",
    )
    parser.add_argument(
        "--sync",
        choices=SYNCHRONISERS,
        help=f"what starts the processes of a trial together (default: {SYNC})",
    )
    add_environment(parser)


def add_environment(parser: argparse.ArgumentParser) -> None:
    """The options that say in what surroundings a launch runs."""
    parser.add_argument("--time-limit", type=count, help="seconds after which a launch is ended")
    parser.add_argument(
        "--oversubscribe", action="store_true", help="allow more processes than cores"
    )
    parser.add_argument(
        "--set-env",
        type=assignment,
        action="append",
        default=[],
        metavar="ENVIRONMENT:NAME=VALUE",
        help="set a variable for the launches of one environment",
    )


def add_since(parser: argparse.ArgumentParser, default: str = "all") -> None:
    """The option that leaves out what is long ago."""
    parser.add_argument(
        "--since",
        type=moment,
        metavar="DATE",
        help="only sessions from then on, UTC, as in 2026-11-21 or 2026-11-21T01:30:00Z "
        f"(default: {default})",
    )


def add_case(parser: argparse.ArgumentParser) -> None:
    """The option that chooses cases of the store."""
    parser.add_argument(
        "--case",
        type=comma_list,
        nargs="+",
        action=Gather,
        default=[],
        metavar="KEY",
        help="only these cases, by key or by pattern, as in '*:bcast:*'",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that has a program for its reader."""
    parser.add_argument(
        "--json", type=json_file, metavar="FILE", help="write all of it for programs"
    )


def add_links(parser: argparse.ArgumentParser) -> None:
    """The options of the comparison of all pairs of nodes, which runs a check and sizes of its own."""
    add_site(parser)
    parser.add_argument(
        "--environment",
        type=comma_list,
        default=[],
        help="these environments (default: the first of a partition)",
    )
    parser.add_argument(
        "--partition", type=comma_list, default=[], help="only these partitions of the site"
    )
    parser.add_argument(
        "--nodes",
        type=lambda text: [count(text)],
        default=[],
        dest="processes",
        metavar="N",
        help="this many nodes (default: as many as the site measures)",
    )
    parser.add_argument(
        "--launches", type=count, help="launches (default: as many as a bad link needs)"
    )
    parser.add_argument("--trials", type=trials, help="of each pair in a launch")
    parser.add_argument(
        "--least",
        type=count,
        default=10,
        metavar="PERCENT",
        help="name nothing that is slower by less (default: %(default)s)",
    )
    parser.add_argument(
        "--nodes-per-switch",
        type=count,
        metavar="N",
        help="compare pairs of a switch with such pairs; its nodes follow each other by name",
    )
    add_launching(parser, cache=WARM)
    add_json(parser)
    parser.set_defaults(per_node=[1], program=["mpicost"])


def add_agree(parser: argparse.ArgumentParser) -> None:
    """The options of the comparison of programs, which run as they can all run."""
    add_site(parser)
    add_places(parser)
    parser.add_argument(
        "--bytes",
        type=sizes,
        default=[],
        help="message sizes, multiples of 8 (default: 8,1024,65536,1048576)",
    )
    parser.add_argument(
        "--launches", type=count, default=8, help="rounds in which each runs (default: %(default)s)"
    )
    add_environment(parser)
    add_json(parser)


def add_session(parser: argparse.ArgumentParser) -> None:
    """The options of a command that judges."""
    add_selection(parser)
    parser.add_argument(
        "--strict",
        action="store_true",
        help="provisional and skipped cases fail too; nothing is calibrated",
    )
    add_json(parser)
    parser.add_argument(
        "--references",
        type=Path,
        metavar="DIR",
        help="look for references here first (such a night counts as a run)",
    )


def add_calibration(parser: argparse.ArgumentParser) -> None:
    """The options that say what is calibrated, how much, and where it goes."""
    add_selection(parser)
    number = parser.add_mutually_exclusive_group()
    number.add_argument(
        "--launches",
        type=count,
        metavar="N",
        help=f"launches behind each case, earlier ones counted in (default: {LAUNCHES})",
    )
    number.add_argument(
        "--seconds", type=count, metavar="S", help="as many launches as fit into so many seconds"
    )
    parser.add_argument(
        "--at-most",
        type=count,
        metavar="N",
        help="take no more than so many now: the same command on other days takes the rest",
    )
    parser.add_argument(
        "--afresh",
        action="store_true",
        help="earlier launches of these cases count no more; implies --take",
    )
    parser.add_argument(
        "--take",
        action="store_true",
        help="replace references, too, that would absorb a slowdown (default: they stay; exit status 1)",
    )
    parser.add_argument(
        "--beside-others",
        action="store_true",
        help="measure although other work uses this machine (default: wait a minute for its end, then refuse)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where references go (default: the work directory; reviewed ones are in reference_data)",
    )
