"""Sessions that answer one question each on a real MPI: what they flush, what is planted, and kernels."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from postprocess.main import main
from tests.support.faults import Declared, plants
from tests.support.mpi import Installation
from tests.support.mpicost import program
from tests.support.paths import ROOT
from tests.support.plumbline_runner import Ended, Workshop

pytestmark = pytest.mark.long

BARRIER = ("--program", "mpicost", "--routine", "barrier", "--processes", "2", "--trials", "5")
#: On request; one process, two on one node
KERNELS = ("--program", "kernels", "--routine", "crypt_A,crypt_A_compute", "--mpis", "mpich")


def read_run(workshop: Workshop, ended: Ended) -> dict[str, Any]:
    """The run record of the one launch of a session."""
    (file,) = (workshop.home / "sessions" / ended.summary["session"]).glob("raw/*.jsonl")
    return json.loads(file.read_text().splitlines()[0])


def test_what_sessions_flush(workshop: Workshop, mpich: Installation) -> None:
    """Nothing; and with ``--cache flush`` as much as the caches hold, which few trials show."""
    runs = []
    for words, cache in (((), "warm"), (("--cache", "flush"), "flush")):
        ended = workshop.measure("--environment", mpich.name, *BARRIER, "--strict", *words)
        (case,) = ended.summary["cases"]
        assert (case["verdict"], case["variant"].partition("-")[0]) == ("no-reference", cache)
        runs.append(read_run(workshop, ended))
    warm, flushed = runs
    assert (warm["cache"], warm["flush_bytes"]) == ("warm", 0)
    assert flushed["cache"] == "flush"
    assert flushed["flush_bytes"] >= max(cache["bytes"] for cache in flushed["caches"])


@plants("speed", "the library of the self-test, preloaded by hand", "mpicost", "incorrect", 1,
        "delays are planted into it")  # fmt: skip
def test_the_library_in_a_night_or_a_calibration_is_incorrect(
    workshop: Workshop, mpich: Installation, tmp_path: Path, declared: Declared
) -> None:
    """Whoever preloads it by hand gets no verdict on speed, and no reference."""
    delay = {
        "LD_PRELOAD": program("mpich").build / "libdelay.so",
        "PLUMBLINE_DELAY_FRACTION": "0.5",
        "PLUMBLINE_DELAY_ROUTINES": "all",
    }
    words = ["--environment", mpich.name, *BARRIER]
    words += [f"--set-env={mpich.name}:{key}={value}" for key, value in delay.items()]
    declared.check_session(workshop.measure(*words, "--strict"))
    references = tmp_path / "references"
    workshop.run("calibrate", *words, "--launches=1", f"--output={references}")
    assert not list(references.glob("**/*.tsv"))


def test_kernels_are_measured_and_shown(workshop: Workshop) -> None:
    """With the page of the paper that they are for."""
    ended = workshop.measure(*KERNELS, "--trials", "3", "--strict")
    cases = ended.summary["cases"]
    assert {case["verdict"] for case in cases} == {"no-reference"}, ended.output
    assert {case["program"] for case in cases} == {"kernels"}
    assert "kernels with two ranks a core are skipped: no hardware threads" in ended.said
    layouts = {(case["routine"], case["processes"], case["per_node"]) for case in cases}
    assert layouts >= {("crypt_A", 1, 1), ("crypt_A", 2, 2), ("crypt_A_compute", 2, 2)}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        words = ("papers", ended.summary["session"], "--paper", "taboada")
        assert main(str(ROOT), str(workshop.home), words) == 0
    for words in ("speed-up and efficiency (Fig. 5)", "(Table 7)", "1x1 over 2x2", "(Table 8)"):
        assert words in out.getvalue()
