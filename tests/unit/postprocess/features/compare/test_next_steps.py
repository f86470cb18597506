"""What a comparison proposes: pairs that decide, settings to try, and what its pages show of contradictions."""

import itertools
import re
import shlex
from dataclasses import replace

import pytest

from postprocess.base.formats import TextTable, render_text
from postprocess.cli.parser import Parser
from postprocess.features.compare import command, page
from postprocess.features.compare.cases import ComparisonVerdict, find_contradiction, group_cases
from postprocess.features.compare.data import ComparedSide, ReportedFacts
from postprocess.features.compare.facts import ControlVariable, SideFacts, compare_facts, find_settings_to_try
from postprocess.features.compare.judge import JudgedComparison, judge_comparison
from postprocess.features.compare.next_steps import (
    FINGERPRINT_SHARE,
    PairCost,
    find_seconds,
    propose_deciding,
    propose_settings,
)
from postprocess.features.compare.text import MOST_CASES, fold_columns, format_comparison_text, format_decision
from tests.support.factories.comparison import HEADER
from tests.unit.postprocess.features.compare.test_judge import BCAST, CaseValue, compared, value

SKIPPED = "cpu/osu/bcast/warm-barrier/2x2/8"
LARGER = BCAST.removesuffix("8") + "1000000"
LIBRARY = {"mpich": "MPICH Version: 5.0.2", "openmpi": "Open MPI v5.0.11, package"}


def facts(family: str, **values: str) -> SideFacts:
    variables = tuple(ControlVariable(name, "user basic", each) for name, each in values.items())
    return SideFacts(LIBRARY[family], "5.0", f"/opt/{family}/lib/libmpi.so", (), variables, {})


OLD_FACTS = facts(
    "mpich", MPIR_CVAR_A="0", MPIR_CVAR_B="/opt/mpich/etc", MPIR_CVAR_GONE="1", MPIR_CVAR_C="x" * 99
)
NEW_FACTS = facts("mpich", MPIR_CVAR_A="1", MPIR_CVAR_B="none", MPIR_CVAR_NEW="1", MPIR_CVAR_C="y")


@pytest.fixture(scope="module")
def judged() -> JudgedComparison:
    """One case slower at both sizes, and one that both sides skip."""
    skipped = CaseValue(None, "s", "skipped", "no Spack")
    old = {BCAST: value(1e-6), LARGER: value(1e-4), SKIPPED: skipped}
    stored = compared(old, old | {BCAST: value(1.3e-6), LARGER: value(1.2e-4)})
    told = {"old": ReportedFacts("old", OLD_FACTS), "new": ReportedFacts("new", NEW_FACTS)}
    return judge_comparison(replace(stored, told=told))


def test_what_was_skipped_is_one_line_and_no_cell(judged) -> None:
    assert "of 2 cases measured" in format_decision(judged)
    pages = page.render_comparison(judged)
    body = pages[page.HTML].partition("<body>")[2]
    for text in (body, pages[page.MARKDOWN], format_comparison_text(judged)):
        assert text.count("skipped") == 1
        assert "1 further case skipped on both sides: 1 no Spack" in text


def test_a_large_comparison_prints_its_worst_on_a_few_pages(judged: JudgedComparison, monkeypatch) -> None:
    """All of it stays on the screen."""
    monkeypatch.setattr(page, "DRAWN", 6)  # each takes a while
    slow = judged.measured[0]
    layouts = [f"{2 * n}x2" for n in range(1, 101)]
    cases = (slow.case._replace(layout=layout, bytes=n) for layout in layouts for n in (8, 64))
    many = replace(judged, cases=tuple(replace(slow, case=case) for case in cases))
    _, cards = page.build_cards(many.measured)
    assert (len(cards), sum(card.printed for card in cards)) == (100, page.PRINTED)
    assert sum(card.curve is not None for card in cards) == page.DRAWN
    html = page.render_comparison(many)[page.HTML]
    left = len(group_cases(many.measured)) - page.MOST_GROUPS
    assert left > 0 and f'<p class="print small">{left} further groups: on the screen' in html.replace(
        "&#39;", "'"
    )
    assert '<section class="flow appendix screen">' in html  # 200 rows


def test_a_case_of_a_terminal_is_what_why_and_again_within_80_columns(judged: JudgedComparison) -> None:
    """Cases of one verdict and reason stand together, with one command for both."""
    text = format_comparison_text(judged, page.tabulate_heat_maps(judged))
    lines = text.splitlines()
    first = lines.index("slower  2 cases")
    assert lines[first + 1] == "    bcast 8 B, 2x2 mpicost evict-barrier"
    assert re.fullmatch(
        r"      old 1\.00 us ± .*%, new 1\.3\d us ± .*%, \+.*%, ratio .* to .*, n=6", lines[first + 2]
    )
    again = lines[first + 5]
    assert again.startswith("  again: ./plumbline compare a b ") and text.count(again) == 1
    told = parse(again.removeprefix("  again: "))
    assert (told.old, told.new, told.routine) == ("a", "b", ["bcast"]) and told.seconds
    assert [line for line in lines if len(line) > 80 and "./plumbline" not in line] == []
    broken = replace(judged.cases[0], verdict=ComparisonVerdict.BROKEN, reason="crashed", rerun={"new": "X"})
    text = format_comparison_text(replace(judged, cases=(broken, *[judged.cases[1]] * 30)))
    assert re.search(r"broken  bcast .*\n  why: old 100\.\d us.*\n.*; crashed\n  again: X\n", text)
    assert f"and {31 - MOST_CASES} more in comparison.html" in text


def test_a_table_wider_than_80_columns_is_folded_between_its_columns() -> None:
    sizes = tuple(f"{2**n} B" for n in range(20))
    table = TextTable("place", ("routine",), sizes, (("bcast", *(f"{n}.00" for n in range(20))),))
    parts = list(fold_columns(table))
    assert tuple(size for part in parts for size in part.columns) == sizes
    assert [row[0] for part in parts for row in part.rows] == ["bcast"] * len(parts) and len(parts) > 1
    assert max(len(line) for part in parts for line in render_text(part).splitlines()) <= 80


def parse(line: str) -> object:
    """Read a command as the command line does."""
    parser = Parser(prog="compare")
    command.add_arguments(parser)
    return parser.parse_args(shlex.split(line)[2:])


def test_each_changed_setting_that_can_be_set_has_a_command(judged) -> None:
    (step,) = judged.settings
    told = parse(step.command)
    assert (told.old, told.new, told.new_env) == ("b", "b", [("MPIR_CVAR_A", "0")])
    assert told.routine == ["bcast"] and "MPIR_CVAR_A: 0 before, now 1" in step.words
    old, new = (facts("openmpi", btl_sm_x=each, btl_sm_release_version=each) for each in "12")
    mca = find_settings_to_try(compare_facts(old, new), new)
    assert list(mca) == ["OMPI_MCA_btl_sm_x"]  # a version is told, and cannot be set
    tried = replace(HEADER, new=ComparedSide("b", "b", {"X": "1"}))
    assert propose_settings(tried, judged.cases, mca, PairCost(1.0, 1.0)) == []


def test_the_time_that_is_proposed_suffices_for_the_pairs() -> None:
    """As the comparison plans: a trial run, and a share for the fingerprint."""
    for pair, pairs in itertools.product((0.3, 8.0, 170.0), (6, 16, 40)):
        assert (find_seconds(pair, pairs) * (1 - FINGERPRINT_SHARE) - pair) / pair >= pairs


@pytest.mark.parametrize(("margin", "pairs"), [(0.004, 26), (0.001, None)])
def test_undecided_cases_have_a_command_that_decides_them(margin: float, pairs: int | None) -> None:
    """After 6 pairs that scatter by 0.3%: for a margin of 0.1% no pairs that are ever taken suffice."""
    stored = compared({BCAST: value(1e-6)}, {BCAST: value(1e-6)})
    header = replace(HEADER, margins=(margin,) * 3)
    passes = tuple(each for each in stored.passes if each.block < 4)
    found = judge_comparison(replace(stored, header=header, passes=passes))
    (step,) = found.deciding
    text = format_comparison_text(found)
    assert step.words in " ".join(text.split()) and found.cases[0].rerun
    assert "again:" not in text  # of one side alone, which decides nothing
    if pairs is None:
        assert not step.command and "more than 40 pairs" in step.words
        return
    told = parse(step.command)
    assert (told.old, told.new, told.margin) == ("a", "b", header.margins)
    assert step.words.startswith(f"{pairs} pairs would decide about 1 of 1 undecided case")
    assert told.seconds >= 2.0 * pairs  # passes of a second each


def test_pairs_that_did_not_count_are_expected_again() -> None:
    """Where ranks are moved in half of the pairs, as many pairs again would decide nothing."""
    case = judge_comparison(compared({BCAST: value(1e-6)}, {BCAST: value(1e-6)})).cases[0]
    open_case = replace(case, verdict=ComparisonVerdict.UNDECIDED, pairs=5, pairs_more=1)
    for void, pairs in (({}, 6), ({"cores differ": 3}, 10), ({"cores differ": 5}, 16)):
        (step,) = propose_deciding(HEADER, [replace(open_case, void=void)], PairCost(2.0, 2.0))
        assert step.words.startswith(f"{pairs} pairs would decide")


def test_medians_that_contradict_the_pairs_are_shown_as_such() -> None:
    """144.8 us and 144.4 us, and yet the pairs say a quarter slower."""
    pairs = [-0.01, 0.0, 0.01, 0.40, 0.41, 0.42]
    found = find_contradiction(pairs, -0.003, 0.22, 0.05)
    assert found and found.name == "two modes" and [mode.pairs for mode in found.modes] == [3, 3]
    assert "3 pairs about 1.00 and 3 pairs about 1.51 times" in found.words
    assert "the medians differ by -0.3%, the pairs by +24.6%" in found.words
    even = find_contradiction([0.1 * n for n in range(6)], 0.0, 0.22, 0.05)
    assert even and not even.modes and "single pairs go from 1.00 to 1.65 times" in even.words
    assert find_contradiction(pairs, 0.2, 0.22, 0.05) is None
