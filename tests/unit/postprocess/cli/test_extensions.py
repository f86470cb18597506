"""Extensions: those beside the core, and those that are installed."""

from importlib.metadata import EntryPoint

import pytest

from postprocess.cli import extensions
from postprocess.cli.extensions import Extension, find_extensions
from postprocess.main import COMMANDS
from tests.support.faults import plants

HERE = "tests.unit.postprocess.cli.test_extensions"
INSTALLED = Extension(())


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch):
    """Declare an installed extension by ``module:name``, for one test."""

    def declare(value: str) -> None:
        point = EntryPoint("theirs", value, extensions.GROUP)
        monkeypatch.setattr(extensions, "entry_points", lambda group: [point])
        find_extensions.cache_clear()

    yield declare
    find_extensions.cache_clear()


def test_each_extension_beside_the_core_brings_its_commands():
    brought = [command for extension in find_extensions() for command in extension.commands]
    assert {each.name for each in brought} == {"accept", "agree", "offer", "papers", "selftest"}
    assert all(COMMANDS[each.name].module == each.module for each in brought)


def test_an_installed_extension_is_found(installed):
    installed(f"{HERE}:INSTALLED")
    assert find_extensions()[-1] is INSTALLED


@plants("environment", "a package that cannot be imported, or is no extension", "an installed extension",
        "", 0, "left out: mend or uninstall it")  # fmt: skip
@pytest.mark.parametrize("value", ["no_such_package:EXTENSION", f"{HERE}:NOTHING", f"{HERE}:HERE"])
def test_an_installed_package_that_is_no_extension_is_left_out(installed, declared, value: str, capsys):
    installed(value)
    assert INSTALLED not in find_extensions()
    told = capsys.readouterr().err
    assert told.startswith(f"plumbline: extension theirs ({value}): ") and told.count("\n") == 1
    declared.check((), 0, [told])
