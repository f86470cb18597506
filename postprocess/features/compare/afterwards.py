"""What an upgrade does to references: which of the old side's no longer hold for the new one, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from postprocess.base.formats import first_of, plural


@dataclass(frozen=True)
class ReferenceEffects:
    """What became of the references that the old side's environment has, seen from launches of the new side."""

    environment: str  #: of the old side, whose references they are
    outdated: Mapping[str, str] = field(default_factory=dict)  #: why, by the key of the reference
    holding: int = 0  #: references that stay comparable
    #: cases of the new side's environment that have no comparable reference of their own
    without: int = 0

    @property
    def reasons(self) -> dict[str, list[str]]:
        """Keys of the references that no longer hold, by the reason, the most frequent reason first."""
        counted = Counter(self.outdated.values())
        return {
            reason: sorted(key for key, why in self.outdated.items() if why == reason)
            for reason, _ in counted.most_common()
        }


def format_effects(effects: ReferenceEffects | None, command: str) -> list[str]:
    """Format what becomes of references, in a few lines; none if that was not looked up.

    :param command: that proposes new ones
    """
    if effects is None:
        return []
    gone, holding = len(effects.outdated), effects.holding
    if not gone + holding:
        lines = [f"references: {effects.environment} has none of these cases"]
    else:
        lines = [
            f"references of {effects.environment}: {gone} of {gone + holding} become not-comparable "
            "with the new side"
        ]
        lines += [
            f"{plural(len(keys), 'reference')}: {reason}: {first_of(keys, 2)}"
            for reason, keys in list(effects.reasons.items())[:3]
        ]
    if effects.without:
        lines.append(
            f"{plural(effects.without, 'case')} of the new side without a comparable reference: {command}"
        )
    return lines
