"""A session: what was asked for, and when it began."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from postprocess.base.formats import utc_now
from postprocess.model.options import AS_REFERENCES

LOCAL = "local"  #: the site without an option: this machine


def list_site_words(site: str) -> list[str]:
    """List the words of a command that choose a site; empty for this machine."""
    return [] if site == LOCAL else ["--site", site]


@dataclass(frozen=True)
class Selection:
    """What to run, and how: the user's choice in ReFrame's terms. Empty means all, or the check's default."""

    site: Path
    environments: Sequence[str] = ()
    choice: dict[str, Any] = field(default_factory=dict)  #: variables of the checks, by name
    launches: int = 1
    set_env: dict[str, dict[str, str]] = field(default_factory=dict)  #: by environment
    verbose: Mapping[str, str] = field(default_factory=dict)  #: variables of every launch, in addition
    oversubscribe: bool = False
    shell: dict[str, str] = field(default_factory=dict)  #: those of the shell's variables that influence an MPI
    checks: Path | None = None  #: a check file, or a directory of them; None for all of Plumbline's
    tag: str = "nightly"  #: tag of the wanted checks; empty for all
    only_looking: bool = False  #: whether the site may be that of another machine
    built: bool = False  #: whether the same command has just built all programs that this needs
    side_by_side: bool = False  #: whether launches may run beside each other and beside builds


@dataclass(frozen=True)
class Request:
    mode: str
    command: Sequence[str]
    site: str
    selection: Selection
    families: Sequence[str] | None = None
    launches: int | None = None  #: launches of each case; None if a night chooses
    strict: bool = False
    json_file: Path | None = None
    junit_file: Path | None = None
    openmetrics_file: Path | None = None
    on_failure: str = ""  #: a shell command that gets the summary if the session fails
    rerun_options: Sequence[str] = ()  #: options that a rerun of a case needs too
    #: Where a calibration writes, and where references are looked up first.
    references: Path | None = None
    #: Minutes between the first retest of slow cases and further ones; None for a share of the night.
    confirm_after: int | None = 0


#: a night waits for a tenth of its duration unless a time is given
CONFIRM_SHARE = 10


@dataclass(frozen=True)
class Session:
    """What is known of a session when it begins."""

    directory: Path
    mode: str  #: the command that opened it, such as ``nightly``, or its part in one, such as ``nightly-fresh``
    site: str
    command: Sequence[str]
    strict: bool
    started_utc: str = field(default_factory=utc_now)

    @property
    def name(self) -> str:
        """The session's name, which sorts by time."""
        return self.directory.name


def use_reference_trials(selection: Selection) -> Selection:
    """Return the selection with the trials and rounds of the references; the user's own take precedence."""
    return replace(selection, choice={**selection.choice, AS_REFERENCES: True})
