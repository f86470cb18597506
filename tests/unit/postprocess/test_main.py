"""The command line: whatever is typed wrong costs one line and exit status 2, never a traceback."""

import argparse
import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.errors import UsageError
from postprocess.cli.parser import HELP_COLUMNS, Command, Parser, subcommands
from postprocess.main import COMMANDS, SECTIONS, build_parser, load_commands, main
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

SELECTION = shlex.split(
    "--environment --routine --processes --bytes --program --trials --iterations --cache --sync "
    "--time-limit --oversubscribe --set-env --strict --json --references --site --mpis "
    "--launches --output"
)


pytestmark = pytest.mark.usefixtures("sigterm_handler")


def commands_below(commands: Mapping[str, ModuleType | Command]) -> Iterator[ModuleType | Command]:
    """Every command that does something."""
    for command in commands.values():
        if hasattr(command, "COMMANDS"):
            yield from commands_below(command.COMMANDS)
        else:
            yield command


@contextlib.contextmanager
def called(does: Callable[[argparse.Namespace], int] = lambda _: 0) -> Iterator[list]:
    """Every command does this, and is listed with what it was given."""
    calls: list[tuple[str, argparse.Namespace]] = []

    def instead(command: ModuleType | Command) -> Callable[[object, argparse.Namespace], int]:
        example = command.example if isinstance(command, Command) else command.EXAMPLE

        def run(_, arguments: argparse.Namespace) -> int:
            calls.append((example, arguments))
            return does(arguments)

        return run

    with pytest.MonkeyPatch.context() as patch:
        for command in commands_below(load_commands()):
            patch.setattr(command, "run", instead(command))
        yield calls


def run(*words: str, work: str = "/nonexistent") -> tuple[int, str]:
    """Exit status and what was written to standard error."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            status = main(str(ROOT), work, words)
        except SystemExit as end:
            status = end.code
    return status, errors.getvalue()


def test_no_command_starts_with_all_of_scipy() -> None:
    """It takes as long as all other packages together, and ReFrame starts the checks anew in every pass."""
    loaded = list_loaded("load_commands()")
    assert "postprocess.stats.acceptance" in loaded
    assert not {"scipy.special", "scipy.stats", "scipy.optimize"} & loaded


def test_a_command_loads_its_own_libraries_only() -> None:
    """All of them take seconds: a command that draws nothing does not wait for what draws."""
    loaded = list_loaded("parse_words(['where', 'mpicc', '--environment', 'mpich'])")
    assert "postprocess.commands.where" in loaded
    assert not {"postprocess.extensions.procurement.command", "matplotlib"} & loaded


def test_a_night_is_judged_and_drawn_without_matplotlib_and_most_of_scipy() -> None:
    judge = "from postprocess.stats import detection as d; d.find_run_factor(3, 0.5, 8.0)"
    loaded = list_loaded(f"parse_words(['run']); {judge}; d.compute_q_values([0.5])")
    assert {"postprocess.report.trials_picture", "scipy.special"} <= loaded
    assert not {"matplotlib", "scipy.stats", "scipy.optimize"} & loaded


@pytest.mark.parametrize("words", [["--version"], ["help"], ["frobnicate"]])
def test_the_list_of_commands_is_shown_without_any_of_them(words: list[str]) -> None:
    loaded = list_loaded(f"main('', '/tmp', {words})")
    assert "postprocess.main" in loaded
    assert not {"postprocess.cli.options", "numpy", "polars", "rich", "msgspec"} & loaded


def test_what_is_wrong_with_a_command_is_told_without_the_others() -> None:
    loaded = list_loaded("main('', '/tmp', ['history'])")
    assert "postprocess.commands.history" in loaded
    assert not {"postprocess.commands.measure", "matplotlib"} & loaded


def list_loaded(call: str) -> set[str]:
    """Modules that are loaded after a call of a function of the command line."""
    told = (
        "import atexit, sys; from postprocess import main; atexit.register(lambda: print(*sys.modules)); main."
    )
    command = [sys.executable, "-c", told + call]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def is_one_line(text: str) -> bool:
    return bool(re.fullmatch(r"plumbline: .*\n", text)) and "\r" not in text


WRONG = [
    [],
    ["frobnicate"],
    ["--strict"],
    ["nightly", "extra"],
    ["nightly", "--colour", "red"],
    ["nightly", "--launches", "3", "--seconds-per-layout", "30"],
    ["calibrate", "--launches", "5", "--seconds", "60"],
    ["nightly", "--json"],
    ["run", "--bytes", "-8"],
    ["run", "--program", "mpicosts"],
    ["run", "--program", ""],
    ["run", "--iterations", "0"],
    ["links", "--program", "osu"],
    ["links", "--iterations", "5"],
    ["run", "--bytes", "8.0"],
    ["run", "--bytes", ""],
    ["run", "--processes", "0"],
    ["run", "--processes", "2,,x"],
    ["run", "--trials", "0"],
    ["run", "--trials", "1"],
    ["run", "--trials", "1000001"],
    ["run", "--bytes", "8" + "0" * 20],
    ["run", "--time-limit", "9" * 20],
    ["run", "--trials", "9" * 5000],
    ["run", "--routine", ""],
    ["run", "--mpis", ""],
    ["run", "--cache", "cold"],
    ["run", "--sync", "loops"],
    ["run", "--time-limit", "1d"],
    ["run", "--time-limit", "1.5s"],
    ["run", "--bytes", "1kx"],
    ["nightly", "--time", "5"],
    ["help", "nightli"],
    ["run", "--set-env", "NAME=VALUE"],
    ["alarms", "--since", "20261121"],
    ["export", "--since", "2026-11-21 01:30"],
    ["export", "--case"],
    ["drift", "--case", ","],
    ["load", "--dsn", "x"],
    ["run", "--set-env", "mpich:NAME"],
    ["run", "--set-env", "mpich:=x"],
    ["run", "--set-env", ":NAME=x"],
    ["run", "--set-env", "mpich:1A=x"],
    ["calibrate", "--launches", "0"],
    ["nightly", "--launches", "1001"],
    ["calibrate", "--launches", "1001"],
    ["calibrate", "--strict"],
    ["list", "--json", "x"],
    ["setup", "--routine", "bcast"],
    ["report", "one", "two"],
    ["where"],
    ["where", "mpicost"],
    ["where", "emacs", "--environment", "x"],
    ["where", "mpicc", "--environment"],
    ["run", "a\nb"],
    ["a\r\nb"],
    ["run", "--cache", "\x1b[31m"],
    ["\udcff"],
    # of other commands, in full or as its beginning
    ["run", "--at-most", "5"],
    ["run", "--at-m", "5"],
    ["drift", "--seconds=5"],
    ["dossier", "verify", "d", "--signers", "s", "--no"],
]


@plants("use", "words that are no command, no option of it or no value, in 62 ways",
        "the command line", "", 2, "plumbline: ")  # fmt: skip
@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(words)[:40].encode("unicode_escape"))
def test_wrong_use_is_one_line_and_status_2(words: list[str], declared: Declared):
    check_refused(words, declared)


def check_refused(words: list[str], declared: Declared) -> None:
    """Hold against the fault that words are refused in one line, and no command begins."""
    with called() as calls:
        status, errors = run(*words)
    assert calls == [] and is_one_line(errors)
    declared.check((), status, [errors])


def parsers(
    parser: argparse.ArgumentParser, *words: str
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """A parser and all below it, each with the words that choose it."""
    yield words, parser
    for name, below in subcommands(parser).items():
        yield from parsers(below, *words, name)


#: What a command needs beside the option.
POSITIONALS = {("import",): ["report.json"], ("compare",): ["old", "new"], ("offer", "check"): ["rules.toml"]}


@plants("lost", "a place that cannot be written to", "`--json`", "", 2,
        "plumbline: --json /dev/null/x.json: ")  # fmt: skip
@pytest.mark.parametrize(
    "words",
    [words for words, each in parsers(build_parser()) if "--json" in each._option_string_actions],
    ids=" ".join,
)
def test_a_summary_that_cannot_be_written_is_known_before_a_command_begins(words, declared):
    check_refused([*words, *POSITIONALS.get(words, []), "--json", "/dev/null/x.json"], declared)


#: Of what a shell hands over: a byte that is no UTF-8 comes as a surrogate from U+DC80 on.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.just("\udcff")
WORDS = st.one_of(
    st.sampled_from(["nightly", "run", "calibrate", "list", "setup", "report", "lint", "where", "test"]),
    st.sampled_from(SELECTION),
    st.sampled_from(["bcast", "8", "2,4", "0", "mpich:A=b", "-", "--", "-x", "local", "mpicc"]),
    st.text(CHARACTERS, max_size=12),
)


@given(st.lists(WORDS, max_size=6))
def test_no_words_whatsoever_give_a_traceback(words: list[str]):
    """Either a command runs, or help is shown, or there is one line and status 2."""
    with called() as calls:
        status, errors = run(*words)
    if calls:
        assert (status, errors) == (0, "")
    elif status != 0:
        assert status == 2
        assert is_one_line(errors)
    else:
        assert any(word in ("-h", "--help", "--version", "help") for word in words)


@pytest.mark.parametrize(
    "words", [["--help"], ["run", "--help"], ["where", "-h"], ["help"], ["help", "run"], ["--version"]]
)
def test_help_is_no_error(words: list[str]):
    assert run(*words) == (0, "")


def test_what_the_user_chose_reaches_the_command():
    words = shlex.split(
        "run --environment a,b --routine bcast --processes 2,4 --bytes 8,16 --program osu,mpicost "
        "--trials 5 --iterations 20 --cache warm --sync window --time-limit 60 --oversubscribe --strict"
    )
    words += ["--set-env", "a:X=1=2", "--set-env", "b:Y=", "--set-env", "c:Z=l1\nl2"]
    words += ["--json", "out.json", "--references", "refs"]
    with called() as calls:
        assert run(*words) == (0, "")
    ((_, chosen),) = calls
    assert chosen.name == "run"
    assert (chosen.environment, chosen.routine) == (["a", "b"], ["bcast"])
    assert (chosen.processes, chosen.bytes, chosen.trials) == ([2, 4], [8, 16], 5)
    assert (chosen.program, chosen.iterations) == (["osu", "mpicost"], 20)
    assert (chosen.cache, chosen.sync, chosen.time_limit) == ("warm", "window", 60)
    assert (chosen.oversubscribe, chosen.strict) == (True, True)
    assert chosen.set_env == [("a", "X", "1=2"), ("b", "Y", ""), ("c", "Z", "l1\nl2")]
    assert (chosen.json, chosen.references) == (Path("out.json"), Path("refs"))


def test_what_is_named_twice_counts_once():
    named = build_parser().parse_args(["run", "--processes", "luecke2003-t3e,3,4"])
    assert named.processes == [2, 4, 8, 16, 32, 48, 64, 3]
    words = ["--routine", "bcast,scan_sum,bcast", "--processes", "2,2", "--bytes", "16,8,16"]
    words += ["--program", "imb,imb"]
    chosen = build_parser().parse_args(["run", *words])
    assert (chosen.routine, chosen.program) == (["bcast", "scan_sum"], ["imb"])
    assert (chosen.processes, chosen.bytes) == ([2], [16, 8])


@pytest.mark.parametrize("command", ["alarms", "drift", "export"])
@pytest.mark.parametrize(
    ("since", "chosen"),
    [
        ("2026-11-21", "2026-11-21"),
        ("2026-11-21T01:30:00Z", "2026-11-21T01:30:00Z"),
        ("2026-11-21T00:00:00Z", "2026-11-21"),
    ],
)
def test_since_a_day_or_a_time(command: str, since: str, chosen: str):
    assert build_parser().parse_args([command, "--since", since]).since == chosen


@pytest.mark.parametrize("command", ["drift", "export"])
def test_cases_are_separated_by_blanks_or_commas(command: str):
    words = [command, "--case", "a", "b,*:c:*", "--since", "2026-11-21", "--case", "d"]
    assert build_parser().parse_args(words).case == ["a", "b", "*:c:*", "d"]


def test_sizes_and_times_have_units_as_results_have_them():
    # 0 and 7 are sizes of OSU and IMB; that mpicost has no such size is seen in the plan
    words = ["--bytes", "1k,1kB,4MiB,1.5MB,0,7", "--time-limit", "3min"]
    chosen = build_parser().parse_args(["run", *words, "--confirm-after", "2h"])
    assert chosen.bytes == [1000, 4 * 2**20, 1_500_000, 0, 7]
    assert (chosen.time_limit, chosen.confirm_after) == (180, 120)
    assert build_parser().parse_args(["compare", "a", "b", "--seconds", "90s"]).seconds == 90


def test_every_command_is_in_one_section_of_the_help():
    assert sorted(name for section in SECTIONS.values() for name in section) == sorted(COMMANDS)


def test_links_are_measured_by_mpicost_alone():
    chosen = build_parser().parse_args(["links"])
    assert chosen.program == ["mpicost"] and not hasattr(chosen, "iterations")


COMMAND_PARSERS = [each for each in parsers(build_parser()) if each[0]]
WORDS_OF = [" ".join(words) for words, _ in COMMAND_PARSERS]


@pytest.mark.parametrize(("words", "parser"), COMMAND_PARSERS, ids=WORDS_OF)
def test_the_help_of_a_command_has_one_line_an_example_and_the_exit_status(words, parser: Parser):
    text = parser.format_help()
    assert re.fullmatch(r"[A-Z][^\n]{10,99}\.", parser.description)
    assert f"\n\n{textwrap.fill(parser.description, HELP_COLUMNS)}\n\n" in text
    assert max(len(line) for line in text.splitlines() if line.strip() != parser.example) <= 80
    assert f"\nexample:\n  {parser.example}\n" in text
    assert "\n  2  usage or configuration error\n" in text


@pytest.mark.parametrize(("words", "parser"), COMMAND_PARSERS, ids=WORDS_OF)
def test_the_example_of_a_command_is_one_of_this_command(words, parser: Parser):
    program, *given = shlex.split(parser.example)
    assert (program, tuple(given[: len(words)])) == ("./plumbline", words)
    with called() as calls:
        assert run(*given) == (0, "")
    assert calls[0][0] == parser.example or subcommands(parser)


@pytest.mark.parametrize(("words", "parser"), COMMAND_PARSERS, ids=WORDS_OF)
def test_every_option_is_in_a_group_and_has_a_help_text_and_a_name_for_its_value(words, parser):
    grouped = {action for group in parser.groups.values() for action in group._group_actions}
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        assert action.help and not action.help.endswith(".")
        assert action.nargs == 0 or action.metavar or action.choices
        assert not action.option_strings or action in grouped


@pytest.mark.parametrize(
    "words", [[], ["-x"], ["-k", "one and two"], ["tests/a.py", "--lf"], ["--help"], ["-h"]]
)
def test_all_further_words_of_test_go_to_pytest(words: list[str]):
    with called() as calls:
        assert run("test", *words) == (0, "")
    assert calls[0][1].words == words


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_status_of_the_command_is_the_status(status: int):
    with called(lambda _: status):
        assert run("nightly") == (status, "")


def failing(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def fail(_: argparse.Namespace) -> int:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UsageError("a.tsv: row 3: wrong"), "a.tsv: row 3: wrong"),
        (UsageError("two\nlines"), "two\\nlines"),
        (OSError(28, "No space left", "/x/y"), "/x/y: No space left; make room there, or name another place"),
        (
            OSError(28, "No space left"),
            "/nonexistent: No space left; make room there, or choose another work directory with "
            "PLUMBLINE_HOME",
        ),
        (OSError("odd"), "input or output: odd"),
        (FileNotFoundError(2, "No such file", "a\nb"), "a\\nb: No such file"),
    ],
)
def test_what_goes_wrong_in_a_command_is_one_line(error, line):
    with called(failing(error)):
        assert run("nightly") == (2, f"plumbline: {line}\n")


def test_an_interrupt_is_one_line_and_its_own_status():
    with called(failing(KeyboardInterrupt())):
        status, errors = run("nightly")
    assert status == 130 and is_one_line(errors)


def test_when_told_to_end_the_command_cleans_up_and_ends():
    cleaned = []

    def told(_: argparse.Namespace) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        finally:
            cleaned.append(True)

    with called(told):
        assert run("nightly") == (143, "")
    assert cleaned == [True]


def test_a_fault_of_our_own_is_one_line_and_its_trace_is_in_a_file(tmp_path: Path):
    with called(failing(ZeroDivisionError("by\nnothing"))):
        status, errors = run("nightly", work=str(tmp_path))
    assert status == 1 and is_one_line(errors)
    (trace,) = (tmp_path / "faults").iterdir()
    assert f"(all of it: {trace})" in errors and "a fault of Plumbline itself" in errors
    assert "Traceback" in trace.read_text() and "raise error" in trace.read_text()


def test_a_trace_that_no_file_can_hold_is_on_standard_error(tmp_path: Path):
    (tmp_path / "faults").touch()
    with called(failing(ZeroDivisionError())):
        status, errors = run("nightly", work=str(tmp_path))
    assert status == 1 and "Traceback" in errors
    assert errors.splitlines()[-1].startswith("plumbline: ZeroDivisionError: a fault of Plumbline")


@plants("environment", "a byte that is not UTF-8",
        "an option, or the path of the work directory", "", 2, "is not UTF-8 text; rename it")  # fmt: skip
def test_a_path_that_is_no_text_is_refused_by_name(capsys, declared: Declared):
    """As a shell passes a byte that is not UTF-8."""
    words = ["run", "--references", os.fsdecode(b"/tmp/\xff")]
    status, said = main(str(ROOT), "/tmp/work", words), capsys.readouterr().err
    declared.check((), status, [said])
    assert said == r"plumbline: '/tmp/\\xff': is not UTF-8 text; rename it" + "\n"
    assert main(str(ROOT), os.fsdecode(b"/tmp/\xff"), ["list"]) == 2
    assert "is not UTF-8 text" in capsys.readouterr().err


@plants("security", "a blank, tab or one of $`:,;%\\ and quotes in the path",
        "the work directory, or the clone", "", 2, ", which …; choose another folder")  # fmt: skip
@pytest.mark.parametrize("each", ["$", "`", " ", ":", ",", "\t", "'", '"', ";", "\\", "%"])
def test_a_folder_whose_name_would_be_misread_is_refused_with_the_character(each: str, declared):
    with called() as calls:
        status, errors = run("list", work=f"/tmp/x{each}y")
        known = main(f"/tmp/x{each}y", "/tmp/y", ["list"])
    assert (status, known, calls) == (2, 2, []) and is_one_line(errors)
    assert f"has a {each!r}, which " in errors
    declared.check((), status, [errors])


def test_other_marks_in_a_folder_do_no_harm():
    """Each was tried with a build and a launch."""
    with called() as calls:
        assert run("list", work="/tmp/a=b#c&d(e*\u00e9") == (0, "")
    assert calls


def test_an_argument_of_thousands_of_letters_is_not_repeated_whole():
    status, said = run("x" * 5000)
    assert status == 2 and "x" * 61 not in said and "characters)" in said
