"""What a launch ran on, as its run record tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Ran:
    """Provenance of one launch: of mpicost by its own word, of OSU and IMB by their witness's."""

    run: dict[str, Any]  #: the run record as written

    @property
    def processes(self) -> int:
        return self.run["processes"]

    @property
    def per_node(self) -> int:
        return self.run["per_node"]

    @property
    def mpi_library(self) -> str:
        return self.run["mpi_library"]
