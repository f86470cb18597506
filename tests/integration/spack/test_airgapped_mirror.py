"""A fresh clone, an empty home and a mirror where there is no network at all: Spack, wheels and sources.

The mirror is that of the user's cache, which ``./plumbline mirror create ~/.cache/plumbline/mirror`` makes.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from spack_envs.mirror import manifest
from spack_envs.mirror.manifest import Manifest, MirrorError
from spack_envs.mirror.parts import parse_lock_file
from spack_envs.provide import SpackSettings
from tests.support.paths import ROOT
from tests.support.plumbline_runner import unwrap

#: A network namespace of its own, in which there is nothing but the loopback device.
CUT_OFF = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net", "--"]
SYSTEM = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}
#: In Python, which is there in any case: is anything but the loopback device to be seen?
DEVICES = "import socket; print(*(name for _, name in socket.if_nameindex()))"


@pytest.fixture
def cut_off() -> list[str]:
    """The start of a command that has no network."""
    try:
        command = [*CUT_OFF, "python3", "-c", DEVICES]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no network namespace can be made here (unshare --net)")
    assert done.stdout.split() == ["lo"]
    return CUT_OFF


@pytest.fixture
def mirror() -> tuple[Path, Manifest]:
    """The mirror of this user, for this Python."""
    folder = SpackSettings().cache / "mirror"
    try:
        contents = manifest.read_manifest(folder)
        manifest.check_python(folder, contents)
    except MirrorError as error:
        pytest.skip(f"no mirror to build from: {error}")
    if contents.missing:
        pytest.skip(f"{folder}: this mirror has not all: {contents.missing[0].what}")
    there = {file.sha256 for file in contents.files}
    needed = parse_lock_file((ROOT / "requirements.lock").read_text())
    newer = [package for package in needed if ";" not in package.text and not package.hashes & there]
    if newer:
        pytest.skip(f"{folder}: was made before {newer[0].name} {newer[0].version} was needed")
    return folder, contents


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The sources as they are now, with nothing that was made of them."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "clone" / name)
    return tmp_path / "clone"


@pytest.mark.timeout(1800)  # OSU is compiled, on a machine that may be busy
def test_all_comes_from_the_mirror_where_there_is_no_network(cut_off, mirror, clone, tmp_path):
    folder, contents = mirror
    (tmp_path / "home").mkdir()
    work = tmp_path / "work"
    env = {**SYSTEM, "HOME": str(tmp_path / "home"), "PLUMBLINE_HOME": str(work)}

    def run(*command: str, **more: str) -> str:
        done = subprocess.run(
            [*cut_off, *command], env={**env, **more}, cwd=clone, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    said = run("./plumbline", "doctor", "--mirror", str(folder), "--mpis", "mpich")
    (spack,) = work.glob("spack/mirrored/spack-v*/bin/spack")
    assert f"(mirror: {spack})" in " ".join(unwrap(said))
    run("./plumbline", "doctor", "--mpis", "mpich")  # remembers

    result = tmp_path / "installed.json"
    (environment,) = work.glob("spack/environments/mpich-*")
    words = [str(work), str(spack), str(environment), "osu", str(result)]
    python = str(work / "venv" / "bin" / "python")
    run(python, "-m", "spack_envs.install", *words, PYTHONPATH=str(clone))
    prefix = Path(json.loads(result.read_text())["prefix"])
    assert (prefix / "libexec" / "osu-micro-benchmarks" / "mpi" / "pt2pt" / "osu_latency").exists()

    record = json.loads((prefix / "share" / "plumbline" / "build.json").read_text())
    replaced = {each.package: each.origin for each in contents.replaced}
    assert record["source"] == replaced.get("osu-micro-benchmarks", "official")
    assert [path.name for path in (tmp_path / "home").iterdir()] == []
