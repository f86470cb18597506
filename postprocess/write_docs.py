"""Write the documentation that follows from the code: ``python -m postprocess.write_docs``.

A page of all commands, completion for bash and zsh, and the JSON schema of a site file. Needs
``requirements-test.in``.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import shtab

from postprocess.base import files
from postprocess.cli.parser import Parser, exit_statuses, list_shown_actions, list_words, subcommands, usage
from postprocess.main import build_parser
from site_configs.schema.fields import build_json_schema

PROGRAM = "./plumbline"
#: exit statuses of every command; raw results of a session remain
INTERRUPTED = [(130, "interrupted by Ctrl-C"), (143, "terminated by SIGTERM")]

SHELLS = """
## Shell completion

Of commands, options and their choices:

```
source docs/completion/plumbline.bash          # bash: in ~/.bashrc, with the absolute path
fpath=(/path/to/docs/completion $fpath)        # zsh: in ~/.zshrc, before compinit
```
"""


@dataclass(frozen=True)
class Option:
    """One option or argument: how it is written, and what it does."""

    usage: str
    text: str


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]  #: that choose it
    synopsis: str
    description: str
    example: str
    groups: dict[str, list[Option]]  #: by title
    statuses: list[tuple[int, str]]
    below: list[tuple[str, str]]  #: name and description of the commands below it

    @property
    def name(self) -> str:
        """The words that choose it, separated by blanks."""
        return " ".join(self.words)


def commands(parser: Parser, words: tuple[str, ...] = ()) -> Iterator[Command]:
    """Yield the command of a parser, then all below it."""
    below = subcommands(parser)
    yield Command(
        words=words,
        synopsis=" ".join([PROGRAM, *words, *list_words(parser)]),
        description=parser.description or "",
        example=parser.example,
        groups=dict(options(parser)),
        statuses=exit_statuses(parser.fails, parser.others),
        below=[(name, each.description or "") for name, each in below.items()],
    )
    for name, each in below.items():
        yield from commands(each, (*words, name))


def options(parser: Parser) -> Iterator[tuple[str, list[Option]]]:
    """Yield the title and the options of each group; arguments come first."""
    every = list_shown_actions(parser)
    positional = [Option(usage(each), text(parser, each)) for each in every if not each.option_strings]
    if positional:
        yield "arguments", positional
    for title, group in parser.groups.items():
        own = [action for action in group._group_actions if action in every and action.option_strings]
        if own:
            yield title, [Option(usage(action), text(parser, action)) for action in own]


def text(parser: Parser, action: argparse.Action) -> str:
    """Return the help of an option, with the options that it excludes."""
    said = str(action.help) % {"default": action.default}
    others = [
        other.option_strings[0]
        for group in parser._mutually_exclusive_groups
        if action in group._group_actions
        for other in group._group_actions
        if other is not action
    ]
    return f"{said}; not with {', '.join(others)}" if others else said


def markdown(every: Sequence[Command]) -> str:
    first, *rest = every
    top = [command for command in rest if len(command.words) == 1]
    listed = "\n".join(
        f"| [`{command.name}`](#plumbline-{command.name}) | {command.description} |" for command in top
    )
    head = dedent(
        """\
        # Commands

        <!-- Written by python -m postprocess.write_docs: change the texts of the commands. -->

        `./plumbline COMMAND --help-all` shows the same, `--help` what most people need of it.
        Every usage error is one line, with exit status 2.

        | command | |
        |---|---|
        """
    )
    statuses = [*first.statuses, *INTERRUPTED]
    tail = ["", "", "## Exit status", "", table(("status", "meaning"), statuses), ""]
    return head + listed + "\n".join(tail) + "".join(map(section, rest)) + surroundings() + SHELLS


def surroundings() -> str:
    """Return the sections on what is around all commands: environment variables and files."""
    lines = ["", "## Environment variables", "", table(("variable", "meaning"), format_names(ENVIRONMENT)), ""]
    lines += ["## Files", "", table(("file", "what it is"), format_names(FILES)), ""]
    return "\n".join(lines)


def format_names(meanings: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(f"`{name}`", meaning) for name, meaning in meanings.items()]


def section(command: Command) -> str:
    lines = ["", f"{'#' * (len(command.words) + 1)} plumbline {command.name}", ""]
    lines += [command.description, "", "```", command.synopsis, "```", ""]
    lines += ["Example:", "", "```", command.example, "```", ""]
    if command.below:
        return "\n".join([*lines, table(("command", ""), command.below), ""])
    for title, own in command.groups.items():
        rows = [(f"`{option.usage}`", option.text) for option in own]
        lines += [table((title, ""), rows), ""]
    ends = "; ".join(f"{number} {meaning}" for number, meaning in command.statuses)
    return "\n".join([*lines, f"Exit status: {ends}.", ""])


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell(each) for each in row)} |" for row in lines)


def cell(value: object) -> str:
    """Return a cell of a table: nothing in it ends the cell, begins a tag or is emphasis."""
    said = str(value)
    if not said.startswith("`"):
        said = said.replace("*", r"\*").replace("<", r"\<")
    return said.replace("|", r"\|")


#: Environment variables that users may set.
ENVIRONMENT = {
    "PLUMBLINE_HOME": "work directory, for all that is not source (default: .plumbline beside the program)",
    "PLUMBLINE_MIRROR": "mirror to take everything from, as setup --mirror does",
    "PLUMBLINE_BESIDE_OTHERS": "1: calibrate while other processes use the machine, without waiting",
    "PLUMBLINE_SPACK_URL": "git repository of Spack",
    "PLUMBLINE_SPACK_RELEASE": "tag of Spack",
    "PLUMBLINE_SPACK_PACKAGES_URL": "git repository of Spack's package recipes",
    "PLUMBLINE_SPACK_PACKAGES_RELEASE": "tag of Spack's package recipes",
    "PLUMBLINE_SPACK_MIRROR": "address of a Spack source mirror",
    "PLUMBLINE_NO_SPACK": "1: do as if no Spack were available",
    "PLUMBLINE_SLURM_PATIENCE": "seconds to wait for a Slurm controller that does not answer (default: 600)",
    "PLUMBLINE_SIMULATED_MEMORY": "bytes of memory of a simulated launch (default: 5e8)",
    "SPACK_ROOT": "Spack to use; without it the one on the PATH, else a fetched one",
    "XDG_CACHE_HOME": "parent of the cache plumbline/, which holds the fetched Spack (default: ~/.cache)",
    "PIP_INDEX_URL": "package index of Python packages, as all settings of pip",
    "PGHOST, PGDATABASE, PGUSER, PGPASSWORD": "database of load, as in all programs of PostgreSQL",
}

#: In the work directory, which ``$PLUMBLINE_HOME`` names.
FILES = {
    "site_configs/NAME.py": "site file",
    "reference_data/SITE/PARTITION/ENVIRONMENT.tsv": "reviewed references, with their provenance",
    "reference_data/SITE/expected.tsv": "expected failures",
    ".plumbline/": "work directory; the files below are in it",
    "sessions/SESSION/": "plan, raw records, log, summary.json and report of a session",
    "store/SESSION.parquet": "results store: every trial of a session",
    "references/": "provisional references",
    "calibrations/": "ledger of calibration launches",
    "alarms.jsonl": "alarms of nightly runs",
    "set-up.log": "output of the installation of Python packages",
}

DOCS = Path(__file__).resolve().parents[1] / "docs"
COMPLETED = {"FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}  #: by metavar


def documents() -> dict[str, str]:
    """Return each file below ``docs/`` with its text."""
    parser = build_parser()
    complete_paths(parser)
    every = list(commands(parser))
    return {
        "commands.md": markdown(every),
        "completion/plumbline.bash": shtab.complete(parser, "bash"),
        "completion/_plumbline": shtab.complete(parser, "zsh"),
        "site_file.schema.json": json.dumps(build_json_schema(), indent=1) + "\n",
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
