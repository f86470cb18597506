"""What a pass of an offer tells of its launches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from postprocess.extensions.procurement.check.offer import (
    RULES,
    TELL,
    format_told_template,
    open_offer,
    read_told,
)
from postprocess.extensions.procurement.measure.run import (
    OfferBench,
    OfferDemand,
    describe_failed,
    sum_job_seconds,
)
from postprocess.extensions.procurement.rules.layouts import plan_offer
from postprocess.extensions.procurement.rules.rules import TOLD, read_rules
from postprocess.model.launch import FinishedLaunch, fail_launch
from postprocess.model.verdict import Verdict
from tests.support.factories.launch import planned
from tests.support.factories.offer import MACHINE, add_pass, edit_records, make_offer
from tests.support.paths import ROOT


def launched_in(directory: str, seconds: float, reason: str = "it ended") -> FinishedLaunch:
    outcome = fail_launch(Verdict.CRASHED, reason)
    return FinishedLaunch(planned(), outcome, seconds, directory, {})


def test_each_reason_of_failed_launches_is_told_once() -> None:
    reasons = ("it did not build", "no end within 60 s", "it did not build")
    launched = [launched_in("stage", 0.0, reason) for reason in reasons]
    assert describe_failed(launched) == ["2 launches: it did not build", "1 launch: no end within 60 s"]


def test_a_job_of_several_starts_counts_once() -> None:
    launched = [launched_in("one", 60.0), launched_in("one", 60.0), launched_in("two", 5.0)]
    assert sum_job_seconds(launched) == 65.0


class SampleBench(OfferBench):
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
    demand = OfferDemand(folder / RULES, folder, "baseline")
    assert SampleBench(context, rules, plan_offer(rules, MACHINE), demand).run() == 5
    place = "20261121T090100Z-1/" + planned().name
    what = f"source-other: {place}: mpicost of source {'f' * 16}"
    assert notes == [(1, f"a reason to reject: {what}")]


def test_what_is_to_be_told_is_explained_where_it_is_written(tmp_path: Path) -> None:
    (tmp_path / TELL).write_text(format_told_template())
    lines = [line for line in (tmp_path / TELL).read_text().splitlines() if line[:1] not in "#"]
    assert [line.partition(" = ")[0] for line in lines if "  # " in line] == list(TOLD)
    assert not any(getattr(read_told(tmp_path), name) for name in TOLD)
