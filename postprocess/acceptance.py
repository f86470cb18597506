"""Tells what was compared although it differs from its reference: a site's leave is never silent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from postprocess.cases import Case
from postprocess.formats import plural
from postprocess.judgement import Finished
from postprocess.reference_book import ReferenceBook


def accepted_notes(finished: Sequence[Finished], book: ReferenceBook) -> list[str]:
    """One line for each difference that the site accepts, with the number of cases and the site's reason."""
    found: dict[str, set[Case]] = {}
    for line, case in accepted_differences(finished, book):
        found.setdefault(line, set()).add(case)
    return [
        f"{plural(len(cases), 'case')} compared although {line}" for line, cases in found.items()
    ]


def accepted_differences(
    finished: Sequence[Finished], book: ReferenceBook
) -> Iterator[tuple[str, Case]]:
    """What differs, by whose leave, of every case that was measured and has a reference."""
    for each in finished:
        for case in each.launch.cases if each.run and each.launch.accepts else ():
            shelf = book.shelf(case) if book.reference(case) else None
            accepts = each.launch.accepts
            for found in (
                shelf.accepted(each.run, each.launch.exact, case, accepts) if shelf else ()
            ):
                place = f"{case.partition}, {case.environment}, {case.program}"
                why = f"accepted by the site: {accepts[found.name]}"
                yield f"{found} in its reference ({place}); {why}", case
