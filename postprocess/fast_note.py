"""What is said where many cases are suspiciously fast: then it is the references that are wrong.

A machine that was disturbed or slower when it was calibrated has bands in which a slowdown would pass.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from postprocess.formats import plural, whole
from postprocess.reference_book import ReferenceBook
from postprocess.verdicts import JUDGED, CaseResult, Verdict

#: Of the judged cases of one environment and program; of a healthy night it is 0.1%.
FAST_SHARE = 0.2
FAST_CASES = 5  #: at least


def fast_notes(results: Iterable[CaseResult], book: ReferenceBook, site: str) -> Iterator[str]:
    """One line for each environment and program of a partition with too many fast cases.

    Simulated time repeats: what is faster there is a change of the programs.
    """
    judged: dict[tuple[str, ...], list[CaseResult]] = {}
    for each in results:
        reference = book.reference(each.case)
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
        yield (
            f"{partition}, {environment}, {program}: {whole(fast)} of {plural(len(some), 'judged case')} are "
            "fast: the references seem to be of a disturbed or slower machine, and hide a slowdown; "
            f"{shlex.join(words)} measures them anew"
        )
