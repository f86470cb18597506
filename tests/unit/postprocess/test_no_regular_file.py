"""A pipe or an endless device in the place of a file is refused at once, by whoever reads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from postprocess.analyses.alarms import log
from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.judging import outcome
from postprocess.model.plan import read_launch_file
from postprocess.model.verdict import RecordError
from postprocess.parsers.json_lines import iter_lines
from postprocess.references import tsv
from postprocess.results import index, store, summary


@pytest.fixture(params=["pipe", "device"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A pipe that nobody writes to, or a link to a device without end."""
    path = tmp_path / "s.parquet"
    os.mkfifo(path) if request.param == "pipe" else path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (files.read_regular, OSError),
        (lambda path: tsv.read_text(path, "restore it"), ValueError),
        (lambda path: list(iter_lines(path)), RecordError),
        (read_launch_file, UsageError),
        (store.read_session, UsageError),
        (summary.load_summary, UsageError),
        (log.read_alarm_log, UsageError),
    ],
)
def test_it_is_refused_by_name(
    odd: Path, read: Callable[[Path], object], error: type[Exception]
) -> None:
    with pytest.raises(error, match="is no regular file") as refused:
        read(odd)
    assert str(odd) in str(refused.value)


def test_it_is_no_result_and_no_exit_code(odd: Path) -> None:
    assert outcome.contents(odd) is None
    assert outcome.read_exit_code(odd) is None
    assert index.read_intact_index(odd) is None


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as stream:
        stream.truncate(files.LARGEST + 1)
    with pytest.raises(OSError, match="is larger than"):
        files.read_regular(path)
