"""How far stored sessions may lie off: by the references of their cases, else by what other machines had."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from postprocess.base.workdir import WorkDirectory
from postprocess.features.compare.data import Side, SideNoise
from postprocess.features.compare.measure.stored_sides import StoredCase
from postprocess.features.compare.unpaired import TABLE
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.references.catalog import load_catalog
from postprocess.references.session_priors import load_session_priors
from postprocess.stats.session_prior import add_session_priors
from postprocess.stats.sessions import predict_sessions, summarize_sessions
from postprocess.stats.shrinkage import add_priors

REFERENCE = "reference"
SideCases = Mapping[str, Sequence[StoredCase]]  #: launches with a value, by the key of a case


def find_case_noise(
    work: WorkDirectory, measured: Mapping[Side, SideCases]
) -> dict[str, dict[Side, SideNoise]]:
    """Find how far each case may lie off, by its key and side; without what nothing is known of.

    :param measured: launches by side and key
    :raises postprocess.base.errors.UsageError: if references or the store are damaged
    """
    rows = [row for side in measured.values() for some in side.values() for row in some]
    cases = {row.case for row in rows}
    places = {(f"{each.system}:{each.partition}", each.environment) for each in cases}
    catalog = load_catalog(work.reference_roots, places)
    others = assume_references(rows)
    found: dict[str, dict[Side, SideNoise]] = defaultdict(dict)
    for side, by_key in measured.items():
        for key, some in by_key.items():
            case = some[0].case
            told = predict_noise(catalog.reference(case), some, REFERENCE)
            if told := told or predict_noise(others.get(case), some, TABLE):
                found[key][side] = told
    return dict(found)


def predict_noise(
    reference: Reference | None, rows: Sequence[StoredCase], source: str
) -> SideNoise | None:
    """Predict how far the mean of the sessions of these launches lies off; None if nothing tells."""
    if reference is None or reference.exact or reference.moderated[1] <= 0:
        return None
    launches = Counter(row.session for row in rows)
    found = predict_sessions(reference, list(launches.values()))
    return SideNoise(found.deviation, found.degrees, source) if found.deviation > 0 else None


def assume_references(rows: Sequence[StoredCase]) -> dict[Case, Reference]:
    """Make references of the launches themselves: spread within sessions, and of sessions what others had.

    What lies between the sessions is not used: it is the very difference that is asked for.
    """
    values: dict[Case, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.value.value is not None and not row.value.exact:
            values[row.case][row.session].append(row.value.value)
    found = {}
    for case, sessions in values.items():
        flat = [value for some in sessions.values() for value in some]
        numbers = [n for n, some in enumerate(sessions.values()) for _ in some]
        spread = summarize_sessions(flat, numbers).spread
        worth = len(flat) - len(sessions) + 1  #: launches of one session that tell as much
        found[case] = Reference(case, flat[0], spread, worth)
    return add_session_priors(add_priors(found), load_session_priors())
