"""The reader of a site file, as a process of its own.

    python -m site_configs.validation.reader_main FILE RESULT

RESULT gets what was read, as JSON.
"""

import ctypes
import signal
import sys

from site_configs.reframe_loading import load_reframe

SET_PARENT_DEATH_SIGNAL = 1  #: PR_SET_PDEATHSIG of prctl(2)

if __name__ == "__main__":
    # A file that does not end does not outlive the one who wants to know.
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    load_reframe()
    from site_configs.validation.reader import main

    main(*sys.argv[1:])
