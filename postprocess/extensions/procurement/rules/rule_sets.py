"""The sets of rules that come with Plumbline: text to start from, beside the code that reads them."""

from __future__ import annotations

from pathlib import Path

from postprocess.base import files

FOLDER = Path(__file__).parent


def list_rule_sets() -> list[str]:
    """List the sets by name."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_rule_set(name: str) -> str:
    """Read the text of a set."""
    return files.read_text(FOLDER / f"{name}.toml")
