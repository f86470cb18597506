"""What is said and drawn of a sweep: one line for each node, link or path, verdicts, and the page."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.features.links import command, page
from postprocess.features.links import command as links
from postprocess.features.links.data import PairSweep
from postprocess.features.links.detect import analyse_sweep
from postprocess.features.links.text import (
    describe_contention,
    describe_coverage,
    describe_detection_limits,
    describe_findings,
    describe_insignificant,
    describe_placement,
    group_connected_pairs,
)
from postprocess.main import build_parser
from postprocess.model.launch import FinishedLaunch, fail_launch
from postprocess.model.session import Request, Selection, Session
from postprocess.model.verdict import Verdict
from postprocess.report.document import Tone
from postprocess.runner.reframe_pass import NoCaseSelected
from tests.support.factories.launch import planned
from tests.support.factories.links import Machine, Tournament
from tests.support.faults import Declared, plants

NODES = tuple(f"n{number}" for number in range(1, 9))
DEMAND = command.LinksDemand(launches=None)
EXACT = Machine(8, node_spread=0, pair_spread=0, noise=0, disturbed=0, launches=1)


def told_of(machine: Machine, exact: bool = True) -> page.SweepReport:
    """What is told of a made-up machine."""
    names = tuple(f"n{number}" for number in range(machine.nodes))
    measures = tuple(machine.measures((3,))[1:3])
    sweep = PairSweep("cluster:work", "mpich-5_0_2", names, measures, {}, exact)
    analysis = analyse_sweep(measures, exact=exact)
    return page.SweepReport(
        sweep, analysis, describe_findings(sweep, analysis), [describe_coverage(sweep, analysis)]
    )


def texts(told: page.SweepReport) -> list[str]:
    return [finding.text for finding in told.findings]


def slow(bad: set[str], factor: float = 3.0):
    """Seconds of a machine on which these nodes, or this pair (``n1-n2``), are slow."""

    def times(a: str, b: str, size: int) -> float:
        pair = "-".join(sorted((a, b)))
        return (factor if bad & {a, b, pair} else 1.0) * 1e-6 * (1 + size)

    return times


def launches_of(tmp_path: Path, times, number: int = 5, nodes=NODES) -> list[FinishedLaunch]:
    return [Tournament(times, nodes, number=each).finished(tmp_path) for each in range(1, number + 1)]


Launches = Callable[..., tuple[FinishedLaunch, ...]]


@pytest.fixture(scope="module")
def launches_with(tmp_path_factory: pytest.TempPathFactory) -> Launches:
    """Launches on a machine on which these nodes, or this pair, are slow; made once for each machine."""
    return cache(lambda *bad: tuple(launches_of(tmp_path_factory.mktemp("links"), slow({*bad}))))


def test_a_node_is_one_line_with_factor_partners_and_certainty():
    (text,) = texts(told_of(replace(EXACT, slow_nodes={3: 1.9})))
    assert text == (
        "node n3: 1.9 times as slow as its peers with 7 of 7 partners at 8 B, median of the trials (exact); "
        "also 1.9 at 1 MB, median of the trials"
    )
    (text,) = texts(told_of(Machine(8, launches=5, slow_nodes={3: 1.9}), exact=False))
    assert re.search(r"\(95%: 1\.\d+ to [12]\.\d+\), p = \S+", text)


def test_pairs_that_hang_together_are_one_path():
    machine = replace(EXACT, nodes=16, slow_pairs={(2, 5): 3.0, (2, 6): 3.0, (0, 1): 4.0})
    found = told_of(machine).findings
    assert [finding.kind for finding in found] == ["link", "path"]
    (path,) = (finding for finding in found if finding.kind == "path")
    assert set(path.who) == {(2, 5), (2, 6)}
    assert "2 pairs are 3 to 3 times as slow" in path.text and "n2 in 2" in path.text


@pytest.mark.parametrize(
    ("pairs", "groups"),
    [
        ([], []),
        ([(0, 1), (2, 3)], [{(0, 1)}, {(2, 3)}]),
        ([(0, 1), (2, 3), (1, 2)], [{(0, 1), (2, 3), (1, 2)}]),
    ],
)
def test_connected_pairs(pairs, groups):
    assert [set(group) for group in group_connected_pairs(pairs)] == groups


def test_what_is_slow_but_not_surely_is_told_and_not_named():
    told = told_of(replace(EXACT, slow_pairs={(2, 5): 9.0}), exact=False)
    assert not told.findings
    found = describe_insignificant(told.sweep, told.analysis)
    assert found == "slow, but perhaps by chance: link n2-n5 (9 times); more --launches would show"
    (small, large) = describe_detection_limits(told.analysis)
    expected = "at 8 B no node however slow and no link however slow would have been detected (90%)"
    assert small == expected
    assert large.startswith("at 1 MB no node")


def placed(launches: Sequence[FinishedLaunch], per_switch: int) -> page.SweepReport:
    """What is told of launches on nodes with so many at a switch."""
    (told,) = command.analyse_sweeps(launches, replace(DEMAND, per_switch=per_switch))
    return told


def test_a_finding_may_be_a_matter_of_place_where_switches_are_not_known(tmp_path: Path):
    def far(a: str, b: str, size: int) -> float:
        return (3.0 if "n9" in (a, b) else 1.0) * 1e-6 * (1 + size)

    launches = launches_of(tmp_path, far, nodes=(*NODES, "n9"))
    told = placed(launches, per_switch=0)
    assert [text.split(":")[0] for text in texts(told)] == ["node n9"]
    (remark,) = (text for text in told.remarks if "switch" in text)
    assert "may look slow" in remark and "--nodes-per-switch" in remark
    told = placed(launches, per_switch=8)
    assert not told.findings
    assert "no verdict on node n9: it is alone on its switch, " in "\n".join(told.remarks)


def test_nothing_is_said_of_places_where_nothing_is_found_or_all_have_peers(launches_with: Launches):
    for per_switch in (0, 3, 4, 8):
        told = placed(launches_with(), per_switch)
        assert not describe_placement(told.sweep, told.analysis)


@pytest.mark.parametrize("per_switch", [1, 8, 9, 1000])
def test_pairs_may_be_all_of_one_switch_or_all_of_two(launches_with: Launches, per_switch: int):
    assert not placed(launches_with(), per_switch).findings
    found = placed(launches_with("n3"), per_switch).findings
    assert [(finding.kind, finding.who) for finding in found] == [("node", ((2,),))]


class Broken(Exception):
    """The analysis fails."""


def test_trials_are_kept_whatever_comes_of_the_analysis(tmp_path: Path, monkeypatch):
    def broken(*_: object, **__: object):
        raise Broken

    work = WorkDirectory(tmp_path / "home", tmp_path)
    work.root.mkdir()
    session = Session(tmp_path / "20261121T120000Z-1", "links", "site", ["./plumbline"], False)
    launches = launches_of(tmp_path, slow(set()), number=1)
    done = SimpleNamespace(finished=launches, build_seconds=0.0)
    monkeypatch.setattr(
        links,
        "open_session_context",
        lambda _, asked, __: SimpleNamespace(open_session=lambda mode: (session, None), request=asked),
    )
    monkeypatch.setattr(links, "plan_sweep", lambda *_: (None, [launch.launch for launch in launches]))
    monkeypatch.setattr(links, "measure_in_session", lambda *_: ([], done))
    monkeypatch.setattr(links, "analyse_sweep", broken)
    request = Request("links", ["./plumbline"], "site", Selection(Path("site.py")))
    monkeypatch.setattr(links.finish, "finish_unanalysed", lambda *told: type(told[-1]) is Broken)
    assert links.links(work, request, DEMAND, Progress())
    kept = pl.read_parquet(work.store / "pairs" / f"{session.name}.parquet")
    assert kept.height == 2 * (28 + 7)


def test_contention_is_what_is_left_when_all_are_busy(launches_with: Launches):
    (told,) = command.analyse_sweeps(launches_with(), DEMAND)
    said = describe_contention(told.sweep)
    assert said.startswith("with all nodes busy a pair has 100% of the bandwidth")
    assert not describe_contention(replace(told.sweep, quiet={}))


def test_launches_of_a_slow_node_regress_where_it_played(launches_with: Launches):
    launches = launches_with("n3")
    (told,) = command.analyse_sweeps(launches, DEMAND)
    assert [found.kind for found in told.findings] == ["node"]
    results = command.judge_links(launches, [told], "./plumbline links")
    regressed = {result.case.routine for result in results if result.verdict == Verdict.REGRESSED}
    assert regressed == {"tournament"}
    assert not command.list_links_failures(results, [told])
    assert {result.rerun for result in results} == {"./plumbline links"}


def test_only_the_round_of_a_slow_pair_regresses(launches_with: Launches):
    launches = launches_with("n2-n5")
    (told,) = command.analyse_sweeps(launches, DEMAND)
    assert [found.kind for found in told.findings] == ["link"]
    results = command.judge_links(launches, [told], "")
    regressed = [result.case for result in results if result.verdict == Verdict.REGRESSED]
    (peer,) = {case.peer for case in regressed}
    assert (1, 4) in Tournament(slow(set()), NODES).pairs(peer)
    assert all("n2-n5" in result.reason for result in results if result.case in regressed)


def test_a_launch_on_other_nodes_has_no_round_of_a_slow_pair(tmp_path: Path, launches_with: Launches):
    launches = launches_with("n2-n5")
    (told,) = command.analyse_sweeps(launches, DEMAND)
    one = told.analysis.pairs[0]
    others = Tournament(slow(set()), ("n1", "n3", "n5", "n7")).finished(tmp_path)
    assert one.who == (1, 4)
    assert command.find_touched_rounds(told, one, launches[:1]) and not command.find_touched_rounds(
        told, one, [others]
    )


def test_a_healthy_machine_passes(launches_with: Launches):
    launches = launches_with()
    (told,) = command.analyse_sweeps(launches, DEMAND)
    assert not told.findings
    assert {link.verdict for link in command.judge_links(launches, [told], "")} == {Verdict.PASS}


def test_a_launch_that_failed_is_told_and_nothing_is_said_of_its_nodes(launches_with: Launches):
    launches = [*launches_with("n3")]
    launches[2] = replace(launches[2], outcome=fail_launch(Verdict.CRASHED, "the job ended"))
    assert not command.analyse_sweeps(launches, DEMAND)
    lines = command.list_links_failures(command.judge_links(launches, [], ""), [])
    assert lines == ["local:cpu with mpich-5_0_2: crashed: the job ended"]
    assert command.format_links_headline(0, lines) == "Not all pairs were measured"


def test_pairs_that_a_launch_lacks_fail_the_sweep(tmp_path: Path, launches_with: Launches):
    launches = [*launches_with()]
    launches[0] = Tournament(slow(set()), (*NODES[:7], "n9")).finished(tmp_path)
    (told,) = command.analyse_sweeps(launches, DEMAND)
    (line,) = command.list_links_failures(command.judge_links(launches, [told], ""), [told])
    assert line.startswith("local:cpu with mpich-5_0_2: not measured in every launch: n1-n8, n1-n9")


def test_one_process_is_asked_for_on_each_node():
    arguments = build_parser().parse_args(["links", "--nodes", "6"])
    assert (arguments.processes, arguments.per_node) == ([6], [1])
    assert build_parser().parse_args(["links"]).launches is None


@plants("use", "two nodes, which cannot be distinguished", "`links`", "", 2,
        "at least 4 nodes are needed")  # fmt: skip
def test_too_few_nodes_are_refused(monkeypatch, declared: Declared):
    monkeypatch.setattr(links, "make_plan", lambda *_: [planned()])
    with declared.raises(UsageError, match="local:cpu: 2 nodes: at least 4 nodes are needed"):
        command.plan_sweep(None, Selection(Path("site.py")), DEMAND, Progress())


@plants("use", "a machine of one node", "`links`", "", 2,
        "at least 4 nodes")  # fmt: skip
def test_a_machine_without_nodes_to_compare_is_told_so(monkeypatch, declared: Declared):
    def nothing(*_):
        raise NoCaseSelected("the selection (--per-node 1) matches no case")

    monkeypatch.setattr(links, "make_plan", nothing)
    with declared.raises(UsageError):
        command.plan_sweep(None, Selection(Path("site.py")), DEMAND, Progress())


def test_only_a_page_without_findings_and_failures_is_good(tmp_path: Path):
    session = Session(tmp_path, "links", "site", ["./plumbline"], False)
    slow_node = replace(EXACT, slow_nodes={3: 1.9})
    tones = [
        page.build_links_document(session, [told_of(machine)], failures, "").tone
        for machine, failures in ((EXACT, []), (EXACT, ["failed"]), (slow_node, []))
    ]
    assert tones == [Tone.GOOD, Tone.BAD, Tone.BAD]


@pytest.mark.parametrize("number", [4, 64, 256])
def test_every_cell_is_drawn_once(number: int):
    """The areas of all paths together are the area of the map."""
    ratios = np.exp(np.random.default_rng(1).normal(0, 0.5, (number, number)))
    ratios[2, 3] = np.nan
    shown = page.PairHeatMap("a & b", [f"n{i}" for i in range(number)], ratios, [1], [(0, 3)])
    picture = ElementTree.fromstring(page.draw_heat_map(shown))
    cell = min(max(520 / number, 2), 30)
    area = 0.0
    for path in picture.iter("path"):
        runs = re.findall(r"M[\d.e+]+ [\d.e+]+h([\d.e+]+)v", path.attrib["d"])
        area += sum(map(float, runs)) * cell
    assert area == pytest.approx((cell * number) ** 2, rel=0.01)
    marks = [each for each in picture.iter("rect") if each.get("class") == "mark"]
    assert len(marks) == 4
    assert "n1, n0-n3" in picture.attrib["aria-label"]
    texts = [each.text for each in picture.iter("text") if each.get("class") == "named"]
    assert {"n0", "n1"} & set(texts)


def test_colours_begin_where_the_legend_says():
    limits = [least for least, _, _ in page.STEPS]
    assert page.assign_colour_steps(np.array(limits)).tolist() == list(range(len(page.STEPS)))
    below = page.assign_colour_steps(np.array(limits[1:]) * 0.999).tolist()
    assert below == list(range(len(page.STEPS) - 1))
    assert page.assign_colour_steps(np.array([np.nan])).tolist() == [page.MISSING]


def test_names_do_not_overlap_and_marked_ones_come_first():
    for number, marked in ((4, {1}), (256, {77, 10, 200}), (64, set())):
        cell = min(max(520 / number, 2), 30)
        places = sorted(page.choose_label_positions(number, marked, cell))
        assert marked <= set(places)
        assert all((b - a) * cell >= 11 for a, b in pairwise(places))
