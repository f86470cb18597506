"""How numbers are written where people read them: microseconds, decimal sizes, durations."""

from __future__ import annotations

import math

DASH = "-"  #: stands for a number that does not exist


def microseconds(seconds: float | None) -> str:
    """Write a time in seconds as microseconds, to about three digits: ``6.38``, ``1234``."""
    if seconds is None:
        return DASH
    value = seconds * 1e6
    if not math.isfinite(value):
        return str(value)
    if abs(value) < 1:
        return f"{value:.3f}"
    if abs(value) < 10:
        return f"{value:.2f}"
    if abs(value) < 1000:
        return f"{value:.1f}"
    return f"{value:.0f}" if abs(value) < 1e7 else f"{value:.2e}"


def band(limits: tuple[float, float] | None) -> str:
    """Write a band in seconds as ``4.10 to 7.83`` in microseconds."""
    return f"{microseconds(limits[0])} to {microseconds(limits[1])}" if limits else DASH


def ratio(value: float | None, reference: float | None) -> str:
    """Write value over reference, such as ``2.31``; a small one to two digits, as in ``0.0046``."""
    if value is None or not reference:
        return DASH
    quotient = value / reference
    return f"{quotient:.2f}" if quotient >= 0.1 else f"{quotient:.2g}"


def size(count: int) -> str:
    """Write a number of bytes exactly, with a decimal prefix where two decimals do: ``1.25 MB``."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor and count % (factor // 100) == 0:
            return f"{count / factor:.2f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{count} B"


def binary_size(count: int) -> str:
    """Write the size of a cache, which is a power of two or near: ``48 KiB``, ``32 MiB``."""
    return f"{count / 2**20:.4g} MiB" if count >= 2**20 else f"{count / 2**10:.4g} KiB"


def duration(seconds: float) -> str:
    """Write a duration: ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def plural(count: int, noun: str, ending: str = "s") -> str:
    """Write a count with its noun: ``1 case``, ``2 cases``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{ending}"
