"""What the command ``selftest`` refuses before it measures."""

from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.calibration.ledger import locate_ledger
from postprocess.extensions.selftest import data
from postprocess.extensions.selftest.command import refuse_other_folder
from postprocess.main import main
from tests.support.faults import Declared, plants
from tests.support.plumbline_runner import ROOT


@plants("files", "`selftest --output` onto a folder of something else", "a folder", "", 2,
        "is not empty and holds no self-test")  # fmt: skip
def test_a_folder_of_something_else_is_refused(tmp_path: Path, declared: Declared) -> None:
    (tmp_path / "thesis.tex").write_text("Chapter 1")
    with declared.raises(UsageError):
        refuse_other_folder(tmp_path)


@pytest.mark.parametrize("own", [data.FILE, locate_ledger(Path()).name])
def test_a_self_test_goes_on_where_it_was_interrupted(tmp_path: Path, own: str) -> None:
    (tmp_path / own).mkdir()
    (tmp_path / "references").mkdir()
    refuse_other_folder(tmp_path)


def test_a_folder_that_is_empty_or_not_there_is_taken(tmp_path: Path) -> None:
    refuse_other_folder(tmp_path)
    refuse_other_folder(tmp_path / "new")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--sessions", "21"), "--sessions 21: each has a launch at least; raise --launches"),
        (("--again", "/nonexistent"), "No such file"),
    ],
)
def test_wrong_words_are_refused_in_one_line(tmp_path: Path, capsys, words, named: str):
    try:
        status = main(str(ROOT), str(tmp_path), ["selftest", *words])
    except SystemExit as ended:
        status = ended.code
    said = capsys.readouterr().err
    assert status == 2
    assert named in said
    assert said.count("\n") == 1
