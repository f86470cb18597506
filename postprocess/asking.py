"""What the user asks for: the options of a command that measures, as a session's request."""

from __future__ import annotations

import argparse
import sys

from postprocess.desk import Request
from postprocess.errors import UsageError
from postprocess.reference_trials import as_references
from postprocess.reframe_driver import Selection
from postprocess.site_files import site_file
from postprocess.workdir import WorkDirectory

#: Options that some programs do not have, or not with this value, and the programs that do.
OPTIONS_OF = {
    ("trials", None): ("mpicost",),
    ("iterations", None): ("osu", "imb"),
    ("cache", "flush"): ("mpicost",),
    ("cache", "rotate"): ("imb",),
}

#: Commands that measure as the references were measured.
HELD_AGAINST = ("nightly", "run", "list", "selftest")


def refuse_without_effect(arguments: argparse.Namespace) -> None:
    """An option that no chosen program has is a mistake, and its silence would be taken for a result.

    :raises UsageError: naming the option.
    """
    for (name, only), programs in OPTIONS_OF.items():
        value, chosen = getattr(arguments, name), arguments.program
        if value and only in (None, value) and chosen and not {*chosen} & {*programs}:
            raise UsageError(
                f"--{name} {value}: is for {' and '.join(programs)} only, and --program "
                f"{','.join(chosen)} chooses no such program; drop one of the two options"
            )


def selection(work: WorkDirectory, arguments: argparse.Namespace, launches: int = 1) -> Selection:
    """The user's choice in terms of the checks."""
    refuse_without_effect(arguments)
    choice = {
        "programs": arguments.program,
        "routines": arguments.routine,
        "sizes": arguments.bytes,
        "partitions": arguments.partition,
        "processes": arguments.processes,
        "per_node": arguments.per_node,
        "peers": arguments.peers,
        "trials": arguments.trials,
        "iterations": arguments.iterations,
        "cache": arguments.cache,
        "sync": arguments.sync,
        "time_limit": arguments.time_limit and f"{arguments.time_limit}s",
        "strict": getattr(arguments, "strict", False),
    }
    set_env: dict[str, dict[str, str]] = {}
    for environment, name, value in arguments.set_env:
        if arguments.environment and environment not in arguments.environment:
            raise UsageError(f"--set-env {environment}: is not among those of --environment")
        set_env.setdefault(environment, {})[name] = value
    return Selection(
        site=site_file(work.source, arguments.site),
        environments=arguments.environment,
        choice={name: value for name, value in choice.items() if value},
        launches=launches,
        set_env=set_env,
        oversubscribe=arguments.oversubscribe,
    )


def request(work: WorkDirectory, arguments: argparse.Namespace) -> Request:
    """The whole of what the user asks for."""
    searched = getattr(arguments, "references", None)
    if searched and not searched.is_dir():
        raise UsageError(f"--references {searched}: is not a directory; name one that is there")
    references = searched or getattr(arguments, "output", None)
    chosen = selection(work, arguments, getattr(arguments, "launches", None) or 1)
    return Request(
        mode=arguments.name,
        command=["./plumbline", *sys.argv[1:]],
        site=arguments.site,
        selection=as_references(chosen) if arguments.name in HELD_AGAINST else chosen,
        families=arguments.mpis,
        strict=getattr(arguments, "strict", False),
        json_file=getattr(arguments, "json", None),
        references=references and references.absolute(),  # ReFrame runs in another directory
        rerun_options=rerun_options(arguments),
    )


def rerun_options(arguments: argparse.Namespace) -> list[str]:
    """The options under which a case was measured, beside those that choose it."""
    words = ["--mpis", ",".join(arguments.mpis)] if arguments.mpis else []
    words += ["--oversubscribe"] if arguments.oversubscribe else []
    words += [f"--set-env={place}:{name}={value}" for place, name, value in arguments.set_env]
    if references := getattr(arguments, "references", None):
        words += ["--references", str(references)]
    return words
