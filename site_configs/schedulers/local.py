"""No scheduler: processes are started on this machine at once."""

from __future__ import annotations

from dataclasses import dataclass

from site_configs.schedulers.base import Scheduler


@dataclass(frozen=True)
class Local(Scheduler):
    """No scheduler: launches run on this machine."""

    title: str = "no scheduler"
    backend: str = "local"
    backends: tuple[str, ...] = ("local",)
    batch: bool = False


LOCAL = Local()
