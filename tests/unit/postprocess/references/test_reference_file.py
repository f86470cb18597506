"""A reference file is read whole and right, or refused with file, row and fix."""

import errno
import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path
from string import ascii_letters, digits

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.base.errors import UsageError
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.references import reference_file
from postprocess.references.reference_file import COLUMNS, HEADER, ReferenceFileError
from postprocess.stats.band import compute_band
from tests.support.faults import Declared, plants

PLACE = ("laptop", "cpu", "mpich-5.0.2")
TOLD = {
    "date_utc": "2026-11-21T09:00:00Z",
    "mpi_library": "MPICH Version: 5.0.2",
    "version": "0.1.0",
    "method": {"trials": 51},
    "sessions": ["20261121T090000Z-4711"],
}
ORIGIN = {"machine": {"host": "n1"}, "programs": {"mpicost": {"calibrations": [TOLD]}}}


def origin(**changes) -> dict:
    """Provenance that tells something else of the program, or nothing of a key whose value is None."""
    told = {key: value for key, value in (TOLD | changes).items() if value is not None}
    return {**ORIGIN, "programs": {"mpicost": {"calibrations": [told]}}}


def case(routine: str = "bcast", size: int = 8, processes: int = 2, peer: int = 0) -> Case:
    variant = ("flush", "dissemination")
    return Case(*PLACE, "mpicost", routine, peer, *variant, processes, processes, size)


GOOD = [
    Reference(case("allreduce_sum"), 2.5e-6, 0.04, 20),
    Reference(case("bcast", 8), 1.25e-6, 0.03, 20),
    Reference(case("bcast", 1_000_000), 0.0001, 0.0, 12),
    Reference(case("bcast", 8, processes=4), 3e-6, 0.1, 5),
    Reference(case("pingpong", 8, peer=1), 5e-7, 0.0, 1),
]


@pytest.fixture
def path(tmp_path) -> Path:
    """A good reference file with its provenance."""
    path = reference_file.locate_references(tmp_path, *PLACE)
    reference_file.write_references(path, GOOD, ORIGIN)
    return path


def sidecar(path: Path) -> Path:
    return path.with_name("mpich-5.0.2.provenance.json")


def refusal(path: Path) -> str:
    """The line with which loading refuses the file, which lint also finds."""
    with pytest.raises(ReferenceFileError) as caught:
        reference_file.load_references(path, *PLACE)
    assert isinstance(caught.value, UsageError)
    line = str(caught.value)
    assert "\n" not in line
    assert reference_file.lint_reference_file(path)[0] == line
    return line


@pytest.fixture
def refused(path: Path, declared: Declared):
    """Give a reference file other rows, and hold its refusal against what the test declares."""

    def refused(rows: list[list[str]]) -> str:
        put(path, rows)
        line = refusal(path)
        declared.check((), 2, [line])
        return line

    return refused


def table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def put(path: Path, rows: list[list[str]]) -> None:
    path.write_text("".join("\t".join(row) + "\n" for row in rows))


# ---------------------------------------------------------------- round trip

WORDS = st.text(f"{ascii_letters}{digits}_.+-", min_size=1, max_size=12)
COUNTS = st.integers(min_value=1, max_value=10**6)


@st.composite
def any_reference(draw) -> Reference:
    processes, launches = draw(COUNTS), draw(COUNTS)
    drawn = Case(
        *(*PLACE, draw(WORDS), draw(WORDS)),
        peer=draw(st.integers(min_value=0, max_value=processes - 1)),
        cache=draw(st.sampled_from(["flush", "warm", "rotate"])),
        sync=draw(st.sampled_from(["dissemination", "barrier", "window", "loop"])),
        processes=processes,
        per_node=draw(st.integers(min_value=1, max_value=processes)),
        bytes=draw(st.integers(min_value=0, max_value=10**15)),
    )
    unit = draw(st.sampled_from(["s", "MB/s"]))
    center = draw(st.floats(*reference_file.CENTERS[unit]))
    spread = draw(st.floats(0, reference_file.MOST_SPREAD)) if launches > 1 else 0.0
    return Reference(drawn, center, spread, launches, unit)


@given(st.lists(any_reference(), min_size=1, max_size=8, unique_by=lambda reference: reference.case))
def test_what_is_written_is_read_again(tmp_path_factory, drawn):
    path = reference_file.locate_references(tmp_path_factory.mktemp("trip"), *PLACE)
    programs = {reference.case.program: {"calibrations": [TOLD]} for reference in drawn}
    reference_file.write_references(path, drawn, {**ORIGIN, "programs": programs})
    found = reference_file.load_references(path, *PLACE)
    assert found == {reference.case: reference for reference in drawn}
    assert reference_file.lint_reference_file(path) == []
    cases = list(reference_file.load_references(path, *PLACE))
    assert cases == sorted(cases)


def test_the_file_is_as_people_review_it_and_its_place_comes_from_the_caller(path):
    assert path.read_text().splitlines()[:3] == [
        "program\troutine\tpeer\tcache\tsync\tprocesses\tper_node\tbytes\tunit\tcenter\tspread\tlaunches",
        "mpicost\tallreduce_sum\t0\tflush\tdissemination\t2\t2\t8\ts\t2.5e-06\t0.04\t20",
        "mpicost\tbcast\t0\tflush\tdissemination\t2\t2\t8\ts\t1.25e-06\t0.03\t20",
    ]
    assert json.loads(sidecar(path).read_text()) == ORIGIN
    loaded = reference_file.load_references(path, "other", "gpu", "openmpi")
    assert {(c.system, c.partition, c.environment) for c in loaded} == {("other", "gpu", "openmpi")}


# ---------------------------------------------------------------- every damaged cell

WRONG = {
    "program": ["", "mpi cost", "a/b", "ä", "a,b"],
    "routine": ["", "b cast", "<b>", "bcast\r", "bcast "],
    "peer": ["", "-1", "1.0", "x", " 0", "0 ", "00", "+0", "1_0", "٣", "2", "1e0", "9" * 19],
    "cache": ["", "cold", "Flush", "flush "],
    "sync": ["", "none", "Barrier"],
    "processes": ["", "0", "100000001", "-2", "2.0", "two", "1", "nan", "0x2", "02"],
    "per_node": ["", "0", "-2", "3", "2.0", "nan"],
    "bytes": ["", "1" + "0" * 16, "-8", "8.0", "8B", "1e6", "1,000", "inf", "1" * 19],
    "unit": ["", "us", "ms", "S", "sec", "µs", " s"],
    "center": [
        *["", "0", "0.0", "-1e-06", "nan", "NaN", "inf", "-inf", "1e999", "1e-999", "x", " 1e-06"],
        *["1e-06 ", "1e-320", "1e308", "9.9e-11", "1,5", "1.", ".5", "0x1p-3", "1e", "+1e-06"],
        *["1_0", "٣", "1e-06s"],
    ],
    "spread": ["", "-0.1", "nan", "inf", "1e999", "1e300", "7", "x", "5 %", "1.", " 0.1", "-0.0"],
    "launches": ["", "0", "1000001", "-1", "1.5", "x", "nan", "05", "1 ", "20\r"],
}


@plants("references", "a cell that cannot be, in 104 ways: 1e-320, 1e308, nan, other digits and units",
        "a reference file", "", 2, ".tsv: row 4: ")  # fmt: skip
@pytest.mark.parametrize(
    ("column", "text"), [(column, text) for column, texts in WRONG.items() for text in texts]
)
def test_a_damaged_cell_is_named(path, column, text, refused):
    rows = table(path)
    rows[3][COLUMNS.index(column)] = text
    line = refused(rows)
    assert line.startswith(f"{path}: row 4: ")
    # too few processes for the rest of the row is one fault of three columns
    named = {"peer": ("peer", "processes"), "per_node": ("per_node", "processes")}
    assert line.split(": ")[2] in named.get(column, (column,)) or f"{column} '" in line


@given(st.data())
@settings(max_examples=300)
def test_a_cell_is_refused_or_read_as_it_stands(tmp_path_factory, data):
    """Whatever a cell is replaced by, it is either named, or its text is what was loaded."""
    path = reference_file.locate_references(tmp_path_factory.mktemp("cell"), *PLACE)
    reference_file.write_references(path, GOOD, ORIGIN)
    rows = table(path)
    row = data.draw(st.integers(min_value=1, max_value=len(GOOD)))
    column = data.draw(st.integers(min_value=0, max_value=len(COLUMNS) - 1))
    rows[row][column] = data.draw(st.text(alphabet=st.characters(codec="utf-8"), max_size=12))
    path.write_bytes("".join("\t".join(cells) + "\n" for cells in rows).encode())
    try:
        loaded = reference_file.load_references(path, *PLACE)
    except ReferenceFileError as error:
        stranger = f"{sidecar(path)}: programs: says nothing of {rows[row][column]}; "
        known = COLUMNS[column] == "program" and str(error).startswith(stranger)
        assert known or str(error).startswith(f"{path}: row ")
        return
    assert len(loaded) == len(GOOD)
    reference = list(loaded.values())[row - 1]
    name = COLUMNS[column]
    read = getattr(reference, name) if hasattr(reference, name) else getattr(reference.case, name)
    assert read == type(read)(rows[row][column])
    limits = compute_band(reference)
    assert 0 < limits.lower < reference.center < limits.upper < math.inf


@pytest.mark.parametrize("cells", [[], [""], ["x"] * 11, ["x"] * 13])
def test_a_row_has_a_cell_per_column(path, cells):
    rows = table(path)
    rows[2] = cells
    put(path, rows)
    assert f"row 3: has {max(len(cells), 1)} cells; write 12" in refusal(path)


# ---------------------------------------------------------------- the file as a whole


def swap(rows: list[list[str]], above: int, below: int) -> list[list[str]]:
    rows[above], rows[below] = rows[below], rows[above]
    return rows


DUPLICATE = plants("references", "a case that is there twice, with other values", "a reference file", "", 2,
                   "row 4: is the same case as row 3; remove one")  # fmt: skip
MIXED = plants("references", "one exact row of simulated time among measured ones", "a reference file", "", 2,
               "spread: exact in some rows only")  # fmt: skip
ORDER = plants("references", "rows in another order", "a reference file", "", 2, "belongs above row")
COLUMN = plants("references", "a column lost", "a reference file", "", 2,
                "row 1: is not the header; it must read program TAB routine")  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "faults"),
    [
        pytest.param(
            lambda rows: [*rows[:3], [*rows[2][:9], "1e-06", "0.5", "10"], *rows[3:]], 1, marks=DUPLICATE
        ),
        # a single exact row would have the others compared by the method of simulated time
        pytest.param(lambda rows: [*rows[:2], [*rows[2][:10], "exact", "20"], *rows[3:]], 1, marks=MIXED),
        *(
            pytest.param(lambda rows, pair=pair: swap(rows, *pair), faults, marks=ORDER)
            for pair, faults in [((1, 2), 1), ((2, 3), 1), ((2, 4), 2), ((1, 5), 2)]
        ),
        *(
            pytest.param(lambda rows, n=n: [row[:n] + row[n + 1 :] for row in rows], 1, marks=COLUMN)
            for n in range(len(COLUMNS))
        ),
    ],
)
def test_rows_that_contradict_each_other_are_named_once(path, damage, faults, refused):
    refused(damage(table(path)))
    assert len(reference_file.lint_reference_file(path)) == faults


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "\ufeff" + HEADER + "\n", "# comment\n" + HEADER + "\n"),
        *(HEADER.replace("\t", " ") + "\n", HEADER.replace("\t", ",") + "\n"),
        *(HEADER + "\r\n", HEADER + "\textra\n"),
    ],
)
def test_another_header_is_refused(path, text):
    path.write_text(text, newline="")
    assert f"{path}: row 1: is not the header" in refusal(path)


@given(st.data())
def test_a_file_cut_inside_a_row_is_refused(tmp_path_factory, data):
    """Else 20 launches would read as 2."""
    path = reference_file.locate_references(tmp_path_factory.mktemp("cut"), *PLACE)
    reference_file.write_references(path, GOOD, ORIGIN)
    content = path.read_bytes()
    length = data.draw(st.integers(min_value=0, max_value=len(content) - 1))
    if content[:length].endswith(b"\n") and length > len(HEADER) + 1:
        return  # whole rows: the cases that are gone have no reference, and say so
    path.write_bytes(content[:length])
    assert refusal(path).startswith(f"{path}: row ")


@plants("references", "bytes that are not UTF-8", "a reference file", "", 2,
        "row 6: is not UTF-8 text")  # fmt: skip
def test_bytes_that_are_no_text_are_named_by_row(path, declared: Declared):
    path.write_bytes(path.read_bytes().replace(b"pingpong", b"ping\xff"))
    declared.check((), 2, [refusal(path)])


def test_a_file_that_is_not_there_is_named(path, tmp_path):
    sidecar(path).unlink()
    sidecar(path).mkdir()
    assert f"{sidecar(path)}: is not a regular file" in refusal(path)
    path.unlink()
    assert f"{path}: No such file" in refusal(path)
    assert f"{tmp_path}: is not a regular file" in refusal(tmp_path)


def test_lint_finds_every_fault_at_once(path):
    rows = table(path)
    rows[1][8], rows[2][9], rows[4][11] = "us", "nan", "0"
    put(path, rows)
    sidecar(path).unlink()
    faults = reference_file.lint_reference_file(path)
    assert [fault.split(": ")[1] for fault in faults] == ["row 2", "row 3", "row 5", "is missing; "
        "restore it or calibrate again"]  # fmt: skip
    assert all(fault.startswith(str(path.parent)) for fault in faults)


# ---------------------------------------------------------------- provenance


@pytest.mark.parametrize("key", ORIGIN)
def test_provenance_is_there_with_every_key(path, key):
    partly = {name: value for name, value in ORIGIN.items() if name != key}
    sidecar(path).write_text(json.dumps(partly))
    assert f"{sidecar(path)}: {key}: is missing" in refusal(path)
    sidecar(path).unlink()
    assert f"{sidecar(path)}: is missing" in refusal(path)


@plants("references", "a key lost, any", "a provenance", "", 2,
        "mpicost: …: is missing")  # fmt: skip
@pytest.mark.parametrize("key", TOLD)
def test_provenance_has_every_key_of_a_program(path, key, declared: Declared):
    sidecar(path).write_text(json.dumps(origin(**{key: None})))
    assert f"{sidecar(path)}: programs: mpicost: calibration 1: {key}: is missing; " in refusal(path)
    with declared.raises(ReferenceFileError, match=key):
        reference_file.write_references(path, GOOD, origin(**{key: None}))


@plants("references", "nothing of one program", "a provenance", "", 2,
        "programs: says nothing of osu; calibrate again")  # fmt: skip
def test_provenance_tells_of_every_program(path, declared: Declared):
    """A case of a program of which nothing is told would be held against values of unknown making."""
    row = Reference(replace(GOOD[1].case, program="osu", cache="warm", sync="loop"), 1.0, 0.1, 20)
    with declared.raises(ReferenceFileError):
        reference_file.write_references(path, [*GOOD, row], ORIGIN)
    both = {**ORIGIN, "programs": {name: {"calibrations": [TOLD]} for name in ("mpicost", "osu")}}
    reference_file.write_references(path, [*GOOD, row], both)
    assert reference_file.lint_reference_file(path) == []
    sidecar(path).write_text(json.dumps(ORIGIN))
    assert f"{sidecar(path)}: programs: says nothing of osu" in refusal(path)


#: What says nothing, by the key of a program.
EMPTY = {
    "date_utc": ["yesterday", "2026-13-21T09:00:00Z", "2026-11-21 09:00:00", 20261121],
    "mpi_library": ["", 5],
    "version": [0.1, " "],
    "method": [{}, "mine"],
    "sessions": [[], "20261121T090000Z-4711", [1], [""]],
    "options": ["x", {"set_env": "x"}, {"shell": {"UCX_TLS": 1}}],
    "circumstances": ["x", {"binding": "x"}],
    "headlines": ["x"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in EMPTY.items() for value in values])
def test_provenance_says_something(path, key, value):
    sidecar(path).write_text(json.dumps(origin(**{key: value})))
    assert re.match(rf"{sidecar(path)}: programs: mpicost: calibration 1: {key}[:.]", refusal(path))
    with pytest.raises(ReferenceFileError, match=key):
        reference_file.write_references(path, GOOD, origin(**{key: value}))


@plants("references", "machine or programs that say nothing, in 7 ways", "a provenance", "", 2,
        ".provenance.json: ")  # fmt: skip
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("machine", value) for value in ({}, "", ["n1"])),
        *(("programs", value) for value in ({}, [], {"mpicost": "0.1.0"}, {"mpicost": None})),
    ],
)
def test_provenance_says_something_of_machine_and_programs(path, key, value, declared: Declared):
    sidecar(path).write_text(json.dumps(ORIGIN | {key: value}))
    assert f"{sidecar(path)}: {key}: " in refusal(path)
    with declared.raises(ReferenceFileError, match=key):
        reference_file.write_references(path, GOOD, ORIGIN | {key: value})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "row 1: is not JSON"),
        (b"{\n\n  'a': 1}", "row 3: is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (b'{"a": NaN}', "is not a finite number"),
        (b'{"a": 1, "a": 2}', "the key is there twice"),
        (b"\xff\xfe", "can't decode"),
        (json.dumps({"machine": {"host": "n1"}, **TOLD}).encode(), "programs: is missing; move the file away "),
        (
            json.dumps({**ORIGIN, "programs": {"osu": {"calibrations": [TOLD | {"sessions": []}]}}}).encode(),
            "programs: osu: calibration 1: sessions: ",
        ),
    ],
)
def test_provenance_is_a_json_object(path, content, said):
    sidecar(path).write_bytes(content)
    line = refusal(path)
    assert line.startswith(f"{sidecar(path)}: ") and said in line


def test_more_provenance_is_welcome(path):
    reference_file.write_references(path, GOOD, ORIGIN | {"kernel": "Linux 6.1", "machine": "n1"})
    assert reference_file.lint_reference_file(path) == []


# ---------------------------------------------------------------- writing


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"center": math.nan}, "center: 'nan'"),
        ({"center": -1e-6}, "center: '-1e-06'"),
        ({"center": 0.0}, "center: 0 is nothing to hold a value against"),
        ({"center": math.inf}, "center: 'inf'"),
        ({"spread": -0.1}, "spread: '-0.1'"),
        ({"spread": math.nan}, "spread: 'nan'"),
        ({"launches": 0}, "launches: '0'"),
        ({"launches": 1}, "spread: one launch has none"),
        ({"unit": "us"}, "unit: 'us' is wrong; write s or MB/s"),
        ({"case": replace(case("bcast"), cache="cold")}, "cache: 'cold'"),
    ],
)
def test_nothing_is_written_that_would_not_load(path, changes, said):
    before = path.read_bytes()
    changed = [GOOD[0], replace(GOOD[1], **changes), *GOOD[2:]]
    with pytest.raises(ReferenceFileError, match=f"{path}: row .*{re.escape(said)}"):
        reference_file.write_references(path, changed, ORIGIN)
    assert path.read_bytes() == before


ELSEWHERE = replace(GOOD[1], case=replace(case("scan_sum"), environment="openmpi-4.1.4"))


@pytest.mark.parametrize(
    ("known", "said"), [([], "row 2: there is none"), ([GOOD[0], ELSEWHERE], "the cases are of 2 environments")]
)
def test_a_file_has_references_of_one_environment(tmp_path, known, said):
    path = reference_file.locate_references(tmp_path, *PLACE)
    with pytest.raises(ReferenceFileError, match=said):
        reference_file.write_references(path, known, ORIGIN)
    assert not path.exists()


@pytest.mark.parametrize("value", [math.nan, {"a": math.inf}, {1, 2}])
def test_provenance_is_written_as_json_or_not_at_all(path, value):
    before = sidecar(path).read_bytes()
    with pytest.raises(ReferenceFileError, match="correct it"):
        reference_file.write_references(path, GOOD, ORIGIN | {"extra": value})
    assert sidecar(path).read_bytes() == before


@pytest.mark.parametrize("fitting", [0, 1])
def test_a_full_disk_leaves_the_earlier_references(path, monkeypatch, fitting):
    """One of the two files does not fit; neither may change."""
    before = {entry.name: entry.read_bytes() for entry in path.parent.iterdir()}
    left = iter(range(fitting))

    def flush(_: int) -> None:
        if next(left, None) is None:
            raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(os, "fsync", flush)
    with pytest.raises(ReferenceFileError, match=f"{path}: cannot be written: File too large"):
        reference_file.write_references(path, GOOD, ORIGIN | {"suite_version": "9"})
    assert {entry.name: entry.read_bytes() for entry in path.parent.iterdir()} == before


# ---------------------------------------------------------------- finding


def test_a_broken_file_is_found_and_not_passed_over(path, tmp_path):
    reviewed = reference_file.locate_references(tmp_path / "reviewed", *PLACE)
    reviewed.parent.mkdir(parents=True)
    reviewed.symlink_to(tmp_path / "gone")
    assert reference_file.find_reference_file([tmp_path / "reviewed", tmp_path], *PLACE) == reviewed
    assert "No such file" in refusal(reviewed)


@plants("references", "a root that cannot be searched", "`--references`", "", 2,
        "File name too long")  # fmt: skip
def test_a_root_that_cannot_be_searched_is_an_error(path, tmp_path, declared: Declared):
    with declared.raises(ReferenceFileError):
        reference_file.find_reference_file([tmp_path], "laptop", "cpu", "x" * 300)


# ---------------------------------------------------------------- a whole tree


def test_lint_of_a_tree(path, tmp_path):
    assert reference_file.lint_reference_files(tmp_path) == []
    historical = tmp_path / "historical" / "luecke2001"
    historical.mkdir(parents=True)
    (historical / "table1.tsv").write_text("anything")
    assert reference_file.lint_reference_files(tmp_path) == []
    stray = tmp_path / "laptop" / "mpich-5.0.2.tsv"
    stray.write_bytes(path.read_bytes())
    orphan = path.with_name("gone.provenance.json")
    orphan.write_text("{}")
    broken = path.with_name("openmpi-4.1.4.tsv")
    broken.write_text("x\n")
    faults = reference_file.lint_reference_files(tmp_path)
    beside = str(broken).replace(".tsv", ".provenance.json")
    expected = [str(orphan), str(broken), beside, str(stray)]
    assert [fault.split(": ")[0] for fault in faults] == expected
    assert reference_file.lint_reference_files(tmp_path / "none") == []
