"""What a session asks of ReFrame, its site and its checks: ``request.json`` in the session's folder.

The variable ``PLUMBLINE_SESSION`` names the folder. The file stays there, as evidence of what was asked.
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
    """What is asked for. The defaults hold where ReFrame is started by hand, without Plumbline."""

    #: What the user chose: ``{variable of a check: value}``.
    choice: dict[str, Any] = field(default_factory=dict)
    #: Variables set for the launches of one environment: ``{environment: {name: value}}``.
    set_env: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Variables of every launch that is not measured but listened to; those of ``set_env`` come before them.
    verbose: dict[str, str] = field(default_factory=dict)
    #: Variables of the user's shell that steer an MPI; None by hand: those of the shell that ReFrame is in.
    shell: dict[str, str] | None = None
    #: Whether more processes than cores are allowed (for trying things out; such times mean little).
    oversubscribe: bool = False
    #: Whether a site is only looked at, perhaps on a machine without its modules.
    only_looking: bool = False
    #: Directories with references, the first one first.
    references: list[str] = field(default_factory=lambda: ["reference_data"])
    #: Spack's executable; empty where there is none.
    spack: str = ""
    #: Partitions with nodes that are down or taken out: how many can be used, and which not and why.
    usable_nodes: dict[str, dict[str, Any]] = field(default_factory=dict)


def write_request(session: Path, request: ReframeRequest) -> None:
    """Write the request of a session, in place of an earlier one. OSError as met."""
    text = json.dumps(asdict(request), indent=1, allow_nan=False) + "\n"
    files.write_text(session / FILE, text)


def current_request() -> ReframeRequest:
    """Return the request of the session that this process belongs to; read once.

    :raises ValueError: if the session's file is missing or wrong, naming the file and the key.
    """
    session = os.environ.get(SESSION)
    return read_request(Path(session)) if session else ReframeRequest()


@functools.cache
def read_request(session: Path) -> ReframeRequest:
    """Read the request of a session; read once in each process.

    :raises ValueError: if the file is missing or wrong, naming it and the key.
    """
    path = session / FILE
    try:
        return _parse(read_json(path))
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            f"{path}: {said}; let ./plumbline start ReFrame, or start it without {SESSION}"
        ) from None


def _parse(data: Any) -> ReframeRequest:
    request = parse_record(data, ReframeRequest, exact=True)
    require_fields(data, ReframeRequest)
    if request.shell is None:
        raise ValueError("shell: is null")
    return request
