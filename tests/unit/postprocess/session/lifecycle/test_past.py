"""The nights before a session, read from the store: histories, steps, and a store that cannot be read."""

import re
from dataclasses import replace
from shutil import copytree

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.main import build_parser
from postprocess.model.verdict import Verdict
from postprocess.report.first_screen import conclude_session, find_news, propose_next
from postprocess.report.terminal import render_terminal
from postprocess.results.summary import load_summary, parse_summary
from postprocess.session.lifecycle.past import read_past, write_earlier_pages, write_site
from tests.support.factories import drift
from tests.support.factories import report as samples
from tests.support.faults import plants

NIGHTS = 30


@pytest.fixture
def summary():
    """A session of one case, slow since the tenth night before it."""
    night = samples.Night()
    samples.slow(2.0)(night, drift.CASE, samples.np.random.default_rng(1))
    more = {"session": drift.session(NIGHTS - 1), "started_utc": drift.started(NIGHTS - 1)}
    return parse_summary(replace(night, more=more).document())


@pytest.fixture
def stored(work):
    work.store.mkdir(parents=True)
    logs = drift.noise(NIGHTS + 5)
    logs[NIGHTS - 10 :] += 0.3
    drift.write_nights(work.store, {drift.CASE: logs})
    return work


def test_the_nights_up_to_the_session_and_their_steps_are_read(stored, summary):
    past = read_past(stored, summary)
    nights = past.nights[drift.CASE.key]
    assert [night.session for night in nights] == [drift.session(n) for n in range(NIGHTS)]
    (step,) = past.steps[drift.CASE.key]
    assert step.session == drift.session(NIGHTS - 10)
    assert step.text.startswith("step of +3")
    (item,) = find_news(summary, past).items
    assert (item.tone, item.what) == ("bad", "newly regressed")


@plants("lost", "a night of the store is cut off", "the report of a later session", "", 0,
        "the nights before are not known: …is damaged, its checksum is wrong")  # fmt: skip
def test_a_damaged_night_is_told_and_keeps_nobody_from_a_report(stored, summary, declared):
    path = stored.store / f"{drift.session(3)}.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    past = read_past(stored, summary)
    assert not past.nights
    declared.check((), 0, [past.problem])
    assert Verdict.REGRESSED in {result.verdict for result in summary.results}


STARTS = ("2026-10-30T01:00:00Z", "2026-11-20T01:00:00Z", "2026-11-21T01:00:00Z")


@pytest.fixture
def sessions(work):
    """Three nights on two machines, of which the last is bad, and a calibration."""
    few = samples.few_cases()[:12]
    names = [f"{start[:4]}{start[5:7]}{start[8:10]}T010000Z-1" for start in STARTS]
    for name, start, host in zip(names, STARTS, ("n1", "n1", "n2"), strict=True):
        night = samples.healthy_night(few) if start != STARTS[-1] else samples.bad_night()
        machine = samples.Night().document()["machine"] | {"host": host}
        ended = start.replace("T01:", "T02:")
        more = {"session": name, "started_utc": start, "ended_utc": ended, "machine": machine}
        replace(night, more=more).write(work.sessions / name)
    more |= {"mode": "calibrate", "session": "20261122T010000Z-1", "started_utc": "2026-11-22T01:00:00Z"}
    replace(samples.healthy_night(few), more=more).write(work.sessions / "20261122T010000Z-1")
    return work


def test_each_session_is_in_the_index_with_its_page(sessions, tmp_path):
    index, problems = write_site(sessions, tmp_path / "site")
    text = index.read_text(encoding="utf-8")
    assert problems == []
    linked = set(re.findall(r'href="([^"]*)"', text))
    pages = {path.name for path in (tmp_path / "site").iterdir()} - {"index.html"}
    assert (linked, len(pages)) == (pages, 4)
    for name in pages:
        page = (tmp_path / "site" / name).read_text(encoding="utf-8")
        assert page.count('<a href="index.html">all sessions</a>') == 1
    assert text.index("<h2>2026-11</h2>") < text.index("<h2>2026-10</h2>")
    assert re.findall(r"<h3>(.*?)</h3>", text) == ["local · n1", "local · n2", "local · n1"]
    chips = re.findall(r'<a class="(\w+)" href="(\d+)T', text)
    assert chips == [("good", "20261120"), ("bad", "20261121"), ("good", "20261030")]
    assert re.search(r"✗ 4 sessions on 2 machines", text)


def test_a_session_that_confirms_belongs_to_the_night_before_it_on_its_machine(sessions, tmp_path):
    """What it found is in the colour of that night; what its own fresh launches found it has judged by."""
    within, start = "20261120T013000Z-1", "2026-11-20T01:30:00Z"
    more = {"session": within, "started_utc": start, "mode": "nightly-fresh"}
    replace(samples.bad_night(), more=more).write(sessions.sessions / within)
    name, start = "20261120T030000Z-1", "2026-11-20T03:00:00Z"
    machine = samples.Night().document()["machine"] | {"host": "n1"}
    more = {"session": name, "started_utc": start, "machine": machine, "mode": "confirm"}
    replace(samples.bad_night(), more=more).write(sessions.sessions / name)
    text = write_site(sessions, tmp_path / "site")[0].read_text(encoding="utf-8")
    chips = re.findall(r'<a class="(\w+)" href="(\d+)T', text)
    assert chips == [("bad", "20261120"), ("bad", "20261121"), ("good", "20261030")]
    row = rf'href="20261120T010000Z-1.html">{STARTS[1]}</a>(?:(?!</tr>).)*</tr>\n<tr[^>]*>'
    assert re.search(rf'{row}\s*<td[^>]*><a href="{name}.html">measured again at {start}</a>', text)
    assert text.count(f"{name}.html") == 1 and "5 sessions on 2 machines" in text
    assert within not in text


@pytest.mark.parametrize("mode", ["nightly-fresh", "run-fresh"])
def test_fresh_launches_confirm_no_night(measured_again, mode):
    work, night, later = measured_again
    path = work.sessions / later / "summary.json"
    write_summary(path, replace(load_summary(path), mode=mode).to_dict())
    assert read_past(work, load_summary(work.sessions / night / "summary.json")).rounds == []


@pytest.fixture
def measured_again(sessions):
    """A night with a suspect, and a later session that cleared it: the work directory and both names."""
    night, later = "20261120T010000Z-1", "20261120T030000Z-1"
    good = samples.healthy_night(samples.few_cases()[:12])
    suspect = replace(good.results[0], verdict=Verdict.SUSPECT, reason="slow")
    machine = samples.Night().document()["machine"] | {"host": "n1"}
    more = {"session": night, "started_utc": STARTS[1], "ended_utc": "2026-11-20T01:05:00Z", "machine": machine}
    replace(good, results=[suspect, *good.results[1:]], more=more).write(sessions.sessions / night)
    more |= {"session": later, "started_utc": "2026-11-20T03:00:00Z", "mode": "confirm"}
    cleared = replace(suspect, verdict=Verdict.CLEARED)
    replace(good, results=[cleared], more=more).write(sessions.sessions / later)
    return sessions, night, later


def test_the_page_of_a_night_names_what_measured_its_suspects_again(measured_again, tmp_path):
    """Nothing proposes to confirm what is decided, and a copy of the page leads to the copy of the other."""
    work, night, later = measured_again
    write_earlier_pages(work, later)
    text = (work.sessions / night / "report.html").read_text(encoding="utf-8")
    told = f"suspects measured again at 2026-11-20T03:00:00Z: 1 cleared (session {later})"
    assert f'href="../{later}/report.html">{told}</a>' in text and "./plumbline confirm" not in text
    write_site(work, tmp_path / "site")
    copied = (tmp_path / "site" / f"{night}.html").read_text(encoding="utf-8")
    assert f'href="{later}.html">suspects measured again' in copied and f"../{later}" not in copied


def test_the_verdict_of_a_night_is_what_its_suspects_turned_out_to_be(measured_again):
    work, night, later = measured_again
    summary = load_summary(work.sessions / night / "summary.json")
    assert conclude_session(summary, ())[1].endswith("1 of them suspect: the next night decides")
    cleared = read_past(work, summary).rounds
    tone, headline = conclude_session(summary, cleared)
    assert tone != "bad" and headline == "1 of 12 cases suspect: measured again, 1 cleared"
    fell = [replace(result, verdict=Verdict.REGRESSED) for result in cleared[0].results]
    failed = [replace(cleared[0], results=tuple(fell), exit_status=1)]
    tone, headline = conclude_session(summary, failed)
    assert tone == "bad" and headline.endswith("measured again, 1 regressed")
    assert propose_next(summary, failed)[0].command == f"./plumbline run --failed {later}"
    assert all(
        proposal.command != f"./plumbline run --failed {later}" for proposal in propose_next(summary, cleared)
    )


def test_a_terminal_proposes_to_measure_suspects_again_only_until_that_is_done(measured_again):
    work, night, later = measured_again
    summary = load_summary(work.sessions / night / "summary.json")
    told = " ".join(render_terminal(summary, 80, False, rounds=read_past(work, summary).rounds).split())
    assert f"measured again at 2026-11-20T03:00:00Z: 1 cleared: ./plumbline report {later}" in told
    assert "./plumbline confirm" not in told
    (work.sessions / later / "summary.json").unlink()
    told = render_terminal(summary, 80, False, rounds=read_past(work, summary).rounds)
    assert "./plumbline confirm" in told and "measured again at" not in told


def test_what_is_there_already_stays_and_what_is_new_is_added(sessions, tmp_path):
    site = tmp_path / "site"
    (sessions.sessions / "20261120T010000Z-1" / "report.html").write_text("as it was written")
    write_site(sessions, site)
    page = site / "20261120T010000Z-1.html"
    assert page.read_text() == "as it was written"
    before = page.stat().st_mtime_ns
    (sessions.sessions / "20261121T010000Z-1" / "report.html").write_text("newer")
    write_site(sessions, site)
    assert page.stat().st_mtime_ns == before
    assert (site / "20261121T010000Z-1.html").read_text() == "newer"


@plants("files", "a session whose summary.json is cut off", "`report --site`, the index of all sessions", "", 1,
        "summary.json: …; run the session again")  # fmt: skip
def test_a_damaged_session_is_told_and_the_others_are_shown(sessions, tmp_path, declared, capsys):
    damaged = sessions.sessions / "20261120T010000Z-1" / "summary.json"
    damaged.write_text(damaged.read_text()[:99])
    arguments = build_parser().parse_args(["report", "--site", str(tmp_path / "site")])
    status = arguments.run(sessions, arguments)
    declared.check((), status, [capsys.readouterr().err])
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "3 sessions" in text and "summary.json" in text


@plants("stale", "a copy of a session under another name, and one that has no date of this era",
        "`report --site`, the index of all sessions", "", 1,
        "20261120T010000Z-2/summary.json: is of session")  # fmt: skip
def test_a_copy_would_count_twice_and_an_odd_date_hurts_nobody(sessions, tmp_path, declared):
    first, odd = (sessions.sessions / f"202611{day}T010000Z-1" for day in (20, 21))
    copytree(first, sessions.sessions / "20261120T010000Z-2")
    text = (odd / "summary.json").read_text()
    (odd / "summary.json").write_text(text.replace(STARTS[-1], "0001-01-01T01:00:00Z"))
    index, problems = write_site(sessions, tmp_path / "site")
    declared.check((), int(bool(problems)), problems)
    assert "4 sessions" in index.read_text(encoding="utf-8")


@plants("use", "a folder with an index.html of somebody else", "`report --site`", "", 2,
        "index.html: is of something else; choose another --site")  # fmt: skip
def test_an_index_of_somebody_else_is_kept(sessions, tmp_path, declared):
    (tmp_path / "index.html").write_text("my page")
    with pytest.raises(UsageError) as caught:
        write_site(sessions, tmp_path)
    declared.check_error(caught.value)
    assert (tmp_path / "index.html").read_text() == "my page"


def test_a_session_beside_the_site_is_refused(sessions, tmp_path):
    arguments = build_parser().parse_args(["report", "latest", "--site", str(tmp_path)])
    with pytest.raises(UsageError, match="latest: --site writes all sessions"):
        arguments.run(sessions, arguments)
