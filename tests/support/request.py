"""What a session asks of sites and checks, as tests ask it."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import pytest

from site_configs.schema.reframe_request import ReframeRequest, write_request
from site_configs.schema.variables import SESSION

SESSIONS = tempfile.TemporaryDirectory(prefix="plumbline-requests-")  #: gone when the process ends
NUMBERS = itertools.count()


def ask(patch: pytest.MonkeyPatch, session: Path | None = None, **asked: Any) -> Path:
    """Be in a session with this request: a new one, or one that has not been asked anything yet.

    :param asked: fields of the request.
    """
    session = session or Path(SESSIONS.name, str(next(NUMBERS)))
    write_request(session, ReframeRequest(**{"shell": {}, **asked}))
    patch.setenv(SESSION, str(session))
    return session
