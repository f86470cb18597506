"""What the user asks for: the options of a command that measures, as a session's request."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from postprocess.base.errors import NOT_CHOSEN, UsageError, may_name_one
from postprocess.base.workdir import WorkDirectory
from postprocess.model import options
from postprocess.model.routines.benchmark import LOOP
from postprocess.model.routines.mpicost import FAMILIES, WARM
from postprocess.model.routines.paper_families import PAPER_FAMILIES
from postprocess.model.session import Request, Selection, use_reference_trials
from site_configs.schema.manual_settings import select_shell_settings
from site_configs.validation.site_files import locate_site_file

#: Commands that measure as the references were measured.
HELD_AGAINST = ("nightly", "confirm", "run", "list", "selftest")

#: Commands that judge a median of launches.
JUDGING = ("nightly", "run", "list")


def check_options_take_effect(arguments: argparse.Namespace) -> None:
    """Refuse an option that none of the chosen programs has. Raises UsageError naming the option."""
    given = vars(arguments)
    chosen = given.get("program")
    for option in options.OPTIONS:
        value = given.get(option.name)
        programs = option.programs_with(value)
        if value and chosen and not {*chosen} & {*programs}:
            *others, last = programs
            named = f"{', '.join(others)} and {last}" if others else last
            raise UsageError(
                f"{option.flag} {value}: is for {named} only, and --program "
                f"{','.join(chosen)} chooses no such program; drop one of the two options"
            )


def build_selection(work: WorkDirectory, arguments: argparse.Namespace, launches: int = 1) -> Selection:
    """Build the user's choice in terms of the checks."""
    check_options_take_effect(arguments)
    given = vars(arguments)
    choice = {option.variable: given[option.name] for option in options.OPTIONS if given.get(option.name)}
    if family := given.get("family"):
        choose_family(choice, family)
    if (
        choice.get(options.SYNCHRONISER.variable) == LOOP
        and choice.get(options.CACHE_STATE.variable, WARM) != WARM
    ):
        cache = choice[options.CACHE_STATE.variable]
        what = "only the first call of a loop would be cold; drop --cache"
        raise UsageError(f"--sync loop --cache {cache}: {what}")
    if arguments.time_limit:
        choice[options.TIME_LIMIT] = f"{arguments.time_limit}s"
    set_env: dict[str, dict[str, str]] = {}
    for environment, name, value in given.get("set_env", ()):
        chosen = arguments.environment  # which of them it is, if any, the site tells
        if chosen and not any(may_name_one(environment, each) for each in chosen):
            raise UsageError(f"--set-env {environment}: {NOT_CHOSEN}")
        set_env.setdefault(environment, {})[name] = value
    return Selection(
        site=locate_site_file(work.source, arguments.site),
        environments=arguments.environment,
        choice=choice,
        launches=launches,
        set_env=set_env,
        oversubscribe=given.get("oversubscribe", False),
        shell=select_shell_settings(os.environ),
    )


def choose_family(choice: dict[str, Any], family: str) -> None:
    """Choose of a family the routines that were named, or all. Raises UsageError where one is not of it."""
    if family in FAMILIES:
        named = choice.setdefault(options.ROUTINE.variable, [*FAMILIES[family]])
        if foreign := [name for name in named if name not in FAMILIES[family]]:
            raise UsageError(
                f"--routine {foreign[0]}: is not of --family {family}, which has "
                f"{', '.join(FAMILIES[family])}; drop one of the two options"
            )
        return
    choice[options.FAMILY] = family
    paper = PAPER_FAMILIES[family]
    choice.setdefault(options.ROUTINE.variable, [*paper.routines])
    choice.setdefault(options.SYNCHRONISER.variable, paper.sync)  # no reference of another is missing then


def build_request(work: WorkDirectory, arguments: argparse.Namespace) -> Request:
    given = vars(arguments)
    output = given.get("output")
    references = locate_searched(arguments) or (output and output.absolute())
    chosen = build_selection(work, arguments, given.get("launches") or 1)
    return Request(
        mode=find_mode(arguments),
        command=["./plumbline", *sys.argv[1:]],
        site=arguments.site,
        selection=use_reference_trials(chosen) if arguments.name in HELD_AGAINST else chosen,
        families=arguments.mpis,
        launches=given.get("launches") if arguments.name in JUDGING else None,
        strict=given.get("strict", False),
        confirm_after=given.get("confirm_after", 0),
        references=references,
        **list_outputs(arguments),
        rerun_options=list_rerun_options(arguments),
    )


def locate_searched(arguments: argparse.Namespace) -> Path | None:
    """Locate the directory that is searched for references first: ReFrame runs in another directory.

    :raises UsageError: if it is none.
    """
    searched = vars(arguments).get("references")
    if searched and not searched.is_dir():
        raise UsageError(f"--references {searched}: is not a directory; name one that is there")
    return searched and searched.absolute()


def list_outputs(arguments: argparse.Namespace) -> dict[str, Any]:
    """List what a request says of the places to which the verdicts of its session go."""
    given = vars(arguments)
    return {
        "json_file": given.get("json"),
        "junit_file": given.get("junit"),
        "openmetrics_file": given.get("openmetrics"),
        "on_failure": given.get("on_failure") or "",
    }


def find_mode(arguments: argparse.Namespace) -> str:
    """Find the mode of a session: its command; a night under special options is a run."""
    given = vars(arguments)
    by_hand = any(given.get(flag.strip("-").replace("-", "_")) for flag in options.OF_A_TRIAL)
    return "run" if by_hand and arguments.name == "nightly" else arguments.name


def list_rerun_options(arguments: argparse.Namespace) -> list[str]:
    """List the options under which a case was measured, beside those that choose it."""
    given = vars(arguments)
    words = ["--mpis", ",".join(arguments.mpis)] if arguments.mpis else []
    words += ["--oversubscribe"] if given.get("oversubscribe") else []
    if arguments.name in JUDGING and given.get("launches"):
        words += ["--launches", str(arguments.launches)]
    set_env = given.get("set_env", ())
    words += ["--family", given["family"]] if given.get("family") else []
    words += [f"--set-env={place}:{name}={value}" for place, name, value in set_env]
    if references := given.get("references"):
        words += ["--references", str(references)]
    return words
