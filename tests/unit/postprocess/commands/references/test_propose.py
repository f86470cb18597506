"""A first proposal of many cases is short, unless all rows are asked for."""

from __future__ import annotations

import json

from postprocess.calibration import ledger
from postprocess.commands.references.propose import MOST_LINES, MOST_ROWS
from postprocess.main import main
from tests.support.factories.launch import case
from tests.support.factories.ledger import launch

MANY = tuple(sorted(case("bcast", 8 * size) for size in range(1, 2 * MOST_ROWS)))


def test_many_cases_are_summarised_and_listed_in_a_file(work, capfd, tmp_path):
    """The difference of so many lines is in a file only."""
    report = tmp_path / "proposal.json"
    launches = [launch(1.0, day, cases=MANY) for day in (1, 2, 3)]
    ledger.append_launches(work.root, "20261103T010000Z-1", launches)
    assert main(str(work.source), str(work.root), ["references", "propose", "--json", str(report)]) == 0
    said = capfd.readouterr().out
    told = said.splitlines()
    assert sum(MANY[0].key.split(":bcast:")[0] in line for line in told) == 1
    assert len(told) < MOST_LINES
    (proposal,) = json.loads(report.read_text())["proposals"]
    assert len(proposal["cases"]) == len(MANY)
