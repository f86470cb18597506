"""What a person sees: one line per step, nothing obeyed that stands in it, and every phase timed."""

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from postprocess.base import progress as module
from postprocess.base.progress import DOES, SAYS, Progress, tell_starter
from postprocess.base.sanitize import sanitize_line


def spoken(text: str) -> str:
    """What is printed for a text, by a console made as Plumbline makes it."""
    progress = Progress()
    progress.console.file = io.StringIO()
    progress.say(text)
    return progress.console.file.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "local:fire:mpich:mpicost:bcast:8",
        "[red]not red[/red]",
        "[/]",
        "a [link=http://e.example]b[/link]",
        "\\[red]",
        "x" * 500,
        "/a/path with spaces/12345 True None",
    ],
)
def test_a_line_is_printed_as_it_is(text: str):
    assert spoken(text) == text + "\n"


def test_a_note_is_said_and_kept(progress):
    progress.note("no Spack")
    assert progress.notes == ["no Spack"]
    assert progress.console.file.getvalue() == "note: no Spack\n"


def test_a_note_fits_80_columns_and_breaks_no_command(progress):
    command = "./plumbline calibrate --launches 40 --mpis mpich"
    progress.note(f"references of one hour do not know differences between days; {command} adds to them")
    lines = progress.console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and any(command in line for line in lines)


@pytest.mark.parametrize(
    "command",
    [
        "./plumbline offer sheet my/offer --read my/offer/offer.xlsx",
        "./plumbline references propose --compare compare/20261123T120000Z",
        "./plumbline compare mpich@4.3.2 mpich@5.0.2 --new-env A=b --seconds 400",
        "./plumbline nightly --mpis mpich --json 'a b c.json' --strict",
    ],
)
@pytest.mark.parametrize("before", ["x " * 25, "x " * 35])
def test_a_sentence_breaks_no_command_and_keeps_its_indent(progress, command, before):
    progress.say(f"  {before}: {command}, and more words follow behind the command of this sentence")
    progress.say("what is to be done with it now, which takes more than the rest of a line", command=command)
    lines = progress.console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert (
        sum(command in line for line in lines) == 2 and lines[0].startswith("  x") and lines[1][:4] == " " * 4
    )


@pytest.mark.parametrize("filled", range(70, 80))
def test_a_number_and_its_unit_stay_in_one_line(progress, filled):
    progress.say(f"{'x' * filled} 1.1 s, 2 min")
    said = progress.console.file.getvalue()
    assert "1.1 s" in said and "2 min" in said


@settings(max_examples=20)
@example("[red]as it is[/red] :smile:")
@given(st.text().filter(str.strip))
def test_what_goes_on_now_is_shown_as_it_is(text: str):
    progress = Progress(Console(file=io.StringIO(), force_terminal=True))
    with progress.phase("running"):
        progress.now(text)
        shown = list(progress.step.__rich__().columns[-1].cells)[-1]
    assert isinstance(shown, Text)  # neither markup nor emoji codes mean anything in one
    assert shown.plain == sanitize_line(text)


def test_while_one_waits_some_time_is_left():
    assert [module.format_left(left) for left in (-1.0, 0.0, 0.01, 12.0)] == ["0.1 s", "0.1 s", "0.1 s", "12 s"]


def test_a_terminal_shows_how_far_it_is_and_what_is_left_in_one_line(clock):
    progress = Progress(Console(file=io.StringIO(), force_terminal=True, width=80))
    progress.expected = {"running": 60.0}
    with progress.phase("running"):
        step = progress.step
        clock[0] = 20.0
        assert step.amount == "about 40 s left"
        clock[0] = 70.0
        assert step.amount == ""
        clock[0] = 20.0
        progress.count(10, 40)
        progress.now("mpich-5_0_2, luecke, 2x2 processes, launch 1, and more than one line holds")
        assert step.amount == "10/40, about 1 min 00 s left"
        shown = Console(file=io.StringIO(), width=80)
        shown.print(step)
        assert shown.file.getvalue().count("\n") == 1


def test_what_jobs_waited_does_not_count_for_what_is_left(progress, clock):
    with progress.phase("running"):
        progress.count(1, 3)
        clock[0] = 10.0
        progress.now("launch 1")
        assert progress.step.amount == "1/3, about 20 s left"
        clock[0] = 110.0
        progress.wait("job 7 has waited 100 s: Resources")
        assert progress.step.amount == "1/3"
        assert "job 7 has waited" in progress.step.line
        clock[0] = 120.0
        progress.count(2, 3)
        assert progress.step.amount == "2/3, about 10 s left"
    assert progress.console.file.getvalue().startswith("  job 7 has waited 100 s: Resources\n")


def test_a_step_that_takes_far_longer_than_the_others_leaves_nothing_to_estimate(progress, clock):
    """What is left would seem to grow from line to line."""
    with progress.phase("running"):
        for number in (1, 2):
            clock[0] = 10.0 * number
            progress.count(number, 3)
        clock[0] = 45.0
        assert progress.step.amount == "2/3, about 22 s left"
        clock[0] = 55.0
        assert progress.step.amount == "2/3"


def test_a_pipe_is_told_from_time_to_time_while_nothing_comes(progress, monkeypatch):
    monkeypatch.setattr(module, "PIPE_SECONDS", 0.02)
    with progress.phase("waiting"):
        progress.now("machine is 93% busy")
        deadline = module.time.monotonic() + 20.0
        while progress.console.file.getvalue().count("\n") < 2:
            assert module.time.monotonic() < deadline
            module.time.sleep(0.01)
    first = progress.console.file.getvalue().splitlines()[-1]
    assert first.startswith("  waiting, ") and first.endswith(": machine is 93% busy")


def test_what_a_process_tells_is_shown_and_nothing_else_that_it_prints(progress, capsys):
    progress.console.file = io.StringIO()
    tell_starter(SAYS, "building a crate")
    tell_starter(DOES, "making C ready")
    with progress.phase("set-up"):
        for line in [*capsys.readouterr().out.splitlines(), "any other line"]:
            progress.pass_on(line)
        assert progress.step.doing == "making C ready"
    assert progress.console.file.getvalue() == "building a crate\n"


def test_what_stays_as_it_is_is_noted_once_in_a_work_directory(tmp_path):
    for expected in (["no Spack"], []):
        progress = Progress(Console(file=io.StringIO()))
        progress.note_once("no Spack", tmp_path / "told.json")
        assert progress.notes == expected
    (tmp_path / "told.json").write_text("{")
    progress.note_once("no Spack", tmp_path / "told.json")
    assert progress.notes == ["no Spack"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that shows the first value of this list."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_parts_of_one_phase_add_up_whatever_happens_in_them(clock):
    progress = Progress(phases={}, began=0.0)
    with progress.phase("set-up"):
        clock[0] = 2.0
    with pytest.raises(KeyError), progress.phase("set-up"):
        clock[0] = 5.0
        raise KeyError
    with progress.phase("running"):
        clock[0] = 15.0
    clock[0] = 16.5
    assert progress.phases == {"set-up": 5.0, "running": 10.0}
    assert progress.split() == "16 s: set-up 5.0 s, running 10 s, other 1.5 s"


def test_the_time_of_the_front_door_counts_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLUMBLINE_SET_UP_SECONDS", "12.5")
    assert Progress().phases == {"set-up": 12.5}
    assert Progress().phases == {}


def test_time_that_was_spent_on_something_else_moves_there():
    progress = Progress(phases={"running": 10.0})
    progress.move("running", "build", 4.0)
    progress.move("running", "build", 8.0)
    progress.move("calibration", "build", 1.0)
    assert progress.phases == {"running": 0.0, "build": 13.0, "calibration": 0.0}
