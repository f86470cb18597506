"""The pages of the papers by the commands of docs/papers.md, on simulated machines and on two real MPIs."""

import contextlib
import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import pytest

from postprocess.extensions.papers.command import PAPERS
from postprocess.main import main
from postprocess.report.drawing import FigureCanvasSVG
from tests.support.paper_items import OnPage, list_proven, read_commands
from tests.support.paths import ROOT
from tests.support.plumbline_runner import Workshop

#: What is asked of a page beside its paper
MORE = {
    "rus": ("--against", "T3E-512"),
    "taboada": ("--against", "Myrinet:MPICH-GM", "--theory", "0.5:12500"),
    "luecke2001": ("--processes", "16"),
}
#: Where nobody waits for good numbers. Nothing is calibrated, and so nothing passes.
BRIEF = ("--processes", "2", "--trials", "4", "--strict", "--bytes")
#: Of both MPIs what a page holds against each other
MPIS = {"luecke": "mpich,openmpi", "commtest": "mpich,openmpi", "rus": "mpich", "taboada": "mpich"}
#: The caches of the family that has a table of cold ones over warm ones, which it measures itself
COLD = {"luecke": ("--cache", "flush")}
#: Enough sizes for lines, models and breaks, and few, as MPIs may share the cores with other tests
FEW_SIZES = {
    "luecke": "8,10000",
    "rus": "8,1024,1048576",
    "taboada": "0,16,256,4096,65536,1048576,216,9776",
    "commtest": "8,64,1024,4096,65536,1048576",
}
FAMILY_OF = {paper: paper.removesuffix("2001").removesuffix("2003") for paper in PAPERS}


@dataclass
class Pages:
    """Sessions and pages, each made once, when a test asks for it."""

    workshop: Workshop

    def measure(self, family: str, simulated: bool) -> str:
        """Run the documented command of a family, unless it has run; the session."""
        marker = self.workshop.home / f"{family}-{simulated}"
        if marker.exists():
            return marker.read_text()
        (words,) = (
            words
            for words in read_commands()
            if {"run", "--family", family} <= {*words} and ("simulated" in words) == simulated
            if "--boundaries" not in words and "--set-env" not in words
        )
        brief = (*BRIEF, FEW_SIZES[family], "--mpis", MPIS[family], *COLD.get(family, ()))
        ended = self.workshop.measure(*words[1:], *(() if simulated else brief))
        verdicts = {case["verdict"] for case in ended.summary["cases"]}
        assert verdicts <= {"no-reference", "skipped"}, ended.output
        marker.write_text(ended.summary["session"])
        return ended.summary["session"]

    def show(self, paper: str, simulated: bool, form: str) -> str:
        """Make a page by the documented command."""
        session = self.measure(FAMILY_OF[paper], simulated)
        file = self.workshop.home / f"{paper}-{simulated}.{form}"
        if not file.exists():
            more = MORE.get(paper, ()) if simulated else ()
            words = ("papers", session, "--paper", paper, "--format", form, *more)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                assert main(str(ROOT), str(self.workshop.home), words) == 0
            file.write_text(out.getvalue())
        return file.read_text()


@pytest.fixture(scope="module")
def pages(workshop: Workshop) -> Iterator[Pages]:
    """All pages, whose figures are made and not turned into lines: no test looks at one."""

    def write_empty(_: FigureCanvasSVG, stream: io.StringIO, **__: object) -> None:
        stream.write("<metadata></metadata><defs></defs></svg>")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FigureCanvasSVG, "print_svg", write_empty)
        yield Pages(workshop)


@pytest.mark.parametrize("simulated", [True, False], ids=["simulated", "real"])
@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_by_its_documented_command_lacks_nothing(paper, simulated, pages, sigterm_handler):
    page = pages.show(paper, simulated, "html")
    assert "not measured" not in page.lower()
    assert ">missing<" not in page
    assert "<figure" in page or (not simulated and FAMILY_OF[paper] == "luecke")  # of one count


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_told_as_done_is_on_the_page(paper, pages, sigterm_handler):
    whole = "".join(pages.show(paper, simulated, "html") for simulated in (True, False))
    lacking = {
        (thing, word)
        for thing, proof in list_proven().items()
        if isinstance(proof, OnPage) and proof.paper == paper
        for word in proof.words
        if escape(word, quote=False) not in whole
    }
    assert lacking == set()


@pytest.mark.parametrize("paper", PAPERS)
def test_csv_of_what_was_measured_is_numbers(paper, pages, sigterm_handler):
    rows = list(csv.DictReader(io.StringIO(pages.show(paper, True, "csv"))))
    measured = [row for row in rows if row["part"] == "Measured"]
    numbers = [row for row in measured if row["value"]]
    assert all(math.isfinite(float(row["value"])) for row in numbers)
    assert all(row["note"] for row in measured if not row["value"])
    assert len(numbers) >= 0.8 * len(measured)


def test_a_ping_pong_tells_the_distance_of_its_partner_and_not_who_left_the_barrier(pages):
    """On the hypercube of 4 us a link: one between ranks of a node and of neighbours, else one for each bit."""
    workshop = pages.workshop
    chosen = [1, 2, 3, 4, 6, 7, 8, 16, 31, 32, 62, 64, 65, 126, 127]
    peers = ",".join(map(str, chosen))
    few = ("--site", "simulated", "--partition", "hypercube", "--routine", "pingpong")
    ended = workshop.measure(*few, "--processes", "128", "--bytes", "8", "--peers", peers)
    times = {case["peer"]: case["value"] for case in ended.summary["cases"]}
    assert sorted(times) == chosen
    links = {peer: max(1, bin(peer // 2).count("1")) for peer in times}
    expected = {peer: 4e-6 * number for peer, number in links.items()}
    assert times == pytest.approx(expected, rel=0.03)


def test_two_that_swap_begin_at_the_same_time(pages):
    """A swap of two neighbours takes one message's time, at 2 processes and beside 30 others."""
    workshop = pages.workshop
    few = ("--site", "simulated", "--partition", "hypercube", "--bytes", "8")
    routines = ("--routine", "swap_first_sendrecv,swap_half_sendrecv,swap_next_sendrecv")
    ended = workshop.measure(*few, *routines, "--processes", "2,32", "--per-node", "2")
    half = bin(8).count("1")  # links between rank 0 and rank 16, on node 8
    for case in ended.summary["cases"]:
        links = half if "half" in case["routine"] else 1
        # 34 ns are the 8 bytes, and up to 100 ns the steps in which the lower rank looks at its clock
        assert case["value"] == pytest.approx(4e-6 * links, rel=0.05), case
