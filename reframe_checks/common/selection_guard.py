"""Make a selection that matches nothing fail: ReFrame exits with code 0 for a run or list without cases.

ReFrame has no hook between its selection and its use, so its runner and its lists are wrapped. A ReFrame with
another runner passes first; then the guard runs when Python ends, and changes the exit code.

ReFrame has no hook after loading all checks either. A check may lack a routine that another has, so a word that
no check has is refused when the first build is set up, before any case runs.
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
RUNS = ("-r", "--run", "--dry-run")  #: ReFrame's options that run cases
LISTS = ("list_checks", "list_tags", "describe_checks")  #: ReFrame's functions that show tests
PATHS = ("-c", "--checkpath")  #: ReFrame's options that name checks
#: Options that select tests among those loaded.
CHOOSING = ("-n", "--name", "-t", "--tag", "-E", "--filter-expr", "--describe", "--restore-session")
NAMING = (("-n", "--name"), ("-t", "--tag"))  #: those of them that may name a routine
TAGS = ("nightly", "links", "agree", "guidelines")
ROUTINE_NAMES = {routine.name for routine in ROUTINES}
OPERATIONS = {name.partition("_")[0] for name in ROUTINE_NAMES}  #: each is a tag: ``allreduce``
KNOWN_NAMES = (*TAGS, *PROGRAMS, *sorted(ROUTINE_NAMES | OPERATIONS))
SEARCHED = "RFM_CHECK_SEARCH_PATH"  #: names checks too
EMPTY = 1  #: exit code of a run without cases

set_up: set[str] = set()  #: cases of ours that ReFrame has started to set up


@dataclass
class Choice:
    """What the user chose for one variable of the loaded checks, and what exists."""

    asked: set[str] = field(default_factory=set)
    there: set[str] = field(default_factory=set)  #: asked words that a check measures
    known: set[str] = field(default_factory=set)  #: words to choose from


choices: dict[str, Choice] = {}  #: by variable


def note_choice(
    variable: str, asked: Iterable[object], there: Iterable[object], known: Iterable[object] = ()
) -> None:
    """Record what the user chose for a variable of a check, and what of it this check measures."""
    choice = choices.setdefault(variable, Choice())
    choice.asked.update(map(str, asked))
    choice.there.update(map(str, there))
    choice.known.update(map(str, known))


def find_unmatched_choice() -> str:
    """Find a word of ``-S`` that matches nothing in any loaded check, with its fix; empty if none."""
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
    """Refuse a selection with a word that matches nothing in any loaded check.

    :raises ValueError: if there is one.
    """
    if wrong := find_unmatched_choice():
        atexit.unregister(fail_if_empty)  # this message is better
        raise ValueError(wrong)


def note_case(name: str) -> None:
    set_up.add(name)


def guard_selection() -> None:
    """End Python with an error if it should run or list only our checks, and no case matches."""
    if not are_all_ours(list_check_paths(sys.argv[1:])):
        return
    if any(word in RUNS for word in sys.argv[1:]):
        atexit.register(fail_if_empty)
        with contextlib.suppress(ImportError, AttributeError):  # for a future ReFrame
            refuse_empty_runs()
    with contextlib.suppress(ImportError, AttributeError):
        refuse_empty_lists()


def refuse_empty_runs() -> None:
    """Make ReFrame's runner end with our error if it gets no case, before it prints ``PASSED``."""
    from reframe.frontend.executors import Runner

    run_cases = Runner.runall

    def run_some_cases(runner: Any, testcases: Sequence[Any], *more: Any, **named: Any) -> Any:
        if not testcases:
            atexit.unregister(fail_if_empty)
            sys.exit(f"plumbline: {explain_nothing('was run')}")
        return run_cases(runner, testcases, *more, **named)

    Runner.runall = run_some_cases


def refuse_empty_lists() -> None:
    """Make ReFrame end with our error if it has listed tests and there were none."""
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
    """List the files and folders of checks that ReFrame is asked to load."""
    return [*find_options(words), *filter(None, os.environ.get(SEARCHED, "").split(":"))]


def find_options(words: Sequence[str], option: tuple[str, str] = PATHS) -> Iterator[str]:
    """Find the values of an option, short or long; by default those that name checks."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word in option:
            yield from words[number + 1 : number + 2]
        elif name in option and equals:
            yield value
        elif word.startswith(option[0]) and not word.startswith("--"):
            yield word[len(option[0]) :]


def chooses_tests(words: Sequence[str]) -> bool:
    """Return whether tests were selected by name, tag or expression: ``-n bcast``, ``-nbcast``, ``-t x``."""
    long = [option for option in CHOOSING if option.startswith("--")]
    short = tuple(option for option in CHOOSING if option not in long)
    return any(
        word.partition("=")[0] in long if word.startswith("--") else word.startswith(short) for word in words
    )


def are_all_ours(paths: Sequence[str]) -> bool:
    """Return whether there are check paths and all of them are ours."""
    real = [Path(path).resolve() for path in paths]
    return bool(real) and all(path == CHECKS or CHECKS in path.parents for path in real)


def fail_if_empty() -> None:
    """End the process with an error if no case was set up."""
    if set_up:
        return
    sys.stdout.flush()
    sys.stderr.write(f"plumbline: {explain_nothing('was run')}\n")
    sys.stderr.flush()
    os._exit(EMPTY)


def explain_nothing(what: str) -> str:
    """Explain that no case was run or listed, with the word that may be misspelled."""
    named = [word for option in NAMING for word in find_options(sys.argv[1:], option)]
    near = (propose_word(word, KNOWN_NAMES) for word in named if word not in KNOWN_NAMES)
    usual = "look at the options -n, -t, -E, -p and -S: a routine, size, count or tag may be misspelled"
    fix = next(filter(None, near), usual)
    return f"no case {what}: {find_unmatched_choice() or f'the selection matches none; {fix}'}"
