"""The transports that a site expects of an environment, as ``{"network": "ucx:rc|dc x2"}``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from site_configs.annotations import one_of, whole

PAIRS = ("node", "network")  #: classes of pairs of ranks: within a node, and between nodes
KERNEL = "kernel"  #: counts TCP packets; used if no library reports transports
LAYERS = ("ucx", "libfabric", "openmpi", "intel-mpi", KERNEL)
EXPECTED = re.compile(rf"({'|'.join(LAYERS)}):([\w;]+(?:\|[\w;]+)*)(?: x([1-9]\d?))?")
Transports = Annotated[
    Mapping[
        Annotated[str, one_of(PAIRS)],
        Annotated[
            str,
            Meta(
                pattern=whole(EXPECTED.pattern),
                description=f"one of {', '.join(LAYERS)}, a colon and names, as in 'ucx:rc|dc x2'",
            ),
        ],
    ],
    Meta(description="{'network': 'ucx:rc|dc'}"),
]


@dataclass(frozen=True)
class ExpectedTransport:
    """The expected transports of a class of pairs."""

    text: str  #: text in the site file
    layer: str
    transports: tuple[str, ...]  #: allowed ones
    rails: int  #: least number in use

    @classmethod
    def parse(cls, text: str) -> ExpectedTransport:
        """Parse ``ucx:rc|dc x2``. Raises ValueError if the text has another form."""
        if not (match := EXPECTED.fullmatch(text)):
            raise ValueError(text)
        return cls(text, match[1], tuple(match[2].split("|")), int(match[3] or 1))

    def allows(self, layer: str, transports: Sequence[str], rails: int) -> bool:
        """Return whether all transports are expected: ``rc`` also allows ``rc_mlx5``, as in UCX."""
        expected = all(
            any(name == word or name.startswith(f"{word}_") for word in self.transports) for name in transports
        )
        return layer == self.layer and expected and rails >= self.rails
