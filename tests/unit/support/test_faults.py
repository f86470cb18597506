"""The table of planted faults is what tests declare and check."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postprocess.base.errors import UsageError
from postprocess.model.verdict import RecordError, Verdict
from spack_envs.layout import SourceError, SpackEnvironmentError
from tests.support.fault_page import PAGE, collect_faults, read_module, write_page
from tests.support.faults import DECLARED, Declared, Fault, pytest_pyfunc_call

FAULT = Fault("use", "a word", "a file", "", 1, "a … b")
TEXT = 'plants("use", "a word", "a file", "", 1, "a … b")'


def test_the_page_is_what_tests_declare() -> None:
    """If not: ``python -m tests.support.fault_page``."""
    assert PAGE.read_text() == write_page(collect_faults())


def module(folder: Path, text: str) -> Path:
    path = folder / "test_module.py"
    path.write_text(text)
    return path


def test_a_fault_is_found_in_a_decorator_and_in_a_table_of_one(tmp_path: Path) -> None:
    text = f"T = [{TEXT}]\n@parametrize('x', T)\n@{TEXT}\ndef test_a(): ...\n"
    rows = list(read_module(module(tmp_path, text)))
    assert ([row.fault for row in rows], {row.test for row in rows}) == ([FAULT] * 2, {"test_a"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"@{TEXT}\ndef helper(): ...\n", "declares a fault that no test plants"),
        (f"T = [{TEXT}]\ndef test_a(): ...\n", "declares a fault that no test plants"),
        (f"@{TEXT[:-1]} + x)\ndef test_a(): ...\n", "write every value out"),
        (f"@{TEXT[:-1]}, 1)\ndef test_a(): ...\n", "write every value out"),
    ],
)
def test_a_fault_without_a_test_cannot_be_listed(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list(read_module(module(tmp_path, text)))


@pytest.mark.parametrize("checked", [True, False, None])
def test_a_test_that_does_not_check_its_fault_fails(checked: bool | None) -> None:
    declared = {} if checked is None else {DECLARED: Declared(FAULT, checked)}
    item: Any = SimpleNamespace(get_closest_marker=lambda _: True, stash=declared, nodeid="test_a")
    call = pytest_pyfunc_call(item)
    next(call)
    if checked:
        with pytest.raises(StopIteration):
            call.send(True)
    else:
        with pytest.raises(AssertionError, match="test_a: declares a fault unchecked"):
            call.send(True)


@pytest.mark.parametrize(
    ("verdicts", "status", "said"),
    [(["pass"], 1, ["a x b"]), ([], 2, ["a x b"]), ([], 1, ["a x b", "a"]), ([], 1, [])],
)
def test_what_differs_from_the_declaration_fails(verdicts: list[str], status: int, said: list[str]) -> None:
    declared = Declared(FAULT)
    with pytest.raises(AssertionError):
        declared.check(verdicts, status, said)
    assert not declared.checked
    declared.check([], 1, ["a x b", "so a  b."])
    assert declared.checked


def test_errors_are_held_with_the_verdict_and_exit_status_that_they_have() -> None:
    declared = Declared(replace(FAULT, verdict="incorrect"))
    for error in (UsageError("a b"), RecordError(Verdict.CRASHED, "a x b")):
        with pytest.raises(AssertionError):
            declared.check_error(error)
    declared.check_error(RecordError(Verdict.INCORRECT, "a x b"))
    assert declared.checked
    Declared(replace(FAULT, verdict="incomplete")).check_error(SpackEnvironmentError("a x b"))
    Declared(replace(FAULT, verdict="skipped", status=0)).check_error(SourceError("a x b"))
