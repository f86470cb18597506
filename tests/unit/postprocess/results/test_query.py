"""Questions over many sessions are answered completely, from undamaged files, or not at all."""

import os
from pathlib import Path

import polars as pl
import pytest

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.results import query, store
from postprocess.results.query import FOLDER, INDEX_COLUMNS, ORDER, read_headlines
from postprocess.results.store import StoreError, read_sessions
from tests.support.factories.store import Site, session_name
from tests.support.faults import Declared, plants

SITE = Site(cases=40)
NIGHTS = 12  #: of which nine are in November 2021, and three in December


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for number in range(NIGHTS):
        SITE.write(folder, number)
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A store of its own; the times of its files are those of the nights'."""
    for path in made.glob("*.parquet"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def expected(folder: Path) -> pl.DataFrame:
    return read_sessions(folder).select(INDEX_COLUMNS).sort(*ORDER)


def change(path: Path, **columns: pl.Expr) -> None:
    """Another session of that name, written well."""
    frame = pl.read_parquet(path).with_columns(**columns)
    path.unlink()
    store.write_frame(path, frame)


def session_file(folder: Path, number: int) -> Path:
    return folder / f"{session_name(number)}.parquet"


# What is answered.


def test_everything_but_the_trials_comes_in_order(folder):
    first, again = read_headlines(folder), read_headlines(folder)
    assert first.equals(expected(folder)) and again.equals(first)
    assert first.height == NIGHTS * SITE.cases
    assert not {"t_max", "late", "provenance", "figures"} & {*first.columns}


def test_a_session_of_a_clock_that_was_years_ahead_is_not_the_last_one(folder):
    change(session_file(folder, NIGHTS - 1), started_utc=pl.lit("2931-01-01T00:00:00Z"))
    assert read_headlines(folder).height == (NIGHTS - 1) * SITE.cases


def test_the_history_of_some_cases(folder):
    keys = [SITE.keys()[number].key for number in (3, 30)]
    found = read_headlines(folder, keys=keys)
    assert found.equals(expected(folder).filter(pl.col("key").is_in(keys)))
    assert found.height == 2 * NIGHTS
    assert read_headlines(folder, keys=[keys[0]]).height == NIGHTS
    assert read_headlines(folder, keys=["no:such:case"]).is_empty()
    assert read_headlines(folder, keys=[]).is_empty()


@pytest.mark.parametrize(
    ("since", "nights"),
    [
        *(("2021-11-22", 12), ("2021-11-24", 10), ("2021-12-01", 3), ("2021-12-01T01:30:00Z", 3)),
        *(("2021-12-01T01:30:01Z", 2), ("2021-12-31", 0), ("0001-01-01", 12), ("0300-01-01", 12)),
    ],
)
def test_since_a_time(folder, since, nights):
    assert read_headlines(folder, since=since)["session"].n_unique() == nights


@plants("use", "a day that is none, in 5 ways", "`--since`", "", 2,
        "is not a date; write it as 2026-11-21")  # fmt: skip
@pytest.mark.parametrize("since", ["yesterday", "2021-13-01", "", "2021-12-01 01:30", "20211201"])
def test_what_is_no_time_is_refused(folder, since, declared: Declared):
    with declared.raises(UsageError):
        read_headlines(folder, since=since)


def test_a_session_whose_name_was_made_a_second_before_the_month_began_is_found(tmp_path):
    frame = SITE.night(8).with_columns(
        session=pl.lit("20211130T235959Z-1"), started_utc=pl.lit("2021-12-01T00:00:00Z")
    )
    store.write_frame(tmp_path / "20211130T235959Z-1.parquet", frame)
    assert read_headlines(tmp_path, since="2021-12-01").height == SITE.cases


def test_a_calibration_is_no_night_and_neither_is_what_does_not_tell(folder):
    change(session_file(folder, 1), mode=pl.lit("calibrate"))
    change(session_file(folder, 2), mode=pl.lit("confirm"))
    change(session_file(folder, 3), mode=pl.lit("selftest"))
    change(session_file(folder, 4), mode=pl.lit("run"))
    change(session_file(folder, 5), mode=pl.lit(""))
    assert read_headlines(folder)["session"].n_unique() == NIGHTS - 5
    assert read_headlines(folder, modes=["run"])["session"].unique().to_list() == [session_name(4)]
    found = read_headlines(folder, modes=["calibrate"])["session"].unique().to_list()
    assert found == [session_name(1)]
    assert read_headlines(folder, modes=[""])["session"].unique().to_list() == [session_name(5)]
    assert read_headlines(folder, modes=None)["session"].n_unique() == NIGHTS
    assert read_headlines(folder, modes=[]).is_empty()


def test_only_the_columns_that_are_asked_for(folder):
    found = read_headlines(folder, columns=["value", "key"])
    assert found.equals(expected(folder).select("value", "key"))


def test_an_empty_store_has_no_headlines(tmp_path):
    found = read_headlines(tmp_path)
    assert found.is_empty() and found.columns == INDEX_COLUMNS
    with pytest.raises(StoreError, match="none: No such file"):
        read_headlines(tmp_path / "none")


def test_sessions_without_a_time_in_their_names_are_found_whenever_asked(tmp_path):
    store.write_frame(tmp_path / "x.parquet", SITE.night(3).with_columns(session=pl.lit("x")))
    assert read_headlines(tmp_path, since="2021-11-25").height == SITE.cases
    assert read_headlines(tmp_path, since="2021-11-26").is_empty()


# What is not to be believed.


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@plants("files", "a damaged session that nobody asked for", "the store", "", 2,
        "is damaged, its checksum is wrong")  # fmt: skip
@pytest.mark.parametrize("indexed", [False, True])
def test_a_damaged_session_is_named_even_if_others_are_asked_for(folder, indexed, declared):
    if indexed:
        read_headlines(folder)
    path = session_file(folder, 2)
    damage(path)
    os.utime(path, ns=(1, 1))
    with declared.raises(StoreError, match=rf"{path.name}: is damaged, its checksum is wrong"):
        read_headlines(folder, keys=["no:such:case"])


@plants("files", "a file of somebody else, or a dead link", "the store", "", 2,
        "mine.parquet: is damaged | mine.parquet: No such file")  # fmt: skip
def test_a_foreign_file_is_named(folder, declared: Declared):
    read_headlines(folder)
    (folder / "mine.parquet").write_bytes(b"PAR1")
    with declared.raises(StoreError, match=r"mine\.parquet: is damaged"):
        read_headlines(folder)
    (folder / "mine.parquet").unlink()
    (folder / "mine.parquet").symlink_to(folder / "gone")
    with declared.raises(StoreError, match=r"mine\.parquet: No such file"):
        read_headlines(folder)


def test_what_was_read_once_is_not_read_again(folder, monkeypatch):
    first = read_headlines(folder)
    SITE.write(folder, NIGHTS)
    read = []
    original = query.read_session
    monkeypatch.setattr(query, "read_session", lambda path, names: read.append(path) or original(path, names))
    assert read_headlines(folder).height == first.height + SITE.cases
    assert read == [session_file(folder, NIGHTS)]
    assert read_headlines(folder).equals(expected(folder))
    assert len(read) == 1


def test_the_index_follows_the_store(folder):
    """A session that is gone, or that is another one now, is answered as it is now."""
    read_headlines(folder)
    session_file(folder, 0).unlink()
    assert read_headlines(folder).equals(expected(folder))
    change(session_file(folder, 10), value=pl.lit(7.0))
    assert read_headlines(folder).equals(expected(folder))
    assert 7.0 in read_headlines(folder)["value"]


@pytest.mark.parametrize(
    "spoil",
    [
        damage,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(files.seal_data(files.PLACEHOLDER.encode())),
        lambda path: path.write_bytes((path.parent / "202112.parquet").read_bytes()),
        lambda path: path.unlink(),
    ],
)
def test_a_spoilt_index_is_made_anew(folder, spoil):
    read_headlines(folder)
    path = folder / FOLDER / "202111.parquet"
    whole = path.read_bytes()
    spoil(path)
    assert read_headlines(folder).equals(expected(folder))
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "told",
    [{"schema": "2", "covers": "same"}, {"schema": "3"}, {"schema": "3", "covers": "{}"}, {"covers": "same"}],
)
def test_an_index_of_another_kind_is_not_believed(folder, told):
    """However well it is sealed: these have wrong values."""
    read_headlines(folder)
    path = folder / FOLDER / "202111.parquet"
    covers = pl.read_parquet_metadata(path)["covers"]
    told = {key: covers if value == "same" else value for key, value in told.items()}
    wrong = pl.read_parquet(path).with_columns(value=pl.lit(7.0))
    wrong.write_parquet(path, metadata=told | {"seal": files.PLACEHOLDER})
    path.write_bytes(files.seal_data(path.read_bytes()))
    assert read_headlines(folder).equals(expected(folder))


def test_where_no_index_can_be_kept_the_answer_is_the_same(folder):
    (folder / FOLDER).write_text("no folder")
    assert read_headlines(folder).equals(expected(folder))


def test_long_work_is_told(folder, monkeypatch):
    monkeypatch.setattr(query, "MANY", 3)
    said: list[str] = []
    read_headlines(folder, say=said.append)
    assert said == ["reading 9 sessions of 202111 for the first time",
                    "reading 3 sessions of 202112 for the first time"]  # fmt: skip
