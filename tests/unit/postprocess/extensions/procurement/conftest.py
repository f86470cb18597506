"""An honest offer, and a copy to forge."""

import shutil
from pathlib import Path

import pytest

from tests.support.factories.offer import make_offer


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_offer(tmp_path_factory.mktemp("honest") / "offer")


@pytest.fixture
def offer(honest: Path, tmp_path: Path) -> Path:
    """A copy to forge."""
    return shutil.copytree(honest, tmp_path / "offer")
