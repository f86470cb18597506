"""Wrong use of mpicost: one line on rank 0, exit code 2 on all ranks, and no hang."""

from pathlib import Path

import pytest

from tests.support.faults import Declared, plants
from tests.support.mpicost import FAMILIES, TINY, Ended, library, lines, preload, program

WARM = ("--cache", "warm")
BARRIER = (*WARM, "--sync", "barrier")
LOOP = (*WARM, "--sync", "loop")
WRONG = {
    "unknown option": (("--no-such-option",), "--no-such-option"),
    "stray word": (("bcast",), "bcast"),
    "missing value": (("--trials",), "--trials"),
    "negative trials": (("--trials", "-3"), "--trials"),
    "one trial": (("--trials", "1"), "--trials"),
    "bytes not a multiple of 8 where numbers are reduced": (("--bytes", "8,12"), "reduce_sum"),
    "bytes negative": (("--bytes", "-8"), "-8"),
    "bytes not a number": (("--bytes", "8k"), "8k"),
    "bytes empty": (("--bytes", ""), "--bytes"),
    "bytes twice": (("--bytes", "8,8"), "--bytes"),
    "bytes beyond any number": (("--bytes", "99999999999999999999"), "--bytes"),
    "more elements than a count holds": (("--bytes", "17179869184"), "17179869184"),
    "unknown routine": (("--routine", "bcast,broadcast"), "broadcast"),
    "routine twice": (("--routine", "bcast,bcast"), "bcast"),
    "own sizes of a routine without payload": (("--routine", "barrier:8"), "barrier"),
    "own sizes and sizes for all": (("--routine", "bcast:8", "--bytes", "8"), "--bytes"),
    "own size not a multiple of 8": (("--routine", "bcast:8,scan_sum:12"), "--routine: 12"),
    "own size twice": (("--routine", "bcast:8:8"), "--routine: 8"),
    "own size empty": (("--routine", "bcast:,gather"), "--routine: ''"),
    "unknown family": (("--family", "taboada"), "taboada"),
    "more bytes than a count holds": (("--routine", "bcast:2147483649"), "2147483649"),
    "blocks that are more than one message holds": (
        ("--routine", "scatter_as_bcast:8589934592", "--memory-limit", "9000000000000"),
        "does not fit",
    ),
    "family and routine": (("--family", "luecke", "--routine", "bcast"), "--family"),
    "peer that is not there": (("--peers", "2"), "2"),
    "peer 0": (("--peers", "0"), "0"),
    "peers without pingpong": (("--routine", "bcast", "--peers", "1"), "--peers"),
    "unknown synchroniser": (("--sync", "luck"), "luck"),
    "unknown cache state": (("--cache", "cold"), "cold"),
    "flush of nothing": (("--flush-bytes", "0"), "--flush-bytes"),
    "flush of warm caches": (("--cache", "warm", "--flush-bytes", "64"), "--flush-bytes"),
    "settling for ever": (("--settle", "inf"), "--settle"),
    "settling for less than nothing": (("--settle", "-1"), "--settle"),
    "settling for no number": (("--settle", "nan"), "--settle"),
    "error of 100 %": (("--relative-error", "1"), "--relative-error"),
    "error that is no number": (("--relative-error", "nan"), "--relative-error"),
    "negative seed": (("--seed", "-1"), "--seed"),
    "memory limit that is no number": (("--memory-limit", "4G"), "4G"),
    "output without name": (("--output", ""), "--output"),
    "line break in an option": (("--a\nb",), "--a?b"),
    "back to back, and flushed": (("--back-to-back", "5"), "--back-to-back"),
    "back to back in windows": ((*WARM, "--sync", "window", "--back-to-back", "5"), "--sync window"),
    "back to back in a loop": ((*LOOP, "--back-to-back", "5"), "--sync loop"),
    "back to back by no number": ((*BARRIER, "--back-to-back", "few"), "--back-to-back few"),
    "back to back after less than none": ((*BARRIER, "--back-to-back", "-1"), "--back-to-back -1"),
    "back to back after too many": ((*BARRIER, "--back-to-back", "1000001"), "--back-to-back 1000001"),
    "loop of cold calls": (("--cache", "evict", "--sync", "loop"), "--sync loop: needs --cache warm"),
    "time of no loop": ((*WARM, "--loop-seconds", "1"), "--loop-seconds: is of --sync loop only"),
    "loop of no time": ((*LOOP, "--loop-seconds", "0"), "--loop-seconds 0"),
    "loop of too long a time": ((*LOOP, "--loop-seconds", "11"), "--loop-seconds 11"),
}


#: Wrong in itself, and wrong for so many processes: what is refused is the same with every MPI.
EVERYWHERE = ("unknown option", "peer that is not there")
TRIED = [("mpich", name) for name in WRONG] + [("openmpi", name) for name in EVERYWHERE]


@plants("use", "an option, a value or a size that cannot be, in 49 ways", "mpicost itself", "", 2,
        "mpicost: ")  # fmt: skip
@pytest.mark.parametrize(("family", "name"), TRIED)
def test_wrong_use(family: str, name: str, declared: Declared) -> None:
    options, named = WRONG[name]
    ended = program(family).run(2, *(() if {"warm", "evict"} & {*options} else TINY), *options)
    assert named in complaint(ended, declared)
    assert ended.output == ""


def complaint(ended: Ended, declared: Declared | None = None) -> str:
    """The one line of a program that was refused, held against the fault that a test declares."""
    (line,) = ended.complaints
    if declared:
        declared.check((), ended.status, [line])
    else:
        assert ended.status == 2
    return line


@plants("use", "a size that does not fit into the memory", "mpicost itself", "", 2,
        "bcast with 16000000000 bytes")  # fmt: skip
@pytest.mark.parametrize("family", FAMILIES)
def test_size_that_does_not_fit_is_refused_by_name(family: str, declared: Declared) -> None:
    options = (*TINY, "--routine", "alltoall,bcast", "--bytes", "8,16000000000")
    complaint(program(family).run(3, *options, "--memory-limit", "1000000000"), declared)


LIMITED = ("sh", "-c", 'ulimit -v 8000000; exec "$@"', "sh")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("sizes", "wrapper", "said"),
    [("16000000000000", (), "more than"), ("8,12000000000", LIMITED, "allgather with 12000000000 bytes")],
    ids=["a call", "the memory of the process"],
)
def test_size_beyond_what_a_call_or_the_memory_can_take_is_refused(family, sizes, wrapper, said):
    options = (*TINY, "--routine", "allgather", "--bytes", sizes)
    assert said in complaint(program(family).run(2, *options, wrapper=wrapper))


def test_memory_limit_counts_what_all_ranks_of_a_routine_send() -> None:
    """1 MB a block: bcast needs one block, alltoall as many as there are ranks in each buffer."""
    options = (*TINY, "--bytes", "1000000", "--memory-limit", "5000000")
    assert program("mpich").run(3, "--routine", "bcast", "--trials", "2", *options).status == 0
    refused = program("mpich").run(3, "--routine", "bcast,alltoall", *options)
    assert "alltoall with 1000000 bytes" in complaint(refused)


def test_memory_limit_covers_the_flush_array() -> None:
    options = ("--routine", "barrier", "--flush-bytes", "1000000", "--memory-limit", "900000")
    assert "flush array" in complaint(program("mpich").run(2, *options))


@plants("use", "ranks with different arguments", "mpicost itself", "", 2, "mpicost: ")
def test_ranks_with_different_arguments_do_not_hang(declared: Declared) -> None:
    mpicost = program("mpich")
    other = (":", "-n", "1", str(mpicost.build / "mpicost"), *TINY)
    complaint(mpicost.run(1, *TINY, "--trials", "2", *other), declared)


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("--routine=pingpong", "pingpong"),
        ("--routine=tournament", "tournament"),
        ("--family=swaps", "swap_first_sendrecv"),
    ],
)
def test_a_single_process_has_no_partner(option: str, named: str) -> None:
    ended = program("mpich").run(1, *TINY, option)
    assert f"{named} needs 2 processes" in complaint(ended)


def test_what_has_no_partner_is_left_out_beside_what_needs_none() -> None:
    few = ("--routine", "pingpong,tournament,rightshift", "--bytes", "8", "--trials", "2")
    ended = program("mpich").run(1, *TINY, *few)
    assert ended.status == 0
    assert "pingpong: no case" in ended.output and "tournament: no case" in ended.output
    assert "\nrightshift" in ended.output


@pytest.mark.parametrize("family", FAMILIES)
def test_help_and_version(family: str) -> None:
    assert "--relative-error" in program(family).run(2, "--help").output
    version = program(family).run(2, "--version").output
    assert version.startswith("mpicost 0.1.0\n")
    assert {"mpich": "MPICH", "openmpi": "Open MPI"}[family] in version


@plants("lost", "a full disk, or a folder that is not there", "`--output` of mpicost itself", "", 3,
        "/dev/full | /no/such/directory/out.jsonl")  # fmt: skip
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("file", ["/dev/full", "/no/such/directory/out.jsonl"])
def test_output_that_cannot_be_written(family: str, file: str, declared: Declared) -> None:
    ended = program(family).run(2, *TINY, "--trials", "3", "--bytes", "8", "--output", file)
    assert file in complaint(ended, declared)


@plants("lost", "a disk that fills up in the middle", "records of mpicost itself", "", 3,
        "out.jsonl")  # fmt: skip
def test_disk_that_fills_up_in_the_middle_leaves_no_end_record(tmp_path: Path, declared: Declared):
    file = tmp_path / "out.jsonl"
    wrapper = preload(library("mpich", "full_disk"))
    ended = program("mpich").run(1, *TINY, "--output", str(file), wrapper=wrapper)
    assert str(file) in complaint(ended, declared)
    written = file.read_text()
    assert '"record":"case"' in written
    assert '"record":"end"' not in written


@plants("lost", "data that the file system loses in the end", "records of mpicost itself", "", 3,
        "out.jsonl")  # fmt: skip
def test_data_lost_by_the_file_system_leaves_no_end_record(tmp_path: Path, declared: Declared):
    file = tmp_path / "out.jsonl"
    options = (*TINY, "--trials", "3", "--bytes", "8", "--output", str(file))
    ended = program("mpich").run(2, *options, wrapper=preload(library("mpich", "lost_data")))
    complaint(ended, declared)
    assert {record["record"] for record in lines(file)} == {"run", "case"}
