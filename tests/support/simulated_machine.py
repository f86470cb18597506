"""Short launches on simulated machines, started as the site starts them, with faults planted in the machine."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from postprocess.judging.evaluate import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.mpicost import read_launch
from site_configs.simgrid import HOST_FILE, PLATFORM, PLATFORMS, SELECTOR, STAND_INS, SmpirunLauncher, selector
from tests.support.simgrid import simulated

PROCESSES = 16
ROUTINES = "pingpong:8:1000000,barrier,bcast:8:1000000,allreduce_sum:8:1000000,alltoall:8"
LIMIT = 120  #: seconds after which a launch counts as hung


def machine_with(directory: Path, name: str, *changes: tuple[str, str]) -> Path:
    """A platform file like that of this name, in which words are replaced."""
    text = (PLATFORMS / f"{name}.xml").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = directory / f"{name}.xml"
    path.write_text(text)
    return path


def measure(
    directory: Path,
    platform: Path,
    *,
    name: str = "mpich",
    hosts: Sequence[str] = (),
    routines: str = ROUTINES,
    program: Path | None = None,
    seed: int = 1,
) -> dict[Case, float]:
    """Headlines in seconds of one launch with one process per node."""
    directory.mkdir(parents=True, exist_ok=True)
    job = SimpleNamespace(num_tasks=PROCESSES, num_tasks_per_node=1, workdir=str(directory))
    words = SmpirunLauncher().command(job)
    records = directory / "records.jsonl"
    program = program or simulated().build / "mpicost"
    options = [f"--routine={routines}", "--trials=2", "--cache=warm", f"--seed={seed}"]
    peers = ["--peers=1,3,8"] if "pingpong" in routines else []
    own = [shlex.quote(word) for word in (str(program), *options, *peers, f"--output={records}")]
    variables = {PLATFORM: str(platform)}
    variables |= {key: " ".join(shlex.split(value)) for key, value in selector(name)["env_vars"]}
    if hosts:
        file = directory / "placement"
        file.write_text("".join(f"{host}\n" for host in hosts))
        variables[HOST_FILE] = str(file)
    assert {PLATFORM, SELECTOR, STAND_INS} <= variables.keys()
    ended = subprocess.run(
        ["bash", "-c", " ".join([*words, *own])],
        cwd=directory,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    launch = read_launch(records)
    return {
        launch.case(record, "simulated", "torus", "simgrid-mpich"): record.summary.headline
        for record in launch.cases
    }


def judge(references: Sequence[Reference], times: dict[Case, float]) -> dict[str, CaseResult]:
    """What is said of each case, by ``routine bytes`` and for ping-pong ``routine peer bytes``."""
    assert {reference.case for reference in references} == times.keys()
    return {
        word(reference.case): judge_case(reference.case, Measurement(times[reference.case]), reference)
        for reference in references
    }


def verdicts(references: Sequence[Reference], times: dict[Case, float]) -> dict[str, Verdict]:
    """The verdict of each case, by the same words."""
    return {name: said.verdict for name, said in judge(references, times).items()}


def word(case: Case) -> str:
    """A short name for a case."""
    return " ".join(map(str, filter(None, (case.routine, case.peer, case.bytes))))


def switch(directory: Path, slow: int | None = None) -> Path:
    """A platform of hosts on one switch, with the ethernet's numbers; one cable may carry a tenth."""
    entries = [
        f'<host id="n{n}" speed="1Gf"/>'
        f'<link id="l{n}" latency="81us" bandwidth="{1.25 if n == slow else 12.5}MBps"'
        ' sharing_policy="SPLITDUPLEX"/>'
        f'<host_link id="n{n}" up="l{n}_UP" down="l{n}_DOWN"/>'
        for n in range(PROCESSES)
    ]
    text = (PLATFORMS / "ethernet.xml").read_text()
    head, _, _ = text.partition("<zone")
    zone = '<zone id="top" routing="Cluster">{}</zone></platform>\n'
    path = directory / "switch.xml"
    path.write_text(head + zone.format("\n".join(entries)))
    return path
