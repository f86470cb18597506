"""Loops of calls in records: told where trials are loops, only there, and of a method of its own."""

import json
from pathlib import Path

import pytest

from postprocess.model.conditions import method_of
from postprocess.model.verdict import RecordError
from postprocess.parsers.mpicost import read_launch
from tests.support.factories.record import case_record, end_record, run_record

RUN = {"cache": "warm", "flush_bytes": 0}
LOOP = {**RUN, "sync": "loop", "loop_seconds": 0.01}


def written(tmp_path: Path, run: dict, case: dict) -> Path:
    records = [run_record(1, **run), {**case_record("bcast", 8), **case}, end_record(1, "warm")]
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_loop_has_a_key_of_its_own(tmp_path: Path):
    launch = read_launch(written(tmp_path, LOOP, {"calls": 250}))
    (record,) = launch.cases
    assert launch.case(record, "s", "p", "mpich-5.0.2").variant == "warm-loop"


@pytest.mark.parametrize(
    ("run", "case", "said"),
    [
        (LOOP, {}, "calls: is missing where sync is loop"),
        (LOOP, {"calls": 0}, "calls: 0"),
        (RUN, {"calls": 1}, "calls: is there where sync is dissemination"),
        ({**RUN, "sync": "loop"}, {"calls": 1}, "loop_seconds: is missing"),
        ({**RUN, "loop_seconds": 0.01}, {}, "loop_seconds: is there where sync is dissemination"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, run: dict, case: dict, said: str):
    with pytest.raises(RecordError, match=said):
        read_launch(written(tmp_path, run, case))


def test_how_long_a_loop_lasts_is_a_part_of_the_method():
    short, long = (method_of({**LOOP, "loop_seconds": each}, exact=True) for each in (0.01, 0.1))
    assert short != long and "loop_seconds" not in method_of(RUN, exact=True)
