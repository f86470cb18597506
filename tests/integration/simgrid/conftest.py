"""What the tests on simulated machines share."""

import shutil

import pytest

from tests.support.plumbline_runner import Workshop
from tests.support.simgrid import NO_SIMGRID


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A work directory of each module's own."""
    if not (shutil.which("smpicc") and shutil.which("smpirun")):
        pytest.skip(NO_SIMGRID)
    return Workshop(tmp_path_factory.mktemp("simulated") / "home")
