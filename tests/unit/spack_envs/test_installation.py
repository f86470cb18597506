"""Where programs were built, and the one line that says so if they were not."""

from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from spack_envs.installation import BuiltBinary, locate_program_file, read_program, write_program
from tests.support.faults import plants

BUILT = BuiltBinary("mpich-5_0_2", "mpicost", "/opt/mpicost", "mpicost@0.1.0/abc")


def test_a_program_is_found_again(tmp_path: Path):
    write_program(tmp_path, BUILT)
    write_program(tmp_path, BuiltBinary("openmpi-5_0_11", "mpicost", "/opt/other", "cmake"))
    assert read_program(tmp_path, "mpich-5_0_2", "mpicost") == BUILT


@plants("use", "an environment that was not built", "`where mpicost`", "", 2,
        "builds it (built for mpich-5_0_2)")  # fmt: skip
def test_for_a_name_that_was_not_built_those_that_were_are_named(tmp_path, declared):
    write_program(tmp_path, BUILT)
    with declared.raises(UsageError, match=r"builds it \(built for mpich-5_0_2\)$"):
        read_program(tmp_path, "mpich", "mpicost")


def test_a_program_built_again_takes_the_place_of_the_first(tmp_path: Path):
    write_program(tmp_path, BUILT)
    write_program(tmp_path, BuiltBinary("mpich-5_0_2", "mpicost", "/opt/new", "cmake"))
    assert read_program(tmp_path, "mpich-5_0_2", "mpicost").path == "/opt/new"


@plants("files", "not there, empty, cut or of another kind, in 7 ways", "the record of a program", "", 2,
        "…")  # fmt: skip
@pytest.mark.parametrize("text", [None, "", "{", "[]", "7", "{}", '{"environment": "x"}'])
def test_what_was_not_built_is_named_with_the_fix(tmp_path, text: str | None, declared):
    path = locate_program_file(tmp_path, "mpich-5_0_2", "mpicost")
    if text is not None:
        path.parent.mkdir(parents=True)
        path.write_text(text)
    with declared.raises(UsageError) as refused:
        read_program(tmp_path, "mpich-5_0_2", "mpicost")
    assert str(refused.value) == (
        f"{path}: mpicost is not built for mpich-5_0_2 yet: ./plumbline run --environment mpich-5_0_2 builds it"
    )
