"""What a start of OSU or IMB says: exactly what was planned of it, or nothing."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postprocess.base.formats import MEGABYTES
from postprocess.judging.evaluate import judge_case
from postprocess.judging.outcome import assess_launch, determine_outcome
from postprocess.model.conditions import circumstances_of
from postprocess.model.launch import LaunchOutcome
from postprocess.model.measurement import CoreLatency
from postprocess.model.plan import PlannedLaunch
from postprocess.model.reference import Reference
from postprocess.model.routines.benchmark import THREADS
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.osu_imb_launch import check_quantile, find_unit_scale, read_benchmarks
from postprocess.parsers.text_output import TableRow
from postprocess.references.comparability import find_missing_fact
from spack_envs.installation import locate_program_file, read_program, write_program
from tests.support.factories.benchmark import (
    ALLREDUCE,
    BARRIER,
    BUILD,
    BW,
    FULL,
    IBCAST,
    ITERATIONS,
    PINGPONG,
    TAILS,
    UNIBAND,
    allreduce_row,
    imb_text,
    leave,
    osu_text,
    start,
    witnessed,
)
from tests.support.factories.benchmark_table import checks
from tests.support.factories.launch import entry
from tests.support.factories.output import CORPUS
from tests.support.faults import Declared, plants

PING_ROWS = {8: ("1.50", "5.33"), 1024: ("2.50", "409.60")}
BAND_ROWS = {8: ("25.00", "3125000"), 1024: ("900.00", "878906")}
IMB_START = start("imb", (PINGPONG, UNIBAND), (8, 1024))


def assessed(session: Path, launch: PlannedLaunch, text: str | None, **left: Any) -> tuple[str, str]:
    """Verdict and reason of a start that left this; ``("", "")`` if its values can be judged."""
    leave(session, launch, text, **left)
    found = assess_launch(launch, session)
    assert (found.records is None) == (found.verdict is not None)
    assert "\n" not in found.reason
    return str(found.verdict or ""), found.reason


def imb_tables(**changes: Any) -> str:
    return imb_text({"PingPong": PING_ROWS, "Uniband": BAND_ROWS} | changes)


# ---------------------------------------------------------------- what is as planned


def test_a_start_of_osu_gives_every_planned_case_its_value(tmp_path: Path):
    launch = start()
    leave(tmp_path, launch, osu_text())
    records = read_benchmarks(launch, tmp_path)
    assert set(records.measurements) == {case.variable for case in launch.cases}
    figures = {"Avg Latency(us)": 4.0, "Min Latency(us)": 3.0, "Max Latency(us)": 5.0}
    figures |= {"Iterations": 200.0, "P25 Tail Lat(us)": 2.5}
    found = records.measurements["allreduce_sum_16"]
    assert (found.value, found.unit) == (pytest.approx(2.5e-6), "s")
    assert (found.figures, found.headline) == (figures, pytest.approx(5e-6))
    assert (found.summary, found.record) == (None, None)
    # what the witness saw is the run, and tells the method
    assert (records.processes, records.per_node) == (2, 2)
    assert records.mpi_library.startswith("MPICH Version: 5.0.2")
    told = {key: records.run[key] for key in ("program", "version", "method")}
    assert told == {"program": "osu", "version": "7.4", "method": launch.method | BUILD}
    assert (records.resolution("s"), records.resolution(MEGABYTES)) == (1e-8, 0.01)


def test_what_the_witness_measured_from_core_to_core_is_of_every_case(tmp_path: Path):
    launch = start()
    leave(tmp_path, launch, osu_text(), witness=witnessed(program=launch.executable, core_latency=5e-8))
    found = read_benchmarks(launch, tmp_path).measurements.values()
    assert {measurement.core_latency for measurement in found} == {CoreLatency(None, 5e-8)}
    leave(tmp_path, launch, osu_text(), witness=witnessed(program=launch.executable, core_latency=0.0))
    with pytest.raises(RecordError, match=r"core_latency: 0\.0 is not 1e-10 to 0\.001"):
        read_benchmarks(launch, tmp_path)


def test_a_start_of_imb_gives_the_cases_of_all_its_tables(tmp_path: Path):
    leave(tmp_path, IMB_START, imb_tables())
    records = read_benchmarks(IMB_START, tmp_path)
    values = {name: (each.value, each.unit) for name, each in records.measurements.items()}
    assert values == {
        "pingpong@1_8": (pytest.approx(1.5e-6), "s"),
        "pingpong@1_1024": (pytest.approx(2.5e-6), "s"),
        "uniband_8": (25.0, MEGABYTES),
        "uniband_1024": (900.0, MEGABYTES),
    }
    assert records.run["version"] == "2021.11"
    assert {measurement.best for measurement in records.measurements.values()} == {None}
    assert assess_launch(IMB_START, tmp_path).verdict is None


def test_two_benchmarks_may_share_a_table(tmp_path: Path):
    """As the whole of a non-blocking collective and its communication alone."""
    columns = ["Overall(us)", "Compute(us)", "Coll. Init(us)", "MPI_Test(us)", "MPI_Wait(us)"]
    columns += ["Pure Comm.(us)", "Min Comm.(us)", "Max Comm.(us)", "Overlap(%)"]
    row = ["9.00", "5.00", "0.10", "0.00", "1.00", "4.00", "3.00", "6.00", "80.00"]
    launch = start("osu", IBCAST, (8,))
    leave(tmp_path, launch, osu_text(IBCAST[0].title, columns, {8: row}))
    found = read_benchmarks(launch, tmp_path).measurements
    expected = {"ibcast_8": pytest.approx(9e-6), "ibcast.pure_8": pytest.approx(6e-6)}
    assert {name: each.value for name, each in found.items()} == expected


def start_of_threads(threads: int, *routines: str) -> tuple[PlannedLaunch, str]:
    """A start of IMB-MT with lines of the table, and what it printed with two threads in each process."""
    lines = tuple(line for line in checks()["imb"].table if line.routine in routines)
    launch = start("imb", lines, (8, 1024, 10000))
    head, *tables = (CORPUS / "imb" / "mpich-mt.txt").read_text().split("\n\n")
    printed = [table for table in tables if any(f"Benchmarking {line.name}\n" in table for line in lines)]
    launch = replace(launch, trials=20, threads=threads)
    return launch, "\n\n".join([head, *printed, ""])


def test_a_start_with_threads_is_of_the_sizes_of_one_of_them(tmp_path: Path):
    launch, text = start_of_threads(2, "pingpong_mt", "allreduce_sum_mt")
    assert "        20000           20 " in text
    leave(tmp_path, launch, text)
    assert assess_launch(launch, tmp_path).reason == ""
    records = read_benchmarks(launch, tmp_path)
    assert set(records.measurements) == {case.variable for case in launch.cases}
    assert THREADS not in records.run["method"]  # one file of references has cases with threads and without


@plants("references", "a reference of IMB-MT with other threads", "provenance", "not-comparable", 1,
        "binding of 2x2 of 2 threads")  # fmt: skip
def test_a_reference_of_other_threads_is_none(tmp_path: Path, declared: Declared):
    launch, text = start_of_threads(2, "pingpong_mt")
    leave(tmp_path, launch, text)
    ours = circumstances_of(read_benchmarks(launch, tmp_path).run)
    told = [circumstances_of({"processes": 2, "per_node": 2, **more}) for more in ({}, {THREADS: 1})]
    known = {**ours, "binding": told[0]["binding"] | told[1]["binding"]}
    declared.check((Verdict.NOT_COMPARABLE,), 1, [find_missing_fact(ours, known)])
    assert find_missing_fact(ours, ours) == ""


def test_a_start_on_files_is_judged_with_and_without_its_waits(tmp_path: Path):
    """Every table that IMB-IO really printed has its line."""
    lines = tuple(line for line in checks()["imb"].table if line.executable == "IMB-IO" and line.sizes is None)
    launch = replace(start("imb", lines, (8, 1024, 10000)), trials=20)
    text = (CORPUS / "imb" / "mpich-io.txt").read_text()
    before, _, rest = text.rpartition(
        "\n#---------------------------------------------------\n# Benchmarking Open_Close"
    )
    leave(tmp_path, launch, before + "\n" + rest[rest.index("\n# All processes") :])
    assert assess_launch(launch, tmp_path).reason == ""
    found = read_benchmarks(launch, tmp_path).measurements
    assert set(found) == {case.variable for case in launch.cases}
    assert found["c_write_shared_8"].value > found["c_write_shared.aggregate_8"].value


@plants("output", "another number of threads in each process than planned", "output of IMB-MT", "incorrect", 1,
        "ran 2 threads in each process, not 4")  # fmt: skip
def test_another_number_of_threads_is_another_measurement(tmp_path: Path, declared: Declared):
    declared.check_case(*assessed(tmp_path, *start_of_threads(4, "pingpong_mt")))


@plants("output", "cut off between two tables, with exit code 0", "output of IMB-MT", "incomplete", 1,
        "0 tables of 'AllReduceMT', where one was planned")  # fmt: skip
def test_a_table_of_threads_that_did_not_come_is_incomplete(tmp_path: Path, declared: Declared):
    launch, text = start_of_threads(2, "pingpong_mt", "allreduce_sum_mt")
    declared.check_case(*assessed(tmp_path, launch, "\n#----".join(text.split("\n#----")[:-2]) + "\n"))


def test_a_benchmark_without_sizes_is_of_no_bytes(tmp_path: Path):
    launch = start("imb", (BARRIER,), (0,))
    leave(tmp_path, launch, imb_text({"Barrier": {0: ("1.00", "3.00", "2.00")}}))
    assert read_benchmarks(launch, tmp_path).measurements["barrier_0"].value == pytest.approx(3e-6)


def test_a_column_tells_what_it_counts_in():
    microseconds = ("Max Latency(us)", "Overall(us)", "Latency (us)", "t_max[usec]")
    scales = dict.fromkeys(microseconds, 1e-6) | {"max (ms)": 1e-3}
    scales |= dict.fromkeys(("MB/s", "Bandwidth (MB/s)", "Mbytes/sec"), 1.0)
    assert {column: find_unit_scale(column) for column in scales} == scales
    for column in ("", "Iterations", "Overlap(%)", "Messages/s", "t_max"):
        with pytest.raises(ValueError, match="does not state its unit"):
            find_unit_scale(column)


# ---------------------------------------------------------------- what is not


def rows(**changes: Any) -> dict[int, list[str]]:
    """The rows of a whole allreduce, with one cell of the row of 8 bytes changed, by its header words."""
    found = {size: allreduce_row(size) for size in (4, 8, 16)}
    for column, value in changes.items():
        found[8][(*FULL, *TAILS).index(column)] = value
    return found


@plants("output", "a row lost", "output of OSU", "incomplete", 1, "missing from the output: ")
def test_a_size_that_did_not_come_is_incomplete_and_named(tmp_path: Path, declared: Declared):
    launch = start()
    for size in (4, 8, 16):
        left = {each: row for each, row in rows().items() if each != size}
        missing = next(case for case in launch.cases if case.bytes == size)
        verdict, reason = assessed(tmp_path, launch, osu_text(rows=left))
        assert reason == f"{launch.output(tmp_path)}: missing from the output: {missing.key}"
        declared.check_case(verdict, reason)


def less(column: str) -> str:
    """A whole allreduce, but without one of its columns."""
    columns = [*FULL, *TAILS]
    place = columns.index(column)
    left = {size: row[:place] + row[place + 1 :] for size, row in rows().items()}
    return osu_text(columns=columns[:place] + columns[place + 1 :], rows=left)


def seen(*records: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What is left by a start whose witness wrote this, or saw these things differently."""
    return {"witness": list(records) or witnessed(**changes)}


OTHER_MPI = "Open MPI v5.0.11, package: x"
TABLES = {"PingPong": PING_ROWS, "Uniband": BAND_ROWS}
ONE_TABLE = imb_text({"PingPong": PING_ROWS})
INVALID = "# !! Benchmark Uniband invalid for 2 processes !! \n\n"
SPINS = "# ( 1 additional process waiting in MPI_Barrier)\n"
PING_ALONE = start("imb", (PINGPONG,), (8, 1024))


@plants("output", "a table, a row, a column, a count or a name that was not planned, in 21 ways",
        "output of OSU or IMB, and what the witness saw", "incomplete or incorrect", 1, "…")  # fmt: skip
@pytest.mark.parametrize(
    ("launch", "text", "left", "verdict", "said"),
    [
        (start(), osu_text(rows=rows() | {32: allreduce_row(32)}), {}, "incorrect",
         "'OSU MPI Allreduce Latency Test' has 32 bytes, unplanned"),
        (start(), osu_text(title="OSU MPI Reduce Latency Test"), {}, "incorrect",
         "'OSU MPI Reduce Latency Test' was not planned"),
        (PING_ALONE, imb_tables(), {}, "incorrect", "'Uniband' was not planned"),
        (IMB_START, ONE_TABLE, {}, "incomplete", "0 tables of 'Uniband', where one was planned"),
        (IMB_START, ONE_TABLE.replace("# All", INVALID + "# All"), {}, "incomplete", ""),
        # the others would have waited; the witness saw them all
        (IMB_START, imb_text(TABLES, processes=4), {}, "incorrect",
         "'PingPong' ran on 4 processes, not 2"),
        (IMB_START, imb_tables().replace("= 2 \n", f"= 2 \n{SPINS}"), {}, "incorrect",
         "1 processes spun in a barrier beside 'PingPong'"),
        (start(), osu_text(rows=rows(Iterations="199")), {}, "incorrect",
         "at 8 bytes ran 199 repetitions, not 200"),
        (IMB_START, imb_text(TABLES, repetitions=201), {}, "incorrect",
         "ran 201 repetitions, not 200"),
        (replace(start(), validation=True), osu_text(rows=rows(Validation="skipped")), {}, "incomplete",
         "at 8 bytes does not say that its data was verified"),
        (replace(start(), validation=True), less("Validation"), {}, "incomplete",
         "does not say that its data was verified"),
        (replace(IMB_START, validation=True), imb_text(TABLES, repetitions=200), {}, "incomplete",
         "does not say that its data was verified"),
        (start(trials=3), osu_text(), {}, "incorrect",
         "ran 3 repetitions, and has no quarter of fewer than 4"),
        (start(), less("Max Latency(us)"), {}, "incomplete", "has no column 'Max Latency(us)'"),
        (start(), less("P25 Tail Lat(us)"), {}, "incomplete", "has no column 'P25 Tail Lat(us)'"),
        (start(), osu_text().replace("MPI_FLOAT", "MPI_CHAR"), {}, "incorrect",
         "sent MPI_CHAR, not MPI_FLOAT"),
        (start(), None, {}, "incomplete", "the program printed nothing"),
        (start(), "", {}, "incomplete", ""),
        # the program did not reach the end of its MPI, or runs on another one
        (start(), osu_text(), {"witness": []}, "incomplete",
         "no MPI_Finalize of the MPI of this environment"),
        (start(), osu_text(), seen(*witnessed()[:1]), "incomplete", "MPI_Finalize did not end well"),
        (start(), osu_text(), seen(*witnessed() * 2), "incorrect", "a second run in one file"),
        (start(), osu_text(), seen(mpi_library=OTHER_MPI), "incorrect",
         f"ran on '{OTHER_MPI}', not on 'MPICH Version: 5.0.2'"),
        (start(), osu_text(), seen(program="osu_allgather"), "incorrect",
         "the witness saw 'osu_allgather' run, not osu_allreduce"),
    ],
)  # fmt: skip
def test_a_fault_of_a_start_has_its_verdict_and_is_named(
    tmp_path: Path, launch: PlannedLaunch, text: str | None, left, verdict: str, said: str, declared: Declared
):
    found, reason = assessed(tmp_path, launch, text, **left)
    assert found == verdict and said in reason
    declared.check_case(found, reason)


@plants("output", "a quantile that no trials with this mean have: another column, or mixed lines",
        "output of OSU", "incorrect", 1, "which the mean … contradicts")  # fmt: skip
@pytest.mark.parametrize("unit", ["s", MEGABYTES])
def test_a_quantile_that_contradicts_its_mean_is_incorrect(tmp_path, unit: str, declared):
    rate = "P75 Tail BW(MB/s)"
    band = replace(BW, steady=rate)
    band_launch = start(benchmarks=[band], sizes=(8,))

    def printed(mean: str, quantile: str) -> str:
        return osu_text(band.title, (band.column, rate), {8: (mean, quantile)})

    right, wrong = printed("1.40", "1.05"), printed("1.60", "1.05")
    launch = band_launch
    if unit == "s":  # the mean over ranks is 2.40
        right, wrong = (osu_text(rows=rows(**{TAILS[0]: each})) for each in ("3.20", "3.50"))
        launch = start()
    assert assessed(tmp_path / "right", launch, right) == ("", "")
    declared.check_case(*assessed(tmp_path / "wrong", launch, wrong))


@pytest.mark.parametrize(
    ("ranks", "processes", "held"), [("even", 4, False), ("even", 2, True), ("any", 4, True)]
)
def test_a_quantile_of_the_first_of_several_pairs_is_not_held_against_the_mean_of_all(ranks, processes, held):
    world = {"processes": processes, "per_node": processes}
    launch = start(cases=tuple(replace(case, **world) for case in start().cases))
    row = TableRow(8, {TAILS[0]: 3.5, "Avg Latency(us)": 2.4, "Max Latency(us)": 3.0}, None)
    with pytest.raises(RecordError, match="contradicts") if held else nullcontext():
        check_quantile(replace(ALLREDUCE, ranks=ranks), row, launch, "a table")


@plants("speed", "one window of many that hangs for a second, so that the mean rate is printed as 0.00",
        "output of OSU", "regressed", 1, "in the mean of the trials is … its fast trials")  # fmt: skip
def test_a_mean_rate_of_nothing_is_slow(tmp_path, declared):
    band = replace(BW, steady="P75 Tail BW(MB/s)")
    launch = start(benchmarks=[band], sizes=(8,))
    leave(tmp_path, launch, osu_text(band.title, (band.column, band.steady), {8: ("0.00", "1.05")}))
    records = read_benchmarks(launch, tmp_path)
    (measured,) = records.measurements.values()
    (bw,) = launch.cases
    known = Reference(bw, 1.05, 0.01, 20, unit=MEGABYTES)
    known = replace(known, headline=replace(known, center=1.0, spread=0.1))
    result = judge_case(bw, measured, known, records.resolution(MEGABYTES))
    declared.check_case(result.verdict, result.reason)


@plants("output", "a second table, as of IMB without -npmin", "output of IMB", "incorrect", 1,
        "2 tables of 'Barrier', where one was planned")  # fmt: skip
def test_two_tables_where_one_was_planned_are_incorrect(tmp_path: Path, declared: Declared):
    """As of IMB without -npmin, which measures every smaller power of two as well."""
    one, two = (imb_text({"Barrier": {0: ("1.00", "3.00", "2.00")}}, processes=number) for number in (2, 4))
    rule = "#" + "-" * 60
    table = two[two.index(rule + "\n# Benchmarking") : two.index("# All processes")]
    text = one.replace("# All processes", table + "# All processes")
    launch = start("imb", (BARRIER,), (0,))
    leave(tmp_path, launch, one)
    assert assess_launch(launch, tmp_path).verdict is None
    declared.check_case(*assessed(tmp_path, launch, text))


@plants("output", "another number of pairs", "output of OSU", "incorrect", 1,
        "'OSU MPI Multiple Bandwidth / Message Rate Test' ran 2 pairs on 2 processes")  # fmt: skip
def test_another_number_of_pairs_than_the_processes_have_is_incorrect(tmp_path, declared):
    title = "OSU MPI Multiple Bandwidth / Message Rate Test"
    line = replace(BW, name="osu_mbw_mr", title=title, column="MB/s")
    launch = start(benchmarks=[line], sizes=(8,), method={"iterations": ITERATIONS, "warmups": 20})
    text = osu_text(title, ("MB/s", "Messages/s", "Validation"), {8: ("5.00", "625000.00", "Pass")})
    right, wrong = (
        text.replace("# Datatype", f"# [ pairs: {pairs} ] [ window size: 64 ]\n# Datatype") for pairs in (1, 2)
    )
    assert assessed(tmp_path, launch, right) == ("", "")
    declared.check_case(*assessed(tmp_path, launch, wrong))


@pytest.mark.parametrize(("validation", "verdict"), [(False, ""), (True, "incomplete")])
def test_data_that_is_not_to_be_verified_need_not_be(tmp_path: Path, validation: bool, verdict: str):
    launch = replace(start("osu", (BW,), (8,)), validation=validation)
    assert assessed(tmp_path, launch, osu_text(BW.title, [BW.column], {8: ["25.00"]}))[0] == verdict


@plants("data", "a validation that fails, with any exit code", "output of OSU", "incorrect", 1,
        "line 6: wrong data was received: 8 ")  # fmt: skip
@pytest.mark.parametrize("code", ["0\n", "1\n", "124\n", "139\n", None])
def test_wrong_data_is_named_whatever_the_exit_code(tmp_path, code: str | None, declared):
    text = osu_text(rows=rows(Validation="Fail"))
    declared.check_case(*assessed(tmp_path, start(), text, code=code))


@plants("output", "a row that says out-of-mem., time-out. or int-overflow", "output of IMB",
        "incomplete", 1, "missing from the output: …(line ")  # fmt: skip
@pytest.mark.parametrize(
    "why",
    [
        'out-of-mem.; needed X=   0.003 GB; use flag "-mem X" or MAX_MEM_USAGE>=X',
        "time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over",
        "int-overflow; The production rank*size caused int overflow;",
    ],
)
def test_a_row_that_failed_names_why_its_size_is_missing(tmp_path, why: str, declared):
    text = imb_tables(PingPong={8: PING_ROWS[8], 1024: (why,)})
    verdict, reason = assessed(tmp_path, IMB_START, text)
    key = next(case.key for case in IMB_START.cases if case.variable == "pingpong@1_1024")
    assert f"missing from the output: {key} (line " in reason
    assert why.split(";")[0] in reason
    declared.check_case(verdict, reason)


@pytest.mark.parametrize(("launch", "text"), [(start(), osu_text()), (IMB_START, imb_tables())])
def test_an_output_that_is_cut_off_anywhere_is_never_judged(tmp_path: Path, launch, text: str):
    lines = text.splitlines(keepends=True)
    ends = {len("".join(lines[:number])) for number in range(len(lines))}
    whole = len(text.rstrip("\n").removesuffix("# All processes entering MPI_Finalize")) + 1
    for length in sorted(ends | {end + 3 for end in ends} | {0, len(text) // 2}):
        if length < whole:
            verdict, _ = assessed(tmp_path, launch, text[:length])
            assert verdict == "incomplete", text[:length]


# ---------------------------------------------------------------- what it ran on


@plants("schedulers", "worlds of one process", "the launcher of OSU", "incorrect", 1,
        "started 2 singleton processes instead of one MPI_COMM_WORLD of 2: ")  # fmt: skip
@pytest.mark.parametrize("text", [osu_text(), osu_text() * 2, "", None])
def test_worlds_of_one_are_named_whatever_they_printed(tmp_path, text: str | None, declared):
    alone = witnessed(processes=1)
    declared.check_case(*assessed(tmp_path, start(), text, witness=alone * 2))


# ---------------------------------------------------------------- how it ended


@pytest.mark.parametrize("code", ["124\n", "137\n"])
@pytest.mark.parametrize("text", [osu_text(), osu_text(rows={}), "", None])
def test_a_start_that_was_ended_at_its_limit_is_a_timeout(tmp_path: Path, code, text):
    assert assessed(tmp_path, start(time_limit=66.0), text, code=code) == (
        "timeout",
        "no end within 66 s" + (" (or killed for lack of memory)" if code == "137\n" else ""),
    )


def after(session: Path, launches: list[PlannedLaunch], **changes: Any) -> list[LaunchOutcome]:
    """What became of the starts of one job of which ReFrame says this."""
    whole = [found.records for each in launches if (found := assess_launch(each, session)).records]
    measured = {name: each for records in whole for name, each in records.measurements.items()}
    values = {name: (each.value, each.unit) for name, each in measured.items()}
    said = entry(test=launches[0].test, values=values, **changes)
    return [determine_outcome(launch, session, said) for launch in launches]


def test_one_start_that_hangs_or_crashes_or_lies_hurts_its_own_cases_alone(tmp_path: Path):
    launches = [replace(start(), start=name) for name in "abcd"]
    leave(tmp_path, launches[0], "", code="124\n")
    leave(tmp_path, launches[1], osu_text())
    leave(tmp_path, launches[2], None, witness=[], code="139\n")
    leave(tmp_path, launches[3], osu_text(rows=rows(Validation="Fail")))
    found = after(tmp_path, launches, result="fail", phase="performance", reason="timeout: a: ...")
    assert [str(outcome.verdict or "") for outcome in found] == ["timeout", "", "crashed", "incorrect"]
    assert set(found[1].records.measurements) == {case.variable for case in launches[1].cases}


def test_of_a_job_that_ran_into_its_limit_what_never_ended_is_a_timeout(tmp_path: Path):
    """What ended before was not asserted by ReFrame: one judge alone makes no verdict."""
    launches = [replace(start(), start=name) for name in "abc"]
    leave(tmp_path, launches[0], osu_text())
    leave(tmp_path, launches[1], "", witness=[], code="139\n")
    leave(tmp_path, launches[2], osu_text(rows={}), witness=[], code=None)
    said = {"result": "fail", "phase": "run", "reason": "job error: job timed out (600.1s > 600s)"}
    found = after(tmp_path, launches, **said)
    assert [str(outcome.verdict) for outcome in found] == ["incomplete", "crashed", "timeout"]
    assert "its job ran into its limit of 600 s and ReFrame checked no value" in found[0].reason
    assert "no end within the 600 s of its job" in found[2].reason
    assert {outcome.records for outcome in found} == {None}


def test_the_job_of_a_single_start_that_ran_into_its_limit_is_a_timeout_whatever_it_left(tmp_path):
    launch = replace(start(), start="")
    leave(tmp_path, launch, osu_text())
    (found,) = after(tmp_path, [launch], result="fail", phase="run", reason="job timed out")
    assert (found.verdict, found.reason) == (Verdict.TIMEOUT, "no end within 60 s")


@plants("output", "other options than were planned", "OSU", "incorrect", 1,
        "the witness saw the options ['-i', '100'], not ['-i', '200']")  # fmt: skip
def test_options_that_were_not_planned_are_incorrect(tmp_path: Path, declared: Declared):
    """Most options leave no trace in the output: as many calls, or buffers that rotate."""
    launch = replace(start(), options=("-i", "200"))
    wrong, right = (witnessed(command=["osu_allreduce", "-i", number]) for number in ("100", "200"))
    assert assessed(tmp_path, launch, osu_text(), witness=right) == ("", "")
    declared.check_case(*assessed(tmp_path, launch, osu_text(), witness=wrong))


def test_another_build_is_another_method_and_one_that_nobody_knows_is_incomplete(tmp_path: Path):
    """IMB of a wheel and IMB of Spack are of one version, and no more alike than that."""
    launch = start()
    leave(tmp_path, launch, osu_text())
    one = read_benchmarks(launch, tmp_path).run["method"]
    program = read_program(tmp_path, launch.environment, "osu")
    write_program(tmp_path, replace(program, flags="-O0"))
    assert read_benchmarks(launch, tmp_path).run["method"] == one | {"flags": "-O0"}
    locate_program_file(tmp_path, launch.environment, "osu").unlink()
    assert assess_launch(launch, tmp_path).verdict == "incomplete"


# ---------------------------------------------------------------- buffers that rotate

LAST = {"level": 3, "type": "Unified", "bytes": 480_000_000, "shared_by": 96}
FIRST = {"level": 1, "type": "Data", "bytes": 32_768, "shared_by": 1}


@pytest.mark.parametrize(
    ("megabytes", "caches", "said"),
    [
        (240, [FIRST, LAST], ""),  # two processes share the cache
        (239, [FIRST, LAST], "239 MB each, and the last-level cache holds 480 MB; set imb.rotated"),
        (64, [FIRST], ""),
        (64, [], "the kernel reports no caches"),
    ],
)
def test_buffers_that_rotate_leave_the_last_level_cache(tmp_path, megabytes, caches, said):
    launch = replace(IMB_START, method={**IMB_START.method, "rotated_megabytes": megabytes})
    seen = witnessed(program=launch.executable, command=["IMB"], caches=caches)
    verdict, reason = assessed(tmp_path, launch, imb_tables(), witness=seen)
    assert (verdict, said in reason) == ("incorrect" if said else "", True)
