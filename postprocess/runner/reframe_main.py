"""ReFrame as ``python -m`` from the root: there, checks and sites can import what they share."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from types import FrameType, ModuleType, SimpleNamespace

from site_configs.schema.variables import SESSION

SET_PARENT_DEATH_SIGNAL = 1  #: PR_SET_PDEATHSIG of prctl(2)


def find_callers_quickly() -> None:
    """Let ReFrame find whom to warn of a deprecated variable by the frames of the stack alone.

    It reads the source behind each of them, even where no warning follows: 20 ms for each test that it makes
    and for each line of its log, half of the time of a dry run.
    """
    from reframe.core import warnings

    def stack() -> Iterator[SimpleNamespace]:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            yield SimpleNamespace(frame=frame)
            frame = frame.f_back

    def find_module(frame: FrameType) -> ModuleType | None:
        return sys.modules.get(frame.f_globals.get("__name__", ""))

    warnings.inspect = SimpleNamespace(stack=stack, getmodule=find_module)


HOME = "${HOME}/"  #: how ReFrame's own defaults begin


def disable_expansion() -> None:
    """Let ReFrame take paths and values as they are: it would run commands that stand in them.

    Nothing quotes a path for it. Only its own defaults, in the home directory, are expanded.
    """
    from reframe.utility import osext

    def expand_home(text: str) -> str:
        return os.path.expanduser("~/") + text[len(HOME) :] if text.startswith(HOME) else text

    osext.expandvars = expand_home
    setattr(os.path, "expandvars", expand_home)  # noqa: B010 - assigned, its overloads would be asked for


if __name__ == "__main__":
    # SIGTERM makes ReFrame end its jobs: none outlives a driver that was killed.
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    # Its first log would be left in /tmp whenever it refuses something. Jobs keep their TMPDIR.
    tempfile.tempdir = os.environ[SESSION]
    from reframe.frontend.cli import main  # takes a moment, in which a driver may die

    find_callers_quickly()
    disable_expansion()
    main()
