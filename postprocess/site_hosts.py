"""For which hosts the site files here were written, without running them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path


def sites_for(directory: Path, host: str) -> list[str]:
    """Names of the site files of a directory that were written for this host.

    A file that names no hosts as plain text is for none in particular.
    """
    return [
        path.stem
        for path in sorted(directory.glob("*.py"))
        if any(matches(pattern, host) for pattern in host_patterns(path))
    ]


def host_patterns(path: Path) -> Iterator[str]:
    """The patterns that a file gives as ``hostnames``; none if it cannot be read."""
    try:
        tree = ast.parse(path.read_text())
    except (OSError, ValueError, SyntaxError):
        return
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for keyword in (keyword for call in calls for keyword in call.keywords):
        if keyword.arg == "hostnames" and isinstance(keyword.value, ast.List | ast.Tuple):
            for each in keyword.value.elts:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.value


def matches(pattern: str, host: str) -> bool:
    """Whether a host is one that ReFrame takes the pattern for."""
    try:
        return re.match(pattern, host) is not None
    except re.error:
        return False
