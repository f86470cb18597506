"""What the first screen says of what a night sees, and what it proposes; and the two maps."""

from dataclasses import replace

import pytest

from postprocess.cli.options import OPTIONS, SELECTION
from postprocess.model.options import SELECTING
from postprocess.model.verdict import Verdict
from postprocess.report import first_screen as view
from postprocess.report import session_report
from postprocess.report.grids import build_limit_map, build_verdict_map
from postprocess.results.summary import parse_summary
from tests.support.factories import report as samples


@pytest.fixture(scope="module")
def bad():
    return parse_summary(samples.bad_night(samples.few_cases()).document())


def test_what_failed_is_proposed_first_with_the_time_its_launches_took(bad):
    first, *_ = view.propose_next(bad)
    assert first.command == f"./plumbline run --failed {bad.session}"
    places = {(r.case.environment, r.case.processes) for r in bad.failed}
    took = sum(e.seconds for e in bad.launches if (e.environment, e.processes) in places)
    assert first.cost == f"about {round(took)} s"
    assert first.why == f"Measure the {len(bad.failed)} failed cases again"
    (one, *_) = view.propose_next(replace(bad, results=bad.failed[:1]))
    assert one.why == "Measure the failed case again"


def test_a_case_that_strict_alone_refuses_says_why_and_is_not_measured_again(bad):
    case = next(r for r in bad.results if r.verdict is Verdict.PASS)
    strict = replace(bad, results=(replace(case, provisional=True),), strict=True, exit_status=1)
    (group,) = view.list_numbered_groups(strict)
    assert group.failed and group.group.reason.startswith(
        "--strict does not accept it: its reference has fewer"
    )
    assert not any("measure" in proposal.why.lower() for proposal in view.propose_next(strict))
    page = session_report.build_document(strict, view.Past())
    assert [count.tone for count in page.counts] == ["bad"]


def test_suspects_that_all_were_cleared_leave_nothing_to_look_at(bad):
    case = next(r for r in bad.results if r.verdict is Verdict.PASS)
    case = replace(case, detectable=0.5)
    night = replace(bad, results=(replace(case, verdict=Verdict.SUSPECT),), exit_status=0)
    cleared = view.LaterRound("s2", "later", (replace(case, verdict=Verdict.CLEARED),), 0)
    assert view.conclude_session(night, [])[0] == "fair"
    assert view.conclude_session(night, [cleared])[0] == "good"
    assert view.conclude_session(night, [replace(cleared, exit_status=1)])[0] == "bad"


def test_a_suspect_case_waits_and_no_reference_is_calibrated(bad):
    one, two = [r for r in bad.results if r.verdict is Verdict.PASS][:2]
    one = replace(one, verdict=Verdict.SUSPECT, reason="slow again", value=9 * one.value)
    two = replace(two, verdict=Verdict.NO_REFERENCE, reason="no reference")
    proposals = view.propose_next(replace(bad, results=(one, two)))
    commands = [proposal.command for proposal in proposals]
    assert commands[:2] == ["./plumbline calibrate", "./plumbline confirm"]
    assert "Nights decide on 1 suspect case; or measure again 20 minutes" in proposals[1].why


def test_a_calibration_is_advised_only_for_what_nothing_else_mends(bad):
    """Of a case whose reference is there and whose launch is astray, calibrating would keep the fault."""
    results = [r for r in bad.results if r.verdict is Verdict.PASS][:4]
    missing = [replace(r, verdict=Verdict.NO_REFERENCE, reason="no reference") for r in results[:2]]
    unheld = [replace(r, verdict=Verdict.NOT_COMPARABLE, reason="its reason") for r in results[2:]]
    outdated, astray = replace(unheld[0], outdated="is of another compiler"), unheld[1]
    calibrate, again, *_ = view.propose_next(replace(bad, results=(*missing, outdated, astray)))
    told = "Calibrate: 2 cases have no reference; the reference of 1 case is of another compiler"
    assert (calibrate.why, calibrate.command) == (told, "./plumbline calibrate")
    told = "1 case cannot be compared with the reference: do what the reason says, then measure again"
    assert (again.why, again.command) == (told, f"./plumbline run --failed {bad.session}:1")
    proposals = view.propose_next(replace(bad, results=(astray,)))
    assert not any("calibrate" in proposal.command for proposal in proposals)


def test_what_is_proposed_is_for_the_site_that_was_measured(bad):
    one = replace(bad.results[0], verdict=Verdict.NO_REFERENCE, reason="no reference")
    first, *_ = view.propose_next(replace(bad, results=(one,), site="centre/site.py"))
    told = ("Calibrate: 1 case has no reference", "./plumbline calibrate --site centre/site.py")
    assert (first.why, first.command) == told
    quiet = parse_summary(samples.healthy_night(samples.few_cases()[:5]).document())
    blind = [replace(r, detectable=None, detectable_learned=None) for r in quiet.results]
    (only,) = view.propose_next(replace(quiet, results=tuple(blind), site="mycluster"))
    assert only.command == "./plumbline nightly --site mycluster"


def test_a_night_that_all_references_judge_well_needs_nothing():
    quiet = parse_summary(samples.healthy_night(samples.few_cases()[:5]).document())
    learned = [replace(r, detectable=0.04, detectable_learned=0.04) for r in quiet.results]
    assert view.propose_next(replace(quiet, results=tuple(learned))) == []
    assert view.describe_sight(learned) == (
        "tonight would see, of 5 cases: 2 times slower in all, 50% in all, 20% in all, 10% in all"
    )
    blind = [replace(r, detectable=None) for r in quiet.results]
    assert view.describe_sight(blind).endswith("of 5 cases: 2 times slower in none")
    assert view.describe_sight([]) == ""
    (only,) = view.propose_next(
        replace(quiet, results=tuple(replace(r, detectable_learned=None) for r in blind))
    )
    assert only.why == view.BLIND_MACHINE


@pytest.mark.parametrize(
    ("options", "night", "calibration"),
    [
        ("--program osu --launches=5 --json out.json --strict", "--program osu --launches=5", "--program osu"),
        (
            "--routine bcast,scan_sum --boundaries --bytes 8",
            *["--routine bcast,scan_sum --boundaries --bytes 8"] * 2,
        ),
        ("--site mycluster --mpis mpich", "--mpis mpich", "--mpis mpich"),
        ("--set-env=mpich-5_0_2:A=1", None, "--set-env=mpich-5_0_2:A=1"),
    ],
)
def test_what_is_proposed_is_of_the_same_selection(options: str, night: str | None, calibration: str):
    """A trial by hand learns nothing for nights."""
    quiet = parse_summary(samples.healthy_night(samples.few_cases()[:5]).document())
    blind = [replace(r, detectable=None) for r in quiet.results]
    missing = replace(quiet.results[0], verdict=Verdict.NO_REFERENCE, reason="no reference")
    command = ("./plumbline", "run", *options.split())
    summary = replace(quiet, results=(missing, *blind[1:]), command=command)
    told = {proposal.command.partition(" --")[0]: proposal.command for proposal in view.propose_next(summary)}
    assert told["./plumbline calibrate"] == f"./plumbline calibrate {calibration}"
    assert told.get("./plumbline nightly") == (night and f"./plumbline nightly {night}")


def test_a_night_after_a_part_of_a_session_has_no_cost():
    quiet = parse_summary(samples.healthy_night(samples.few_cases()[:5]).document())
    again = replace(quiet, command=("./plumbline", "run", "--failed", "20261121T090000Z-4711:1"))
    assert [proposal.cost for proposal in view.propose_next(again)] == [""]
    assert all(proposal.cost.endswith(" a night") for proposal in view.propose_next(quiet))


def test_what_selects_is_what_the_commands_have_for_it():
    assert {flag: OPTIONS[flag].kind is not None for flag in SELECTION if flag != "--site"} == SELECTING


def cells(found):
    return {
        (row.routine, column.place, column.label): cell
        for section in found.sections
        for row in section.rows
        for column, cell in zip(found.columns, row.cells, strict=True)
        if cell
    }


def test_a_cell_of_the_maps_shows_the_worst_of_its_cases(bad):
    verdicts = cells(build_verdict_map(bad.results, strict=False))
    bcast = verdicts["bcast", "openmpi-5.0.9", "10 kB"]
    assert (bcast.tone, bcast.text) == ("bad", "regressed")
    assert bcast.title == "2 pass, 1 regressed"
    assert verdicts["barrier", "openmpi-5.0.9", "–"].tone == "good"
    assert ("reduce_min", "openmpi-5.0.9", "8 B") not in verdicts  # it was skipped
    own = [replace(r, detectable=0.3 if r.case.processes == 8 else 0.07) for r in bad.results]
    limits = cells(build_limit_map(own))
    assert limits["bcast", "mpich-5.0.2", "8 B"].text == "30"
    blind = [replace(r, detectable=None) for r in own]
    assert limits.keys() == cells(build_limit_map(blind)).keys()
    assert {each.text for each in cells(build_limit_map(blind)).values()} == {"∞"}


def test_many_sizes_stand_together_by_their_power_of_ten(bad):
    (some,) = [r for r in bad.results if r.case.key.endswith("mpicost:bcast:evict-dissemination:2x2:8")][:1]
    many = [replace(some, case=replace(some.case, bytes=2**n)) for n in range(21)]
    found = build_verdict_map(many, strict=False)
    assert [column.label for column in found.columns] == [
        "≥ 1 B", "≥ 10 B", "≥ 100 B", "≥ 1 kB", "≥ 10 kB", "≥ 100 kB", "≥ 1 MB",
    ]  # fmt: skip
    assert found.columns[1].search == "environment=impi-2021.16.0 bytes>=10 bytes<100"
