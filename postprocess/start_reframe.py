"""ReFrame as ``python -m`` from the root: there, checks and sites can import what they share."""

import ctypes
import os
import signal
import tempfile

SET_PARENT_DEATH_SIGNAL = 1  #: PR_SET_PDEATHSIG of prctl(2)

if __name__ == "__main__":
    # SIGTERM makes ReFrame end its jobs: none outlives a driver that was killed.
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    # Its first log would be left in /tmp whenever it refuses something. Jobs keep their TMPDIR.
    tempfile.tempdir = os.environ["PLUMBLINE_SESSION"]
    from reframe.frontend.cli import main  # takes a moment, in which a driver may die

    main()
