"""The slowest mean of a rank in records: believed only where it can be true."""

import json
from pathlib import Path

import numpy as np
import pytest

from postprocess.model.verdict import RecordError
from postprocess.parsers.mpicost import read_launch
from postprocess.stats.headline import bound_slowest_mean
from tests.support.factories.record import case_record, end_record, run_record
from tests.support.faults import Declared, plants


def written(tmp_path: Path, mean, **run) -> Path:
    case = case_record("bcast", 8)
    if mean is not None:
        case["slowest_mean"] = mean
    records = [run_record(1, cache="warm", flush_bytes=0, **run), case, end_record(1, "warm")]
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def bounds() -> tuple[float, float]:
    case = case_record("bcast", 8)
    return bound_slowest_mean(np.array(case["t_max"]), np.array(case["t_min"]), 2)


def test_it_is_there_where_trials_were_back_to_back(tmp_path: Path):
    low, high = bounds()
    for mean in (low, (low + high) / 2, high):
        (case,) = read_launch(written(tmp_path, mean, back_to_back=5)).cases
        assert case.slowest_mean == mean


def test_elsewhere_there_is_none(tmp_path: Path):
    (case,) = read_launch(written(tmp_path, None)).cases
    assert case.slowest_mean is None


@plants("output", "a mean of the slowest rank that its trials do not allow", "records of mpicost",
        "incorrect", 1, "disagrees with the trials")  # fmt: skip
@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 2])
def test_what_the_trials_do_not_allow_is_refused(tmp_path: Path, factor: float, declared: Declared):
    low, high = bounds()
    mean = low * factor if factor < 1 else high * factor
    with declared.raises(RecordError, match=r"slowest_mean: .* disagrees with the trials"):
        read_launch(written(tmp_path, mean, back_to_back=5))


ODD = [("slowest_mean", (mean, 5)) for mean in (None, "1", -1.0, True)]
ODD += [("back_to_back", (sum(bounds()) / 2, calls)) for calls in (-1, "5", None, 0.5)]


@pytest.mark.parametrize(("key", "told"), ODD)
def test_a_lacking_or_odd_mean_or_number_of_calls_is_refused(tmp_path: Path, key, told):
    with pytest.raises(RecordError, match=key):
        read_launch(written(tmp_path, told[0], back_to_back=told[1]))
