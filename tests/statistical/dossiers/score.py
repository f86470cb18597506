"""The score of a self-test of ``compare``: what dossiers caught, missed and wrongly called.

Beside it stands what is promised (``postprocess.stats.paired_verdicts``). Of the cases called
slower 5% at most are false on average, so 5% of the dossiers without a plant call anything. Of the cases
that are slower by more than the margin 5% at most are proven not worse. How many are caught follows from how
pairs scatter: it is the power of the paired t test at the last look, at the level that Benjamini and Hochberg
leave to that many.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import scipy

from postprocess.base.formats import format_signed, plural
from postprocess.extensions.selftest.score import CHANCE, Outcome, PlantScore
from postprocess.session.lifecycle.injections import INJECTION_KINDS
from postprocess.stats.paired_verdicts import BLOCK_CORRELATION, EFFICIENCY, ERROR, NOT_WORSE, PairedVerdict
from tests.statistical.dossiers.schedule import DossierCase, FinishedDossier

FINE = {str(each) for each in NOT_WORSE}
DECIDED = {str(each) for each in PairedVerdict}


@dataclass(frozen=True)
class PlantedScore(PlantScore):
    """What dossiers with one plant came to. Counts are of cases in dossiers; void dossiers are left out."""

    dossiers: int
    void: int  #: of the dossiers
    targets: int
    promised: float | None  #: expected number that are caught; None of what spares launches
    caught: int  #: called slower
    undecided: int
    missed: int  #: proven not slower
    beyond: int  #: targets slower by more than their margin, by the median of their routine
    waved: int  #: of those, proven not worse
    others: int  #: cases beside the plant
    accused: int  #: of those called slower

    @property
    def must_show(self) -> bool:
        """Whether every launch of the new side is delayed."""
        return INJECTION_KINDS[self.name].must_show


@dataclass(frozen=True)
class UnchangedScore:
    """What the rules said of cases that nothing had slowed."""

    name: str  #: of the kind of cases
    dossiers: int
    cases: int
    verdicts: dict[str, int]
    accusing: int | None  #: dossiers that call a case slower; None where dossiers do not count

    @property
    def accused(self) -> int:
        """Cases called slower."""
        return self.verdicts.get(PairedVerdict.SLOWER, 0)

    def share(self, verdict: str) -> float:
        return self.verdicts.get(verdict, 0) / self.cases if self.cases else 0.0


@dataclass(frozen=True)
class DossierScores(Outcome):
    """The scores of a self-test of ``compare``."""

    plants: tuple[PlantedScore, ...]
    unchanged: tuple[UnchangedScore, ...]  #: nothing planted; beside a plant; launches of one side
    accused: tuple[tuple[int, str, float], ...]  #: dossier, key and ratio of what was called slower
    void: int


def score_dossiers(dossiers: Sequence[FinishedDossier], planned: int) -> DossierScores:
    """Score dossiers.

    :param planned: how many there are to be
    """
    sound = [dossier for dossier in dossiers if not dossier.void]
    plants = tuple(
        score_planted(name, dossiers)
        for name in INJECTION_KINDS
        if any(dossier.planned.plant == name for dossier in dossiers)
    )
    quiet = [dossier for dossier in sound if not dossier.planned.plant]
    loud = [dossier for dossier in sound if dossier.planned.plant]
    unchanged = (
        score_unchanged("nothing planted", quiet),
        score_unchanged("beside a plant", loud),
        score_one_side(dossiers),
    )
    accused = tuple(
        (dossier.planned.number, case.key, case.ratio or 0.0)
        for dossier in sound
        for case in dossier.cases
        if not case.target and case.verdict == PairedVerdict.SLOWER
    )
    done = len(dossiers)
    unfinished = f"only {done} of {plural(planned, 'dossier')} are done" if done < planned else ""
    faults = tuple(find_dossier_faults(sound, plants, unchanged[0]))
    void = done - len(sound)
    return DossierScores(plants, unchanged, accused, void, faults=faults, unfinished=unfinished)


def score_planted(name: str, dossiers: Sequence[FinishedDossier]) -> PlantedScore:
    plant = INJECTION_KINDS[name]
    own = [each for each in dossiers if each.planned.plant == name]
    sound = [each for each in own if not each.void]
    targets = [(each, case) for each in sound for case in each.cases if case.target]
    verdicts = Counter(case.verdict for _, case in targets)
    reached = {
        routine: measure_ratio(case for _, case in targets if case.routine == routine)
        for routine in {case.routine for _, case in targets}
    }
    beyond = [case for _, case in targets if (reached[case.routine] or 1.0) > 1 + case.margin]
    promised = sum(
        predict_caught(dossier, case, min(plant.intended, (reached[case.routine] or 1.0) - 1))
        for dossier, case in targets
    )
    others = [case for each in sound for case in each.cases if not case.target]
    ratio = measure_ratio(case for _, case in targets)
    return PlantedScore(
        name=name,
        dossiers=len(own),
        void=len(own) - len(sound),
        intended=plant.intended,
        realised=None if ratio is None else ratio - 1,
        targets=len(targets),
        promised=promised if plant.must_show else None,
        caught=verdicts[PairedVerdict.SLOWER],
        undecided=verdicts[PairedVerdict.UNDECIDED],
        missed=sum(verdicts[each] for each in FINE),
        beyond=len(beyond) if plant.must_show else 0,
        waved=sum(case.verdict in FINE for case in beyond) if plant.must_show else 0,
        others=len(others),
        accused=sum(case.verdict == PairedVerdict.SLOWER for case in others),
    )


def measure_ratio(cases: Iterable[DossierCase]) -> float | None:
    """Measure the median ratio of some cases; None if none has any."""
    found = [case.ratio for case in cases if case.ratio is not None]
    return statistics.median(found) if found else None


def predict_caught(dossier: FinishedDossier, case: DossierCase, slower: float) -> float:
    """Predict the probability that the last look calls a case slower, as its pairs scatter.

    :param slower: by how much it is slower in truth, as a fraction
    """
    if not case.scatter or not dossier.looks or slower <= 0:
        return 0.0
    pairs, shift = dossier.looks[-1], math.log1p(slower)
    share = sum(each.target for each in dossier.cases) / len(dossier.cases)
    level = ERROR / len(dossier.looks) * share
    error = case.scatter / math.sqrt(pairs)
    limit = scipy.stats.t.isf(level, pairs - 1) * math.sqrt(1 + BLOCK_CORRELATION)
    significant = float(scipy.stats.nct.sf(limit, pairs - 1, shift / error))
    large = scipy.stats.norm.sf((math.log1p(case.margin) / 2 - shift) / (error * math.sqrt(EFFICIENCY)))
    return min(significant, float(large))


def score_unchanged(name: str, dossiers: Sequence[FinishedDossier]) -> UnchangedScore:
    """Score the cases of dossiers that nothing slowed."""
    cases = [case for dossier in dossiers for case in dossier.cases if not case.target]
    accusing = sum(
        any(not case.target and case.verdict == PairedVerdict.SLOWER for case in dossier.cases)
        for dossier in dossiers
    )
    verdicts = dict(Counter(case.verdict for case in cases))
    return UnchangedScore(name, len(dossiers), len(cases), verdicts, accusing)


def score_one_side(dossiers: Sequence[FinishedDossier]) -> UnchangedScore:
    """Score what the same rules say of launches of one side against each other."""
    verdicts: Counter[str] = Counter()
    for dossier in dossiers:
        verdicts.update(dossier.one_side)
    return UnchangedScore("launches of one side", len(dossiers), verdicts.total(), dict(verdicts), None)


def find_dossier_faults(
    dossiers: Sequence[FinishedDossier], plants: Sequence[PlantedScore], unchanged: UnchangedScore
) -> Iterator[str]:
    """Find the faults that fail a self-test of ``compare``, one line each."""
    if not dossiers:
        yield "no dossier counts: nothing is proven"
    lost = [case for dossier in dossiers for case in dossier.cases if case.verdict not in DECIDED]
    if lost:
        first = f"{lost[0].key}: {lost[0].verdict}"
        yield f"{plural(len(lost), 'case')} of a dossier have no speed: {first}"
    accusing = unchanged.accusing or 0
    if is_beyond_chance(accusing, unchanged.dossiers, ERROR):
        yield (
            f"nothing planted: {accusing} of {plural(unchanged.dossiers, 'dossier')} call a case slower, and "
            f"{ERROR:.0%} may"
        )
    for plant in plants:
        if is_beyond_chance(plant.waved, plant.beyond, ERROR):
            yield (
                f"{plant.name}: {plant.waved} of {plural(plant.beyond, 'case')} slower by more than the "
                f"margin were proven not worse, and {ERROR:.0%} may be"
            )
        if not plant.must_show or not plant.targets:
            continue
        if not plant.worked:
            yield (
                f"{plant.name}: did not work: {format_signed(plant.realised)} "
                f"where {format_signed(plant.intended)} was intended"
            )
        elif is_too_few(plant.caught, plant.promised or 0.0, plant.targets):
            yield (
                f"{plant.name}: {plant.caught} of {plural(plant.targets, 'case')} were caught, and "
                f"{plant.promised:.1f} were promised"
            )


def is_beyond_chance(count: int, of: int, rate: float) -> bool:
    """Return whether so many are improbable if each comes with this probability."""
    return count > 0 and float(scipy.stats.binom.sf(count - 1, of, rate)) < CHANCE


def is_too_few(count: int, expected: float, of: int) -> bool:
    """Return whether so few are improbable where so many were expected, of cases that are alike."""
    return float(scipy.stats.binom.cdf(count, of, min(expected / of, 1.0))) < CHANCE
