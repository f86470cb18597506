"""Files of the witness as the reader takes or refuses them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.osu_imb_launch import read_witness
from tests.support.faults import MARK, plants

RUN: dict[str, Any] = {
    "record": "run",
    "schema": 2,
    "token": "",
    "interposed": [],
    "witness": {"suite_version": "0.1.0", "source_hash": "0123456789abcdef"},
    "mpi_library": "MPICH Version: 5.0.2",
    "mpi_standard": "5.0",
    "date_utc": "2026-01-01T00:00:00Z",
    "program": "osu_bcast",
    "command": ["osu_bcast", "-f"],
    "processes": 3,
    "per_node": 2,
    "hosts": [{"name": "a", "ranks": 2}, {"name": "b", "ranks": 1}],
    "ranks": [
        {"rank": 0, "host": "a", "cpus": "0"},
        {"rank": 1, "host": "a", "cpus": "1"},
        {"rank": 2, "host": "b", "cpus": "0"},
    ],
    "environment": {},
}
END: dict[str, Any] = {
    "record": "end",
    "token": "",
    "ended_utc": "2026-01-01T00:00:02Z",
    "arrived": 3,
    "elapsed": 1.5,
}
ALONE = RUN | {"processes": 1, "per_node": 1, "hosts": [{"name": "a", "ranks": 1}], "ranks": RUN["ranks"][:1]}


def text(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def refused(tmp_path: Path, request: pytest.FixtureRequest):
    """Hold the error of a file against its verdict, its words and the fault that the test declares."""

    def refused(content: str | bytes, verdict: Verdict | None = None, said: str = "") -> None:
        path = tmp_path / "w.jsonl"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        with pytest.raises(RecordError) as caught:
            read_witness(path)
        told = str(caught.value)
        assert str(path) in told and said in told and "\n" not in told
        assert verdict in (None, caught.value.verdict)
        if request.node.get_closest_marker(MARK):
            request.getfixturevalue("declared").check_error(caught.value)

    return refused


def test_a_whole_file_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "w.jsonl"
    file.write_text(text(RUN, END))
    witness = read_witness(file)
    assert (witness.run, witness.end) == (RUN, END)
    assert (witness.processes, witness.per_node) == (3, 2)
    assert witness.mpi_library == "MPICH Version: 5.0.2"


@pytest.mark.parametrize(
    "content", ["", text(RUN), text(END), "no JSON\n", text(RUN, END)[:-1], text(RUN) + "\n" + text(END)]
)
def test_what_is_not_whole_is_incomplete(refused, content: str) -> None:
    refused(content, Verdict.INCOMPLETE)


def test_a_file_that_is_not_there_is_incomplete(tmp_path: Path) -> None:
    with pytest.raises(RecordError) as caught:
        read_witness(tmp_path / "w.jsonl")
    assert caught.value.verdict == Verdict.INCOMPLETE
    assert "MPI_Finalize" in str(caught.value)


@plants("schedulers", "several worlds", "what the witness writes", "incorrect", 1, "w.jsonl: ")
@pytest.mark.parametrize(
    "records",
    [
        (ALONE, ALONE),
        (ALONE, END | {"arrived": 1}, ALONE, END | {"arrived": 1}),
        (ALONE, ALONE, END | {"arrived": 1}, END | {"arrived": 1}),
        (RUN, END, END),
        (RUN, END, {"record": "case"}),
        (RUN, 7),
        (RUN, END, []),
    ],
)
def test_more_than_one_world_is_incorrect(refused, records: tuple) -> None:
    refused(text(*records))


IMPOSSIBLE: dict[str, list[Any]] = {
    "schema": [3],
    "program": [""],
    "mpi_library": [None, " "],
    "date_utc": [5],
    "witness": [{}, "yes"],
    "processes": [2, True],
    "per_node": [3],
    "hosts": [[], [{"name": "a", "ranks": 3}], [{"name": "a", "ranks": 2}, {"name": "a", "ranks": 1}]],
    "ranks": [RUN["ranks"][:2], RUN["ranks"][::-1], [each | {"host": "a"} for each in RUN["ranks"]]],
    "arrived": [2, 4],  # of the end
    "elapsed": [-1, "1"],
}


@pytest.mark.parametrize(("key", "value"), [(key, each) for key in IMPOSSIBLE for each in IMPOSSIBLE[key]])
def test_what_cannot_be_true_or_lacks_is_incorrect(refused, key: str, value: object) -> None:
    for change in ({key: value}, {}):
        run, end = ({name: each for name, each in record.items() if name != key} for record in (RUN, END))
        refused(
            text(run | change if key in RUN else run, end | change if key in END else end), Verdict.INCORRECT
        )


def test_a_file_cut_off_anywhere_is_incomplete(refused) -> None:
    whole = text(RUN, END)
    for length in range(len(whole)):
        refused(whole[:length], Verdict.INCOMPLETE)


PIECES = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 500)), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=PIECES)
def test_worlds_that_write_into_each_other_never_pass(refused, pieces) -> None:
    """However the pieces of two worlds of one come to lie in the file."""
    content, worlds = "", [text(ALONE, END | {"arrived": 1}) for _ in range(2)]
    for world, length in [*pieces, (0, 1000), (1, 1000)]:
        content, worlds[world] = content + worlds[world][:length], worlds[world][length:]
    assert not any(worlds)
    refused(content)


OBJECT = {"path": "/opt/libprof.so", "text": "0123456789abcdef"}


def test_what_is_in_front_of_the_mpi_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "w.jsonl"
    told = {"interposed": [OBJECT], "interposed_elsewhere": {"rank": 2, "interposed": []}}
    file.write_text(text(RUN | told, END))
    assert read_witness(file).run == RUN | told


@pytest.mark.parametrize(
    "told",
    [
        {"interposed": None},
        {"interposed": ["/opt/libprof.so"]},
        {"interposed": [{"path": "/opt/libprof.so"}]},
        {"interposed": [OBJECT | {"path": ""}]},
        {"interposed": [OBJECT | {"text": "0123456789ABCDEF"}]},
        {"interposed_elsewhere": {"rank": 1}},
        {"interposed": [], "interposed_elsewhere": {"rank": 0, "interposed": [OBJECT]}},
        {"interposed": [], "interposed_elsewhere": {"rank": 3, "interposed": [OBJECT]}},
        {"interposed": [], "interposed_elsewhere": {"rank": 1}},
    ],
)
def test_what_is_in_front_of_the_mpi_is_told_whole(refused, told: dict) -> None:
    refused(text(RUN | told, END), Verdict.INCORRECT, "interposed")
