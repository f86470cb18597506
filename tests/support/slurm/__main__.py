"""A cluster for a person: ``python -m tests.support.slurm up DIRECTORY``, and ``down DIRECTORY`` afterwards."""

import argparse
import os
import shlex
import signal
import sys
import time
from pathlib import Path

from .availability import Unavailable
from .cluster import Cluster
from .machines import MACHINES, running_supervisor


def up(arguments: argparse.Namespace) -> str:
    """Start a cluster that stays; what a shell has to know of it."""
    if running_supervisor(arguments.directory):
        return f"{arguments.directory}: a cluster is up already"
    cluster = Cluster(
        arguments.directory,
        nodes=arguments.nodes,
        cores=arguments.cores,
        accounting=arguments.accounting,
        stays=True,
    )
    try:
        cluster.bring_up()
    except Unavailable as reason:
        return str(reason)
    for name, value in cluster.environment().items():
        print(f"export {name}={shlex.quote(value)}")
    print(f"# a shell on the head node: {shlex.join(cluster.on('head', 'bash'))}")
    return ""


def down(arguments: argparse.Namespace) -> str:
    """Take a cluster away. Its directory, with all logs, stays."""
    process = running_supervisor(arguments.directory)
    if not process:
        return f"{arguments.directory}: no cluster is up ({MACHINES} names none that runs)"
    os.kill(process, signal.SIGTERM)
    while running_supervisor(arguments.directory):
        time.sleep(0.05)
    return ""


def main() -> str:
    """Read the command line; the complaint, if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.slurm", description=__doc__)
    commands = parser.add_subparsers(required=True)
    starting = commands.add_parser("up", help="start a cluster and print what to export")
    starting.add_argument("--nodes", type=int, default=4)
    starting.add_argument("--cores", type=int, default=2, help="of each node (default: %(default)s)")
    starting.add_argument("--accounting", action="store_true", help="with slurmdbd and a database")
    ending = commands.add_parser("down", help="take a cluster away")
    for parser_of_command, function in ((starting, up), (ending, down)):
        parser_of_command.add_argument("directory", type=Path)
        parser_of_command.set_defaults(function=function)
    arguments = parser.parse_args()
    arguments.directory = arguments.directory.absolute()
    return arguments.function(arguments)


if __name__ == "__main__":
    sys.exit(main() or 0)
