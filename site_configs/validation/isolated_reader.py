"""Read a site file, which is a program, in a process of its own, so that no side effect stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.processes import end_processes, start_module
from postprocess.base.workdir import WorkDirectory
from site_configs.schema.reframe_request import ReframeRequest, write_request
from site_configs.schema.variables import HOME, SESSION
from site_configs.validation.catalog import is_site, list_site_names
from site_configs.validation.reader import SiteReading, parse_reading

READ_SECONDS = 30  #: for running a site file; one that asks a scheduler may take a while
#: What a site file starts has this variable, and so is found when the file has ended.
MARK = "PLUMBLINE_READING"


def read_site(work: WorkDirectory, path: Path, only_looking: bool = False) -> SiteReading:
    """Read what a site file says.

    :param only_looking: whatever it needs need not be on this machine.
    :raises UsageError: if it is none, does not end, or leaves processes running.
    """
    if path.parent == work.source / "site_configs" and not is_site(path):
        choice = ", ".join(sorted(list_site_names(work.source)))
        raise UsageError(f"{path}: is a module that sites use, and no site; choose from {choice}")
    with tempfile.TemporaryDirectory(prefix="plumbline-site-") as scratch:
        result, errors = Path(scratch, "reading.json"), Path(scratch, "errors.txt")
        variables = {name: value for name, value in os.environ.items() if name != SESSION}
        variables |= {HOME: str(work.root), MARK: scratch}
        if only_looking:
            write_request(Path(scratch), ReframeRequest(shell={}, only_looking=True))
            variables[SESSION] = scratch
        reader = start_module(work.source, "site_configs.validation.reader")
        command = [*reader, str(path), str(result)]
        code, left = run_isolated(command, work.source, variables, errors)
        if code is None:
            fix = "write down in it what takes so long to find out"
            raise UsageError(f"{path}: does not end within {READ_SECONDS} s when it is run; {fix}")
        if left:
            fix = "let them end before the file does"
            raise UsageError(f"{path}: leaves processes running ({', '.join(left)}); {fix}")
        if code != 0 or not result.exists():
            said = files.read_text(errors, "replace").strip() or f"exit code {code}"
            why = f"ended the process that reads it: {said.splitlines()[-1]}"
            raise UsageError(f"{path}: {why}; take out what ends it (an exit, a signal)")
        return parse_reading(files.read_text(result))


def read_usable_site(work: WorkDirectory, path: Path, only_looking: bool = False) -> SiteReading:
    """Read a site file of which ReFrame can make a configuration.

    :param only_looking: see :func:`read_site`
    :raises UsageError: if it can make none, with the first fault of the file
    """
    reading = read_site(work, path, only_looking)
    if reading.configuration is None:
        faults = [f":{fault.line}: {fault.text}" for fault in reading.faults]
        why = [*faults, f": {reading.not_installed or 'makes no configuration'}"][0]
        raise UsageError(f"{path}{why.removeprefix(':0')} (all that is wrong: ./plumbline site check {path})")
    return reading


def run_isolated(
    command: list[str], directory: Path, variables: Mapping[str, str], errors: Path
) -> tuple[int | None, list[str]]:
    """Run a command; return its exit code, None if it does not end in time, and what it left running.

    What it left running is ended too.

    What it prints goes to no pipe: a process that it leaves behind would hold that open.
    """
    with errors.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    code, left = None, []
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(READ_SECONDS)
    finally:
        left = end_processes(MARK, variables[MARK])
        with contextlib.suppress(ProcessLookupError):  # the rest, which has another environment
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return code, left
