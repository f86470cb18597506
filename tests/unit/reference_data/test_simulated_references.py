"""The references of simulated machines, as they come with Plumbline."""

import json
from pathlib import Path

from tests.support.plumbline_runner import ROOT

REFERENCES = ROOT / "reference_data" / "simulated"


def known(place: str) -> list[list[str]]:
    """The rows of a reference file, without its header."""
    lines = (REFERENCES / f"{place}.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines[1:]]


def test_the_references_that_come_with_plumbline_are_exact_and_of_every_machine():
    files = sorted(path.relative_to(REFERENCES).as_posix() for path in REFERENCES.rglob("*.tsv"))
    selectors = ("impi", "mpich", "mvapich2", "ompi")
    assert files == sorted(
        [f"fattree/simgrid-{name}.tsv" for name in selectors]
        + [f"{name}/simgrid-mpich.tsv" for name in ("ethernet", "hypercube", "myrinet", "torus")]
    )
    for file in files:
        rows = known(file.removesuffix(".tsv"))
        assert len(rows) > 300
        assert all("exact" in row for row in rows)


def test_provenance_of_a_simulated_reference_names_no_machine():
    for path in sorted(REFERENCES.rglob("*.provenance.json")):
        origin = json.loads(path.read_text())
        assert set(origin["machine"]) == {"simulated"}
        assert str(Path.home()) not in path.read_text()
