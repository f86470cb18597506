"""Comparisons of simulated machines, whose true ratios are known: what is said of them must be exactly that."""

import json
from pathlib import Path
from typing import Any

import pytest

from postprocess.features.compare import data
from postprocess.references.reference_file import load_references
from tests.support.faults import Declared, plants
from tests.support.killed_comparison import kill_after_first_pass
from tests.support.paths import ROOT
from tests.support.plumbline_runner import Workshop
from tests.support.simulated_machine import machine_with

SELECTORS = ("simgrid-mpich", "simgrid-ompi")
#: Where one of them is slower with some sizes and faster with others.
FEW = ("--site", "simulated", "--partition", "fattree", "--processes", "4", "--per-node", "4")
FEW += ("--routine", "bcast,pingpong")
TICK = 2e-9  #: seconds; the clock has steps of a nanosecond, and a time has two ends
NEAR = 0.002  #: the same in a time of 2 us
FACTOR = 1.04  #: of latencies, and of the time that a link needs for a byte
TORUS = ("--site", "simulated", "--partition", "torus", "--processes", "8")
TORUS += ("--routine", "bcast,pingpong", "--bytes", "8,1000000")


def compare(workshop: Workshop, status: int, *words: str) -> dict[str, Any]:
    """The result of a comparison with this exit status."""
    file = workshop.home / "comparison.json"
    file.unlink(missing_ok=True)
    workshop.run("compare", *words, "--json", str(file)).expect(status)
    return json.loads(file.read_text())


@plants("lost", "SIGKILL of the driver and its process group in the middle of a block", "a comparison",
        "", 1, "passes done")  # fmt: skip
def test_two_selectors_differ_by_just_what_their_references_do_though_it_was_killed(
    workshop: Workshop, tmp_path: Path, declared: Declared
) -> None:
    folder = tmp_path / "dossier"
    words = (*SELECTORS, *FEW)
    before = kill_after_first_pass(workshop, folder, 1, *words)
    ended = workshop.run("compare", *words, "--output", str(folder))
    assert (folder / data.FILE).read_bytes().startswith(before)
    declared.check((), ended.status, [ended.output + ended.errors])
    found = json.loads((folder / "comparison.json").read_text())
    roots = [ROOT / "reference_data" / "simulated" / "fattree" / f"{name}.tsv" for name in SELECTORS]
    times = [
        {
            (case.label, case.bytes, case.layout): each.center
            for case, each in load_references(path, "simulated", "fattree", path.stem).items()
        }
        for path in roots
    ]
    assert found["looks"] == [2] and found["pairs"] == 2
    verdicts = set()
    for case in found["cases"]:
        key = (case["label"], case["bytes"], case["layout"])
        ratio = times[1][key] / times[0][key]
        assert case["ratio"] == pytest.approx(ratio, rel=TICK / times[0][key] + TICK / times[1][key]), key
        slow, same = ratio > 1.05, 1 / 1.05 < ratio < 1.05
        assert case["verdict"] == ("same" if same else "slower" if slow else "faster"), key
        verdicts.add((case["label"], case["verdict"]))
    assert {verdict for _, verdict in verdicts} == {"same", "slower", "faster"}
    assert {verdict for label, verdict in verdicts if label.startswith("pingpong")} == {"same"}
    assert found["unchanged"]["verdicts"] == {"same": len(found["cases"])}


def test_a_network_that_is_slower_throughout_slows_every_case_by_as_much(
    workshop: Workshop, tmp_path: Path
) -> None:
    """By less than the margin: each message takes 4% longer, which is the same."""
    latency, bandwidth = f'lat="{1.8 * FACTOR!r}us"', f'bw="{350 / FACTOR!r}MBps"'
    slower = machine_with(tmp_path, "torus", ('lat="1.8us"', latency), ('bw="350MBps"', bandwidth))
    own = ("--new-env", f"SMPI_PLATFORM={slower}")
    found = compare(workshop, 0, "simgrid-mpich", "simgrid-mpich", *TORUS, *own)
    assert found["counts"] == {"same": len(found["cases"])}
    for case in found["cases"]:
        assert case["ratio"] == pytest.approx(FACTOR, rel=NEAR), case["key"]
