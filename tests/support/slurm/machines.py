"""Machines on this machine: name spaces with a host name, a network address and processes of their own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .availability import search_path

SUPERVISOR = Path(__file__).with_name("supervisor.py")
MACHINES = "machines.json"  #: in the directory: the processes by which its machines are found again
#: Seconds within which every command must end; much, for other work may keep the machine
LIMIT = 180
#: Enter a machine's name spaces,
ENTER = ("nsenter", "--mount", "--net", "--uts", "--ipc", "--pid", "--target")
#: end with the command on the outside, which only waits,
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "sh", "-c")
#: and stay in the same directory.
STAY = 'cd "$0" && exec "$@"'


@dataclass
class Machines:
    """The machines of a directory. Files are those of this machine; nothing else is."""

    directory: Path
    #: Process number of each machine's process 1, as this process sees it.
    processes: dict[str, int] = field(default_factory=dict, init=False)
    supervisor: subprocess.Popen[str] | None = field(default=None, init=False)

    def start_machines(self, addresses: Mapping[str, str], parent: int) -> None:
        """Start them, by host name and address. They end when the process ``parent`` does; never if it is 0.

        :raises RuntimeError: if they do not start.
        """
        write = {
            "layout.json": json.dumps({"machines": addresses, "parent": parent}),
            "hosts": "".join(f"{ip} {name}\n" for name, ip in {"localhost": "127.0.0.1", **addresses}.items()),
        }
        for name in ("bin", "log"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        for name, text in write.items():
            (self.directory / name).write_text(text)
        log = self.directory / "log" / "supervisor.log"
        with log.open("w") as errors:
            self.supervisor = subprocess.Popen(
                [sys.executable, "-I", str(SUPERVISOR), str(self.directory)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                env={**os.environ, "PATH": search_path()},
            )
        assert self.supervisor.stdout is not None
        line = self.supervisor.stdout.readline()
        if not line:
            raise RuntimeError(f"the cluster's machines do not start: {log.read_text()}")
        self.processes = json.loads(line)
        numbers = {"supervisor": self.supervisor.pid, **self.processes}
        (self.directory / MACHINES).write_text(json.dumps(numbers))

    def stop(self) -> None:
        """Take it all away."""
        if self.supervisor:
            self.supervisor.terminate()
            self.supervisor.wait()
            self.supervisor = None

    def environment(self) -> dict[str, str]:
        """What a command needs, on a machine and outside: there, programs in ``bin`` enter by themselves."""
        return {"PATH": f"{self.directory / 'bin'}:{search_path()}"}

    def on(self, machine: str, *words: str | Path) -> list[str]:
        """The command line that runs a command on a machine, in this directory."""
        enter = [*ENTER, str(self.processes[machine]), *WITH_PARENT]
        return [*enter, STAY, os.getcwd(), *map(str, words)]

    def start(self, *words: str | Path, machine: str, **more: Any) -> subprocess.Popen[str]:
        """Start a command on a machine; its output is text, in pipes.

        :param more: for :class:`subprocess.Popen`.
        """
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        given["env"] = {**(more.get("env") or os.environ), **self.environment()}
        return subprocess.Popen(self.on(machine, *words), **given)

    def complete(
        self, *words: str | Path, machine: str, check: bool = True, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a machine to its end.

        :param check: whether a failure fails the test.
        """
        process = self.start(*words, machine=machine, **more)
        try:
            output, errors = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        if check and process.returncode != 0:
            raise AssertionError(f"{words}: exit code {process.returncode}\n{output}\n{errors}")
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def processes_on(self, machine: str) -> list[int]:
        """The numbers of all processes of a machine, as this process sees them."""
        wanted = os.readlink(f"/proc/{self.processes[machine]}/ns/pid")
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(path / "ns" / "pid") == wanted:
                    found.append(int(path.name))
            except OSError:
                continue  # it has ended
        return found

    def give_outside(self, machine: str, programs: tuple[str, ...]) -> None:
        """Make programs that do on the outside what those of the same name do on a machine."""
        enter = " ".join([*ENTER, str(self.processes[machine]), *WITH_PARENT])
        for name in programs:
            client = self.directory / "bin" / name
            client.write_text(f'#!/bin/sh\nexec {enter} \'{STAY}\' "$PWD" {name} "$@"\n')
            client.chmod(0o755)


def running_supervisor(directory: Path) -> int:
    """The process number of the supervisor of the machines in a directory; 0 if none runs."""
    try:
        process = int(json.loads((directory / MACHINES).read_text())["supervisor"])
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return 0
    return process if str(directory).encode() in words else 0


def wait_until(what: str, ready: Callable[[], bool], seconds: float = LIMIT) -> None:
    """Wait until something is so. Raises TimeoutError if it is not so in time; ``what`` says what."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.05)
