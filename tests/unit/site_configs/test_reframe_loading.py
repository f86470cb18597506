"""ReFrame's modules, imported quickly."""

import inspect
import subprocess
import sys

import pytest
from reframe.core import warnings

from site_configs.reframe_loading import load_reframe
from tests.support.paths import ROOT


def test_a_deprecated_use_is_told_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no source is read to find out: ReFrame asks at each test that it makes."""
    monkeypatch.setattr(warnings, "inspect", warnings.inspect)
    monkeypatch.setattr(inspect, "stack", None)
    load_reframe()
    with pytest.warns(warnings.ReframeDeprecationWarning) as told:
        warnings.user_deprecation_warning("old")
    assert [message.filename for message in told] == [__file__]


LOADED = """
import inspect, sys
real = inspect.stack, inspect.getmodule
from site_configs.reframe_loading import load_reframe
load_reframe()
print((inspect.stack, inspect.getmodule) == real, {"requests", "urllib3"} & set(sys.modules))
from reframe.core import logging
import requests
print(logging.requests.exceptions.RequestException is requests.exceptions.RequestException)
"""


def test_what_sends_logs_is_loaded_by_its_use_alone() -> None:
    words = [sys.executable, "-c", LOADED]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "True set()\nTrue\n"
