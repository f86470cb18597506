"""A job of languages: all take turns, one that fails ends alone, and without C nothing goes on."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.formats import RATIO
from postprocess.parsers.bindings import parse_bindings
from reframe_checks.common.language_rounds import LanguageRounds, LanguageStart, measure_rounds
from site_configs.mpi.exchange import BATCHES, C, Program, list_cases, list_options

LIBRARY = "MPICH Version: 5.0.2"
ROUNDS = 4


def write_program(folder: Path, name: str, microseconds: float, more: str = "") -> Program:
    """A program that notes its start, and says that each call took so long."""
    times = " ".join([f"{microseconds}e-06"] * BATCHES)
    lines = [f"world 2 0 {LIBRARY}", *(f"{case} {size} 0 {times}" for case, size in list_cases([8])), "end"]
    script = folder / name
    text = "\n".join(lines)
    script.write_text(
        f'#!/bin/sh\nif [ -n "$PLUMBLINE_WITNESS" ]; then echo seen > "$PLUMBLINE_WITNESS"; fi\n'
        f"echo {name} >> {folder}/log\nn=$(grep -c '^{name}$' {folder}/log)\n{more}\ncat <<'END'\n{text}\nEND\n"
    )
    script.chmod(0o755)
    return Program((str(script),))


def build_job(folder: Path, languages: dict[str, Program], seed: str = "1") -> LanguageRounds:
    starts = tuple(
        LanguageStart(
            name, program, LIBRARY, "token", *(f"{folder}/{name}.{end}" for end in ("seen", "txt", "exit"))
        )
        for name, program in languages.items()
    )
    options = tuple(list_options([8]))
    return LanguageRounds(languages[C], LIBRARY, starts, ("env",), options, ROUNDS, 5.0, "", seed)


def measure(job: LanguageRounds) -> dict[str, int]:
    """The exit codes that a job wrote, by language."""
    measure_rounds(job, os.environ)
    return {
        start.language: int(Path(start.ending).read_text())
        for start in job.starts
        if Path(start.ending).exists()
    }


def test_languages_take_turns_and_each_has_its_ratio(tmp_path: Path):
    languages = {C: write_program(tmp_path, C, 1), "slow": write_program(tmp_path, "slow", 3)}
    assert measure(build_job(tmp_path, languages)) == {C: 0, "slow": 0}
    log = (tmp_path / "log").read_text().split()
    assert log[:2] == [C, C]  # the witness is in front of C alone, once for each
    turns = [tuple(log[n : n + 2]) for n in range(2, len(log), 2)]
    assert len(turns) == ROUNDS and {frozenset(turn) for turn in turns} == {frozenset(languages)}
    output = parse_bindings((tmp_path / "slow.txt").read_text())
    ratios = [row.values[RATIO] for table in output.tables for row in table.rows]
    assert ratios == pytest.approx([3.0] * len(list_cases([8])))
    assert all((tmp_path / f"{name}.seen").exists() for name in languages)


def test_the_order_is_drawn(tmp_path: Path):
    """A fixed one would let whatever slows a second start speak for its language."""
    languages = {name: write_program(tmp_path, name, 1) for name in (C, "one", "two")}
    measure(build_job(tmp_path, languages))
    log = (tmp_path / "log").read_text().split()[len(languages) :]
    assert len({tuple(log[n : n + 3]) for n in range(0, len(log), 3)}) > 1


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("[ $n -lt 2 ] || exit 3", 3),
        ("[ $n -lt 2 ] || sleep 60", 124),
        ("[ $n -lt 2 ] || { echo world 1 0 nothing; exit 0; }", 0),
    ],
)
def test_a_language_that_fails_ends_alone(tmp_path: Path, more: str, code: int, capsys):
    names = {C: "", "good": "", "bad": more}
    languages = {name: write_program(tmp_path, name, 1, text) for name, text in names.items()}
    job = build_job(tmp_path, languages)
    if code == 124:
        job = replace(job, limit=1.0)
    assert measure(job) == {C: 0, "good": 0, "bad": code}
    starts = (tmp_path / "log").read_text().split()
    assert (starts.count("bad"), starts.count("good")) == (2, ROUNDS)  # it is not started again
    parse_bindings((tmp_path / "good.txt").read_text())
    assert (code == 124) == ("bad: did not end within 1 s" in capsys.readouterr().err)


def test_without_c_nothing_is_measured(tmp_path: Path):
    """It ran under the witness for each language before the rounds, and once in the first of them."""
    languages = {
        C: write_program(tmp_path, C, 1, "[ $n -lt 4 ] || exit 5"),
        "other": write_program(tmp_path, "other", 1),
    }
    assert measure(build_job(tmp_path, languages)) == {C: 5, "other": 5}
    assert (tmp_path / "log").read_text().split().count("other") == 2


def test_the_witness_is_in_front_of_what_a_user_preloads(tmp_path: Path, monkeypatch):
    """Else the records would not tell of a library that all languages have in front of the MPI."""
    monkeypatch.setenv("LD_PRELOAD", "/nowhere/own.so")
    languages = {C: write_program(tmp_path, C, 1, f'echo "$LD_PRELOAD" >> {tmp_path}/preloaded')}
    measure(replace(build_job(tmp_path, languages), witness="/nowhere/witness.so"))
    first, *others = (tmp_path / "preloaded").read_text().split()
    assert first == "/nowhere/witness.so:/nowhere/own.so" and set(others) == {"/nowhere/own.so"}


def test_what_the_launcher_says_at_the_start_is_told(tmp_path: Path, capsys):
    """The transports of verbose starts are read from it."""
    languages = {C: write_program(tmp_path, C, 1, "echo a transport >&2")}
    measure(build_job(tmp_path, languages))
    assert "a transport" in capsys.readouterr().err
