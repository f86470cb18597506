"""What OSU and IMB have, and what an MPI can run of it: declared, and held against the data sheets."""

from __future__ import annotations

from pathlib import Path

import pytest
from reframe.core.runtime import temp_runtime

from postprocess.benchmarks import Benchmark
from reframe_checks import support
from reframe_checks.support import (
    BENCHMARKS,
    NEEDS,
    NODES,
    PROCESSES,
    Flaw,
    names,
    runs_at,
    unsupported,
)

ROOT = Path(__file__).resolve().parent.parent


def sheets() -> list[tuple[str, Benchmark]]:
    """Every line of every data sheet with its program. ReFrame makes checks for a site only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMBLINE_ONLY_LOOKING", "1")
        with temp_runtime(str(ROOT / "site_configs" / "slurm_cluster.py"), "slurm_cluster"):
            from reframe_checks.imb import imb
            from reframe_checks.osu import osu

            return [(program.program, each) for program in (osu, imb) for each in program.sheet]


SHEETS = sheets()


def test_every_benchmark_is_there_once():
    every = names("osu") + names("imb")
    assert len(every) == len(set(every)) == sum(map(len, BENCHMARKS.values()))
    assert (len(BENCHMARKS["IMB-NBC"]), len(BENCHMARKS["IMB-RMA"])) == (26, 19)


@pytest.mark.parametrize(("program", "line"), SHEETS, ids=lambda each: getattr(each, "name", each))
def test_a_sheet_asks_for_what_there_is_and_where_it_runs(program: str, line):
    assert line.name in names(program)
    if line.executable:
        assert line.name in BENCHMARKS[line.executable]
    for processes in range(2, 18):
        if line.fits(processes):
            assert runs_at(line.name, processes, nodes=1), processes


@pytest.mark.parametrize("pattern", [*PROCESSES, *NODES, *NEEDS])
def test_no_pattern_is_a_misspelling(pattern: str):
    every = names("osu") + names("imb")
    assert [name for name in every if support.fnmatchcase(name, pattern)]


LACKING = {
    "mpich": set(),
    "openmpi": {"osu_latency_mt"},
    "intel-mpi": {"osu_latency_mt", "osu_allgather_persistent", "osu_scatter_persistent"},
}
TRIED = [("mpich", "5.0.2"), ("openmpi", "5.0.11"), ("intel-mpi", "2021.19.0")]


@pytest.mark.parametrize(("family", "version"), TRIED)
def test_what_was_tried_is_supported(family: str, version: str):
    lacking = {
        name
        for program in ("osu", "imb")
        for name in names(program)
        if unsupported(family, version, program, name)
    }
    assert lacking == LACKING[family]


@pytest.mark.parametrize(
    ("family", "version", "program", "benchmark", "reason"),
    [
        ("openmpi", "1.6.5", "imb", "Iallreduce", "needs MPI 3.0, which openmpi has since 1.8"),
        ("openmpi", "1.6.5", "imb", "Allreduce", ""),
        ("openmpi", "1.10", "imb", "Iallreduce", ""),
        ("mpich", "3.4a2", "imb", "Unidir_put", ""),
        ("mpich", "1.5", "osu", "osu_put_latency", "needs MPI 3.0, which mpich has since 3.0"),
        ("mpich", "1.5", "osu", "osu_init", ""),
        ("mpich", "1.5", "osu", "osu_latency_persistent", ""),
        ("mpich", "3.4", "osu", "osu_bcast_persistent", "needs MPI 4.0, which mpich has since 4.0"),
        ("intel-mpi", "2017.1", "osu", "osu_ibcast", ""),
        ("unheard-of", "1.0", "osu", "osu_ibcast", ""),
    ],
)
def test_an_mpi_that_is_too_old_is_told_with_the_standard(
    family, version, program, benchmark, reason
):
    assert unsupported(family, version, program, benchmark) == reason


@pytest.mark.parametrize(("version", "told"), [("4.0", ""), ("4.1.2", "it hangs"), ("4.1.7", "")])
def test_a_flaw_counts_from_one_release_to_another(monkeypatch, version: str, told: str):
    flaw = Flaw("openmpi", "Unidir_*", (4, 1), (4, 1, 7), "it hangs")
    monkeypatch.setattr(support, "FLAWS", (flaw,))
    assert unsupported("openmpi", version, "imb", "Unidir_put") == told
    assert unsupported("openmpi", version, "imb", "Bidir_put") == ""
    assert unsupported("mpich", version, "imb", "Unidir_put") == ""


def test_a_benchmark_that_no_program_has_is_an_error():
    with pytest.raises(ValueError, match="imb has no benchmark 'osu_init'"):
        unsupported("mpich", "5.0.2", "imb", "osu_init")
