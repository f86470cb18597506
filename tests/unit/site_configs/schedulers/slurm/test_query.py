"""What Slurm tells, from what its commands print on large machines and on strange ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_configs.schedulers import slurm
from site_configs.schedulers.base import NodeKind, Queue, select_needed_kinds
from tests.support.factories.scheduler import CRAY, CRAY_SINFO, GROWN, NODE, answering
from tests.support.faults import Declared, each_of, plants

LINE = "work|up|infinite|1-infinite|idle|2|4|1|2000|n[1-4]|(null)"
UNTOLD = {
    "config": plants(
        "schedulers",
        "a configuration that Slurm does not show",
        "`site new`",
        "",
        0,
        "the cluster's name, and whether it keeps accounts, are not known: ",
    ),
    "node": plants(
        "schedulers",
        "nodes of a cloud, which Slurm does not know before they run",
        "`site new`",
        "",
        0,
        "cores that nodes such as nid001008 of partition standard keep for the system are not known",
    ),
    "mpi": plants(
        "schedulers",
        "an `srun` that does not tell the kinds of MPI",
        "`site new`",
        "",
        0,
        "the kinds of MPI that srun can start are not known: ",
    ),
}


def test_a_large_cray():
    found = slurm.SLURM.read(answering(CRAY))
    assert (found.title, found.backend, found.cluster) == ("Slurm", "slurm-blocks", "big-cray")
    assert found.accounting
    standard, highmem, short = found.queues
    assert [queue.name for queue in found.queues] == ["standard", "highmem", "short"]
    (nodes,) = standard.kinds
    assert (len(nodes.hosts), nodes.unusable, nodes.usable) == (5864, 4, 5860)
    assert (nodes.sockets, nodes.cores, nodes.hardware_threads) == (2, 128, 256)
    assert nodes.memory_bytes == 227328 * 1024**2
    assert (standard.default, standard.seconds, standard.most_nodes) == (True, 4 * 86400, 1024)
    assert (highmem.default, short.seconds) == (False, 1200)
    assert found.nodes_per_switch(nodes.hosts) == 256
    assert found.mpi_types == ("none", "cray_shasta", "pmi2", "pmix", "pmix_v3", "pmix_v4")
    assert found.notes == ()


def test_a_partition_of_many_kinds_has_what_selects_each():
    found = slurm.SLURM.read(answering(GROWN))
    kinds = found.queue("all").kinds
    expected = [(40, 48, "--constraint=skylake"), (124, 96, "--constraint=icelake"), (1, 8, "")]
    assert [(len(kind.hosts), kind.cores, kind.option) for kind in kinds] == expected
    assert found.queue("new").kinds[0].option == ""
    assert found.mpi_types == ("none", "pmi2", "openmpi")
    assert found.nodes_per_switch(kinds[0].hosts) == 0


def test_cores_that_are_kept_for_the_system_are_no_cores_of_a_job():
    found = slurm.SLURM.read(answering(CRAY | {"node": NODE.format(host="nid001000")}))
    kind = found.queue("standard").kinds[0]
    assert (kind.cores, kind.reserved_cores) == (120, 8)


def names(kept: list[tuple[Queue, NodeKind]]) -> list[tuple[str, int]]:
    return [(queue.name, kind.cores) for queue, kind in kept]


def test_kinds_that_reach_every_node_once():
    kept, left_out = select_needed_kinds(slurm.SLURM.read(answering(CRAY)).queues)
    assert names(kept) == [("standard", 128)]
    assert left_out == dict.fromkeys(("highmem", "short"), "its nodes are also in standard")
    kept, left_out = select_needed_kinds(slurm.SLURM.read(answering(GROWN)).queues)
    assert names(kept) == [("all", 48), ("all", 8), ("new", 96)]
    assert left_out == {"debug": "its nodes are also in all"}


def test_a_mixed_queue_is_left_out_where_others_reach_its_nodes():
    cpu, gpu = (NodeKind(hosts=(name,), cores=number) for number, name in enumerate("ab", 8))
    queues = [Queue("all", (cpu, gpu)), Queue("cpu", (cpu,)), Queue("gpu", (gpu,)), Queue("none", ())]
    kept, left_out = select_needed_kinds(queues)
    assert names(kept) == [("cpu", 8), ("gpu", 9)]
    assert left_out == {"all": "its nodes are also in cpu, gpu", "none": "has no nodes"}


@pytest.mark.parametrize(
    ("one", "two"),
    [({"default": True}, {}), ({"seconds": 0}, {"seconds": 60}), ({"seconds": 90}, {"seconds": 60})],
)
def test_of_queues_with_the_same_nodes_one_is_taken(one: dict, two: dict):
    kind = NodeKind(hosts=("a", "b"))
    for queues in ([Queue("x", (kind,), **one), Queue("y", (kind,), **two)],) * 2:
        assert [queue.name for queue, _ in select_needed_kinds(queues)[0]] == ["x"]
        assert [queue.name for queue, _ in select_needed_kinds(queues[::-1])[0]] == ["x"]


@pytest.mark.parametrize("option", ["accounting_storage/none", "(null)", ""])
def test_accounting_may_be_off(option: str):
    config = f"AccountingStorageType   = {option}\n"
    assert not slurm.SLURM.read(answering(CRAY | {"config": config})).accounting


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("infinite", 0), ("n/a", 0), ("30:00", 1800), ("5", 300), ("1:02:03", 3723)),
        *(("2-00:00:00", 172800), ("1-12", 129600)),
    ],
)
def test_limits(text: str, number: int):
    assert slurm.seconds(text) == number


def test_nodes_that_take_no_job_are_counted():
    for states, usable in (("down down* drain drng fail unk* idle* inval futr", False),
                           ("idle alloc mix comp idle~ mix- resv maint", True)):  # fmt: skip
        for state in states.split():
            (row,), notes = slurm.parse_sinfo(LINE.replace("idle", state))
            assert (row.usable, notes) == (usable, []), state


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("|2|4|1|", "|two|4|1|", "'two' is not a number"),
        ("infinite|1-", "soon|1-", "'soon' is not a duration"),
        ("n[1-4]", "n[1-", "cannot read the host list 'n[1-'"),
        ("|2000", "", "10 fields, not 11"),
        ("work", "", "11 fields, not 11"),
    ],
)
def test_a_line_that_is_not_understood_is_told_and_the_others_are_read(old, new, said):
    rows, (note,) = slurm.parse_sinfo(f"{LINE.replace(old, new, 1)}\n{LINE}\n")
    assert [row.partition for row in rows] == ["work"]
    assert note.startswith(f"not understood in the output of sinfo ({said}): ")


@pytest.mark.parametrize("text", ["", "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n", "\x00\x1b[31m|||"])
def test_sinfo_without_a_partition_is_a_clear_line(text: str):
    with pytest.raises(ValueError, match="sinfo lists no partition"):
        slurm.SLURM.read(answering(CRAY | {"sinfo": text}))


def test_topology_that_is_not_told_or_not_understood():
    without = {key: text for key, text in CRAY.items() if key not in ("topology", "mpi")}
    found = slurm.SLURM.read(answering(without))
    assert (found.switches, found.mpi_types) == ((), ())
    assert [note.partition(":")[0] for note in found.notes] == [
        "the kinds of MPI that srun can start are not known"
    ]
    found = slurm.SLURM.read(answering(CRAY | {"topology": "SwitchName=s0 Level=0 Nodes=n[1-"}))
    assert found.switches == () and "scontrol show topology" in found.notes[0]


def test_blocks_are_leaves_too():
    text = "BlockName=b1 BlockIndex=0 Nodes=n[1-18] BlockSize=18\nBlockName=b2 Nodes=n[19-36]\n"
    assert [len(leaf) for leaf in slurm.parse_topology(text)] == [18, 18]
    assert slurm.parse_topology("SwitchName=top Level=1 Nodes=n[1-4]\n") == ()


@given(st.text(max_size=80))
def test_no_output_ends_in_a_traceback(text: str):
    slurm.parse_sinfo(text)
    slurm.parse_sinfo(CRAY_SINFO.replace("2|64|2", text))
    slurm.parse_config(text)
    slurm.parse_mpi_types(text)
    try:
        slurm.SLURM.read(
            answering({"sinfo": text, "config": text, "topology": text, "mpi": text, "node": text})
        )
    except ValueError as refused:
        assert str(refused).startswith("sinfo lists no partition")


def test_the_cluster_that_the_shell_chooses_is_asked_and_named_in_the_options():
    chosen = slurm.SLURM.choose_machine({"SLURM_CLUSTERS": "rome"})
    assert chosen.asking == (("SLURM_CLUSTERS", "rome"),)
    found = chosen.read(answering(CRAY | {"sinfo": f"CLUSTER: rome\n{CRAY_SINFO}"}))
    assert found.exclusive[0] == "--clusters=rome" and "SLURM_CLUSTERS=rome" in found.notes[0]
    assert found.find_choice(["-M rome", "--exclusive"]) == {"SLURM_CLUSTERS": "rome"}
    with pytest.raises(ValueError, match="a site file is of one cluster"):
        slurm.SLURM.choose_machine({"SBATCH_CLUSTERS": "rome,skl"})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,12],login1", ["n08", "n09", "n10", "n12", "login1"]),
        ("r[1-2]c[1-2]", ["r1c1", "r1c2", "r2c1", "r2c2"]),
        ("n[1-2]-ib.site", ["n1-ib.site", "n2-ib.site"]),
        (" a , b ", ["a", "b"]),
    ],
)
def test_lists(text: str, names: list[str]):
    assert slurm.expand_hosts(text) == names


@given(st.integers(0, 10**6), st.integers(0, 300), st.integers(1, 8))
def test_a_range_is_as_many_names_of_one_width(first: int, more: int, width: int):
    names = slurm.expand_hosts(f"n[{first:0{width}d}-{first + more}]")
    assert [int(name[1:]) for name in names] == list(range(first, first + more + 1))
    assert all(len(name) > width for name in names)


@pytest.mark.parametrize(
    "text", ["n[1-", "n]1[", "n[a-b]", "n[1-2", "n[[1]]", "n[]", "n[1-99999999]", "r[1-9999]n[1-9999]"]
)
def test_what_cannot_be_read_says_so(text: str):
    with pytest.raises(ValueError):
        slurm.expand_hosts(text)


@given(st.text(max_size=40))
def test_no_text_does_worse_than_be_refused(text: str):
    try:
        assert all(isinstance(name, str) for name in slurm.expand_hosts(text))
    except ValueError as refused:
        assert str(refused)


@pytest.mark.parametrize("untold", each_of(UNTOLD))
def test_a_fact_that_is_not_told_costs_itself_alone(untold: str, declared: Declared):
    found = slurm.SLURM.read(answering({key: text for key, text in CRAY.items() if key != untold}))
    assert found.queue("standard").hosts
    assert found.accounting  # what is not known is not said to be off
    declared.check((), 0, ["; ".join(found.notes)])
