"""A whole self-test on a real MPI: an unchanged night and a planted one."""

import json
import subprocess
import sys
from pathlib import Path

import polars
import pytest
from rich.console import Console

from postprocess.base.progress import Progress
from postprocess.extensions.selftest import data
from postprocess.extensions.selftest.command import conclude_selftest
from postprocess.model.interposed import TOLD
from postprocess.session.lifecycle import injections
from tests.support.mpi import of_family
from tests.support.plumbline_runner import ROOT, Ended, Workshop, unflushed

pytestmark = pytest.mark.long

#: A plant that even a busy machine shows, as a rule. Where launches differ by so much that not even this is
#: beyond the call limit, nothing is promised, and that is what this test wants to see.
HUGE = injections.InjectionKind("huge", "31 times as slow", 30.0)
PROGRAM = f"""
import sys
from postprocess.session.lifecycle import injections
from postprocess.main import main
injections.INJECTION_KINDS["huge"] = injections.{HUGE!r}
sys.exit(main(*sys.argv[1:3], sys.argv[3:]))
"""
NIGHTS = (
    "--routine=barrier",
    "--trials=5",
    "--plants=huge",
    "--nights=1",
    "--unchanged=1",
    "--launches=10",
    "--seed=1",
    "--seconds-per-layout=1",  # one launch a night
)


def selftest(workshop: Workshop, *words: str) -> Ended:
    """A self-test with the huge plant."""
    chosen = ("--environment", of_family("mpich").name, *NIGHTS, *words)
    done = subprocess.run(
        [*(sys.executable, "-c", PROGRAM), *(str(ROOT), str(workshop.home), *unflushed(("selftest", *chosen)))],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=workshop.environment(),
        timeout=600,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_nights_differ_in_the_plant_only_and_it_is_caught(tmp_path: Path, monkeypatch):
    workshop, output = Workshop(tmp_path / "home"), tmp_path / "first"
    ended = selftest(workshop, f"--output={output}")
    begun, nights = data.read_selftest(output / data.FILE)
    said = ended.output + ended.errors
    assert (begun.seed, len(nights)) == (1, 2), said
    assert "of one burst" in begun.references

    planted = [row for night in nights for row in night.rows if row.plant]
    assert [(row.target, row.delayed) for row in planted] == [(True, True)], said
    (unchanged,) = [row for night in nights if night.unchanged for row in night.rows]
    assert not unchanged.delayed
    assert unchanged.verdict in ("pass", "cleared", "suspect", "fast", "provisional"), said
    page = json.loads((output / "selftest.json").read_text())
    assert page["scores"]["plants"][0]["sure_missed"] == 0, said
    assert ended.status == bool(page["scores"]["faults"])

    # The library is loaded in every launch, in those of the references too, and delays in some.
    stored = polars.read_parquet(workshop.home / "store" / "*.parquet")
    assert set(stored["mode"]) == {"selftest"}
    assert stored["provenance"].str.contains(TOLD).all()
    (told,) = (output / "references").glob("**/*.provenance.json")
    assert "libdelay.so" in json.dumps(json.loads(told.read_text())["programs"]["mpicost"])

    # Nothing of it counts for a night: not its references, not its calibration.
    assert not list((workshop.home / "references").glob("**/*.tsv"))
    assert not list(workshop.home.glob("calibrations/*"))

    # It is scored again without a launch.
    monkeypatch.setitem(injections.INJECTION_KINDS, "huge", HUGE)
    assert conclude_selftest(output, Progress(Console(quiet=True))) == ended.status

    # References without the library are refused.
    refused = selftest(workshop, f"--references={tmp_path}")
    assert refused.status == 2
    assert "has not 10 launches of each case with the idle library of delays" in refused.errors
