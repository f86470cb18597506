"""A session of application kernels, and the page of the paper that it is for."""

from __future__ import annotations

import contextlib
import io

import pytest

from postprocess.main import main
from tests.support.mpi import of_family
from tests.support.paths import ROOT
from tests.support.plumbline_runner import Workshop

#: On request; one process, two on one node
WORDS = ("--program", "kernels", "--routine", "crypt_A,crypt_A_compute", "--mpis", "mpich")


@pytest.mark.long
def test_kernels_are_measured_and_shown(tmp_path):
    of_family("mpich")
    workshop = Workshop(tmp_path / "home")
    ended = workshop.measure(*WORDS, "--trials", "3", "--strict")
    cases = ended.summary["cases"]
    assert {case["verdict"] for case in cases} == {"no-reference"}, ended.output
    assert {case["program"] for case in cases} == {"kernels"}
    layouts = {(case["routine"], case["processes"], case["per_node"]) for case in cases}
    assert layouts >= {("crypt_A", 1, 1), ("crypt_A", 2, 2), ("crypt_A_compute", 2, 2)}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        words = ("papers", ended.summary["session"], "--paper", "taboada")
        assert main(str(ROOT), str(workshop.home), words) == 0
    for words in ("speed-up and efficiency (Fig. 5)", "(Table 7)", "1x1 over 2x2", "table 8"):
        assert words in out.getvalue()
