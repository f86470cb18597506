"""How Spack is called."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from spack_envs.errors import SpackEnvironmentError
from spack_envs.layout import SpackCommands, read_locked_hash, spack_environment_variables
from tests.support.faults import Declared, plants

DIRECTORY = Path("/site/spack/environments/mpich-5.0.2")


def test_spack_writes_below_the_work_directory_only():
    variables = spack_environment_variables(Path("/site"), Path("/opt/spack/bin/spack"), {})
    assert variables["SPACK_DISABLE_LOCAL_CONFIG"] == "1"
    assert variables["SPACK_USER_CACHE_PATH"] == "/site/spack/cache"


def test_spack_runs_on_the_python_that_has_the_solver():
    variables = spack_environment_variables(Path("/site"), Path("/opt/spack/bin/spack"), {})
    assert variables["SPACK_PYTHON"] == sys.executable


def test_this_spack_comes_before_any_other():
    environ = {"PATH": "/usr/bin:/bin"}
    variables = spack_environment_variables(Path("/site"), Path("/opt/spack/bin/spack"), environ)
    assert variables["PATH"].split(os.pathsep) == ["/opt/spack/bin", "/usr/bin", "/bin"]


def test_every_command_names_its_environment():
    commands = SpackCommands(DIRECTORY)
    called = (commands.concretize, commands.install_of("mpicost"), commands.location_of("mpicost"))
    for command in called:
        assert command[:3] == ["spack", "-e", str(DIRECTORY)]
    expected = [["install", "mpicost"], ["location", "-i", "mpicost"]]
    assert [command[3:] for command in called[1:]] == expected


def test_hash_is_read_from_the_solution(tmp_path):
    roots = [{"hash": "abc", "spec": "mpicost@main"}, {"hash": "def", "spec": "osu-micro-benchmarks"}]
    (tmp_path / "spack.lock").write_text(json.dumps({"roots": roots}))
    assert read_locked_hash(tmp_path) == "abc"
    assert read_locked_hash(tmp_path, "osu-micro-benchmarks") == "def"


@plants("builds", "a solution of Spack that is none", "spack.lock", "incomplete", 1,
        "spack.lock: no solution")  # fmt: skip
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        '{"roots": 3}',
        '{"roots": []}',
        '{"roots": [{"spec": "mpicost"}]}',
        '{"roots": [{"hash": "a", "spec": "mpicost"}, {"hash": "b", "spec": "mpicost"}]}',
    ],
)
def test_no_solution_is_one_line(tmp_path, text, declared: Declared):
    if text is not None:
        (tmp_path / "spack.lock").write_text(text)
    with declared.raises(SpackEnvironmentError) as caught:
        read_locked_hash(tmp_path)
    assert "\n" not in str(caught.value)
