"""Compare the compiler flags of a build with those that its category allows.

Whatever is not known to leave the timed code as it was published is a change: the flags of another compiler,
too, until the buyer's rules allow them.
"""

from __future__ import annotations

import re

from postprocess.model.conditions import flags_of
from postprocess.model.routines.mpicost import OWN_PROGRAM
from spack_envs.programs import UNKNOWN

#: Level of optimisation with which each program is published and built.
LEVELS = {OWN_PROGRAM: "-O3", "osu": "-O2", "imb": "-O2"}
LEVEL = re.compile(r"-O\S*")
#: What published builds have, what compilers record by themselves, and what distributions add to everything.
USUAL = re.compile(
    r"-DNDEBUG|-D_(FORTIFY_SOURCE|XOPEN_SOURCE|GNU_SOURCE|GLIBCXX_ASSERTIONS).*|-U_FORTIFY_SOURCE"
    r"|-std=.*|-frecord-gcc-switches|-pthread|-f(pic|PIC|pie|PIE)|-march=x86-64|-mtune=generic|-m64"
    r"|-mlittle-endian|-mabi=.*|-f(asynchronous-unwind-tables|exceptions|stack-protector.*|cf-protection.*)"
    r"|-fstack-clash-protection|-fno-plt|-f?no-omit-frame-pointer|-mno-omit-leaf-frame-pointer|-W[^l].*"
)
#: The processor for which Spack compiles all that it builds on a machine.
TARGET = re.compile(r"-m(arch|tune|cpu)=.*")


def find_changed_flags(program: str, told: str, by_spack: bool) -> list[str] | None:
    """Find the flags that the published build does not have; None if nothing is told.

    :param told: the flags, those of several compilations separated by semicolons
    """
    if not told.strip() or told == UNKNOWN:
        return None
    found: list[str] = []
    for one in told.split(";"):
        words = (flags_of(one) or "").split()
        levels = [word for word in words if LEVEL.fullmatch(word)]
        if (levels or ["-O0"])[-1] != LEVELS[program]:
            found.append((levels or ["no -O"])[-1])
        found += [
            word
            for word in words
            if word not in levels
            and not USUAL.fullmatch(word)
            and not (by_spack and TARGET.fullmatch(word))
        ]
    return list(dict.fromkeys(found))
