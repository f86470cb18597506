"""What becomes of a launch: each way of going wrong has one verdict and a reason of one line."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postprocess.judging import outcome
from postprocess.model.case import NAMED
from postprocess.model.plan import PlannedLaunch, SkippedCase, read_plan, write_launch
from postprocess.model.verdict import Verdict
from postprocess.parsers.osu_imb_launch import FIRST_FOREIGN, FOREIGN
from tests.support.factories import benchmark, record
from tests.support.factories.launch import CASES, LIBRARY, case, leave, planned
from tests.support.faults import Declared, plants

Records = list[dict[str, Any]]


def assessed(
    session: Path, records: Records | None = None, code: str | None = "0\n", launch: PlannedLaunch | None = None
) -> tuple[str, str]:
    """Verdict and reason of a launch that left this; ``("", "")`` if its values can be judged."""
    launch = launch or planned()
    leave(session, launch, records, code)
    found = outcome.assess_launch(launch, session)
    assert (found.records is None) == (found.verdict is not None)
    assert "\n" not in found.reason
    return str(found.verdict or ""), found.reason


def whole(**changes: Any) -> Records:
    return record.launch(**changes)


def test_a_launch_that_went_well_hands_over_its_records(tmp_path: Path):
    leave(tmp_path, planned(), whole())
    found = outcome.assess_launch(planned(), tmp_path)
    assert (found.verdict, found.reason) == (None, "")
    assert {each.variable for each in found.records.cases} == {each.variable for each in CASES}


@pytest.mark.parametrize(
    ("code", "verdict", "reason"),
    [
        *((f"{code}\n", "crashed", f"the program ended with exit code {code}") for code in (1, 2, 9, 255, -11)),
        (
            "127\n",
            "crashed",
            "the program ended with exit code 127: its launcher, the program or a library of it was not found; "
            "where it is the launcher, name it by launcher in the environment",
        ),
        ("3\n", "incomplete", "the program could not write its results (exit code 3)"),
        ("4\n", "incomplete", "every trial of a case missed its start window (exit code 4)"),
        *(
            (f"{code}\n", "crashed", f"the program ended with exit code {code}, {signal}")
            for code, signal in ((129, "SIGHUP"), (134, "SIGABRT"), (137, "SIGKILL"), (139, "SIGSEGV"))
        ),
        *(
            (nothing, "crashed", "the job ended before the program did")
            for nothing in (None, "", "zero\n", "0 0\n")
        ),
    ],
)
@pytest.mark.parametrize("left", ["everything", "nothing", "half"])
def test_no_exit_code_but_zero_is_well(tmp_path, code, verdict, reason, left):
    records = {"everything": whole(), "nothing": None, "half": whole()[:2]}[left]
    assert assessed(tmp_path, records, code) == (verdict, reason)


@plants("data", "a wrong element, with any exit code", "records of mpicost", "incorrect", 1,
        "wrong data: bcast with 1000000 bytes: rank 1 received -1 in element 9")  # fmt: skip
@pytest.mark.parametrize("code", ["0\n", "2\n", "139\n", None])
def test_wrong_data_is_named_whatever_the_exit_code(tmp_path, code: str | None, declared):
    """All of the launch is incorrect then: mpicost returns 1 for wrong data and nothing else."""
    declared.check_case(*assessed(tmp_path, record.receive_wrong_data(whole(), 2), code))


@pytest.mark.parametrize("change", [{"mpi_library": "other"}, {"trials": 52}, {"processes": 3}])
def test_wrong_data_is_no_excuse_for_another_run(tmp_path: Path, change: dict[str, Any]):
    records = record.receive_wrong_data(whole(), 2)
    records[0] |= change
    assert assessed(tmp_path, records, "1\n")[0] == "incorrect"


@plants("output", "nothing, with exit code 0", "records of mpicost", "incomplete", 1,
        "the program wrote no result")  # fmt: skip
def test_no_results_at_all_although_the_program_says_it_went_well(tmp_path, declared):
    declared.check_case(*assessed(tmp_path, None))


@plants("output", "one case less, without contradiction", "records of mpicost", "incomplete", 1,
        "missing from the output: local:cpu:mpich-5_0_2:mpicost:")  # fmt: skip
def test_a_case_that_did_not_come_is_incomplete_and_named(tmp_path: Path, declared: Declared):
    records = whole()
    del records[2]
    records[0]["cases"] = records[-1]["cases"] = 3
    verdict, reason = assessed(tmp_path, records)
    assert (verdict, reason) == ("incomplete", f"missing from the output: {CASES[1].key}")
    declared.check_case(verdict, reason)


def test_many_missing_cases_are_counted(tmp_path: Path):
    more = [case("bcast", 8 * size) for size in range(2, 12)]
    verdict, reason = assessed(tmp_path, whole(), launch=planned(cases=(*CASES, *more)))
    assert verdict == "incomplete"
    assert reason.count("mpich-5_0_2:mpicost") == NAMED
    assert reason.endswith(f" and {10 - NAMED} more")


@plants("output", "a case that was not planned", "records of mpicost", "incorrect", 1,
        "in the output but not planned: ")  # fmt: skip
def test_a_case_that_nobody_asked_for_is_incorrect_and_named(tmp_path: Path, declared: Declared):
    verdict, reason = assessed(tmp_path, whole(), launch=planned(cases=CASES[:-1]))
    assert (verdict, reason) == ("incorrect", f"in the output but not planned: {CASES[-1].key}")
    declared.check_case(verdict, reason)


@pytest.mark.parametrize(
    ("asked", "ran", "verdict"),
    [
        ("Open MPI v5.0", "Open MPI v5.0.11, package", ""),
        ("Open MPI v5.0.11", "Open MPI v5.0.11, package", ""),
        ("Open MPI v5.0.1", "Open MPI v5.0.11, package", "incorrect"),
        ("MPICH Version: 4.3", "MPICH Version: 4.3.0 MPICH", ""),
        ("MPICH Version: 4.3", "MPICH Version: 4.30", "incorrect"),
        ("MPICH Version: .*", "MPICH Version: 4.3", "incorrect"),
        ("MPICH  Version: 5.0.2\n", "MPICH Version:\t\t5.0.2\nMPICH Release date: today", ""),
        *((nothing, LIBRARY, "incorrect") for nothing in ("", " \n")),
    ],
)
def test_the_beginning_of_a_version_is_enough_but_not_of_a_number(tmp_path, asked, ran, verdict):
    found, reason = assessed(tmp_path, whole(mpi_library=ran), launch=planned(library=asked))
    assert found == verdict
    assert not verdict or reason.startswith(f"ran on {' '.join(ran.split())!r}, not on ")


def standard_abi(library: str = "/else/libmpi_abi.so.1") -> dict[str, Any]:
    """What a program of the standard ABI tells of itself."""
    return {"standard_abi": {"version": "1.0", "program": "0" * 16, "library": library}}


OTHERWISE = plants(
    "stale", "the same routines in another state of the caches or with another start",
    "records of mpicost", "incomplete", 1, "missing from the output: ")  # fmt: skip
OTHER_MPI = plants(
    "stale", "another MPI, or another version of it", "what a launch ran on", "incorrect", 1,
    "ran on …, not on 'MPICH Version: 5.0.2'; ./plumbline setup looks at the MPIs again")  # fmt: skip
IN_CONTAINER = plants(
    "stale", "another MPI in a container than the site file names, or another version of it",
    "what a launch ran on", "incorrect", 1,
    "ran on …, not on 'MPICH Version: 5.0.2'; the site file must name the MPI that is in ")  # fmt: skip
INTERFACE = plants(
    "builds", "a program of another binary interface than asked for", "what a launch ran",
    "incorrect", 1, "the program's binary interface is the MPI's own, not the standard ABI | "
    "the program's binary interface is the standard ABI, not the MPI's own")  # fmt: skip
LIBRARY_OF_ABI = plants(
    "builds", "a library of the standard ABI that is not the one named", "a launch", "incorrect",
    1, "ran on /else/libmpi_abi.so.1, not on the library of …; see LD_LIBRARY_PATH")  # fmt: skip
WORLD = plants(
    "schedulers", "a world of 4 processes instead of 2", "a launcher", "incorrect", 1,
    "ran 4 processes, 4 per node, not 2 processes, 2 per node")  # fmt: skip
NODES = plants(
    "schedulers", "the right processes on other nodes", "a launcher", "incorrect", 1,
    "ran 2 processes, 1 per node, not 2 processes, 2 per node")  # fmt: skip
TRIALS = plants(
    "output", "51 trials instead of 11", "records of mpicost", "incorrect", 1, "ran 51 trials, not 11"
)


@pytest.mark.parametrize(
    ("ran", "plan"),
    [
        pytest.param({"cache": "warm"}, {}, marks=OTHERWISE),
        pytest.param({"sync": "barrier"}, {}, marks=OTHERWISE),
        pytest.param({"program": "other"}, {}, marks=OTHERWISE),
        pytest.param({"mpi_library": "MPICH Version: 4.3.0"}, {}, marks=OTHER_MPI),
        pytest.param({"mpi_library": "MPICH Version: 5.0.\n2"}, {}, marks=OTHER_MPI),
        pytest.param({"mpi_library": "Open MPI v5.0.11, package: x"}, {}, marks=OTHER_MPI),
        pytest.param({"mpi_library": "MPICH Version: 4.3.2"}, {"in_container": True}, marks=IN_CONTAINER),
        pytest.param(
            {"mpi_library": "Open MPI v5.0.11, package: x"}, {"in_container": True}, marks=IN_CONTAINER
        ),
        pytest.param({}, {"standard_abi": "/opt/lib"}, marks=INTERFACE),
        pytest.param(standard_abi(), {}, marks=INTERFACE),
        pytest.param(standard_abi(), {"standard_abi": "/usr"}, marks=LIBRARY_OF_ABI),
        pytest.param({"processes": 4}, {}, marks=WORLD),
        pytest.param(
            {"per_node": 1, "hosts": [{"name": "n1", "ranks": 1}, {"name": "n2", "ranks": 1}]}, {}, marks=NODES
        ),
        pytest.param({}, {"trials": 11}, marks=TRIALS),
    ],
)
def test_what_ran_otherwise_than_planned_is_named(tmp_path: Path, ran, plan, declared: Declared):
    declared.check_case(*assessed(tmp_path, whole(**ran), launch=planned(**plan)))


def test_the_library_of_the_standard_abi_may_be_reached_through_a_link(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    told = standard_abi(f"{tmp_path.resolve()}/real/libmpi_abi.so.1")
    assert assessed(tmp_path, whole(**told), launch=planned(standard_abi=f"{tmp_path}/link")) == ("", "")
    assert assessed(tmp_path, whole(**told), launch=planned(standard_abi="/of/a/compute/node")) == ("", "")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "libmpi_abi.so.1").symlink_to("../real/libmpi_abi.so.1")
    assert assessed(tmp_path, whole(**told), launch=planned(standard_abi=f"{tmp_path}/files")) == ("", "")


@plants("schedulers", "worlds of one process that garble their file",
        "a launcher of another MPI", "incorrect", 1,
        "started 2 singleton processes instead of one MPI_COMM_WORLD of 2: the launcher does "
        "not match the MPI of mpich-5_0_2; see its launcher in the site file")  # fmt: skip
@pytest.mark.parametrize("damage", ["", "{", '"record"'])
def test_many_worlds_of_one_process_are_named_even_if_they_garbled_their_file(
    tmp_path: Path, damage: str, declared: Declared
):
    launch = planned()
    leave(tmp_path, launch, whole(processes=1))
    file = launch.records(tmp_path)
    file.write_text(file.read_text().replace("\n", f"\n{damage}", 1))
    found = outcome.assess_launch(launch, tmp_path)
    assert found.verdict == Verdict.INCORRECT
    declared.check_case(str(found.verdict), found.reason)


opened: list[str] = []
sys.addaudithook(lambda event, words: opened.append(str(words[0])) if event == "open" else None)


@pytest.mark.parametrize("program", ["mpicost", "osu"])
@pytest.mark.parametrize("is_whole", [True, False])
def test_what_a_program_wrote_is_read_once(tmp_path: Path, program: str, is_whole: bool):
    launch = planned() if program == "mpicost" else benchmark.start()
    if program == "mpicost":
        leave(tmp_path, launch, whole() if is_whole else whole()[:2])
        written = launch.records(tmp_path)
    else:
        benchmark.leave(tmp_path, launch, benchmark.osu_text(), witness=None if is_whole else [])
        written = launch.witness(tmp_path)
    opened.clear()
    found = outcome.assess_launch(launch, tmp_path)
    assert (found.verdict is None) == is_whole, found.reason
    assert opened.count(str(written)) == 1


def test_damaged_records_of_a_larger_world_are_not_taken_for_many_worlds(tmp_path: Path):
    launch = planned()
    leave(tmp_path, launch, whole(processes=12, mpi_library='"processes":1,'))
    file = launch.records(tmp_path)
    file.write_text(file.read_text() + "{")
    assert "world" not in outcome.assess_launch(launch, tmp_path).reason


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([2, 2, 1], ""),
        ([1, 2, 2], ""),  # which host has the rest is the launcher's business
        ([2, 1, 1, 1], "ran 2 + 3 x 1 processes on its hosts, not 2 x 2 + 1"),
    ],
)
def test_every_host_must_have_the_ranks_that_the_layout_gives_it(tmp_path, ranks, said):
    hosts = [{"name": f"n{i}", "ranks": each} for i, each in enumerate(ranks)]
    launch = planned(cases=tuple(replace(each, processes=5, per_node=2) for each in CASES))
    records = whole(processes=5, per_node=2, hosts=hosts)
    assert assessed(tmp_path, records, launch=launch) == ("incorrect" if said else "", said)


@plants("schedulers", "ranks dealt cyclically over nodes", "a launcher", "incorrect", 1,
        "ranks are distributed cyclically over nodes")  # fmt: skip
def test_ranks_that_are_strewn_over_hosts_are_incorrect(tmp_path: Path, declared: Declared):
    """As with ``srun --distribution=cyclic``: every host has the right number, of the wrong ranks."""
    launch = planned(cases=tuple(replace(each, processes=4, per_node=2) for each in CASES))
    hosts = [{"name": "n1", "ranks": 2}, {"name": "n2", "ranks": 2}]
    ranks = [{"rank": rank, "host": f"n{1 + rank % 2}", "cpus": str(rank // 2)} for rank in range(4)]
    said = whole(processes=4, per_node=2, hosts=hosts)
    assert assessed(tmp_path, said, launch=launch) == ("", "")
    said = whole(processes=4, per_node=2, hosts=hosts, ranks=ranks)
    declared.check_case(*assessed(tmp_path, said, launch=launch))


@plants("schedulers", "two ranks on two cores instead of the hardware threads of one", "a launcher",
        "incorrect", 1, "1 ranks are bound to its core, not 2")  # fmt: skip
def test_ranks_that_are_not_on_the_threads_of_a_core_are_incorrect(tmp_path: Path, declared: Declared):
    launch = planned(ranks_per_core=2)
    host = whole()[0]["hosts"][0]["name"]
    threads = [{"rank": n, "host": host, "cpus": str(8 * n), "core": "0,8"} for n in range(2)]
    assert assessed(tmp_path, whole(ranks=threads), launch=launch) == ("", "")
    cores = [{"rank": n, "host": host, "cpus": str(n), "core": f"{n},{n + 8}"} for n in range(2)]
    declared.check_case(*assessed(tmp_path, whole(ranks=cores), launch=launch))


def test_a_launch_of_which_every_case_is_skipped_did_not_fail(tmp_path: Path):
    launch = planned(cases=(), skips=(SkippedCase(CASES[0], "too large"),))
    assert (launch.processes, launch.per_node) == (2, 2)
    assert outcome.determine_outcome(launch, tmp_path, None).verdict == Verdict.SKIPPED
    write_launch(tmp_path, launch)
    assert read_plan(tmp_path) == [launch]


# ---------------------------------------------------------------- records of another launch

LAUNCH = replace(planned(), token="a1", options=("--trials=51",))
BEGAN = 1795251600  #: 2026-11-21T09:00:00Z, when the run record was written
SPAN = f"{BEGAN}\n{BEGAN + 20}\n"


def own(end: dict[str, Any] | None = None, **run: Any) -> Records:
    """Records of this launch, for whose run record these are changes."""
    first, *cases, last = record.launch(token="a1", command=["mpicost", "--trials=51", "--token=a1"])
    return [first | run, *cases, last | {"token": "a1"} | (end or {})]


def left(session: Path, records: Records, span: str | None = SPAN) -> None:
    leave(session, LAUNCH, records)
    if span is not None:
        LAUNCH.span(session).write_text(span)


@pytest.mark.parametrize("span", [SPAN, f"{BEGAN + 50}\n{BEGAN + 60}\n"])
def test_the_records_of_a_launch_are_its_own(tmp_path: Path, span: str) -> None:
    """The clocks of two nodes may differ a little."""
    left(tmp_path, own(), span)
    assert outcome.assess_launch(LAUNCH, tmp_path).reason == ""


@plants("stale", "without its token, of another command, or of another time",
        "records of mpicost", "incorrect", 1,
        "the records are not of this launch | the records are from | does not record when the "
        "launch began and ended")  # fmt: skip
@pytest.mark.parametrize(
    ("records", "span", "said"),
    [
        (record.launch(), SPAN, "have not its token"),  # started without one
        (own(token="b2"), SPAN, "have not its token"),
        (own({"token": "b2"}), SPAN, "have not its token"),
        (own(command=["mpicost", "--trials=5", "--token=a1"]), SPAN, "command is another"),
        (own(), f"{BEGAN + 90}\n{BEGAN + 120}\n", "but the launch ran from 2026-11-21T09:01:30Z"),
        (own(), f"{BEGAN - 200}\n{BEGAN - 100}\n", "set the clocks of the nodes"),
        (own({"ended_utc": "2026-11-21T08:59:59Z"}), SPAN, "set the clocks of the nodes"),
        (own(), None, "does not record when the launch began and ended"),
        (own(), f"{BEGAN}\n", "does not record when the launch began and ended"),
    ],
)
def test_records_of_another_launch_are_incorrect(tmp_path, records, span, said, declared):
    left(tmp_path, records, span)
    found = outcome.assess_launch(LAUNCH, tmp_path)
    assert said in found.reason
    declared.check_case(found.verdict, found.reason)


def test_lines_of_others_are_counted_and_quoted_once():
    launch = SimpleNamespace(partition="mine:cpu", environment="openmpi", program="osu")
    runs = [{FOREIGN: 2, FIRST_FOREIGN: "UCX  WARN  one"}, {FOREIGN: 1, FIRST_FOREIGN: "two"}, {}]
    found = [SimpleNamespace(launch=launch, run=run) for run in runs]
    (line,) = outcome.describe_foreign_lines(found)
    assert line.startswith("mine:cpu, openmpi, osu: 3 lines in the output of 2 launches that the program")
    assert line.endswith("the first: UCX  WARN  one")
