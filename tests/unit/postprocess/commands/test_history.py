"""The history of a case in the terminal: which cases are meant, and what is shown of their nights."""

from __future__ import annotations

import pytest

from postprocess.commands.history import Night, describe_history, draw_sparkline, explain_no_match, is_meant
from postprocess.model.case import Case

KEY = "local:cpu:mpich-5_0_2:mpicost:bcast:evict-dissemination:2x2:1000"
CASE = Case.from_key(KEY)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["bcast"], True),
        (["bcast", "mpich", "1kB"], True),
        (["1000", "2x2"], True),
        (["*:bcast:*"], True),
        (["bcas"], False),
        (["bcast", "openmpi"], False),
        (["bcast", "1KiB"], False),
    ],
)
def test_a_case_is_meant_by_parts_of_its_key(words: list[str], meant: bool):
    assert is_meant(CASE, words) == meant


def test_a_word_that_is_said_of_no_case_is_told_with_the_nearest():
    assert explain_no_match(["bcst"], [KEY]) == "bcst: is said of no stored case; did you mean bcast?"
    assert "no night is stored yet" in explain_no_match(["bcast"], [])


def test_nights_are_drawn_with_their_verdicts_below():
    nights = [
        Night("2026-11-20", "pass", "s", 1e-6, 1e-6, (0.8e-6, 1.2e-6)),
        Night("2026-11-21", "crashed", "s", None, 1e-6, None),
        Night("2026-11-22", "regressed", "s", 3e-6, 1e-6, (0.8e-6, 1.2e-6)),
    ]
    lines = list(describe_history(KEY, nights, "ascii"))
    assert lines[:3] == [KEY, "  _ #", "  .!R"]
    assert lines[3] == "  3 sessions, 2026-11-20 to 2026-11-22: 1.00 us to 3.00 us"
    assert lines[4] == "  last: regressed, 3.00 us (3.00 of its reference), band 0.800 to 1.20"


def test_small_changes_do_not_look_large():
    assert draw_sparkline([1.0, 1.01, 1.02]) in ("▄▄▅", "▄▅▅")
    assert draw_sparkline([1.0, None, 10.0]) == "▁ █"
    assert draw_sparkline([None]) == " "
