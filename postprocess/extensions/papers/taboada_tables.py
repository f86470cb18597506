"""The tables of Taboada et al. of sessions: models and their peaks, accuracy, networks, faster compositions."""

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.errors import UsageError
from postprocess.base.formats import NOT_PRINTED, TextTable, format_significant, plural
from postprocess.base.grouping import group_pairs
from postprocess.extensions.papers import cells, taboada_models
from postprocess.extensions.papers.asides import PAIR
from postprocess.extensions.papers.linear_model import COMPOSITIONS, FACTORS, Growth, find_crossovers
from postprocess.extensions.papers.measurements import LABELS, PaperMeasurements, Place
from postprocess.extensions.papers.printed import History, PrintedModel
from postprocess.model.routines.mpicost import PINGPONG
from postprocess.model.routines.taboada import REPLACED_BY, ROUTINES

NO_INTERCEPT = 0.01  #: ti over t0 at most of a model that is Hockney's: they differ by a quarter of this
REFUSED = "no fit"
BEYOND = f"off by more than {taboada_models.GOOD:.0%}"
COMPARED = (0, 1024, 65536, 1048576)  #: sizes at which a measured model is held against one in print
NEEDED = (taboada_models.SEND, *(name for name in ROUTINES if name != PINGPONG), *REPLACED_BY.values())
COMMAND = "./plumbline run --family taboada --processes 2,4,8"


def build_model_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build the tables of models, of their accuracy and of substitutions; none without enough sizes."""
    models = taboada_models.fit_measured(measured)
    groups = group_pairs((model.place, model) for model in models)
    tables = [_models(place, group) for place, group in groups.items() if any(model.fits for model in group)]
    return [*tables, _accuracy(models), _substitutions(measured, groups)] if tables else []


def describe_missing(measured: PaperMeasurements) -> str:
    """Describe what the models need and no session has, and what measures it."""
    models = taboada_models.fit_measured(measured)
    there = {model.routine for model in models}
    there |= {cell.operation.routine for cell in measured.results}
    fits = [fit for model in models for fit in model.fits.values()]
    counts = {cell.processes for cell in measured.results if cell.operation.routine in ROUTINES}
    lacking = [
        *([] if fits else ["0 and powers of four to 1 MiB"]),
        *([] if any(fit.held_out for fit in fits) else ["sizes to judge the models by"]),
        *([] if len(counts) > 2 or counts == {PAIR} else ["three process counts or more"]),
        *(routine for routine in NEEDED if routine not in there),
    ]
    return f"Not measured: {', '.join(lacking)}; {COMMAND}" if lacking else ""


def build_against_table(measured: PaperMeasurements, history: History, against: str) -> TextTable:
    """Build the measured models over those in print of ``MACHINE:LIBRARY``, at several sizes."""
    printed = {(f"{each.machine}:{each.library}", each.routine): each for each in history.models}
    rows = []
    for model in taboada_models.fit_measured(measured):
        known = printed.get((against, model.routine))
        if known:
            about = (model.place.machine, model.place.environment, model.routine)
            rows += [
                (*about, str(count), *(_over(fit, known, count, size) for size in COMPARED))
                for count, fit in model.fits.items()
            ]
    return TextTable(
        f"Time by the model over that in print of {against}",
        ("machine", "MPI", "routine", "processes"),
        tuple(f"n = {size}" for size in COMPARED),
        tuple(rows),
        ("n by the paper's convention; the model in print holds to its largest count of processes",),
    )


def _over(fit: taboada_models.FittedModel, known: PrintedModel, count: int, size: int) -> str:
    if not fit.is_good or count > known.most or (size and known.tb is None):
        return NOT_PRINTED
    return cells.plain(fit.time(size) / known.model.time(size, count), digits=3)


def _models(place: Place, models: Sequence[taboada_models.MeasuredModel]) -> TextTable:
    whose = f"{place.machine}, {place.environment}, cache {place.cache}, sync {place.sync}"
    return TextTable(
        f"{whose}: T(n) = t0 + tb n + ti tb n / (t0 + tb n), and peaks",
        ("routine", "processes"),
        (
            *("t0 (us)", "ti (us)", "tb (ns/B)", "f(p) of t0", "f(p) of tb"),
            *("pi0 (KB/s)", "Bw (MB/s)", "error"),
        ),
        tuple(map(_model_row, models)),
        (
            "of the least of all trials; over three counts and more c0 + c1 f(p), else that of each count",
            "f(p): with what it grows; error: the largest average relative one of these t0, ti and tb at any "
            "count",
            f"ti: 0 where it is {NO_INTERCEPT:.0%} of t0 at most: then the model is Hockney's",
            "t0: of the empty message; of a collective call the smallest one that is sent, where an MPI "
            "returns from an empty one at once",
            f"{REFUSED}: the numbers are {BEYOND}, or ti lies at its bound, -t0; nothing is shown or "
            "derived then",
            "log2 p would do: on links that are all alike, and where the barrier before leaves no skew",
            "pi0: the most of F(p) / t0(p) at the measured counts, of 1000 B/s; Bw: of F(p) / tb(p)",
            *dict.fromkeys(f"send: {model.between}" for model in models if model.between),
        ),
        tuple(zip(("machine", "mpi", "cache", "sync"), place, strict=True)),
    )


def _model_row(model: taboada_models.MeasuredModel) -> tuple[str, ...]:
    counts = sorted(model.fits or model.times)
    about = (model.routine, ", ".join(map(str, counts)))
    startup, growth = model.startup, model.growth
    if not model.fits:
        told = startup.scaled(1e6) if startup else None
        least = [times[min(times)] * 1e6 for times in model.times.values()]
        text = _growth_text(told.terms) if told else _several(counts, least, "us")
        return (*about, text, *[NOT_PRINTED] * 2, _grown(model, "t0", startup), *[NOT_PRINTED] * 4)
    parts = (("t0", 1e6, "us"), ("ti", 1e6, "us"), ("tb", 1e9, "ns/B"))
    if growth:
        texts = [_growth_text(getattr(growth, name).scaled(by).terms) for name, by, _ in parts]
    else:
        kept = {count: fit for count, fit in model.fits.items() if fit.holds}
        texts = [
            _several(counts, [getattr(kept[n], name) * by if n in kept else None for n in counts], unit)
            for name, by, unit in parts
        ]
    holding = [fit for fit in model.fits.values() if fit.holds]
    if holding and all(abs(fit.ti) <= NO_INTERCEPT * fit.t0 for fit in holding):
        texts[1] = cells.plain(0, "us")
    t0, tb = (growth.t0, growth.tb) if growth else (None, None)
    grown = (_grown(model, "t0", t0), _grown(model, "tb", tb))
    return (*about, *texts, *grown, *_peaks(model), cells.share(model.error or 0))


def _several(counts: Sequence[int], values: Sequence[float | None], unit: str) -> str:
    """Write a number of each count, the first the cell and the others behind it."""
    told = [
        cells.Number(format_significant(value, 3), value, unit, about={"processes": count})
        for count, value in zip(counts, values, strict=True)
        if value is not None
    ]
    text = ", ".join(REFUSED if value is None else format_significant(value, 3) for value in values)
    if not told:
        return REFUSED
    return cells.Number(text, told[0].value, unit, about=told[0].about, more=told[1:])


def _grown(model: taboada_models.MeasuredModel, name: str, growth: Growth | None) -> str:
    """Return f(p) of a parameter, with a word where log2 p steps would do."""
    if growth is None:
        return NOT_PRINTED
    return taboada_models.name_growth(growth) + (" (log2 p would do)" if name in model.warnings else "")


def _growth_text(terms: Sequence[tuple[float, str]]) -> str:
    parts = [
        f"{'-' if factor < 0 else '+'} {abs(factor):.3g}{f' {name}' if name else ''}" for factor, name in terms
    ]
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+") else text.replace("- ", "-", 1)


def _peaks(model: taboada_models.MeasuredModel) -> tuple[str, str]:
    """Return the peaks over the measured counts, by the models of these counts."""
    good = {count: fit for count, fit in model.fits.items() if fit.holds}
    if not good:
        return NOT_PRINTED, NOT_PRINTED
    factor = FACTORS[model.routine]
    startup = max(factor(count) / fit.t0 for count, fit in good.items())
    bandwidths = [factor(count) / fit.tb for count, fit in good.items() if fit.tb]
    bandwidth = cells.rate(max(bandwidths)) if bandwidths else NOT_PRINTED
    return cells.plain(startup / 1e3, "KB/s"), bandwidth


def _accuracy(models: Sequence[taboada_models.MeasuredModel]) -> TextTable:
    """Build the table of errors of the models beside Hockney's."""
    return TextTable(
        "Average absolute relative error of the models",
        (*LABELS, "routine", "processes"),
        (*taboada_models.ERRORS, "judged by", "t0 / tb", "breaks of the curve"),
        tuple(
            (
                *(*model.place.cells, model.routine, str(count)),
                *(cells.share(fit.errors[name]) for name in taboada_models.ERRORS),
                count_sizes(fit.held_out) if fit.held_out else "the fitted sizes",
                cells.size(fit.t0 / fit.tb) if fit.holds else NOT_PRINTED,
                ", ".join(f"{cells.size(low)} to {cells.size(high)}" for low, high in fit.breaks) or "none",
            )
            for model in models
            for count, fit in sorted(model.fits.items())
        ),
        (
            "t0 / tb: where the model and Hockney's differ most, by ti / (4 t0)",
            "model: one t0, ti and tb for all sizes, as in the paper; in segments: a ti and a tb between "
            "breaks; Hockney: his t0 + tb n, fitted by itself as in the paper, and with the model's t0 and tb",
            "judged by: the sizes behind the errors, to which nothing was fitted",
            "breaks of the curve: where one line no longer fits: another protocol, another algorithm, or "
            "contention",
            "in print: 7% for send and less for collectives, where Hockney's has 18% and 28%",
        ),
    )


def _substitutions(
    measured: PaperMeasurements, groups: Mapping[Place, Sequence[taboada_models.MeasuredModel]]
) -> TextTable:
    """Build a table like table 5: where a composition is faster by the models, and what was measured."""
    rows = []
    for place, group in groups.items():
        fits = {model.routine: model.fits for model in group}
        for routine, steps in COMPOSITIONS.items():
            needed = [fits.get(name, {}) for name in (routine, *steps)]
            for count in sorted(set.intersection(*(set(each) for each in needed))):
                chosen = {name: fits[name][count] for name in (routine, *steps)}
                text, side, edge = _crossing(chosen, routine, count)
                rows.append(
                    (
                        *(*place.cells, f"{routine} by {' + '.join(steps)}", str(count), text),
                        *_saving(measured, place, routine, count, side, edge),
                    )
                )
    return TextTable(
        "Where a composition is faster than what it replaces",
        (*LABELS, "replace", "processes"),
        ("by the models", "measured saving", "of"),
        tuple(rows),
        (
            "by the models: from which size on; a size of A to B: between these a model changes its segment, "
            "and no crossing lies there",
            "measured saving: the median of the sizes on that side, of all where there is none; below 0 it "
            "is slower",
        ),
    )


def _crossing(
    fits: Mapping[str, taboada_models.FittedModel], routine: str, count: int
) -> tuple[str, str | None, float]:
    """Return where by the models the composition is faster, on which side of which size that is."""
    if not all(fit.is_good for fit in fits.values()):
        return f"a model is {BEYOND}", None, 0.0
    largest = min(fit.segments[-1].last for fit in fits.values())
    gaps = [each for fit in fits.values() if fit.is_parted for each in fit.breaks]
    texts = []
    found = [crossover for crossover in find_crossovers(fits, routine, count) if crossover[0] <= largest]
    for size, side in found:
        jump = next(((low, high) for low, high in gaps if low < size < high), None)
        if jump:
            texts.append(f"{side} a size of {cells.size(jump[0])} to {cells.size(jump[1])}")
        else:
            texts.append(cells.Number(f"{side} {cells.size(size)}", size, "B", note=side))
    if len(found) == 1:
        return texts[0], found[0][1], found[0][0]
    if found:
        return ", ".join(texts), None, 0.0
    gain = fits[routine].time(1) - sum(fits[step].time(1) for step in COMPOSITIONS[routine])
    return ("always", "above", 0.0) if gain > 0 else ("never", None, 0.0)


def _saving(
    measured: PaperMeasurements, place: Place, routine: str, count: int, side: str | None, edge: float
) -> tuple[str, str]:
    """Return the share of time that the composition saved, the median of sizes; and of how many sizes.

    Of those on the side where it is faster by the models, else of all.
    """
    times = measured.group_sizes(least=True)
    alone, put_together = (
        {taboada_models.find_model_size(routine, size, count): time for size, time in found.items()}
        for found in (times.get((place, name, count), {}) for name in (routine, REPLACED_BY[routine]))
    )
    saved = {s: 1 - put_together[s] / alone[s] for s in alone if s and s in put_together}
    inside = {s: v for s, v in saved.items() if side == ("above" if s > edge else "below")} or saved
    if not inside:
        return f"not measured: {REPLACED_BY[routine]}", NOT_PRINTED
    median = statistics.median(inside.values())
    return cells.share(median, f"{median:.0%}"), count_sizes(len(inside), len(saved))


def count_sizes(number: int, most: int | None = None) -> cells.Number:
    """Write how many sizes a number is of, as in ``3 of 31 sizes`` or ``all 31 sizes``."""
    of = plural(number if most is None else most, "size")
    which = "" if most is None else "all " if number == most else f"{number} of "
    return cells.Number(f"{which}{of}", number, "sizes")


FORM = "[MACHINE=]US:MB/S"
NUMBER = r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
TOLD = re.compile(rf"(?:(?P<machine>[^=]+)=)?{NUMBER}:{NUMBER}", re.ASCII)
PAPER, STARTUP, BANDWIDTH = "Taboada", "theoretical_startup", "theoretical_bandwidth"
NATIVE = ("MPICH-GM", "ScaMPI", "SCI-MPICH")  #: libraries in print that are no Java
TESTBED = "-single"  #: of the two on SCI the one with a process on each node


@dataclass(frozen=True)
class NetworkTheory:
    """The best that a network can do: start-up in seconds, bandwidth in bytes/s."""

    startup: float
    bandwidth: float


def parse_theory(words: Sequence[str]) -> dict[str, NetworkTheory]:
    """Parse what the user tells of networks, by machine; under an empty name what holds for all others.

    :raises UsageError: for a word that is not of ``FORM``, or two of one machine.
    """
    found: dict[str, NetworkTheory] = {}
    for word in words:
        match = TOLD.fullmatch(word)
        numbers = [float(match[2]) * 1e-6, float(match[3]) * 1e6] if match else [0.0]
        if not match or not all(0 < number < math.inf for number in numbers):
            raise UsageError(f"--theory {word}: is not {FORM}; write as in 1.3:12500 or torus=1.8:350")
        machine = match["machine"] or ""
        if machine in found:
            raise UsageError(f"--theory {word}: names a machine twice; name it once")
        found[machine] = NetworkTheory(*numbers)
    return found


def build_theory_table(
    measured: PaperMeasurements, theories: Mapping[str, NetworkTheory], history: History
) -> TextTable:
    """Build a row for each machine and MPI with a model of its send, and those in print; no row without one.

    :raises UsageError: if a theory is of a machine that is not there.
    """
    strangers = sorted(theories.keys() - {"", *measured.machines})
    if strangers:
        there = ", ".join(measured.machines)
        raise UsageError(f"--theory {strangers[0]}: no such machine; there is {there}")
    rows = []
    for model in taboada_models.fit_measured(measured):
        if model.routine == taboada_models.SEND:
            (fit,) = model.fits.values()
            theory = theories.get(model.place.machine, theories.get(""))
            rows.append((*model.place.cells, *_theory_cells(fit.t0, 1 / fit.tb if fit.holds else None, theory)))
    return TextTable(
        "Send against what the network can do",
        LABELS,
        ("t0 (us)", "in theory", "over it", "1 / tb (MB/s)", "in theory", "share"),
        (*rows, *_printed_networks(history)) if rows else (),
        (
            f"in theory: from --theory {FORM}; in print, of the network card and its bus",
            "no bandwidth where the model is off by more than a quarter",
        ),
    )


def _theory_cells(t0: float, rate: float | None, theory: NetworkTheory | None) -> tuple[str, ...]:
    start, speed = (cells.plain(t0 * 1e6, "us"), cells.rate(rate) if rate else NOT_PRINTED)
    if theory is None:
        return start, NOT_PRINTED, NOT_PRINTED, speed, NOT_PRINTED, NOT_PRINTED
    share = rate / theory.bandwidth if rate else None
    return (
        *(start, cells.plain(theory.startup * 1e6, "us"), cells.ratio(t0 / theory.startup)),
        *(speed, cells.rate(theory.bandwidth)),
        NOT_PRINTED if share is None else cells.share(share, f"{share:.0%}"),
    )


def _printed_networks(history: History) -> list[tuple[str, ...]]:
    """Return the rows of the networks of which the paper tells what they can do."""
    told = {(f.machine, f.quantity): f.value for f in history.figures if f.paper == PAPER}
    rows = []
    for model in history.models:
        network = model.machine.removesuffix(TESTBED)
        startup, bandwidth = (told.get((network, name)) for name in (STARTUP, BANDWIDTH))
        if model.routine == taboada_models.SEND and model.library in NATIVE and startup and bandwidth:
            theory = NetworkTheory(startup * 1e-6, bandwidth * 1e6)
            t0, tb = model.model.t0.at(2), model.model.tb.at(2)
            about = (f"{model.machine} (in print)", model.library, NOT_PRINTED)
            rows.append((*about, *_theory_cells(t0, 1 / tb, theory)))
    return rows
