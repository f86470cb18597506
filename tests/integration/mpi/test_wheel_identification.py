"""Real wheels, identified without being started."""

from __future__ import annotations

from pathlib import Path

from site_configs.mpi.family import Mpi
from site_configs.mpi.identify import identify_wrapper
from site_configs.mpi.probe import Candidate


def test_real_wheels_tell_what_they_are_without_being_started():
    from tests.support.mpi import mpi_installations

    for each in mpi_installations():
        answer = identify_wrapper(Candidate(Path(each.mpicc), Path("/nonexistent"), "wheel"))
        assert isinstance(answer, Mpi) and answer.name == each.name
