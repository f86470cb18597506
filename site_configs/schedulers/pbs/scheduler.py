"""PBS (PBS Professional, OpenPBS) and Torque: what the rest of Plumbline asks of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from site_configs.schedulers.base import Ask, Scheduler
from site_configs.schedulers.launcher_choice import PALS
from site_configs.schedulers.pbs import query as pbs_query

SCHEDULER = "pbs-blocks"  #: PBS Professional and OpenPBS
TORQUE = "torque-blocks"


@dataclass(frozen=True)
class Pbs(Scheduler):
    """PBS Professional or OpenPBS."""

    title: str = "PBS"
    backend: str = SCHEDULER
    backends: tuple[str, ...] = (SCHEDULER, "pbs", "pbspro")
    site_names: tuple[tuple[str, str], ...] = ((SCHEDULER, "pbs.SCHEDULER"), (PALS, "pbs.PALS"))
    command: str = "pbsnodes"
    query_commands: str = "pbsnodes, qstat"
    exclusive: tuple[str, ...] = ("-q {}", "-l place=scatter:excl")

    def read(self, ask: Ask) -> Scheduler:
        """Return this scheduler, or Torque, with the facts that this machine's commands tell."""
        answer = pbs_query.ask_pbs(ask)
        kind = TORQUE_PBS if answer.torque else self
        return replace(kind, queues=answer.queues, notes=answer.notes)


@dataclass(frozen=True)
class Torque(Scheduler):
    """Torque, which is found where PBS is looked for."""

    title: str = "Torque"
    backend: str = TORQUE
    backends: tuple[str, ...] = (TORQUE, "torque")
    site_names: tuple[tuple[str, str], ...] = ((TORQUE, "pbs.TORQUE"),)
    query_commands: str = "pbsnodes, qstat"
    exclusive: tuple[str, ...] = ("-q {}", "-n")


PBS = Pbs()
TORQUE_PBS = Torque()
