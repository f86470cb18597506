"""What IMB prints is read whole, and nothing else is taken for it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.model.verdict import Verdict
from postprocess.parsers.imb import END, parse_imb
from postprocess.parsers.text_output import OutputError, OutputTable, ProgramOutput
from tests.support.factories.output import CORPUS, IMB, OSU, calls, cuts, imb_outputs, least_growth, outcome
from tests.support.faults import Declared, plants

HEAD = """#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
#----------------------------------------------------------------
# Date                  : Sat Nov 21 01:30:29 2026
# MPI Version           : 3.1


# Calling sequence was: 

# ./IMB-MPI1 -npmin 2 Allreduce Barrier 

# Message lengths were user defined
#
# MPI_Op                         :   MPI_SUM  
# 

# List of Benchmarks to run:

# Allreduce
# Barrier
"""  # noqa: W291
ALLREDUCE = """
#----------------------------------------------------------------
# Benchmarking Allreduce 
# #processes = 2 
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            8           51         0.06         0.22         0.14
        10000           51         2.89         2.91         2.90
"""  # noqa: W291
BARRIER = """
#---------------------------------------------------
# Benchmarking Barrier 
# #processes = 2 
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
           51         0.08         0.08         0.08
"""  # noqa: W291
BANNER, RULE = HEAD.splitlines()[1], BARRIER.splitlines()[1]
LONG_RULE = ALLREDUCE.splitlines()[1]
WAITING = "# ( 2 additional processes waiting in MPI_Barrier)"
FOOT = f"\n\n{END}\n\n"
WHOLE = HEAD + ALLREDUCE + BARRIER + FOOT


def read(name: str) -> ProgramOutput:
    return parse_imb((CORPUS / "imb" / f"{name}.txt").read_text())


@given(imb_outputs())
@settings(max_examples=150)
def test_what_a_writer_prints_a_reader_returns(sample: tuple[str, ProgramOutput]) -> None:
    text, expected = sample
    assert parse_imb(text) == expected


def test_every_number_of_the_corpus_is_read() -> None:
    """No word of a line that begins with a number is lost."""
    for path in IMB:
        text = path.read_text()
        output = parse_imb(text)
        lines = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
        expected = sorted(sorted(map(float, words)) for words in lines if ";" not in " ".join(words))
        found = sorted(sorted(numbers(table, row)) for table in output.tables for row in table.rows)
        assert found == expected, path
        assert sum(len(table.failures) for table in output.tables) == len(lines) - len(expected), path


def numbers(table: OutputTable, row) -> list[float]:
    """What a row was printed with: group, size, values, defects."""
    return [
        *([] if table.group is None else [table.group]),
        *([] if row.size is None else [row.size]),
        *row.values.values(),
        *([] if row.passed is None else [0.0]),
    ]


@pytest.mark.parametrize("name", ["mpich-mpi1_mem", "mpich-mpi1_multi1_mem"])
def test_what_needs_too_much_memory_is_named(name: str) -> None:
    """The sizes before it, and the other benchmarks of that start, keep their numbers."""
    tables = [table for table in read(name).tables if table.benchmark.endswith("Allreduce")]
    assert tables
    for table in tables:
        (failure,) = table.failures
        assert failure.size == 1048576
        said = failure.reason
        assert f"{table.benchmark}, 1048576 bytes: out-of-mem.; needed X= 0.003 GB" in said
        assert [row.size for row in table.rows] == [0, 262144, 524288]


def test_what_takes_too_long_overflows_or_is_invalid_is_named() -> None:
    for table in read("mpich-mpi1_time").tables:
        ((size, reason),) = ((failure.size, failure.reason) for failure in table.failures)
        assert (table.rows, size) == ((), 0) and "time-out.; Time limit" in reason
    row = "        20000 int-overflow; The production rank*size caused int overflow; Stopping"
    (table, _) = parse_imb(WHOLE.replace(BARRIER, f"{row}\n{BARRIER}")).tables
    assert [row.size for row in table.rows] == [8, 10000]
    assert table.failures[0].reason.startswith("line 29: Allreduce, 20000 bytes: int-overflow; ")
    output = read("mpich-mpi1_1")
    assert output.invalid == ("PingPong with 1 processes",)
    assert [table.benchmark for table in output.tables] == ["Bcast"]


CHECKED = WHOLE.replace("t_avg[usec]\n            8", "t_avg[usec]      defects\n            8")
CHECKED = CHECKED.replace("0.14\n", "0.14         0.00\n").replace("2.90\n", "2.90         0.00\n")


@plants("data", "lines that say wrong data, in an output that is also cut or mixed", "output of IMB",
        "incorrect", 1, "wrong data was received")  # fmt: skip
@pytest.mark.parametrize(
    "text",
    [
        CHECKED.replace("         0.00\n", "         1.00\n", 1),
        CHECKED.replace("         0.00\n", "         0.01\n"),
        CHECKED.replace("         0.00\n", "          nan\n"),
        CHECKED.replace("         0.00\n", "         1.00\n", 1).replace(FOOT, "x"),
        "else\n" + CHECKED.replace("         0.00\n", "        10.00\n", 1),
        WHOLE.replace("\n            8", "\n1: Error Allreduce,size = 8,sample #0\n            8"),
        WHOLE.replace(FOOT, "\n\n!!! Benchmark unsuccessful !!!\n\n" + FOOT),
    ],
)
def test_wrong_data_come_before_all_else(text: str, declared: Declared) -> None:
    assert [row.passed for row in parse_imb(CHECKED).tables[0].rows] == [True, True]
    with declared.raises(OutputError):
        parse_imb(text)


@pytest.mark.parametrize("odd", ["   0", " 0.0", " .00", "00.0"])
def test_defects_are_a_number(odd: str) -> None:
    with pytest.raises(OutputError, match="two decimals"):
        parse_imb(CHECKED.replace("         0.00\n", f"         {odd}\n", 1))


def test_wrong_data_of_the_corpus() -> None:
    """IMB itself left its defects at 0.00 there, and called nothing unsuccessful."""
    with pytest.raises(OutputError) as caught:
        parse_imb((CORPUS / "imb" / "refused" / "wrong_data.txt").read_text())
    assert caught.value.verdict is Verdict.INCORRECT
    assert "0: Error Allreduce,size = 1024,sample #0" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        *(("0.14", odd, 27, "two decimals") for odd in ("nan", "-0.14", "inf", "0.1")),
        ("0.14", "٠.14", 27, "odd characters"),
        (" 51 ", " 5.1 ", 27, "whole number"),
        ("0.14", "0.14 0.14", 27, "6 columns where the header has 5"),
        ("0.14", "", 27, "4 columns where the header has 5"),
        ("10000", "8", 28, "sizes do not ascend"),
        ("10000", "-10000", 28, "whole number"),
        ("10000", "10000 out-of-time", 28, "6 columns where the header has 5"),
        ("#bytes", "#bites", 26, "not a line of the title of"),
        ("t_min", "t_max", 26, "not a line of the title of"),
        ("        10000", "       #bytes\n        10000", 28, "columns where the header"),
        ("        10000", "\n        10000", 29, "not a line of the space between two tables"),
        ("        10000", "some library fails\n        10000", 28, "columns where the header"),
        ("        10000", "# some library speaks\n        10000", 28, "columns where the header"),
        ("# #processes = 2 \n", "", 24, "title of a table is not whole"),
        ("# #processes = 2 ", "# #processes = 2 \n# #processes = 2 ", 25, "of the title"),
        ("       #bytes", "#-----\n       #bytes", 26, "title of a table is not whole"),
        ("\n# Benchmarking Barrier", "\n#-----\n# Benchmarking Barrier", 31, "of the space"),
        (END, f"{END}\n#-----", 39, "not a line of the end"),
        ("       #bytes", f"{WAITING}\n       #bytes", 26, "not a line of the title"),
        (f"{LONG_RULE}\n       #bytes", "       #bytes", 25, "not a line of the title"),
        (f"{LONG_RULE}\n     ", f"#    MODE: AGGREGATE \n{LONG_RULE}\n     ", 25, "of the title"),
        (f"{LONG_RULE}\n     ", f"# some library\n{LONG_RULE}\n     ", 25, "of the title"),
        ("       #bytes", "#bytes #bytes", 26, "of the title"),
        ("# Benchmarking Allreduce ", "# Benchmarking Alltoall ", 23, "not a line of the space"),
        ("#----", "", 1, "not a line of the first lines"),
        ("# Date ", "# MPI Version : 5.0\n# Date ", 6, "not a line of the header"),
        ("# Date ", BANNER + "\n# Date ", 4, "not a line of the header"),
        ("# Message", "# Calling sequence was:\n# Message", 12, "not a line of the header"),
        (RULE + "\n# Benchmarking Barrier", "# Benchmarking Barrier", 30, "of the space"),
        ("# Date ", "# OSU MPI Latency Test v7.4\n# Date ", 4, "not a line of the header"),
        ("# Date ", "some library fails\n# Date ", 4, "not a line of the header"),
        ("# Calling sequence was: \n\n# ", "# Calling sequence was: \n\n", 10, "command line"),
        ("# Allreduce\n", "# Allreduce Barrier\n", 19, "not a line of the list"),
        (END, "some library fails\n" + END, 38, "not a line of the space between two tables"),
        (END, f"{END}\nsome library fails", 39, "not a line of the end"),
        (END, f"{END}\n{END}", 39, "the end comes in the end"),
        (END, "", 35, "after this line is no 'All processes entering MPI_Finalize'"),
        (END, END.lower(), 38, "not a line of the space between two tables"),
    ],
)
def test_what_does_not_fit_is_shown(old: str, new: str, line: int, why: str) -> None:
    text = WHOLE.replace(old, new, 1)
    assert text != WHOLE
    with pytest.raises(OutputError, match=why) as caught:
        parse_imb(text)
    assert caught.value.verdict is Verdict.INCOMPLETE
    assert str(caught.value).startswith(f"line {line}: ")


@plants("output", "a table that comes twice", "output of IMB", "incomplete", 1,
        "a second table of Allreduce")  # fmt: skip
def test_a_table_is_there_once(declared: Declared) -> None:
    with declared.raises(OutputError):
        parse_imb(HEAD + ALLREDUCE + ALLREDUCE + FOOT)
    again = ALLREDUCE.replace("= 2", "= 4")
    assert len(parse_imb(HEAD + ALLREDUCE + again + FOOT).tables) == 2


@pytest.mark.parametrize(("times", "why"), [(0, "a table without rows"), (2, "a second row")])
def test_a_barrier_has_one_row(times: int, why: str) -> None:
    row = "           51         0.08         0.08         0.08\n"
    with pytest.raises(OutputError, match=why):
        parse_imb(WHOLE.replace(row, row * times))


@plants("output", "a row lost of one group of processes", "output of IMB", "incomplete", 1,
        "unequal groups")  # fmt: skip
def test_no_group_has_fewer_rows(declared: Declared) -> None:
    text = (CORPUS / "imb" / "mpich-mpi1_multi1.txt").read_text()
    lines = text.splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if line.split()[:2] == ["1", "16"])
    with declared.raises(OutputError):
        parse_imb("".join(lines[:last] + lines[last + 1 :]))


@plants("output", "a mean outside of minimum and maximum", "output of IMB", "incorrect", 1,
        "is not between")  # fmt: skip
@pytest.mark.parametrize(
    ("old", "new"), [("0.14", "0.04"), ("0.14", "0.24"), ("0.22", "0.12"), ("0.06", "0.16")]
)
def test_a_row_that_contradicts_itself(old: str, new: str, declared: Declared) -> None:
    with declared.raises(OutputError):
        parse_imb(WHOLE.replace(old, new, 1))


def test_sizes_of_threads_are_printed_as_one() -> None:
    """IMB-MT says how many threads a process had, and which window it sent."""
    tables = {table.benchmark: table for table in read("mpich-mt").tables}
    assert tables["PingPongMT"].notes == {"threads": "2"}
    assert tables["UniBandMT"].notes == {"threads": "2", "window size": "64"}
    assert [row.size for row in tables["AllReduceMT"].rows] == [16, 2048, 20000]
    assert [row.size for row in tables["BarrierMT"].rows] == [None]
    assert {table.processes for table in tables.values()} == {2}


def test_a_benchmark_that_ran_on_no_process_is_named() -> None:
    """IMB-MT exits with 0 there."""
    output = read("mpich-mt_1")
    assert output.invalid == ("PingPongMT: no successful executions",)
    assert [table.benchmark for table in output.tables] == ["AllReduceMT"]


def test_a_write_has_a_table_with_its_wait_and_one_without() -> None:
    modes = [table.mode for table in read("mpich-io").tables if table.benchmark == "C_Write_Shared"]
    assert modes == ["AGGREGATE", "NON-AGGREGATE"]


@plants("data", "a rank of IMB-MT that says that its data are wrong", "output of IMB", "incorrect", 1,
        "wrong data was received: CHECK FAILURES: rank 1: 3")  # fmt: skip
def test_wrong_data_of_a_thread_come_before_all_else(declared: Declared) -> None:
    text = (CORPUS / "imb" / "mpich-mt.txt").read_text()
    with declared.raises(OutputError):
        parse_imb(text.replace("           16 ", "CHECK FAILURES: rank 1: 3\n           16 ", 1))


@plants("output", "an error and no table, with exit code 0", "output of IMB-MT", "incomplete", 1,
        "after this line is no 'All processes entering MPI_Finalize'")  # fmt: skip
def test_an_error_of_threads_is_no_result(declared: Declared) -> None:
    with declared.raises(OutputError):
        parse_imb((CORPUS / "imb" / "refused" / "mt_check.txt").read_text())


@plants("output", "a file system that is full", "output of IMB-IO", "incomplete", 1,
        "columns where the header has 6: MPI error  472502816 occurred")  # fmt: skip
def test_a_full_file_system_is_no_result(declared: Declared) -> None:
    with declared.raises(OutputError):
        parse_imb((CORPUS / "imb" / "refused" / "io_full.txt").read_text())


OF_THREADS = [path for path in IMB if "-mt" in path.stem]


@pytest.mark.parametrize("path", OF_THREADS, ids=lambda path: path.stem)
def test_a_cut_off_output_of_threads_is_refused_or_lacks_tables(path: Path) -> None:
    """Cut between two tables it is whole, but for the tables that the plan then misses."""
    text = path.read_text()
    whole = parse_imb(text)
    for cut in cuts(text.removesuffix("\n")):
        found = outcome(parse_imb, cut)
        if isinstance(found, OutputError):
            assert found.verdict is Verdict.INCOMPLETE
        else:
            assert found.tables == whole.tables[: len(found.tables)] != whole.tables


@pytest.mark.parametrize("path", [path for path in IMB if path not in OF_THREADS], ids=lambda path: path.stem)
def test_a_cut_off_output_is_refused(path: Path) -> None:
    """Whole is it from the end of the last line on; after it is a blank one."""
    text = path.read_text()
    body, end, _ = text.partition(END)
    for cut in [*cuts(body), *(body + end[:number] for number in range(len(end) + 1))]:
        found = outcome(parse_imb, cut)
        assert isinstance(found, OutputError) and found.verdict is Verdict.INCOMPLETE
    assert parse_imb(body + end + "\n") == parse_imb(text)


@given(st.data())
@settings(max_examples=100)
def test_two_outputs_mixed_line_by_line_are_refused(data: st.DataObject) -> None:
    first = data.draw(st.sampled_from(IMB)).read_text()
    second = data.draw(st.sampled_from(IMB + OSU)).read_text()
    lines = [text.splitlines(keepends=True) for text in (first, second)]
    mixed = ""
    while all(lines):
        chosen = lines[data.draw(st.integers(0, 1))]
        number = data.draw(st.integers(1, 30))
        mixed += "".join(chosen[:number])
        del chosen[:number]
    rest = "".join(lines[0] + lines[1])
    assert isinstance(outcome(parse_imb, mixed + rest), OutputError)


@plants("output", "the output of OSU", "output of IMB", "incomplete", 1,
        "not a line of the first lines")  # fmt: skip
def test_osu_is_not_imb(declared: Declared) -> None:
    for path in OSU:
        with declared.raises(OutputError):
            assert not parse_imb(path.read_text()), path


def rows(number: int) -> str:
    lines = (f"{size} 51 0.08 0.08 0.08\n" for size in range(20_000, 20_000 + number))
    return HEAD + ALLREDUCE + "".join(lines) + FOOT


def tables(number: int) -> str:
    each = (ALLREDUCE.replace("= 2", f"= {number}") for number in range(number))
    return HEAD + "".join(each) + FOOT


def groups(number: int) -> str:
    """A series for each group, one row long."""
    lines = (f"{group} 51 0.08 0.08 0.08\n" for group in range(number))
    return HEAD + BARRIER.replace(" #rep", "  Group  #rep").replace("51", "0 51") + "".join(lines)


def call(number: int) -> str:
    return HEAD.replace("# ./IMB", "#   -iter 3\n" * number + "# ./IMB") + FOOT


@pytest.mark.parametrize("make", [rows, tables, groups, call])
def test_work_grows_with_the_lines(make: Callable[[int], str]) -> None:
    small, large = make(250), make(2000)
    more = calls(lambda: outcome(parse_imb, large))
    assert more / calls(lambda: outcome(parse_imb, small)) < 8.5


@pytest.mark.parametrize("unit", ["9", " 9", "  ", "# ", "a: ", ": ", "-", ".", "#bytes "])
@pytest.mark.parametrize(
    "start",
    [
        *("", "#    Intel(R) MPI Benchmarks ", "#----\n#    Intel(R) MPI Benchmarks 2, "),
        *(HEAD, HEAD + "# ", HEAD[:150], HEAD + "# !! Benchmark ", HEAD + ALLREDUCE),
        *(HEAD + ALLREDUCE[:130] + more for more in ("", "# ", "# Group 1: ")),
    ],
)
def test_work_grows_with_the_length_of_a_line(unit: str, start: str) -> None:
    """16 times as long a line, and not 256 times the work: no expression goes back and forth."""
    small, large = (start + unit * number + "\n" for number in (1_250, 20_000))
    assert least_growth(lambda text: outcome(parse_imb, text), small, large, enough=64) < 64
