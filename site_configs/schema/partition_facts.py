"""What a site says of a partition beyond ReFrame's own keys, as checks read it from ReFrame's ``extras``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from site_configs.topology.layouts import Layout


@dataclass(frozen=True)
class PartitionFacts:
    """The facts that :func:`site_configs.common.partition` writes into ``extras``, by the same names."""

    layouts: tuple[Layout, ...]  #: that are measured, unless a user chooses others
    most_processes: int  #: of a launch
    cores_per_node: int
    nodes: int
    defaults: Mapping[str, Any]  #: values of variables of the checks
    exact: bool  #: whether time is simulated
    shared_memory_bytes: int  #: of all processes of a simulated launch; 0: each node has its own
    accept: Mapping[
        str, str
    ]  #: differences from the references, each with the reason why it is waived
    reference_days: int  #: after which a reference is old

    @classmethod
    def of(cls, extras: Mapping[str, Any]) -> PartitionFacts:
        """Read the facts of a partition; other keys of ``extras`` are the user's own.

        :raises KeyError: if ``extras`` was not written by :func:`site_configs.common.partition`.
        """
        known = {each.name: extras[each.name] for each in fields(cls)}
        return cls(**known | {"layouts": tuple(Layout(*each) for each in extras["layouts"])})
