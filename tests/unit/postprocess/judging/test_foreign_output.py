"""Lines of others in outputs are told once for each environment and program."""

from __future__ import annotations

from types import SimpleNamespace

from postprocess.judging.outcome import describe_foreign_lines
from postprocess.parsers.osu_imb_launch import FIRST_FOREIGN, FOREIGN


def test_lines_of_others_are_counted_and_quoted_once():
    launch = SimpleNamespace(partition="mine:cpu", environment="openmpi", program="osu")
    runs = [{FOREIGN: 2, FIRST_FOREIGN: "UCX  WARN  one"}, {FOREIGN: 1, FIRST_FOREIGN: "two"}, {}]
    found = [SimpleNamespace(launch=launch, run=run) for run in runs]
    (line,) = describe_foreign_lines(found)
    assert line.startswith("mine:cpu, openmpi, osu: 3 lines in the output of 2 launches that the program")
    assert line.endswith("the first: UCX  WARN  one")
