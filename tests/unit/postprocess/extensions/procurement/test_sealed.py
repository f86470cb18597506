"""Sealed offers: one file, the same bytes each time; every change is told apart; offers side by side."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from postprocess.base import archive
from postprocess.base.archive import build_end, build_header, pack_folder, unpack_archive
from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_utc
from postprocess.base.progress import Progress
from postprocess.base.signature import DOSSIER, MANIFEST, OFFER, SIGNATURE, find_fingerprint, format_manifest
from postprocess.extensions.procurement.check.builds import OfficialSource
from postprocess.extensions.procurement.check.offer import RULES, open_offer, read_sealed
from postprocess.extensions.procurement.check.run_rules import find_sealed
from postprocess.extensions.procurement.form.commitments import Commitment, read_commitments, write_commitments
from postprocess.extensions.procurement.form.rows import COLUMNS
from postprocess.extensions.procurement.measure.accept import AcceptanceDemand, open_committed
from postprocess.extensions.procurement.rules.rules import hash_rules
from postprocess.extensions.procurement.sealed import (
    check_folder,
    check_opened,
    open_archive,
    seal_archive,
    verify_seal,
)
from postprocess.main import main
from tests.support.factories.offer import OFFICIAL, RULES_TEXT, TOLD_TEXT, make_offer
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")


def commit(folder: Path, factor: float = 1.2, drop: str = "") -> Path:
    """Commit to every row, but one."""
    rows = [
        Commitment(row.key.key, factor * max(row.values))
        for row in open_offer(folder).rows
        if row.key.case != drop
    ]
    write_commitments(folder, hash_rules(folder / RULES), rows)
    return folder


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two keys, of which one may sign."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ann", "eve"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]
        subprocess.run([*words, str(folder / name)], check=True)
    (folder / "signers").write_text(f"ann {(folder / 'ann.pub').read_text()}")
    return folder


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """A sealed offer; its folder lies beside it."""
    folder = commit(make_offer(tmp_path_factory.mktemp("sealed") / "offer"))
    seal_archive(folder, keys / "ann", OFFER, folder.with_name("offer.tar"))
    return folder.with_name("offer.tar")


def codes(path: Path, scratch: Path, keys: Path, issued: str = "") -> set[str]:
    open_archive(path, scratch)
    return {each.code.word for each in check_opened(scratch, OFFICIAL, issued, keys / "signers").violations}


def test_an_honest_archive_opens_verifies_and_has_no_violation(honest, tmp_path, keys) -> None:
    open_archive(honest, tmp_path)
    found = check_opened(tmp_path, OFFICIAL, "", keys / "signers")
    assert (found.violations, found.seal and found.seal.signer) == ((), "ann")
    code = hashlib.sha256((tmp_path / MANIFEST).read_bytes()).hexdigest()
    assert found.seal and found.seal.root == code


def test_the_same_files_make_the_same_bytes(honest: Path, tmp_path: Path, keys: Path) -> None:
    copy = shutil.copytree(honest.with_name("offer"), tmp_path / "offer")
    for path in copy.rglob("*"):
        path.touch()
    (copy / SIGNATURE).unlink()
    seal_archive(copy, keys / "ann", OFFER, tmp_path / "a.tar")
    assert (tmp_path / "a.tar").read_bytes() == honest.read_bytes()  # ed25519 signs alike


def swap(folder: Path) -> None:
    """Exchange what two launches left."""
    one, two = sorted(folder.glob("sessions/*/raw/*mpicost*.jsonl"))[:2]
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(first)


def append(path: Path, size: int = 10) -> None:
    """Appends letters; with size 0 the first line again."""
    data = path.read_bytes()
    path.write_bytes(data + (b"x" * size or data.splitlines(keepends=True)[0]))


def reseal(folder: Path) -> None:
    """Make the sums right again, which a forger can."""
    path = next(folder.glob("sessions/*/raw/*.exit"))
    path.write_text("7\n")
    (folder / MANIFEST).write_text(format_manifest(folder))


def edit(name: str, old: bytes, new: bytes) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        data = (folder / name).read_bytes()
        assert old in data
        (folder / name).write_bytes(data.replace(old, new, 1))

    return change


CHANGES: list[tuple[str, str, Callable[[Path], object]]] = [
    ("file-changed", "a word", lambda f: (f / "offer.toml").write_text(TOLD_TEXT + "# x\n")),
    ("file-missing", "a file dropped", lambda f: next(f.glob("sessions/*/raw/*.times")).unlink()),
    ("file-added", "a file more", lambda f: (f / "more").write_text("x")),
    ("file-swapped", "results swapped", swap),
    ("signer-unknown", "sums made right", reseal),
    ("seal-broken", "bytes behind the signature", lambda f: append(f / SIGNATURE)),
    ("seal-broken", "bytes before it", edit(SIGNATURE, b"-----BEGIN", b"I agree\n-----BEGIN")),
    ("seal-broken", "a signature of megabytes", lambda f: append(f / SIGNATURE, 1 << 21)),
    ("seal-broken", "a word in the manifest", edit(MANIFEST, b"\n", b"\nI agree\n")),
    ("seal-broken", "a name that nobody sees", edit(MANIFEST, b"  offer.toml", "  offer\u200b.toml".encode())),
    ("seal-broken", "a file twice in the manifest", lambda f: append(f / MANIFEST, 0)),
    ("seal-missing", "no signature", lambda f: (f / SIGNATURE).unlink()),
    ("seal-missing", "no manifest", lambda f: (f / MANIFEST).unlink()),
    ("form-missing", "nothing committed", lambda f: (f / "commitments.json").unlink()),
    ("rules-other", "typed for other rules", lambda f: write_commitments(f, "f" * 64, ())),
]


@pytest.mark.parametrize(("code", "what", "change"), CHANGES, ids=[each[1] for each in CHANGES])
def test_every_change_is_told_apart(honest, tmp_path, keys, code, what, change) -> None:
    folder = tmp_path / "offer"
    open_archive(honest, folder)
    change(folder)
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    pack_folder(folder, names, tmp_path / "forged.tar")
    assert code in codes(tmp_path / "forged.tar", tmp_path / "scratch", keys)


def test_a_stranger_and_a_seal_for_something_else_are_told(honest, tmp_path, keys) -> None:
    for number, (name, namespace) in enumerate((("eve", OFFER), ("ann", DOSSIER))):
        folder = shutil.copytree(honest.with_name("offer"), tmp_path / str(number))
        seal_archive(folder, keys / name, namespace, tmp_path / f"{number}.tar")
        found = verify_seal(folder, keys / "signers", OFFER)
        assert {each.code.word for each in found.violations} == {"signer-unknown"}


def spoil(folder: Path) -> None:
    (folder / SIGNATURE).write_text("no signature")


@pytest.mark.parametrize("change", [reseal, spoil])
def test_a_signature_of_something_else_is_told_whoever_may_sign(honest, tmp_path, change) -> None:
    """Without the buyer's list of signers any signature will do, but it must be of this manifest."""
    folder = shutil.copytree(honest.with_name("offer"), tmp_path / "offer")
    assert not verify_seal(folder, None, OFFER).violations
    told = verify_seal(folder, None, DOSSIER).violations
    change(folder)
    told += verify_seal(folder, None, OFFER).violations
    assert [each.code.word for each in told] == ["seal-broken"] * 2


def test_older_rules_are_told(honest: Path, tmp_path: Path, keys: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES_TEXT + "# second issue\n")
    issued = hash_rules(tmp_path / "rules.toml")
    assert codes(honest, tmp_path / "scratch", keys, issued) == {"rules-older"}


@plants("security", "a name that leads out of the folder", "a sealed offer", "", 2,
        "is no plain file below it; do not open it")  # fmt: skip
@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x"])
def test_an_archive_writes_nowhere_else(tmp_path: Path, name: str, declared: Declared) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        entry = tarfile.TarInfo(name)
        archive.addfile(entry, io.BytesIO(b""))
    with declared.raises(UsageError, match="is no plain file below it"):
        unpack_archive(tmp_path / "x.tar", tmp_path / "out")


def test_a_link_and_a_file_that_is_no_archive_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(UsageError, match="is no plain file"):
        unpack_archive(tmp_path / "x.tar", tmp_path / "out")
    (tmp_path / "y.tar").write_text("nothing")
    with pytest.raises(UsageError, match="no archive of"):
        unpack_archive(tmp_path / "y.tar", tmp_path / "out")


def header(name: str, size: int = 0) -> bytes:
    return build_header(name, size)


#: Archives, by what they are; of an honest one and its length.
ODD_ARCHIVES = {
    "is cut off within": lambda data: data[:1000],
    "is cut off behind": lambda data: data.rstrip(b"\0") + bytes(-len(data.rstrip(b"\0")) % 512),
    "has 1000 bytes behind its end": lambda data: data + b"x" * 1000,
    "has bytes hidden behind 'a'": lambda data: header("a", 1) + b"x" + b"y" * 511 + data,
    "was packed by another program": lambda data: dated_header() + data,
    "is compressed by gzip": gzip.compress,
    "is empty": lambda data: b"",
    "is there twice": lambda data: header("a") + header("a") + data,
    "is a file and a folder": lambda data: header("a") + header("a/b") + build_end(1024),
    "has headers for other programs": lambda data: pax_header() + data,
    "has more than 1000 files": lambda data: b"".join(header(f"{n}") for n in range(1001)),
}


def dated_header() -> bytes:
    entry = tarfile.TarInfo("a")
    entry.mtime = 5
    return entry.tobuf(tarfile.GNU_FORMAT)


def pax_header() -> bytes:
    entry = tarfile.TarInfo("a")
    entry.pax_headers = {"comment": "I agree"}
    return entry.tobuf(tarfile.PAX_FORMAT)


@plants("files", "cut, longer, packed by another program, compressed, empty or with hidden bytes, in 11 ways",
        "a sealed offer", "", 2, "x.tar: …; ")  # fmt: skip
@pytest.mark.parametrize("said", ODD_ARCHIVES)
def test_an_archive_is_called_what_it_is(honest, tmp_path, said, monkeypatch, declared: Declared) -> None:
    monkeypatch.setattr(archive, "MOST_FILES", 1000)
    (tmp_path / "x.tar").write_bytes(ODD_ARCHIVES[said](honest.read_bytes()))
    with declared.raises(UsageError, match=said):
        unpack_archive(tmp_path / "x.tar", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@plants("files", "a pipe or a device", "what `offer check` is to check", "", 2,
        "a pipe is no regular file; | a device is no regular file; ")  # fmt: skip
@pytest.mark.parametrize("name", ["pipe", "pipe.tar", "/dev/zero"])
def test_a_pipe_and_a_device_are_called_so(tmp_path, name, capsys, declared: Declared) -> None:
    if not name.startswith("/"):
        os.mkfifo(tmp_path / name)
    status = plumbline(tmp_path, "check", str(tmp_path / name))
    declared.check((), status, [capsys.readouterr().err])


@plants("use", "no file, a folder, a public key or an empty file", "`--signers`", "", 2,
        "No such file or directory; name | has no line NAME KEY; | is no regular file; ")  # fmt: skip
@pytest.mark.parametrize("name", ["none", ".", "ann.pub", "empty"])
def test_signers_are_looked_at_before_anything(
    honest, tmp_path, keys, name, capsys, declared: Declared
) -> None:
    (keys / "empty").write_text("# nobody\n")
    for path in (honest, honest.with_name("offer")):
        status = plumbline(tmp_path, "check", str(path), "--signers", str(keys / name))
        declared.check((), status, [capsys.readouterr().err])


def test_the_seal_of_a_folder_is_verified_where_signers_are_named(honest, tmp_path, keys, capsys) -> None:
    signers = ("--signers", str(keys / "signers"))
    assert plumbline(tmp_path, "check", str(honest.with_name("offer")), *signers) == 0
    assert "signed by ann (SHA256:" in capsys.readouterr().out
    folder = shutil.copytree(honest.with_name("offer"), tmp_path / "offer")
    (folder / SIGNATURE).unlink()
    assert plumbline(tmp_path, "check", str(folder), *signers) == 1
    assert "seal-missing" in capsys.readouterr().err


def test_whose_key_nobody_looked_up_is_told(honest, tmp_path, keys, capsys) -> None:
    key = find_fingerprint(keys / "ann")
    words = ("compare", str(honest), "--output", str(tmp_path / "pages"))
    for each in (("check", str(honest)), words):
        plumbline(tmp_path, *each)
        told = "".join(capsys.readouterr())
        assert f"signed by the key {key}: nobody has looked whose key that is" in told
    open_committed(AcceptanceDemand(honest, tmp_path / "accept"), OFFICIAL, Progress())
    assert f"signed by the key {key}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("key", "grave"), [("ann", False), ("eve", True)])
def test_offers_with_the_same_launches_are_told(honest, tmp_path, keys, capsys, key, grave) -> None:
    """They are a reason to reject, unless one and the same has signed both."""
    folder = shutil.copytree(honest.with_name("offer"), tmp_path / "offer")
    (folder / "offer.toml").write_text(TOLD_TEXT.replace('"A"', '"B"'))
    seal_archive(folder, keys / key, OFFER, tmp_path / "B.tar")
    words = ("compare", str(honest), str(tmp_path / "B.tar"), "--output", str(tmp_path / "pages"))
    assert plumbline(tmp_path, *words) == int(grave)
    title = "launch-shared" if grave else "launch-shared (noted)"
    assert f"{title}: B: 10 of 10 launches are those of A; " in capsys.readouterr().err
    told = json.loads((tmp_path / "pages" / "offers.json").read_text())
    assert told["shared_launches"] == ["B: 10 of 10 launches are those of A"]
    assert [each["violations"] for each in told["offers"]] == [int(grave)] * 2
    assert told["shared_launches"][0] in (tmp_path / "pages" / "offers.html").read_text()


@pytest.mark.parametrize("name", ["offer.csv", "offer.html", "offer.xlsx"])
def test_a_form_says_what_is_committed(tmp_path, keys, name) -> None:
    """People read the form; a machine reads commitments.json."""
    folder = commit(make_offer(tmp_path / "offer"))
    assert plumbline(tmp_path, "sheet", str(folder)) == 0
    assert not check_folder(folder, OFFICIAL, final=True).violations
    if name == "offer.xlsx":
        book = openpyxl.load_workbook(folder / name)
        book["offer"].cell(4, len(COLUMNS) - 2).value = 1.0
        book.save(folder / name)
    else:
        value = f"{read_commitments(folder).rows[0].committed * 1e6:.12g}"
        edit(name, value.encode(), b"1.0")(folder)
    found = check_folder(folder, OFFICIAL, final=True).violations
    assert [(each.code.word, each.place) for each in found] == [("form-other", name)]


def test_an_offer_tells_when_it_was_sealed(tmp_path, keys, capsys) -> None:
    folder = commit(make_offer(tmp_path / "offer"))
    assert plumbline(tmp_path, "seal", str(folder), "--key", str(keys / "ann")) == 0
    sealed = read_sealed(folder)
    assert find_sealed(open_offer(folder)) == parse_utc(sealed).timestamp()
    for old, new in ((sealed, "2099-01-01T00:00:00Z"), ("2099-01-01", "2026-11-20")):
        edit("sealed.json", old.encode(), new.encode())(folder)
        found = check_folder(folder, OFFICIAL, final=True).violations
        assert [(each.code.word, each.place) for each in found] == [("clock-backwards", "sealed.json")]
    assert find_sealed(open_offer(folder)) == parse_utc("2026-11-21T09:05:30Z").timestamp()


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
        "is no plain file below it; do not open it")  # fmt: skip
@pytest.mark.parametrize("add", [hole, deep])
def test_an_archive_larger_than_its_file_is_refused(tmp_path: Path, add, declared: Declared):
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        add(archive)
    with declared.raises(UsageError):
        unpack_archive(tmp_path / "x.tar", tmp_path / "out")


@plants("files", "a number that is none, one too large, or headers without end, in 4 ways",
        "a sealed offer", "", 2, "it is no archive of ./plumbline offer seal")  # fmt: skip
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
    entry = tarfile.TarInfo("a")
    entry.pax_headers = told
    block = entry.tobuf(tarfile.PAX_FORMAT)
    (tmp_path / "x.tar").write_bytes(block[:-512] * times + block[-512:] + bytes(1024))
    with declared.raises(UsageError):
        unpack_archive(tmp_path / "x.tar", tmp_path / "out")


@plants("lost", "a file of somebody else, where a command writes one by default",
        "`offer seal` and `offer compare`", "", 2, "is there, and no output of Plumbline; ")  # fmt: skip
@pytest.mark.parametrize("verb", ["seal", "compare"])
def test_what_plumbline_did_not_write_stays(
    tmp_path, honest, keys, verb, monkeypatch, capsys, declared: Declared
) -> None:
    """And what it did write is written again."""
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(honest.with_name("offer"), tmp_path / "offer")
    path = tmp_path / ("offer.tar" if verb == "seal" else "offers/offers.csv")
    words = ("seal", str(folder), "--key", str(keys / "ann"), "--incomplete")
    words = words if verb == "seal" else ("compare", str(honest))
    assert plumbline(tmp_path, *words) < 2 and path.read_bytes() != b"mine"
    assert plumbline(tmp_path, *words) < 2
    path.write_text("mine")
    capsys.readouterr()
    status = plumbline(tmp_path, *words)
    declared.check((), status, [capsys.readouterr().err])
    assert path.read_text() == "mine"


def test_texts_of_a_bidder_do_nothing_to_who_reads_them(tmp_path, keys, capsys) -> None:
    """Neither in a terminal nor in a spreadsheet."""
    told = TOLD_TEXT.replace('"A"', r'"=cmd()\u001b[2J"')
    rules = RULES_TEXT.replace('"a sample"', r'"a \u001b[31m sample"')
    folder = commit(make_offer(tmp_path / "offer", rules=rules, told=told))
    seal_archive(folder, keys / "ann", OFFER, tmp_path / "a.tar")
    plumbline(tmp_path, "check", str(folder / RULES), "--no-cost")
    plumbline(tmp_path, "compare", str(tmp_path / "a.tar"), "--output", str(tmp_path / "pages"))
    assert "\x1b" not in "".join(capsys.readouterr())
    assert (tmp_path / "pages" / "offers.csv").read_text().splitlines()[1].startswith("'=cmd()")


def plumbline(tmp_path: Path, *words: str) -> int:
    return main(str(ROOT), str(tmp_path / "home"), ["offer", *words])


def test_a_folder_with_a_violation_is_sealed_on_request_only(tmp_path, keys, capsys) -> None:
    folder = commit(make_offer(tmp_path / "offer", told='offeror = ""\n'))
    assert plumbline(tmp_path, "seal", str(folder), "--key", str(keys / "ann")) == 1
    assert not (tmp_path / "offer.tar").exists()
    words = ("seal", str(folder), "--key", str(keys / "ann"), "--incomplete")
    assert plumbline(tmp_path, *words) == 0
    assert "root " in capsys.readouterr().out
    assert plumbline(tmp_path, "check", str(tmp_path / "offer.tar")) == 1
    said = capsys.readouterr()
    assert "told-missing" in said.err and "--signers FILE does" in said.out
    assert plumbline(tmp_path, "references", str(folder)) == 1  # they broke a run rule
    assert "told-missing" in capsys.readouterr().err


def test_an_offer_is_not_taken_for_the_rules_of_the_buyer(honest, tmp_path, capsys) -> None:
    for words in (["check", str(honest)], ["compare", str(honest), "--output", str(tmp_path / "x")]):
        assert plumbline(tmp_path, *words, "--rules", str(honest)) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and f"{honest}:" in said and "mend the TOML" in said


def test_an_archive_is_known_by_what_it_holds(honest, tmp_path, capsys) -> None:
    path = shutil.copy(honest, tmp_path / "offer.sealed")
    plumbline(tmp_path, "check", str(path))
    assert "offer.sealed: 3 rows of 10 launches" in capsys.readouterr().out


def test_an_offer_that_commits_to_nothing_is_refused_and_leaves_nothing(tmp_path, keys) -> None:
    folder = make_offer(tmp_path / "offer")
    seal_archive(folder, keys / "ann", OFFER, tmp_path / "offer.tar")
    demand = AcceptanceDemand(tmp_path / "offer.tar", tmp_path / "accept")
    with pytest.raises(UsageError, match=r"offer\.tar: commits to nothing"):
        open_committed(demand, OFFICIAL, Progress())
    assert not demand.folder.exists()


def test_what_is_neither_rules_nor_an_offer_is_one_line(tmp_path, capsys) -> None:
    assert plumbline(tmp_path, "check", str(tmp_path / "none")) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "none: No such file or directory; " in said


def accept(honest: Path, tmp_path: Path, keys: Path, change: Callable[[Path], object]) -> Path:
    """Open an offer that was changed and sealed again by ann, where the honest one was opened before."""
    open_committed(AcceptanceDemand(honest, tmp_path / "accept"), OFFICIAL, Progress())
    folder = shutil.copytree(honest.with_name("offer"), tmp_path / "offer")
    change(folder)
    seal_archive(folder, keys / "ann", OFFER, tmp_path / "other.tar")
    return tmp_path / "other.tar"


def test_an_acceptance_goes_on_with_its_own_offer_only(honest, tmp_path, keys) -> None:
    def change(folder: Path) -> None:
        (folder / "offer.toml").write_text(TOLD_TEXT + "# x\n")

    other = accept(honest, tmp_path, keys, change)
    with pytest.raises(UsageError, match=r"accept: is the acceptance of another offer"):
        open_committed(AcceptanceDemand(other, tmp_path / "accept"), OFFICIAL, Progress())
    open_committed(AcceptanceDemand(honest, tmp_path / "accept"), OFFICIAL, Progress())


def test_what_is_wrong_with_an_offer_to_accept_names_its_archive(honest, tmp_path, keys) -> None:
    without_rules = accept(honest, tmp_path, keys, lambda folder: (folder / RULES).unlink())
    with pytest.raises(UsageError, match=rf"^{without_rules}/{RULES}: No such file"):
        open_committed(AcceptanceDemand(without_rules, tmp_path / "b"), OFFICIAL, Progress())
    folder = tmp_path / "offer"
    reseal(folder)
    names = [each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()]
    pack_folder(folder, names, tmp_path / "forged.tar")
    with pytest.raises(UsageError, match=r"forged\.tar: seal-broken"):
        open_committed(AcceptanceDemand(tmp_path / "forged.tar", tmp_path / "c"), OFFICIAL, Progress())
    assert not (tmp_path / "b").exists() and not (tmp_path / "c").exists()


def test_an_offer_by_other_rules_than_the_buyers_is_refused_and_leaves_nothing(honest, tmp_path):
    """Also where its acceptance has begun."""
    demand = AcceptanceDemand(honest, tmp_path / "accept", issued="0" * 64)
    for there in (False, True):
        with pytest.raises(UsageError, match=r"offer\.tar: rules-older: rules\.toml: is"):
            open_committed(demand, OFFICIAL, Progress())
        assert demand.folder.exists() == there
        open_committed(replace(demand, issued=""), OFFICIAL, Progress())


def test_offers_side_by_side_and_missing_is_worst(tmp_path, keys, capsys, monkeypatch) -> None:
    offers = {"slow": (2.0, ""), "fast": (1.0, ""), "gaps": (0.5, "broadcast")}
    for name, (factor, drop) in offers.items():
        told = TOLD_TEXT.replace('"A"', f'"{name}"')
        factors = [factor * (1 + each / 1e6) for each in range(5)]
        folder = commit(make_offer(tmp_path / name, factors, told=told), drop=drop)
        seal_archive(folder, keys / "ann", OFFER, tmp_path / f"{name}.tar")
    archives = [str(tmp_path / f"{name}.tar") for name in offers]
    words = ("compare", *archives, "--signers", str(keys / "signers"))
    assert plumbline(tmp_path, *words, "--output", str(tmp_path / "pages")) == 0
    told = json.loads((tmp_path / "pages" / "offers.json").read_text())
    by_name = {each["name"]: each for each in told["offers"]}
    assert [each["name"] for each in told["offers"]] == ["fast", "slow", "gaps"]
    assert told["common_rows"] == 1  # the mean is over what all have, not over what each has
    merits = [by_name[name]["merit"] for name in ("fast", "slow", "gaps")]
    assert merits == [pytest.approx(2.0), pytest.approx(1.0), pytest.approx(4.0)]
    assert by_name["gaps"]["worst"] == 0 and by_name["gaps"]["must_kept"] == 0
    assert not by_name["gaps"]["responsive"] and by_name["fast"]["responsive"]
    assert "missing" in capsys.readouterr().out
    page = (tmp_path / "pages" / "offers.html").read_text()
    assert "<svg" in page and "mathdefault" not in page  # marks are numbers, not formulas
    assert (tmp_path / "pages" / "offers.csv").read_text().count("\n") == 1 + 3 * 3


def test_ratios_are_to_a_present_system_that_was_measured(tmp_path, keys, capsys) -> None:
    rules = RULES_TEXT.partition("[[reference]]")[0]
    folder = commit(make_offer(tmp_path / "new", [0.5] * 5, rules))
    seal_archive(folder, keys / "ann", OFFER, tmp_path / "new.tar")
    present = make_offer(tmp_path / "present", [1.2] * 5, rules)
    words = ("compare", str(tmp_path / "new.tar"), "--output", str(tmp_path / "pages"))
    plumbline(tmp_path, *words, "--present", str(present))
    told = json.loads((tmp_path / "pages" / "offers.json").read_text())
    ratios = [each["ratios"]["A"] for each in told["rows"]]  # it commits to 1.2 times its slowest
    assert ratios == [pytest.approx(2.0)] * 3
    other = make_offer(tmp_path / "other", rules=rules + "#\n")
    assert plumbline(tmp_path, *words, "--present", str(other)) == 2
    assert "by other rules than the offers" in capsys.readouterr().err


def test_offers_by_different_rules_are_not_compared(tmp_path, keys, capsys) -> None:
    for name, rules in (("a", RULES_TEXT), ("b", RULES_TEXT + "#\n")):
        folder = commit(make_offer(tmp_path / name, rules=rules))
        seal_archive(folder, keys / "ann", OFFER, tmp_path / f"{name}.tar")
    assert plumbline(tmp_path, "compare", str(tmp_path / "a.tar"), str(tmp_path / "b.tar")) == 2
    assert "by different rules" in capsys.readouterr().err


def test_the_hash_of_the_own_source_is_that_which_a_build_tells() -> None:
    cmake = shutil.which("cmake")
    if not cmake:
        pytest.skip("no cmake")
    suite = ROOT / "suite"
    sources = (path for folder in ("src", "kernels") for path in suite.glob(f"{folder}/*.[ch]"))
    names = [str(path.relative_to(suite)) for path in sources]
    names += ["src/build_info.h.in", "CMakeLists.txt", "cmake/source_hash.cmake"]
    words = [f"-DROOT={suite}", f"-DFILES={';'.join(names)}", "-DOUTPUT=/dev/stdout"]
    script = ["-P", str(suite / "cmake/source_hash.cmake")]
    done = subprocess.run([cmake, *words, *script], check=True, capture_output=True, text=True)
    assert OfficialSource(ROOT).hash in done.stdout
