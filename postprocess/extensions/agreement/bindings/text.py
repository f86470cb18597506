"""Format what languages cost: a table for each MPI, and a line for each that has no row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from postprocess.base.formats import factor, microseconds, plural, size
from postprocess.base.text_table import TextTable, render_text
from postprocess.extensions.agreement.bindings.exchange import BATCHES
from postprocess.extensions.agreement.bindings.measure import BASIS, BindingsResult, LanguageRatio

MPI4PY = "mpi4py: thread level single as C's, or its default; in brackets what the MPI provided"


def format_bindings(result: BindingsResult) -> str:
    """Format all of it for a terminal, with a line at the end that counts."""
    tables = [
        build_language_table(environment, [*rows])
        for environment, rows in groupby(result.rows, key=lambda row: row.environment)
    ]
    lines = [
        f"{word}: {fault.environment}: {fault.title}: {fault.reason}"
        for word, faults in (("skipped", result.skipped), ("error", result.failures))
        for fault in faults
    ]
    measured = {(row.environment, row.language) for row in result.rows if row.language != BASIS}
    lines.append(
        f"{plural(len(measured), 'comparison')} with C, {len(result.skipped)} skipped, "
        f"{plural(len(result.failures), 'error')}"
    )
    return "\n".join([*map(render_text, tables), ""]) + "".join(f"{line}\n" for line in lines)


def build_language_table(environment: str, rows: list[LanguageRatio]) -> TextTable:
    """Build a row for each language and routine, a column for each size."""
    sizes = sorted({row.bytes for row in rows})
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        title = row.title + (f" ({row.level})" if row.language.startswith("mpi4py") else "")
        cells.setdefault((row.routine, title), {})[row.bytes] = format_cost(row)
    return TextTable(
        f"{environment}: time of a call over that in C",
        ("routine", "language"),
        tuple(size(each) for each in sizes),
        tuple((*about, *(found[each] for each in sizes)) for about, found in order(cells)),
        (
            f"ratio within the round, with its 95 % interval over {plural(rows[0].launches, 'launch', 'es')}, "
            f"and microseconds over C; a launch counts by the least of {BATCHES} batches",
            "C: microseconds of a call; C again: the same program once more, and so what cannot be told apart",
            *([MPI4PY] if any(row.language.startswith("mpi4py") for row in rows) else []),
        ),
    )


def order(cells: dict[tuple[str, str], dict[int, str]]) -> Iterator[tuple[tuple[str, str], dict[int, str]]]:
    """Order rows by routine, the languages of each as they were measured."""
    routines = [*dict.fromkeys(routine for routine, _ in cells)]
    yield from sorted(cells.items(), key=lambda item: routines.index(item[0][0]))


def format_cost(row: LanguageRatio) -> str:
    """Format a ratio with its interval and the time over C; of C itself its time."""
    if row.language == BASIS:
        return microseconds(row.seconds)
    extra = f"{'+' if row.extra >= 0 else '-'}{microseconds(abs(row.extra))}"
    return f"{factor(row.ratio)} ({factor(row.low)} to {factor(row.high)}), {extra}"
