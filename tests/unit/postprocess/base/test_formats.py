"""Numbers as people read them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postprocess.base import formats


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (None, "-"),
        (4.17e-7, "0.417"),
        (6.382e-6, "6.38"),
        (68.27e-6, "68.3"),
        (1.2344e-3, "1234"),
        (5.0, "5000000"),
        (1e130, "1.00e+136"),
        (float("nan"), "nan"),
    ],
)
def test_microseconds(seconds, written):
    assert formats.microseconds(seconds) == written


def test_a_value_is_written_in_what_people_read():
    assert formats.quantity(6.382e-6, "s") == "6.38 us"
    assert formats.quantity(12_345.6, "MB/s") == "12346 MB/s"
    assert formats.number(0.25, "MB/s") == "0.250"
    assert formats.quantity(None, "MB/s") == formats.number(None, "s") == "-"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        *((0.50652, "0.5065"), (699.42, "699.4"), (24960.3, "24960"), (9999.6, "10000")),
        (-4e-7, "-4e-07"),
    ],
)
def test_a_number_of_any_unit_has_four_digits_and_no_power_of_ten_above_one(value, written):
    assert formats.significant(value) == written


def test_band_and_ratio():
    assert formats.format_band((4.1e-6, 7.83e-6), "s") == "4.10 to 7.83"
    assert formats.format_band((4100.0, 7830.0), "MB/s") == "4100 to 7830"
    assert formats.format_band(None, "s") == "-"
    assert formats.ratio(2.3e-6, 1e-6) == "2.30"
    assert formats.ratio(4.71e-9, 1e-6) == "0.0047"
    assert formats.ratio(None, 1e-6) == formats.ratio(1e-6, None) == formats.ratio(1.0, 0.0) == "-"


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (0, "0 B"),
        (8, "8 B"),
        (1000, "1 kB"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (65_536, "64 KiB"),
        (3 * 2**30, "3 GiB"),
        (10_000, "10 kB"),
        (1_250_000, "1.25 MB"),
        (1_048_576, "1 MiB"),
        (10_000_001, "10000001 B"),
        (123_450, "123.45 kB"),
        (100_000, "100 kB"),
        (2_000_000_000, "2 GB"),
    ],
)
def test_sizes_are_exact_and_decimal_where_they_can_be(count, written):
    assert formats.size(count) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        *((0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (59.6, "1 min 00 s")),
        *((185, "3 min 05 s"), (7800, "2 h 10 min")),
    ],
)
def test_durations(seconds, written):
    assert formats.duration(seconds) == written


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
        (1e-6, "s", "1 times as slow as"),
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
