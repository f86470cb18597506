"""Which cases mpicost has: unasked those of the two papers, and on request those of the table in Python."""

import pytest

from postprocess.model.routines.mpicost import ROUTINES
from tests.support.mpicost import program

THREE = (8, 10_000, 1_000_000)
TWO = (8, 1_000_000)
LUECKE = {
    "pingpong": THREE,
    "rightshift": THREE,
    "barrier": (0,),
    "bcast": THREE,
    "scatter": (8, 1_000, 10_000, 100_000),
    "gather": (8, 1_000, 10_000, 100_000),
    "allgather": (8, 10_000),
    "alltoall": (8, 1_000, 10_000, 100_000),
    "reduce_sum": THREE,
    "reduce_min": THREE,
    "reduce_max": THREE,
    "allreduce_sum": TWO,
    "allreduce_min": TWO,
    "allreduce_max": TWO,
    "scan_sum": TWO,
    "scan_min": TWO,
    "scan_max": TWO,
}
LUECKE2001 = {
    **dict.fromkeys(LUECKE, TWO),
    "barrier": (0,),
    **dict.fromkeys(("rightshift", "scatter", "gather", "allgather", "alltoall"), (8, 10_000)),
}
LUECKE2003 = {
    **dict.fromkeys(("pingpong", "rightshift", "bcast", "reduce_sum"), THREE),
    **dict.fromkeys(("scatter", "gather", "alltoall"), (8, 1_000, 100_000)),
}


def listed(processes: int, *options: str) -> list[tuple[str, int, int]]:
    """The cases, as printed."""
    ended = program("mpich").run(processes, "--list", *options)
    assert (ended.status, ended.complaints) == (0, [])
    rows = [line.split() for line in ended.output.splitlines()]
    return [(routine, int(peer), int(size)) for routine, peer, size in rows]


def expected(
    sizes: dict[str, tuple[int, ...]], processes: int, peers: tuple[int, ...] | None = None
) -> set[tuple[str, int, int]]:
    """The cases of a table of routines and sizes."""
    partners = peers if peers is not None else tuple(range(1, processes))
    return {
        (routine, peer, size)
        for routine, its in sizes.items()
        for size in its
        for peer in (partners if routine == "pingpong" else (0,))
    }


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_default_is_the_union_of_the_papers(processes: int) -> None:
    """No controls, no tournament, and nothing else that is measured on request only."""
    cases = listed(processes)
    assert len(cases) == len(set(cases))
    assert set(cases) == expected(LUECKE, processes)
    assert set(LUECKE) == {routine.name for routine in ROUTINES if routine.test}


def test_the_program_has_every_routine_of_the_table() -> None:
    cases = listed(4, f"--routine={','.join(each.name for each in ROUTINES)}")
    assert {name for name, *_ in cases} == {each.name for each in ROUTINES}
    for routine in ROUTINES:
        own = {(peer, size) for name, peer, size in cases if name == routine.name}
        assert ({peer for peer, _ in own} != {0}) == routine.in_pairs, routine.name
        if routine.control_bytes:
            assert own == {(0, routine.control_bytes)}


@pytest.mark.parametrize(
    ("family", "sizes"), [("luecke", LUECKE), ("luecke2001", LUECKE2001), ("luecke2003", LUECKE2003)]
)
def test_family(family: str, sizes: dict) -> None:
    assert set(listed(2, "--family", family)) == expected(sizes, 2)


OWN = {"scan_min": (8, 24), "gather": LUECKE["gather"], "bcast": (16,), "barrier": (0,)}


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        (("--bytes", "16,800,0"), {**dict.fromkeys(LUECKE, (0, 16, 800)), "barrier": (0,)}),
        (("--routine", "scan_min,gather"), {name: LUECKE[name] for name in ("scan_min", "gather")}),
        (("--routine", "scan_min:8:24,gather,bcast:16,barrier"), OWN),
    ],
    ids=["bytes replace all sizes but the barrier's", "routines by name", "sizes of their own"],
)
def test_routines_and_sizes_are_selected(options: tuple[str, ...], sizes: dict) -> None:
    assert set(listed(2, *options)) == expected(sizes, 2)


def test_peers_are_selected() -> None:
    sizes = {"pingpong": THREE}
    assert set(listed(4, "--routine=pingpong", "--peers=3,1")) == expected(sizes, 4, (1, 3))
