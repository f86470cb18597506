"""Limits of a site on the processes at which something is measured: ``left_out_above`` of a partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def is_within_limits(limits: Mapping[str, int], routine: str, size: int, processes: int) -> bool:
    """Return whether the site's limits allow a routine with so many processes.

    A limit is of a routine (``scan_min``), or of one at a size (``alltoall:1000``).
    """
    return all(processes <= limits.get(key, processes) for key in (routine, f"{routine}:{size}"))


def find_unknown_limits(
    limits: Mapping[str, int], tables: Sequence[Mapping[str, Sequence[int]]]
) -> Iterator[tuple[str, set[str]]]:
    """Find the keys of a site's limits that limit nothing, each with those to choose from.

    :param tables: sizes in bytes of the routines that a check measures, of each check.
    """
    routines = {name for table in tables for name in table}
    sized = {f"{name}:{size}" for table in tables for name, sizes in table.items() for size in sizes}
    for key in limits:
        if key not in routines | sized:
            own = {each for each in sized if each.startswith(f"{key.partition(':')[0]}:")}
            yield key, own or routines
