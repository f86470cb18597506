"""A session: what was asked for, and when it began."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from postprocess.base.formats import utc_now
from postprocess.model.options import AS_REFERENCES

LOCAL = "local"  #: the site that no option names: the machine at hand


def list_site_words(site: str) -> list[str]:
    """List the words of a command that choose a site; none for the machine at hand."""
    return [] if site == LOCAL else ["--site", site]


@dataclass(frozen=True)
class Selection:
    """What to run, and how: the user's choice in ReFrame's terms. Empty means all, or the check's default."""

    site: Path
    environments: Sequence[str] = ()
    choice: dict[str, Any] = field(default_factory=dict)  #: variables of the checks, by name
    launches: int = 1
    set_env: dict[str, dict[str, str]] = field(default_factory=dict)  #: by environment
    verbose: Mapping[str, str] = field(default_factory=dict)  #: variables of every launch, beside them
    oversubscribe: bool = False
    shell: dict[str, str] = field(default_factory=dict)  #: of its variables those that steer an MPI
    checks: Path | None = None  #: a check file, or a directory of them; None for all of Plumbline's
    tag: str = "nightly"  #: of the checks that are wanted; empty for all
    only_looking: bool = False  #: the site may be another machine's
    side_by_side: bool = False  #: whether launches may run beside each other and beside builds


@dataclass(frozen=True)
class Request:
    mode: str
    command: Sequence[str]
    site: str
    selection: Selection
    families: Sequence[str] | None = None
    launches: int | None = None  #: of each case; None where a night chooses
    strict: bool = False
    json_file: Path | None = None
    junit_file: Path | None = None
    openmetrics_file: Path | None = None
    on_failure: str = ""  #: a command of the shell that gets the summary if the session fails
    rerun_options: Sequence[str] = ()  #: that a case measured again must be given too
    #: Where a calibration writes, and where references are looked for first.
    references: Path | None = None
    #: Minutes between the first fresh launches of what is slow and further ones; None: a share of the night.
    confirm_after: int | None = 0


#: a night waits for a tenth of the time that it took, unless it is told how long
CONFIRM_SHARE = 10


@dataclass(frozen=True)
class Session:
    """What is known of a session from its beginning."""

    directory: Path
    mode: str  #: the command that opened it, as ``nightly``; or its part in one, as ``nightly-fresh``
    site: str
    command: Sequence[str]
    strict: bool
    started_utc: str = field(default_factory=utc_now)

    @property
    def name(self) -> str:
        """The session's name, which sorts by time."""
        return self.directory.name


def use_reference_trials(selection: Selection) -> Selection:
    """Return the selection with the trials and rounds of the references, of which the user's own go first."""
    return replace(selection, choice={**selection.choice, AS_REFERENCES: True})
