"""The views of the papers as a whole: as pages, and as a command."""

import re
from dataclasses import replace

import pytest

from postprocess.base.formats import TextTable, render_text
from postprocess.extensions.papers import luecke_page as papers
from postprocess.extensions.papers.luecke_page import build_session_page
from postprocess.main import main
from postprocess.report.rendering import render_html, render_markdown, render_terminal
from postprocess.results.summary import SummaryEnvironment, parse_summary
from tests.support.factories import papers as samples
from tests.support.factories import report
from tests.support.factories import size as sizes
from tests.support.factories.report import SESSION
from tests.support.paths import ROOT
from tests.unit.postprocess.report.test_session_report import Page

TITLES = ["Does it scale?", "Machines against torus, 128 processes"]
COUNTS = (8, 96, 128)


@pytest.fixture(scope="module")
def night():
    return samples.session(samples.cases(counts=COUNTS), samples.without("myrinet", 128))


@pytest.fixture(scope="module")
def small():
    """A session of few pictures."""
    return samples.session(samples.cases(["torus", "hypercube"], counts=COUNTS, routines=["bcast", "gather"]))


@pytest.fixture(scope="module")
def summary(night):
    return parse_summary(night.document())


def list_titles(page):
    return [part.title for part in page.sections] if page else []


@pytest.mark.parametrize(
    ("chosen", "titles", "few"),
    [
        ({"machines": ["torus"]}, TITLES[:1], False),
        ({"machines": ["torus"], "counts": [8]}, [], False),
        ({"counts": [8]}, ["Machines against torus, 8 processes"], False),
        ({"counts": [2]}, ["Machines against torus, 2 processes"], True),
        ({"machines": []}, [], False),
    ],
)
def test_a_session_has_the_views_that_it_allows(chosen, titles, few):
    night = samples.session(samples.cases(**chosen))
    page = build_session_page(parse_summary(night.document()))
    assert list_titles(page) == titles
    assert few is any("2 processes only: " in each for each in (samples.list_sentences(page) if page else ()))


def test_a_real_machine_has_no_words_about_models():
    night = report.healthy_night(report.few_cases())
    page = build_session_page(parse_summary(night.document()))
    assert list_titles(page) == TITLES[:1]
    assert samples.list_sentences(page) == [papers.SCALES]


def test_missing_is_said_in_every_form(summary):
    document = build_session_page(summary)
    page = Page(render_html(document))
    assert page.open == []
    assert page.values("class").count("n bad") == 2 * 18 + 2 * 3  # ratios and nearness, two MPIs
    assert "missing" in render_markdown(document)
    assert re.search(r"8 B +myrinet +missing +missing +1\.3\n", render_terminal(document))


def test_text_is_aligned_and_harmless():
    table = TextTable("t\x1b[31m", ("a",), ("number",), (("long label", "1.0"), ("x", "10.25")), ("n\n",))
    assert render_text(table) == (
        "t\\x1b[31m\n  a            number\n  long label      1.0\n  x             10.25\n  n\\n\n"
    )


# The command.


@pytest.fixture
def command(tmp_path, small, sigterm_handler, capsys):
    """Run ``papers`` on the small session; its exit status, its output and its errors."""
    small.write(tmp_path / "sessions" / SESSION)

    def run(*words):
        status = main(str(ROOT), str(tmp_path), ("papers", *words))
        return status, *capsys.readouterr()

    return run


def test_the_command_prints_the_tables_and_writes_the_pictures(command, tmp_path):
    status, output, errors = command()
    assert (status, errors) == (0, "")
    assert all(title in output for title in TITLES)
    files = [tmp_path / "sessions" / SESSION / name for name in ("papers.md", "papers.html")]
    assert output.splitlines()[-2:] == [str(file) for file in files]
    assert all(file.is_file() for file in files)
    assert command(SESSION)[1] == output


def test_the_command_obeys_its_options(command):
    status, output, _ = command("--against", "hypercube", "--processes", "96")
    assert status == 0
    assert "Machines against hypercube, 96 processes" in output


def test_the_command_holds_sessions_of_two_sites_against_each_other(command, tmp_path):
    other = samples.session(samples.cases(["fattree"], ["simgrid-mpich"], COUNTS))
    results = [
        replace(r, case=replace(r.case, system="mine", partition="cpu", environment="mpich-5.0.2"))
        for r in other.results
    ]
    more = other.more | {"session": "other"}
    replace(other, results=results, more=more).write(tmp_path / "sessions" / "other")
    words = (SESSION, "--session", "other", "--against", "simulated:torus:simgrid-mpich")
    status, output, _ = command(*words)
    assert status == 0
    assert "Machines against simulated:torus with simgrid-mpich, 128 processes" in output
    assert re.search(r"8 B +mine:cpu +0\.37 +- +- +-\n", output)
    assert "mpich-5.0.2" in (tmp_path / "sessions" / SESSION / "papers.html").read_text()


@pytest.mark.parametrize(
    ("command", "library", "machines"),
    [
        (("run",), "MPICH 5", ["torus"]),
        (("run", "--set-env=a:X=1"), "MPICH 5", ["one:torus", "two:torus"]),
        (("run", "--oversubscribe"), "MPICH 5", ["one:torus", "two:torus"]),
        (("run",), "MPICH 4", ["one:torus", "two:torus"]),
    ],
)
def test_sessions_of_other_settings_or_libraries_are_other_machines(summary, command, library, machines):
    mpi = SummaryEnvironment("simgrid-mpich", "mpich", "5", "MPICH 5", "site", "", "")
    own = [r for r in summary.results if r.case.partition == "torus"]
    one = replace(
        summary, session="one", environments=(mpi,), results=tuple(r for r in own if r.case.routine == "bcast")
    )
    two = replace(
        one,
        session="two",
        command=command,
        environments=(replace(mpi, library=library),),
        results=tuple(r for r in own if r.case.routine == "gather"),
    )
    assert papers.arrange_summaries([one, two]).machines == machines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--against", "cpu"), "--against cpu: not a partition of the session"),
        (("--processes", "64"), "--processes 64: not in the session"),
        (("--processes", "0"), "argument --processes: '0' is not a whole number"),
        (("--session", SESSION), "--session: two sessions have one name"),
        (("20260101T000000Z-1",), "no finished session there"),
        (("--theory", "1:2"), "--theory 1:2: is for --paper taboada only"),
        (("--paper", "taboada", "--theory", "1"), "--theory 1: is not [MACHINE=]US:MB/S"),
        (("--paper", "taboada", "--theory", "1:0"), "--theory 1:0: is not [MACHINE=]US:MB/S"),
        (("--paper", "taboada", "--theory", "x=1:2"), "--theory x: no such machine; there is"),
    ],
)
def test_what_is_not_there_is_one_line_and_writes_nothing(command, tmp_path, words, said):
    status, output, errors = command(*words)
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert said in errors
    assert not list(tmp_path.rglob("papers.*"))


def test_a_session_with_nothing_to_compare_is_one_line(tmp_path, sigterm_handler, capsys):
    alone = samples.session(samples.cases(["torus"], ["simgrid-mpich"], [8]))
    alone.write(tmp_path / "sessions" / SESSION)
    assert main(str(ROOT), str(tmp_path), ("papers",)) == 2
    output, errors = capsys.readouterr()
    assert (output, errors.count("\n")) == ("", 1)
    assert "nothing to compare; choose a session with several process counts" in errors


def test_other_programs_change_nothing(summary):
    """OSU and IMB have routines of the same names, more of them, other units, and an MPI of their own."""
    strangers = [
        replace(r, case=replace(r.case, environment=name, partition=partition))
        for name, partition in (("openmpi", "torus"), ("simgrid-mpich", "torus"), ("impi", "new"))
        for r in sizes.healthy(sizes.cases(processes=(8, 128), environments=["mpich-5.0.2"])).results
    ]
    both = replace(summary, results=(*strangers, *summary.results))
    page = build_session_page(summary)
    assert render_terminal(build_session_page(both)) == render_terminal(page)
    assert build_session_page(replace(summary, results=tuple(strangers))) is None
    assert build_session_page(replace(summary, results=tuple(strangers)), "torus", 128) is None


def test_each_line_of_the_page_has_the_sign_of_its_key(small):
    """An MPI that only others were measured with takes no style away."""
    summary = parse_summary(small.document())
    (first, *_) = summary.results
    stranger = replace(first, case=replace(first.case, program="osu", environment="a"))
    pages = []
    for results in (summary.results, (stranger, *summary.results)):
        page = build_session_page(replace(summary, results=results))
        pages.append(re.sub(r"f\d+-", "", render_html(page)))
    assert pages[0] == pages[1]
