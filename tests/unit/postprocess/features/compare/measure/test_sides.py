"""Which environment a side of a comparison means."""

from types import SimpleNamespace
from typing import Any

import pytest

from postprocess.base.errors import UsageError
from postprocess.features.compare.measure.run import find_environment

CLUSTER: Any = SimpleNamespace(
    prepared=SimpleNamespace(inventory=None), request=SimpleNamespace(site="cluster")
)
OWN: dict[str, Any] = {"extras": {}}
STANDARD = {"extras": {"standard_abi": "/sw/mpich/lib"}}
DECLARED = {"mpich-5_0_2": OWN, "mpich-5_0_2-abi": STANDARD, "openmpi-5_0_11": OWN}


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("mpich-5_0_2", "mpich-5_0_2"),
        ("mpich-5_0_2-abi", "mpich-5_0_2-abi"),
        ("mpich", "mpich-5_0_2"),
        ("mpich@5.0.2", "mpich-5_0_2"),
        ("mpich+abi", "mpich-5_0_2-abi"),
        ("mpich@5.0.2+abi", "mpich-5_0_2-abi"),
        ("openmpi", "openmpi-5_0_11"),
    ],
)
def test_a_side_is_by_the_standard_abi_only_if_it_says_so(label: str, name: str):
    assert find_environment(CLUSTER, DECLARED, label) == name


@pytest.mark.parametrize(
    "label", ["openmpi+abi", "openmpi@5.0.11+abi", "mpich@4.3.2+abi", "mpich@4.3.2", "intel-mpi"]
)
def test_what_the_site_has_not_is_refused_with_its_choice(label: str):
    with pytest.raises(UsageError) as refused:
        find_environment(CLUSTER, DECLARED, label)
    choice = "mpich-5_0_2, mpich-5_0_2-abi, openmpi-5_0_11"
    assert str(refused.value).startswith(f"{label}: site cluster has no such MPI; it has {choice}")


@pytest.mark.parametrize(("label", "meant"), [("mpihc", "mpich"), ("openmip", "openmpi")])
def test_a_mistyped_family_is_proposed(label: str, meant: str):
    with pytest.raises(UsageError, match=rf"; did you mean {meant}\?$"):
        find_environment(CLUSTER, DECLARED, label)
