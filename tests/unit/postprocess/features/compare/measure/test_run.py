"""A comparison that is refused leaves nothing behind, and what it plants differs in nothing but the delay."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.features.compare import data, page
from postprocess.features.compare.data import NEW, OLD, CaseValue, ComparisonPass
from postprocess.features.compare.measure.bench import ComparisonBench, TooFewSecondsError
from postprocess.features.compare.measure.passes import find_own_case
from postprocess.features.compare.measure.run import discard_refused, find_or_begin, measure_comparison
from postprocess.model.case import Case
from postprocess.session.lifecycle.injections import IDLE, Injection
from tests.support.factories import comparison
from tests.support.factories.comparison import failing, make_pass
from tests.support.faults import plants

BCAST, ALLREDUCE = (f"cpu/mpicost/{each}/warm-barrier/2x2/8" for each in ("bcast", "allreduce_sum"))
CONTROL = "cpu/mpicost/control_timer/warm-barrier/2x2/8"
HEADER = replace(comparison.HEADER, seconds=10)


def trial(side: str, *keys: str, seconds: float = 5.0, verdict: str = "", reason: str = "") -> ComparisonPass:
    said = failing(verdict, reason) if verdict else CaseValue(1e-6, "s")
    return make_pass(0, 0, side, dict.fromkeys(keys, said), seconds)


@pytest.fixture
def bench(work: WorkDirectory, progress: Progress) -> ComparisonBench:
    path, stored = find_or_begin(work, None, HEADER, progress)
    return ComparisonBench(None, stored.header, path)  # type: ignore[arg-type]


@plants("use", "two sides without a case in common", "`compare`", "", 2,
        "a and b have no case in common; choose")  # fmt: skip
@pytest.mark.parametrize("new", [trial(NEW, ALLREDUCE, CONTROL), trial(NEW, BCAST, verdict="skipped")])
def test_sides_without_a_common_case_are_refused(work, progress, monkeypatch, new, declared):
    """After the trial runs, and nothing is left of them."""

    def run_trials(self: ComparisonBench) -> None:
        for each in (trial(OLD, BCAST, CONTROL), new):
            data.append_record(self.path, each)

    monkeypatch.setattr(ComparisonBench, "run_trials", run_trials)
    context, demand = SimpleNamespace(work=work, progress=progress), SimpleNamespace(directory=None)
    with declared.raises(UsageError):
        measure_comparison(context, demand, HEADER, with_facts=False)  # type: ignore[arg-type]
    assert not list((work.root / "compare").glob("*"))


@pytest.mark.parametrize("verdict", ["crashed", "skipped"])
def test_a_case_that_fails_on_a_side_is_common_and_one_that_is_skipped_is_not(bench, verdict) -> None:
    for side in (OLD, NEW):
        data.append_record(bench.path, trial(side, BCAST, verdict=verdict, reason="no Spack"))
    if verdict == "crashed":
        bench.require_common_cases()
        return
    with pytest.raises(UsageError, match=r"have no case in common \(no Spack\); choose"):
        bench.require_common_cases()


@plants("use", "less time than the first look takes", "`compare --seconds`", "", 2,
        "--seconds 10: … everything fits into --seconds 90")  # fmt: skip
def test_what_is_refused_for_its_time_keeps_its_trial_runs(bench: ComparisonBench, progress, declared):
    data.append_record(bench.path, trial(OLD, BCAST))
    data.append_record(bench.path, trial(NEW, BCAST))
    with declared.raises(
        TooFewSecondsError, match=r"--seconds 10: .* everything fits into --seconds 90$"
    ) as why:
        bench.plan_looks()
    bench.context = SimpleNamespace(progress=progress)  # type: ignore[assignment]
    discard_refused(bench.context, bench.path, why.value)
    assert [path.name for path in bench.path.parent.iterdir()] == [data.TRIAL]
    other = replace(bench, path=bench.path.with_name("other"))
    data.append_record(other.path, HEADER)
    discard_refused(bench.context, other.path, UsageError("no case in common"))
    assert not other.path.exists()


@pytest.mark.parametrize(("seconds", "most"), [(None, True), (300, False)])
def test_without_a_time_pairs_that_do_not_count_are_foreseen_too(bench, progress, seconds, most):
    bench.context = SimpleNamespace(progress=progress)  # type: ignore[assignment]
    bench.header = replace(bench.header, seconds=seconds)
    for side in (OLD, NEW):
        data.append_record(bench.path, trial(side, BCAST, seconds=1.0))
    bench.plan_looks()
    said = " ".join(progress.console.file.getvalue().split())
    assert "takes about 2.0 s" in said and ("and half as long again" in said) is most


@pytest.mark.parametrize(("measured", "is_time"), [(0, True), (1, True), (3, True), (4, False)])
def test_the_rest_of_a_block_needs_only_the_time_of_the_rest(bench, measured, is_time):
    """A block of four launches of 1 s fits into 10 s once more, begun or not; a third one does not."""
    done = [trial(side, BCAST, seconds=0.5) for side in (OLD, NEW)]
    done += [replace(trial(OLD, BCAST, seconds=1.0), block=1) for _ in range(4)]
    done += [replace(trial(OLD, BCAST, seconds=1.0), block=2) for _ in range(measured)]
    for each in done:
        data.append_record(bench.path, each)
    assert bench.has_time(bench.stored, 2 if measured < 4 else 3) is is_time


@pytest.mark.parametrize(("moved", "blocks"), [((), 3), ((1,), 4), ((1, 2, 3, 4), 4)])
def test_pairs_that_do_not_count_are_made_up_for(bench, progress, monkeypatch, moved, blocks):
    """Of six pairs in three blocks; half as many blocks more are the most."""

    def run_pass(self: ComparisonBench, block: int, position: int, name: str, wanted) -> None:
        latency = (5e-8, 2.5e-7) if block in moved else (5e-8, 5e-8)
        value = CaseValue(1e-6 * (1 + position / 2 + block), "s", core_latency=latency)
        data.append_record(self.path, make_pass(block, position, name, {BCAST: value}))

    monkeypatch.setattr(ComparisonBench, "run_pass", run_pass)
    bench.context = SimpleNamespace(progress=progress)  # type: ignore[assignment]
    bench.header = replace(bench.header, seconds=None)
    for side in (OLD, NEW):
        data.append_record(bench.path, trial(side, BCAST, seconds=1.0))
    data.append_record(bench.path, data.PlannedLooks((6,)))
    bench.run_blocks()
    assert max(each.block for each in bench.stored.passes) == blocks


def test_what_is_planned_stays_and_so_does_what_lies_beside(tmp_path: Path, work, progress) -> None:
    context, refused = SimpleNamespace(progress=progress), UsageError("no case in common")
    path, _ = find_or_begin(work, tmp_path / "own", HEADER, progress)
    (path.parent / "notes").write_text("mine")
    data.append_record(path, data.PlannedLooks((6,)))
    discard_refused(context, path, refused)
    assert path.exists()
    other, _ = find_or_begin(work, tmp_path / "other", HEADER, progress)
    (other.parent / "notes").write_text("mine")
    discard_refused(context, other, refused)
    assert [each.name for each in other.parent.iterdir()] == ["notes"]


@plants("use", "a folder that was begun with another budget", "`compare --output`", "", 2,
        "begun with other seconds")  # fmt: skip
def test_the_same_command_goes_on_and_another_does_not(work, progress, declared):
    path, _ = find_or_begin(work, None, HEADER, progress)
    data.append_record(path, trial(OLD, BCAST))
    again, stored = find_or_begin(work, None, replace(HEADER, seed=9), progress)
    assert (again, len(stored.passes), stored.header.seed) == (path, 1, 7)
    with declared.raises(UsageError):
        find_or_begin(work, path.parent, replace(HEADER, seconds=99), progress)
    (path.parent / page.JSON).write_text("{}")
    with pytest.raises(UsageError, match="holds a comparison; choose another --output"):
        find_or_begin(work, path.parent, HEADER, progress)


def test_both_sides_have_the_delay_library_and_one_is_not_delayed() -> None:
    old = Injection("a-1", IDLE.name, "").variables(Path("/p"))
    new = Injection("a-1", "slower-100", "bcast").variables(Path("/p"))
    assert old["LD_PRELOAD"] == new["LD_PRELOAD"] and old.keys() == new.keys()
    assert (old["PLUMBLINE_DELAY_LAUNCHES"], new["PLUMBLINE_DELAY_LAUNCHES"]) == ("0.0", "1.0")


@pytest.mark.parametrize(("processes", "per_node"), [(1, 1), (3, 2), (129, 128)])
def test_a_case_of_any_layout_is_found_again_on_its_side(processes: int, per_node: int) -> None:
    case = Case("s", "cpu", "b-1", "mpicost", "pingpong", 2, "warm", "barrier", processes, per_node, 8)
    found = find_own_case(data.SharedCase.of(replace(case, environment="a-1")), "b-1")
    assert replace(found, system="s") == case
