"""What the readers of OSU and IMB have in common."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.parsers.imb import parse_imb
from postprocess.parsers.osu import parse_osu
from tests.support.factories.output import IMB, OSU, outcome


@pytest.mark.parametrize("parse", [parse_osu, parse_imb])
@given(st.data())
@settings(max_examples=300)
def test_damage_raises_nothing_else(parse, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(OSU + IMB)).read_text()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 200)))
    outcome(parse, text[:start] + data.draw(st.text(max_size=20)) + text[end:])
