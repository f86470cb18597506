"""What is stale: too old, of a machine that has changed since, or beside what nights measure."""

import json
import random
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import staleness
from postprocess.calibration.ledger import CalibrationLaunch
from postprocess.calibration.staleness import CaseNights
from postprocess.calibration.update import update_references
from postprocess.commands import references
from postprocess.commands.references import Partition
from postprocess.model.verdict import JUDGED, Verdict
from postprocess.references import provenance
from postprocess.references.catalog import read_provenance
from postprocess.references.reference_file import load_references
from postprocess.results import store
from postprocess.results.store import StoreRow
from site_configs.topology.machine import read_firmware
from tests.support.factories.launch import CASES, PLACE
from tests.support.factories.ledger import launch
from tests.support.paths import ROOT

NOW = datetime(2026, 12, 1, tzinfo=timezone.utc)
HERE = {"host": "login", "kernel": "6.1"}
LIBRARY = {"mpi_library": "MPICH Version: 5.0.2", "source_hash": "0123"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three launches on three days of November, of 1 s each."""
    (path,) = update_references(tmp_path / "references", [launch(1.0, day) for day in (1, 2, 3)])
    return path


def find_all(path: Path, nights=None, machine=HERE, days: int = 180, now=NOW, nodes: int = 0):
    """What is told of a file, stale or not."""
    known, origin = load_references(path, *PLACE), read_provenance(path)
    return staleness.find_stale("p", known, origin, nights or {}, machine, days, now, nodes)


def stale(path: Path, *given, **more):
    found = find_all(path, *given, **more)
    assert found == sorted(found, key=lambda each: not each.stale)
    return [each for each in found if each.stale]


def nights_of(values, **last: str):
    return {CASES[0].key: CaseNights(values, LIBRARY | last)}


def test_a_reference_is_old_after_the_days_that_the_site_allows(path: Path):
    """Its median launch counts: that of the second of November."""
    assert stale(path, days=28) == []
    (found,) = stale(path, days=27)
    assert found.text == "calibrated 28 days ago, on 2026-11-02; the limit is 27"
    assert len(found.cases) == len(CASES)


def test_only_the_cases_of_the_old_calibration_are_old(path: Path):
    update_references(path.parents[2], [launch(1.0, 28, cases=CASES[1:])])
    (found,) = stale(path, days=20)
    assert found.cases == (CASES[0].key,)


def aged(number: int) -> list[CalibrationLaunch]:
    """Launches of January 2024, on a machine as it was then."""
    machine = {"host": "login", "kernel": "5.14", "firmware": "F1"}
    when = [f"2024-01-{day:02d}T01:00:00Z" for day in range(1, number + 1)]
    return [launch(1.0, ended_utc=each, session=each, machine=machine, kernel="5.14") for each in when]


def test_launches_of_new_make_a_reference_young_once_they_are_most(tmp_path: Path):
    here = {"host": "login", "kernel": "6.1", "firmware": "F9"}
    (path,) = update_references(tmp_path / "a", [*aged(20), launch(1.0, 20, machine=here)])
    told = [each.text for each in stale(path, machine=here)]
    assert any("days ago, on 2024-01-11; the limit is 180" in text for text in told)
    assert "the kernel of login was 5.14 and is 6.1" in told
    assert "the firmware of login was F1 and is F9" in told
    new = [launch(1.0, day, machine=here) for day in range(1, 8)]
    (path,) = update_references(tmp_path / "b", [*aged(3), *new])
    assert stale(path, machine=here) == []


def test_each_case_is_as_old_as_its_own_launches(tmp_path: Path):
    """Of one calibration, which one update writes."""
    new = [launch(1.0, day, cases=CASES[1:]) for day in range(1, 20)]
    (path,) = update_references(tmp_path, [*aged(5), *new])
    (found,) = (each for each in stale(path) if each.what == "old")
    assert found.cases == (CASES[0].key,)


def test_a_file_that_does_not_tell_its_launches_is_as_old_as_it_says(path: Path):
    origin = read_provenance(path)
    (told,) = provenance.list_calibrations(origin["programs"]["mpicost"])
    del told["series"]
    provenance.locate_provenance(path).write_bytes(provenance.encode_provenance(origin))
    (found,) = stale(path, days=26)
    assert found.text == "calibrated 27 days ago, on 2026-11-03; the limit is 26"
    assert stale(path, machine={"host": "login", "kernel": "7"})


def test_a_reference_that_is_provisional_for_a_month_is_stale(path: Path, tmp_path: Path):
    """Counted from its first launch, of the first of November at one o'clock; ten launches are enough."""
    assert stale(path, now=datetime(2026, 12, 2, tzinfo=timezone.utc)) == []
    (found,) = stale(path, now=datetime(2026, 12, 3, tzinfo=timezone.utc))
    assert found.text == "provisional for 31 days, with 3 launches of 10"
    assert (found.what, len(found.cases)) == ("provisional", len(CASES))
    (path,) = update_references(tmp_path / "ten", [launch(1.0, day) for day in range(1, 11)])
    assert stale(path, now=datetime(2027, 2, 1, tzinfo=timezone.utc)) == []


def test_simulated_time_does_not_age(tmp_path: Path):
    simulated = {"exact": True, "circumstances": {}, "machine": {"simulated": "SMPI"}}
    (path,) = update_references(tmp_path, [launch(1.0, 1, **simulated)])
    assert stale(path, days=1) == []


@pytest.mark.parametrize(
    ("fact", "name"), [("kernel", "the kernel"), ("firmware", "the firmware"), ("cpu_model", "the processor")]
)
def test_a_machine_that_has_changed_makes_its_references_stale(tmp_path: Path, fact, name):
    (path,) = update_references(tmp_path, [launch(1.0, 1, machine={"host": "login", fact: "old"})])
    (found,) = stale(path, machine={"host": "login", fact: "new"})
    assert found.text == f"{name} of login was old and is new"
    assert stale(path, machine={"host": "another", fact: "new"}) == []
    assert stale(path, machine={"host": "login", fact: ""}) == []


def test_the_kernel_of_the_nodes_is_held_against_the_last_night_on_whatever_host(tmp_path: Path):
    some = [launch(1.0, day, kernel="5.14") for day in (1, 2, 3)]
    (path,) = update_references(tmp_path, some)
    elsewhere = {"host": "login2", "kernel": "5.14"}
    assert stale(path, nights_of([1.0], kernel="5.14"), elsewhere) == []
    (found,) = stale(path, nights_of([1.0], kernel="6.1"), elsewhere)
    assert found.text == "the kernel was '5.14' and is '6.1' in the last night"
    assert stale(path, nights_of([1.0], kernel=""), elsewhere) == []
    (path,) = update_references(tmp_path, [*some, *(launch(1.0, day) for day in (4, 5, 6))])
    assert stale(path, nights_of([1.0], kernel="6.1"), elsewhere) == []


def test_launches_on_several_kernels_are_told_and_not_stale(tmp_path: Path):
    some = [launch(1.0, day, kernel=f"6.{min(day, 2)}") for day in (1, 2, 3)]
    (path,) = update_references(tmp_path, some)
    told = [(each.stale, each.text) for each in find_all(path)]
    assert told == [(False, "launches on 2 kernels: 6.1 in 1, 6.2 in 2")]


@pytest.mark.parametrize("fact", ["mpi_library", "source_hash"])
def test_another_library_or_benchmark_in_the_last_night_does(path: Path, fact: str):
    assert stale(path, nights_of([1.0])) == []
    (found,) = stale(path, nights_of([1.0], **{fact: "other"}))
    assert found.text.endswith("is 'other' in the last night") and found.what == "changed"


def test_a_case_on_one_side_for_weeks_is_stale(path: Path):
    (found,) = stale(path, nights_of(14 * [1.03]))
    expected = "on the slow side of the center in 14 of 14 nights; the median night is 3.0% slower"
    assert found.text == expected
    (found,) = stale(path, nights_of(14 * [0.96]))
    assert found.text.startswith("on the fast side") and found.text.endswith("4.0% faster")
    (found,) = stale(path, nights_of([1.03] + 19 * [0.96]))
    assert "on the fast side of the center in 19 of 20 nights" in found.text
    assert found.cases == (CASES[0].key,)


@pytest.mark.parametrize("values", [13 * [1.03], 14 * [1.005], 7 * [1.03, 0.97], 14 * [1.0]])
def test_fewer_nights_and_less_than_a_hundredth_and_both_sides_say_nothing(path: Path, values):
    assert stale(path, nights_of(values)) == []


def test_a_rate_is_slow_below_its_center(tmp_path: Path):
    units = {case.key: "MB/s" for case in CASES}
    (path,) = update_references(tmp_path, [launch(100.0, day, units=units) for day in (1, 2)])
    (found,) = stale(path, nights_of(20 * [90.0]))
    assert found.text.startswith("on the slow side")


def test_of_cases_that_scatter_about_their_center_few_are_accused(path: Path):
    """Bonferroni: at most one file in twenty."""
    dice = random.Random(1)
    accused = 0
    for _ in range(200):
        nights = {c.key: CaseNights([dice.lognormvariate(0, 0.05) for _ in range(30)], LIBRARY) for c in CASES}
        accused += bool(stale(path, nights))
    assert accused <= 20


def test_launches_of_one_moment_are_told_and_not_stale(tmp_path: Path):
    (path,) = update_references(tmp_path, [launch(1.0, 1, "a"), launch(1.0, 1, "b")])
    (note,) = find_all(path)
    assert str(note).startswith("note: p, mpicost, 4 cases: all launches within 1 min: ")


@pytest.mark.parametrize(("hours", "told"), [((1, 3), True), ((1, 3, 5), False)])
def test_two_sessions_are_told_and_not_stale(tmp_path: Path, hours: tuple[int, ...], told: bool):
    some = [launch(1.0 + hour / 100, 1, "ab"[n]) for hour in hours for n in range(2)]
    ends = [f"2026-11-21T{hour:02}:0{n}:00Z" for hour in hours for n in range(2)]
    launches = [replace(each, ended_utc=end) for each, end in zip(some, ends, strict=True)]
    (path,) = update_references(tmp_path, launches)
    said = "note: p, mpicost, 4 cases: 2 of 3 sessions: their spread is mostly that of others"
    assert (said in map(str, find_all(path))) == told


@pytest.mark.parametrize(
    ("hosts", "nodes", "told"),
    [
        (12 * ["n1 n2"], 16, "one node set in all launches, 2 of 16 nodes (n1, n2)"),
        (3 * ["n1"], 16, "one node set in all launches, 1 of 16 nodes (n1)"),
        (12 * ["n1 n2"], 2, ""),  # all that there are
        (11 * ["n1 n2"] + ["n1 n3"], 16, ""),
        (12 * ["n1 n2"], 0, "one node set in all launches, 2 nodes (n1, n2)"),
        (9 * ["n1 n2"], 0, ""),
        (12 * ["n1"], 0, ""),
    ],
)
def test_launches_of_one_node_set_are_told_and_not_stale(tmp_path: Path, hosts, nodes, told):
    some = [launch(1.0, day, hosts=tuple(each.split())) for day, each in enumerate(hosts, 1)]
    (path,) = update_references(tmp_path, some)
    found = [(each.stale, each.text.partition(":")[0]) for each in find_all(path, nodes=nodes)]
    assert found == ([(False, told)] if told else [])


def test_the_firmware_is_read_as_far_as_it_is_told(tmp_path: Path):
    assert read_firmware(tmp_path) == ""
    (tmp_path / "bios_version").write_text("F12\n")
    (tmp_path / "bios_date").write_text("11/21/2026\n")
    assert read_firmware(tmp_path) == "F12 11/21/2026"


# The command.


@pytest.fixture
def work(tmp_path: Path, path: Path, monkeypatch) -> WorkDirectory:
    """A work directory with those references, and a site with a limit of 10,000 days."""
    made = WorkDirectory(tmp_path / "home", tmp_path)
    path.parents[2].rename(made.root.parent / "moved")
    made.root.mkdir()
    (tmp_path / "moved").rename(made.provisional)
    monkeypatch.setattr(references, "read_partitions", lambda *_: {("local", "cpu"): Partition(10_000, 4)})
    monkeypatch.setattr(references, "datetime", SimpleNamespace(now=lambda _: NOW))
    return made


def age(work: WorkDirectory, report: Path | None = None) -> int:
    return references.report_age(work, "local", report, Progress())


def said(capsys) -> str:
    """Return what was printed, with its wrapped lines joined."""
    return " ".join(capsys.readouterr().out.split())


def night(work: WorkDirectory, day: int, value: float, mode: str = "nightly", **other) -> None:
    name = f"202612{day:02d}T010000Z-1"
    started = f"2026-12-{day:02d}T01:00:00Z"
    told = {"verdict": Verdict.PASS, **LIBRARY} | other
    row = StoreRow(name, started, 1, CASES[0], value=value, mode=mode, **told)
    store.write_session(work.store / f"{name}{store.SUFFIX}", [row])


@pytest.mark.parametrize(
    "other",
    [
        {"mode": "run"},
        {"unit": "MB/s"},
        *({"verdict": verdict} for verdict in Verdict if verdict not in JUDGED),
    ],
)
def test_what_was_run_by_hand_not_judged_or_in_another_unit_is_no_night(work: WorkDirectory, other):
    for day in range(1, 16):
        night(work, day, 1.03, **other)
    assert age(work) == 0


def test_the_command_asks_the_store_of_nights(work: WorkDirectory, tmp_path: Path, capsys):
    for day in range(1, 14):
        night(work, day, 1.03)
    assert age(work) == 0
    night(work, 14, 1.03, mode="calibrate")
    assert age(work) == 0
    assert "4 references in 1 file: 0 stale" in said(capsys)
    night(work, 15, 1.03)
    report = tmp_path / "stdout"
    report.symlink_to(tmp_path / "report.json")
    assert age(work, report) == 1
    assert "1 stale; ./plumbline calibrate" in said(capsys)
    assert report.is_symlink()  # as /dev/stdout, which is not ours to replace
    told = json.loads(report.read_text())
    assert told["stale"] == 1 and told["findings"][0]["what"] == "one-sided"


def test_a_night_with_another_library_is_not_judged_and_tells_that_it_is_another(work, capsys):
    night(work, 1, 1.03, verdict=Verdict.NOT_COMPARABLE, mpi_library="MPICH Version: 6")
    assert age(work) == 1
    assert "is 'MPICH Version: 6' in the last night" in said(capsys)


def test_the_kernel_of_the_last_night_is_in_its_run_record(work: WorkDirectory, capsys):
    night(work, 1, 1.0, provenance=json.dumps({"kernel": "6.2"}))
    night(work, 2, 1.0, provenance=json.dumps({"kernel": "6.1"}))
    assert age(work) == 0
    night(work, 3, 1.0, provenance=json.dumps({"kernel": "6.2"}))
    assert age(work) == 1
    assert "the kernel was '6.1' and is '6.2' in the last night" in said(capsys)


def test_the_command_knows_the_nodes_of_the_site(work: WorkDirectory, capsys):
    assert age(work) == 0
    assert "one node set in all launches, 1 of 4 nodes (n1)" in said(capsys)


def test_a_site_file_tells_its_nodes_and_days(tmp_path: Path):
    here = WorkDirectory(tmp_path, ROOT)
    assert references.read_partitions(here, "simulated")["simulated", "torus"].nodes > 1


def test_nights_of_before_the_calibration_say_nothing(work: WorkDirectory):
    """Of before its median launch, that is."""
    for day in range(1, 15):
        night(work, day, 1.03)
    path = work.provisional.joinpath(*PLACE[:2], f"{PLACE[2]}.tsv")
    (told,) = provenance.list_calibrations(read_provenance(path)["programs"]["mpicost"])
    for moments, status in (("10", "30", "30"), 0), (("01", "01", "30"), 1):
        for each, day in zip(told["series"][0]["launches"], moments, strict=True):
            each["ended_utc"] = f"2026-12-{day}T00:00:00Z"
        origin = read_provenance(path) | {"programs": {"mpicost": {"calibrations": [told]}}}
        provenance.locate_provenance(path).write_bytes(provenance.encode_provenance(origin))
        assert age(work) == status


def test_nights_count_for_each_case_since_its_own_calibration(work: WorkDirectory):
    """Those of one case are no nights of another that was calibrated later."""
    for day in range(1, 15):
        night(work, day, 1.03)
    root, late = work.root / "other", [f"2026-12-{day}T01:00:00Z" for day in (28, 29, 30)]
    some = [launch(1.0, day, cases=CASES[1:]) for day in (1, 2, 3)]
    update_references(root, [*some, *(launch(1.0, cases=CASES[:1], ended_utc=each) for each in late)])
    for each in (root / PLACE[0] / PLACE[1]).iterdir():
        each.replace(work.provisional / PLACE[0] / PLACE[1] / each.name)
    assert age(work) == 0


def test_a_reviewed_file_hides_the_provisional_one(work: WorkDirectory, capsys):
    night(work, 1, 1.0, source_hash="new")
    assert age(work) == 1
    update_references(work.source / "reference_data", [launch(1.0, 1, facts={"source_hash": "new"})])
    capsys.readouterr()
    assert age(work) == 0
    assert "4 references in 1 file: 0 stale" in said(capsys)


def test_without_a_store_the_rest_is_said(work: WorkDirectory, monkeypatch):
    monkeypatch.setattr(references, "read_partitions", lambda *_: {("local", "cpu"): Partition(1)})
    later = SimpleNamespace(now=lambda _: datetime(2030, 1, 1, tzinfo=timezone.utc))
    monkeypatch.setattr(references, "datetime", later)
    assert age(work) == 1
