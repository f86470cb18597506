"""A session's request to ReFrame, its site and its checks: ``request.json`` in the session's folder.

The variable ``PLUMBLINE_SESSION`` names the folder. The file stays there as evidence.
"""

import functools
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.records import parse_record, require_fields
from postprocess.base.strict_json import read_json
from site_configs.schema.variables import SESSION

FILE = "request.json"


@dataclass(frozen=True)
class ReframeRequest:
    """The request. The defaults hold if ReFrame is started by hand, without Plumbline."""

    #: The user's choice: ``{variable of a check: value}``.
    choice: dict[str, Any] = field(default_factory=dict)
    #: Variables set for the launches of one environment: ``{environment: {name: value}}``.
    set_env: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Variables of every verbose launch, which is not measured; those of ``set_env`` take precedence.
    verbose: dict[str, str] = field(default_factory=dict)
    #: Variables of the user's shell that influence an MPI; None without Plumbline: those of ReFrame's own
    #: shell.
    shell: dict[str, str] | None = None
    #: Whether more processes than cores are allowed (for trials; such times mean little).
    oversubscribe: bool = False
    #: Whether a site is only looked at, perhaps on a machine without its modules.
    only_looking: bool = False
    #: Whether the same command has just built all programs.
    built: bool = False
    #: Directories with references, in order of precedence.
    references: list[str] = field(default_factory=lambda: ["reference_data"])
    #: Spack's executable; empty without Spack.
    spack: str = ""
    #: Partitions with nodes that are down or taken out: how many are usable, and which are not and why.
    usable_nodes: dict[str, dict[str, Any]] = field(default_factory=dict)


def write_request(session: Path, request: ReframeRequest) -> None:
    """Write the request of a session, replacing an earlier one. Raises OSError."""
    text = json.dumps(asdict(request), indent=1, allow_nan=False) + "\n"
    files.write_text(session / FILE, text)


def current_request() -> ReframeRequest:
    """Return the request of the session that this process belongs to; it is read once.

    :raises ValueError: if the session's file is missing or wrong, naming the file and the key.
    """
    session = os.environ.get(SESSION)
    return read_request(session) if session else ReframeRequest()


@functools.cache
def read_request(session: Path | str) -> ReframeRequest:
    """Read the request of a session, once per process.

    :raises ValueError: if the file is missing or wrong, naming it and the key.
    """
    path = Path(session, FILE)
    try:
        return _parse(read_json(path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            f"{path}: {reason}; let ./plumbline start ReFrame, or start it without {SESSION}"
        ) from None


def _parse(data: Any) -> ReframeRequest:
    request = parse_record(data, ReframeRequest, exact=True)
    require_fields(data, ReframeRequest)
    if request.shell is None:
        raise ValueError("shell: is null")
    return request
