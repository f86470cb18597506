"""Write the documentation that follows from the parser: ``python -m postprocess.write_docs``.

A page of all commands, a manual page, and completion for bash and zsh. Needs ``requirements-test.in``.
"""

from __future__ import annotations

from pathlib import Path

import shtab

from postprocess.base import files
from postprocess.cli.manual_page import manual_page
from postprocess.cli.parser import Parser, subcommands
from postprocess.cli.reference import commands, markdown
from postprocess.main import build_parser

DOCS = Path(__file__).resolve().parents[1] / "docs"
COMPLETED = {"FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}  #: by metavar


def documents() -> dict[str, str]:
    """Return each file below ``docs/`` with its text."""
    parser = build_parser()
    complete_paths(parser)
    every = list(commands(parser))
    return {
        "commands.md": markdown(every),
        "plumbline.1": manual_page(every),
        "completion/plumbline.bash": shtab.complete(parser, "bash"),
        "completion/_plumbline": shtab.complete(parser, "zsh"),
    }


def complete_paths(parser: Parser) -> None:
    """Let the shells complete files and directories where a command takes them."""
    for action in parser._actions:
        if isinstance(action.metavar, str) and action.metavar in COMPLETED:
            action.complete = COMPLETED[action.metavar]  # type: ignore[attr-defined]  # shtab reads it
    for below in subcommands(parser).values():
        complete_paths(below)


if __name__ == "__main__":
    files.replace_files({DOCS / name: text.encode() for name, text in documents().items()})
