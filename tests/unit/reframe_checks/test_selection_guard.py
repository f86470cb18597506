"""Under a plain ReFrame: a selection that matches nothing fails, if there are no checks but ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from reframe.frontend import cli
from reframe.frontend.executors import Runner

from reframe_checks.common import selection_guard
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

CHECKS = str(ROOT / "reframe_checks")


@plants("use", "a selection that matches nothing", "a plain ReFrame", "", 1,
        "plumbline: no case was run: the selection matches none")  # fmt: skip
def test_a_run_of_nothing_fails(declared: Declared):
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
        "from reframe_checks.common import selection_guard as guard; guard.guard_selection(); "
        "sys.argv[-1] == 'begun' and guard.note_case('x')"
    )
    command = [sys.executable, "-I", "-c", code, "-c", CHECKS]
    ended = {}
    for words in (("-r",), ("-r", "begun"), ("-l",), ("-r", "-n", "brodcast")):
        ended[words] = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    empty = ended.pop(("-r",))
    declared.check((), empty.returncode, [empty.stderr])
    misspelled = ended.pop(("-r", "-n", "brodcast"))
    assert (misspelled.returncode, misspelled.stderr.endswith("did you mean bcast?\n")) == (1, True)
    assert {process.returncode for process in ended.values()} == {0}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "-n mpicost -S mpicost.routines=brodcast",
            "routines: brodcast: no check measures it; did you mean bcast?",
        ),
        ("-n brodcast", "the selection matches none; did you mean bcast?"),
        ("-t alreduce", "the selection matches none; did you mean allreduce?"),
        ("-n mpicost -p nothing", "the selection matches none; look at the options -n, -t, -E, -p and -S"),
    ],
)
def test_a_run_of_nothing_ends_before_reframe_passes_it(monkeypatch, line: str, told: str):
    """With one message, which names the word that is wrong, and no other."""
    ran: list[list[str]] = []
    monkeypatch.setattr(Runner, "runall", lambda _, cases, restored=None: ran.append(cases))
    monkeypatch.setattr(selection_guard, "choices", {})
    monkeypatch.setattr(sys, "argv", ["reframe", "-c", CHECKS, "-r", *line.split()])
    if "-S" in line:
        selection_guard.note_choice("routines", ["brodcast"], [], ["bcast", "gather"])
    selection_guard.refuse_empty_runs()
    with pytest.raises(SystemExit) as ended:
        Runner.runall(None, [])
    assert str(ended.value.code).startswith(f"plumbline: no case was run: {told}")
    Runner.runall(None, ["a case"], [])
    assert ran == [["a case"]]


@pytest.mark.parametrize("show", selection_guard.LISTS)
def test_a_list_of_nothing_fails(monkeypatch, show: str):
    """``Found 0 check(s)`` with exit code 0 reads as if there were nothing to run."""
    shown: list[list[str]] = []
    for each in selection_guard.LISTS:
        monkeypatch.setattr(cli, each, lambda cases, *_, **__: shown.append(cases))
    monkeypatch.setattr(selection_guard, "choices", {})
    monkeypatch.setattr(sys, "argv", ["reframe", "-c", CHECKS, "-t", "nigthly", "-l"])
    selection_guard.guard_selection()
    getattr(cli, show)(["a case"], None)
    with pytest.raises(SystemExit) as ended:
        getattr(cli, show)([], None)
    told = "plumbline: no case is listed: the selection matches none; did you mean nightly?"
    assert (ended.value.code, shown) == (told, [["a case"], []])


@plants("use", "a misspelled routine or a size that no routine has, among right ones", "a plain ReFrame", "", 1,
        "routines: brodcast: no check measures it; did you mean bcast?")  # fmt: skip
def test_a_choice_with_a_word_that_matches_nothing_is_refused(declared: Declared, monkeypatch):
    monkeypatch.setattr(selection_guard, "choices", {})
    selection_guard.note_choice("routines", ["bcast", "latency"], ["bcast"], ["bcast", "gather"])
    selection_guard.note_choice("routines", ["bcast", "latency"], ["latency"], ["latency"])
    selection_guard.note_choice("sizes", [8, 9], [8, 9])
    selection_guard.refuse_unmatched_choices()  # each word is measured by some check
    selection_guard.note_choice("routines", ["bcast", "brodcast"], ["bcast"], ["bcast", "gather"])
    with pytest.raises(ValueError, match="brodcast") as told:
        selection_guard.refuse_unmatched_choices()
    declared.check((), 1, [str(told.value)])


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (["-c", CHECKS], True),
        ([f"--checkpath={CHECKS}/luecke.py", "-r"], True),
        ([f"-c{CHECKS}/osu.py"], True),
        (["-c", CHECKS, "-c", "/other"], False),
        (["-r"], False),
    ],
)
def test_only_a_run_of_our_checks_alone_is_looked_at(monkeypatch, words, ours):
    monkeypatch.delenv("RFM_CHECK_SEARCH_PATH", raising=False)
    assert selection_guard.are_all_ours(selection_guard.list_check_paths(words)) is ours
    monkeypatch.setenv("RFM_CHECK_SEARCH_PATH", os.pathsep.join([str(Path("/other")), ""]))
    assert not selection_guard.are_all_ours(selection_guard.list_check_paths(words))


@pytest.mark.parametrize(
    ("line", "chosen"),
    [
        ("-c checks -n bcast -r", True),
        ("-nbcast -r", True),
        ("--name=bcast -r", True),
        ("-t allreduce", True),
        ("--filter-expr=np==2", True),
        ("-c checks -r -p cpu --nocolor --tags-x", False),
    ],
)
def test_tests_are_chosen_by_name_tag_or_expression(line: str, chosen: bool) -> None:
    assert selection_guard.chooses_tests(line.split()) is chosen
