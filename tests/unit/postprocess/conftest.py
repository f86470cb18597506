"""Share one pair of keys among the tests of signatures."""

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys of SSH, and a list ``signers`` by which all may sign but eve."""
    if not shutil.which("ssh-keygen"):
        pytest.skip("no ssh-keygen")
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ann", "bob", "eve"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]
        subprocess.run([*words, str(folder / name)], check=True)
    lines = [f"{name} {(folder / f'{name}.pub').read_text()}" for name in ("ann", "bob")]
    (folder / "signers").write_text("".join(lines))
    return folder
