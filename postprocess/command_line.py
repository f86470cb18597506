"""The command line: what each command accepts, and which function does it."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from postprocess import commands
from postprocess.alarms_command import add as add_alarms
from postprocess.benchmarks import ITERATIONS, ROTATE
from postprocess.drift_commands import add as add_drift
from postprocess.errors import UsageError
from postprocess.harmless import one_line
from postprocess.mirror_commands import add as add_mirror_commands
from postprocess.programs import PROGRAMS
from postprocess.record_schema import CACHES
from postprocess.references_commands import add as add_references_commands
from postprocess.rounds import LAUNCHES
from postprocess.selftest_command import add as add_selftest
from postprocess.site_commands import add as add_site_commands
from postprocess.store_commands import COMMANDS as STORE_COMMANDS
from postprocess.workdir import WorkDirectory

DESCRIPTION = "MPI performance regression tests: build, run, judge against references, report."
EXIT_STATUS = "Exit status: 0 all well, 1 some case is not, 2 wrong use or configuration."
INTERRUPTED = 130
STANDARD_ERROR = 2  #: as a descriptor: a signal may come in the middle of a print
LARGEST = 10**12  #: of any number; ReFrame and the store have no room for one of any size
MOST_TRIALS = 1_000_000  #: as mpicost has it
ASSIGNMENT = re.compile(r"(?P<environment>[^:]+):(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.S | re.A)


class Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} ({self.prog} --help)")


def comma_list(text: str) -> list[str]:
    """The words of a comma-separated list, each once. An empty one is wrong: left out, it would mean all."""
    words = list(dict.fromkeys(word for word in text.split(",") if word))
    if not words:
        raise argparse.ArgumentTypeError("names nothing; leave it out for all")
    return words


def count(text: str) -> int:
    """A whole number of one or more, and small enough for every place that it goes to."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of one or more")
    if number > LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is too large a number")
    return number


def trials(text: str) -> int:
    """A number of trials that mpicost takes: the first one is dropped."""
    number = count(text)
    if not 2 <= number <= MOST_TRIALS:
        raise argparse.ArgumentTypeError(f"{text} is not from 2 to {MOST_TRIALS}")
    return number


def counts(text: str) -> list[int]:
    """Whole numbers of one or more, separated by commas."""
    return [count(word) for word in comma_list(text)]


def sizes(text: str) -> list[int]:
    """Message sizes in bytes, separated by commas; 0 is an empty message."""
    return [0 if word == "0" else count(word) for word in comma_list(text)]


def programs(text: str) -> list[str]:
    """Names of benchmark programs, separated by commas."""
    words = comma_list(text)
    if unknown := [word for word in words if word not in PROGRAMS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(PROGRAMS)}")
    return words


def assignment(text: str) -> tuple[str, str, str]:
    """ENVIRONMENT:NAME=VALUE as its three parts."""
    match = ASSIGNMENT.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not ENVIRONMENT:NAME=VALUE")
    return match["environment"], match["name"], match["value"]


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
        "--environment", type=comma_list, default=[], help="only these, as in mpich-5_0_2"
    )
    parser.add_argument(
        "--routine", type=comma_list, default=[], help="only these, as in bcast,reduce_sum"
    )
    parser.add_argument("--partition", type=comma_list, default=[], help="only these of the site")
    parser.add_argument(
        "--processes", type=counts, default=[], help="these counts instead of the ladder's"
    )
    parser.add_argument("--per-node", type=counts, default=[], help="these processes per node")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The options that say what to run."""
    add_places(parser)
    parser.add_argument(
        "--program", type=programs, default=[], help="only these, as in mpicost,osu,imb"
    )
    parser.add_argument(
        "--peers", type=counts, default=[], help="only these partners of rank 0 in ping-pong"
    )
    parser.add_argument(
        "--bytes", type=sizes, default=[], help="these sizes (mpicost: multiples of 8)"
    )
    parser.add_argument("--trials", type=trials, help="of mpicost, per case (default: 51)")
    parser.add_argument(
        "--iterations", type=count, help=f"of OSU and IMB, per size (default: {ITERATIONS})"
    )
    add_launching(parser)


def add_launching(parser: argparse.ArgumentParser, cache: str = "flush") -> None:
    """The options that say how a launch is made."""
    parser.add_argument(
        "--cache",
        choices=(*CACHES, ROTATE),
        help=f"of mpicost before each trial (default: {cache}); rotate: IMB with changing buffers",
    )
    parser.add_argument(
        "--sync",
        choices=("dissemination", "barrier", "window"),
        help="what starts the processes of a trial together (default: dissemination)",
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


def add_links(parser: argparse.ArgumentParser) -> None:
    """The options of the comparison of all pairs of nodes, which runs a check and sizes of its own."""
    parser.add_argument(
        "--environment", type=comma_list, default=[], help="(default: the first of a partition)"
    )
    parser.add_argument("--partition", type=comma_list, default=[], help="only these of the site")
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
        help="name nothing that is slower by less (default: 10)",
    )
    parser.add_argument(
        "--nodes-per-switch",
        type=count,
        metavar="N",
        help="compare pairs of a switch with such pairs; its nodes follow each other by name",
    )
    add_launching(parser, cache="warm")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write a machine-readable summary"
    )
    parser.set_defaults(
        routine=[], bytes=[], peers=[], per_node=[1], program=["mpicost"], iterations=None
    )


def add_agree(parser: argparse.ArgumentParser) -> None:
    """The options of the comparison of programs, which run as they can all run."""
    add_places(parser)
    parser.add_argument(
        "--bytes", type=sizes, default=[], help="(default: 8,1024,65536,1048576; multiples of 8)"
    )
    parser.add_argument(
        "--launches", type=count, default=8, help="rounds in which each runs (default: 8)"
    )
    add_environment(parser)
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write a machine-readable summary"
    )
    parser.set_defaults(peers=[], program=[], trials=None, iterations=None, cache=None, sync=None)


def add_session(parser: argparse.ArgumentParser) -> None:
    """The options of a command that judges."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="provisional and skipped cases fail too; nothing is calibrated",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write a machine-readable summary"
    )
    parser.add_argument(
        "--references", type=Path, metavar="DIR", help="look for references here first"
    )


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = Parser(prog="plumbline", description=DESCRIPTION, epilog=EXIT_STATUS)
    found = parser.add_subparsers(
        dest="name", required=True, metavar="COMMAND", parser_class=Parser
    )

    def command(name: str, run: commands.Command, text: str) -> argparse.ArgumentParser:
        added = found.add_parser(name, help=text, description=text, epilog=EXIT_STATUS)
        added.set_defaults(run=run)
        return added

    for name, text in (
        (
            "nightly",
            "Build, run and judge everything; calibrate first where no reference is known.",
        ),
        ("run", "The same for a choice of environments, routines, counts and sizes."),
    ):
        session = command(name, commands.nightly, text)
        add_site(session)
        add_selection(session)
        add_session(session)
    session = command(
        "calibrate", commands.calibrate, "Measure references; take the launches that are missing."
    )
    add_site(session)
    add_selection(session)
    number = session.add_mutually_exclusive_group()
    number.add_argument(
        "--launches",
        type=count,
        metavar="N",
        help=f"launches behind each case, earlier ones counted in (default: {LAUNCHES})",
    )
    number.add_argument(
        "--seconds", type=count, metavar="S", help="as many launches as fit into so many seconds"
    )
    session.add_argument(
        "--at-most",
        type=count,
        metavar="N",
        help="take no more than so many now: the same command on other days takes the rest",
    )
    session.add_argument(
        "--afresh", action="store_true", help="earlier launches of these cases count no more"
    )
    session.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where references go (default: the work directory; reviewed ones are in reference_data)",
    )
    text = "Compare all pairs of nodes with each other: names sick nodes and bad links."
    session = command("links", commands.links, text)
    add_site(session)
    add_links(session)
    text = "Compare mpicost, OSU and IMB with each other: names the one that differs."
    session = command("agree", commands.agree, text)
    add_site(session)
    add_agree(session)
    text = "What became slower over many nights: steps that stay, and slow creep."
    add_drift(
        found.add_parser("drift", help=text, description=text, epilog=EXIT_STATUS), comma_list
    )
    text = "Plant slowdowns into nights of its own: which are caught, missed, and what else is accused."
    session = found.add_parser("selftest", help=text, description=text, epilog=EXIT_STATUS)
    add_site(session)
    add_selftest(session, comma_list, count, trials)
    session = command("list", commands.list_cases, "The cases that would run, and about how long.")
    add_site(session)
    add_selection(session)
    for name, run, text in (
        ("setup", commands.setup, "Find or fetch MPIs and Spack; measure nothing."),
        ("doctor", commands.doctor, "The same: what was found, and why something is not usable."),
    ):
        session = command(name, run, text)
        add_site(session)
        session.add_argument(
            "--mirror",
            metavar="DIR",
            help="take everything from this mirror, now and later; none: from where it is",
        )
    text = "Make a mirror for machines without a network, or verify one."
    add_mirror_commands(found.add_parser("mirror", help=text, description=text, epilog=EXIT_STATUS))
    session = command("report", commands.report, "Write the report of a session again.")
    session.add_argument("session", nargs="?", help="name of the session (default: the last one)")
    for name, text, add in STORE_COMMANDS:
        add(found.add_parser(name, help=text, description=text, epilog=EXIT_STATUS))
    session = command("papers", commands.papers, "A session as the papers show it.")
    session.add_argument("session", nargs="?", help="name of the session (default: the last one)")
    session.add_argument(
        "--against",
        metavar="PARTITION",
        help="that the others are held against (default: the T3E's, else the first)",
    )
    session.add_argument(
        "--processes",
        type=count,
        help="at which machines are compared (default: the papers' 128, else the largest)",
    )
    text = (
        "Propose new reference files from the calibrations, list what is stale, plan what to spend."
    )
    add_references_commands(
        found.add_parser("references", help=text, description=text, epilog=EXIT_STATUS), count
    )
    session = command("lint", commands.lint, "Check site files, reference files and check files.")
    session.add_argument("paths", nargs="*", type=Path, help="files or directories (default: all)")
    text = "Alarms of past nights against those that chance alone would have raised."
    add_alarms(found.add_parser("alarms", help=text, description=text, epilog=EXIT_STATUS))
    text = "Write a site file of this machine, check one, or try one out."
    add_site_commands(
        found.add_parser("site", help=text, description=text, epilog=EXIT_STATUS), comma_list
    )
    session = command("where", commands.where, "Absolute path of a program of an environment.")
    session.add_argument("program", choices=("mpicost", "mpicc", "mpiexec"))
    session.add_argument(
        "--environment", required=True, help="as in mpich-5_0_2 (see ./plumbline list)"
    )
    text = "Run Plumbline's own tests; all further words go to pytest."
    session = found.add_parser("test", help=text, add_help=False, prefix_chars="\0")
    session.set_defaults(run=commands.test)
    session.add_argument("words", nargs="*")
    return parser


def end(number: int, _: object) -> None:
    """Come to an end in good order because of a signal."""
    text = "plumbline: terminated; what was measured so far is in the session's raw files\n"
    os.write(STANDARD_ERROR, text.encode())
    sys.exit(128 + number)


def main(source: str, work: str, words: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. Errors of the user's are one line, never a traceback."""
    signal.signal(signal.SIGTERM, end)
    try:
        arguments = build_parser().parse_args(words)
        return arguments.run(WorkDirectory(Path(work), Path(source)), arguments)
    except UsageError as error:
        print(f"plumbline: {one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "plumbline: interrupted; what was measured so far is in the session's raw files",
            file=sys.stderr,
        )
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        what = f"{error.filename or 'input or output'}: {error.strerror or error}"
        print(f"plumbline: {one_line(what)}", file=sys.stderr)
        return 2
