"""A planted delay passes in no night and no calibration."""

from __future__ import annotations

import pytest

from tests.support.faults import plants
from tests.support.mpi import of_family
from tests.support.mpicost import program

pytestmark = pytest.mark.long

SHORT = ("--program", "mpicost", "--routine", "barrier", "--trials", "5", "--processes", "2")


@plants("speed", "the library of the self-test, preloaded by hand", "mpicost", "incorrect", 1,
        "delays are planted into it")  # fmt: skip
def test_the_library_in_a_night_or_a_calibration_is_incorrect(workshop, tmp_path, declared):
    """Whoever preloads it by hand gets no verdict on speed, and no reference."""
    name = of_family("mpich").name
    delay = {
        "LD_PRELOAD": program("mpich").build / "libdelay.so",
        "PLUMBLINE_DELAY_FRACTION": "0.5",
        "PLUMBLINE_DELAY_ROUTINES": "all",
    }
    words = [f"--set-env={name}:{key}={value}" for key, value in delay.items()]
    ended = workshop.measure("--environment", name, *SHORT, "--strict", *words)
    declared.check_session(ended)
    references = tmp_path / "references"
    workshop.run("calibrate", "--environment", name, *SHORT, *words, "--launches=1", f"--output={references}")
    assert not list(references.glob("**/*.tsv"))
