"""Runs ``./plumbline`` on the head node of a cluster, which sees no process of the nodes, as on a real one."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.plumbline_runner import Workshop

from .cluster import Cluster
from .machines import wait_until


@dataclass(frozen=True, kw_only=True)
class HeadNode(Workshop):
    """A work directory whose commands run on the head node."""

    cluster: Cluster

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """Start a command and do not wait for it. See :func:`program_of` for its process."""
        return self.cluster.start(*self.command(*words), machine="head", env=self.environment(more))


def program_of(process: subprocess.Popen[str]) -> int:
    """The process that a command on another machine became: what a signal has to be sent to.

    The command's own process only waits for it.
    """
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until("the command to start", lambda: bool(children.read_text()))
    return int(children.read_text())


def signal_program(process: subprocess.Popen[str], number: int) -> None:
    """Send a signal to a command on another machine."""
    os.kill(program_of(process), number)
