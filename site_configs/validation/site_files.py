"""Locate site files, and read one in a separate process without side effects."""

import ast
import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError, propose_or_list
from postprocess.base.processes import end_processes, start_module
from postprocess.base.workdir import WorkDirectory
from site_configs.schema.reframe_request import ReframeRequest, write_request
from site_configs.schema.variables import HOME, SESSION
from site_configs.validation.reading import SiteReading, parse_reading


def locate_site_file(source: Path, site: str) -> Path:
    """Return the ReFrame configuration of a site given by name or by path.

    :raises UsageError: if there is none.
    """
    path = Path(site) if site.endswith(".py") else source / "site_configs" / f"{site}.py"
    if not path.is_file():
        fix = propose_or_list(site, list_site_names(source)).removesuffix("?")
        raise UsageError(f"site {site}: no file {path}: {fix}, or give a path")
    return path.resolve()


def list_site_names(source: Path) -> list[str]:
    return [path.stem for path in (source / "site_configs").glob("*.py") if is_site(path)]


def is_site(path: Path) -> bool:
    """Return whether a Python file contains a ReFrame configuration."""
    return "site_configuration =" in files.read_text(path, "replace")


def find_sites_for_host(directory: Path, host: str) -> list[str]:
    """Find the site files of a directory that were written for this host, by name.

    A file that names no hosts as plain text belongs to no host in particular.
    """
    return [
        path.stem
        for path in sorted(directory.glob("*.py"))
        if any(is_host_match(pattern, host) for pattern in read_host_patterns(path))
    ]


def read_host_patterns(path: Path) -> Iterator[str]:
    """Read the ``hostnames`` patterns of a file; none if it cannot be read."""
    try:
        tree = ast.parse(files.read_text(path))
    except (OSError, ValueError, SyntaxError):
        return
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for keyword in (keyword for call in calls for keyword in call.keywords):
        if keyword.arg == "hostnames" and isinstance(keyword.value, ast.List | ast.Tuple):
            for element in keyword.value.elts:
                if isinstance(element, ast.Constant) and isinstance(element.value, str):
                    yield element.value


def is_host_match(pattern: str, host: str) -> bool:
    """Return whether a host matches a pattern, as ReFrame does it."""
    try:
        return re.match(pattern, host) is not None
    except re.error:
        return False


READ_SECONDS = 30  #: for running a site file; one that asks a scheduler may take a while
#: All processes of a site file have this variable, and are found by it when the file has ended.
MARK = "PLUMBLINE_READING"


def read_site(work: WorkDirectory, path: Path, only_looking: bool = False) -> SiteReading:
    """Read the contents of a site file.

    :param only_looking: whether what it needs may be missing from this machine.
    :raises UsageError: if it is not one, does not end, or leaves processes running.
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
        reader = start_module(work.source, "site_configs.validation.reader_main")
        command = [*reader, str(path), str(result)]
        code, left = run_isolated(command, work.source, variables, errors)
        if code is None:
            fix = "write down in it what takes so long to find out"
            raise UsageError(f"{path}: does not end within {READ_SECONDS} s when it is run; {fix}")
        if left:
            fix = "let them end before the file does"
            raise UsageError(f"{path}: leaves processes running ({', '.join(left)}); {fix}")
        if code != 0 or not result.exists():
            message = files.read_text(errors, "replace").strip() or f"exit code {code}"
            why = f"ended the process that reads it: {message.splitlines()[-1]}"
            raise UsageError(f"{path}: {why}; take out what ends it (an exit, a signal)")
        return parse_reading(files.read_text(result))


def read_usable_site(work: WorkDirectory, path: Path, only_looking: bool = False) -> SiteReading:
    """Read a site file that yields a ReFrame configuration.

    :param only_looking: see :func:`read_site`
    :raises UsageError: if it yields none, with the first fault of the file
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
    """Run a command. Return its exit code, None if it does not end in time, and the leftover processes.

    Leftover processes are ended, too. Output does not go to a pipe, because a leftover process would hold that
    open.
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
