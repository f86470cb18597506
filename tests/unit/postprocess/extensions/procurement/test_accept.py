"""An acceptance as it was handed on: an honest one verifies, and each change is told by its code."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.signature import ACCEPTANCE, OFFER, find_fingerprint
from postprocess.cli.output_files import is_own_output
from postprocess.extensions.procurement import protocol as protocol_pages
from postprocess.extensions.procurement.accept import (
    MEASURED,
    OFFERED,
    AcceptanceDemand,
    check_acceptance,
    conclude,
    judge_measured,
    refuse_foreign_launches,
)
from postprocess.extensions.procurement.commitments import Commitment, write_commitments
from postprocess.extensions.procurement.offer import RULES, open_offer
from postprocess.extensions.procurement.protocol import ACCEPT
from postprocess.extensions.procurement.rules.rules import hash_rules
from postprocess.extensions.procurement.sealed import check_folder, open_archive, seal_archive
from postprocess.extensions.procurement.violations import Code, Violation
from postprocess.main import main
from tests.support.factories.offer import (
    DAY,
    DELIVERED,
    OFFICIAL,
    RULES_TEXT,
    edit,
    edit_pass,
    edit_records,
    leave_imb,
    make_offer,
    moment,
    session_of,
)
from tests.support.faults import plants
from tests.support.paths import ROOT

GOOD, SLOW = 1.0, 1.2


Change = Callable[[Path], object]
FACTORS = (1.0, 1.001, 1.002, 1.003, 1.004)  #: by which launches differ
draw_once = cache(protocol_pages.draw_characteristic)


@pytest.fixture(autouse=True)
def one_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same operating characteristic is drawn once: that takes longer than all else of a check."""
    monkeypatch.setattr(protocol_pages, "draw_characteristic", draw_once)


def unchanged(folder: Path) -> None:
    """Leaves a folder as it is."""


def accept(
    folder: Path,
    keys: Path,
    slower: float,
    *,
    forge: Change = unchanged,
    add: Callable[[Path, float, int], object] = lambda folder, slower, day: None,
    rules: str = RULES_TEXT,
) -> Path:
    """A sealed acceptance of a machine so many times as slow as committed; its archive.

    :param forge: changes what was measured, before it is judged
    :param add: adds launches of a machine so many times as slow, of the offer and of what was delivered
    """
    offered = make_offer(folder / OFFERED, rules=rules)
    add(offered, 1.0, DAY)
    rows = [
        Commitment(row.key.key, (max if row.unit == "s" else min)(row.values))
        for row in open_offer(offered).rows
    ]
    write_commitments(offered, hash_rules(offered / RULES), rows)
    seal_archive(offered, keys / "ann", OFFER, folder.with_suffix(".offer.tar"))
    measured = make_offer(folder / MEASURED, [slower * factor for factor in FACTORS], rules, day=DELIVERED)
    add(measured, slower, DELIVERED)
    forge(measured)
    checked = check_folder(offered, OFFICIAL, final=True)
    found, broken = judge_measured(checked, folder, OFFICIAL)
    path = folder.with_suffix(".tar")
    status = conclude(checked, AcceptanceDemand(path, folder, key=keys / "bob"), found, broken, Progress())
    assert status == (1 if broken else found.status)
    seal_archive(folder, keys / "bob", ACCEPTANCE, path)
    return path


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    return accept(tmp_path_factory.mktemp("accepted") / "good", keys, GOOD)


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    """A copy of its folder, to forge."""
    return shutil.copytree(honest.with_suffix(""), tmp_path / "forged")


@pytest.mark.parametrize(("slower", "easy"), [(GOOD, 0), (0.4, 3)])
def test_an_acceptance_tells_how_hard_its_commitments_were(slower, easy, tmp_path, keys) -> None:
    """Of a machine more than twice as fast as committed every row is met, and no row has tested anything."""
    accept(tmp_path / "a", keys, slower)
    told = json.loads((tmp_path / "a" / "acceptance.json").read_text())
    assert told["counts"]["met"] == 3 and told["easy"] == easy
    slacks = sorted(row["slack"] for row in told["rows"])
    assert all((slack > 1.5) == bool(easy) for slack in slacks)
    said = [(tmp_path / "a" / f"acceptance.{each}").read_text() for each in ("html", "md")]
    for text in said:
        assert "how hard the commitments were" in text
        assert "<html" not in text or f'<header class="{"fair" if easy else "good"}">' in text
        assert ("3 commitments of 1.5 times what the machine does" in text) == bool(easy)


def test_an_offer_that_broke_a_run_rule_is_not_accepted(honest, folder, capsys) -> None:
    """As offer check of the acceptance says it."""
    own = check_folder(folder / OFFERED, OFFICIAL, final=True)
    found, broken = judge_measured(own, folder, OFFICIAL)
    demand = AcceptanceDemand(honest, folder)
    assert conclude(own, demand, found, broken, Progress()) == 0
    assert "does not hold" not in " ".join(capsys.readouterr().out.split())
    other = replace(own, violations=(Violation(Code.TOLD_MISSING, "offer.toml", "system"),))
    assert conclude(other, demand, *judge_measured(other, folder, OFFICIAL), Progress()) == 1
    said = "Not accepted: 1 run rule broken (told-missing once); of 3 rows, 3 met"
    assert said in " ".join(capsys.readouterr().out.split())


def protocol(change: Callable[[dict], object]) -> Callable[[Path], object]:
    def forge(folder: Path) -> None:
        path = folder / "acceptance.json"
        told = json.loads(path.read_text())
        change(told)
        path.write_text(json.dumps(told))

    return forge


def newer_rules(folder: Path) -> None:
    """Measures by rules that the bidder never saw."""
    shutil.rmtree(folder / MEASURED)
    rules = RULES_TEXT.replace("launches = 5", "launches = 3")
    make_offer(folder / MEASURED, rules=rules, day=DELIVERED)


def drop_launch(folder: Path) -> None:
    shutil.rmtree(session_of(folder / MEASURED, 5))


def copy_offer(folder: Path) -> None:
    """Takes the launches of the offer for those of the delivered machine."""
    shutil.rmtree(folder / MEASURED)
    ignored = shutil.ignore_patterns("manifest*", "commitments.json")
    shutil.copytree(folder / OFFERED, folder / MEASURED, ignore=ignored)


def measure_before(folder: Path) -> None:
    """Measures what will be delivered before anything was offered."""
    shutil.rmtree(folder / MEASURED)
    make_offer(folder / MEASURED, FACTORS, day=DAY - 2)


def rename_tokens(folder: Path) -> None:
    """Gives the launches of the offer other tokens, names and times: their trials stay."""
    factors = np.exp(np.random.default_rng(3).normal(0.0, 0.01, 5)).tolist()  # as make_offer has
    shutil.rmtree(folder / MEASURED)
    make_offer(folder / MEASURED, factors, day=DELIVERED)


def later_pass(folder: Path) -> None:
    """Tells that a pass was made later than its launches."""
    began, ended = (moment(9, second, DELIVERED) for second in (0, 30))
    edit_pass(folder / MEASURED, 5, began_utc=began, ended_utc=ended)


FORGERIES: list[tuple[set[str], str, Callable[[Path], object]]] = [
    ({"protocol-other"}, "a verdict", protocol(lambda d: d["rows"][0].update(verdict="missed"))),
    ({"protocol-other"}, "a value", protocol(lambda d: d["rows"][0].update(measured=1e-6))),
    ({"protocol-other"}, "its status", protocol(lambda d: d.update(status=1))),
    ({"protocol-other"}, "a table", edit("acceptance.csv", "met", "missed")),
    ({"protocol-other"}, "the page", edit("acceptance.html", "met", "missed")),
    ({"protocol-other"}, "a picture", edit("acceptance.html", "undecided</text>", "met</text>")),
    ({"protocol-other"}, "the Markdown", edit("acceptance.md", "3 met", "4 met")),
    ({"protocol-other"}, "no page", lambda f: (f / "acceptance.md").unlink()),
    ({"protocol-other"}, "who accepted", protocol(lambda d: d["parties"].update(accepted_by=""))),
    ({"protocol-other"}, "a key more", protocol(lambda d: d.update(note="all is well"))),
    ({"told-damaged"}, "what is told", edit("measured/offer.toml", "200.0", "900.0")),
    ({"file-unchecked"}, "a page more", lambda f: (f / "summary.html").write_text("all is well")),
    ({"launch-offered"}, "launches of the offer", copy_offer),
    ({"launch-offered"}, "its launches by other names", rename_tokens),
    ({"launch-before"}, "launches from before the seal", measure_before),
    ({"records-foreign"}, "times of a pass", later_pass),
    ({"protocol-other"}, "no protocol", lambda f: (f / "acceptance.json").unlink()),
    ({"protocol-other", "rules-other"}, "other rules", newer_rules),
    ({"protocol-other", "session-missing"}, "a launch dropped", drop_launch),
    (
        {"protocol-other", "file-changed"},
        "a commitment",
        edit("offer/commitments.json", '"committed": ', '"committed": 1'),
    ),
    (
        {"protocol-other", "launch-incorrect"},
        "a trial",
        lambda f: edit_records(f / MEASURED, lambda r: r[1]["t_max"].__setitem__(7, 1e-9)),
    ),
]


@pytest.mark.parametrize(("codes", "what", "forge"), FORGERIES, ids=[e[1] for e in FORGERIES])
def test_each_forgery_is_told_though_it_is_sealed_anew(folder, tmp_path, keys, codes, what, forge) -> None:
    forge(folder)
    seal_archive(folder, keys / "bob", ACCEPTANCE, tmp_path / "forged.tar")
    found = check_acceptance(folder, OFFICIAL, "", keys / "signers")
    told = {violation.code.word for violation in (*found.violations, *found.broken)}
    assert codes <= told, told


@plants("offers", "the launches of the offer, by their own names or by others, or from before its seal",
        "what was measured of a delivered machine", "", 2,
        "launch-offered: … is the launch …; … choose another --output | launch-before: ")  # fmt: skip
@pytest.mark.parametrize("forge", [copy_offer, rename_tokens, measure_before])
def test_accept_does_not_go_on_with_what_is_no_delivery(folder: Path, forge: Change, declared) -> None:
    offered = check_folder(folder / OFFERED, OFFICIAL, final=True)
    refuse_foreign_launches(offered, folder)
    forge(folder)
    with declared.raises(UsageError):
        refuse_foreign_launches(offered, folder)


def test_launches_of_the_offer_give_no_references(folder, tmp_path, capsys) -> None:
    copy_offer(folder)
    assert main(str(ROOT), str(tmp_path / "home"), ["offer", "references", str(folder)]) == 1
    assert "launch-offered: measured/2026" in capsys.readouterr().err


def test_an_acceptance_tells_who_offered_and_who_accepted(honest, folder, tmp_path, keys) -> None:
    """And if they are one and the same."""
    parties = json.loads((folder / "acceptance.json").read_text())["parties"]
    keys_of = [find_fingerprint(keys / f"{name}.pub") for name in ("ann", "bob")]
    assert [parties[each] for each in ("offered_by", "accepted_by")] == keys_of
    assert parties["offeror"] == "A" and not parties["same"]
    own = check_folder(folder / OFFERED, OFFICIAL, final=True)
    demand = AcceptanceDemand(honest, folder, key=keys / "ann")
    conclude(own, demand, *judge_measured(own, folder, OFFICIAL), Progress())
    seal_archive(folder, keys / "ann", ACCEPTANCE, tmp_path / "same.tar")
    for signers in (keys / "signers", None):  # known by the name, or by the key alone
        found = check_acceptance(folder, OFFICIAL, "", signers)
        assert [violation.title for violation in found.violations] == ["signer-same (noted)"]
    for name in ("acceptance.html", "acceptance.md"):
        assert "one and the same: nobody but the offeror has accepted" in (folder / name).read_text()


def test_an_offers_seal_is_none_of_an_acceptance(folder, tmp_path, keys) -> None:
    seal_archive(folder, keys / "ann", OFFER, tmp_path / "forged.tar")
    found = check_acceptance(folder, OFFICIAL, "", keys / "signers")
    assert {violation.code.word for violation in found.violations} == {"signer-unknown"}


def change_source(folder: Path) -> None:
    """Measures two launches by another source; their values count all the same."""
    for number in (1, 2):
        edit_records(folder, lambda r: r[0].update(source_hash="f" * 16), number=number)


def test_a_broken_run_rule_is_told_wherever_the_outcome_is(tmp_path, keys, capsys):
    """Every row is met: without a word on the rule nobody understands why the machine is not accepted."""
    path = accept(tmp_path / "done", keys, GOOD, forge=change_source)
    outcome = "Not accepted: 1 run rule broken (source-other 2 times); of 3 rows, 3 met"
    place = "source-other: measured/20261123T090100Z-1/luecke"
    told = " ".join(capsys.readouterr().out.split())  # lines are wrapped
    assert f"{outcome}; " in told and f"note: {place}" in told, told
    folder = path.with_suffix("")
    for name in ("acceptance.html", "acceptance.md"):
        text = (folder / name).read_text()
        assert not [each for each in (outcome, place, " and 1 more: ") if each not in text], name
    assert all(is_own_output(folder / name) for name in ACCEPT)  # written anew by the next call
    told = json.loads((folder / "acceptance.json").read_text())
    assert (told["status"], told["broken"], told["counts"]["met"]) == (1, {"source-other": 2}, 3)
    assert "\nrun rule source-other,must,broken 2 times," in (folder / "acceptance.csv").read_text()
    assert main(str(ROOT), str(tmp_path / "home"), ["offer", "check", str(path)]) == 1
    told = capsys.readouterr()
    assert f": {outcome}: 2 violations" in " ".join(told.out.split()) and place in told.err, told.out + told.err


def test_an_archive_that_does_not_hold_is_told_beside_the_outcome(folder, tmp_path, keys, capsys) -> None:
    edit("acceptance.csv", "met", "missed")(folder)
    seal_archive(folder, keys / "bob", ACCEPTANCE, tmp_path / "forged.tar")
    words = ["offer", "check", str(tmp_path / "forged.tar")]
    assert main(str(ROOT), str(tmp_path / "home"), words) == 1
    said = "Accepted: of 3 rows, 3 met; the archive does not hold (protocol-other once): 1 violation"
    assert said in " ".join(capsys.readouterr().out.split())


IMB_RULES = (
    RULES_TEXT
    + """\
[[case]]
name = "latency-empty"
program = "imb"
routine = "pingpong"
bytes = [0]
nodes = "one"
per_node = "two"
[[case]]
name = "bandwidth"
program = "imb"
routine = "uniband"
bytes = [65536]
nodes = "one"
per_node = "two"
better = "higher"
"""
)


def add_imb(folder: Path, slower: float, day: int) -> None:
    for number, factor in enumerate(FACTORS, 1):
        leave_imb(session_of(folder, number), number, slower * factor, day)


@pytest.mark.parametrize(("slower", "status"), [(GOOD, 0), (0.8, 0), (SLOW, 1)])
def test_an_honest_acceptance_verifies_without_its_machine(tmp_path, keys, capsys, slower, status) -> None:
    """Rows of all programs, of empty messages, too, and of a rate, of which a larger one is better."""
    path = accept(tmp_path / "done", keys, slower, add=add_imb, rules=IMB_RULES)
    told = json.loads((path.with_suffix("") / "acceptance.json").read_text())
    assert told["counts"]["missed" if status else "met"] == 5
    assert [row["unit"] for row in told["rows"]] == ["s", "s", "s", "s", "MB/s"]
    words = ["offer", "check", str(path), "--signers", str(keys / "signers")]
    assert main(str(ROOT), str(tmp_path / "home"), words) == status
    said = " ".join(capsys.readouterr().out.split())
    assert "signed by bob" in said
    outcome = "Not accepted: of 5 rows, 5 missed" if status else "Accepted: of 5 rows, 5 met"
    assert f": {outcome}: no violation" in said


def fail_launches(folder: Path) -> None:
    """Cuts short what a start of IMB printed, and loses what OSU's ended with and when mpicost's began."""
    for number, pattern in ((1, "*PingPong*.txt"), (2, "*.osu.*.exit"), (3, "*.mpicost.*.times")):
        (path,) = (session_of(folder, number) / "raw").glob(pattern)
        path.write_text(path.read_text()[:-30])


def test_failed_launches_are_told_alike_wherever_the_acceptance_lies(tmp_path, keys) -> None:
    """Words that name a folder would be others where a buyer opens the archive."""
    path = accept(tmp_path / "done", keys, GOOD, add=add_imb, rules=IMB_RULES, forge=fail_launches)
    open_archive(path, tmp_path / "elsewhere")
    found = check_acceptance(tmp_path / "elsewhere", OFFICIAL, "", keys / "signers")
    assert found.violations == ()
    assert len({violation.place for violation in found.broken}) == 3
    assert not [violation.text for violation in found.broken if str(tmp_path) in violation.text]
