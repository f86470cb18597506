"""Changes the records that a program has just written, as a broken program or file system would.

Used as ``python tamper.py KIND FILE``. Where a kind can keep the file free of contradiction, it does:
then nothing but the plan, or the values themselves, can give it away.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def missing_case(lines: list[dict]) -> list[dict]:
    """One case less, and a program that never meant to run it."""
    lines[0]["cases"] -= 1
    lines[-1]["cases"] -= 1
    return [lines[0], *lines[2:]]


def negative_time(lines: list[dict]) -> list[dict]:
    """A clock that ran backwards."""
    lines[1]["t_max"][2] *= -1
    return lines


def zero_time(lines: list[dict]) -> list[dict]:
    """A routine that took no time."""
    lines[1]["t_max"][2] = 0.0
    return lines


def not_a_number(lines: list[dict]) -> list[dict]:
    """A value that is none; Python writes it as NaN, as many programs do."""
    lines[1]["t_max"][2] = float("nan")
    return lines


def better_headline(lines: list[dict]) -> list[dict]:
    """A statistic that does not follow from the trials."""
    lines[1]["headline"] /= 2
    return lines


def fewer_trials(lines: list[dict]) -> list[dict]:
    """A program that was not run as it was told to be."""
    lines[0]["trials"] -= 1
    return lines


def other_mpi(lines: list[dict]) -> list[dict]:
    """A program that ran on another library."""
    lines[0]["mpi_library"] = "Some MPI v1.0"
    return lines


def smaller_world(lines: list[dict]) -> list[dict]:
    """Many worlds of one process, as wrong pairings of launcher and library give."""
    lines[0]["processes"] = lines[0]["per_node"] = 1
    return lines


def no_end(lines: list[dict]) -> list[dict]:
    """A program that stopped before it had verified everything."""
    return lines[:-1]


def tamper(kind: str, file: Path) -> None:
    text = file.read_text()
    if kind == "truncated":
        file.write_text(text[: len(text) * 2 // 3])
    elif kind == "empty":
        file.write_text("")
    else:
        lines = globals()[kind]([json.loads(line) for line in text.splitlines()])
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    tamper(sys.argv[1], Path(sys.argv[2]))
