"""ReFrame as ``python -m`` from the root: there, checks and sites can import what they share."""

from __future__ import annotations

import ctypes
import os
import signal
import tempfile

from site_configs.schema.variables import SESSION

SET_PARENT_DEATH_SIGNAL = 1  #: PR_SET_PDEATHSIG of prctl(2)


def do_not_log(name: str) -> None:
    """Leave a variable of ReFrame's tests out of what it collects for each line that it logs of one.

    It is deprecated, and reading it makes ReFrame look through the whole stack for whom to warn, though it
    does not warn then: 20 ms a line, two thirds of the time of a dry run.
    """
    from reframe.core.meta import RegressionTestMeta

    all_of = RegressionTestMeta.loggable_attrs
    RegressionTestMeta.loggable_attrs = lambda test: [
        each for each in all_of(test) if each[0] != name
    ]


HOME = "${HOME}/"  #: how ReFrame's own defaults begin


def do_not_expand() -> None:
    """Let ReFrame take paths and values as they are: it would run commands that stand in them.

    Nothing quotes a path for it. Only its own defaults, in the home directory, are expanded.
    """
    from reframe.utility import osext

    def expand_home(text: str) -> str:
        return os.path.expanduser("~/") + text[len(HOME) :] if text.startswith(HOME) else text

    os.path.expandvars = osext.expandvars = expand_home


if __name__ == "__main__":
    # SIGTERM makes ReFrame end its jobs: none outlives a driver that was killed.
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    # Its first log would be left in /tmp whenever it refuses something. Jobs keep their TMPDIR.
    tempfile.tempdir = os.environ[SESSION]
    from reframe.frontend.cli import main  # takes a moment, in which a driver may die

    do_not_log("variables")
    do_not_expand()
    main()
