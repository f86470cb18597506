"""What each folder may know of the others, as DEVELOPING.md has it: nothing knows the checks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.paths import ROOT


def imported(source: str) -> Iterator[str]:
    """The packages that a module imports anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_every_kind_of_import_is_seen():
    source = "import a, b.c as d\nfrom e.f import g\ndef later():\n    from h import i\n"
    assert list(imported(source)) == ["a", "b", "e", "h"]


@pytest.mark.parametrize("folder", ["postprocess", "site_configs", "spack_envs"])
def test_nothing_of_the_checks_is_known(folder: str):
    modules = sorted((ROOT / folder).rglob("*.py"))
    assert modules
    assert [str(each) for each in modules if "reframe_checks" in imported(each.read_text())] == []
