"""``agree --bindings``: from the options to the table and the file that ``papers`` reads."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import tempfile
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.files import write_text
from postprocess.base.formats import utc_now
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.extensions.agreement.bindings.bench import Bench
from postprocess.extensions.agreement.bindings.languages import KINDS, select_languages
from postprocess.extensions.agreement.bindings.measure import BindingsResult, measure_mpi
from postprocess.extensions.agreement.bindings.text import format_bindings
from postprocess.extensions.agreement.compare import FEWEST_LAUNCHES
from site_configs.mpi.family import is_used_otherwise, parse_mpi_word
from site_configs.mpi.inventory import take_inventory
from spack_envs.mirror.use import choose_mirror

ALL = "all"
FOLDER = "bindings"  #: of the work directory
ELEMENT = 8  #: bytes of a double
SIZES = (8, 1000, 1_000_000)
OTHERS = ("routine", "processes", "boundaries", "per_node", "partition")  #: have no meaning here


def measure_bindings(work: WorkDirectory, arguments: argparse.Namespace, progress: Progress) -> int:
    """Measure what languages cost over C on this node. Returns the exit status.

    :raises UsageError: for anything that is the user's to mend.
    """
    kinds = check_bindings_options(arguments)
    sizes = sorted({*(arguments.bytes or SIZES)})
    with work.held(), tempfile.TemporaryDirectory(dir=work.root, prefix="bindings-") as scratch:
        with progress.phase("set-up"):
            mirror = choose_mirror(work.root, None, progress)
            folder = mirror.wheels if mirror else None
            there = take_inventory(work, arguments.mpis, progress, False, folder)
        if there.machine.cores < 2:
            raise UsageError("--bindings: needs two cores, one a rank; choose another node")
        wanted = arguments.environment
        if unknown := {*wanted} - {mpi.name for mpi in there.mpis}:
            names = ", ".join(mpi.name for mpi in there.mpis)
            raise UsageError(f"--environment {min(unknown)}: is not on this machine; there are {names}")
        result = BindingsResult(there.machine.cpu_model, secrets.randbelow(2**31))
        with progress.phase("running"):
            for mpi in there.mpis:
                if not wanted or mpi.name in wanted:
                    own = Path(scratch, mpi.name)
                    own.mkdir()
                    bench = Bench(mpi, own, work.root / "mpi", folder, mirror.jars if mirror else None)
                    measure_mpi(bench, select_languages(kinds), sizes, arguments.launches, result, progress.now)
        written = json.dumps(result.as_json(), indent=1) + "\n"
        stamp = utc_now().replace(":", "").replace("-", "")
        file = work.root / FOLDER / f"{stamp}-{os.getpid()}.json"
        file.parent.mkdir(exist_ok=True)
        write_text(file, written)
    if arguments.json:
        write_text(arguments.json, written)
    print(format_bindings(result), end="", flush=True)
    progress.say(f"written: {file}")
    return result.status


def check_bindings_options(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Check the options; return the kinds of languages that were chosen, none for all.

    :raises UsageError: naming the option.
    """
    if asked := [word for word in arguments.mpis or () if is_used_otherwise(word)]:
        plain = parse_mpi_word(asked[0]).plain
        raise UsageError(f"--mpis {asked[0]}: bindings are those of the MPI as it is; write {plain}")
    kinds = () if arguments.bindings == ALL else tuple(arguments.bindings.split(","))
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise UsageError(f"--bindings {unknown[0]}: is none of {', '.join(KINDS)}")
    for name in OTHERS:
        if getattr(arguments, name):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag}: has no meaning with --bindings; leave it out")
    if arguments.site != "local":
        raise UsageError(
            f"--site {arguments.site}: --bindings measures on the node where it is called; leave it out and "
            "call it in a job"
        )
    if arguments.launches < FEWEST_LAUNCHES:
        raise UsageError(
            f"--launches {arguments.launches}: there is no interval of fewer than {FEWEST_LAUNCHES}"
        )
    if odd := [size for size in arguments.bytes if size % ELEMENT or not size]:
        raise UsageError(f"--bytes {odd[0]}: choose multiples of {ELEMENT}, above 0")
    return kinds
