"""What the command ``selftest`` refuses before it measures."""

from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.calibration.ledger import locate_ledger
from postprocess.extensions.selftest import data
from postprocess.extensions.selftest.command import refuse_other_folder
from tests.support.faults import Declared, plants


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
