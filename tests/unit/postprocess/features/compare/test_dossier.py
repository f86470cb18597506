"""A signed dossier: what is not proven fine needs a waiver, and whoever changes anything is found out."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.signature import DOSSIER, MANIFEST, SIGNATURE, format_manifest, seal
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, CaseValue, ComparedSide, ComparisonHeader, StoredComparison
from postprocess.features.compare.decision import (
    FILE,
    CaseWaiver,
    SignedDecision,
    decide,
    list_expired,
    read_decision,
)
from postprocess.features.compare.judge import Decision, JudgedComparison, judge_comparison
from postprocess.features.compare.pairs import draw_block
from postprocess.main import main
from tests.support.factories.comparison import failing, make_pass, write_comparison
from tests.support.faults import Declared, plants

BCAST, BARRIER = "cpu/mpicost/bcast/warm-barrier/2x2/8", "cpu/mpicost/barrier/warm-barrier/2x2/0"
HEADER = ComparisonHeader(
    *("local", ComparedSide("a", "mpich-4"), ComparedSide("b", "mpich-5"), {}, (0.05,) * 3),
    *(None, False, 7, (), "2026-11-23T00:00:00Z", ()),
)
LATER = (date.today() + timedelta(days=9)).isoformat()
WAIVED = ("--waive", "cpu/mpicost/bcast/*", "--reason", "none broadcasts", "--until", LATER,
          "--factor", "1.5")  # fmt: skip

#: What the same asks for.
ASKED = CaseWaiver("cpu/mpicost/bcast/*", "none broadcasts", LATER, (), ("slower", "undecided"), 1.5, "")

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")


@pytest.fixture
def dossier(tmp_path: Path) -> Path:
    """Six pairs: bcast is a third slower, barrier the same."""
    passes = []
    for block in range(1, 4):
        for position, side in enumerate(draw_block(7, block)):
            off = 1 + 0.001 * ((3 * block + 2 * position) % 5)
            slow = 1.33 if side == NEW else 1.0
            cases = {BCAST: CaseValue(1e-6 * off * slow, "s"), BARRIER: CaseValue(1e-6 * off, "s")}
            passes.append(make_pass(block, position, side, cases))
    folder = tmp_path / "dossier"
    write_comparison(folder / data.FILE, StoredComparison(HEADER, (6,), tuple(passes)))
    return folder


def judge(folder: Path) -> JudgedComparison:
    return judge_comparison(data.read_comparison(folder / data.FILE))


@pytest.fixture
def run(tmp_path: Path, dossier: Path) -> Callable[..., int]:
    def run_verb(verb: str, *words: str, command: str = "dossier") -> int:
        return main(str(tmp_path), str(tmp_path / "home"), (command, verb, str(dossier), *words))

    return run_verb


@pytest.fixture
def sign(run: Callable[..., int], keys: Path) -> Callable[..., int]:
    return lambda *words, **more: run("sign", *words, "--key", str(keys / "ann"), **more)


@pytest.fixture
def verify(run: Callable[..., int], keys: Path) -> Callable[..., int]:
    return lambda **more: run("verify", "--signers", str(keys / "signers"), **more)


def test_what_is_slower_is_not_accepted_without_a_waiver_which_pages_show(sign, verify, dossier, capsys):
    """By the command ``compare`` as well as by ``dossier``."""
    assert sign("--accept") == 2
    assert f"1 case slower, undecided, failed or missing: {BCAST}" in capsys.readouterr().err
    assert not (dossier / SIGNATURE).exists()
    assert sign("--accept", *WAIVED, command="compare") == 0
    assert verify(command="compare") == 0
    out, when = " ".join(capsys.readouterr().out.split()), read_decision(dossier).decided_utc
    waived = "cpu/mpicost/bcast/* (1 case; slower, undecided, 1.5 times at most): none broadcasts"
    assert f"accepted by ann at {when}" in out and waived in out
    for page in ("comparison.html", "comparison.md"):
        text = (dossier / page).read_text()
        assert f"waived until {LATER}" in text and "times at most): none broadcasts" in text
        assert f"accepted at {when}" in text
    subprocess.run(["sha256sum", "-c", MANIFEST], cwd=dossier, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: (d / "comparison.html").write_text("safe"), "comparison.html: was changed"),
        (lambda d: (d / "passes.jsonl").unlink(), "passes.jsonl: is missing"),
        (lambda d: (d / "a\x1b[2Jb").write_text(""), r"a\x1b[2Jb: is not in the manifest"),
    ],
)
def test_whoever_changes_a_file_is_found_out(sign, verify, dossier, capsys, change, said) -> None:
    """What others write is shown without what a terminal obeys."""
    assert sign("--reject", "--reason", "slow") == 0
    change(dossier)
    assert verify() == 1
    assert said in capsys.readouterr().err


def test_a_forger_who_makes_the_sums_right_is_found_out(sign, verify, dossier, capsys) -> None:
    assert sign("--reject", "--reason", "slow") == 0
    (dossier / "comparison.html").write_text("safe")
    (dossier / MANIFEST).write_text(format_manifest(dossier))
    assert verify() == 2
    assert "not by a signer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "purpose", "status"), [("ann", DOSSIER, 0), ("eve", DOSSIER, 2), ("ann", "file", 2)]
)
def test_neither_a_stranger_nor_a_signature_for_something_else_counts(
    sign, verify, dossier, keys, capsys, name, purpose, status
) -> None:
    assert sign("--accept", *WAIVED) == 0
    (dossier / SIGNATURE).unlink()
    words = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(keys / name), "-n", purpose]
    subprocess.run([*words, str(dossier / MANIFEST)], check=True, capture_output=True)
    assert verify() == status
    assert ("not by a signer" in capsys.readouterr().err) is bool(status)


def test_a_key_that_cannot_sign_leaves_no_seal(run, dossier, tmp_path, capsys) -> None:
    (tmp_path / "none").write_text("no key")
    assert run("sign", "--accept", *WAIVED, "--key", str(tmp_path / "none")) == 2
    assert "cannot sign" in capsys.readouterr().err
    assert not (dossier / MANIFEST).exists()


#: What a waiver is refused for, and what of it is otherwise: a pattern, reason, day, verdicts or factor.
REFUSED = [
    ({"reason": ""}, "needs --reason"),
    ({"reason": "why"}, "needs --reason, of 10 letters or more"),
    ({"until": ""}, "a waiver needs a last day"),
    ({"until": "2020-01-01"}, "--until 2020-01-01: is over"),
    ({"until": "9999-12-31"}, "is more than 400 days ahead"),
    ({"until": "٢٠٢٧-01-01"}, "is not a day such as"),
    ({"pattern": "cpu/mpicost/barrier/*"}, "matches no case that needs a waiver"),
    *(({"pattern": each}, "fits every routine; name one") for each in
      ("*", "cpu/*", "cpu/mpicost/*", "*/*/?*/*/*/*", "cpu/mpicost/*-*/warm-barrier/*")),
    *(({"pattern": each}, "is not a pattern of") for each in ("*bcast*", "*/bcast", "*[a-z]*/b/*", "")),
    ({"verdicts": ("faster",)}, "'faster' is none of"),
    ({"verdicts": ("broken",)}, "matches no case that needs a waiver, of these verdicts"),
    *(({"factor": each}, "needs --factor") for each in (None, 1.0, -1.0, 1e6)),
    ({"factor": 1.1}, "matches no case that needs a waiver, of these verdicts and within"),
]  # fmt: skip


@plants("use", "one for everything, for ever, without a reason, or beyond what it names, in 20 ways",
        "a waiver of `dossier sign`", "", 2,
        "--waive … | --until | --verdicts: ")  # fmt: skip
@pytest.mark.parametrize(("change", "said"), REFUSED)
def test_a_waiver_keeps_the_rules_of_expected_failures(dossier, change, said, declared) -> None:
    asked = replace(ASKED, **change)
    with declared.raises(UsageError, match=re.escape(said)):
        decide(judge(dossier), True, [asked], asked.reason)


@plants("use", "wrong data on the new side", "what a waiver of `dossier sign` covers", "", 2,
        "received wrong data, which is never waived")  # fmt: skip
def test_wrong_data_are_never_waived(dossier: Path, declared: Declared) -> None:
    stored = data.read_comparison(dossier / data.FILE)
    wrong = make_pass(4, 0, NEW, {BCAST: failing("incorrect", "rank 1 received 0")})
    judged = judge_comparison(replace(stored, passes=(*stored.passes, wrong)))
    asked = replace(ASKED, verdicts=("broken",), factor=None)
    with declared.raises(UsageError):
        decide(judged, True, [asked], asked.reason)


@plants("use", "a planted delay, also one that the header does not tell", "`dossier sign`", "", 2,
        "has a planted delay (…): it shows what is noticed, and validates nothing")  # fmt: skip
@pytest.mark.parametrize("accept", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        {"new": replace(HEADER.new, plant="slower-10:bcast")},
        {"differences": (("planted delay", "none", "slower-10:bcast"),)},
        {"command": ("./plumbline", "compare", "a", "b", "--plant", "slower-10:bcast")},
    ],
)
def test_a_comparison_with_a_plant_is_never_signed(dossier, accept, change, declared) -> None:
    planted = replace(judge(dossier), header=replace(HEADER, **change))
    with declared.raises(UsageError):
        decide(planted, accept, [], "it is slower")


@plants("use", "a comparison that is void", "`dossier sign --accept`", "", 2,
        "is void; measure again")  # fmt: skip
def test_a_void_comparison_cannot_be_accepted(dossier: Path, declared: Declared) -> None:
    with declared.raises(UsageError):
        decide(replace(judge(dossier), decision=Decision.VOID), True, [], "")


def test_a_waiver_ends() -> None:
    days = ("2020-01-01", "9999-12-31")
    waivers = tuple(CaseWaiver("*", "why", day, (), (), None, "") for day in days)
    decision = SignedDecision("accepted", "", "why", waivers, "2019-01-01T00:00:00Z")
    assert [waiver.until for waiver in list_expired(decision)] == ["2020-01-01"]


def edit_decision(folder: Path, **changes) -> None:
    path = folder / FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_waiver(folder: Path, **changes) -> None:
    (waiver,) = json.loads((folder / FILE).read_text())["waivers"]
    edit_decision(folder, waivers=[waiver | changes])


def edit_page(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return edit


SIGNED_BY_HAND = {
    "a page": edit_page("comparison.html", "slower", "faster"),
    "the Markdown": edit_page("comparison.md", "1.33", "0.33"),
    "the JSON": edit_page("comparison.json", '"not safe"', '"safe"'),
    "no page": lambda folder: (folder / "comparison.md").unlink(),
    "a time": edit_page("passes.jsonl", "1.33", "1.03"),
    "another decision": lambda folder: edit_decision(folder, decision="perhaps"),
    "no waiver": lambda folder: edit_decision(folder, waivers=[]),
    "a waiver for ever": lambda folder: edit_waiver(folder, until="9999-12-31"),
    "a waiver for everything": lambda folder: edit_waiver(folder, pattern="*"),
    "more cases": lambda folder: edit_waiver(folder, cases=[BCAST, BARRIER]),
    "a larger factor": lambda folder: edit_waiver(folder, factor=1.2),
    "no reason": lambda folder: edit_decision(folder, reason=""),
    "another sentence": lambda folder: edit_decision(folder, sentence="a to b: safe; 2 same"),
    "a day to come": lambda folder: edit_decision(folder, decided_utc="2099-01-01T00:00:00Z"),
}


@plants("offers", "a page, a figure, a waiver or the decision, signed by hand, in 14 ways",
        "a dossier", "", 1,
        "is not what … say; sign it anew | decision.json: … | cannot be read: ")  # fmt: skip
@pytest.mark.parametrize("what", SIGNED_BY_HAND)
def test_what_sign_would_not_sign_does_not_verify(sign, verify, dossier, keys, what, capsys, declared) -> None:
    assert sign("--accept", *WAIVED) == 0
    SIGNED_BY_HAND[what](dossier)
    seal(dossier, keys / "ann", DOSSIER)
    capsys.readouterr()
    declared.check((), verify(), [capsys.readouterr().err])


@plants("files", "a name with a line break, or that is not UTF-8", "a folder to be sealed", "", 2,
        "has a name that no manifest can hold; rename it")  # fmt: skip
@pytest.mark.parametrize("name", [b"a\n0000  b", b"\xff\xfe"])
def test_a_manifest_holds_names_of_one_line(dossier: Path, name: bytes, declared: Declared):
    Path(os.fsdecode(os.fsencode(dossier) + b"/" + name)).write_text("")
    with declared.raises(UsageError):
        format_manifest(dossier)


@plants("files", "a pipe in the place of a file", "the key, the signers or the seal of a dossier",
        "", 2, "is not a regular file; ")  # fmt: skip
@pytest.mark.parametrize("name", ["key", "signers", MANIFEST, SIGNATURE])
def test_ssh_waits_for_no_pipe(run, dossier, keys, tmp_path, name, capsys, declared) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if name == "key":
        words = ["sign", "--reject", "--reason", "why", "--key", str(pipe)]
    else:
        run("sign", "--reject", "--reason", "why", "--key", str(keys / "ann"))
        if name != "signers":
            pipe.replace(dossier / name)
        words = ["verify", "--signers", str(pipe if name == "signers" else keys / "signers")]
    status = run(*words)
    declared.check((), status, [capsys.readouterr().err])


#: A line, what in it, and what it becomes.
IMPOSSIBLE = [
    *((3, ("launches", 0, "cases", BCAST, "value"), value)
      for value in (0, -1e-6, 1e-320, 1e13, 1e308, None)),
    (3, ("launches", 0, "cases", BCAST, "verdict"), "pass"),
    (3, ("launches", 0, "cases", BCAST, "unit"), "furlong"),
    (3, ("launches", 0, "cases", "cpu/a/b/c/d/e/f/8"), {"value": 1.0, "unit": "s"}),
    (3, ("launches", 0, "cases", "cpu/a/b/c-d/2x2/eight"), {"value": 1.0, "unit": "s"}),
    *((3, ("block",), value) for value in (-1, 2**63)),
    *((3, (key,), value) for key, value in
      (("session", "../x"), ("session", "/etc"), ("position", -1), ("side", "middle"),
       ("seconds", -1.0), ("record", "other"))),
    *((0, ("margins",), [value] * 3) for value in (0, -1, 1e200)),
    *((1, ("looks",), value) for value in ([0], [1], [-5], [10**18])),
]  # fmt: skip


@plants("files", "a number, key, unit, verdict or side that cannot be, in 25 ways",
        "the passes of a comparison", "", 2, "is damaged; choose another folder")  # fmt: skip
@pytest.mark.parametrize(("line", "place", "value"), IMPOSSIBLE)
def test_what_no_comparison_writes_is_refused(dossier, line, place, value, declared) -> None:
    path = dossier / data.FILE
    entries = [json.loads(each) for each in path.read_text().splitlines()]
    node = entries[line]
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    with declared.raises(UsageError):
        data.read_comparison(path)
