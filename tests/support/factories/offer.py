"""Offers as ``offer run`` leaves them, made of the records of samples, for tests to forge."""

import calendar
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from postprocess.extensions.procurement import offer
from postprocess.extensions.procurement.builds import OfficialSource
from postprocess.extensions.procurement.rules.layouts import MachineFacts
from postprocess.extensions.procurement.rules.rules import hash_rules
from postprocess.model.plan import PlannedLaunch, write_launch
from spack_envs.installation import BuiltBinary, locate_program_file, write_program
from tests.support.factories import benchmark, record
from tests.support.factories.launch import case, leave, planned
from tests.support.paths import ROOT

OFFICIAL = OfficialSource(ROOT)
#: A package of Spack by its hash, and what a lock file says of it.
SOLVED = {"lwan": {"namespace": "plumbline", "parameters": {"commit": "", "patches": []}}}
BCAST = case()
RULES_TEXT = """\
schema = 1
title = "a sample"
launches = 5
tolerance = 0.05
one_row_with = ["mpich"]
tell = ["offeror", "link_gbit_per_s", "memory_gbyte_per_s"]
[iterations]
mpicost = 51
osu = 200
[risk]
most_launches = 20
[category.baseline]
text = "as it is"
[category.optimised]
text = "anything"
allows = ["environment", "flags", "patch"]
[[case]]
name = "broadcast"
program = "mpicost"
routine = "bcast"
bytes = [8, 1000000]
nodes = "one"
per_node = "two"
limit = "1 s"
[[case]]
name = "allreduce"
program = "osu"
routine = "allreduce_sum"
bytes = [8]
nodes = "one"
per_node = "two"
demand = "should"
weight = 2.0
[[reference]]
case = "broadcast"
bytes = 8
value = "2 us"
"""
TOLD_TEXT = 'offeror = "A"\nlink_gbit_per_s = 200.0\nmemory_gbyte_per_s = 300.0\n'
MACHINE = MachineFacts("cpu", nodes=1, cores_per_node=2)
ENVIRONMENT = "mpich-5_0_2"
BROADCASTS = tuple(case("bcast", size) for size in (8, 1_000_000))
OPTIONS = ("--routine=bcast:8:1000000", "--trials=51")
Edit = Callable[[list[dict[str, Any]]], None]


DAY = 21  #: of November 2026, on which offers are measured
DELIVERED = 23  #: and on which machines are delivered


def moment(number: int, second: int = 0, day: int = DAY) -> str:
    """A time in pass ``number``."""
    return f"2026-11-{day}T09:{number:02d}:{second:02d}Z"


def seconds(number: int, second: int = 0, day: int = DAY) -> int:
    return calendar.timegm((2026, 11, day, 9, number, second, 0, 0, 0))


def make_offer(
    folder: Path,
    factors: Sequence[float] | None = None,
    rules: str = RULES_TEXT,
    told: str = TOLD_TEXT,
    category: str = "baseline",
    seed: int = 3,
    day: int = DAY,
) -> Path:
    """An offer of a pass for each factor, by which its launches are slower than the sample.

    :param day: on which it is measured; its launches are others than those of another day
    """
    if factors is None:
        factors = np.exp(np.random.default_rng(seed).normal(0.0, 0.01, 5)).tolist()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / offer.RULES).write_text(rules)
    (folder / offer.TELL).write_text(told)
    header = offer.OfferHeader(
        offer.SCHEMA, hash_rules(folder / offer.RULES), "local", "cpu", moment(0, day=day), "0.1.0"
    )
    offer.append_line(folder, header)
    for number, factor in enumerate(factors, 1):
        add_pass(folder, number, factor, category, day)
    return folder


def add_pass(folder: Path, number: int, factor: float, category: str = "baseline", day: int = DAY) -> None:
    """Add a pass with a launch of each program."""
    name = f"202611{day}T09{number:02d}00Z-1"
    session = offer.locate_session(folder, name)
    leave_own(session, number, factor, day)
    leave_osu(session, number, factor, day)
    done = offer.OfferPass(
        number, offer.hash_last_line(folder), name, category, MACHINE, moment(number, day=day),
        moment(number, 30, day), ("./plumbline", "offer", "run"),
    )  # fmt: skip
    offer.append_line(folder, done)


def token_of(number: int, day: int = DAY) -> str:
    return f"{number + 1000 * (day - DAY):032d}"


def own_launch(number: int, day: int = DAY) -> PlannedLaunch:
    return planned(cases=BROADCASTS, options=OPTIONS, token=token_of(number, day))


def leave_own(session: Path, number: int, factor: float, day: int = DAY) -> None:
    """What a launch of mpicost leaves."""
    launch = own_launch(number, day)
    records = [
        record.case_record("bcast", 8, scale=1e-6 * factor),
        record.case_record("bcast", 1_000_000, scale=1e-4 * factor),
    ]
    told = {"token": launch.token, "date_utc": moment(number, 1, day), "source_hash": OFFICIAL.hash}
    told["compiler_flags"] = "-O3 -DNDEBUG -std=c11"
    run = record.run_record(2, **told, command=["mpicost", *OPTIONS, f"--token={launch.token}"])
    end = record.end_record(2) | {"token": launch.token, "ended_utc": moment(number, 9, day)}
    leave(session, launch, [run, *records, end])
    launch.span(session).write_text(f"{seconds(number, day=day)}\n{seconds(number, 10, day)}\n")
    write_program(session, BuiltBinary(ENVIRONMENT, "mpicost", "/opt/bin/mpicost", "cmake"))


def leave_osu(session: Path, number: int, factor: float, day: int = DAY) -> None:
    launch = replace(benchmark.start(sizes=(8,)), token=token_of(number + 100, day))
    text = benchmark.osu_text(rows={8: benchmark.allreduce_row(8, 10 * factor)})
    leave_start(session, number, launch, text, day)


def leave_imb(session: Path, number: int, factor: float, day: int = DAY) -> None:
    """What two starts of IMB leave: a ping-pong of no bytes, judged by its time, and a bandwidth."""
    starts = (
        (benchmark.PINGPONG, 0, (f"{2000 * factor:.2f}", "0.00")),
        (benchmark.UNIBAND, 65536, (f"{1000 / factor:.2f}", "15258")),
    )
    for place, (line, size, cells) in enumerate(starts, 2):
        launch = benchmark.start("imb", (line,), (size,), token=token_of(number + 100 * place, day))
        text = benchmark.imb_text({line.name: {size: cells}})
        leave_start(session, number, launch, text, day)


def leave_start(session: Path, number: int, launch: PlannedLaunch, text: str, day: int = DAY) -> None:
    """What a start of OSU or IMB leaves in a pass: what it prints, its witness and its build."""
    run, end = benchmark.witnessed(
        token=launch.token,
        date_utc=moment(number, 11, day),
        program=launch.executable,
        command=[launch.executable, *launch.options],
    )
    end |= {"token": launch.token, "ended_utc": moment(number, 19, day)}
    benchmark.leave(session, launch, text, [run, end])
    place = (ENVIRONMENT, launch.program, "/opt/bin", "benchmarks/lwan")
    write_program(session, BuiltBinary(*place, version="7.4", **benchmark.BUILD))
    lock = locate_program_file(session, ENVIRONMENT, launch.program).with_suffix(".lock")
    lock.write_text(json.dumps({"concrete_specs": SOLVED}))
    launch.span(session).write_text(f"{seconds(number, 10, day)}\n{seconds(number, 20, day)}\n")


def session_of(folder: Path, number: int = 1) -> Path:
    return sorted((folder / "sessions").iterdir())[number - 1]


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    """A change of a text where it comes first in a file of a folder."""

    def forge(folder: Path) -> None:
        told = (folder / name).read_text()
        assert old in told
        (folder / name).write_text(told.replace(old, new, 1))

    return forge


def edit_records(folder: Path, edit: Edit, program: str = "mpicost", number: int = 1) -> None:
    """Change the records of a launch, or the witness's, as a forger would."""
    pattern = "*.witness.jsonl" if program == "osu" else "*mpicost*.jsonl"
    path = next((session_of(folder, number) / "raw").glob(pattern))
    records = [json.loads(line) for line in path.read_text().split("\n") if line]
    edit(records)
    record.write(path, records)


def edit_plan(folder: Path, number: int = 1, program: str = "mpicost", **changes: Any) -> None:
    """Change the plan of a launch."""
    session = session_of(folder, number)
    if program == "mpicost":
        write_launch(session, replace(own_launch(number), **changes))
        return
    path = next((session / "plan").glob("osu*.json"))
    told = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(told))


def edit_pass(folder: Path, number: int = 1, **changes: Any) -> None:
    """Change what a pass tells of itself, and mend the hashes behind it, as a careful forger would."""
    from postprocess.extensions.procurement.offer import PASSES, hash_line

    path = folder / PASSES
    lines = path.read_text().splitlines()
    lines[number] = json.dumps(json.loads(lines[number]) | changes)
    for place in range(number, len(lines)):
        told = json.loads(lines[place])
        told["previous"] = hash_line(lines[place - 1].encode())
        lines[place] = json.dumps(told)
    path.write_text("".join(f"{line}\n" for line in lines))
