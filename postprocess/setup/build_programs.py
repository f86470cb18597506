"""Builds the programs of every MPI with Spack before a session needs them, and keeps what was built."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from postprocess.base.documents.records import read_record
from postprocess.base.formats import duration
from postprocess.base.processes import end_processes, start_module
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.setup.prepare import PreparedMachine
from site_configs.programs.program import PRODUCTS
from site_configs.schema.variables import SESSION
from spack_envs.errors import SpackEnvironmentError
from spack_envs.installation import Installation, is_without_source
from spack_envs.layout import SpackLayout
from spack_envs.programs import keep_installed
from spack_envs.provide import Spack

MOST = 4  #: builds beside each other: each of them compiles with all cores
LOG = "spack.log"  #: of a build: what Spack said


@dataclass(frozen=True)
class BuildOutcome:
    """What became of the build of a program for one MPI."""

    environment: str
    seconds: float
    done: Installation | None
    problem: str = ""  #: in one line, if it failed
    without_source: bool = False  #: whether it failed because its source cannot be fetched


def build_at_once(
    work: WorkDirectory,
    spack: Spack,
    environments: Sequence[str],
    program: str,
    folder: Path,
    say: Callable[[str], None] = lambda _: None,
) -> list[BuildOutcome]:
    """Build a program for several MPIs beside each other: while Spack solves and configures, cores idle.

    :param folder: gets what Spack says, and what was built; processes that build carry its name
    :param say: is told each line that Spack says
    """

    def build(environment: str) -> BuildOutcome:
        result = folder / f"{environment}.{program}" / "built.json"
        result.parent.mkdir(parents=True, exist_ok=True)
        command = start_module(work.source, "spack_envs.install")
        directory = SpackLayout(work.root).environment(environment)
        command += map(str, (work.root, spack.executable, directory, program, result))
        begin, line = time.monotonic(), ""
        with (
            (result.parent / LOG).open("w", encoding="utf-8") as log,
            subprocess.Popen(
                command,
                env={**os.environ, SESSION: str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process,
        ):
            for line in process.stdout or ():
                log.write(line)
                say(f"{environment}: {program}: {line.rstrip()}")
        spent = time.monotonic() - begin
        if process.returncode == 0:
            return BuildOutcome(environment, spent, read_record(result, Installation))
        problem = line.strip() or f"{program}: exit code {process.returncode}"
        without_source = is_without_source(result.parent)
        return BuildOutcome(environment, spent, None, problem, without_source)

    pool = ThreadPoolExecutor(max_workers=min(MOST, os.cpu_count() or 1))
    try:
        return list(pool.map(build, environments))
    finally:  # an interrupt leaves nothing behind that compiles
        pool.shutdown(wait=False, cancel_futures=True)
        end_processes(SESSION, str(folder))


def build_programs(work: WorkDirectory, prepared: PreparedMachine, progress: Progress) -> int:
    """Build every program for every MPI that has a Spack environment, a program for all MPIs at once.

    One that cannot be built is noted and does not keep the others from it.

    :returns: how many could not be built although their source is there. Without a source, a program's cases
        are skipped and counted in every session.
    """
    if prepared.spack is None or not prepared.by_spack:
        progress.say(f"programs: built by the first session, with {prepared.built_with}")
        return 0
    failures = 0
    with TemporaryDirectory(prefix="plumbline-builds-") as scratch:
        for name in PRODUCTS:
            outcomes = build_at_once(work, prepared.spack, prepared.by_spack, name, Path(scratch), progress.now)
            failures += sum(not keep_built(work, outcome, progress) for outcome in outcomes)
    return failures


def keep_built(work: WorkDirectory, outcome: BuildOutcome, progress: Progress) -> bool:
    """Keep what was built, and say so; whether it was built, or has no source to build from."""
    name = outcome.environment
    if outcome.done is None:
        progress.note(f"{name}: {outcome.problem}")
        return outcome.without_source
    try:
        program = keep_installed(work.root, name, outcome.done)
    except SpackEnvironmentError as error:
        progress.note(f"{name}: {outcome.done.program}: {error}")
        return False
    source = "" if program.source == "official" else f" from {program.source}"
    facts = f"{duration(outcome.seconds)}; {program.compiler} {program.flags}"
    progress.say(f"{name}: {program.name} {program.version}{source} is built ({facts})")
    return True
