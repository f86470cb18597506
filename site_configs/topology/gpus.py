"""The GPUs of a node: which process has which, and the layouts that measure them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from site_configs.annotations import from_least, one_of
from site_configs.topology.layouts import Layout, list_powers_of_two

#: Kinds, as in mpicost's ``--device``, with the vendor's number on the PCI bus
VENDORS = {"cuda": "0x10de", "rocm": "0x1002"}
#: ReFrame's names of their architectures (``sm_90``, ``gfx942``)
ARCHITECTURES = {"sm": "cuda", "gfx": "rocm"}
#: ReFrame's name of the resource that a job requests, and Slurm's option for it
RESOURCE, REQUEST = "_rfm_gpu", "--gpus-per-node={num_gpus_per_node}"

AMD = re.compile(r"mi\d+|gfx|amd|instinct|radeon|vega")  #: how schedulers name AMD's GPUs

Kind = Annotated[str, one_of(VENDORS)]


class Gpus(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The GPUs of each node of a partition."""

    #: ``cuda`` of NVIDIA, ``rocm`` of AMD.
    kind: Kind
    per_node: Annotated[int, from_least(1)]
    #: Numbers of the GPUs of a node's ranks in turn, where rank 0 is nearer to another one than to GPU 0.
    order: Annotated[
        Sequence[Annotated[int, from_least(0)]],
        Meta(description="numbers of GPUs, each once, as in [3, 2, 1, 0]; [] for 0, 1, 2, ..."),
    ] = ()
    #: By which a job asks the scheduler for them; ``{num_gpus_per_node}`` stands for their number.
    request: Annotated[Sequence[str], Meta(description=f"options of the scheduler, as in {[REQUEST]}")] = (
        REQUEST,
    )

    def choose(self, processes: int) -> str:
        """Choose the GPUs of ``processes`` ranks on a node for ``--devices``; empty for 0, 1, 2, ..."""
        return ",".join(map(str, self.order[:processes]))


def find_gpu_faults(gpus: Gpus) -> Iterable[str]:
    if gpus.order and sorted(gpus.order) != list(range(gpus.per_node)):
        yield f"gpus: order: {list(gpus.order)}: write each number from 0 to {gpus.per_node - 1} once"


def list_gpu_layouts(gpus: Gpus, cores_per_node: int, nodes: int) -> list[Layout]:
    """List the layouts with one rank per GPU: a pair between nodes, powers of two on a node, and full nodes."""
    most = min(gpus.per_node, cores_per_node)
    in_node = {*list_powers_of_two(most), most}
    layouts = {Layout(count, count) for count in in_node if count > 1}
    if nodes > 1:
        counts = {*list_powers_of_two(nodes), nodes}
        layouts |= {Layout(2, 1)} | {Layout(count * most, most) for count in counts}
    return sorted(layouts)


def find_gpus_here(root: Path = Path("/")) -> Gpus | None:
    """Find the GPUs of this machine from the files of their kernel drivers; None if there are none."""
    nodes = root.glob("sys/class/kfd/kfd/topology/nodes/*/gpu_id")  # 0 for a node that is a CPU
    counts = {
        "cuda": len(
            [path for path in root.glob("dev/nvidia[0-9]*") if path.name.removeprefix("nvidia").isdigit()]
        ),
        "rocm": len([path for path in nodes if path.read_text().strip() != "0"]),
    }
    return next((Gpus(kind=kind, per_node=count) for kind, count in counts.items() if count), None)


def guess_kind(name: str) -> str:
    """Guess the kind of a GPU from a scheduler's name for it."""
    return "rocm" if AMD.search(name) else "cuda"


def read_reframe_devices(devices: Iterable[Mapping[str, Any]]) -> Gpus | None:
    """Read GPUs from ReFrame's list of a partition's devices; None if none is of a known kind."""
    for device in devices:
        maker = str(device.get("arch", "")).rstrip("0123456789abcdef").rstrip("_")
        kind = ARCHITECTURES.get(maker)
        if device.get("type") == "gpu" and kind and device.get("num_devices", 1) > 0:
            return Gpus(kind=kind, per_node=device.get("num_devices", 1))
    return None
