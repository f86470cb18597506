"""What the user of ``./plumbline`` chose, as defaults of the checks' variables.

ReFrame's ``--setvar`` still wins. It alone would not do: it complains of every test, build fixtures
included, that does not have the variable.
"""

import json
import os
from typing import Any

CHOICE = "PLUMBLINE_CHOICE"


def chosen(name: str, default: Any) -> Any:
    """The user's choice for a variable, or the default where none was made."""
    return json.loads(os.environ.get(CHOICE, "{}")).get(name, default)
