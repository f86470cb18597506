"""The command ``where``: the path of a program of an environment, for scripts."""

import argparse

from postprocess.base.errors import UsageError, choose_environment
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import WHERE, Parser
from site_configs.mpi import inventory
from spack_envs.installation import read_program

EXAMPLE = "./plumbline where mpicc --environment mpich-5_0_2"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("program", choices=("mpicost", "mpicc", "mpiexec"), help="the program")
    parser.group(WHERE).add_argument(
        "--environment",
        required=True,
        metavar="NAME",
        help="environment, as in mpich-5_0_2 (see ./plumbline list)",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Print the absolute path of a program of an environment. Returns 0.

    :raises UsageError: if the environment is unknown, or the program is not built
    """
    if arguments.program == "mpicost":
        print(read_program(work.root, arguments.environment, "mpicost").path)
        return 0
    try:
        mpis = {mpi.name: mpi for mpi in inventory.load_inventory(work.root).mpis}
    except LookupError as error:
        raise UsageError(str(error)) from None
    name = choose_environment("--environment", arguments.environment, list(mpis))
    print(getattr(mpis[name], arguments.program))
    return 0
