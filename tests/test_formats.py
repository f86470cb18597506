"""Numbers as people read them."""

from __future__ import annotations

import pytest

from postprocess import formats


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


def test_band_and_ratio():
    assert formats.band((4.1e-6, 7.83e-6)) == "4.10 to 7.83"
    assert formats.band(None) == "-"
    assert formats.ratio(2.3e-6, 1e-6) == "2.30"
    assert formats.ratio(4.71e-9, 1e-6) == "0.0047"
    assert formats.ratio(None, 1e-6) == formats.ratio(1e-6, None) == formats.ratio(1.0, 0.0) == "-"


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (0, "0 B"),
        (8, "8 B"),
        (1000, "1 kB"),
        (1024, "1024 B"),
        (10_000, "10 kB"),
        (1_250_000, "1.25 MB"),
        (1_048_576, "1048576 B"),
        (10_000_001, "10000001 B"),
        (123_450, "123.45 kB"),
        (100_000, "100 kB"),
        (2_000_000_000, "2 GB"),
    ],
)
def test_sizes_are_decimal_and_exact(count, written):
    assert formats.size(count) == written


def test_sizes_of_caches_are_binary():
    assert formats.binary_size(49152) == "48 KiB"
    assert formats.binary_size(33554432) == "32 MiB"


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_durations(seconds, written):
    assert formats.duration(seconds) == written


def test_plural():
    assert formats.plural(1, "case") == "1 case"
    assert formats.plural(0, "case") == "0 cases"
    assert formats.plural(2, "launch", "es") == "2 launches"
