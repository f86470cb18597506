"""The command ``compare``: hold two MPIs, or two settings of one, against each other, measured in turn."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_decimal
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_comma_list, parse_count, parse_seconds
from postprocess.cli.options import CALIBRATED_TRIALS, SELECTION, add_json, add_options
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import HOW, WHAT, Parser
from postprocess.cli.request import build_request
from postprocess.features.compare.data import ComparedSide
from postprocess.features.compare.measure.history import HistoryDemand, run_history
from postprocess.features.compare.measure.run import ComparisonDemand, run_comparison
from postprocess.features.compare.measure.stored import StoredDemand, compare_stored
from postprocess.features.compare.page import HTML
from postprocess.model.options import OPTIONS
from postprocess.session.lifecycle.injections import IDLE, INJECTION_KINDS, list_mpi_functions
from postprocess.setup import build_named_source
from site_configs.families import DEFAULT_FAMILIES
from site_configs.mpi.family import is_prefix, is_used_otherwise, parse_mpi_word

EXAMPLE = "./plumbline compare mpich@4.3.2 mpich@5.0.2 --program mpicost --seconds 900"
FAILS = "a case is slower, broken or missing on the new side"
PARSER = {"others": ((3, "undecided, or void because the machine changed"),)}
MARGIN = 5.0  #: per cent
#: Options that say how sides are measured.
OF_MEASURING = (
    *("new_env", "seconds", "control", "plant", "seed", "mpis", "family", "trials", "iterations"),
    *("time_limit", "oversubscribe", "set_env"),
)


#: Options that say what two sides are.
NOT_OF_HISTORY = ("old", "new", "stored", "new_env", "control", "plant", "mpis")


def add_arguments(parser: Parser) -> None:
    """Add the two sides, what is measured of them, and how long."""
    what = parser.group(WHAT)
    for name in ("old", "new"):
        what.add_argument(
            name,
            nargs="?",
            metavar=name.upper(),
            help="environment of the site, or on this machine a released version (mpich@4.3.2) or prefix "
            "(/opt/mpich), or the source of an MPICH or Open MPI (a git checkout or a tarball), which Spack "
            "builds, by its standard ABI with +abi behind it, on another UCX or libfabric with "
            "+ucx@1.19.0; with --stored a session, or a day for its nights, and :ENVIRONMENT",
        )
    what.add_argument(
        "--history",
        type=parse_comma_list,
        metavar="FAMILY",
        help="compare released versions in turn: all of a family (mpich), of UCX below MPICH (ucx), of "
        "libfabric below Intel MPI (libfabric), or those named (mpich@4.3.2,mpich@5.0.2); on another site its "
        "environments",
    )
    what.add_argument(
        "--stored",
        action="store_true",
        help="hold stored sessions against each other: unpaired, so never proven safe",
    )
    what.add_argument(
        "--new-env",
        type=parse_variable,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a variable for the launches of the new side only; may be repeated",
    )
    selected = [flag for flag in SELECTION if flag != "--environment"]
    add_options(parser, *selected, trials=CALIBRATED_TRIALS)
    how = parser.group(HOW)
    how.add_argument(
        "--seconds",
        type=parse_seconds,
        metavar="SECONDS",
        help="time for all launches, builds not included (default: what 16 pairs take)",
    )
    how.add_argument(
        "--margin",
        type=parse_margins,
        default=(MARGIN / 100,) * 3,
        metavar="PERCENT",
        help="slowdown that still counts as the same; three numbers, as in 8,5,5, are for sizes below 1 kB, "
        f"below 10 kB and from there on (default: {MARGIN:g})",
    )
    how.add_argument(
        "--control",
        action="store_true",
        help="compare even if nothing differs, to see what is called different that is not",
    )
    how.add_argument(
        "--plant",
        type=parse_plant,
        default=None,
        metavar="NAME:ROUTINE",
        help="delay the new side as the self-test does, as in slower-10:bcast, to see that it is noticed",
    )
    how.add_argument(
        "--seed", type=parse_count, metavar="N", help="seed of the order of launches (default: random)"
    )
    add_output_directory(
        parser,
        "--output",
        "write the result to DIR; continue an interrupted comparison that is there",
        pages=[HTML],
        dest="directory",
    )
    add_json(parser)
    parser.set_defaults(environment=[])


def parse_variable(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE."""
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def parse_margins(text: str) -> tuple[float, float, float]:
    """Parse one margin in per cent, or one for each class of sizes; as fractions."""
    try:
        found = [parse_decimal(word) / 100 for word in text.split(",")]
    except ValueError:
        found = []
    if len(found) not in (1, 3) or not all(0 < value <= 1 for value in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a per cent above 0, or three of them")
    small, medium, large = found * 3 if len(found) == 1 else found
    return small, medium, large


def parse_plant(text: str) -> str:
    """Parse the name of a plant and the routine that it delays."""
    name, _, routine = text.partition(":")
    if name not in INJECTION_KINDS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(INJECTION_KINDS)}")
    if not routine and not INJECTION_KINDS[name].everything:
        raise argparse.ArgumentTypeError(f"{text!r} names no routine: {name}:bcast")
    if routine and not list_mpi_functions(routine):
        raise argparse.ArgumentTypeError(f"{routine!r} is not a routine that can be delayed: {name}:bcast")
    return text


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure both sides in turn, judge, show; or judge what is stored."""
    if arguments.history:
        return run_versions(work, arguments)
    if not arguments.old or not arguments.new:
        raise UsageError("OLD NEW: name both sides, or --history FAMILY (./plumbline compare --help)")
    if arguments.stored:
        return run_stored(work, arguments)
    progress = Progress()
    sides = [locate_side(label) for label in (arguments.old, arguments.new)]
    if arguments.site == "local":
        sides = [build_named_source(work, side, progress) for side in sides]
    arguments.old, arguments.new = sides
    labels = (arguments.old, arguments.new)
    found = [label for label in labels if names_mpi(label)]
    if arguments.site == "local" and found:
        others = arguments.mpis or ([] if len(found) == len(labels) else DEFAULT_FAMILIES)
        arguments.mpis = list(dict.fromkeys([*found, *others]))
    demand = ComparisonDemand(
        old=ComparedSide(arguments.old, "", plant=IDLE.name if arguments.plant else ""),
        new=ComparedSide(arguments.new, "", dict(arguments.new_env), arguments.plant or ""),
        control=arguments.control,
        **read_demand(arguments),
    )
    return run_comparison(work, build_request(work, arguments), demand, progress)


def names_mpi(label: str) -> bool:
    """Return whether a side names a release or a prefix, or how an MPI is used, and not an environment."""
    return "@" in label or is_prefix(label) or is_used_otherwise(label)


def locate_side(label: str) -> str:
    """Return the absolute prefix of a side that is named by where it is installed; others as they are."""
    plain = parse_mpi_word(label).plain
    return f"{Path(plain).absolute()}{label[len(plain) :]}" if is_prefix(plain) else label


def run_versions(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure the versions of an MPI in rounds, judge, show.

    :raises UsageError: for an option that a history has not
    """
    refuse_options(arguments, NOT_OF_HISTORY, "a history has no two sides; drop it or --history")
    demand = HistoryDemand(words=tuple(arguments.history), **read_demand(arguments))
    return run_history(work, build_request(work, arguments), demand, Progress())


def read_demand(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read what is asked of all that is measured: margins, folder, time and seed."""
    return {
        "margins": arguments.margin,
        "directory": arguments.directory and arguments.directory.absolute(),
        "seconds": arguments.seconds,
        "seed": arguments.seed,
    }


def run_stored(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Judge stored sessions, and show. Raises UsageError for an option that says how to measure."""
    refuse_options(arguments, OF_MEASURING, "nothing is measured with --stored; drop one of the two")
    given = vars(arguments)
    choice = {
        option.variable: given[option.name] for option in OPTIONS if option.part and given.get(option.name)
    }
    demand = StoredDemand(
        arguments.old,
        arguments.new,
        arguments.margin,
        choice,
        ["./plumbline", *sys.argv[1:]],
        arguments.directory and arguments.directory.absolute(),
        arguments.json,
    )
    return compare_stored(work, demand, Progress())


def refuse_options(arguments: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Refuse options that make no sense together with others.

    :raises UsageError: for the first of these names that was given
    """
    if given := [name for name in names if getattr(arguments, name)]:
        word = given[0].upper() if given[0] in ("old", "new") else f"--{given[0].replace('_', '-')}"
        raise UsageError(f"{word}: {why}")
