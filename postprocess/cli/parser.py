"""The parser of a command: options in groups, one example, the exit statuses, and errors of one line."""

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from postprocess.base.errors import UsageError, find_near_word, propose_word
from postprocess.base.workdir import WorkDirectory


def list_shown_actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options and arguments of a parser, but for ``--help`` and the commands below it."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction, argparse._VersionAction)
    return [action for action in parser._actions if not isinstance(action, hidden)]


def list_words(parser: argparse.ArgumentParser) -> list[str]:
    """Return what follows the name of a command in its synopsis."""
    if any(isinstance(action, argparse._SubParsersAction) for action in parser._actions):
        return ["COMMAND ..."]
    every = list_shown_actions(parser)
    required = [usage(each) for each in every if each.option_strings and each.required]
    some = any(each.option_strings and not each.required for each in every)
    positional = [usage(each) for each in every if not each.option_strings]
    return required + (["[OPTIONS]"] if some else []) + positional


def usage(action: argparse.Action) -> str:
    """Return an option with its value, or an argument, as it is typed."""
    metavar = action.metavar or "{" + ",".join(map(str, action.choices or ())) + "}"
    if action.nargs == 0:
        return action.option_strings[0]
    value = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    value = {"?": f"[{value}]", "*": f"[{value}...]", "+": f"{value}..."}.get(str(action.nargs), value)
    return " ".join([*action.option_strings, value])


MOST_SELDOM = 4  #: options that few people need, and that a help text explains all the same
HELP_COLUMNS = 78  #: of a sentence in a help text


class HelpAll(argparse._HelpAction):
    """Print the help with all options."""

    def __call__(self, parser: Any, *_: Any, **__: Any) -> None:
        parser._print_message(parser.format_help(all_options=True), sys.stdout)
        parser.exit()


#: Titles of groups of options.
WHAT, READ, WHERE, HOW, OUTPUT = ("what to measure", "what to read", "where", "how", "output")


NEAR_OPTION = 0.75  #: of options that are alike: a far-fetched one helps nobody
ROUTINE_OPTION = "--routine"  #: what a routine is chosen by: words alone choose none


def exit_statuses(fails: str, others: Sequence[tuple[int, str]] = ()) -> list[tuple[int, str]]:
    """Return each exit status of a command with its meaning.

    :param fails: the meaning of 1; empty if the command never ends with it
    :param others: further ones that the command has
    """
    one = [(1, fails)] if fails else []
    return [(0, "success"), *one, (2, "usage or configuration error"), *others]


def parse_path(text: str) -> Path:
    """Parse a path. An empty one is wrong: it would be the folder that one happens to be in."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; name a file or a folder")
    return Path(text)


#: What people type who know other tools, and the command that does it.
GUESSED = {
    "status": "report",
    "show": "report",
    "results": "report",
    "diff": "compare",
    "check": "site check",
    "init": "site new",
    "baseline": "calibrate",
    "bench": "nightly",
    "benchmark": "nightly",
    "build": "setup",
    "install": "setup",
    "retry": "run --failed",
    "rerun": "run --failed",
}


class Parser(argparse.ArgumentParser):
    def __init__(
        self,
        *words: Any,
        example: str = "",
        fails: str = "",
        others: Sequence[tuple[int, str]] = (),
        **how: Any,
    ) -> None:
        """Create a parser; further parameters are those of :mod:`argparse`.

        :param example: a command line, without an indent
        :param fails: see :func:`exit_statuses`; so ``others``
        """
        how.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        how.setdefault("allow_abbrev", False)  # a beginning of an option may be that of another later
        super().__init__(*words, **how)
        self.register("type", Path, parse_path)
        if self.add_help:
            self.add_argument("--help-all", action=HelpAll, help=argparse.SUPPRESS)
        self.example, self.fails, self.others = example, fails, others
        self.groups: dict[str, argparse._ArgumentGroup] = {}
        self.seldom: set[str] = set()  #: options that few people need: ``--help`` only names them
        self.instead_of_options = ""  #: what to write where options of other commands are none of this one
        self.sections: Mapping[str, Iterable[str]] = {}  #: of the commands below it, by title
        #: with the options of all commands, where this one has only those of some
        self.build_whole: Callable[[], Parser] = lambda: self
        meanings = exit_statuses(fails, others)
        statuses = "\n".join(
            textwrap.fill(f"  {number}  {meaning}", HELP_COLUMNS, subsequent_indent=5 * " ")
            for number, meaning in meanings
        )
        self.epilog = f"example:\n  {example}\n\nexit status:\n{statuses}"

    def group(self, title: str) -> argparse._ArgumentGroup:
        """Return the group of options of this title; create it when it is first asked for."""
        if title not in self.groups:
            self.groups[title] = self.add_argument_group(title)
        return self.groups[title]

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse all words; of an option that this command does not have, say which commands have it."""
        parsed, rest = self.parse_known_args(args, namespace)
        if not rest:
            return parsed
        chosen = find_chosen_parser(self, parsed)
        message = f"unrecognized arguments: {' '.join(rest)}"
        options = [word.partition("=")[0] for word in rest if word.startswith("-")]
        having = find_commands_with(self.build_whole(), options[0]) if options else {}
        own = chosen._option_string_actions
        if options and options[0] not in having and (near := propose_option(options[0], own)):
            chosen.error(f"{message}; did you mean {near}?")
        if having and chosen.instead_of_options:
            chosen.error(f"{message}; {chosen.instead_of_options}")
        if not options and ROUTINE_OPTION in own and (near := find_routine_near(rest[0])):
            chosen.error(f"{message}; did you mean {ROUTINE_OPTION} {near}?")
        for option, commands in having.items():
            message += f"; {option} is an option of {', '.join(commands)}"
        chosen.error(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is none of a choice, with the one that may be meant."""
        if not action.choices or value in action.choices:
            return
        known = list(map(str, action.choices))
        proposed = propose_word(str(value), known)
        if isinstance(action, argparse._SubParsersAction):
            guessed = GUESSED.get(str(value), "")
            if guessed.partition(" ")[0] in known:
                proposed = f"did you mean {guessed}?"
            what = f"{value!r} is not a command"
            raise argparse.ArgumentError(None, f"{what}; {proposed}" if proposed else what)
        what = f"{value!r} is none of {', '.join(known)}"
        raise argparse.ArgumentError(action, f"{what}; {proposed}" if proposed else what)

    def format_usage(self) -> str:
        """Format how the command is typed, in one line."""
        return f"usage: {' '.join([self.prog, *list_words(self)])}\n"

    def format_help(self, all_options: bool = False) -> str:
        """Format the help: usage, description, options by group, commands by section.

        :param all_options: whether to explain also the options that few people need
        """
        formatter = self._get_formatter()
        formatter.add_text(self.format_usage())
        description = (textwrap.fill(line, HELP_COLUMNS) for line in (self.description or "").splitlines())
        formatter.add_text("\n".join(description))
        seldom = [action for action in self._actions if not self.seldom.isdisjoint(action.option_strings)]
        if all_options or len(seldom) <= MOST_SELDOM:
            seldom = []
        for group in self._action_groups:
            actions = group._group_actions
            below = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
            if below and self.sections:
                self._add_sections(formatter, below[0])
                continue
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments([action for action in actions if action not in seldom])
            formatter.end_section()
        if seldom:
            names = ", ".join(action.option_strings[0] for action in seldom)
            more = f"more options (--help-all explains them): {names}"
            formatter.add_text(
                textwrap.fill(more, HELP_COLUMNS, subsequent_indent="  ", break_on_hyphens=False)
            )
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _add_sections(self, formatter: argparse.HelpFormatter, below: argparse.Action) -> None:
        """Add the commands to a help text, section by section."""
        known = {each.dest: each for each in below._get_subactions()}  # type: ignore[attr-defined]  # no public name
        for title, names in self.sections.items():
            formatter.start_section(title)
            formatter.add_arguments([known[name] for name in names if name in known])
            formatter.end_section()

    def error(self, message: str) -> NoReturn:
        """Raise a usage error of one line."""
        raise UsageError(f"{message} (./{self.prog} --help)")


def propose_option(word: str, known: Iterable[str]) -> str:
    """Propose the option of which a word is the beginning, or that is near to it; empty if there is none."""
    names = {option.removeprefix("--"): option for option in known if option.startswith("--")}
    typed = word.removeprefix("--")
    begun = [option for name, option in names.items() if typed and name.startswith(typed)]
    return begun[0] if len(begun) == 1 else names.get(find_near_word(typed, names, NEAR_OPTION), "")


def find_routine_near(word: str) -> str:
    """Find the routine that a word is or may be meant for; empty if none is near."""
    from postprocess.model.routines.known import propose_routine  # only where a word is wrong

    return propose_routine(word)


def find_chosen_parser(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> Any:
    """Find the parser of the command that was chosen below a parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            chosen = action.choices.get(getattr(parsed, action.dest, None) or "")
            return find_chosen_parser(chosen, parsed) if chosen else parser
    return parser


def find_commands_with(parser: argparse.ArgumentParser, word: str) -> dict[str, list[str]]:
    """Find the commands that have an option, in the order of ``--help``, by its whole name.

    :param word: the option, or how its name begins
    """
    found: dict[str, list[str]] = {}
    for command, option in _list_options(parser):
        if len(word) > 2 and option.startswith(word):
            found.setdefault(option, []).append(command)
    return {word: found[word]} if word in found else found


def _list_options(parser: argparse.ArgumentParser, command: str = "") -> Iterator[tuple[str, str]]:
    for option in parser._option_string_actions if command else ():
        yield command, option
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from _list_options(below, f"{command} {word}".strip())


@dataclass
class Command:
    """A command of a module that has several."""

    example: str  #: a command line
    fails: str  #: the meaning of exit status 1; empty if it never ends with that
    add_arguments: Callable[[Parser], None]
    run: Callable[[WorkDirectory, argparse.Namespace], int]  #: returns the exit status
    others: Sequence[tuple[int, str]] = ()  #: further exit statuses
    help: str = ""  #: one line, of a command below another one


class Listed(NamedTuple):
    """A command in the list of all: what ``--help`` says of it is told without its libraries."""

    module: str  #: or ``module:NAME``
    help: str  #: one line


def add_commands(
    parser: Parser,
    dest: str,
    commands: Mapping[str, ModuleType | Command],
    lines: Mapping[str, str] | None = None,
) -> None:
    """Add commands to a parser, by name, in this order.

    A module of one command has what a :class:`Command` has, as ``HELP``, ``EXAMPLE``, ``FAILS``,
    ``add_arguments`` and ``run``. With ``COMMANDS`` in place of the last two it leaves the work to the commands
    below it. ``PARSER``, where it has one, holds further parameters of the parser.

    :param dest: attribute of the parsed arguments that gets the name of the chosen command
    :param lines: the line of each command instead of its own, in the order of the commands; those that are
        here alone are listed without what they accept
    """
    found = parser.add_subparsers(dest=dest, required=True, metavar="COMMAND", title="commands")
    for name in lines or commands:
        command, line = commands.get(name), lines[name] if lines else ""
        if command is None:
            found.add_parser(name, help=line)
            continue
        if isinstance(command, Command):
            line = line or command.help
            made = _add_parser(found, name, line, command.example, command.fails, others=command.others)
            command.add_arguments(made)
            made.set_defaults(run=command.run)
            continue
        how = getattr(command, "PARSER", {})
        made = _add_parser(found, name, line or command.HELP, command.EXAMPLE, command.FAILS, **how)
        if hasattr(command, "COMMANDS"):
            add_commands(made, f"{name}_command", command.COMMANDS)
        else:
            command.add_arguments(made)
            made.set_defaults(run=command.run)


def _add_parser(found: Any, name: str, words: str, example: str, fails: str, **how: Any) -> Parser:
    return found.add_parser(name, help=words, description=words, example=example, fails=fails, **how)


def subcommands(parser: argparse.ArgumentParser) -> Mapping[str, Parser]:
    """Return the parsers of the commands below a parser, by name."""
    actions = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: below for action in actions for name, below in action.choices.items()}
