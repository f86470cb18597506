"""What a session asks of sites and checks, as tests ask it; and a site for the classes of checks."""

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from reframe.core.runtime import temp_runtime

from site_configs.schema.reframe_request import ReframeRequest, write_request
from site_configs.schema.variables import SESSION
from tests.support.paths import ROOT

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


@contextmanager
def made_for_a_site(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let ReFrame make checks inside: their layouts are those of a site, of which nothing runs here."""
    ask(patch, only_looking=True)
    with temp_runtime(str(ROOT / "site_configs" / "slurm_cluster.py"), "slurm_cluster"):
        yield
