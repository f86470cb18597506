"""The tables of benchmarks of OSU and IMB as tests read them: ReFrame makes checks for a site only."""

from collections.abc import Sequence
from typing import Any

import pytest

from postprocess.model.routines.benchmark import Benchmark
from tests.support.request import made_for_a_site


def checks() -> dict[str, type]:
    with pytest.MonkeyPatch.context() as patch, made_for_a_site(patch):
        from reframe_checks.imb import imb
        from reframe_checks.osu import osu

        return {"osu": osu, "imb": imb}


class Chosen:
    """What a check asks of itself to say what it starts."""

    validates = False

    def __init__(self, check: Any, lines: Sequence[Benchmark], sizes: Sequence[int]) -> None:
        self.lines, self.sizes = list(lines), list(sizes) or check.own_sizes

    def chosen_benchmarks(self) -> list[Benchmark]:
        return self.lines

    def sizes_of(self, line: Benchmark) -> list[int]:
        return line.chosen_sizes(self.sizes)


def starts(check: Any, lines: Sequence[Benchmark], sizes: Sequence[int] = ()) -> list[Any]:
    """The starts that a check makes of these lines; at its own sizes if none are given."""
    return list(check.starts(Chosen(check, lines, sizes)))
