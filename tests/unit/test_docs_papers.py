"""The table of docs/papers.md has each thing that the papers show once; its commands are understood."""

import re
from collections import Counter

from postprocess.main import build_parser
from postprocess.model.routines.paper_families import PAPER_FAMILIES
from tests.support.paper_items import TEXT, ByTest, list_proven, read_commands, read_numbers
from tests.support.paths import ROOT

THINGS = {"000": 38, "001": 26, "002": 27, "003": 47, "004": 15}  #: by paper


def read_states() -> list[tuple[str, int, str]]:
    """Paper, number and state of each thing in the table."""
    found = []
    for line in TEXT.splitlines():
        numbers, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        if re.match(r"\d{3}-", numbers):
            state = re.split(r"[;:,]", rest[1])[0]
            found += [(*number, state) for number in read_numbers(numbers)]
    return found


def test_each_thing_stands_in_the_table_once():
    there = sorted((paper, number) for paper, number, _ in read_states())
    assert there == [(p, n) for p, most in THINGS.items() for n in range(1, most + 1)]


def test_the_text_counts_what_is_done_and_what_is_open():
    states = Counter(state for _, _, state in read_states())
    said = re.search(r"Of (\d+), (\d+) are done, (\d+) by hand and (\d+) open", TEXT)
    assert said and [*map(int, said.groups())] == [
        sum(states.values()),
        states["done"],
        states["by hand"],
        states["open"],
    ]
    assert states.keys() <= {"done", "by hand", "open"}


def test_done_is_what_ci_has_found_on_a_page_or_a_test_proves():
    done = {(paper, number) for paper, number, state in read_states() if state == "done"}
    proven = list_proven()
    assert proven.keys() == done
    paths = {proof.path for proof in proven.values() if isinstance(proof, ByTest)}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_each_family_of_a_paper_has_its_command_twice():
    named = [words[words.index("--family") + 1] for words in read_commands() if "--family" in words]
    assert all(named.count(family) >= 2 for family in PAPER_FAMILIES)


def test_every_command_of_the_page_is_understood():
    for words in read_commands():
        build_parser().parse_args(words)


def test_the_table_that_no_night_measures_has_its_command():
    """A simulated night leaves scan out at 128 processes: table 9 of Luecke et al. (2001)."""
    found = [words for words in read_commands() if "scan_sum" in words]
    assert [words[words.index("--processes") + 1] for words in found] == ["128"]
