"""Values as the Python of a site file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from postprocess.base.sanitize import quote_word
from site_configs.schedulers.registry import list_site_names


def format_python(value: Any) -> str:
    """Format a text, number or list of them as Python, in pure ASCII, whatever the text holds."""
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def format_registered(name: str) -> str:
    """Format the name of a launcher or scheduler as Python."""
    return list_site_names().get(name, format_python(name))


def format_variables(variables: Mapping[str, str], work: Path) -> str:
    """Format variables as Python; the values as a shell reads them."""
    pairs = (
        f"{format_python(name)}: {format_relative_path(quote_word(value), work)}"
        for name, value in variables.items()
    )
    return f"{{{', '.join(pairs)}}}"


def format_relative_path(text: str, work: Path) -> str:
    """Format a word of a command as Python; what is in the work directory is named relative to it."""
    path = Path(text)
    if path.is_absolute() and path.is_relative_to(work):
        return f"str(work_directory() / {format_python(str(path.relative_to(work)))})"
    return format_python(text)
