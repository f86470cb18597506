"""Report what is judged all the same, as waived differences and too many fast cases, and what a night sees."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from postprocess.base.formats import format_whole, plural
from postprocess.model.case import Case
from postprocess.model.interposed import INTERPOSED, describe_standing
from postprocess.model.launch import FinishedLaunch
from postprocess.model.session import LOCAL, list_site_words
from postprocess.model.verdict import JUDGED, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog


def describe_waivers(finished: Sequence[FinishedLaunch], catalog: ReferenceCatalog) -> list[str]:
    """Describe each difference that the site accepts in a line, with the number of cases and the reason."""
    found: dict[str, set[Case]] = {}
    for line, case in list_waived_differences(finished, catalog):
        found.setdefault(line, set()).add(case)
    return [f"{plural(len(cases), 'case')} compared although {line}" for line, cases in found.items()]


def list_waived_differences(
    finished: Sequence[FinishedLaunch], catalog: ReferenceCatalog
) -> Iterator[tuple[str, Case]]:
    """List the accepted differences, with their reasons, of every measured case that has a reference."""
    for launched in finished:
        for case in launched.launch.cases if launched.run and launched.launch.accepts else ():
            reference_set = catalog.find_set(case) if catalog.reference(case) else None
            accepts = launched.launch.accepts
            for found in reference_set.accepted(launched.conditions, case, accepts) if reference_set else ():
                place = f"{case.partition}, {case.environment}, {case.program}"
                why = f"accepted by the site: {accepts[found.name]}"
                yield f"{found} in its reference ({place}); {why}", case


def describe_interposed_libraries(finished: Iterable[FinishedLaunch]) -> list[str]:
    """Describe what is loaded in front of each MPI in a line, whether or not it is so in the references."""
    return sorted(
        {
            f"{run.launch.partition}, {run.launch.environment}: {describe_standing(loaded)}"
            for run in finished
            if (loaded := run.conditions.circumstances.get(INTERPOSED))
        }
    )


#: Of the judged cases of one environment and program; of a healthy night it is 0.1%.
FAST_SHARE = 0.2
FAST_CASES = 5  #: at least


def describe_fast_cases(results: Iterable[CaseResult], catalog: ReferenceCatalog, site: str) -> Iterator[str]:
    """Describe, in a line each, the environments and programs of a partition with too many fast cases.

    Simulated time repeats: what is faster there is a change of the programs.
    """
    judged: dict[tuple[str, ...], list[CaseResult]] = {}
    for result in results:
        reference = catalog.reference(result.case, result.core_latency)
        if result.verdict in JUDGED and reference and not reference.exact:
            case = result.case
            judged.setdefault((case.partition, case.environment, case.program), []).append(result)
    for (partition, environment, program), some in sorted(judged.items()):
        fast = sum(result.verdict == Verdict.FAST for result in some)
        if fast < FAST_CASES or fast < FAST_SHARE * len(some):
            continue
        words = ["./plumbline", "calibrate", *list_site_words(site)]
        words += ["--partition", partition] if site != LOCAL else []
        words += ["--environment", environment, "--program", program, "--afresh"]
        counted = plural(len(some), "judged case")
        yield (
            f"{partition}, {environment}, {program}: {format_whole(fast)} of {counted} are fast: the "
            "references were likely measured on a disturbed or slower machine and may hide a slowdown; "
            f"recalibrate: {shlex.join(words)}"
        )
