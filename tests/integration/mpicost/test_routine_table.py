"""The table of routines in Python holds for the program as it was built."""

from __future__ import annotations

import pytest

from postprocess.model.routines.mpicost import ROUTINES
from tests.support.mpicost import FAMILIES, program

PROCESSES = 4


def listed(family: str, *options: str) -> dict[str, set[tuple[int, int]]]:
    """Peers and sizes of each routine, as ``mpicost --list`` prints them."""
    ended = program(family).run(PROCESSES, "--list", *options)
    assert (ended.status, ended.complaints) == (0, [])
    found: dict[str, set[tuple[int, int]]] = {}
    for routine, peer, size in map(str.split, ended.output.splitlines()):
        found.setdefault(routine, set()).add((int(peer), int(size)))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_the_program_has_every_routine_of_the_table(family: str) -> None:
    found = listed(family, f"--routine={','.join(each.name for each in ROUTINES)}")
    assert set(found) == {each.name for each in ROUTINES}
    for routine in ROUTINES:
        peers = {peer for peer, _ in found[routine.name]}
        assert (peers != {0}) == routine.in_pairs, routine.name
        if routine.control_bytes:
            assert found[routine.name] == {(0, routine.control_bytes)}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_program_runs_unasked_are_the_tests_of_the_papers(family: str) -> None:
    assert set(listed(family)) == {each.name for each in ROUTINES if each.test}
