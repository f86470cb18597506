"""The table of docs/papers.md has each thing that the papers show once; its commands are understood."""

from __future__ import annotations

import re
import shlex
from collections import Counter

from postprocess.main import build_parser
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "papers.md").read_text()
THINGS = {"000": 38, "001": 26, "002": 27, "003": 47, "004": 15}  #: by paper
ITEM = re.compile(r"(?:(?P<paper>\d{3}))?-(?P<first>\d+)(?: to -(?P<last>\d+))?")


def read_states() -> list[tuple[str, int, str]]:
    """Paper, number and state of each thing in the table."""
    found, paper = [], ""
    for line in PAGE.splitlines():
        numbers, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        if not re.match(r"\d{3}-", numbers):
            continue
        for item in numbers.split(", "):
            match = ITEM.fullmatch(item)
            assert match, item
            paper = match["paper"] or paper
            first, last = int(match["first"]), int(match["last"] or match["first"])
            state = re.split(r"\W", rest[1])[0]
            found += [(paper, number, state) for number in range(first, last + 1)]
    return found


def test_each_thing_stands_in_the_table_once():
    there = sorted((paper, number) for paper, number, _ in read_states())
    assert there == [(p, n) for p, most in THINGS.items() for n in range(1, most + 1)]


def test_the_text_counts_what_is_done_and_what_is_open():
    states = Counter(state for _, _, state in read_states())
    said = re.search(r"Of (\d+), (\d+) are done and\s+(\d+) open", PAGE)
    assert said and [*map(int, said.groups())] == [
        sum(states.values()),
        states["done"],
        states["open"],
    ]
    assert states.keys() == {"done", "open"}


def read_commands() -> list[list[str]]:
    """Words of each command of the page, without variables, comments and where its output goes."""
    lines = [
        line for line in PAGE.splitlines() if line.startswith("    ") and "./plumbline" in line
    ]
    commands = [part for line in lines for part in line.split("#")[0].split(";")]
    return [shlex.split(part.partition("./plumbline ")[2].split(" > ")[0]) for part in commands]


def test_every_command_of_the_page_is_understood():
    for words in read_commands():
        build_parser().parse_args(words)


def test_the_table_that_no_night_measures_has_its_command():
    """A simulated night leaves scan out at 128 processes: table 9 of Luecke et al. (2001)."""
    found = [words for words in read_commands() if "scan_sum" in words]
    assert [words[words.index("--processes") + 1] for words in found] == ["128"]
