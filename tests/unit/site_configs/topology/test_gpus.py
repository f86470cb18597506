"""GPUs of a node: declared, found, or told by ReFrame; and the layouts of one rank a GPU."""

from pathlib import Path

import pytest

from site_configs.common import SiteError, Topology, partition
from site_configs.schema.facts import PartitionFacts
from site_configs.topology.gpus import RESOURCE, Gpus, find_gpus_here, list_gpu_layouts, read_reframe_devices
from tests.support.faults import plants


@pytest.mark.parametrize(
    ("per_node", "cores", "nodes", "layouts"),
    [
        (4, 64, 1, ["2x2", "4x4"]),
        (6, 64, 1, ["2x2", "4x4", "6x6"]),
        (4, 2, 1, ["2x2"]),
        (1, 64, 1, []),
        (1, 64, 3, ["2x1", "3x1"]),
        (4, 64, 2, ["2x1", "2x2", "4x4", "8x4"]),
    ],
)
def test_one_rank_a_gpu(per_node, cores, nodes, layouts):
    found = list_gpu_layouts(Gpus(kind="cuda", per_node=per_node), cores, nodes)
    assert [str(layout) for layout in found] == layouts


def test_ranks_have_the_gpus_of_the_order():
    assert Gpus(kind="cuda", per_node=4, order=(3, 2, 1, 0)).choose(2) == "3,2"
    assert Gpus(kind="cuda", per_node=4).choose(2) == ""


@pytest.mark.parametrize(
    ("device", "found"),
    [
        ({"type": "gpu", "arch": "sm_90", "num_devices": 4}, ("cuda", 4)),
        ({"type": "gpu", "arch": "gfx90a"}, ("rocm", 1)),
        ({"type": "gpu", "arch": "other1", "num_devices": 4}, None),
        ({"type": "nic", "arch": "sm_90", "num_devices": 4}, None),
    ],
)
def test_what_reframe_knows_is_read(device, found):
    gpus = read_reframe_devices([device])
    assert (gpus and (gpus.kind, gpus.per_node)) == found


def test_gpus_of_this_machine_are_those_of_the_kernel(tmp_path: Path):
    assert find_gpus_here(tmp_path) is None
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / name).touch()
    assert find_gpus_here(tmp_path) == Gpus(kind="cuda", per_node=2)


def test_accelerators_of_amd_are_those_with_a_number(tmp_path: Path):
    for node, number in enumerate(("0", "4660", "4661")):
        folder = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{node}"
        folder.mkdir(parents=True)
        (folder / "gpu_id").write_text(f"{number}\n")
    assert find_gpus_here(tmp_path) == Gpus(kind="rocm", per_node=2)


def declare(**more):
    return partition("gpu", topology=Topology(64, 2), environments=["mpich"], **more)


def test_a_partition_with_gpus_lets_jobs_ask_for_them():
    declared = declare(gpus={"kind": "cuda", "per_node": 4, "request": ["--gres=gpu:{num_gpus_per_node}"]})
    assert declared["resources"] == [{"name": RESOURCE, "options": ["--gres=gpu:{num_gpus_per_node}"]}]
    assert PartitionFacts.of(declared["extras"]).gpus.per_node == 4
    own = [{"name": RESOURCE, "options": ["--own"]}]
    assert declare(gpus={"kind": "cuda", "per_node": 4}, resources=own)["resources"] == own
    assert declare()["resources"] == [] and PartitionFacts.of(declare()["extras"]).gpus is None


@plants("use", "GPUs of no kind, none of them, or an order that names one twice", "the site file", "", 2,
        "partition 'gpu': gpus: …")  # fmt: skip
@pytest.mark.parametrize(
    "gpus",
    [
        {"kind": "voodoo", "per_node": 2},
        {"kind": "cuda", "per_node": 0},
        {"kind": "cuda"},
        {"kind": "cuda", "per_node": 2, "order": [1, 1]},
        {"kind": "cuda", "per_node": 2, "ordr": [1, 0]},
    ],
)
def test_gpus_that_contradict_themselves_are_refused(gpus, declared):
    with pytest.raises(SiteError) as error:
        declare(gpus=gpus)
    declared.check((), 2, [str(error.value)])
