"""What a pass of an offer tells of its launches."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from postprocess.extensions.procurement import measure
from postprocess.extensions.procurement.commitments import FORM_HTML, render_form
from postprocess.extensions.procurement.form_rows import build_form
from postprocess.extensions.procurement.offer import RULES, TELL, format_told_template, open_offer, read_told
from postprocess.extensions.procurement.rules.layouts import plan_offer
from postprocess.extensions.procurement.rules.rules import TOLD, read_rules
from postprocess.model.launch import FinishedLaunch, LaunchOutcome, fail_launch
from postprocess.model.verdict import CaseResult, Verdict
from tests.support.factories.launch import planned
from tests.support.factories.offer import MACHINE, RULES_TEXT, add_pass, edit_records, make_offer
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT


def launched_in(directory: str, seconds: float, reason: str = "it ended") -> FinishedLaunch:
    outcome = fail_launch(Verdict.CRASHED, reason)
    return FinishedLaunch(planned(), outcome, seconds, directory, {})


def test_of_a_pass_that_asks_for_some_cases_only_these_are_missed(tmp_path: Path) -> None:
    """An acceptance asks for what was committed; nothing is lacking of the rest."""
    make_offer(tmp_path)
    plan = plan_offer(read_rules(tmp_path / RULES), MACHINE)
    one = plan.possible[0].case.name
    missed = list(measure.find_unplanned(plan, []))
    own = [line for line in missed if line.startswith(f"{one} ")]
    assert 0 < len(own) < len(missed)
    assert list(measure.find_unplanned(plan, [], [one])) == own
    assert list(measure.find_unplanned(plan, [], [])) == []


def test_each_reason_of_failed_launches_is_told_once() -> None:
    reasons = ("it did not build", "no end within 60 s", "it did not build")
    launched = [launched_in("stage", 0.0, reason) for reason in reasons]
    assert measure.describe_failed(launched) == ["2 launches: it did not build", "1 launch: no end within 60 s"]


def test_a_job_of_several_starts_counts_once() -> None:
    launched = [launched_in("one", 60.0), launched_in("one", 60.0), launched_in("two", 5.0)]
    assert measure.sum_job_seconds(launched) == 65.0


class SampleBench(measure.OfferBench):
    """Passes are samples, whose mpicost is of no source that is here."""

    def run_pass(self, names: Sequence[str], first: bool) -> None:
        folder = self.demand.folder
        number = len(open_offer(folder).stored.passes) + 1
        add_pass(folder, number, 1.0)
        edit_records(folder, lambda r: r[0].update(source_hash="f" * 16), number=number)


def test_what_no_further_pass_mends_is_told_once_after_the_first(tmp_path: Path) -> None:
    folder = make_offer(tmp_path / "offer", factors=(), told=format_told_template())
    rules, notes = read_rules(folder / RULES), []

    def note(line: str) -> None:
        notes.append((len(open_offer(folder).stored.passes), line.partition(", not of")[0]))

    work = SimpleNamespace(source=ROOT)
    context: Any = SimpleNamespace(work=work, progress=SimpleNamespace(note=note))
    demand = measure.OfferDemand(folder / RULES, folder, "baseline")
    assert SampleBench(context, rules, plan_offer(rules, MACHINE), demand).run() == 5
    place = "20261121T090100Z-1/" + planned().name
    what = f"source-other: {place}: mpicost of source {'f' * 16}"
    assert notes == [(1, f"a reason to reject: {what}")]


def finish(environment: str, reason: str = "") -> FinishedLaunch:
    """A launch that failed for a reason, or ended well."""
    launch = replace(planned(), environment=environment)
    outcome = fail_launch(Verdict.CRASHED, reason) if reason else LaunchOutcome(MagicMock())
    return FinishedLaunch(launch, outcome, 1.0, environment, {})


@plants("programs", "an MPI of which every launch fails in the first pass of an offer", "`offer run`", "", 0,
        "is left out of further passes: … again:")  # fmt: skip
def test_an_mpi_that_is_dead_has_no_part_in_further_passes(tmp_path: Path, declared: Declared) -> None:
    rules = RULES_TEXT.replace('per_node = "two"', 'per_node = "two"\nmpi = "openmpi"', 1)
    folder = make_offer(tmp_path / "offer", factors=(1.0,), rules=rules)
    notes: list[str] = []
    context: Any = SimpleNamespace(progress=SimpleNamespace(note=notes.append))
    plan = plan_offer(read_rules(folder / RULES), MACHINE)
    demand = measure.OfferDemand(folder / RULES, folder, "baseline")
    bench = measure.OfferBench(context, read_rules(folder / RULES), plan, demand)
    assert bench.list_open_cases(Counter()) == ["broadcast", "allreduce"]
    case = replace(planned().cases[0], environment="openmpi-5")
    results = [CaseResult(case, Verdict.CRASHED, "signal 11", rerun="./plumbline run --routine bcast")]
    bench.leave_out_dead([finish("mpich-5_0_2"), finish("openmpi-5", "signal 11")], results)
    assert (bench.dead, bench.alive) == ({"openmpi-5"}, {"mpich-5_0_2"})
    (note,) = notes
    assert note == (
        "openmpi-5 is left out of further passes: 1 launch: signal 11; again: ./plumbline run --routine bcast"
    )
    declared.check((), 0, [note])
    assert bench.list_open_cases(Counter()) == ["allreduce"]
    bench.leave_out_dead([finish("mpich-5_0_2", "signal 11")], [])
    assert bench.list_open_cases(Counter()) == []


def test_an_mpi_without_a_row_has_a_line_that_says_why(tmp_path: Path) -> None:
    folder = make_offer(tmp_path / "offer", factors=(1.0, 1.0))
    assert not open_offer(folder).unmeasured
    for path in folder.glob("sessions/*/raw/*"):
        path.unlink()
    offer = open_offer(folder)
    (told,) = offer.unmeasured
    assert told.words.startswith("mpich-5_0_2 (baseline): no result: 4 launches, none ended well: ")
    page = render_form(offer, build_form(offer), None)[FORM_HTML].decode()
    assert ">no result<" in page and told.reason in page


def test_what_is_to_be_told_is_explained_where_it_is_written(tmp_path: Path) -> None:
    (tmp_path / TELL).write_text(format_told_template())
    lines = [line for line in (tmp_path / TELL).read_text().splitlines() if line[:1] not in "#"]
    assert [line.partition(" = ")[0] for line in lines if "  # " in line] == list(TOLD)
    assert not any(getattr(read_told(tmp_path), name) for name in TOLD)
