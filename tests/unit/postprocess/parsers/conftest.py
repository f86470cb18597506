"""What the tests of records of mpicost share: how a refusal is held against what a test expects."""

from collections.abc import Callable
from pathlib import Path

import pytest

from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.mpicost import read_launch
from tests.support.factories import record as samples
from tests.support.faults import MARK


@pytest.fixture
def refused(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Hold the error of a file against its verdict, its words and the fault that the test declares."""

    def read(content: bytes | list, said: str = "", verdict: Verdict = Verdict.INCORRECT) -> str:
        path = tmp_path / "out.jsonl"
        path.write_bytes(content if isinstance(content, bytes) else samples.text(content).encode())
        with pytest.raises(RecordError) as caught:
            read_launch(path)
        error, told = caught.value, str(caught.value)
        assert told.startswith(f"{path}: ") and "\n" not in told
        assert error.verdict is verdict and said in told
        if request.node.get_closest_marker(MARK):
            request.getfixturevalue("declared").check_error(error)
        return told

    return read
