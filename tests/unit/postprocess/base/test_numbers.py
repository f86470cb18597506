"""Numbers that people type are digits 0 to 9, wherever they type them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_day, parse_decimal, parse_utc, parse_whole
from postprocess.cli.option_types import parse_count, parse_minutes, parse_sizes
from postprocess.extensions.procurement.form.commitments import parse_number
from postprocess.extensions.procurement.rules.rules import SHARE
from postprocess.features.compare.command import parse_margins
from postprocess.features.compare.dossier.sign import parse_factor
from postprocess.results.query import parse_since
from site_configs.schema.fields import DURATION

ODD = ("\u0663", "\u00b3", "\uff13", "\u2462", "1_0", "+3", " 3", "3 ", "3\n", "0x3", "", "3,5", "nan")
PARSERS: dict[str, Callable[[str], object]] = {
    "whole": parse_whole,
    "decimal": parse_decimal,
    "count": parse_count,
    "minutes": parse_minutes,
    "sizes": parse_sizes,
    "margins": parse_margins,
    "factor": parse_factor,
    "cell": parse_number,
    "share": lambda text: SHARE.fullmatch(f"{text}%"),
    "duration": lambda text: DURATION.fullmatch(f"{text}h"),
    "day": lambda text: parse_day(f"2026-11-2{text}"),
    "since": lambda text: parse_since(f"2026-11-2{text}"),
    "moment": lambda text: parse_utc(f"2026-11-2{text}T00:00:00Z"),
}


@pytest.mark.parametrize("name", PARSERS)
def test_what_is_no_number_to_a_reader_is_none(name: str) -> None:
    assert PARSERS[name]("3") is not None
    taken = []
    for text in ODD:
        try:
            found = PARSERS[name](text)
        except (ValueError, argparse.ArgumentTypeError, UsageError):
            continue
        if found is not None:
            taken.append(text)
    assert taken == (["3,5"] if name == "sizes" else [])
