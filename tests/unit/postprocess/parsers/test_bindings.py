"""What a start of a language printed, and what a launch makes of its rounds: whole and right, or nothing."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.formats import RATIO, SECONDS
from postprocess.judging.outcome import assess_launch
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.benchmark import Benchmark
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.bindings import COLUMNS, format_start, parse_bindings, read_exchange
from site_configs.mpi.exchange import BATCHES, ELEMENT, C, list_cases, list_options
from tests.support.factories.benchmark import leave, witnessed
from tests.support.factories.benchmark import start as plan_start

LIBRARY = "MPICH Version: 5.0.2"


def printed(microseconds: float = 2.0, library: str = LIBRARY) -> str:
    """What a start prints whose least batches took so long."""
    times = " ".join(f"{microseconds + n:.9f}e-06" for n in range(BATCHES))
    lines = (f"{name} {bytes_} 0 {times}" for name, bytes_ in list_cases([8]))
    return "\n".join([f"world 2 0 {library}", *lines, "end", ""])


GOOD = printed()
TIMES = GOOD.splitlines()[1].split(" ", 3)[3]


def test_the_least_of_the_batches_counts():
    found = read_exchange(GOOD, LIBRARY, [8])
    assert found.level == "single"
    assert found.seconds == {case: 2e-6 for case in list_cases([8])}


@pytest.mark.parametrize(
    ("old", "new", "verdict", "told"),
    [
        ("world 2", "world 1", Verdict.INCORRECT, "world of 1, not of 2"),
        ("5.0.2", "5.0.21", Verdict.INCORRECT, "wrong library: it ran on MPICH Version: 5.0.21"),
        ("bcast 8 0", "bcast 8 3", Verdict.INCORRECT, "wrong data: bcast of 8 B: 3 wrong numbers"),
        ("end\n", "", Verdict.INCOMPLETE, "ended before its last case"),
        (f"bcast 8 0 {TIMES}\n", "", Verdict.INCOMPLETE, "ended before its last case"),
        (TIMES, TIMES.split(" ", 1)[1], Verdict.INCORRECT, f"not {BATCHES} times"),
        (TIMES, TIMES.replace("2.000000000e-06", "0.0"), Verdict.INCORRECT, f"not {BATCHES} times"),
        (TIMES, TIMES.replace("2.000000000e-06", "nan"), Verdict.INCORRECT, f"not {BATCHES} times"),
        ("bcast 8 0", "bcast 8 few", Verdict.INCORRECT, "none of ours"),
        ("barrier 0", "barrier 8", Verdict.INCOMPLETE, "ended before its last case"),
        ("world", "word", Verdict.INCOMPLETE, "said nothing of its world"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, verdict: Verdict, told: str):
    for sizes in ([8], []):
        with pytest.raises(RecordError, match=told) as error:
            read_exchange(GOOD.replace(old, new), LIBRARY, sizes)
        assert error.value.verdict is verdict


def test_a_binding_that_names_the_loaded_file_is_held_against_the_prefix(tmp_path: Path):
    output = printed(library=f"{tmp_path}/a/lib/libmpi.so.12")
    read_exchange(output, f"{tmp_path}/a", [8])
    with pytest.raises(RecordError, match="wrong library"):
        read_exchange(output, f"{tmp_path}/b", [8])


def rounds(times: Sequence[tuple[float, float]], language: str = "rust") -> str:
    """The output of a launch, by microseconds in C and in the language."""
    return "".join(
        format_start(number, C, LIBRARY, printed(c)) + format_start(number, language, LIBRARY, printed(own))
        for number, (c, own) in enumerate(times, 1)
    )


def test_a_ratio_is_taken_within_its_round_and_the_median_counts():
    """C moved between the rounds, and one round was disturbed: neither shows."""
    output = parse_bindings(rounds([(1, 2), (3, 6), (2, 40)]))
    assert [table.benchmark for table in output.tables] == [f"{name}.rust" for name in dict(list_cases([8]))]
    for table in output.tables:
        (row,) = table.rows
        assert row.values == {
            RATIO: pytest.approx(2.0),
            "time (s)": pytest.approx(6e-6),
            "C (s)": pytest.approx(2e-6),
            "#repetitions": 3 * BATCHES,
        }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no start of C"),
        (format_start(1, "rust", LIBRARY, GOOD), "no start of C"),
        (rounds([(1, 2)]) + format_start(2, C, LIBRARY, GOOD), "are not the same"),
        (rounds([(1, 2)]) + format_start(2, "rust", LIBRARY, ""), "round 2, rust: said nothing"),
        (rounds([(1, 2)])[:-4], "round 1, rust: ended before"),
    ],
)
def test_a_launch_that_is_not_whole_has_no_value(text: str, told: str):
    with pytest.raises(RecordError, match=told) as error:
        parse_bindings(text)
    assert error.value.verdict is Verdict.INCOMPLETE


def plan(language: str, routines: Sequence[str] = ("bcast",), count: int = 3) -> PlannedLaunch:
    unit = SECONDS if language == C else RATIO
    lines = tuple(
        Benchmark(*(name, name, name), COLUMNS[unit], unit, ranks="two", least=ELEMENT, executable=C)
        for name in (f"{routine}.{language}" for routine in routines)
    )
    launch = plan_start("bindings", lines, (8,))
    return replace(launch, trials=count * BATCHES, options=tuple(list_options([8])))


def assess(session: Path, launch: PlannedLaunch, text: str, code: int = 0):
    seen = witnessed(program=launch.executable, command=[C, *launch.options])
    leave(session, launch, text, witness=seen, code=f"{code}\n")
    return assess_launch(launch, session)


THREE = [(1.0, 2.0), (3.0, 6.0), (2.0, 4.0)]


def test_only_chosen_cases_of_a_start_that_measures_all_have_a_value(tmp_path: Path):
    done = assess(tmp_path, plan("rust"), rounds(THREE))
    assert done.verdict is None, done.reason
    assert done.records.run["version"]  # calibrations and reports name it
    assert {name: (each.value, each.unit) for name, each in done.records.measurements.items()} == {
        "bcast.rust_8": (pytest.approx(2.0), RATIO)
    }


def test_c_itself_has_its_time(tmp_path: Path):
    text = "".join(format_start(number, C, LIBRARY, printed(c)) for number, (c, _) in enumerate(THREE, 1))
    done = assess(tmp_path, plan(C), text)
    assert done.verdict is None, done.reason
    (found,) = done.records.measurements.values()
    assert (found.value, found.unit) == (pytest.approx(2e-6), SECONDS)


@pytest.mark.parametrize(
    ("old", "new", "code", "verdict", "told"),
    [
        ("bcast 8 0", "bcast 8 1", 0, Verdict.INCORRECT, "wrong data: bcast of 8 B: 1 wrong number"),
        ("world 2", "world 1", 0, Verdict.INCORRECT, "world of 1, not of 2"),
        ("# round 3", "# round x", 0, Verdict.INCORRECT, ""),
        ("end\n", "", 139, Verdict.CRASHED, "exit code 139, SIGSEGV"),
        ("end\n", "", 124, Verdict.TIMEOUT, "no end within"),
    ],
)
def test_a_language_that_fails_has_its_verdict(
    tmp_path: Path, old: str, new: str, code: int, verdict: Verdict, told: str
):
    done = assess(tmp_path, plan("rust"), rounds(THREE).replace(old, new), code)
    assert done.verdict is verdict and told in done.reason


def test_a_launch_of_fewer_rounds_is_another_one(tmp_path: Path):
    done = assess(tmp_path, plan("rust"), rounds(THREE[:2]))
    assert done.verdict is Verdict.INCORRECT and f"ran {2 * BATCHES} repetitions" in done.reason
