"""What OSU prints is read whole, and nothing else is taken for it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.model.verdict import Verdict
from postprocess.parsers.osu import parse_osu
from postprocess.parsers.text_output import OutputError, OutputTable, ProgramOutput
from tests.support.factories.output import (
    CORPUS,
    IMB,
    OSU,
    calls,
    cuts,
    least_growth,
    osu_outputs,
    outcome,
    window_outputs,
)
from tests.support.faults import Declared, plants

ALLREDUCE = """
# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations        Validation
4                       0.97              0.83              1.11          50              Pass
8                       0.99              0.84              1.14          50              Pass
"""
BARRIER = """
# OSU MPI Barrier Latency Test v7.4
# Avg Latency(us)
             0.24
"""


def read(name: str) -> ProgramOutput:
    return parse_osu((CORPUS / "osu" / f"{name}.txt").read_text())


@given(osu_outputs() | window_outputs())
@settings(max_examples=150)
def test_what_a_writer_prints_a_reader_returns(sample: tuple[str, ProgramOutput]) -> None:
    text, expected = sample
    assert parse_osu(text) == expected


def test_every_number_of_the_corpus_is_read() -> None:
    """As many rows as lines that begin with a number, and no word of them is lost."""
    for path in OSU:
        text = path.read_text()
        output = parse_osu(text)
        lines = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
        rows = [row for table in output.tables for row in table.rows]
        if output.tables[0].benchmark in ("OSU MPI Init Test", "OSU MPI Hello World Test"):
            assert len(rows) == 1, path
            continue
        assert len(rows) == len(lines), path
        for row, words in zip(rows, lines, strict=True):
            numbers = [float(word) for word in words if word not in ("Pass", "passed")]
            assert [*([] if row.size is None else [row.size]), *row.values.values()] == numbers, path
            assert row.passed is (True if len(numbers) < len(words) else None), path


def test_no_sizes_in_a_barrier_and_in_init() -> None:
    (barrier,) = read("mpich-ibarrier_f").tables
    assert [row.size for row in barrier.rows] == [None]
    assert {"Overall(us)", "Coll. Init(us)", "Pure Comm.(us)", "Overlap(%)"} <= {*barrier.columns}
    (init,) = read("mpich-init_4").tables
    assert (init.benchmark, init.processes) == ("OSU MPI Init Test", 4)
    assert init.columns == ("min (ms)", "max (ms)", "avg (ms)")
    assert init.rows[0].values["max (ms)"] >= init.rows[0].values["min (ms)"]


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        *(("0.97", odd, 5, "two decimals") for odd in ("nan", "-0.97", "inf", "0.9", "1e0")),
        ("0.97", "٠.97", 5, "odd characters"),
        ("  50", "5.0", 5, "whole number"),
        ("0.97 ", "0.97  1.00 ", 5, "7 columns where the header has 6"),
        ("0.97 ", "     ", 5, "5 columns where the header has 6"),
        ("0.97 ", "0.97\x1f", 5, "odd characters in a table .'.x1f' at place "),
        *(("\n8  ", f"\n{size}  ", 6, "sizes do not ascend") for size in (4, 2)),
        *(("\n8  ", f"\n{size}  ", 6, "whole number") for size in (-8, "8" * 5000)),
        ("Pass", "Past", 5, "neither passed nor failed"),
        ("# Size", "# Sise", 4, "not a line of OSU"),
        ("Min Lat", "Max Lat", 4, "two columns have the same header"),
        ("# Datatype", "# Size\n# Datatype", 3, "or there is none"),
        ("\n8  ", "\n# Size       Avg Latency(us)\n8  ", 6, "second header"),
        ("\n8  ", "\n# Datatype: MPI_FLOAT.\n8  ", 7, "outside of a table"),
        ("\n8  ", "\n\n8  ", 7, "outside of a table"),
        ("\n8  ", "\n# OSU MPI Allreduce Latency Test v7.4\n8  ", 6, "second program"),
        ("\n8  ", "\nsome library fails\n8  ", 6, "columns where the header has"),
        ("\n# OSU", "\nsome library fails\n# OSU", 2, "not a line of OSU"),
        ("# Datatype", "# Datatype: MPI_INT.\n# Datatype", 4, "has no header"),
        ("# Datatype", "# some library speaks\n# Datatype", 3, "not a line of OSU"),
    ],
)
def test_what_does_not_fit_is_shown(old: str, new: str, line: int, why: str) -> None:
    text = ALLREDUCE.replace(old, new, 1)
    assert text != ALLREDUCE
    with pytest.raises(OutputError, match=why) as caught:
        parse_osu(text)
    assert caught.value.verdict is Verdict.INCOMPLETE
    assert str(caught.value).startswith(f"line {line}: ")


@plants("output", "a table that comes twice", "output of OSU", "incomplete", 1, "second table")
def test_a_table_is_there_once(declared: Declared) -> None:
    again = "\n".join(ALLREDUCE.splitlines()[2:]) + "\n"
    with declared.raises(OutputError):
        parse_osu(ALLREDUCE + again)
    assert len(parse_osu(ALLREDUCE + again.replace("FLOAT", "INT")).tables) == 2


@plants("output", "a second row of a barrier", "output of OSU", "incomplete", 1, "a second row")
def test_a_barrier_has_one_row(declared: Declared) -> None:
    with declared.raises(OutputError):
        parse_osu(BARRIER + "             0.24\n")


def test_a_title_comes_again_for_atomic_operations_only() -> None:
    """And for those with another data type only: the rest is another program's output."""
    text = (CORPUS / "osu" / "mpich-acc_latency.txt").read_text()
    assert len(parse_osu(text + text.replace("CHAR", "INT")).tables) == 2
    for other in (text, text.replace("v7.4", "v7.3"), text.replace("Accum", "Akkum"), ALLREDUCE):
        with pytest.raises(OutputError, match="second") as caught:
            parse_osu(text + other)
        assert caught.value.verdict is Verdict.INCOMPLETE
    with pytest.raises(OutputError, match="second program"):
        parse_osu(ALLREDUCE + ALLREDUCE.replace("FLOAT", "INT"))


@pytest.mark.parametrize("text", ["", "\n", "\n\n", "# Number of Sender threads: 1\n"])
def test_an_output_without_a_table(text: str) -> None:
    with pytest.raises(OutputError) as caught:
        parse_osu(text)
    assert caught.value.verdict is Verdict.INCOMPLETE


@plants("output", "a program that gives up, prints ERROR and returns 0", "output of OSU",
        "incomplete", 1, "the program gave up")  # fmt: skip
@pytest.mark.parametrize("before", [True, False], ids=["before a table", "behind it"])
@pytest.mark.parametrize("tag", ["", "[1,0]<stdout>:"])
def test_a_program_that_gives_up(before: bool, tag: str, declared: Declared) -> None:
    """Whatever else is there: a line of others among the results would be taken out and counted."""
    gave_up = tag + (CORPUS / "osu" / "refused" / "neighbor_two.txt").read_text().splitlines()[1]
    text = f"{gave_up}\n{ALLREDUCE}" if before else f"{ALLREDUCE}{gave_up}\n"
    with declared.raises(OutputError):
        parse_osu(text)


@pytest.mark.parametrize("mark", [".", ","])
def test_the_whole_start_of_hello_is_what_the_shell_tells(mark: str) -> None:
    text = (CORPUS / "osu" / "mpich-hello.txt").read_text()
    seconds = float(text.split()[-1])
    (table,) = parse_osu(text.replace(str(seconds), str(seconds).replace(".", mark))).tables
    assert (table.processes, table.rows[0].values) == (2, {"Start (s)": seconds})


def test_a_time_without_a_start_is_none() -> None:
    with pytest.raises(OutputError, match="a start without its processes"):
        parse_osu("# OSU MPI Hello World Test v7.4\n# Start (s): 0.200\n")


@pytest.mark.parametrize("name", ["bw_fan_in", "bw_fan_out"])
def test_rates_under_the_header_of_latencies_are_rates(name: str) -> None:
    (table,) = read(f"mpich-{name}_3_z75").tables
    assert table.columns == ("Bandwidth (MB/s)", "P75 Tail BW(MB/s)")


@plants("output", "a title without its table", "output of OSU", "incomplete", 1,
        "a table without its header")  # fmt: skip
def test_a_title_without_its_table(declared: Declared) -> None:
    with declared.raises(OutputError, match="line 2: a table without its header: # OSU MPI Allred"):
        parse_osu(ALLREDUCE.partition("# Size")[0])


@plants("data", "lines that say wrong data, in an output that is also cut or mixed",
        "output of OSU", "incorrect", 1, "wrong data was received")  # fmt: skip
@pytest.mark.parametrize(
    "text",
    [
        ALLREDUCE.replace("Pass", "Fail"),
        ALLREDUCE.replace("Pass", "Fail") + "9 cut",
        "something else\n" + ALLREDUCE.replace("Pass", "failed"),
        ALLREDUCE + "DATA VALIDATION ERROR: ./osu_allreduce exited with status 1\n",
        ALLREDUCE + "16   0.DATA VALIDATION ERROR: ./osu_allreduce exited",
        ALLREDUCE + "FAILED: MPI_SUM on MPI_CHAR had 1 of 1 tests fail data validation.\n",
    ],
)
def test_wrong_data_come_before_all_else(text: str, declared: Declared) -> None:
    with declared.raises(OutputError):
        parse_osu(text)


def test_the_newest_release_prints_the_same_tables() -> None:
    assert parse_osu(ALLREDUCE.replace("v7.4", "v7.5.2")).version == "7.5.2"


def test_skipped_validation_is_none() -> None:
    text = (CORPUS / "osu" / "mpich-acc_latency_c.txt").read_text().replace("passed", "skipped")
    assert {row.passed for row in parse_osu(text).tables[0].rows} == {None}


def test_a_summary_of_the_data_ends_what_was_validated() -> None:
    text = (CORPUS / "osu" / "mpich-acc_latency_c.txt").read_text()
    row = text.splitlines()[5]
    with pytest.raises(OutputError, match="a row outside of a table"):
        parse_osu(text + row.replace("1 ", "32") + "\n")
    with pytest.raises(OutputError, match="not a line of OSU: PASSED: "):
        parse_osu(BARRIER + "PASSED: All 1 combinations of ops and datatypes tested passed.\n")


@pytest.mark.parametrize(
    ("old", "new"), [("0.97", "0.80"), ("0.97", "1.13"), ("1.11", "0.81"), ("0.83", "1.00")]
)
def test_a_row_that_contradicts_itself(old: str, new: str) -> None:
    with pytest.raises(OutputError, match="is not between") as caught:
        parse_osu(ALLREDUCE.replace(old, new, 1))
    assert caught.value.verdict is Verdict.INCORRECT


@pytest.mark.parametrize(
    ("name", "word", "other"), [("init", "min: ", "min: 1"), ("ibarrier_f", "3.78", "0.01")]
)
def test_another_table_that_contradicts_itself(name: str, word: str, other: str) -> None:
    text = (CORPUS / "osu" / f"mpich-{name}.txt").read_text()
    with pytest.raises(OutputError, match="is not between"):
        parse_osu(text.replace(word, other))


def test_rounding_is_no_contradiction() -> None:
    assert parse_osu(ALLREDUCE.replace("0.97", "0.82", 1).replace("1.11", "0.83", 1))


@pytest.mark.parametrize(
    ("name", "verdict", "shown"),
    [
        ("crash", Verdict.INCOMPLETE, "line 2: not a line of OSU: ====="),
        ("fop_latency_c", Verdict.INCORRECT, "line 13: wrong data was received: FAILED: MPI_SUM"),
        ("neighbor_two", Verdict.INCOMPLETE, "line 2: the program gave up: ERROR: the given"),
        ("hello", Verdict.INCOMPLETE, "line 1: a table without its header"),
        ("openmpi-int8", Verdict.INCORRECT, "line 9: wrong data was received: 16    "),
        ("usage", Verdict.INCOMPLETE, "line 1: not a line of OSU: Usage: osu_ibarrier"),
        ("wrong_data", Verdict.INCORRECT, "line 8: wrong data was received: 32    "),
    ],
)
def test_refused_outputs_of_the_corpus(name: str, verdict: Verdict, shown: str) -> None:
    with pytest.raises(OutputError) as caught:
        parse_osu((CORPUS / "osu" / "refused" / f"{name}.txt").read_text())
    assert (caught.value.verdict, str(caught.value)[: len(shown)]) == (verdict, shown)


BEGINNINGS = [
    *("# Number of errors: 3", "# Number of Sender threads: 2 failed", "# Number of "),
    *("Time took to create topology graph: for ever", "Dimensions size = ", "Dimensions size = x"),
]
ENDS = ["-------x", "--", "PASSED:", "Atomic Data Validation results for me"]


@pytest.mark.parametrize(
    ("text", "why"),
    [(f"{line}\n{BARRIER}", "line 1: not a line of OSU") for line in BEGINNINGS]
    + [(f"{BARRIER}{line}\n", "line 5: ") for line in ENDS],
)
def test_a_line_that_only_begins_like_one_of_osu_is_refused(text: str, why: str) -> None:
    with pytest.raises(OutputError, match=why):
        parse_osu(text)


def test_a_message_is_short_and_harmless() -> None:
    with pytest.raises(OutputError) as caught:
        parse_osu(ALLREDUCE + "\x1b[31m" + "x" * 10**6 + "\n")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300
    assert r"\x1b[31mxxx" in str(caught.value)


def is_start(part: tuple[OutputTable, ...], whole: tuple[OutputTable, ...]) -> bool:
    """Whether the tables are those of the whole, up to a row of one of them."""
    if not part:
        return False
    *full, last = part
    other = whole[len(full)]
    same_header = (last.identity, last.columns) == (other.identity, other.columns)
    rows = last.rows == other.rows[: len(last.rows)]
    return tuple(full) == whole[: len(full)] and same_header and rows


def test_a_cut_off_output_is_refused_or_visibly_shorter() -> None:
    for path in OSU:
        text = path.read_text()
        whole = parse_osu(text)
        for cut in cuts(text):
            found = outcome(parse_osu, cut)
            where = path, len(cut)
            if isinstance(found, OutputError):
                assert found.verdict is Verdict.INCOMPLETE, where
            else:
                assert cut.endswith("\n") and is_start(found.tables, whole.tables), where


@given(st.data())
@settings(max_examples=150)
def test_two_outputs_mixed_line_by_line_are_refused(data: st.DataObject) -> None:
    """Also two of the same program: the second title, header or row shows it."""
    first, second = (data.draw(st.sampled_from(OSU)).read_text() for _ in range(2))
    lines = [text.splitlines(keepends=True) for text in (first, second)]
    mixed = ""
    while all(lines):
        mixed += lines[data.draw(st.integers(0, 1))].pop(0)
    rest = "".join(lines[0] + lines[1])
    assert isinstance(outcome(parse_osu, mixed + rest), OutputError)


def test_imb_is_not_osu() -> None:
    assert IMB
    for path in IMB:
        with pytest.raises(OutputError, match="line 1: not a line of OSU: #----"):
            assert not parse_osu(path.read_text()), path


def rows(number: int) -> str:
    head = BARRIER.replace("# Avg", "# Size   Avg").rpartition("  0.24")[0].rstrip(" ")
    return head + "".join(f"{size}   0.24\n" for size in range(number))


def types(number: int) -> str:
    header = "# Datatype: {}.\n# Size       Avg Latency(us)\n"
    return ALLREDUCE.partition("# Data")[0] + "".join(header.format(each) for each in range(number))


@pytest.mark.parametrize("make", [rows, types])
def test_work_grows_with_the_lines(make) -> None:
    small, large = make(250), make(2000)
    ratio = calls(lambda: parse_osu(large)) / calls(lambda: parse_osu(small))
    assert ratio < 8.5


@pytest.mark.parametrize(
    "unit", ["9", " 9", "  ", " v", "# ", "a: ", "P9 Tail ", "Size  ", " P9 Tail  ", "[ pairs: 2 ] "]
)
@pytest.mark.parametrize(
    "start",
    [
        *("", "# OSU ", ALLREDUCE, ALLREDUCE + "# ", ALLREDUCE + "# Datatype: "),
        BARRIER.partition("# Avg")[0] + "# ",
    ],
)
def test_work_grows_with_the_length_of_a_line(unit: str, start: str) -> None:
    """16 times as long a line, and not 256 times the work: no expression goes back and forth."""
    small, large = (start + unit * number + "\n" for number in (1_250, 20_000))
    assert least_growth(lambda text: outcome(parse_osu, text), small, large, enough=64) < 64
