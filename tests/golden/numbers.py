"""Numbers of the statistics, of drawn references, nights, pairs and offers: the same to ten digits."""

import math
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass

import numpy as np

from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.stats.acceptance import (
    choose_acceptance_looks,
    compute_exceedance,
    compute_tolerance_limit,
    judge_acceptance,
)
from postprocess.stats.band import compute_band, compute_slow_distance
from postprocess.stats.curves import find_switches, fit_segments
from postprocess.stats.detection import (
    compute_confirmation_probability,
    compute_detectable_slowdown,
    compute_run_limit,
    compute_scatter,
)
from postprocess.stats.launches import summarise_trials
from postprocess.stats.paired_verdicts import PairedCase, choose_looks, estimate_paired_ratio, judge_pairs
from postprocess.stats.priors import add_priors
from postprocess.stats.sessions import SessionValue, compute_median_efficiency, predict_nights
from tests.golden.stage import Stage

SEED = 20_261_126
Random = np.random.Generator


def play(stage: Stage) -> None:
    """Compute everything from numbers that are drawn with a seed of their own."""
    tables = (references, headlines, pairs, curves, acceptances, probabilities)
    for number, table in enumerate(tables):
        random = np.random.default_rng((SEED, number))
        stage.keep(f"{table.__name__}.txt", "".join(f"{line}\n" for line in table(random)))


def show(value: object) -> str:
    """Write a number with ten digits, and what is made of numbers by its parts."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.10g}"
    if is_dataclass(value) and not isinstance(value, type):
        return show(asdict(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {show(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple | np.ndarray):
        return "[" + ", ".join(map(show, value)) + "]"
    return str(value)


def draw_case(random: Random, number: int) -> Case:
    """Draw a case; each has another number of processes."""
    routine = str(random.choice(["bcast", "alltoall", "pingpong", "barrier"]))
    size = int(random.choice([8, 1_000, 10_000, 1_000_000]))
    words = ("laptop", "cpu", "mpich-5.0.2", "mpicost", routine, 0, "evict", "barrier")
    return Case(*words, number + 2, number + 2, size)


def draw_reference(random: Random, number: int) -> Reference:
    """Draw a reference of some sessions, as a file has it."""
    launches = int(random.integers(1, 40))
    spread = float(np.exp(random.normal(-3.5, 0.8))) if launches > 1 else 0.0
    center = float(np.exp(random.normal(-11, 2)))
    return Reference(draw_case(random, number), center, spread, launches)


def references(random: Random) -> Iterator[str]:
    """Band, limits, detection limit and limits of a run of nights."""
    drawn = [draw_reference(random, number) for number in range(300)]
    moderated = add_priors({reference.case: reference for reference in drawn})
    for number, each in enumerate(moderated.values()):
        median_of = int(random.choice([1, 3, 5]))
        resolution = float(random.choice([0.0, 1e-8]))
        band = compute_band(each, resolution, median_of)
        numbers = [each.center, each.spread, each.launches, median_of, band.slow_limit, band.fast_limit]
        numbers += [compute_slow_distance(each, band), compute_scatter(each, median_of)]
        if number % 5 == 0:
            numbers += [compute_detectable_slowdown(each, median_of=median_of)]
            some = [SessionValue(0.05 * night, 3) for night in range(4)]
            numbers += [compute_run_limit(each, some), predict_nights(each, some)]
        yield show(numbers)


def headlines(random: Random) -> Iterator[str]:
    """What trials come to, with spikes, a second mode and late trials."""
    for _ in range(60):
        number = int(random.choice([5, 11, 51]))
        times = 1e-6 * (0.985 + random.gamma(1.5, 0.01, number))
        times[random.random(number) < 0.1] *= random.uniform(2, 12)
        times[1::3] *= random.choice([1.0, 1.1])
        late = random.random(number) < 0.05
        yield show(summarise_trials(times, late, 1, 1e-9))


def pairs(random: Random) -> Iterator[str]:
    """Ratios and verdicts of comparisons of some cases."""
    for _ in range(30):
        differences = random.normal(random.choice([0.0, 0.1]), 0.02, int(random.integers(6, 20)))
        yield show(estimate_paired_ratio(differences.tolist(), 0.05))
    for margin in (0.02, 0.05, 0.1):
        cases = [
            PairedCase(tuple(random.normal(shift, 0.03, 20).tolist()), margin)
            for shift in (0.0, 0.0, 0.01, 0.05, 0.2, -0.2)
        ]
        for result in judge_pairs(cases, choose_looks(20)):
            yield show(result)


def curves(random: Random) -> Iterator[str]:
    """Segments and switches of protocols of times by size."""
    sizes = [2**power for power in range(3, 22)]
    for late in (0.0, 4e-6):
        times = [
            (1e-6 + size / 5e9 + late * (size > 8192)) * math.exp(random.normal(0, 0.005)) for size in sizes
        ]
        segments = fit_segments(sizes, times)
        yield show(segments)
        yield show(find_switches(sizes, times, segments, 0.005))


def acceptances(random: Random) -> Iterator[str]:
    """Limits of offers, and rows of acceptances."""
    for launches in (5, 10, 20, 60):
        logs = random.normal(-13, 0.05, launches)
        yield show(compute_tolerance_limit(logs.tolist(), 0.9, 0.9))
        looks = choose_acceptance_looks(launches, 4 * launches)
        for slower in (-0.2, 0.0, 0.2):
            yield show([looks, judge_acceptance((logs + 13 + slower).tolist(), looks, 0.05, 0.05)])
    yield show([compute_exceedance(10, own, largest) for own in (5, 10) for largest in (1, 2, 3)])


def probabilities(random: Random) -> Iterator[str]:
    """Chances of the rules of confirmation and of medians."""
    yield show([compute_confirmation_probability(each) for each in random.random(20)])
    yield show([compute_median_efficiency(number) for number in range(1, 12)])
