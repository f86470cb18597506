"""Fetches that failed, remembered for a day: without a network no session waits for one again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.files import read_text, write_text
from spack_envs.fetch import FetchError

REMEMBERED = 86400.0  #: seconds


@dataclass(frozen=True)
class RefusedFetches:
    """What could not be fetched, in a file: when, and why. A file that cannot be read or written is as none."""

    path: Path
    again: bool = False  #: whether what failed is tried all the same

    def fetch(self, what: str, attempt: Callable[[], None]) -> None:
        """Fetch something, unless that failed within a day.

        :raises FetchError: with the reason, of then or now
        """
        known = {} if self.again else self._read()
        when, reason = known.get(what, (0.0, ""))
        if 0.0 <= time.time() - when < REMEMBERED:
            raise FetchError(reason)
        try:
            attempt()
        except FetchError as error:
            known = self._read() | {what: (time.time(), str(error))}
            with suppress(OSError):
                write_text(self.path, json.dumps(known, indent=1))
            raise

    def _read(self) -> dict[str, tuple[float, str]]:
        """Read what is remembered; nothing from a file of another form."""
        try:
            told = json.loads(read_text(self.path))
            return {str(key): (float(when), str(why)) for key, (when, why) in told.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
