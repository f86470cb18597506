"""What the tests on real MPIs share."""

import pytest

from tests.support.mpi import Installation, of_family
from tests.support.plumbline_runner import Workshop


@pytest.fixture(scope="module")
def mpich() -> Installation:
    return of_family("mpich")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A source and a work directory of each module's own."""
    return Workshop(tmp_path_factory.mktemp("workshop") / "home")
