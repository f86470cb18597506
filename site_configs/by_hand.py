"""What is set by hand for the launches of one call, by options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def by_hand(
    set_env: Mapping[str, Mapping[str, str]], oversubscribe: bool, environment: str
) -> dict[str, Any]:
    """What is set for the launches of an environment; nothing, as a rule.

    :param set_env: variables, by environment
    """
    found: dict[str, Any] = {"oversubscribe": True} if oversubscribe else {}
    own = set_env.get(environment)
    return found | ({"set_env": dict(own)} if own else {})


def includes(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether all that was set by hand for one launch, ``theirs``, is set for another too, and to the same."""
    own, other = ours.get("set_env", {}), theirs.get("set_env", {})
    flags = {name: value for name, value in theirs.items() if name != "set_env"}
    return flags.items() <= ours.items() and other.items() <= own.items()
