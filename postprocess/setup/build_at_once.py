"""Builds the programs of several MPIs beside each other, before a session's checks find them built."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from postprocess.base.processes import end_processes, start_module
from postprocess.base.workdir import WorkDirectory
from site_configs.schema.variables import SESSION
from spack_envs.layout import SpackLayout
from spack_envs.provide import Spack

MOST = 4  #: builds beside each other: each of them compiles with all cores


def build_at_once(
    work: WorkDirectory, spack: Spack, environments: Sequence[str], program: str, folder: Path
) -> None:
    """Build a program for several MPIs beside each other: while Spack solves and configures, cores idle.

    What fails is not told: the session's own check builds it again, and says why.

    :param folder: gets what Spack says, and what was built; processes that build carry its name
    """
    folder.mkdir(parents=True, exist_ok=True)

    def build(environment: str) -> None:
        directory = SpackLayout(work.root).environment(environment)
        result = folder / f"{environment}.{program}.json"
        command = start_module(work.source, "spack_envs.install")
        command += map(str, (work.root, spack.executable, directory, program, result))
        with result.with_suffix(".log").open("w", encoding="utf-8") as log:
            subprocess.run(
                command,
                env={**os.environ, SESSION: str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )

    pool = ThreadPoolExecutor(max_workers=min(MOST, os.cpu_count() or 1, len(environments)))
    try:
        list(pool.map(build, environments))
    finally:  # an interrupt leaves nothing behind that compiles
        pool.shutdown(wait=False, cancel_futures=True)
        end_processes(SESSION, str(folder))
