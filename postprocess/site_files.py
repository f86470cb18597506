"""The site files that there are, by name or by path."""

from __future__ import annotations

from pathlib import Path

from postprocess.errors import UsageError


def site_file(source: Path, site: str) -> Path:
    """The ReFrame configuration of a site given by name or by path.

    :raises UsageError: if there is none.
    """
    path = Path(site) if site.endswith(".py") else source / "site_configs" / f"{site}.py"
    if not path.is_file():
        known = ", ".join(sorted(site_names(source)))
        raise UsageError(f"--site {site}: no file {path}: choose from {known}, or give a path")
    return path.resolve()


def site_names(source: Path) -> list[str]:
    """The sites that have a configuration here."""
    files = (source / "site_configs").glob("*.py")
    return [path.stem for path in files if is_site(path)]


def is_site(path: Path) -> bool:
    """Whether a Python file has a ReFrame configuration in it."""
    return "site_configuration =" in path.read_text(errors="replace")
