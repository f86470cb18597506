"""What PBS and Torque tell, from what their commands print."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_configs.schedulers import pbs
from site_configs.schedulers.pbs import clock, count_usable, parse_stanzas
from tests.support.factories.scheduler import PBS, PBS_NODE, PBS_QUEUES, TORQUE, answering


def test_a_machine_with_pbs():
    found = pbs.PBS.read(answering(PBS))
    assert (found.title, found.backend) == ("PBS", "pbs-blocks")
    standard, large = found.queues  # a route queue runs nothing, and one is stopped
    assert (standard.name, standard.default, standard.seconds) == ("standard", True, 86400)
    assert (standard.most_nodes, large.most_nodes, large.default) == (64, 0, False)
    (node,) = standard.kinds
    assert (len(node.hosts), node.unusable) == (96, 2)
    assert (node.cores, node.sockets, node.memory_bytes) == (96, 0, 394829824 * 1024)
    assert [kind.hosts for kind in large.kinds] == [("fat1", "fat2", "fat3", "fat4")]
    assert "hardware threads" in found.notes[0]


def test_torque_tells_sockets():
    found = pbs.PBS.read(answering(TORQUE))
    assert (found.title, found.backend) == ("Torque", "torque-blocks")
    (node,) = found.queue("standard").kinds
    assert (node.cores, node.sockets, node.unusable) == (16, 2, 1)
    assert node.memory_bytes == 131072000 * 1024


def test_nodes_that_name_no_queue_belong_to_all():
    nodes = PBS["pbsnodes"].replace("     resources_available.Qlist = standard,entry\n", "")
    found = pbs.PBS.read(answering(PBS | {"pbsnodes": nodes}))
    assert len(found.queue("standard").hosts) == 96
    assert len(found.queue("large").hosts) == 4


def test_long_values_go_on_in_the_next_line():
    queue = dict(parse_stanzas(PBS_QUEUES))["standard"]
    assert queue["state_count"].endswith("Exiting:0 Begun:0")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("resources_max.nodect = 64", "resources_max.nodect = many", "'many'"),
        ("= 24:00:00", "= 1 day", "'1 day'"),
    ],
)
def test_a_queue_that_is_not_understood_is_told_and_the_others_are_read(old, new, said):
    found = pbs.PBS.read(answering(PBS | {"queues": PBS_QUEUES.replace(old, new)}))
    assert [queue.name for queue in found.queues] == ["large"]
    assert found.notes[1].startswith("queue standard: not understood") and said in found.notes[1]


def test_a_size_that_is_not_understood_is_told():
    nodes = PBS["pbsnodes"].replace("394829824kb", "lots")
    assert "'lots' is not a size" in pbs.PBS.read(answering(PBS | {"pbsnodes": nodes})).notes[1]


@pytest.mark.parametrize(
    ("part", "said"), [("pbsnodes", "pbsnodes -a lists no node"), ("queues", "no queue that runs jobs")]
)
@pytest.mark.parametrize("text", ["", "pbsnodes: Server has no node list\n", "\x00\n\t = \n"])
def test_output_without_anything_in_it_is_a_clear_line(part: str, said: str, text: str):
    with pytest.raises(ValueError, match=said):
        pbs.PBS.read(answering(PBS | {part: text}))


def test_clocks():
    assert [clock(text) for text in ("", "90", "30:00", "24:00:00")] == [0, 90, 1800, 86400]


@given(st.text(max_size=80))
def test_no_output_ends_in_a_traceback(text: str):
    parse_stanzas(text)
    for part in ("pbsnodes", "queues", "server"):
        try:
            pbs.PBS.read(answering(PBS | {part: text}))
        except ValueError as refused:
            assert str(refused)
    nodes = PBS["pbsnodes"].replace("resources_available.ncpus = 96", f"resources_available.ncpus = {text}")
    pbs.PBS.read(answering(PBS | {"pbsnodes": nodes}))


def divided(host: str, natural: str = "0") -> str:
    """A host as two virtual nodes of 64 CPUs, beside its natural one."""
    parts = [(host, natural, 0), (f"{host}[0]", "64", 263000000), (f"{host}[1]", "64", 263000000)]
    stanzas = [
        PBS_NODE.format(name=name, state="free", cpus=cpus, memory=memory, queues="standard")
        for name, cpus, memory in parts
    ]
    return "".join(re.sub(r"(?<=resources_available.host = ).*", host, stanza) for stanza in stanzas)


def test_virtual_nodes_of_a_host_are_one_node():
    offline = divided("cn3").replace("state = free", "state = offline", 1)
    nodes = divided("cn1") + divided("cn2") + offline
    found = pbs.PBS.read(answering(PBS | {"pbsnodes": nodes}))
    (node,) = found.queue("standard").kinds
    assert (node.hosts, node.unusable) == (("cn1", "cn2", "cn3"), 1)
    assert (node.cores, node.sockets, node.hardware_threads) == (128, 0, 128)
    assert node.memory_bytes == 2 * 263000000 * 1024
    assert "3 hosts into 2 virtual nodes" in found.notes[1]


def test_virtual_nodes_that_are_not_understood_are_told():
    nodes = divided("cn1", natural="many") + PBS["pbsnodes"]
    found = pbs.PBS.read(answering(PBS | {"pbsnodes": nodes}))
    assert found.queue("large") and "'many'" in found.notes[1]


def test_nodes_that_are_out_are_named_with_what_is_written_of_them():
    nodes = PBS["pbsnodes"].replace("state = offline", "state = offline\n     comment = bad fan")
    usable = count_usable(answering(PBS | {"pbsnodes": nodes}), "standard")
    assert (usable.count, usable.why) == (94, "cn007 (offline: bad fan), cn008 (offline: bad fan)")
    assert count_usable(answering({}), "standard") is None


def test_the_server_that_the_shell_chooses_is_named_in_the_options():
    chosen = pbs.PBS.choose_machine({"PBS_DEFAULT": "pbs02"})
    assert chosen.asking == (("PBS_DEFAULT", "pbs02"),)
    found = chosen.read(answering(PBS))
    assert found.exclusive[0].format("standard") == "-q standard@pbs02"
    assert "PBS_DEFAULT=pbs02" in found.notes[0]
    assert found.find_queue_name(["-q standard@pbs02"]) == "standard"
    assert found.find_choice(["-q standard@pbs02"]) == {"PBS_DEFAULT": "pbs02"}
    shell = {"PBS_DEFAULT": "pbs02"}
    assert list(found.find_shell_faults(shell, ["-q standard@pbs01"])) == []
    (fault,) = found.find_shell_faults(shell, ["-q standard"])
    assert "write -q QUEUE@pbs02 in access if it is meant, or unset PBS_DEFAULT" in fault
