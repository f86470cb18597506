"""Read a site file in a separate process.

    python -m site_configs.validation.reader_main FILE RESULT

The contents are written to RESULT as JSON.
"""

import ctypes
import signal
import sys

from site_configs.reframe_loading import load_reframe

SET_PARENT_DEATH_SIGNAL = 1  #: PR_SET_PDEATHSIG of prctl(2)

if __name__ == "__main__":
    # An endless file must not outlive the process that reads it.
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    load_reframe()
    from site_configs.validation.reader import main

    main(*sys.argv[1:])
