"""LSF: it is recognised, but its machine must be described by hand."""

from __future__ import annotations

from dataclasses import dataclass

from site_configs.schedulers.base import Ask, Scheduler


@dataclass(frozen=True)
class Lsf(Scheduler):
    """LSF, from which nothing is read."""

    title: str = "LSF"
    backend: str = "lsf"
    backends: tuple[str, ...] = ("lsf",)
    command: str = "bqueues"
    query_commands: str = "bqueues"
    exclusive: tuple[str, ...] = ("-q {}", "-x")
    notes: tuple[str, ...] = (
        "LSF is here: what it knows of queues and nodes is not read; bqueues and bhosts show it",
    )

    def read(self, ask: Ask) -> Lsf:
        """Return this scheduler unchanged: no command is asked."""
        return self


LSF = Lsf()
SCHEDULERS = (LSF,)
