"""The ratios over C and their table, and what each language needs."""

import hashlib
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.extensions.agreement.bindings import (
    BindingsResult,
    LanguageFault,
    compare_with_c,
    format_bindings,
)
from postprocess.parsers.bindings import Exchange
from site_configs.mpi import languages, wheels
from site_configs.mpi.exchange import count_calls, list_cases
from site_configs.mpi.family import Mpi


def test_ratios_are_taken_within_the_round():
    c, other = languages.LANGUAGES[0], languages.LANGUAGES[2]
    runs = {
        c: [Exchange("single", {("bcast", 8): s}) for s in (1e-6, 2e-6, 4e-6)],
        other: [Exchange("single", {("bcast", 8): 3 * s}) for s in (1e-6, 2e-6, 4e-6)],
    }
    own, theirs = compare_with_c("mpich-5_0_2", runs)
    assert own.ratio == 1 and own.seconds == 2e-6
    for value in (theirs.ratio, theirs.low, theirs.high):
        assert math.isclose(value, 3)
    assert math.isclose(theirs.extra, 4e-6)
    result = BindingsResult("CPU", 1, rows=[own, theirs])
    lines = format_bindings(result).splitlines()
    assert any(other.title in line and "3.00 (3.00 to 3.00), +4.00" in line for line in lines)
    assert lines[-1] == "1 comparison with C, 0 skipped, 0 errors" and result.status == 0


def test_a_barrier_is_measured_without_bytes():
    assert {("alltoall", 8), ("barrier", 0)} <= {*list_cases([8, 1000])}
    assert [size for routine, size in list_cases([8, 1000]) if routine == "barrier"] == [0]
    c = {languages.LANGUAGES[0]: [Exchange("single", dict.fromkeys(list_cases([8]), 1e-6))] * 3}
    text = format_bindings(BindingsResult("CPU", 1, rows=compare_with_c("mpich-5_0_2", c)))
    (row,) = (line.split() for line in text.splitlines() if line.split()[:1] == ["barrier"])
    assert row == ["barrier", "C", "1.00", "-"]


def test_what_has_no_row_is_told_and_counted():
    skipped = LanguageFault("mpich-5_0_2", "rust", "Rust", "no cargo")
    failed = LanguageFault("mpich-5_0_2", "c", "C", "wrong data")
    result = BindingsResult("CPU", 1, skipped=[skipped], failures=[failed])
    text = format_bindings(result)
    assert "skipped: mpich-5_0_2: Rust: no cargo\nerror: mpich-5_0_2: C: wrong data\n" in text
    assert text.endswith("0 comparisons with C, 1 skipped, 1 error\n") and result.status == 1


def test_c_again_alone_compares_no_language():
    """A command whose every language was skipped has not done what it was asked for."""
    runs = dict.fromkeys(languages.LANGUAGES[:2], [Exchange("single", {("bcast", 8): 1e-6})] * 3)
    assert [each.name for each in runs] == ["c", "c-again"]
    result = BindingsResult("CPU", 1, rows=compare_with_c("mpich-5_0_2", runs))
    assert format_bindings(result).endswith("0 comparisons with C, 0 skipped, 0 errors\n")
    assert len(result.rows) == 2 and result.status == 1


def test_c_is_always_chosen():
    for kind in languages.KINDS:
        chosen = {each.name.partition("-")[0] for each in languages.select_languages([kind])}
        assert chosen == {"c", kind}
    assert languages.select_languages() == [*languages.LANGUAGES]


def make_bench(root: Path) -> languages.Bench:
    root.joinpath("bin").mkdir(parents=True)
    mpi = Mpi("m-1", "mpich", "1", "", "path", str(root), str(root / "bin" / "mpicc"), "mpiexec")
    return languages.Bench(mpi, root, root)


def test_the_fortran_wrapper_is_beside_that_of_c(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mpicc", "mpicc.openmpi", "mpif90", "mpifort.openmpi"):
        (folder / name).touch()
    assert languages.find_fortran_wrapper(folder / "mpicc").name == "mpif90"
    assert languages.find_fortran_wrapper(folder / "mpicc.openmpi").name == "mpifort.openmpi"
    with pytest.raises(languages.Unavailable, match="no Fortran in this MPI"):
        languages.find_fortran_wrapper(folder / "mpicc.mpich")


@pytest.mark.parametrize(("version", "folder"), [("12.2.0", "12.4.0"), ("14.2.0", "13.3.0"), ("6.5.0", None)])
def test_modules_are_of_the_compiler_at_hand(tmp_path, monkeypatch, version, folder):
    bench = make_bench(tmp_path / "mpi")
    modules = tmp_path / "mpi" / "include" / "mpi" / "gfortran"
    for name in ("7.1.0", "12.4.0", "13.3.0", "15.1.0"):
        (modules / name).mkdir(parents=True)
    compiler = tmp_path / "gfortran"
    compiler.write_text(f"#!/bin/sh\necho {version}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert languages.find_module_folders(bench) == ([modules / folder] if folder else [])
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(languages.Unavailable, match="gfortran is not on PATH"):
        languages.find_module_folders(make_bench_again(bench))


def make_bench_again(bench: languages.Bench) -> languages.Bench:
    """Without what it remembers of the environment."""
    return languages.Bench(bench.mpi, bench.folder, bench.lasting)


@pytest.mark.parametrize(
    ("content", "told"), [(b"jar", None), (b"another", "is not the file that"), (None, "is missing")]
)
def test_jars_are_the_pinned_ones(tmp_path, monkeypatch, content, told):
    pins = tmp_path / "mpj.sha256"
    pins.write_text(f"{hashlib.sha256(b'jar').hexdigest()}  of_a_test.jar\n")
    (tmp_path / "mpj" / "lib").mkdir(parents=True)
    if content:
        (tmp_path / "mpj" / "lib" / "of_a_test.jar").write_bytes(content)
    monkeypatch.setattr(wheels, "PINS", pins)
    monkeypatch.setattr(wheels, "can_fetch", lambda: False)
    monkeypatch.setenv("MPJ_HOME", str(tmp_path / "mpj"))
    bench, home = make_bench(tmp_path / "mpi"), tmp_path / "copy"
    for each in (bench, replace(bench, jars=tmp_path / "mpj" / "lib")):  # installed, and of a mirror
        if told:
            with pytest.raises(languages.Unavailable, match=told):
                languages.provide_jars(each, home)
        else:
            languages.provide_jars(each, home)
            assert (home / "lib" / "of_a_test.jar").read_bytes() == content


def test_what_is_not_on_this_machine_has_its_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    bench = make_bench(tmp_path / "mpi")
    for prepare, told in ((languages.prepare_rust, "cargo"), (languages.prepare_mpj, "no JDK")):
        with pytest.raises(languages.Unavailable, match=told):
            prepare(bench)


def test_a_batch_is_neither_one_call_nor_for_ever():
    assert [count_calls(each) for each in (8, 1_000_000, 2**40)] == [200, 10, 1]
