"""An offer from its rules to references on simulated machines: as offered, as delivered, and slower."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from postprocess.extensions.procurement.form_rows import COLUMNS
from tests.support.plumbline_runner import Ended, Workshop
from tests.support.simgrid import NO_SIMGRID
from tests.support.simulated_networks import SITE, star

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl: ./plumbline test brings it")
RULES = """\
schema = 1
title = "simulated"
launches = 3
tell = ["offeror"]
[links]
[category.baseline]
text = "as it is"
[[case]]
name = "far"
program = "mpicost"
routine = "pingpong"
bytes = [8]
nodes = "farthest pair"
per_node = "one"
[[case]]
name = "broadcast"
program = "mpicost"
routine = "bcast"
bytes = [8, 1000000]
nodes = "all"
per_node = "core"
[[case]]
name = "beyond"
program = "mpicost"
routine = "bcast"
bytes = [8]
nodes = 9
per_node = "one"
demand = "information"
"""
PATCH = '[[patch]]\nprogram = "mpicost"\nfile = "a.patch"\ntext = "faster"\n'


PATCHED = "--- /dev/null\n+++ b/suite/src/faster.c\n@@ -0,0 +1 @@\n+int faster;\n"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    if shutil.which("smpirun") is None or shutil.which("ssh-keygen") is None:
        pytest.skip(NO_SIMGRID)
    folder = tmp_path_factory.mktemp("offers")
    slow = {f"c{node}": 0.9 for node in range(3)} | {"c3": 0.5}
    machines = {
        "offered": (4, str(star(4, {}).write(folder / "offered.xml"))),
        "slower": (4, str(star(4, slow).write(folder / "slower.xml"))),
    }
    (folder / "drawn.py").write_text(SITE.format(machines=machines))
    (folder / "rules.toml").write_text(RULES)
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ann", "-f", str(folder / "ann")]
    subprocess.run(words, check=True)
    (folder / "signers").write_text(f"ann {(folder / 'ann.pub').read_text()}")
    return Workshop(folder / "home")


@pytest.fixture(scope="module")
def sealed(workshop: Workshop) -> Path:
    """The offer of a bidder, from its measurement to the seal."""
    folder = workshop.home.parent
    offer, site = folder / "offer", ("--site", str(folder / "drawn.py"), "--partition", "offered")
    run = ("offer", "run", str(folder / "rules.toml"), "--output", str(offer), *site)
    first = workshop.run(*run)
    assert first.status == 1 and "told-missing" in first.errors, first.output + first.errors
    assert first.output.splitlines()[-1].endswith(f"./plumbline offer check {offer}"), first.output
    told = (offer / "offer.toml").read_text().replace('offeror = ""', 'offeror = "Acme"')
    (offer / "offer.toml").write_text(told + PATCH)  # which an acceptance needs, too
    (offer / "patches").mkdir()
    (offer / "patches" / "a.patch").write_text(PATCHED)
    again = workshop.run(*run)  # one launch is enough in simulated time: nothing is measured again
    assert again.status == 0 and "pass 2" not in again.said, again.output + again.errors
    assert again.output.splitlines()[-1].endswith(f"./plumbline offer sheet {offer}"), again.output
    assert workshop.run("offer", "sheet", str(offer)).status == 0
    book = openpyxl.load_workbook(offer / "offer.xlsx")
    page = book["offer"]
    own, proposed = (COLUMNS.index(name) + 1 for name in ("committed", "proposed"))
    for line in range(4, page.max_row + 1):
        page.cell(line, own).value = page.cell(line, proposed).value
    book.save(offer / "offer.xlsx")
    workshop.run("offer", "sheet", str(offer), "--read", str(offer / "offer.xlsx")).expect(0)
    key = ("--key", str(folder / "ann"))
    workshop.run("offer", "seal", str(offer), *key, "--output", str(folder / "A.tar")).expect(0)
    return folder / "A.tar"


def accept(workshop: Workshop, sealed: Path, partition: str) -> tuple[Ended, dict]:
    folder = sealed.parent
    words = ("accept", str(sealed), "--site", str(folder / "drawn.py"), "--partition", partition)
    words += ("--signers", str(folder / "signers"), "--key", str(folder / "ann"))
    ended = workshop.run(*words, "--output", str(folder / partition))
    path = folder / partition / "acceptance.json"
    return ended, json.loads(path.read_text()) if path.exists() else {}


def test_the_machine_that_was_offered_is_accepted_and_gets_references(workshop: Workshop, sealed: Path) -> None:
    ended, told = accept(workshop, sealed, "offered")
    assert ended.status == 0, ended.output + ended.errors
    assert told["counts"] == {"met": 4, "missed": 0, "undecided": 0, "not run": 0}
    folder = sealed.parent / "offered"
    signers = ("--signers", str(sealed.parent / "signers"))
    verified = workshop.run("offer", "check", str(folder.with_suffix(".tar")), *signers).expect(0)
    assert "signed by ann" in verified.said and "Accepted: of 4 rows, 4 met" in verified.said
    workshop.run("offer", "references", str(folder)).expect(0)
    workshop.run("references", "propose", "--site", "drawn", "--output", str(folder / "p")).expect(0)
    assert any((folder / "p").rglob("*.tsv"))
    assert workshop.run("offer", "references", str(folder)).status == 2  # each launch once


def test_a_machine_with_slower_links_misses_what_they_carry(workshop: Workshop, sealed: Path) -> None:
    ended, told = accept(workshop, sealed, "slower")
    assert ended.status == 1, ended.output + ended.errors
    verdicts = {each["row"].rpartition("/simgrid")[0]: each["verdict"] for each in told["rows"]}
    assert verdicts == {"far/8": "met", "broadcast/8": "met", "broadcast/1000000": "missed"}
    assert told["links"]["verdict"] == "missed"
    assert [each.partition(":")[0] for each in told["links"]["slow"]] == ["node n3"]


def test_the_protocol_of_another_offer_is_not_gone_on_with(workshop: Workshop, sealed: Path) -> None:
    folder = sealed.parent
    shutil.copytree(folder / "offer", folder / "other")
    with (folder / "other" / "offer.toml").open("a") as file:
        file.write("# more\n")
    key = ("--key", str(folder / "ann"))
    workshop.run("offer", "seal", str(folder / "other"), *key).expect(0)
    ended, _ = accept(workshop, sealed, "offered")
    assert ended.status == 0
    words = ("accept", str(folder / "other.tar"), "--site", str(folder / "drawn.py"))
    refused = workshop.run(*words, "--partition", "offered", "--output", str(folder / "offered"))
    assert refused.status == 2 and "acceptance of another offer" in refused.errors
