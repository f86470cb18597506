"""The site files that there are, by name or by path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError, propose_or_list


def locate_site_file(source: Path, site: str) -> Path:
    """Locate the ReFrame configuration of a site given by name or by path.

    :raises UsageError: if there is none.
    """
    path = Path(site) if site.endswith(".py") else source / "site_configs" / f"{site}.py"
    if not path.is_file():
        fix = propose_or_list(site, list_site_names(source)).removesuffix("?")
        raise UsageError(f"--site {site}: no file {path}: {fix}, or give a path")
    return path.resolve()


def list_site_names(source: Path) -> list[str]:
    """List the sites that have a configuration here."""
    return [path.stem for path in (source / "site_configs").glob("*.py") if is_site(path)]


def is_site(path: Path) -> bool:
    """Return whether a Python file has a ReFrame configuration in it."""
    return "site_configuration =" in files.read_text(path, "replace")


def find_sites_for_host(directory: Path, host: str) -> list[str]:
    """Find the site files of a directory that were written for this host, by name.

    A file that names no hosts as plain text is for none in particular.
    """
    return [
        path.stem
        for path in sorted(directory.glob("*.py"))
        if any(is_host_match(pattern, host) for pattern in read_host_patterns(path))
    ]


def read_host_patterns(path: Path) -> Iterator[str]:
    """Read the patterns that a file gives as ``hostnames``; none if it cannot be read."""
    try:
        tree = ast.parse(files.read_text(path))
    except (OSError, ValueError, SyntaxError):
        return
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for keyword in (keyword for call in calls for keyword in call.keywords):
        if keyword.arg == "hostnames" and isinstance(keyword.value, ast.List | ast.Tuple):
            for each in keyword.value.elts:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.value


def is_host_match(pattern: str, host: str) -> bool:
    """Return whether a host is one that ReFrame takes the pattern for."""
    try:
        return re.match(pattern, host) is not None
    except re.error:
        return False
