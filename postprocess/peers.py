"""Cases that are held against their peers of the same session: there is no reference for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from postprocess.cases import Case
from postprocess.judgement import Finished, verdicts
from postprocess.reference_book import ReferenceBook
from postprocess.verdicts import CaseResult, Verdict

NOT_HELD = "compared with its peers, and with no reference"


def judged(
    finished: Sequence[Finished],
    reason_of: Callable[[Case], str | None],
    accused: Verdict,
    again: str,
) -> list[CaseResult]:
    """A verdict for each case: ``accused`` for those that are, with their reason, and else ``pass``.

    :param again: the command that compares all of them again.
    """
    results = []
    for result in verdicts(finished, ReferenceBook(), ""):
        held = result
        if result.verdict == Verdict.NO_REFERENCE:
            reason = reason_of(result.case)
            verdict = accused if reason else Verdict.PASS
            held = replace(result, verdict=verdict, reason=reason or NOT_HELD)
        results.append(replace(held, rerun=again))
    return results
