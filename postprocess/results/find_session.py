"""Finished sessions by the names that people give them."""

from __future__ import annotations

from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.near_words import propose_word
from postprocess.base.workdir import WorkDirectory

LATEST = "latest"  #: names the session that was finished last


def find_finished_session(work: WorkDirectory, name: str | None) -> Path:
    """Return the directory of a finished session by its name; of the last one for ``latest`` or no name.

    :raises UsageError: if there is none.
    """
    named = name not in (None, "", LATEST)
    directory = work.sessions / str(name) if named else work.find_last_session()
    if directory is not None and (directory / "summary.json").exists():
        return directory
    known = [path.parent.name for path in work.sessions.glob("*/summary.json")]
    fix = propose_word(str(name), known) if named else ""
    fix = fix or (
        "./plumbline report latest shows the last one" if known else "./plumbline nightly makes one"
    )
    raise UsageError(f"{directory or work.sessions}: no finished session there; {fix}")
