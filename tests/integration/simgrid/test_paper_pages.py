"""The pages of the papers by the commands of docs/papers.md, on simulated machines and on two real MPIs."""

from __future__ import annotations

import csv
import io
import math
import shutil
from collections.abc import Mapping

import pytest

from postprocess.analyses.papers.forms import PAPERS
from postprocess.model.routines.paper_families import PAPER_FAMILIES
from tests.support.mpi import of_family
from tests.support.paper_items import OnPage, list_proven, read_commands
from tests.support.plumbline_runner import Workshop
from tests.support.simgrid import NO_SIMGRID

#: What is asked of a page beside its paper
MORE = {
    "rus": ("--against", "T3E-512"),
    "taboada": ("--against", "Myrinet:MPICH-GM", "--theory", "0.5:12500"),
    "luecke2001": ("--processes", "32"),
}
#: Where nobody waits for good numbers. Nothing is calibrated, and so nothing passes.
BRIEF = ("--mpis", "mpich,openmpi", "--processes", "2", "--trials", "4", "--strict", "--bytes")
#: Enough sizes for lines, models and breaks, and few, as MPIs may share the cores with other tests
FEW_SIZES = {
    "luecke": "8,10000",
    "rus": "8,1024,1048576",
    "taboada": "0,16,256,4096,65536,1048576,216,9776",
    "commtest": "8,64,1024,4096,65536,1048576",
}
FAMILY_OF = {paper: paper.removesuffix("2001").removesuffix("2003") for paper in PAPERS}


@pytest.fixture(scope="module")
def sessions(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Workshop, Mapping[str, dict[bool, str]]]:
    """A session of each command that measures a family, by family and whether it is simulated."""
    if shutil.which("smpirun") is None:
        pytest.skip(NO_SIMGRID)
    for name in ("mpich", "openmpi"):
        of_family(name)
    workshop = Workshop(tmp_path_factory.mktemp("pages") / "home")
    found: dict[str, dict[bool, str]] = {}
    for words in read_commands():
        if words[0] != "run" or "--family" not in words:
            continue
        family = words[words.index("--family") + 1]
        if family in PAPER_FAMILIES:
            simulated = "simulated" in words
            brief = () if simulated else (*BRIEF, FEW_SIZES[family])
            ended = workshop.measure(*words[1:], *brief)
            verdicts = {case["verdict"] for case in ended.summary["cases"]}
            assert verdicts <= {"no-reference", "skipped"}, ended.output
            found.setdefault(family, {})[simulated] = ended.summary["session"]
    return workshop, found


@pytest.fixture(scope="module")
def pages(sessions) -> dict[str, list[dict[str, str]]]:
    """Each page in two forms: of the simulated session, and of the real one."""
    workshop, found = sessions
    made: dict[str, list[dict[str, str]]] = {}
    for paper in PAPERS:
        for simulated, name in found[FAMILY_OF[paper]].items():
            more = MORE.get(paper, ()) if simulated else ()
            forms = {}
            for form in ("html", "csv"):
                ended = workshop.run("papers", name, "--paper", paper, "--format", form, *more)
                assert ended.status == 0, ended.errors
                forms[form] = ended.output
            made.setdefault(paper, []).append(forms)
    return made


def test_each_family_is_measured_simulated_and_on_this_machine(sessions):
    assert {family: len(names) for family, names in sessions[1].items()} == dict.fromkeys(
        PAPER_FAMILIES, 2
    )


@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_by_its_documented_command_lacks_nothing(paper, pages):
    for forms in pages[paper]:
        assert "not measured" not in forms["html"].lower()
        assert ">missing<" not in forms["html"]
        assert "<figure>" in forms["html"]


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_told_as_done_is_on_the_page(paper, pages):
    whole = "\n".join(forms["html"] for forms in pages[paper])
    lacking = {
        (thing, word)
        for thing, proof in list_proven().items()
        if isinstance(proof, OnPage) and proof.paper == paper
        for word in proof.words
        if word not in whole
    }
    assert lacking == set()


@pytest.mark.parametrize("paper", PAPERS)
def test_csv_of_what_was_measured_is_numbers(paper, pages):
    for forms in pages[paper]:
        rows = list(csv.DictReader(io.StringIO(forms["csv"])))
        measured = [row for row in rows if row["part"] == "Measured"]
        numbers = [row for row in measured if row["value"]]
        assert all(math.isfinite(float(row["value"])) for row in numbers)
        assert all(row["note"] for row in measured if not row["value"])
        assert len(numbers) > 0.8 * len(measured)


def test_a_ping_pong_tells_the_distance_of_its_partner_and_not_who_left_the_barrier(sessions):
    """On the hypercube of 4 us a link: one between ranks of a node and of neighbours, else one for each bit."""
    workshop, _ = sessions
    peers = ",".join(map(str, range(1, 128)))
    few = ("--site", "simulated", "--partition", "hypercube", "--routine", "pingpong")
    ended = workshop.measure(*few, "--processes", "128", "--bytes", "8", "--peers", peers)
    times = {case["peer"]: case["value"] for case in ended.summary["cases"]}
    assert sorted(times) == [*range(1, 128)]
    links = {peer: max(1, bin(peer // 2).count("1")) for peer in times}
    expected = {peer: 4e-6 * number for peer, number in links.items()}
    assert times == pytest.approx(expected, rel=0.03)


def test_two_that_swap_begin_at_the_same_time(sessions):
    """A swap of two neighbours takes one message's time, at 2 processes and beside 126 others."""
    workshop, _ = sessions
    few = ("--site", "simulated", "--partition", "hypercube", "--bytes", "8")
    routines = ("--routine", "swap_first_sendrecv,swap_half_sendrecv,swap_next_sendrecv")
    ended = workshop.measure(*few, *routines, "--processes", "2,128", "--per-node", "2")
    half = bin(32).count("1")  # links between rank 0 and rank 64, on node 32
    for case in ended.summary["cases"]:
        links = half if "half" in case["routine"] else 1
        assert case["value"] == pytest.approx(4e-6 * links, rel=0.03), case
