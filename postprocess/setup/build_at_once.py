"""Builds a program for several MPIs beside each other: in set-up, and for a session."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.documents.records import read_record
from postprocess.base.processes import end_processes, start_module
from postprocess.base.workdir import WorkDirectory
from site_configs.schema.variables import SESSION
from spack_envs.installation import Installation, is_without_source
from spack_envs.layout import SpackLayout
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
