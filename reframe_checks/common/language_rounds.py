"""Run inside a job: in each round, C and all languages once, in random order.

Before the rounds, the program in C is started under the witness once per language: this records what the launch
of that language ran on, and its times are not used. Each language proves its library itself. A language that
fails ends there; if C fails, all end.
"""

import os
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.files import write_text
from postprocess.base.records import read_record
from postprocess.model.verdict import RecordError
from postprocess.parsers.bindings import format_start, read_exchange
from site_configs.mpi.exchange import C, Program, Ran, run_exchange


@dataclass(frozen=True)
class LanguageStart:
    """A language, and the files of its launch."""

    language: str
    program: Program
    library: str  #: what it must report as its library
    token: str
    witness: str
    output: str
    ending: str


@dataclass(frozen=True)
class LanguageRounds:
    """The languages of a job and how they are started."""

    c: Program
    library: str  #: what C must report as its library
    starts: tuple[LanguageStart, ...]
    launcher: tuple[str, ...]  #: with its number of ranks
    options: tuple[str, ...]  #: options of every program
    rounds: int
    limit: float  #: seconds per start
    witness: str  #: library that is preloaded in front of the MPI
    seed: str


def measure_rounds(job: LanguageRounds, env: Mapping[str, str]) -> None:
    """Measure all rounds, and write output and exit code of each launch."""
    going: dict[str, LanguageStart] = {}
    preloaded = ":".join(filter(None, [job.witness, env.get("LD_PRELOAD")]))  # it names the others
    for start in job.starts:
        variables = {
            "LD_PRELOAD": preloaded,
            "PLUMBLINE_WITNESS": start.witness,
            "PLUMBLINE_TOKEN": start.token,
        }
        ran = run(job, replace(job.c, variables=variables), env)
        sys.stderr.write(ran.stderr + ran.output)  # transports printed by a verbose start
        write_text(Path(start.output), "")
        if ran.code:
            end_launch(start, ran)
        else:
            going[start.language] = start
    draw = random.Random(job.seed)
    for number in range(1, job.rounds + 1) if going else ():
        programs = {C: job.c} | {name: start.program for name, start in going.items()}
        names = sorted(programs)
        ran_by_name = {name: run(job, programs[name], env) for name in draw.sample(names, len(names))}
        for start in list(going.values()):
            parts = {C: job.library, start.language: start.library}
            with open(start.output, "a", encoding="utf-8") as file:
                for name, library in parts.items():
                    file.write(format_start(number, name, library, ran_by_name[name].output))
            failed = [
                ran_by_name[name] for name, library in parts.items() if has_failed(ran_by_name[name], library)
            ]
            if failed:
                end_launch(start, failed[0])
                del going[start.language]
        if not going:
            return
    for start in going.values():
        end_launch(start, Ran(0))


def run(job: LanguageRounds, program: Program, env: Mapping[str, str]) -> Ran:
    return run_exchange(program, job.launcher, job.options, env, job.limit)


def has_failed(ran: Ran, library: str) -> bool:
    """Return whether a start failed, or had wrong output."""
    try:
        read_exchange(ran.output, library)
    except RecordError:
        return True
    return bool(ran.code)


def end_launch(start: LanguageStart, ran: Ran) -> None:
    """Write the exit code of a launch; its program's error output goes to standard error."""
    if ran.errors:
        print(f"{start.language}: {ran.errors}", file=sys.stderr)
    write_text(Path(start.ending), f"{ran.code}\n")


if __name__ == "__main__":
    measure_rounds(read_record(Path(sys.argv[1]), LanguageRounds), os.environ)
