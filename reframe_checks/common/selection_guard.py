"""A selection that matches nothing fails, where ReFrame passes a run or a list of no case with exit code 0.

ReFrame has no hook between its selection and what it does with it: its runner and its lists are wrapped.
A ReFrame whose runner is another one passes first; then this looks when Python ends, and ends it otherwise.

Nor has ReFrame a hook behind the loading of all checks. One check may have a routine that another has not, so
that a word which no check has is refused when the first build is set up. Without that no case runs.
"""

import atexit
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postprocess.base.errors import propose_or_list, propose_word
from postprocess.model.routines.mpicost import ROUTINES
from site_configs.programs.program import PROGRAMS

CHECKS = Path(__file__).resolve().parents[1]
RUNS = ("-r", "--run", "--dry-run")  #: of ReFrame's options: those that run cases
LISTS = ("list_checks", "list_tags", "describe_checks")  #: of ReFrame's functions: those that show tests
PATHS = ("-c", "--checkpath")  #: and those that name checks
#: Those that choose tests among the ones that were loaded.
CHOOSING = ("-n", "--name", "-t", "--tag", "-E", "--filter-expr", "--describe", "--restore-session")
NAMING = (("-n", "--name"), ("-t", "--tag"))  #: those of them with the name of a routine
TAGS = ("nightly", "links", "agree", "guidelines")
ROUTINE_NAMES = {routine.name for routine in ROUTINES}
OPERATIONS = {name.partition("_")[0] for name in ROUTINE_NAMES}  #: each a tag: ``allreduce``
KNOWN_NAMES = (*TAGS, *PROGRAMS, *sorted(ROUTINE_NAMES | OPERATIONS))
SEARCHED = "RFM_CHECK_SEARCH_PATH"  #: names checks too
EMPTY = 1  #: exit code of a run of nothing

set_up: set[str] = set()  #: cases of ours that ReFrame has begun with


@dataclass
class Choice:
    """What the user chose for one variable of the checks that were loaded, and what there is."""

    asked: set[str] = field(default_factory=set)
    there: set[str] = field(default_factory=set)  #: of the asked ones those that a check measures
    known: set[str] = field(default_factory=set)  #: words from which one could choose


choices: dict[str, Choice] = {}  #: by variable


def note_choice(
    variable: str, asked: Iterable[object], there: Iterable[object], known: Iterable[object] = ()
) -> None:
    """Note what the user chose for a variable of a check, and what of it this check measures."""
    choice = choices.setdefault(variable, Choice())
    choice.asked.update(map(str, asked))
    choice.there.update(map(str, there))
    choice.known.update(map(str, known))


def find_unmatched_choice() -> str:
    """Find a word of ``-S`` that matches nothing in any check that was loaded, with its fix; empty if none."""
    for variable, choice in sorted(choices.items()):
        for word in sorted(choice.asked - choice.there):
            fix = (
                propose_or_list(word, choice.known)
                if choice.known
                else f"leave it out of -S, or correct it; of {variable} these match: "
                f"{', '.join(sorted(choice.there)) or 'none'}"
            )
            return f"{variable}: {word}: no check measures it; {fix}"
    return ""


def refuse_unmatched_choices() -> None:
    """Refuse a selection of which a word matches nothing in any check that was loaded.

    :raises ValueError: if there is one.
    """
    if wrong := find_unmatched_choice():
        atexit.unregister(fail_if_empty)  # this says it better
        raise ValueError(wrong)


def note_case(name: str) -> None:
    set_up.add(name)


def guard_selection() -> None:
    """End Python with an error if it was to run or list checks of ours alone, and there is none."""
    if not are_all_ours(list_check_paths(sys.argv[1:])):
        return
    if any(word in RUNS for word in sys.argv[1:]):
        atexit.register(fail_if_empty)
        with contextlib.suppress(ImportError, AttributeError):  # of a ReFrame to come
            refuse_empty_runs()
    with contextlib.suppress(ImportError, AttributeError):
        refuse_empty_lists()


def refuse_empty_runs() -> None:
    """Let ReFrame's runner end with our error where it gets no case, before it prints ``PASSED``."""
    from reframe.frontend.executors import Runner

    run_cases = Runner.runall

    def run_some_cases(runner: Any, testcases: Sequence[Any], *more: Any, **named: Any) -> Any:
        if not testcases:
            atexit.unregister(fail_if_empty)
            sys.exit(f"plumbline: {explain_nothing('was run')}")
        return run_cases(runner, testcases, *more, **named)

    Runner.runall = run_some_cases


def refuse_empty_lists() -> None:
    """Let ReFrame end with our error where it has shown tests, and there were none."""
    from reframe.frontend import cli

    def refuse_empty(show: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(show)
        def show_some(testcases: Sequence[Any], *more: Any, **named: Any) -> Any:
            shown = show(testcases, *more, **named)
            if not testcases:
                sys.exit(f"plumbline: {explain_nothing('is listed')}")
            return shown

        return show_some

    for name in LISTS:
        setattr(cli, name, refuse_empty(getattr(cli, name)))


def list_check_paths(words: Sequence[str]) -> list[str]:
    """List the files and folders of checks that ReFrame was told to load."""
    return [*find_options(words), *filter(None, os.environ.get(SEARCHED, "").split(":"))]


def find_options(words: Sequence[str], option: tuple[str, str] = PATHS) -> Iterator[str]:
    """Find the values of an option, short or long: by default of those that name checks."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word in option:
            yield from words[number + 1 : number + 2]
        elif name in option and equals:
            yield value
        elif word.startswith(option[0]) and not word.startswith("--"):
            yield word[len(option[0]) :]


def chooses_tests(words: Sequence[str]) -> bool:
    """Return whether the user chose tests by name, tag or expression: ``-n bcast``, ``-nbcast``, ``-t x``."""
    long = [each for each in CHOOSING if each.startswith("--")]
    short = tuple(each for each in CHOOSING if each not in long)
    return any(
        word.partition("=")[0] in long if word.startswith("--") else word.startswith(short) for word in words
    )


def are_all_ours(paths: Sequence[str]) -> bool:
    """Return whether all of these are our checks, and there are any."""
    real = [Path(path).resolve() for path in paths]
    return bool(real) and all(path == CHECKS or CHECKS in path.parents for path in real)


def fail_if_empty() -> None:
    """End the process with an error if no case was begun with."""
    if set_up:
        return
    sys.stdout.flush()
    sys.stderr.write(f"plumbline: {explain_nothing('was run')}\n")
    sys.stderr.flush()
    os._exit(EMPTY)


def explain_nothing(what: str) -> str:
    """Explain that nothing was done with any case, with the word that may be misspelled."""
    named = [word for option in NAMING for word in find_options(sys.argv[1:], option)]
    near = (propose_word(word, KNOWN_NAMES) for word in named if word not in KNOWN_NAMES)
    usual = "look at the options -n, -t, -E, -p and -S: a routine, size, count or tag may be misspelled"
    fix = next(filter(None, near), usual)
    return f"no case {what}: {find_unmatched_choice() or f'the selection matches none; {fix}'}"
