"""The version of ``pyproject.toml`` is that of the suite, and of every summary."""

import re

from postprocess.base.version import VERSION
from tests.support.paths import ROOT


def test_suite_and_summaries_have_the_version_of_the_project():
    project = (ROOT / "pyproject.toml").read_text()
    (version,) = re.findall(r'^version = "(.+)"$', project, re.MULTILINE)
    suite = (ROOT / "suite" / "CMakeLists.txt").read_text()
    assert re.findall(r"^project\(mpicost VERSION (\S+)", suite, re.MULTILINE) == [version]
    assert version == VERSION
