"""Limits of the shell that starts a program: written by the job script, told as one fact, compared."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from postprocess.references.comparability import find_missing_fact, join_conditions, list_differences
from site_configs.topology.shell_limits import (
    LIMITS,
    describe_limits,
    describe_own_limits,
    read_limits,
    write_limits_command,
)

PLENTY = {"l": "unlimited", "v": "unlimited", "n": "1048576", "u": "63000"}


def test_a_job_script_writes_the_limits_of_its_shell(tmp_path: Path):
    path = tmp_path / "a b.limits"
    command = f"ulimit -Sl 64; ulimit -Sn 128; ulimit -Sv 3000000; {write_limits_command(path, 2)}"
    subprocess.run(["bash", "-c", command], check=True)
    said = read_limits(path)[LIMITS]
    assert said.startswith("locked memory 64 KiB, address space 3000000 KiB, open files 128, processes ")
    assert said.endswith(", CPUs of a quota 2")


def test_limits_that_no_launch_comes_near_are_alike():
    other = PLENTY | {"n": "20000", "u": "62998"}
    assert describe_limits(PLENTY) == describe_limits(other)
    assert describe_limits(PLENTY | {"n": "1024"}) != describe_limits(PLENTY)
    assert describe_limits(PLENTY | {"l": "8192"}) != describe_limits(PLENTY)
    assert describe_own_limits(None).startswith("locked memory ")


@pytest.mark.parametrize("text", [None, "", "l 64\nv", "l -1\n", "x 3\n", "l \n"])
def test_what_is_not_understood_is_not_told(tmp_path: Path, text: str | None):
    if text is not None:
        (tmp_path / "l").write_text(text)
    assert read_limits(tmp_path / "l") == {}


def test_other_limits_are_other_conditions_and_older_references_tell_none():
    ours, theirs = ({LIMITS: describe_limits(PLENTY | {"l": each})} for each in ("64", "8192"))
    assert [each.name for each in list_differences(ours, theirs)] == [LIMITS]
    assert list_differences(ours, ours) == []
    assert list_differences(ours, {}) == [] and find_missing_fact(ours, {}) == ""
    assert join_conditions({"caches": "x"}, {"caches": "x", **ours})[LIMITS] == ours[LIMITS]
    with pytest.raises(ValueError, match=LIMITS):
        join_conditions(ours, theirs)
