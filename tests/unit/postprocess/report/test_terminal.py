"""The verdict table: complete, greppable in a pipe, whole commands in a terminal, harmless always."""

import io
import re
from dataclasses import replace

import pytest

from postprocess.base.sanitize import sanitize_line
from postprocess.model.verdict import Verdict
from postprocess.report import overview
from postprocess.report import terminal as tables
from postprocess.report.first_screen import list_numbered_groups
from postprocess.results.summary import SessionSummary, parse_summary
from tests.support.factories import report as samples
from tests.support.factories import size as sizes

ESCAPE = "\x1b"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def unwrapped(text: str) -> str:
    """Join the lines of a text, so that a sentence is found wherever it is broken."""
    return " ".join(text.split())


def summary_of(night: samples.Night) -> SessionSummary:
    return parse_summary(night.document())


@pytest.fixture(scope="module")
def bad() -> SessionSummary:
    return summary_of(samples.bad_night())


@pytest.fixture(scope="module")
def three() -> SessionSummary:
    return summary_of(sizes.three_programs())


@pytest.fixture(scope="module")
def large() -> SessionSummary:
    """A night of thousands of cases, a tenth of which came to nothing, and a few are slow."""
    planned = sizes.cases(routines=30)
    night = sizes.three_programs(planned)
    slow = [sizes.measured(case, 4.0) for case in planned[::200]]
    lost = [sizes.lost(case) for case in planned[1::10]]
    others = {result.case: result for result in night.results}
    others |= {result.case: result for result in [*slow, *lost]}
    return summary_of(replace(night, results=list(others.values())))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("strict", [False, True])
def test_a_program_of_which_nothing_ran_has_no_row_unless_that_fails(three, strict):
    left = [
        replace(result, verdict=Verdict.SKIPPED, reason="no Spack", value=None)
        if result.case.program == "osu"
        else result
        for result in three.results
    ]
    text = tables.render_terminal(replace(three, results=tuple(left), strict=strict), 80, False)
    table = text[: text.index("\n\n")].splitlines()
    assert ("osu" in table) is strict and "imb" in table
    assert re.search(r"^osu: ([\d,]+) cases: \1 skipped: no Spack$", text, re.M)


def test_strict_names_provisional_cases_and_says_so():
    night = samples.healthy_night(samples.few_cases()[:5], 1)
    night.strict = True
    text = tables.render_terminal(summary_of(night), 80, False)
    assert text.splitlines()[-1] == "5 cases: 5 provisional (strict, exit status 1)"
    assert all(result.case.key in text for result in night.results)


def test_one_command_for_what_failed_is_said_once():
    night = samples.bad_night([c for c in samples.few_cases() if c.routine == "bcast"])
    slow = next(r for r in night.results if r.verdict is Verdict.REGRESSED)
    night.results = [slow]
    text = tables.render_terminal(summary_of(night), 80, False)
    assert text.count("run --failed") == 1
    assert f"  again: ./plumbline run --failed {samples.SESSION}:1\n" in text and "next: Measure" not in text
    night.results = [replace(slow, verdict=Verdict.NO_REFERENCE, reason="none")]
    text = tables.render_terminal(summary_of(night), 80, False)
    assert "run --failed" not in text and "next: Calibrate: 1 case has no reference" in text


def test_a_case_takes_three_lines_of_a_terminal():
    night = samples.bad_night([c for c in samples.few_cases() if c.routine == "bcast"])
    slow = next(r for r in night.results if r.verdict is Verdict.REGRESSED)
    numbers = {"value": 1.5e-3, "reference": 0.5e-3, "reason": "another MPI", "q": None}
    night.results = [replace(slow, verdict=Verdict.NOT_COMPARABLE, **numbers)]
    lines = COLOUR.sub("", tables.render_terminal(summary_of(night), 80, True)).splitlines()
    place = lines.index(f"not-comparable  {slow.case.key}")
    assert lines[place + 1 : place + 4] == [
        "  why: 1500 us, 3 times as slow as its reference 500.0 us; another MPI",
        f"  again: ./plumbline run --failed {samples.SESSION}:1",
        "",
    ]


def test_cases_of_one_reason_are_counted_and_the_first_few_listed_but_in_a_pipe_all_that_failed():
    night = samples.bad_night(samples.few_cases())
    night.results = [
        replace(result, verdict=Verdict.NOT_COMPARABLE, reason="lib.so is in front", q=None)
        for result in samples.healthy_night(samples.few_cases()[:9]).results
    ]
    summary = summary_of(night)
    lines = COLOUR.sub("", tables.render_terminal(summary, 80, True)).splitlines()
    assert "not-comparable  9 cases" in lines and "    and 4 more" in lines
    assert lines.count("  why: lib.so is in front") == 1
    whole = tables.render_terminal(summary, 80, False)
    assert all(f"    {result.case.key}\n" in whole for result in night.results)
    night.results = [replace(result, verdict=Verdict.CLEARED, value=1.0) for result in night.results]
    short = tables.render_terminal(summary_of(night), 80, False)
    assert sum(result.case.key in short for result in night.results) == 5


def test_notes_that_were_said_are_not_printed_again(bad):
    (note,) = bad.notes
    assert note in unwrapped(tables.render_terminal(bad, 80, False))
    assert note not in unwrapped(tables.render_terminal(bad, 80, False, said=[note]))


def test_numbers_of_a_failed_case_have_their_unit():
    night = samples.bad_night([c for c in samples.few_cases() if c.routine == "bcast"])
    slow = next(r for r in night.results if r.verdict is Verdict.REGRESSED)
    numbers = {"value": 1.5e-3, "reference": 0.5e-3, "band": (0.4e-3, 0.6e-3)}
    night.results = [replace(slow, verdict=Verdict.PROVISIONAL, reason="", **numbers)]
    night.strict = True
    text = tables.render_terminal(summary_of(night), 80, False)
    assert "  why: 1500 us, 3 times as slow as its reference 500.0 us" in text
    bandwidth = {"value": 400.0, "reference": 800.0, "band": (700.0, 900.0), "unit": "MB/s"}
    night.results = [replace(slow, verdict=Verdict.PROVISIONAL, reason="", **bandwidth)]
    text = tables.render_terminal(summary_of(night), 80, False)
    assert "  why: 400.0 MB/s, 2 times as slow as its reference 800.0 MB/s" in text


def test_three_programs_have_their_sections_and_their_totals(three):
    text = tables.render_terminal(three, 80, False)
    heads = [line for line in text.splitlines() if line in ("mpicost", "imb", "osu")]
    assert heads == ["mpicost", "imb", "osu"]
    lines = text.replace("\n  ", " ").splitlines()  # a sentence in one
    assert lines[-2].startswith("osu: 723 cases: ")
    assert lines[-3].startswith("imb: 663 cases: ")
    assert lines[-4].startswith("mpicost: 171 cases: ")
    assert lines[-1].startswith("1,557 cases: ")
    assert lines[-2].endswith(" 241 skipped: no Spack")


@pytest.mark.parametrize("strict", [False, True])
def test_the_grid_of_a_large_night_fits_a_screen(large, strict):
    lines = COLOUR.sub("", tables.render_terminal(replace(large, strict=strict), 120, True)).splitlines()
    assert lines.index("") <= tables.MOST_LINES + 1
    assert all(len(line) <= 120 for line in lines[: lines.index("")])
    assert len(lines) < 160


@pytest.mark.parametrize("terminal", [False, True])
def test_what_is_not_listed_is_counted_and_can_be_found(large, terminal, monkeypatch):
    monkeypatch.setattr(tables, "MOST_IN_PIPE", 100)
    text = COLOUR.sub("", tables.render_terminal(large, 120, terminal))
    named = len(large.failed) + len(large.outliers)
    groups = overview.list_groups(large)
    assert len(re.findall(r"^  again: ", text, re.M)) <= (tables.MOST_IN_TERMINAL if terminal else 100)
    outside = [line for line in text.splitlines() if line.startswith("and ")]
    listed = sum(len(group.results) for group in groups if group.results[0].case.key in text)
    if listed == named:
        assert outside == []
    else:
        (line,) = outside
        assert line.startswith(f"and {named - listed:,} more (")
        assert line.endswith(f"all cases are in summary.json of session {samples.SESSION}")
        numbers = re.findall(r"([\d,]+) [a-z]+(?=[,)])", line)
        assert sum(int(number.replace(",", "")) for number in numbers) == named - listed
    kinds = {str(r.verdict) for r in large.failed}
    assert kinds <= {line.split()[0] for line in text.splitlines() if line}


def test_sentences_of_a_pipe_have_80_columns_and_commands_are_whole(bad):
    """The reason of a case hangs below its label; a command that the last line cannot hold has its own."""
    lines = tables.render_terminal(bad, 300, False).splitlines()
    whole = re.compile(r"(  again: |next: |  )?\S*\./plumbline |[a-z-]+  local:|    local:|\d+ cases: ")
    table = lines[: lines.index("")]
    assert [each for each in lines if len(each) > 80 and each not in table and not whole.match(each)] == []
    places = [
        lines.index(line) for line in lines if line.endswith("Measure the 10 failed cases again (about 44 s):")
    ]
    assert [lines[n + 1] for n in places] == [f"  ./plumbline run --failed {samples.SESSION}"]
    why = next(n for n, line in enumerate(lines) if line.startswith("  why: ") and "times as slow" in line)
    assert lines[why + 1].startswith("       above the limit ")
    assert lines[why + 2].startswith("  again: ")


@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_name_of_a_command_stays_beside_it(width):
    lines = tables.wrap("two more sessions decide: ./plumbline confirm, or the next nights", width)
    assert any("./plumbline confirm," in line for line in lines)
    assert tables.wrap("", 80, "  why: ") == ["  why:"]
    assert tables.wrap("once more", 80, command="./plumbline run") == ["once more: ./plumbline run"]
    assert tables.wrap("once more", 12, command="./plumbline run") == ["once more:", "  ./plumbline run"]


def test_a_pipe_has_the_same_text_at_any_width(bad, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    tables.print_verdict_table(bad, 20, stream)
    assert ESCAPE not in stream.getvalue()
    assert stream.getvalue() == tables.render_terminal(bad, 300, False)


@pytest.mark.parametrize("width", [20, 80, 200])
def test_a_command_is_whole_on_its_line_in_a_terminal(bad, width, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    tables.print_verdict_table(bad, width, stream)
    assert ESCAPE in stream.getvalue()
    lines = COLOUR.sub("", stream.getvalue()).splitlines()
    for number, each in enumerate(list_numbered_groups(bad), 1):
        again = f"  again: ./plumbline run --failed {samples.SESSION}:{number}"
        assert (again in lines) == each.failed


def test_a_narrow_terminal_stacks_counts_instead_of_breaking_words(bad):
    lines = COLOUR.sub("", tables.render_terminal(bad, 80, True)).splitlines()
    assert any(re.fullmatch(r"bcast +12 pass +12 pass +10 pass, *", line) for line in lines)
    assert all(len(line) <= 80 for line in lines[: lines.index("")])


def test_a_stream_that_knows_only_ascii_gets_escapes():
    night = samples.hostile(samples.bad_night(samples.few_cases()), "Zürich ✗")
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    tables.print_verdict_table(summary_of(night), 80, stream)
    assert rb"Z\xfcrich \u2717" in raw.getvalue()


def test_a_status_of_zero_that_the_cases_deny_is_named():
    night = samples.bad_night(samples.few_cases())
    night.more = {"exit_status": 0}
    text = tables.render_terminal(summary_of(night), 80, False)
    assert "error: the session ended with exit status 0 although" in text


def test_a_session_without_cases_is_no_success():
    summary = summary_of(samples.Night())
    assert not summary.good
    last = tables.render_terminal(summary, 80, False).splitlines()[-1]
    assert last == "0 cases: nothing was measured (exit status 1)"


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_text_is_shown_and_not_obeyed(terminal):
    plain = samples.hostile(samples.bad_night(samples.few_cases()), "x")
    night = samples.hostile(samples.bad_night(samples.few_cases()))
    text = tables.render_terminal(summary_of(night), 80, terminal)
    if not terminal:  # which folds cells that are longer; further lines of a sentence are indented
        plain_text = tables.render_terminal(summary_of(plain), 80, terminal)
        begun = [len(re.findall(r"^(?! )", each, re.M)) for each in (text, plain_text)]
        assert begun[0] == begun[1]
    rest = COLOUR.sub("", text) if terminal else text
    assert rest.replace("\n", "").isprintable()
    assert unwrapped(f"note: {sanitize_line(samples.HOSTILE)}") in unwrapped(rest)
    assert f"again: {sanitize_line(samples.HOSTILE)}\n" in rest
    assert r"\n# l\r\n- m\t\x1b[31mn\x07\x00\u202eo\u2028p" in rest


def test_first_verdicts_name_what_is_slow_and_end_without_an_exit_status(bad):
    """Only the whole session has one."""
    first, whole = (tables.render_terminal(bad, 80, False, first=True), tables.render_terminal(bad, 80, False))
    slow = [result.case.key for result in bad.results if result.verdict == Verdict.REGRESSED]
    assert slow and all(key in first for key in slow)
    assert "exit status" in whole and "exit status" not in first
    assert first.splitlines()[-3].startswith("mpicost: 738 cases: ")
