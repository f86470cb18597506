"""Limits of the shell that starts a program: locked memory, addresses, open files, processes, a quota of CPUs.

Whoever starts a night hands them on: cron, a login shell and systemd give different ones. Little locked memory
makes MPIs fail, or take slower ways on InfiniBand.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping
from pathlib import Path

from postprocess.base import files
from postprocess.base.sanitize import quote_word

LIMITS = "limits"  #: in run records, and a circumstance, of launches that tell them
UNLIMITED = "unlimited"
#: The letter of ``ulimit``, in the order in which they are told, with the words for it.
NAMES = {
    "l": "locked memory",
    "v": "address space",
    "n": "open files",
    "u": "processes",
    "c": "CPUs of a quota",
}
KIBIBYTES = "lv"
#: Above this number a launch does not come near the limit. The kernel derives that of processes from the
#: memory, which differs a little between equal nodes.
AMPLE = {"n": 4096, "u": 4096}


def write_limits_command(path: Path, quota: int | None) -> str:
    """Return the command of bash that writes the limits of its shell into a file, a letter and a number a line.

    :param quota: CPUs that a quota allows; None without one, or where it is not known.
    """
    letters = [letter for letter in NAMES if letter != "c"]
    lines = [f'echo "{letter} $(ulimit -S{letter})"' for letter in letters]
    lines += [f"echo c {quota}"] if quota else []
    return f"{{ {'; '.join(lines)}; }} > {quote_word(str(path))}"


def read_limits(path: Path) -> dict[str, str]:
    """Read the limits of a launch as an entry of its run record; empty where its job script wrote none."""
    try:
        told = dict(line.split(" ", 1) for line in files.read_text(path).splitlines())
    except (OSError, ValueError):
        return {}
    said = describe_limits(told)
    return {LIMITS: said} if said else {}


def describe_limits(told: Mapping[str, str]) -> str:
    """Describe limits by the letters of ``ulimit``; empty if one is not understood."""
    words = []
    for letter, text in told.items():
        if letter not in NAMES or not (text == UNLIMITED or (text.isascii() and text.isdigit())):
            return ""
        ample = AMPLE.get(letter, 0)
        if ample and (text == UNLIMITED or int(text) >= ample):
            value = f"{ample} or more"
        else:
            value = f"{text} KiB" if letter in KIBIBYTES and text != UNLIMITED else text
        words.append(f"{NAMES[letter]} {value}")
    return ", ".join(words)


def describe_own_limits(quota: int | None) -> str:
    """Describe the limits of this process, which a job on this machine inherits."""
    kinds = {
        "l": resource.RLIMIT_MEMLOCK,
        "v": resource.RLIMIT_AS,
        "n": resource.RLIMIT_NOFILE,
        "u": resource.RLIMIT_NPROC,
    }
    told = {}
    for letter, kind in kinds.items():
        soft = resource.getrlimit(kind)[0]
        unit = 1024 if letter in KIBIBYTES else 1
        told[letter] = UNLIMITED if soft == resource.RLIM_INFINITY else str(soft // unit)
    return describe_limits(told | ({"c": str(quota)} if quota else {}))
