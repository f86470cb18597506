"""The closed list of verdicts, and which of them end with exit status 0."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postprocess.model.case import Case
from postprocess.model.verdict import (
    CaseResult,
    Standing,
    Verdict,
    compute_exit_status,
    count_verdicts,
    is_healthy,
)

ROOT = Path(__file__).parents[4]

CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
HEALTHY = {"pass", "suspect", "cleared", "fast", "provisional", "skipped"}
WORDS = [
    *("pass", "regressed", "suspect", "cleared", "fast", "incorrect", "incomplete", "crashed"),
    *("timeout", "no-reference", "provisional", "not-comparable", "skipped"),
]


#: Adds a verdict by one line of the module, and reports a night in which a case has it.
ONE_LINE_MORE = """
import sys, types
from pathlib import Path

path = Path("postprocess/model/verdict.py")
added = 'STRANGE = "strange", 55, Standing.OPEN, Seen.SLOW, "&", "x"\\n\\n    def __str__'
module = types.ModuleType("postprocess.model.verdict")
sys.modules[module.__name__] = module
exec(compile(path.read_text().replace("def __str__", added, 1), str(path), "exec"), module.__dict__)

from postprocess.commands.history import LEGEND
from postprocess.report import exports, session_report, terminal
from postprocess.results.store import WORDS
from postprocess.results.summary import parse_summary
from tests.support.factories import report as samples

night = samples.Night()
planned = [case for case in samples.cases((2, 4)) if case.routine == "barrier"]
samples.without_value(module.Verdict.STRANGE, "it is odd")(night, planned[0], None)
summary = parse_summary(night.document())
print(LEGEND, WORDS["verdict"])
print(exports.format_junit(summary), exports.format_openmetrics(summary))
print(session_report.render_markdown(summary), terminal.render_terminal(summary, 100, False))
print(session_report.render_html(summary, {}))
"""


def results(*verdicts: Verdict) -> list[CaseResult]:
    return [CaseResult(CASE, verdict) for verdict in verdicts]


def test_the_list_is_closed():
    assert [str(verdict) for verdict in Verdict] == WORDS
    assert f"{Verdict.NO_REFERENCE}" == "no-reference"


def test_gravity_and_letters_tell_verdicts_apart():
    assert len({verdict.gravity for verdict in Verdict}) == len(Verdict)
    letters = [verdict.letter for verdict in Verdict if verdict.letter != "!"]
    assert len(set(letters)) == len(letters)


def test_the_words_of_the_documentation_are_these():
    text = (ROOT / "docs" / "concepts.md").read_text()
    table = text.partition("| verdict | meaning | exit |")[2].partition("\n\n")[0]
    told = dict(re.findall(r"^\| `([a-z-]+)` \|.*\| ([^|]+) \|$", table, re.MULTILINE))
    status = {Standing.GOOD: "0", Standing.OPEN: "0, 1 with `--strict`", Standing.FAILED: "1"}
    assert told == {str(verdict): status[verdict.standing] for verdict in Verdict}


def test_a_further_verdict_is_one_line():
    ran = subprocess.run(
        [sys.executable, "-c", ONE_LINE_MORE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "x=strange" in ran.stdout
    assert 'verdict="strange"' in ran.stdout
    assert '<a class="pill fair" href="#cases" data-search="verdict=strange">' in ran.stdout
    assert '<td class="fair" title="1 strange">&amp;</td>' in ran.stdout


@pytest.mark.parametrize("verdict", Verdict)
def test_which_verdicts_are_healthy(verdict):
    assert is_healthy(verdict, strict=False) == (verdict.value in HEALTHY)
    strictly = HEALTHY - {"suspect", "provisional", "skipped"}
    assert is_healthy(verdict, strict=True) == (verdict.value in strictly)


@pytest.mark.parametrize("strict", [False, True])
@given(st.lists(st.sampled_from(Verdict)))
@example([])
@example([Verdict.SKIPPED])
def test_one_unhealthy_case_is_enough(strict, verdicts):
    healthy = all(is_healthy(verdict, strict) for verdict in verdicts)
    ran = bool(set(verdicts) - {Verdict.SKIPPED})  # a night that measured nothing is not healthy
    assert compute_exit_status(results(*verdicts), strict) == (0 if healthy and ran else 1)


def test_counts_are_in_the_order_of_the_list_and_without_zeros():
    found = results(Verdict.SKIPPED, Verdict.REGRESSED, Verdict.PASS, Verdict.PASS)
    assert list(count_verdicts(found).items()) == [("pass", 2), ("regressed", 1), ("skipped", 1)]
    assert count_verdicts([]) == {}


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.CLEARED, Verdict.FAST])
def test_strictly_no_word_makes_up_for_a_provisional_reference(verdict: Verdict):
    healthy = CaseResult(CASE, verdict, value=1.0)
    unsure = replace(healthy, provisional=True)
    assert compute_exit_status([healthy], strict=True) == 0
    assert (compute_exit_status([unsure], strict=False), compute_exit_status([unsure], strict=True)) == (0, 1)
