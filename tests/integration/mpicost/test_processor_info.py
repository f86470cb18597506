"""The processor's name as the C programs read it, on one host and on several."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.factories.processor import ARM, POWER, SAMPLES, X86
from tests.support.mpicost import FAMILIES, TINY, Record, library, lines, program, read
from tests.support.witness import executable, watch
from tests.support.witness import library as witness_library


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_name_is_the_one_that_the_site_finds(sample: str, tmp_path: Path) -> None:
    """``test_machine.py`` has the same samples."""
    text, name = SAMPLES[sample]
    path = tmp_path / "cpuinfo"
    if text is not None:
        path.write_text(text)
    driver = program("mpich").build / "processor_driver"
    said = subprocess.run([driver, path], capture_output=True, text=True, check=True)
    assert said.stdout == f"{name}\n"


def run_on(family: str, folder: Path, *processors: str) -> Record:
    """The run record of a launch with one rank on each of these hosts."""
    for rank, text in enumerate(processors):
        (folder / str(rank)).write_text(text)
    faults = ":".join(str(library(family, name)) for name in ("two_hosts", "other_processors"))
    file = folder / "out"
    ended = program(family).run(
        len(processors),
        *(*TINY, "--routine", "barrier", "--trials", "2", "--output", str(file)),
        wrapper=["env", f"LD_PRELOAD={faults}"],
        variables={"PLUMBLINE_PROCESSORS": str(folder)},
    )
    assert ended.status == 0, ended.complaints
    return read(file).run


@pytest.mark.parametrize("family", FAMILIES)
def test_processors_of_all_hosts_are_told(family: str, tmp_path: Path) -> None:
    """Each once and sorted, whichever host has which."""
    amd, arm, power = (SAMPLES[name][1] for name in ("x86", "arm", "power"))
    run = run_on(family, tmp_path, POWER, X86, ARM, X86, POWER)
    assert len(run["hosts"]) == 5
    assert run["cpu_model"] == " + ".join((amd, arm, power))
    assert run_on(family, tmp_path, X86, X86, X86)["cpu_model"] == amd
    assert run_on(family, tmp_path, X86, ARM)["cpu_model"] == f"{amd} + {arm}"


def test_very_many_kinds_are_counted_no_further(tmp_path: Path) -> None:
    texts = [f"model name : {letter}\n" for letter in "hijklmnopqabcdefg"]
    said = run_on("mpich", tmp_path, *texts)["cpu_model"]
    assert said == " + ".join((*"abcdefghijklmnop", "others"))
    said = run_on("mpich", tmp_path, *texts[:8], *texts[9:])["cpu_model"]
    assert said == " + ".join("abcdefghijklmnoq")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_witness_tells_them_too(family: str, tmp_path: Path) -> None:
    for rank, text in enumerate((X86, ARM)):
        (tmp_path / str(rank)).write_text(text)
    file = tmp_path / "w.jsonl"
    faults = [library(family, name) for name in ("two_hosts", "other_processors")]
    loaded, words = [witness_library(family), *faults], [str(executable(family)), "0"]
    folder = ("env", f"PLUMBLINE_PROCESSORS={tmp_path}")
    ended = watch(family, 2, words, file, loaded=loaded, wrapper=folder)
    assert ended.status == 0
    amd, arm = (SAMPLES[name][1] for name in ("x86", "arm"))
    assert lines(file)[0]["cpu_model"] == f"{amd} + {arm}"
