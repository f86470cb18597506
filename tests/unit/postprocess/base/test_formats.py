"""Numbers as people read them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postprocess.base import formats

MICROSECONDS = [
    *((None, "-"), (4.17e-7, "0.417"), (6.382e-6, "6.38"), (68.27e-6, "68.3"), (5.0, "5000000")),
    *((1.2344e-3, "1234"), (1e130, "1.00e+136"), (float("nan"), "nan")),
]
#: Of any unit: four digits, and no power of ten above one.
NUMBERS = [*((0.50652, "0.5065"), (699.42, "699.4"), (24960.3, "24960"), (9999.6, "10000")), (-4e-7, "-4e-07")]
#: Exact, and decimal where they can be.
SIZES = [
    *((0, "0 B"), (8, "8 B"), (1000, "1 kB"), (1023, "1023 B"), (1024, "1 KiB"), (65536, "64 KiB")),
    *((3 * 2**30, "3 GiB"), (10_000, "10 kB"), (1_250_000, "1.25 MB"), (1_048_576, "1 MiB")),
    *((10_000_001, "10000001 B"), (123_450, "123.45 kB"), (100_000, "100 kB"), (2 * 10**9, "2 GB")),
]
DURATIONS = [
    *((0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (59.6, "1 min 00 s")),
    *((185, "3 min 05 s"), (7800, "2 h 10 min")),
]


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        *((formats.microseconds, *each) for each in MICROSECONDS),
        *((formats.format_significant, *each) for each in NUMBERS),
        *((formats.size, *each) for each in SIZES),
        *((formats.duration, *each) for each in DURATIONS),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_numbers_sizes_and_durations_as_people_read_them(write, value, written):
    assert write(value) == written


def test_a_value_is_written_in_what_people_read():
    assert formats.quantity(6.382e-6, "s") == "6.38 us"
    assert formats.quantity(12_345.6, "MB/s") == "12346 MB/s"
    assert formats.number(0.25, "MB/s") == "0.250"
    assert formats.quantity(None, "MB/s") == formats.number(None, "s") == "-"


def test_band_and_ratio():
    assert formats.format_band((4.1e-6, 7.83e-6), "s") == "4.10 to 7.83"
    assert formats.format_band((4100.0, 7830.0), "MB/s") == "4100 to 7830"
    assert formats.format_band(None, "s") == "-"
    assert formats.ratio(2.3e-6, 1e-6) == "2.30"
    assert formats.ratio(4.71e-9, 1e-6) == "0.0047"
    assert formats.ratio(None, 1e-6) == formats.ratio(1e-6, None) == formats.ratio(1.0, 0.0) == "-"


def test_plural():
    assert formats.plural(1, "case") == "1 case"
    assert formats.plural(0, "case") == "0 cases"
    assert formats.plural(2, "launch", "es") == "2 launches"
    assert formats.plural(1204, "case") == "1,204 cases"


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (2e-6, "s", "2 times as slow as"),
        (0.5e-6, "s", "2 times as fast as"),
        (0.5e-6, "MB/s", "2 times as slow as"),
        (2e-6, "MB/s", "2 times as fast as"),
        (1e-6, "s", "as fast as"),
        (1.00034e-6, "s", "1.0003 times as slow as"),
    ],
)
def test_words_for_a_comparison_hold_in_both_directions(value, unit, written):
    assert formats.format_comparison(value, 1e-6, unit) == written


@given(st.integers(0, 2**62))
@example(256_698_159_751_449_600)
def test_a_size_reads_back_as_it_was(count):
    text, unit = formats.size(count).split()
    factors = {"B": 1} | {p + "B": 1000**n for n, p in enumerate("kMG", 1)}
    factors |= {p + "iB": 1024**n for n, p in enumerate("KMG", 1)}
    assert Decimal(text) * factors[unit] == count


@given(st.lists(st.lists(st.text("ab é", max_size=9), min_size=3, max_size=3), min_size=1))
def test_columns_are_under_each_other(rows: list[list[str]]):
    lines = formats.align_rows(rows, texts=1)
    starts = max(len(row[0]) for row in rows) + 2
    for row, line in zip(rows, lines, strict=True):
        assert line[:starts].rstrip() == row[0].rstrip()
        assert line[starts:].strip().endswith(row[2].strip())
