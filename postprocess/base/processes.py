"""Run a program and end all that it started; find and end processes by an environment variable."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PROC = Path("/proc")

GRACE = 3.0  #: seconds between asking a process to end and ending it


#: Runs a module: the first word is the folder that it is in, the second its name.
START_MODULE = (
    "import runpy, sys; sys.path.insert(0, sys.argv[1]); del sys.argv[:2]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def start_module(source: Path, module: str) -> list[str]:
    """Return the command that runs one of our modules, regardless of PYTHONPATH and similar variables.

    The process and its children get the environment unchanged.
    """
    return [sys.executable, "-I", "-c", START_MODULE, str(source), module]


def run_captured(
    command: Sequence[str], env: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a program without input, and kill whatever it leaves running.

    :param seconds: after which it is killed
    :raises OSError: if it cannot be started.
    :raises subprocess.TimeoutExpired: if it does not end in time.
    """
    with subprocess.Popen(
        command,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def find_processes(variable: str, value: str, prefix: bool = False) -> dict[int, str]:
    """Find the processes whose environment has this variable. Return their command names by process ID.

    :param prefix: whether a value that merely begins with ``value`` counts too.
    """
    wanted = f"{variable}={value}".encode() + (b"" if prefix else b"\0")
    commands = {}
    for directory in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            environment = b"\0" + (directory / "environ").read_bytes() + b"\0"
            if b"\0" + wanted in environment and int(directory.name) != os.getpid():
                commands[int(directory.name)] = (directory / "comm").read_text(errors="replace").strip()
    return commands


def end_processes(variable: str, value: str, prefix: bool = False) -> list[str]:
    """End all such processes and return their command names."""
    ended: dict[int, str] = {}
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = find_processes(variable, value, prefix)
        ended |= left
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        deadline = time.monotonic() + GRACE
        while find_processes(variable, value, prefix) and time.monotonic() < deadline:
            time.sleep(0.05)
    return sorted(ended.values())
