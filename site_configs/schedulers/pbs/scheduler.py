"""PBS (PBS Professional, OpenPBS) and Torque: what the rest of Plumbline asks of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from site_configs.mpi.probe import run_step
from site_configs.schedulers.base import PALS, Ask, Scheduler, UsableNodes
from site_configs.schedulers.pbs import query as pbs_query

SCHEDULER = "pbs-blocks"  #: PBS Professional and OpenPBS
TORQUE = "torque-blocks"
ASK_SECONDS = 30  #: for the command that tells of nodes
SERVER = "PBS_DEFAULT"  #: the variable that chooses the server


def find_server_faults(environment: Mapping[str, str], access: Sequence[str]) -> Iterator[str]:
    """Find the server that a shell chooses where the options of a site file name none."""
    server = environment.get(SERVER, "")
    if server and not any(re.match(r"-q\s*\S*@", option) for option in access):
        fix = f"write -q QUEUE@{server} in access if it is meant, or unset {SERVER}"
        yield f"{SERVER}={server} chooses a server, and the site file names none; {fix}"


def count_usable(queue: str) -> UsableNodes | None:
    """Count the usable nodes of a queue by the commands of this machine."""

    def ask(words: Sequence[str]) -> str:
        return run_step(list(words), os.environ, " ".join(words), ASK_SECONDS)

    return pbs_query.count_usable(ask, queue)


@dataclass(frozen=True)
class PbsFamily(Scheduler):
    """What PBS and Torque have in common: queues of servers, and pbsnodes."""

    query_commands: str = "pbsnodes, qstat"

    def find_choice(self, access: Sequence[str]) -> dict[str, str]:
        """Find the machine that options of a job name, as the variables with which a shell would choose it."""
        found = [re.match(r"-q\s*[^\s@]*@(\S+)", option) for option in access]
        servers = [match[1] for match in found if match]
        return {SERVER: servers[-1]} if servers else {}

    def count_usable_nodes(self, access: Sequence[str]) -> UsableNodes | None:
        """Count the nodes that jobs with these options can use today or soon; None if that is not known."""
        return count_usable(self.find_queue_name(access))

    def find_shell_faults(self, environment: Mapping[str, str], access: Sequence[str]) -> Iterator[str]:
        """Find the variables of a shell that would send jobs elsewhere than the options of a site file say."""
        yield from find_server_faults(environment, access)


@dataclass(frozen=True)
class Pbs(PbsFamily):
    """PBS Professional or OpenPBS."""

    title: str = "PBS"
    backend: str = SCHEDULER
    backends: tuple[str, ...] = (SCHEDULER, "pbs", "pbspro")
    site_names: tuple[tuple[str, str], ...] = ((SCHEDULER, "pbs.SCHEDULER"), (PALS, "pbs.PALS"))
    command: str = "pbsnodes"
    exclusive: tuple[str, ...] = ("-q {}", "-l place=scatter:excl")

    def choose_machine(self, environment: Mapping[str, str]) -> Scheduler:
        """Return this scheduler with the server that the user's shell chooses, which its commands ask."""
        if not (server := environment.get(SERVER, "")):
            return self
        return replace(
            self,
            asking=((SERVER, server),),
            notes=(f"{SERVER}={server} of the shell: this file is of that server, by -q QUEUE@{server}",),
        )

    def read(self, ask: Ask) -> Scheduler:
        """Return this scheduler, or Torque, with the facts that this machine's commands tell."""
        answer = pbs_query.ask_pbs(ask)
        kind = TORQUE_PBS if answer.torque else self
        server = dict(self.asking).get(SERVER)
        own = tuple(each.replace("{}", f"{{}}@{server}") if server else each for each in kind.exclusive)
        notes = (*self.notes, *answer.notes)
        return replace(kind, queues=answer.queues, notes=notes, exclusive=own, asking=self.asking)


@dataclass(frozen=True)
class Torque(PbsFamily):
    """Torque, which is found where PBS is looked for."""

    title: str = "Torque"
    backend: str = TORQUE
    backends: tuple[str, ...] = (TORQUE, "torque")
    site_names: tuple[tuple[str, str], ...] = ((TORQUE, "pbs.TORQUE"),)
    exclusive: tuple[str, ...] = ("-q {}", "-n")


PBS = Pbs()
TORQUE_PBS = Torque()
