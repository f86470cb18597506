"""Start each pass of ReFrame as a fork of a process that has loaded it, which takes as long as a dry run."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from postprocess.base.processes import GRACE, start_module
from site_configs.reframe_loading import load_reframe
from site_configs.schema.variables import SESSION

ROOT = Path(__file__).resolve().parents[2]
SET_PARENT_DEATH_SIGNAL = 1  #: PR_SET_PDEATHSIG of prctl(2)
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1"}  #: of NumPy: a fork has none of them
NUMBER = struct.Struct("i")  #: the size of a request; the number of its process; its exit status


class ReframePass:
    """A process of ReFrame, with the names that :class:`subprocess.Popen` has for the same."""

    def __init__(self, server: socket.socket, output: int) -> None:
        self.stdout = os.fdopen(output, encoding="utf-8", errors="replace")
        self.returncode: int | None = None
        self._server = server
        self.pid = self._receive()

    def _receive(self) -> int:
        """Receive the next number, or that of a killed process if the server has died."""
        answer = b""
        with contextlib.suppress(ConnectionResetError):  # it died before it read all that it was sent
            answer = self._server.recv(NUMBER.size, socket.MSG_WAITALL)
        return int(NUMBER.unpack(answer)[0]) if len(answer) == NUMBER.size else -signal.SIGKILL

    def poll(self, seconds: float = 0.0) -> int | None:
        """Return the exit status if it ends within some seconds, else None."""
        if self.returncode is None and is_readable(self._server, seconds):
            self.returncode = self._receive()
        return self.returncode

    def wait(self) -> int:
        """Wait until it ends. Returns the exit status; negative is the number of a signal."""
        if self.returncode is None:
            self.returncode = self._receive()
        return self.returncode

    def end(self) -> None:
        """Let it end its jobs and itself, or kill it if it does not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.poll() is None and self.pid > 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
                self.poll(GRACE)


class ReframeServer:
    """The process that has loaded ReFrame. It ends when this one does."""

    running: ReframeServer | None = None  #: of this process

    def __init__(self, sessions: Path) -> None:
        self.requests, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                start_module(ROOT, __name__),
                cwd=ROOT,
                env=os.environ | {SESSION: f"{sessions}{os.sep}"} | NO_THREADS,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # what a terminal sends, whoever started it decides
            )
        self.last: ReframePass | None = None

    @classmethod
    def find(cls, sessions: Path) -> ReframeServer:
        """Return the server of this process; start one if there is none that waits for a pass.

        :param sessions: the folder of the sessions, by which the next command finds what a killed one left
        """
        server = cls.running
        if server and (server.is_busy() or is_readable(server.requests)):  # nothing to read but its end
            server.stop()
        if cls.running is None:
            cls.running = cls(sessions)
            atexit.register(cls.running.stop)
        return cls.running

    def start(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> ReframePass:
        """Start a command of ``start_module`` as a fork of the server."""
        output, theirs = os.pipe()
        words = command[command.index("-c") + 1 :]
        request = json.dumps([words, str(folder), dict(environment)]).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # then its status says so
            socket.send_fds(self.requests, [NUMBER.pack(len(request))], [theirs])
            self.requests.sendall(request)
        os.close(theirs)
        self.last = ReframePass(self.requests, output)
        return self.last

    def is_busy(self) -> bool:
        """Return whether the pass that it started last still runs."""
        return self.last is not None and self.last.poll() is None

    def stop(self) -> None:
        """End it and the pass that it may have started."""
        if self.last:
            self.last.end()
        self.requests.close()
        self.process.terminate()
        self.process.wait()
        atexit.unregister(self.stop)
        type(self).running = None


def is_readable(connection: socket.socket, seconds: float = 0.0) -> bool:
    """Return whether there is something to read, or the other side has ended, within some seconds."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def end_with_parent() -> None:
    """Let this process get SIGTERM when the one that started it dies for any reason.

    It makes ReFrame end its jobs, so that none outlives a killed driver.
    """
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def load_what_passes_need() -> None:
    """Import what every pass imports, whatever the site and the checks."""
    load_reframe()
    import reframe.frontend.cli  # noqa: F401

    import spack_envs.provide  # noqa: F401


def wait_for_pass(requests: socket.socket) -> list[str]:
    """Fork a process for each request; only in that one return, with the words of its command."""
    server = os.getpid()
    while True:
        size, handles, _, _ = socket.recv_fds(requests, NUMBER.size, 1)
        if not handles:  # who asks has ended
            sys.exit()
        request = requests.recv(NUMBER.unpack(size)[0], socket.MSG_WAITALL)
        (output,) = handles
        if not (child := os.fork()):
            break
        os.close(output)
        requests.sendall(NUMBER.pack(child))
        _, status = os.waitpid(child, 0)
        requests.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))
    end_with_parent()
    if os.getppid() != server:
        sys.exit(1)
    requests.close()
    words, folder, environment = json.loads(request)
    for stream, handle in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(handle, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return list(words)


if __name__ == "__main__":
    end_with_parent()
    with contextlib.suppress(Exception):  # a pass fails for the same reason, and says so
        load_what_passes_need()
    code, *sys.argv[1:] = wait_for_pass(socket.socket(fileno=os.dup(0)))
    sys.argv[0] = "-c"
    exec(code)
