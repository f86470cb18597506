"""Trial runs of comparisons that were refused for their time: kept, and taken by a comparison that they fit.

One is taken only if nothing failed in it: what failed may be mended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, ComparisonHeader, ComparisonPass, LaunchValues, SharedCase
from postprocess.features.compare.measure.fitting import (
    KnownLaunch,
    drop_options,
    read_pass_cost,
    select_measured,
)
from postprocess.model.options import BUDGET, CHOOSING
from postprocess.model.verdict import Verdict

FOLDER = "compare"  #: of the work directory
#: Options without a part in how a launch is made.
OF_EXTENT = (
    *(option.flag for option in (*CHOOSING, BUDGET)),
    *("--seconds", "--margin", "--seed", "--output", "--json", "--plant", "--new-env"),
)


@dataclass(frozen=True)
class KeptTrial:
    """The trial run of a side, restricted to some cases."""

    path: Path
    done: ComparisonPass
    effects: data.ReferenceEffects | None  #: of the new side alone


def keep_trials(path: Path) -> Path | None:
    """Keep the trial runs of a comparison that is refused, beside where it was begun; None if it has none.

    :param path: of its passes, which are gone then
    :raises UsageError: if they cannot be kept
    """
    if not data.read_comparison(path).passes:
        return None
    kept = path.with_name(data.TRIAL)
    try:
        path.replace(kept)
    except OSError as error:
        raise UsageError(f"{kept}: {error.strerror}") from None
    return kept


def remove_trials(path: Path) -> None:
    """Remove the trial runs that an earlier call kept in the folder of a comparison that is measured now.

    :param path: of its passes
    :raises UsageError: if they cannot be removed
    """
    try:
        path.with_name(data.TRIAL).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path.with_name(data.TRIAL)}: {error.strerror}") from None


def find_trial(
    folders: Iterable[Path], header: ComparisonHeader, name: str, keys: Collection[str]
) -> KeptTrial | None:
    """Find the last trial run of a side that was made as it is to be made now, and in which nothing failed.

    :param folders: of comparisons
    :param header: of the comparison that needs it
    :param name: of its side
    :param keys: of all cases that it is to have
    """
    paths = [path for folder in folders if (path := folder / data.TRIAL).is_file()]
    for path in sorted(set(paths), key=lambda each: each.stat().st_mtime_ns, reverse=True):
        try:
            stored = data.read_comparison(path)
        except UsageError:
            continue  # damaged, or of another version: nothing is lost but time
        if not is_alike(stored.header, header):
            continue
        for each in stored.passes:
            if is_usable(stored.header, each, header, name, keys):
                effects = stored.effects if name == NEW else None
                return KeptTrial(path, restrict_pass(each, name, keys), effects)
    return None


def is_alike(kept: ComparisonHeader, asked: ComparisonHeader) -> bool:
    """Return whether two comparisons differ in sides, extent and time alone."""
    labels = {label for each in (kept, asked) for side in each.sides.values() for label in [side.label]}
    one, two = (
        [word for word in drop_options(each.command, OF_EXTENT) if word not in {*labels, "--control"}]
        for each in (kept, asked)
    )
    return kept.site == asked.site and one == two


def is_usable(
    kept: ComparisonHeader, each: ComparisonPass, asked: ComparisonHeader, name: str, keys: Collection[str]
) -> bool:
    """Return whether the trial run of a side is one of the side that is asked for, with all of its cases.

    What becomes of references is told for all cases of the new side together, so that it must have no others.
    """
    theirs, ours = kept.sides[each.side], asked.sides[name]
    if each.block or (theirs.environment, theirs.set_env) != (ours.environment, ours.set_env):
        return False
    said = dict(each.values)
    enough = (each.side, said.keys()) == (NEW, set(keys)) if name == NEW else said.keys() >= set(keys)
    return enough and not any(value.verdict not in ("", Verdict.SKIPPED) for value in said.values())


def restrict_pass(each: ComparisonPass, name: str, keys: Collection[str]) -> ComparisonPass:
    """Return the trial run of a side as if it had had these cases only."""
    wanted = {SharedCase.from_key(key) for key in keys}
    cost = read_pass_cost(each)
    launches = [restrict_launch(launch, wanted) for launch in each.launches]
    return replace(
        each,
        side=name,
        seconds=round(cost.estimate(wanted), 2) if cost else each.seconds,
        launches=tuple(launch for launch in launches if launch.cases),
    )


def restrict_launch(launch: LaunchValues, wanted: Collection[SharedCase]) -> LaunchValues:
    """Return a launch as if it had had these cases only."""
    cases = {key: said for key, said in launch.cases.items() if SharedCase.from_key(key) in wanted}
    measured = select_measured(launch)
    seconds = KnownLaunch(measured, launch.seconds).estimate(wanted) if measured else 0.0
    return replace(launch, cases=cases, seconds=seconds)
