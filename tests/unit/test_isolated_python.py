"""Every Python that Plumbline starts is isolated: PYTHONPATH may have another Python's packages."""

import ast
from collections.abc import Iterator
from pathlib import Path

from postprocess.commands import tests as command
from tests.support.paths import ROOT

FOLDERS = ("postprocess", "site_configs", "spack_envs", "reframe_checks")
INTERPRETERS = ("sys.executable", "PYTHON")
#: What is started with an environment of its own instead.
CLEANED = {"postprocess/commands/tests.py": 1}
#: Advice to users in which the interpreter stands.
READ_BY_USERS = {"site_configs/__init__.py": 1, "spack_envs/machine.py": 1}


def list_starts(path: Path) -> Iterator[list[str]]:
    """List the commands in a source that begin with a Python, as the source of their words."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if any(map(text.__contains__, INTERPRETERS)) else ():
        if isinstance(node, ast.List | ast.Tuple) and node.elts and ast.unparse(node.elts[0]) in INTERPRETERS:
            yield [ast.unparse(each) for each in node.elts]


def count_texts(path: Path) -> int:
    """Count the texts in a source that name a Python: a command in words of a shell would be one."""
    text = path.read_text()
    nodes = ast.walk(ast.parse(text)) if "sys.executable" in text else ()
    return sum(isinstance(node, ast.JoinedStr) and "sys.executable" in ast.unparse(node) for node in nodes)


def list_sources() -> list[Path]:
    return [ROOT / "plumbline", *(x for folder in FOLDERS for x in (ROOT / folder).rglob("*.py"))]


def test_no_command_with_a_python_is_written_as_a_text() -> None:
    found = {path.relative_to(ROOT).as_posix(): count_texts(path) for path in list_sources()}
    assert {path: number for path, number in found.items() if number} == READ_BY_USERS


def test_a_python_that_is_started_is_isolated() -> None:
    found = {path: list(list_starts(path)) for path in list_sources()}
    open_to_all = {
        path.relative_to(ROOT).as_posix(): len(others)
        for path, commands in found.items()
        if (others := [words for words in commands if words[1:2] != ["'-I'"]])
    }
    assert open_to_all == CLEANED
    assert sum(map(len, found.values())) > 5


def test_tests_start_without_python_of_the_user(work, monkeypatch):
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "/foreign")
    kept = command.test_environment(work)
    assert "/foreign" not in kept.values()
    assert kept["PLUMBLINE_HOME"] == str(work.root)
