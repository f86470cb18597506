"""The log of alarms: whole or refused, and counted against what chance would have raised."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

from postprocess.analyses import alarms
from postprocess.base.errors import UsageError
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import Parser
from postprocess.commands import alarms as alarms_command
from postprocess.judging.evaluate import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.stats.band import SLOW_ALPHA
from postprocess.stats.detection import FALSE_CALLS
from tests.support.faults import Declared, plants
from tests.support.plumbline_runner import unwrap

CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
NIGHT = alarms.NightAlarms(
    "20261121T010000Z-1",
    "2026-11-21T01:00:00Z",
    "local",
    100,
    3.0,
    0.01,
    ("a", "b"),
    {"c": 1.2, "d": None, "e": 1.1},
    ("e",),
    ("common cause: cpu: everything 10% slower",),
    {},
    (),
)


def at(session: str, started: str = "2026-11-21T01:00:00Z", **more) -> alarms.NightAlarms:
    return replace(NIGHT, session=session, started_utc=started, **more)


def result(size: int, times: float = 1.0, **more) -> CaseResult:
    case = replace(CASE, bytes=size)
    reference = Reference(case, 1e-5, **({"spread": 0.05, "launches": 20} | more))
    return judge_case(case, Measurement(1e-5 * times, best=1e-5 * times), reference)


def test_nights_come_back_as_they_were_written(tmp_path: Path):
    path = tmp_path / "work" / alarms.FILE
    assert alarms.read_alarm_log(path) == []
    nights = [NIGHT, at("2"), at("3", regressed={}, common=(), causes=())]
    for night in nights:
        alarms.append_night(path, night)
    assert alarms.read_alarm_log(path) == nights
    assert len(path.read_text().splitlines()) == 3
    assert NIGHT.alarms == ("c", "d")
    assert NIGHT.screened == 4


def test_the_last_word_of_people_counts(tmp_path: Path):
    path = tmp_path / alarms.FILE
    alarms.append_night(path, NIGHT)
    alarms.mark_alarm(path, NIGHT.session, "c", alarms.REAL)
    alarms.mark_alarm(path, NIGHT.session, "c", alarms.FALSE)
    alarms.mark_alarm(path, NIGHT.session, "d", alarms.REAL)
    (night,) = alarms.read_alarm_log(path)
    assert night.said == {"c": alarms.FALSE, "d": alarms.REAL}
    assert (night.marked(alarms.REAL), night.marked(alarms.FALSE)) == (1, 1)


@plants("use", "a mark for what was no alarm", "`alarms`", "", 2, "was no alarm | is not a session")
@pytest.mark.parametrize(("session", "key"), [("other", "c"), (NIGHT.session, "a")])
def test_what_was_no_alarm_cannot_be_marked(tmp_path, session: str, key: str, declared):
    path = tmp_path / alarms.FILE
    alarms.append_night(path, NIGHT)
    before = path.read_bytes()
    with declared.raises(UsageError, match=r"was no alarm|is not a session"):
        alarms.mark_alarm(path, session, key, alarms.REAL)
    assert path.read_bytes() == before


@plants("files", "a line cut, changed or lost, in 11 ways", "the log of alarms", "", 2,
        "alarms.jsonl: row 2: ")  # fmt: skip
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda line: line[:40], "row 2"),
        (lambda line: line.replace('"schema": 1', '"schema": 9'), "schema: 9 is not 1"),
        (lambda line: line.replace('"judged": 100', '"judged": -1'), "judged"),
        (lambda line: line.replace("3.0", "NaN"), "finite"),
        (lambda line: line.replace('["a", "b"]', '["a", "a"]'), "cleared"),
        (lambda line: line.replace('["e"]', '["z"]'), "common"),
        (lambda line: line.replace('"common"', '"commom"'), "common: is missing"),
        (lambda line: line.replace('"2"', f'"{NIGHT.session}"'), "is there twice"),
        (lambda line: line.replace('"night"', '"mark"'), "not above it"),
        (lambda line: "[]", "Expected `object`, got `array`"),
        (lambda line: "", "row 2"),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(tmp_path, damage, told: str, declared):
    path = tmp_path / alarms.FILE
    for session in (NIGHT.session, "2", "3"):
        alarms.append_night(path, at(session))
    first, second, third = path.read_text().splitlines()
    path.write_text("\n".join([first, damage(second), third]) + "\n")
    with declared.raises(UsageError) as error:
        alarms.read_alarm_log(path)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@plants("files", "a line cut off at its end, as by a kill", "the log of alarms", "", 2,
        "alarms.jsonl: row 1: ")  # fmt: skip
def test_a_line_that_was_cut_off_is_refused_and_swallows_no_other(tmp_path, declared):
    path = tmp_path / alarms.FILE
    alarms.append_night(path, NIGHT)
    path.write_bytes(path.read_bytes()[:-1])
    with declared.raises(UsageError, match="row 1: is cut off"):
        alarms.read_alarm_log(path)
    path.write_bytes(path.read_bytes()[:50])
    alarms.append_night(path, at("2"))
    assert json.loads(path.read_text().splitlines()[1])["session"] == "2"
    with declared.raises(UsageError):
        alarms.read_alarm_log(path)


@plants("lost", "a place that cannot be written to", "the log of alarms", "", 2,
        "cannot be written")  # fmt: skip
def test_a_log_that_cannot_be_written_says_so(tmp_path: Path, declared: Declared):
    (tmp_path / "file").write_text("")
    with declared.raises(UsageError):
        alarms.append_night(tmp_path / "file" / alarms.FILE, NIGHT)


def test_what_a_night_says_is_logged():
    results = [
        result(8),
        replace(result(16, 1.5), verdict=Verdict.CLEARED),
        result(24, 1.5),
        replace(result(32, 1.5), reason="15.0 us is", cause="cpu: everything 50% slower"),
        replace(result(40, 1.5), expected="known, ticket 7"),
        CaseResult(replace(CASE, bytes=48), Verdict.CRASHED, "signal 11"),
        result(56, 1.5, launches=1, spread=0.0),  # blind
    ]
    causes = ["cpu: everything 50% slower"]
    night = alarms.summarise_night_alarms("s", "2026-11-21T01:00:00Z", "local", results, causes)
    keys = {each.case.bytes: each.case.key for each in results}
    assert night.cleared == (keys[16],)
    assert list(night.regressed) == sorted([keys[24], keys[32]])
    assert night.regressed[keys[24]] == pytest.approx(1.5)
    assert night.common == (keys[32],)
    assert night.causes == ("cpu: everything 50% slower",)
    assert night.judged == 4
    assert night.predicted_screened == pytest.approx(4 * SLOW_ALPHA)
    assert 0 < night.predicted_regressed < 4 * SLOW_ALPHA / 100


def test_the_hosts_of_what_was_fine_elsewhere_are_logged(tmp_path: Path):
    path = tmp_path / alarms.FILE
    cleared = replace(result(16, 1.5), verdict=Verdict.CLEARED, slow_on=("n1", "n2"))
    night = alarms.summarise_night_alarms("s", "2026-11-21T01:00:00Z", "local", [result(8), cleared])
    assert night.slow_on == {cleared.case.key: ("n1", "n2")}
    alarms.append_night(path, night)
    assert alarms.read_alarm_log(path) == [night]
    entry = json.loads(path.read_text())
    path.write_text(json.dumps(entry | {"slow_on": {"other": ["n1"]}}) + "\n")
    with pytest.raises(UsageError, match="row 1: slow_on: names a case that is not cleared"):
        alarms.read_alarm_log(path)


def test_the_floor_lessens_what_is_predicted():
    screened, regressed = alarms.predict_false_alarm(result(8, spread=0.01))
    assert screened < SLOW_ALPHA / 10
    assert regressed < screened
    assert alarms.predict_false_alarm(result(8, spread=0.005))[1] < FALSE_CALLS
    assert alarms.predict_false_alarm(result(8, launches=1, spread=0.0)) is None
    assert alarms.predict_false_alarm(result(8, launches=5))[0] == pytest.approx(SLOW_ALPHA)


def test_drawn_nights_are_screened_as_often_as_predicted():
    """Calibrations of all kinds, and a healthy launch for each: the count is what was predicted."""
    random = np.random.default_rng(4)
    predicted, counted = 0.0, 0
    for n in range(2500):
        launches, spread = int(random.choice([10, 20, 30])), float(random.choice([0.01, 0.05]))
        logs = random.normal(0, spread, launches)
        center = 1e-5 * math.exp(logs.mean())
        reference = Reference(replace(CASE, bytes=8 * n), center, float(logs.std(ddof=1)), launches)
        value = 1e-5 * math.exp(random.normal(0, spread))
        said = judge_case(reference.case, Measurement(value, best=value), reference)
        predicted += alarms.predict_false_alarm(said)[0]
        counted += said.verdict == Verdict.REGRESSED
    low, high = alarms.compute_poisson_interval(counted)
    assert low < predicted < high


@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_the_interval_is_that_of_garwood(count: int):
    low, high = alarms.compute_poisson_interval(count)
    assert poisson.cdf(count, high) == pytest.approx(0.025)
    assert (poisson.sf(count - 1, low) == pytest.approx(0.025)) if count else low == 0


@given(st.lists(st.tuples(st.floats(0.1, 50), st.integers(0, 100)), min_size=1, max_size=30))
def test_a_tally_is_never_surer_than_chance(nights):
    found = alarms.sum_alarm_counts(nights)
    low, high = found.interval
    plain = alarms.compute_poisson_interval(found.counted)
    assert found.dispersion >= 1
    assert low <= plain[0] * (1 + 1e-9) and high >= plain[1] * (1 - 1e-9)
    assert low <= found.counted <= high


def test_compatible_or_not_is_said():
    assert alarms.sum_alarm_counts([(10.0, 11)]).verdict == "as predicted"
    assert alarms.sum_alarm_counts([(10.0, 40)] * 5).verdict == "more"
    assert alarms.sum_alarm_counts([(40.0, 10)] * 5).verdict == "fewer"
    assert alarms.sum_alarm_counts([(0.01, 0)] * 5).verdict == "as predicted"
    together = alarms.sum_alarm_counts([(10.0, 0), (10.0, 60), (10.0, 5), (10.0, 1), (10.0, 9)])
    assert together.dispersion > 10
    assert together.verdict == "as predicted"


def test_months_are_apart_and_together():
    nights = [at("1"), at("2"), at("3", "2026-12-01T01:00:00Z", said={"c": alarms.REAL})]
    november, december, every = alarms.tally_by_month(nights)
    assert (november.name, november.nights, november.judged) == ("2026-11", 2, 200)
    assert (november.screened.counted, november.screened.predicted) == (8, 6.0)
    assert (november.regressed.counted, november.common) == (4, 2)
    assert (december.real, december.false, december.unmarked) == (1, 0, 1)
    assert (every.name, every.nights, every.unmarked) == ("all", 3, 5)
    assert len(alarms.tally_by_month(nights[:2])) == 1


def test_what_is_cleared_again_and_again_is_named():
    nights = [at("1"), at("2", cleared=("b",)), at("3", cleared=("b", "x"))]
    assert alarms.find_often_cleared(nights) == [("b", 3)]


def test_sites_are_apart():
    """Simulated nights predict no alarm, and would make room for those of a machine."""
    months_each = ("1", "2026-11-21T01:00:00Z"), ("2", "2026-12-01T01:00:00Z")
    nights = [at(*each) for each in months_each]
    nights += [at(f"s{n}", started, site="simulated") for n, started in months_each]
    found = alarms.tally_by_month(reversed(nights))
    assert [(month.site, month.name) for month in found] == [
        (site, name) for site in ("local", "simulated") for name in ("2026-11", "2026-12", "all")
    ]
    assert [month.nights for month in found] == [1, 1, 2] * 2


@pytest.mark.parametrize(
    ("hosts", "named"),
    [
        ([("n1", "n2")] * 10, ("n1", "n2")),
        ([("n1", "n2"), ("n1", "n3"), ("n1", "n4")], ("n1",)),
        ([("n1",), ("n2",), ("n3",)], ()),
        ([(), ("n1",), ()], ()),
        ([(), ("n1",), ("n1",), (), ()], ()),
        ([(), ()], ()),
    ],
)
def test_only_hosts_that_come_back_are_behind_what_is_cleared_again_and_again(hosts, named):
    nights = [at(str(n), cleared=("b",), slow_on={"b": some} if some else {}) for n, some in enumerate(hosts)]
    assert alarms.find_slow_hosts(nights, "b") == named
    assert alarms.find_slow_hosts(nights, "other") == ()


def told(work: Path, capsys, *words: str) -> str:
    parser = Parser()
    alarms_command.add_arguments(parser)
    arguments = parser.parse_args(words)
    assert alarms_command.run(WorkDirectory(work, work), arguments) == 0
    return capsys.readouterr().out


def test_the_command_shows_marks_and_writes(tmp_path: Path, capsys):
    for session, month in (("1", "11"), ("2", "12")):
        alarms.append_night(tmp_path / alarms.FILE, at(session, f"2026-{month}-01T01:00:00Z"))
    text = told(tmp_path, capsys)
    assert "2026-11" in text and "2026-12" in text and "as predicted" in text
    assert "4 regressed: 0 real, 0 false, 4 not marked: real changes may be among them" in text
    table = text.splitlines()[: 1 + 2 * 3]  # a head, and two rows for each month and for all
    assert [line.split()[0] for line in table[1::2]] == ["2026-11", "2026-12", "all"]
    assert max(map(len, table)) <= 80
    assert "cleared on 2 nights: a: calibrate it again" in text
    assert "local\n" not in text
    assert "noted as real" in told(tmp_path, capsys, "--mark", "real", "c", "1")
    assert "noted as false" in told(tmp_path, capsys, "--mark", "false", "d", "1")
    with pytest.raises(UsageError, match="--mark no: an alarm is real or false"):
        told(tmp_path, capsys, "--mark", "no", "d", "1")
    text = told(tmp_path, capsys, "--json", str(tmp_path / "out.json"))
    assert "1 real, 1 false, 2 not marked" in text
    document = json.loads((tmp_path / "out.json").read_text())
    assert [each["name"] for each in document["months"]] == ["2026-11", "2026-12", "all"]
    assert document["months"][0]["screened"]["verdict"] == "as predicted"
    assert "2026-11" not in told(tmp_path, capsys, "--since", "2026-12-01")


@plants("use", "a month of which it holds no night", "`alarms --since`", "", 2,
        "holds no night")  # fmt: skip
def test_no_night_is_one_line(tmp_path: Path, capsys, declared: Declared):
    with declared.raises(UsageError):
        told(tmp_path, capsys)
    alarms.append_night(tmp_path / alarms.FILE, NIGHT)
    with pytest.raises(UsageError, match="holds no night since 2027-01-01"):
        told(tmp_path, capsys, "--since", "2027-01-01")


def test_the_command_sends_to_the_nodes_that_are_behind_it(tmp_path: Path, capsys):
    """Not to bless what a sick node shows: its case is slow there each night, and fine on others."""
    for n in range(10):
        night = at(str(n), cleared=("a", "b"), slow_on={"b": ("n1", "n2")}, site="big")
        alarms.append_night(tmp_path / alarms.FILE, night)
    alarms.append_night(tmp_path / alarms.FILE, at("l", cleared=()))
    text = told(tmp_path, capsys, "--json", str(tmp_path / "j"))
    big, local = "\n".join(unwrap(text)).split("local\n")
    assert big.startswith("big\n") and "cleared on 10 nights: a: calibrate it again" in big
    advice = "slow on n1, n2 and on no other nodes: ./plumbline links --site big finds sick nodes"
    assert f"cleared on 10 nights: b: {advice}" in big
    assert "2 not marked" in local
    written = json.loads((tmp_path / "j").read_text())
    assert written["slow_on"] == {"a": [], "b": ["n1", "n2"]}
    assert {each["site"] for each in written["months"]} == {"big", "local"}
