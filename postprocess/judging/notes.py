"""Report what is judged all the same, as waived differences and too many fast cases, and what a night sees."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence

from postprocess.base.formats import format_whole, plural
from postprocess.model.case import Case
from postprocess.model.interposed import INTERPOSED
from postprocess.model.launch import FinishedLaunch
from postprocess.model.reference import ENOUGH_SESSIONS, Reference
from postprocess.model.verdict import JUDGED, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.stats.night_spread import LEAST_NIGHTS, assume_nights
from postprocess.stats.planning.night_launches import compute_detectable
from postprocess.stats.planning.sample_size import TARGET, select_sensitive
from postprocess.stats.sessions import assume_sessions


def describe_waivers(finished: Sequence[FinishedLaunch], catalog: ReferenceCatalog) -> list[str]:
    """Describe each difference that the site accepts in a line, with the number of cases and the reason."""
    found: dict[str, set[Case]] = {}
    for line, case in list_waived_differences(finished, catalog):
        found.setdefault(line, set()).add(case)
    return [
        f"{plural(len(cases), 'case')} compared although {line}" for line, cases in found.items()
    ]


def list_waived_differences(
    finished: Sequence[FinishedLaunch], catalog: ReferenceCatalog
) -> Iterator[tuple[str, Case]]:
    """List the accepted differences, with their reasons, of every measured case that has a reference."""
    for each in finished:
        for case in each.launch.cases if each.run and each.launch.accepts else ():
            reference_set = catalog.find_set(case) if catalog.reference(case) else None
            accepts = each.launch.accepts
            for found in (
                reference_set.accepted(each.conditions, case, accepts) if reference_set else ()
            ):
                place = f"{case.partition}, {case.environment}, {case.program}"
                why = f"accepted by the site: {accepts[found.name]}"
                yield f"{found} in its reference ({place}); {why}", case


def describe_interposed_libraries(finished: Iterable[FinishedLaunch]) -> list[str]:
    """Describe what is loaded in front of each MPI in a line, whether or not it is so in the references."""
    return sorted(
        {
            f"{each.launch.partition}, {each.launch.environment}: {loaded} is loaded in front of the MPI"
            for each in finished
            if (loaded := each.conditions.circumstances.get(INTERPOSED))
        }
    )


MORE = 5  #: nights, or sessions of the calibration, that are looked forward to
WORTH_TELLING = 0.02  #: of the cases must gain by them


def describe_session_power(
    results: Iterable[CaseResult], catalog: ReferenceCatalog
) -> Iterator[str]:
    """Describe how many cases are provisional, and in how many a slowdown would be seen after more sessions."""
    known = [
        (each, reference)
        for each in results
        if each.verdict in JUDGED
        and each.value
        and (reference := catalog.reference(each.case, each.core_latency))
        and reference.session_prior
    ]
    if few := sum(reference.few_sessions for _, reference in known):
        yield (
            f"{plural(few, 'case')} provisional: fewer than {ENOUGH_SESSIONS} sessions are known of the "
            f"references; {LEAST_NIGHTS} nights, or calibrations on {ENOUGH_SESSIONS - 1} other days, tell more"
        )
    now = len(select_sensitive([each for each, _ in known]))
    ways: dict[str, Callable[[Reference, int], Reference]] = {
        f"{MORE} more nights": assume_nights,
        f"{MORE} more sessions on other days (./plumbline calibrate --at-most 5)": assume_sessions,
    }
    gains = []
    for how, assume in ways.items():
        then = count_seen((assume(one, MORE), max(each.launches, 1)) for each, one in known)
        if then - now > WORTH_TELLING * len(known):
            gains.append(f"after {how} in about {format_whole(then)}")
    if gains:
        what = f"a {TARGET:.0%} slowdown is seen in {format_whole(now)} of {plural(len(known), 'case')}"
        yield f"{what}; {', '.join(gains)}"


def count_seen(references: Iterable[tuple[Reference, int]]) -> int:
    """Count the references by which nights of so many launches see :data:`TARGET`."""
    return sum(compute_detectable(each, launches) <= TARGET for each, launches in references)


#: Of the judged cases of one environment and program; of a healthy night it is 0.1%.
FAST_SHARE = 0.2
FAST_CASES = 5  #: at least


def describe_fast_cases(
    results: Iterable[CaseResult], catalog: ReferenceCatalog, site: str
) -> Iterator[str]:
    """Describe, in a line each, the environments and programs of a partition with too many fast cases.

    Simulated time repeats: what is faster there is a change of the programs.
    """
    judged: dict[tuple[str, ...], list[CaseResult]] = {}
    for each in results:
        reference = catalog.reference(each.case, each.core_latency)
        if each.verdict in JUDGED and reference and not reference.exact:
            case = each.case
            judged.setdefault((case.partition, case.environment, case.program), []).append(each)
    for (partition, environment, program), some in sorted(judged.items()):
        fast = sum(each.verdict == Verdict.FAST for each in some)
        if fast < FAST_CASES or fast < FAST_SHARE * len(some):
            continue
        words = ["./plumbline", "calibrate"]
        words += ["--site", site, "--partition", partition] if site != "local" else []
        words += ["--environment", environment, "--program", program, "--afresh"]
        judged = plural(len(some), "judged case")
        yield (
            f"{partition}, {environment}, {program}: {format_whole(fast)} of {judged} are fast: the "
            "references were likely measured on a disturbed or slower machine and may hide a slowdown; "
            f"recalibrate: {shlex.join(words)}"
        )
