"""Names of the environment variables that say where things are. What is asked for stands in a file."""

import os
from pathlib import Path

#: Where everything that is not source lives.
HOME = "PLUMBLINE_HOME"
#: The session that Plumbline runs. It was told the site, so host names need not match. Whatever a session
#: starts has this variable, and is found by it when it is left behind.
SESSION = "PLUMBLINE_SESSION"


def work_directory() -> Path:
    """Return the work directory, which holds everything that is not source."""
    root = Path(__file__).resolve().parent.parent.parent
    return Path(os.environ.get(HOME) or root / ".plumbline").absolute()
