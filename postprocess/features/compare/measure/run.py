"""A comparison of two sides from beginning to end: both measured in turn, judged at fixed looks, and told."""

import random
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError, propose_word
from postprocess.base.files import write_summary
from postprocess.base.formats import plural, utc_now
from postprocess.base.progress import Progress
from postprocess.base.records import find_other_field
from postprocess.base.workdir import WorkDirectory
from postprocess.features.compare import data, history_page, page
from postprocess.features.compare.data import ComparedSide, ComparisonHeader, StoredComparison
from postprocess.features.compare.judge import judge_comparison
from postprocess.features.compare.measure.bench import ComparisonBench, TooFewSecondsError
from postprocess.features.compare.measure.differences import take_fingerprints, tell_facts
from postprocess.features.compare.measure.fitting import FOLDER, keep_trials, remove_trials
from postprocess.features.compare.text import LIBRARY, format_comparison_text
from postprocess.model.options import PARTITION, PROGRAM, ROUTINE
from postprocess.model.routines.mpicost import CONTROLS
from postprocess.model.session import Request
from postprocess.session.lifecycle.context import SessionContext, open_session_context, refuse_override
from site_configs.mpi.family import ON, environment_name, is_prefix, parse_mpi_word, split_release
from site_configs.mpi.inventory import find_release
from site_configs.programs.installed import STANDARD_ABI
from site_configs.validation.reading import SiteReading
from site_configs.validation.rules import list_entries, select_sound
from site_configs.validation.site_files import read_usable_site

#: What must be asked for again to continue a comparison.
SAME_AGAIN = ("site", "old", "new", "choice", "margins", "seconds", "control", "versions")


def find_or_begin(
    work: WorkDirectory, directory: Path | None, asked: ComparisonHeader, progress: Progress
) -> tuple[Path, StoredComparison]:
    """Find the comparison that an earlier call of the same command left unfinished, or begin one.

    :param directory: where the user wants it; None for a folder of the work directory
    :raises UsageError: if the folder that was asked for holds another one, or one that is finished
    """
    if directory:
        path = directory / data.FILE
        if is_finished(directory):
            raise UsageError(f"{directory}: holds a comparison; choose another --output")
        found = path if path.exists() else None
    else:
        path = name_new_folder(work, asked) / data.FILE
        found = find_unfinished(work.root / FOLDER, asked)
    if found is None:
        data.append_record(path, asked)
        return path, data.read_comparison(path)
    journal = data.open_journal(found)
    journal.truncate_unfinished()
    stored = data.read_comparison(found)
    journal.require_same(stored.header, asked, SAME_AGAIN)
    progress.say(f"going on with {found}: {plural(len(stored.passes), 'pass', 'es')} done")
    return found, stored


def name_new_folder(work: WorkDirectory, asked: ComparisonHeader) -> Path:
    """Name the folder of a comparison that begins, by its time."""
    return work.root / FOLDER / asked.started_utc.replace(":", "").replace("-", "")


def find_unfinished(folder: Path, asked: ComparisonHeader) -> Path | None:
    """Find the last comparison that asked for the same and has no result yet."""
    for path in sorted(folder.glob(f"*/{data.FILE}"), reverse=True):
        if not is_finished(path.parent):
            try:
                header = data.read_comparison(path).header
            except UsageError:  # damaged: a new one is begun beside it
                continue
            if not find_other_field(header, asked, SAME_AGAIN):
                return path
    return None


def is_finished(folder: Path) -> bool:
    """Return whether a folder holds the result of a comparison or history."""
    return any((folder / each).exists() for each in (page.JSON, history_page.JSON))


def discard_refused(context: SessionContext, path: Path, why: UsageError) -> None:
    """Discard a comparison that was refused; but its trial runs are kept if only its time is too short."""
    if isinstance(why, TooFewSecondsError) and (kept := keep_trials(path)):
        context.progress.say(f"its trial runs are kept for a comparison that fits: {kept}")
    elif path.exists() and not data.read_comparison(path).looks:  # nothing in it counts
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()


MOST_TOLD = 76  #: letters of the text of a library
WRAPPER = ("extras", "mpicc")
#: What is told of an environment, in the order of telling: words for people, and keys of its declaration.
FACTS = (
    ("MPI library", ("extras", "library")),
    ("compiler wrapper", WRAPPER),
    ("prefix", ("extras", "prefix")),
    ("standard ABI of MPI", ("extras", STANDARD_ABI)),
    ("container", ("extras", "container")),
    ("modules", ("modules",)),
    ("launcher", ("extras", "launcher")),
    ("launcher", ("extras", "launch_words")),
)


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What the user asked for beyond a session's request."""

    margins: tuple[float, float, float]  #: as fractions, by class of sizes
    directory: Path | None = None
    seconds: int | None = None
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class ComparisonDemand(Demand):
    """What the user asked for of two sides; their environments are still to be found."""

    old: ComparedSide
    new: ComparedSide
    control: bool = False


def run_comparison(work: WorkDirectory, request: Request, demand: ComparisonDemand, progress: Progress) -> int:
    """Compare two sides. Returns the exit status."""
    with work.held():
        context = open_session_context(work, request, progress)
        asked = describe_comparison(context, demand)
        report_differences(asked, progress)
        path = measure_comparison(context, demand, asked)
    return conclude(path.parent, progress, request.json_file)


def measure_comparison(
    context: SessionContext, demand: ComparisonDemand, asked: ComparisonHeader, with_facts: bool = True
) -> Path:
    """Measure a comparison to its end, or go on with it; return the path of its passes.

    :param with_facts: whether the MPI of each side tells of itself, and is fingerprinted
    :raises UsageError: if the sides cannot be compared, or not in the time
    """
    path, stored = find_or_begin(context.work, demand.directory, asked, context.progress)
    bench = ComparisonBench(context, stored.header, path)
    try:
        bench.run_trials()
        bench.require_common_cases()
        bench.plan_looks()
        remove_trials(path)
        if with_facts:
            tell_facts(bench)
            take_fingerprints(bench)
    except UsageError as error:
        discard_refused(context, path, error)
        raise
    bench.run_blocks()
    return path


def describe_comparison(context: SessionContext, demand: ComparisonDemand) -> ComparisonHeader:
    """Describe a comparison as it begins.

    :raises UsageError: if a side is not there, or if both are the same thing
    """
    reading = read_usable_site(context.work, context.request.selection.site)
    declared = index_environments(reading)
    old, new = (
        replace(each, environment=find_environment(context, declared, each.label))
        for each in (demand.old, demand.new)
    )
    for side in (old, new):
        refuse_override(context.prepared.inventory, side.environment, side.set_env, "--new-env")
    differences = tuple(list_side_differences(declared, old, new))
    if not differences and not demand.control:
        raise UsageError(
            f"{demand.old.label} and {demand.new.label} are the same thing; name another side, "
            "or pass --control to see what is called different that is not"
        )
    choice = context.request.selection.choice
    return begin_header(
        context,
        demand,
        old=old,
        new=new,
        choice=choose_with_controls(choice) if has_controls(reading, choice) else choice,
        control=demand.control,
        differences=differences,
    )


def begin_header(context: SessionContext, demand: Demand, **more: Any) -> ComparisonHeader:
    """Return the header of what is measured from now on.

    :param more: fields that neither the request nor the demand has
    :raises UsageError: if variables are set for an MPI that is on no side
    """
    header = ComparisonHeader(
        site=context.request.site,
        margins=demand.margins,
        seconds=demand.seconds,
        seed=random.SystemRandom().randrange(2**32) if demand.seed is None else demand.seed,
        started_utc=utc_now(),
        command=tuple(context.request.command),
        **more,
    )
    sides = [side.environment for side in header.sides.values()]
    if other := next((name for name in context.request.selection.set_env if name not in sides), ""):
        raise UsageError(f"--set-env {other}: is on no side; name one of {', '.join(sides)}")
    return header


def has_controls(reading: SiteReading, choice: Mapping[str, Any]) -> bool:
    """Return whether a chosen partition times what no MPI has a part in, as simulated ones do not."""
    chosen = PARTITION.wanted(choice)
    partitions = select_sound(reading, list_entries(reading, "partition"))
    return any(not entry.extras["exact"] for entry in partitions if not chosen or entry.name in chosen)


def index_environments(reading: SiteReading) -> dict[str, Mapping[str, Any]]:
    return {entry.name: entry.data for entry in select_sound(reading, list_entries(reading, "environment"))}


def find_environment(context: SessionContext, declared: Mapping[str, Mapping[str, Any]], label: str) -> str:
    """Find the environment that a side names: by name, as a release such as ``mpich@4.3.2``, or by its prefix.

    With ``+abi`` behind it, that of the standard ABI is meant, else the other.

    :raises UsageError: if there is none
    """
    if label in declared:
        return label
    asked = parse_mpi_word(label)
    plain, by_abi = asked.plain, asked.by_abi
    fit = [each for each, data in declared.items() if bool(data.get("extras", {}).get(STANDARD_ABI)) == by_abi]
    family, version = split_release(plain)
    name = plain
    if version or is_prefix(plain) or by_abi or asked.layer:
        inventory = context.prepared.inventory
        mpi = find_release(inventory, context.work.root, label) if inventory else None
        usual = plain if is_prefix(plain) or not version else environment_name(family, version)
        name = mpi.name if mpi else usual
    if name not in fit:
        meant = [each for each in fit if each.startswith(f"{name}-") and bool(asked.layer) == (ON in each)]
        if len(meant) == 1:
            return meant[0]
        near = propose_word(name, declared) or propose_word(name, {each.partition("-")[0] for each in declared})
        choice = ", ".join(sorted(declared)) or "none"
        fix = f"it has {choice}" + (f"; {near}" if near else "")
        raise UsageError(f"{label}: site {context.request.site} has no such MPI; {fix}")
    return name


def list_side_differences(
    declared: Mapping[str, Mapping[str, Any]], old: ComparedSide, new: ComparedSide
) -> list[tuple[str, str, str]]:
    """List what differs between the sides: each with its words on the old and the new side."""
    one, two = declared[old.environment], declared[new.environment]
    facts = [(words, tell_fact(one, keys), tell_fact(two, keys)) for words, keys in FACTS]
    set_old, set_new = {**tell_variables(one), **old.set_env}, {**tell_variables(two), **new.set_env}
    names = sorted(set_old.keys() | set_new.keys())
    facts += [(f"variable {name}", set_old.get(name, ""), set_new.get(name, "")) for name in names]
    facts.append(("planted delay", old.plant, new.plant))
    return [(what, was or "none", now or "none") for what, was, now in facts if was != now]


def tell_fact(environment: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Tell a fact of an environment's declaration as text; empty if it has none.

    A program of the standard ABI is compiled by no wrapper of the MPI.
    """
    if keys == WRAPPER and environment["extras"].get(STANDARD_ABI):
        return ""
    found: Any = environment
    for key in keys:
        found = found.get(key, "") if isinstance(found, Mapping) else ""
    return " ".join(map(str, found)) if isinstance(found, (list, tuple)) else str(found)


def tell_variables(environment: Mapping[str, Any]) -> dict[str, str]:
    found = environment.get("env_vars", {})
    return {str(name): str(value) for name, value in dict(found).items()}


def choose_with_controls(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choice of the user, with the controls beside the routines that were chosen."""
    routines, programs = ROUTINE.wanted(choice), PROGRAM.wanted(choice)
    if not routines or (programs and "mpicost" not in programs):
        return dict(choice)
    return {**choice, ROUTINE.variable: list(dict.fromkeys([*routines, *CONTROLS]))}


def report_differences(asked: ComparisonHeader, progress: Progress) -> None:
    """Say what differs between the sides, before anything is measured."""
    progress.say(f"old: {asked.old.label} ({asked.old.environment})")
    progress.say(f"new: {asked.new.label} ({asked.new.environment})")
    for what, *both in asked.differences:
        # the text of a library has many lines, of which the facts tell what differs
        most = MOST_TOLD if what == LIBRARY else max(map(len, both))
        told = (textwrap.shorten(each, most, placeholder=" ...") for each in both)
        progress.say(f"  {what}: {' -> '.join(told)}")
    if not asked.differences:
        progress.say("  nothing differs: a control")


def conclude(directory: Path, progress: Progress, json_file: Path | None = None) -> int:
    """Judge a comparison, write its pages and show it. Returns the exit status.

    :raises UsageError: if the folder has none
    """
    judged = judge_comparison(data.read_comparison(directory / data.FILE))
    written = page.write_comparison_page(directory, judged)
    told = format_comparison_text(judged, page.tabulate_heat_maps(judged), directory)
    print(told, end="", flush=True)
    if json_file:
        write_summary(json_file, page.build_judged_json(judged))
    progress.say(f"{written}; every value: {directory / data.FILE}")
    return judged.decision.status
