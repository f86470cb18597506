"""Sealed offers: one file, the same bytes each time; every change is told apart; offers side by side."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from postprocess.base.archive import pack_folder
from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_utc
from postprocess.base.progress import Progress
from postprocess.base.signature import DOSSIER, MANIFEST, OFFER, SIGNATURE, find_fingerprint, format_manifest
from postprocess.extensions.procurement.accept import AcceptanceDemand, open_committed
from postprocess.extensions.procurement.builds import OfficialSource
from postprocess.extensions.procurement.commitments import Commitment, read_commitments, write_commitments
from postprocess.extensions.procurement.form_rows import COLUMNS
from postprocess.extensions.procurement.offer import RULES, open_offer, read_sealed
from postprocess.extensions.procurement.rules.rules import hash_rules
from postprocess.extensions.procurement.run_rules import find_sealed
from postprocess.extensions.procurement.sealed import (
    check_folder,
    check_opened,
    open_archive,
    seal_archive,
    verify_seal,
)
from postprocess.main import main
from tests.support.factories.offer import OFFICIAL, RULES_TEXT, TOLD_TEXT, edit, make_offer
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT


def commit(folder: Path, factor: float = 1.2, drop: str = "") -> Path:
    """Commit to every row, but one."""
    rows = [
        Commitment(row.key.key, factor * max(row.values))
        for row in open_offer(folder).rows
        if row.key.case != drop
    ]
    write_commitments(folder, hash_rules(folder / RULES), rows)
    return folder


def make_sealed(folder: Path, keys: Path, key: str = "ann", **how: Any) -> Path:
    """A sealed offer that commits to every row, as :func:`make_offer` has it; its folder lies beside it."""
    return seal(commit(make_offer(folder, **how)), keys, key)


def seal(folder: Path, keys: Path, key: str = "ann") -> Path:
    path = folder.with_suffix(".tar")
    seal_archive(folder, keys / key, OFFER, path)
    return path


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    return make_sealed(tmp_path_factory.mktemp("sealed") / "offer", keys)


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    """A copy of its folder, to forge."""
    return shutil.copytree(honest.with_suffix(""), tmp_path / "offer")


def codes(path: Path, scratch: Path, keys: Path, issued: str = "") -> set[str]:
    open_archive(path, scratch)
    return {
        violation.code.word
        for violation in check_opened(scratch, OFFICIAL, issued, keys / "signers").violations
    }


def test_an_honest_archive_opens_verifies_and_has_no_violation(honest, tmp_path, keys) -> None:
    open_archive(honest, tmp_path)
    found = check_opened(tmp_path, OFFICIAL, "", keys / "signers")
    assert (found.violations, found.seal and found.seal.signer) == ((), "ann")
    code = hashlib.sha256((tmp_path / MANIFEST).read_bytes()).hexdigest()
    assert found.seal and found.seal.root == code


def test_the_same_files_make_the_same_bytes(honest: Path, folder: Path, keys: Path) -> None:
    for path in folder.rglob("*"):
        path.touch()
    (folder / SIGNATURE).unlink()
    assert seal(folder, keys).read_bytes() == honest.read_bytes()  # ed25519 signs alike


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


CHANGES: list[tuple[str, str, Callable[[Path], object]]] = [
    ("file-changed", "a word", lambda f: (f / "offer.toml").write_text(TOLD_TEXT + "# x\n")),
    ("file-missing", "a file dropped", lambda f: next(f.glob("sessions/*/raw/*.times")).unlink()),
    ("file-added", "a file more", lambda f: (f / "more").write_text("x")),
    ("file-swapped", "results swapped", swap),
    ("signer-unknown", "sums made right", reseal),
    ("seal-broken", "bytes behind the signature", lambda f: append(f / SIGNATURE)),
    ("seal-broken", "bytes before it", edit(SIGNATURE, "-----BEGIN", "I agree\n-----BEGIN")),
    ("seal-broken", "a signature of megabytes", lambda f: append(f / SIGNATURE, 1 << 21)),
    ("seal-broken", "a word in the manifest", edit(MANIFEST, "\n", "\nI agree\n")),
    ("seal-broken", "a name that nobody sees", edit(MANIFEST, "  offer.toml", "  offer\u200b.toml")),
    ("seal-broken", "a file twice in the manifest", lambda f: append(f / MANIFEST, 0)),
    ("seal-missing", "no signature", lambda f: (f / SIGNATURE).unlink()),
    ("seal-missing", "no manifest", lambda f: (f / MANIFEST).unlink()),
    ("form-missing", "nothing committed", lambda f: (f / "commitments.json").unlink()),
    ("rules-other", "typed for other rules", lambda f: write_commitments(f, "f" * 64, ())),
]


@pytest.mark.parametrize(("code", "what", "change"), CHANGES, ids=[each[1] for each in CHANGES])
def test_every_change_is_told_apart(folder, tmp_path, keys, code, what, change) -> None:
    change(folder)
    pack_folder(folder, list_files(folder), tmp_path / "forged.tar")
    assert code in codes(tmp_path / "forged.tar", tmp_path / "scratch", keys)


def list_files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_stranger_and_a_seal_for_something_else_are_told(folder, tmp_path, keys) -> None:
    for name, namespace in (("eve", OFFER), ("ann", DOSSIER)):
        seal_archive(folder, keys / name, namespace, tmp_path / "x.tar")
        found = verify_seal(folder, keys / "signers", OFFER)
        assert {violation.code.word for violation in found.violations} == {"signer-unknown"}


def spoil(folder: Path) -> None:
    (folder / SIGNATURE).write_text("no signature")


@pytest.mark.parametrize("change", [reseal, spoil])
def test_a_signature_of_something_else_is_told_whoever_may_sign(folder, change) -> None:
    """Without the buyer's list of signers any signature will do, but it must be of this manifest."""
    assert not verify_seal(folder, None, OFFER).violations
    told = verify_seal(folder, None, DOSSIER).violations
    change(folder)
    told += verify_seal(folder, None, OFFER).violations
    assert [violation.code.word for violation in told] == ["seal-broken"] * 2


def test_older_rules_are_told(honest: Path, tmp_path: Path, keys: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES_TEXT + "# second issue\n")
    issued = hash_rules(tmp_path / "rules.toml")
    assert codes(honest, tmp_path / "scratch", keys, issued) == {"rules-older"}


@plants("files", "a pipe or a device", "what `offer check` is to check", "", 2,
        "a pipe is not a regular file; | a device is not a regular file; ")  # fmt: skip
@pytest.mark.parametrize("name", ["pipe", "pipe.tar", "/dev/zero"])
def test_a_pipe_and_a_device_are_called_so(tmp_path, name, capsys, declared: Declared) -> None:
    if not name.startswith("/"):
        os.mkfifo(tmp_path / name)
    status = plumbline(tmp_path, "check", str(tmp_path / name))
    declared.check((), status, [capsys.readouterr().err])


@plants("use", "no file, a folder, a public key or an empty file", "`--signers`", "", 2,
        "No such file or directory; name | has no line NAME KEY; | is not a regular file; ")  # fmt: skip
@pytest.mark.parametrize("name", ["none", ".", "ann.pub", "empty"])
def test_signers_are_looked_at_before_anything(honest, tmp_path, keys, name, capsys, declared) -> None:
    (keys / "empty").write_text("# nobody\n")
    for path in (honest, honest.with_name("offer")):
        status = plumbline(tmp_path, "check", str(path), "--signers", str(keys / name))
        declared.check((), status, [capsys.readouterr().err])


def test_the_seal_of_a_folder_is_verified_where_signers_are_named(folder, tmp_path, keys, capsys) -> None:
    signers = ("--signers", str(keys / "signers"))
    assert plumbline(tmp_path, "check", str(folder), *signers) == 0
    assert "signed by ann (SHA256:" in " ".join(capsys.readouterr().out.split())
    (folder / SIGNATURE).unlink()
    assert plumbline(tmp_path, "check", str(folder), *signers) == 1
    assert "seal-missing" in capsys.readouterr().err


def test_whose_key_nobody_looked_up_is_told(honest, tmp_path, keys, capsys) -> None:
    key = find_fingerprint(keys / "ann")
    words = ("compare", str(honest), "--output", str(tmp_path / "pages"))
    for each in (("check", str(honest)), words):
        plumbline(tmp_path, *each)
        told = " ".join("".join(capsys.readouterr()).split())
        assert f"signed by the key {key}: nobody has looked whose key that is" in told
    open_committed(AcceptanceDemand(honest, tmp_path / "accept"), OFFICIAL, Progress())
    assert f"signed by the key {key}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("key", "grave"), [("ann", False), ("eve", True)])
def test_offers_with_the_same_launches_are_told(honest, folder, tmp_path, keys, capsys, key, grave) -> None:
    """They are a reason to reject, unless one and the same has signed both."""
    (folder / "offer.toml").write_text(TOLD_TEXT.replace('"A"', '"B"'))
    other = seal(folder, keys, key)
    words = ("compare", str(honest), str(other), "--output", str(tmp_path / "pages"))
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
        edit(name, value, "1.0")(folder)
    found = check_folder(folder, OFFICIAL, final=True).violations
    assert [(violation.code.word, violation.place) for violation in found] == [("form-other", name)]


def test_an_offer_tells_when_it_was_sealed(tmp_path, keys, capsys) -> None:
    folder = commit(make_offer(tmp_path / "offer"))
    assert plumbline(tmp_path, "seal", str(folder), "--key", str(keys / "ann")) == 0
    sealed = read_sealed(folder)
    assert find_sealed(open_offer(folder)) == parse_utc(sealed).timestamp()
    for old, new in ((sealed, "2099-01-01T00:00:00Z"), ("2099-01-01", "2026-11-20")):
        edit("sealed.json", old, new)(folder)
        found = check_folder(folder, OFFICIAL, final=True).violations
        assert [(violation.code.word, violation.place) for violation in found] == [
            ("clock-backwards", "sealed.json")
        ]
    assert find_sealed(open_offer(folder)) == parse_utc("2026-11-21T09:05:30Z").timestamp()


@plants("lost", "a file of somebody else, where a command is to write one",
        "`offer seal` and `offer compare`", "", 2, "is there, and no output of Plumbline; ")  # fmt: skip
@pytest.mark.parametrize("verb", ["seal", "compare"])
def test_what_plumbline_did_not_write_stays(
    tmp_path, honest, folder, keys, verb, monkeypatch, capsys, declared: Declared
) -> None:
    """And what it did write is written again."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ("offer.tar" if verb == "seal" else "offers/offers.csv")
    words = ("seal", str(folder), "--key", str(keys / "ann"), "--incomplete")
    words = words if verb == "seal" else ("compare", str(honest), "--output", "offers")
    assert plumbline(tmp_path, *words) < 2 and path.read_bytes() != b"mine"
    assert plumbline(tmp_path, *words) < 2
    path.write_text("mine")
    capsys.readouterr()
    status = plumbline(tmp_path, *words)
    declared.check((), status, [capsys.readouterr().err])
    assert path.read_text() == "mine"


def test_offers_side_by_side_go_to_the_work_directory(tmp_path, honest, monkeypatch, capsys) -> None:
    """Wherever the command is started, as in a clone."""
    (here := tmp_path / "clone").mkdir()
    monkeypatch.chdir(here)
    assert plumbline(tmp_path, "compare", str(honest)) < 2
    page = tmp_path / "home" / "offers" / "offers.html"
    assert page.is_file() and capsys.readouterr().out.rstrip().endswith(str(page))
    assert not any(here.iterdir())


def test_texts_of_a_bidder_do_nothing_to_who_reads_them(tmp_path, keys, capsys) -> None:
    """Neither in a terminal nor in a spreadsheet."""
    told = TOLD_TEXT.replace('"A"', r'"=cmd()\u001b[2J"')
    rules = RULES_TEXT.replace('"a sample"', r'"a \u001b[31m sample"')
    path = make_sealed(tmp_path / "offer", keys, rules=rules, told=told)
    plumbline(tmp_path, "check", str(tmp_path / "offer" / RULES), "--no-cost")
    plumbline(tmp_path, "compare", str(path), "--output", str(tmp_path / "pages"))
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
    assert "root " in " ".join(capsys.readouterr().out.split())
    assert plumbline(tmp_path, "check", str(tmp_path / "offer.tar")) == 1
    said = capsys.readouterr()
    assert "told-missing" in said.err and "--signers FILE does" in " ".join(said.out.split())
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
    assert "offer.sealed: 3 rows of 10 launches" in " ".join(capsys.readouterr().out.split())


def test_an_offer_that_commits_to_nothing_is_refused_and_leaves_nothing(tmp_path, keys) -> None:
    demand = AcceptanceDemand(seal(make_offer(tmp_path / "offer"), keys), tmp_path / "accept")
    with pytest.raises(UsageError, match=r"offer\.tar: commits to no row that was measured"):
        open_committed(demand, OFFICIAL, Progress())
    assert not demand.folder.exists()


def open_again(archive: Path, folder: Path, **how: Any) -> None:
    """Open an offer to accept it."""
    open_committed(AcceptanceDemand(archive, folder, **how), OFFICIAL, Progress())


def test_an_acceptance_goes_on_with_its_own_offer_only(honest, folder, tmp_path, keys) -> None:
    open_again(honest, tmp_path / "accept")
    (folder / "offer.toml").write_text(TOLD_TEXT + "# x\n")
    with pytest.raises(UsageError, match=r"accept: is the acceptance of another offer"):
        open_again(seal(folder, keys), tmp_path / "accept")
    open_again(honest, tmp_path / "accept")


def test_what_is_wrong_with_an_offer_to_accept_names_its_archive(folder, tmp_path, keys) -> None:
    (folder / RULES).unlink()
    without_rules = seal(folder, keys)
    with pytest.raises(UsageError, match=rf"^{without_rules}/{RULES}: No such file"):
        open_again(without_rules, tmp_path / "accept")
    reseal(folder)
    pack_folder(folder, list_files(folder), tmp_path / "forged.tar")
    with pytest.raises(UsageError, match=r"forged\.tar: seal-broken"):
        open_again(tmp_path / "forged.tar", tmp_path / "accept")
    assert not (tmp_path / "accept").exists()


def test_an_offer_by_other_rules_than_the_buyers_is_refused_and_leaves_nothing(honest, tmp_path):
    """Also where its acceptance has begun."""
    for there in (False, True):
        with pytest.raises(UsageError, match=r"offer\.tar: rules-older: rules\.toml: is"):
            open_again(honest, tmp_path / "accept", issued="0" * 64)
        assert (tmp_path / "accept").exists() == there
        open_again(honest, tmp_path / "accept")


def compare(tmp_path: Path, *words: object) -> int:
    return plumbline(tmp_path, "compare", *map(str, words), "--output", str(tmp_path / "pages"))


def test_offers_side_by_side_and_missing_is_worst(tmp_path, keys, capsys) -> None:
    archives = []
    for name, slower, drop in (("slow", 2.0, ""), ("fast", 1.0, ""), ("gaps", 0.5, "broadcast")):
        factors = [slower * (1 + each / 1e6) for each in range(5)]
        folder = make_offer(tmp_path / name, factors, told=TOLD_TEXT.replace('"A"', f'"{name}"'))
        archives.append(seal(commit(folder, drop=drop), keys))
    assert compare(tmp_path, *archives, "--signers", keys / "signers") == 0
    told = json.loads((tmp_path / "pages" / "offers.json").read_text())
    assert told["common_rows"] == 1  # the mean is over what all have, not over what each has
    assert [(each["name"], each["merit"], each["responsive"]) for each in told["offers"]] == [
        ("fast", pytest.approx(2.0), True),
        ("slow", pytest.approx(1.0), True),
        ("gaps", pytest.approx(4.0), False),
    ]
    assert told["offers"][2]["worst"] == 0
    assert "missing" in " ".join(capsys.readouterr().out.split())
    page = (tmp_path / "pages" / "offers.html").read_text()
    assert "<svg" in page and "mathdefault" not in page  # marks are numbers, not formulas
    assert (tmp_path / "pages" / "offers.csv").read_text().count("\n") == 1 + 3 * 3


def test_ratios_are_to_a_present_system_measured_by_the_same_rules(tmp_path, keys, capsys) -> None:
    """So are offers to each other."""
    rules = RULES_TEXT.partition("[[reference]]")[0]
    new = make_sealed(tmp_path / "new", keys, factors=[0.5] * 5, rules=rules)
    present = make_offer(tmp_path / "present", [1.2] * 5, rules)
    compare(tmp_path, new, "--present", present)
    told = json.loads((tmp_path / "pages" / "offers.json").read_text())
    ratios = [each["ratios"]["A"] for each in told["rows"]]  # it commits to 1.2 times its slowest
    assert ratios == [pytest.approx(2.0)] * 3
    other = make_sealed(tmp_path / "other", keys, rules=rules + "#\n")
    for words, said in (([new, "--present", other.with_suffix("")], "by other rules than the offers"),
                        ([new, other], "by different rules")):  # fmt: skip
        assert compare(tmp_path, *words) == 2
        assert said in capsys.readouterr().err


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
