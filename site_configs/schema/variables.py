"""Names of the environment variables that say where things are. Requests are in a file instead."""

import os
from pathlib import Path

#: The folder of everything that is not source.
HOME = "PLUMBLINE_HOME"
#: The session that Plumbline runs. The site is given, so host names need not match. All processes of a session
#: have this variable, and leftovers are found by it.
SESSION = "PLUMBLINE_SESSION"


def work_directory() -> Path:
    """Return the work directory, which contains everything that is not source."""
    root = Path(__file__).resolve().parent.parent.parent
    return Path(os.environ.get(HOME) or root / ".plumbline").absolute()
