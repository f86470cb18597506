"""The ratios over C and their table, and what each language needs."""

import hashlib
import math
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from postprocess.base.progress import Progress
from postprocess.extensions.agreement.bindings import (
    ROUNDS,
    BindingsHeader,
    BindingsResult,
    LanguageFault,
    LanguageRound,
    compare_with_c,
    find_or_begin,
    format_bindings,
    measure_mpi,
)
from postprocess.parsers.bindings import Exchange
from site_configs.mpi import languages, wheels
from site_configs.mpi.exchange import Program, count_calls, list_cases
from site_configs.mpi.family import Mpi
from site_configs.mpi.languages import (
    KINDS,
    LANGUAGES,
    Bench,
    Language,
    Unavailable,
    drop_stale_build,
    find_fortran_wrapper,
    find_module_folders,
    prepare_languages,
    prepare_rust,
    select_languages,
)
from tests.support.faults import Declared, plants


def test_ratios_are_taken_within_the_round():
    c, other = LANGUAGES[0], LANGUAGES[2]
    basis, slower = (
        [Exchange("single", {("bcast", 8): times * s}) for s in (1e-6, 2e-6, 4e-6)] for times in (1, 3)
    )
    (own,) = compare_with_c("mpich-5_0_2", c, [*zip(basis, basis, strict=True)])
    (theirs,) = compare_with_c("mpich-5_0_2", other, [*zip(slower, basis, strict=True)])
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
    c = Exchange("single", dict.fromkeys(list_cases([8]), 1e-6))
    rows = [*compare_with_c("mpich-5_0_2", LANGUAGES[0], [(c, c)] * 3)]
    text = format_bindings(BindingsResult("CPU", 1, rows=rows))
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
    c = Exchange("single", {("bcast", 8): 1e-6})
    assert [language.name for language in LANGUAGES[:2]] == ["c", "c-again"]
    rows = [row for language in LANGUAGES[:2] for row in compare_with_c("mpich-5_0_2", language, [(c, c)] * 3)]
    result = BindingsResult("CPU", 1, rows=rows)
    assert format_bindings(result).endswith("0 comparisons with C, 0 skipped, 0 errors\n")
    assert len(result.rows) == 2 and result.status == 1


def test_c_is_always_chosen():
    for kind in KINDS:
        assert {language.name.partition("-")[0] for language in select_languages([kind])} == {"c", kind}
    assert select_languages() == [*LANGUAGES]


def make_bench(root: Path) -> Bench:
    root.joinpath("bin").mkdir(parents=True)
    mpi = Mpi("m-1", "mpich", "1", "", "path", str(root), str(root / "bin" / "mpicc"), "mpiexec")
    return Bench(mpi, root, root)


#: A launcher whose programs measure at once; the one whose number of starts is in its file crashes then.
LAUNCHER = """#!/bin/sh
echo start >> "$3.starts"
test "$(wc -l < "$3.starts")" = "$(cat "$3")" && exit 3
echo world 2 0 MPICH Version: 1
for case in "pingpong 8" "bcast 8" "allreduce 8" "alltoall 8" "barrier 0"; do
    echo $case 0 1e-6 1e-6 1e-6 1e-6 1e-6
done
echo end
"""


def measure_fake(root: Path, crashes: dict[str, int], rounds: int = 5, **more) -> BindingsResult:
    """Measure C and another language by programs of which some crash at the start of a number."""
    if not root.exists():
        bench = make_bench(root)
        Path(root, "mpiexec").write_text(LAUNCHER)
        Path(root, "mpiexec").chmod(0o755)
    mpi = Mpi("m-1", "mpich", "1", "MPICH Version: 1", "path", str(root), "", str(root / "mpiexec"))
    bench = Bench(mpi, root, root)
    languages = []
    for name in ("c", "rust"):
        file = root / name
        file.write_text(str(crashes.get(name, 0)))
        languages.append(Language(name, name, lambda _, file=file: Program((str(file),))))
    result = more.pop("result", None) or BindingsResult("CPU", 1)
    measure_mpi(bench, languages, [8], rounds, result, more.pop("say", str), **more)
    return result


def count_launches(result: BindingsResult) -> dict[str, int]:
    return {row.language: row.launches for row in result.rows}


def test_a_language_that_fails_keeps_the_rounds_before_and_costs_no_other_one_any(tmp_path):
    result = measure_fake(tmp_path / "mpi", {"rust": 4})
    assert count_launches(result) == {"c": 5, "rust": 3} and result.status == 1
    found = [(failure.language, failure.reason) for failure in result.failures]
    assert found == [("rust", "said nothing of its world")]
    few = measure_fake(tmp_path / "other", {"rust": 3})  # too few for an interval
    assert count_launches(few) == {"c": 5}


def test_c_that_fails_ends_all_and_keeps_the_rounds_before(tmp_path):
    result = measure_fake(tmp_path / "mpi", {"c": 5}, rounds=9)
    assert count_launches(result) == {"c": 4, "rust": 4} and result.status == 1
    assert [failure.language for failure in result.failures] == ["c"]
    assert len((tmp_path / "mpi" / "rust.starts").read_text().splitlines()) == 5


HEADER = BindingsHeader("CPU", ("c", "rust"), (8,), 5, {"m-1": "MPICH Version: 1"}, "sources", 7)


def test_a_call_that_was_cut_off_has_its_rounds_and_another_goes_on(tmp_path):
    progress = Progress()

    def begin(asked: BindingsHeader = HEADER) -> tuple[list[LanguageRound], dict]:
        journal, header, known = find_or_begin(tmp_path / "bindings", asked, progress)
        keep = lambda done: journal.append({"record": "round", **asdict(done)})  # noqa: E731
        return known, {"result": BindingsResult("CPU", header.seed), "known": known, "keep": keep}

    def interrupt(told: str) -> None:
        if told == "m-1: round 4 of 5":
            raise KeyboardInterrupt

    _, first = begin()
    with pytest.raises(KeyboardInterrupt):
        measure_fake(tmp_path / "mpi", {}, say=interrupt, **first)
    assert count_launches(first["result"]) == {"c": 3, "rust": 3}

    (file,) = tmp_path.glob(f"bindings/*{ROUNDS}")
    with file.open("a") as journal:
        journal.write('{"record": "round", "envi')  # as a power cut leaves it
    known, second = begin(replace(HEADER, seed=8))
    assert len(known) == 3 and second["result"].seed == 7
    result = measure_fake(tmp_path / "mpi", {}, **second)
    assert count_launches(result) == {"c": 5, "rust": 5} and result.status == 0
    assert len((tmp_path / "mpi" / "c.starts").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    "other", [{"sizes": (16,)}, {"libraries": {"m-1": "MPICH Version: 2"}}, {"sources": "others"}, {}]
)
def test_nothing_goes_on_with_what_is_finished_or_was_of_something_else(tmp_path, other):
    begun, _, _ = find_or_begin(tmp_path, HEADER, Progress())
    begun.append({"record": "round", **asdict(LanguageRound("m-1", {}, {"c": "crashed"}))})
    earlier = begun.path.rename(tmp_path / f"0{ROUNDS}")
    assert len(find_or_begin(tmp_path, HEADER, Progress())[2]) == 1
    if not other:
        earlier.with_suffix(".json").touch()
    journal, _, known = find_or_begin(tmp_path, replace(HEADER, **other), Progress())
    assert not known and journal.path != earlier


def test_a_failure_is_told_again_by_the_call_that_goes_on(tmp_path):
    """Going on is no way to be rid of wrong data."""
    failed = LanguageRound("m-1", {}, {"rust": "wrong data"})
    result = measure_fake(tmp_path / "mpi", {}, known=[failed])
    assert [failure.reason for failure in result.failures] == ["wrong data"] and result.status == 1
    assert not (tmp_path / "mpi" / "rust.starts").exists()


def test_the_fortran_wrapper_is_beside_that_of_c(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mpicc", "mpicc.openmpi", "mpif90", "mpifort.openmpi"):
        (folder / name).touch()
    assert find_fortran_wrapper(folder / "mpicc").name == "mpif90"
    assert find_fortran_wrapper(folder / "mpicc.openmpi").name == "mpifort.openmpi"
    with pytest.raises(Unavailable, match="no Fortran in this MPI"):
        find_fortran_wrapper(folder / "mpicc.mpich")


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
    assert find_module_folders(bench) == ([modules / folder] if folder else [])
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(Unavailable, match="gfortran is not on PATH"):
        find_module_folders(make_bench_again(bench))


def make_bench_again(bench: Bench) -> Bench:
    """Without what it remembers of the environment."""
    return Bench(bench.mpi, bench.folder, bench.lasting)


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
            with pytest.raises(Unavailable, match=told):
                languages.provide_jars(each, home)
        else:
            languages.provide_jars(each, home)
            assert (home / "lib" / "of_a_test.jar").read_bytes() == content


def test_what_is_not_on_this_machine_has_its_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    bench = make_bench(tmp_path / "mpi")
    for prepare, told in ((prepare_rust, "cargo"), (languages.prepare_mpj, "no JDK")):
        with pytest.raises(Unavailable, match=told):
            prepare(bench)


@plants("stale", "the MPI's library, installed anew in its place", "the build of Rust's crate `mpi`", "", 0,
        "m-1 has changed: what the crate mpi was built for is gone")  # fmt: skip
def test_the_crate_is_built_anew_for_an_mpi_that_changed(tmp_path, monkeypatch, declared: Declared):
    """It has what the header said in it: with another one it may run, on wrong constants."""
    bench = make_bench(tmp_path / "mpi")
    library = tmp_path / "mpi" / "libmpi.so.12"
    for file in (library, tmp_path / "mpi" / "bin" / "mpicc"):
        file.touch()
    target = tmp_path / "mpi" / "bindings" / "rust-m-1"
    told: list[str] = []

    def build() -> None:
        again = replace(bench, say=told.append)
        vars(again)["library"] = library
        drop_stale_build(again, target)
        target.joinpath("object").touch()

    target.mkdir(parents=True)
    target.joinpath("of_before").touch()  # as was built before anything was written down
    build()
    assert not target.joinpath("of_before").exists() and told.pop()
    target.joinpath("kept").touch()
    build()
    assert target.joinpath("kept").exists() and not told
    library.unlink()
    library.write_text("rebuilt")
    build()
    assert not target.joinpath("kept").exists()
    declared.check((), 0, told)


def test_what_takes_minutes_is_looked_for_and_not_built_for_a_list(tmp_path, monkeypatch):
    built = tmp_path / "built"
    cargo = tmp_path / "cargo"
    cargo.write_text(f"#!/bin/sh\ntouch {built}\n")
    cargo.chmod(0o755)
    languages = [language for language in LANGUAGES if language.name == "rust"]
    monkeypatch.setenv("PATH", str(tmp_path))
    ready = prepare_languages(make_bench(tmp_path / "mpi"), languages, only_looking=True)
    assert not ready.lacking and not built.exists()
    cargo.unlink()
    ready = prepare_languages(make_bench(tmp_path / "other"), languages, only_looking=True)
    assert ready.lacking == {"rust": "cargo is not on PATH"}


def test_a_batch_is_neither_one_call_nor_for_ever():
    assert [count_calls(each) for each in (8, 1_000_000, 2**40)] == [200, 10, 1]
