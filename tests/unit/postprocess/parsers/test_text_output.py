"""What the readers of OSU and IMB have in common: lines of others are taken out and counted, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.model.verdict import Verdict
from postprocess.parsers.imb import parse_imb
from postprocess.parsers.osu import parse_osu
from postprocess.parsers.text_output import OutputError, is_foreign
from tests.support.faults import Declared, each_of, plants

ALLREDUCE = """\

# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)        Validation
8                       1.51              Pass
16                      1.52              Pass
"""
UCX = "[1754021333.118227] [n014:88213:0]            sock.c:515  UCX  {}  unable to read a file"
HELP = """\
--------------------------------------------------------------------------
WARNING: There was an error initializing an OpenFabrics device.

  Local host:   n014
  Local device: mlx5_0
--------------------------------------------------------------------------"""
HARMLESS = [
    UCX.format("WARN"),
    UCX.format("DIAG"),
    "n014:88213 [async] UCX  WARN  device mlx5_3:1 is not available",
    "libfabric:812:1700000000::ofi_rxm:core:rxm_getinfo():88<warn> cannot open mlx5_0",
    "WARNING: release_mt library was used but no multi-ep feature was enabled.",
    "[0] MPI startup(): Intel(R) MPI Library, Version 2021.14  Build 20241121",
    "n014:88213:88213 [0] NCCL INFO Bootstrap : Using eth0:10.1.1.4<0>",
    "[n014:88213] 7 more processes have sent help message help-mpi.txt / error in device init",
    '[n014:88213] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages',
    "\x1b[33mWARN\x1b[0m the fabric has one rail",
    "2025-03-04 02:10:11 INFO the fabric has one rail",
    HELP,
]
REFUSED = [
    UCX.format("ERROR"),
    UCX.format("FATAL"),
    "srun: error: n014: task 0: Killed",
    "mpirun noticed that process rank 1 with PID 9 on node n014 exited on signal 9 (Killed).",
    "[n014:88213] *** An error occurred in MPI_Allreduce",
    "application called MPI_Abort(MPI_COMM_WORLD, 16) - process 1",
    "WARNING: out of memory, the process was killed",
    "Cannot allocate buffers",
    HELP.replace("WARNING: There was an error initializing", "MPI_ABORT was invoked on"),
    HELP.rpartition("\n")[0],  # no end of it
    # with a part of a table in it
    UCX.format("WARN") + "32                      1.53              Pass",
    UCX.format("WARN") + "        1.53",
    UCX.format("WARN") + "# Size       Avg Latency(us)",
    # not at the margin, or a word that may be the rest of a row
    "  " + UCX.format("WARN"),
    "Pass",
    "1.53   Pass",
    "a\x00b c",
]


def insert(text: str, line: str, place: int) -> str:
    """An output with a further line."""
    lines = text.split("\n")
    return "\n".join([*lines[:place], line, *lines[place:]])


@pytest.mark.parametrize("line", HARMLESS)
@pytest.mark.parametrize("place", [0, 2, 5, 6])
def test_whole_lines_of_others_are_taken_out_and_counted(line: str, place: int):
    found = parse_osu(insert(ALLREDUCE, line, place))
    assert found.tables == parse_osu(ALLREDUCE).tables
    assert found.foreign == line.count("\n") + 1
    assert found.first_foreign.strip("-")


@pytest.mark.parametrize("line", REFUSED)
@pytest.mark.parametrize("place", [0, 5, 6])
def test_what_may_be_an_error_or_a_part_of_a_table_is_refused(line: str, place: int):
    with pytest.raises(OutputError):
        parse_osu(insert(ALLREDUCE, line, place))


TAGS = ["[1,0]<stdout>:", "[prterun-n1-7@1,0]<stdout>: ", "[1,0][n1:77]<stdout>: ", "0: ", " 0: "]
TAGS += ["[0] ", "n014.cluster 0: "]


@pytest.mark.parametrize("tag", TAGS)
def test_tags_of_ranks_are_taken_off(tag: str):
    tagged = "".join(f"{tag}{line}\n" for line in ALLREDUCE.splitlines())
    assert parse_osu(tagged).tables == parse_osu(ALLREDUCE).tables
    other = tag.replace("0", "3") + "UCX  WARN  of another rank\n"
    assert parse_osu(tagged + other).foreign == 1


@given(st.text(alphabet=" 0123456789.#-\tabPFinfnae", max_size=40), st.sampled_from(HARMLESS[:5]))
def test_no_row_is_ever_taken_for_a_line_of_others(row: str, line: str):
    row = f"16  {row}  1.52"
    assert not is_foreign(row) and not is_foreign(line + row)


@plants(
    "data", "a validation that fails, under the tag of a rank", "output of OSU", "incorrect", 1,
    "line 6: wrong data was received: [1,0]<stdout>:16",
)  # fmt: skip
def test_wrong_data_under_a_tag_is_incorrect(declared: Declared):
    text = "".join(f"[1,0]<stdout>:{line}\n" for line in ALLREDUCE.splitlines())
    with declared.raises(OutputError):
        parse_osu(text.replace("1.52              Pass", "1.52              Fail"))


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_osu, ALLREDUCE + UCX.format("WARN") + "32                      1.53              Fail\n"),
        (parse_imb, "[1,3]<stdout>:3: Error Ireduce_scatter,size = 4,sample #0\n"),
    ],
)
def test_wrong_data_behind_words_of_others_or_a_tag_is_incorrect(parse, text: str):
    with pytest.raises(OutputError) as caught:
        parse(text)
    assert caught.value.verdict is Verdict.INCORRECT


WRITTEN = {
    UCX.format("ERROR"): plants("output", "an error of UCX between two rows", "output of OSU", "incomplete", 1,
        "UCX wrote this; UCX_LOG_FILE=stderr"),
    "srun: error: n014: task 0: Killed": plants("output", "an error of srun", "output of OSU", "incomplete", 1,
        "Slurm wrote this"),
}  # fmt: skip


@pytest.mark.parametrize("line", each_of(WRITTEN))
def test_a_message_says_who_wrote_what_is_refused(line: str, declared: Declared):
    with declared.raises(OutputError):
        parse_osu(insert(ALLREDUCE, line, 5))
