"""The controls of mpicost: what ranks do without MPI is timed and verified like any routine."""

import math
import subprocess
from pathlib import Path

import pytest

from postprocess.model.routines.mpicost import CONTROLS, is_control
from postprocess.parsers.mpicost import read_launch
from tests.support.factories.launch import case
from tests.support.mpi import of_family
from tests.support.mpicost import EVICTED, FAMILIES, TINY, build, library, preload, program, read

CASES = {(name, size) for name, sizes in CONTROLS.items() for size in sizes}
STEPS = 65_536  #: of control_compute
#: No processor multiplies faster: two cycles at 10 GHz. Two steps made one would be.
FASTEST_STEP = 2 / 10e9


@pytest.mark.parametrize("family", FAMILIES)
def test_controls_are_measured_and_verified_on_any_number_of_ranks(family: str, tmp_path: Path):
    for processes in (1, 3):
        file = tmp_path / f"{processes}.jsonl"
        options = (*EVICTED, "--routine", ",".join(CONTROLS), "--trials", "5")
        records = program(family).measure(processes, file, *options)
        assert {(each["routine"], each["bytes"]) for each in records.cases} == CASES
        assert all(each["verified"] for each in records.cases)
        assert len(read_launch(file).cases) == len(CASES)


@pytest.mark.parametrize("optimisation", ["-O3 -march=native"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_compiler_shortens_the_chain(compiler: str, optimisation: str, tmp_path: Path):
    """The chain and the closed form of it, by which it is verified, agree; and every step is taken."""
    try:
        subprocess.run([compiler, "--version"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip(f"no {compiler} (Debian: apt-get install {compiler})")
    mpi = of_family("mpich")
    flags = [f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_C_FLAGS_RELEASE={optimisation}"]
    directory = build(mpi, tmp_path / "build", *flags, "-DMPICOST_WERROR=ON", targets=["mpicost"])
    file = tmp_path / "out.jsonl"
    words = [directory / "mpicost", *TINY, "--routine=control_compute:8:16", "--trials=5"]
    env = {**mpi.env, "PATH": "/usr/bin:/bin"}
    subprocess.run([*words, "--output", file], check=True, capture_output=True, env=env)
    for each in read(file).cases:
        assert each["verified"]
        assert each["minimum"] > each["bytes"] // 8 * STEPS * FASTEST_STEP


def test_only_these_routines_of_mpicost_are_controls():
    assert is_control(case("control_memory", 1_000_000))
    assert not is_control(case("bcast"))
    assert not is_control(case("control_memory", program="osu"))


@pytest.mark.alone
@pytest.mark.parametrize(("slow", "slower"), [("memory", "control_memory"), ("mpi", "bcast")])
def test_controls_tell_a_slow_machine_from_a_slow_mpi(slow: str, slower: str, tmp_path: Path):
    """The best of each, in turns with and without the fault: a busy machine is slow at times, not always."""
    wrapper = preload(library("mpich", "slow_part"))
    best: dict[tuple[str, str], float] = {}
    for turn in range(3):
        for fault in ("nothing", slow):
            file = tmp_path / f"{fault}-{turn}.jsonl"
            words = (*TINY, "--routine=control_compute,control_memory,bcast:8", "--trials=21")
            ended = program("mpich").run(
                2, *words, "--output", str(file), wrapper=wrapper, variables={"PLUMBLINE_SLOW": fault}
            )
            assert ended.status == 0, ended.complaints
            for each in read(file).cases:
                key = (fault, each["routine"])
                best[key] = min(best.get(key, math.inf), each["minimum"])
    ratios = {
        name: best[slow, name] / best["nothing", name]
        for name in ("control_compute", "control_memory", "bcast")
    }
    assert max(ratios, key=lambda name: ratios[name]) == slower
    assert ratios.pop(slower) > 3
    assert max(ratios.values()) < 2
