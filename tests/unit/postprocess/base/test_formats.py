"""Numbers as people read them."""

import argparse
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postprocess.base import formats
from postprocess.base.errors import UsageError
from postprocess.cli.option_types import parse_count, parse_minutes, parse_sizes
from postprocess.extensions.procurement.commitments import parse_number
from postprocess.extensions.procurement.rules.rules import SHARE
from postprocess.features.compare.command import parse_margins
from postprocess.features.compare.dossier import parse_factor
from site_configs.schema.fields import DURATION

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
        *((formats.microseconds, *microsecond) for microsecond in MICROSECONDS),
        *((formats.format_significant, *number) for number in NUMBERS),
        *((formats.size, *size) for size in SIZES),
        *((formats.duration, *duration) for duration in DURATIONS),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_numbers_sizes_and_durations_as_people_read_them(write, value, written):
    assert write(value) == written


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (formats.quantity(6.382e-6, "s"), "6.38 us"),
        (formats.quantity(12_345.6, "MB/s"), "12346 MB/s"),
        (formats.quantity(None, "MB/s"), "-"),
        (formats.number(0.25, "MB/s"), "0.250"),
        (formats.number(None, "s"), "-"),
        (formats.format_band((4.1e-6, 7.83e-6), "s"), "4.10 to 7.83"),
        (formats.format_band((4100.0, 7830.0), "MB/s"), "4100 to 7830"),
        (formats.format_band(None, "s"), "-"),
        (formats.ratio(2.3e-6, 1e-6), "2.30"),
        (formats.ratio(4.71e-9, 1e-6), "0.0047"),
        *((formats.ratio(*each), "-") for each in ((None, 1e-6), (1e-6, None), (1.0, 0.0))),
        (formats.plural(1, "case"), "1 case"),
        (formats.plural(0, "case"), "0 cases"),
        (formats.plural(2, "launch", "es"), "2 launches"),
        (formats.plural(1204, "case"), "1,204 cases"),
    ],
)
def test_values_bands_ratios_and_plurals_as_people_read_them(written, expected):
    assert written == expected


def test_a_table_that_is_too_wide_has_a_paragraph_for_each_row():
    cells = ("must", "met", *(f"{number} us" for number in range(8)), "-")
    heads = ("verdict", *(f"a head of {number}" for number in range(8)), "left out")
    table = formats.TextTable("Rows", ("row", "demand"), heads, (("one", *cells),), ("a note",))
    title, name, *more = formats.render_narrow_text(table).splitlines()
    assert (title, name, more[-1]) == ("Rows", "  one", "  a note")
    assert max(map(len, more)) <= formats.PIPE_COLUMNS < len(formats.render_text(table).splitlines()[1])
    told = " ".join(" ".join(more[:-1]).split())
    assert told.startswith("demand must, verdict met, a head of 0 0 us, ") and "left out" not in told
    assert formats.render_narrow_text(table, 300) == formats.render_text(table)


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (2.7534e-3, "s", "2753 times as slow as"),
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


ODD = ("\u0663", "\u00b3", "\uff13", "\u2462", "1_0", "+3", " 3", "3 ", "3\n", "0x3", "", "3,5", "nan")
PARSERS: dict[str, Callable[[str], object]] = {
    "whole": formats.parse_whole,
    "decimal": formats.parse_decimal,
    "count": parse_count,
    "minutes": parse_minutes,
    "sizes": parse_sizes,
    "margins": parse_margins,
    "factor": parse_factor,
    "cell": parse_number,
    "share": lambda text: SHARE.fullmatch(f"{text}%"),
    "duration": lambda text: DURATION.fullmatch(f"{text}h"),
    "day": lambda text: formats.parse_day(f"2026-11-2{text}"),
    "since": lambda text: formats.parse_since(f"2026-11-2{text}"),
    "moment": lambda text: formats.parse_utc(f"2026-11-2{text}T00:00:00Z"),
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


POSITIVE = st.floats(min_value=1e-9, max_value=1e9)


@pytest.mark.parametrize("unit", ["", "us", "MB", "MiB/s", "S"])
def test_no_other_unit_has_a_direction(unit: str):
    """None is taken for seconds by accident: a rate would be judged upside down."""
    for ask in (formats.find_better_direction, lambda name: formats.compute_slowdown(1.0, 1.0, name)):
        with pytest.raises(ValueError, match=f"unit '{unit}' is none of s, MB/s"):
            ask(unit)


@given(POSITIVE, POSITIVE)
def test_a_rate_is_as_slow_as_the_time_that_it_is_the_inverse_of(value, reference):
    slow = formats.compute_slowdown(value, reference, formats.SECONDS)
    assert formats.compute_slowdown(1 / value, 1 / reference, formats.MEGABYTES) == pytest.approx(
        slow, rel=1e-9
    )
    assert (slow > 1) == (value / reference > 1)
    assert formats.compute_slowdown(value, value, formats.MEGABYTES) == 1.0


def test_names_are_in_the_order_of_their_numbers() -> None:
    expected = ["n1-eth9", "n1-eth10", "n2", "n10"]
    assert sorted(["n10", "n2", "n1-eth10", "n1-eth9"], key=formats.natural_sort_key) == expected
