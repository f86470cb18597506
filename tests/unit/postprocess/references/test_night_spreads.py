"""What a session knows of nights is read as it was written, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from postprocess.references.night_spreads import FILE, load_night_spreads, write_night_spreads
from postprocess.stats.night_spread import NightSpread

from postprocess.base.errors import UsageError

ROW = [5, 0.01, 4.0, 0.5]


def test_what_is_written_is_read(tmp_path: Path):
    told = {"a": NightSpread(5, 0.01, 4.0, 0.5), "b": NightSpread(3, 0.0, 1.5, 1.0)}
    write_night_spreads(tmp_path / FILE, told)
    assert load_night_spreads(tmp_path / FILE) == told
    assert load_night_spreads(None) == {}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *((0, 0), (0, True), (0, 5.0), (1, -1.0), (1, 1e9), (1, False), (2, 0.0), (2, 6.0)),
        *((3, -0.1), (3, 1.5), (3, "1e999"), (3, None)),
    ],
)
def test_a_number_that_no_nights_have_is_refused(place: int, value: object, tmp_path: Path):
    row = [value if number == place else each for number, each in enumerate(ROW)]
    (tmp_path / FILE).write_text(json.dumps({"a": row}))
    with pytest.raises(UsageError, match="is damaged"):
        load_night_spreads(tmp_path / FILE)
