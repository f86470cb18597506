"""The file of a sealed offer: nothing leads out of it, nothing is hidden in it, and it is no trap."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from postprocess.base import archive
from postprocess.base.archive import build_end, build_header, pack_folder, unpack_archive
from postprocess.base.errors import UsageError
from tests.support.faults import Declared, plants


@plants("security", "a name that leads out of the folder", "a sealed offer", "", 2,
        "is not a plain file below it; do not open it")  # fmt: skip
@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x"])
def test_an_archive_writes_nowhere_else(tmp_path: Path, name: str, declared: Declared) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        entry = tarfile.TarInfo(name)
        archive.addfile(entry, io.BytesIO(b""))
    with declared.raises(UsageError, match="is not a plain file below it"):
        unpack_archive(tmp_path / "x.tar", tmp_path / "out")


def test_a_link_and_a_file_that_is_no_archive_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    (tmp_path / "y.tar").write_text("nothing")
    for name, said in (("x.tar", "is not a plain file"), ("y.tar", "not an archive of")):
        with pytest.raises(UsageError, match=said):
            unpack_archive(tmp_path / name, tmp_path / "out")


#: Archives, by what they are; of an honest one and its length.
ODD_ARCHIVES = {
    "is cut off within": lambda data: data[:1000],
    "is cut off behind": lambda data: data.rstrip(b"\0") + bytes(-len(data.rstrip(b"\0")) % 512),
    "has 1000 bytes behind its end": lambda data: data + b"x" * 1000,
    "has bytes hidden behind 'a'": lambda data: build_header("a", 1) + b"x" + b"y" * 511 + data,
    "was packed by another program": lambda data: dated_header() + data,
    "is compressed by gzip": gzip.compress,
    "is empty": lambda data: b"",
    "is there twice": lambda data: build_header("a", 0) + build_header("a", 0) + data,
    "is a file and a folder": lambda data: build_header("a", 0) + build_header("a/b", 0) + build_end(1024),
    "has headers for other programs": lambda data: pax_header(comment="I agree") + data,
    "has more than 1000 files": lambda data: b"".join(build_header(f"{n}", 0) for n in range(1001)),
}


def dated_header() -> bytes:
    entry = tarfile.TarInfo("a")
    entry.mtime = 5
    return entry.tobuf(tarfile.GNU_FORMAT)


def pax_header(**told: str) -> bytes:
    entry = tarfile.TarInfo("a")
    entry.pax_headers = told
    return entry.tobuf(tarfile.PAX_FORMAT)


@plants("files", "cut, longer, packed by another program, compressed, empty or with hidden bytes, in 11 ways",
        "a sealed offer", "", 2, "x.tar: …; ")  # fmt: skip
@pytest.mark.parametrize("said", ODD_ARCHIVES)
def test_an_archive_is_called_what_it_is(tmp_path, said, monkeypatch, declared: Declared) -> None:
    monkeypatch.setattr(archive, "MOST_FILES", 1000)
    (tmp_path / "offer.toml").write_text("x" * 600)
    pack_folder(tmp_path, ["offer.toml"], tmp_path / "honest.tar")
    (tmp_path / "x.tar").write_bytes(ODD_ARCHIVES[said]((tmp_path / "honest.tar").read_bytes()))
    with declared.raises(UsageError, match=said):
        unpack_archive(tmp_path / "x.tar", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def hole(archive: tarfile.TarFile) -> None:
    """A file of three gigabytes, all of them a hole: two blocks of an archive."""
    entry = tarfile.TarInfo("hole")
    entry.type, size = tarfile.GNUTYPE_SPARSE, b"%011o\0" % (3 << 30)
    block = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    block[386:398] = block[483:495] = size
    block[148:156] = b"%06o\0 " % (256 + sum(block) - sum(block[148:156]))
    assert archive.fileobj
    archive.fileobj.write(block)


def deep(archive: tarfile.TarFile) -> None:
    archive.addfile(tarfile.TarInfo("a/" * 1900 + "b"), io.BytesIO(b""))


@plants("files", "a hole of three gigabytes, or a name of 1900 folders", "a sealed offer", "", 2,
        "is not a plain file below it; do not open it")  # fmt: skip
@pytest.mark.parametrize("add", [hole, deep])
def test_an_archive_larger_than_its_file_is_refused(tmp_path: Path, add, declared: Declared):
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        add(archive)
    with declared.raises(UsageError):
        unpack_archive(tmp_path / "x.tar", tmp_path / "out")


@plants("files", "a number that is none, one too large, or headers without end, in 4 ways",
        "a sealed offer", "", 2, "it is not an archive of ./plumbline offer seal")  # fmt: skip
@pytest.mark.parametrize(
    ("told", "times"),
    [
        ({"GNU.sparse.size": "x"}, 1),
        ({"path": "a\0b"}, 1),
        ({"GNU.sparse.map": "9" * 5000}, 1),
        ({"path": "b"}, 3000),
    ],
)
def test_headers_that_cannot_be_are_refused(tmp_path: Path, told, times, declared: Declared):
    block = pax_header(**told)
    (tmp_path / "x.tar").write_bytes(block[:-512] * times + block[-512:] + bytes(1024))
    with declared.raises(UsageError):
        unpack_archive(tmp_path / "x.tar", tmp_path / "out")
