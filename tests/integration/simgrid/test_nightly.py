"""Simulated machines as a user runs them, held against the references that come with Plumbline."""

import json

import pytest

from postprocess.extensions.papers.commtest import build_contention_tables
from postprocess.extensions.papers.measurements import arrange_sessions
from postprocess.extensions.papers.taboada_models import fit_measured
from postprocess.results.summary import load_summary
from tests.support.faults import Declared, plants
from tests.support.plumbline_runner import ROOT, Workshop

FEW = ("--site", "simulated", "--environment", "simgrid-mpich", "--processes", "16,17")
FEW += ("--partition", "hypercube", "--routine", "barrier,bcast,gather", "--strict")


def test_a_strict_run_of_this_program_passes_against_the_references_that_come_with_it(workshop):
    ended = workshop.measure(*FEW).expect(0)
    assert {case["verdict"] for case in ended.summary["cases"]} == {"pass"}
    assert {case["processes"] for case in ended.summary["cases"]} == {16, 17}
    records = list(workshop.home.glob("sessions/*/raw/*.jsonl"))
    assert records
    for file in records:  # the order of the cases can matter, and must repeat
        assert json.loads(file.read_text().splitlines()[0])["seed"] == 1


@plants("stale", "the collectives of another MPI, which nobody planned", "a simulated machine",
        "incorrect", 1,
        "nothing on standard error says 'Switch to algorithm mpich for collective ")  # fmt: skip
def test_a_selector_that_was_not_asked_for_is_incorrect(workshop: Workshop, declared: Declared):
    declared.check_session(workshop.measure(*FEW, "--set-env", "simgrid-mpich:SMPI_SELECTOR=ompi"))


def test_a_simulated_machine_without_references_is_calibrated_with_one_launch(workshop, tmp_path):
    """A copy of the site has another name, and so nothing to be held against."""
    site = tmp_path / "copy.py"
    text = (ROOT / "site_configs" / "simulated.py").read_text()
    site.write_text(text.replace('    "simulated",', '    "copy",'))
    few = ("--partition", "ethernet", "--processes", "2", "--per-node", "1", "--routine", "barrier")
    ended = workshop.measure("--site", str(site), *few).expect(0)
    assert "calibrating with 1 launch. Simulated time repeats exactly" in ended.said
    assert [case["verdict"] for case in ended.summary["cases"]] == ["pass"]


#: Of site_configs/platforms/fattree.xml: a link between two nodes under one leaf, and between ranks of a node
LATENCY, RATE = 0.25e-6, 12.5e9
RENDEZVOUS = 65536  #: bytes from which SMPI's sender waits for the receiver: half a message without data more
SIZES = "0,1,16,256,4096,65536,1048576,216,9776,236104"


def test_models_of_a_simulated_machine_are_what_its_platform_file_says(workshop: Workshop):
    """A message takes the latencies of its links and n over their rate."""
    few = ("--site", "simulated", "--partition", "fattree", "--environment", "simgrid-mpich")
    routines = ("--routine", "pingpong,swap_first_sendrecv,swap_half_sendrecv", "--peers", "1")
    layouts = ("--processes", "2,8", "--per-node", "1,4")
    ended = workshop.measure(*few, *routines, *layouts, "--bytes", SIZES)
    sessions = workshop.home / "sessions"
    newest = max(sessions.iterdir(), key=lambda each: each.name)
    results = load_summary(newest / "summary.json").results
    eager = [result for result in results if result.case.bytes < RENDEZVOUS]
    assert ended.summary["cases"]
    fitted = fit_measured(arrange_sessions({"": eager}))
    (send,) = [model for model in fitted if model.routine == "send"]
    (fit,) = send.fits.values()
    links = round(fit.t0 / LATENCY)
    assert fit.t0 == pytest.approx(links * LATENCY, rel=0.02)
    assert fit.tb == pytest.approx(1 / RATE, rel=1e-3)
    assert abs(fit.ti) < 0.01 * fit.t0
    assert len(fit.segments) == 1
    assert fit.held_out == 2
    assert max(fit.errors.values()) < 0.01
    rows = build_contention_tables(arrange_sessions({"": results}))[0].rows
    assert {row[3] for row in rows} == {"i with i+P/2"}
    # four pairs on the link between two nodes have a quarter of it each; one pair tells nothing
    assert {row[4]: row[8] for row in rows} == {"8": "0.25"}
