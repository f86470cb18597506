"""What would run and how long it would take, from what earlier sessions took."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from launch_samples import CASES, book_of, case, finished, planned
from rich.console import Console

from postprocess import listing
from postprocess.judgement import verdicts
from postprocess.listing import ROUGH_START, ROUGH_TRIAL, by_routine, estimate, key, known_seconds
from postprocess.night import Desk, Request
from postprocess.preparation import Prepared
from postprocess.progress import Progress
from postprocess.reframe_driver import Selection
from postprocess.summary_file import Session, document, write_summary
from postprocess.workdir import WorkDirectory


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    return WorkDirectory(tmp_path / "home", tmp_path)


def session(work: WorkDirectory, name: str, seconds: float, **launch) -> Path:
    """The summary of a session with one launch that took so long."""
    directory = work.sessions / name
    done = replace(finished(directory, **launch), seconds=seconds)
    results = verdicts([done], book_of(done), "local")
    data = document(
        Session(directory, "nightly", "local", [], False),
        Prepared(None, None),
        [done],
        results,
        0,
        [],
        {},
    )
    write_summary(directory / "summary.json", data)
    return directory / "summary.json"


def test_what_took_so_long_before_is_expected_to_again(work: WorkDirectory):
    session(work, "20261121T090000Z-1", 30.0)
    session(work, "20261121T100000Z-1", 12.0)
    known = known_seconds(work)
    assert known == {("local:cpu", "mpich-5_0_2", 2, 2, len(CASES)): 12.0}
    assert estimate(planned(), known) == 12.0


@pytest.mark.parametrize(
    "other",
    [
        {"cases": CASES[:2]},
        {"environment": "openmpi-5_0_11"},
        {"partition": "local:gpu"},
        {"cases": (case(processes=4, per_node=4),)},
    ],
    ids=lambda each: next(iter(each)),
)
def test_of_another_launch_the_time_is_guessed(work: WorkDirectory, other):
    session(work, "20261121T090000Z-1", 30.0)
    launch = planned(**other)
    known = known_seconds(work)
    assert key(launch) not in known
    expected = ROUGH_START + len(launch.cases) * launch.trials * ROUGH_TRIAL
    assert estimate(launch, known) == pytest.approx(expected)


def test_a_launch_that_failed_tells_nothing_of_the_time(work: WorkDirectory):
    path = session(work, "20261121T090000Z-1", 30.0)
    data = json.loads(path.read_text())
    data["launches"][0]["outcome"] = "timeout"
    path.write_text(json.dumps(data))
    assert known_seconds(work) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"schema": 99}'])
def test_a_summary_that_cannot_be_read_is_passed_over(work: WorkDirectory, text: str):
    session(work, "20261121T090000Z-1", 30.0)
    damaged = work.sessions / "20261121T100000Z-1" / "summary.json"
    damaged.parent.mkdir()
    damaged.write_text(text)
    assert list(known_seconds(work).values()) == [30.0]


def test_sizes_are_listed_by_routine():
    assert by_routine(planned()) == {
        "bcast": ["8 B", "1 MB"],
        "pingpong x 1": ["8 B"],
        "barrier": ["no payload"],
    }


def test_the_list_names_every_case(work, monkeypatch, capsys):
    """``list`` itself, with a plan that was made without ReFrame."""
    looked: list[Selection] = []

    def look(reframe, selection):
        looked.append(selection)
        return [planned(), planned(number=2)]

    progress = Progress(Console(file=io.StringIO()))
    request = Request("list", [], "local", Selection(Path("site.py")))
    monkeypatch.setattr(
        listing, "open_desk", lambda *_: Desk(work, request, Prepared(None, None), progress)
    )
    monkeypatch.setattr(listing, "look_at_plan", look)
    assert listing.list_cases(work, request, progress) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "local:cpu mpich-5_0_2 2 processes, 2 per node"
    assert lines[1] == "  bcast            8 B, 1 MB"
    assert lines[-1].startswith("8 cases in 2 starts of the program, about ")
    assert lines[-1].endswith(" (roughly: not all of it was measured here yet)")
    assert [each.only_looking for each in looked] == [True]
