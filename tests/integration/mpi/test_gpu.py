"""A site with GPUs, on a machine without: what cannot be measured is said, and nothing passes."""

from pathlib import Path

import pytest

from tests.support.faults import plants
from tests.support.faulty_site import plant
from tests.support.mpi import fault_library, find_mpi, of_family
from tests.support.plumbline_runner import Workshop

SITE = """\
from site_configs.common import Topology, environment, partition, site

mpi = {mpi!r}
site_configuration = site(
    "gpus",
    description="two GPUs",
    partitions=[
        partition(
            "gpu", topology=Topology(2), environments=["aware", "plain"], gpus={{"kind": "cuda", "per_node": 2}}
        )
    ],
    environments=[environment("aware", **mpi, gpu="cuda"), environment("plain", **mpi)],
)
"""
FEW = ("--program", "gpu", "--routine", "bcast.DD", "--bytes", "8", "--trials", "5", "--strict")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("gpu"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    known = find_mpi("mpich")
    told = {
        "family": known.family,
        "library": known.library,
        "launcher": list(known.launcher),
        "mpicc": known.mpicc,
        "env_vars": dict(of_family("mpich").env),
    }
    path = tmp_path_factory.mktemp("site") / "gpus.py"
    path.write_text(SITE.format(mpi=told))
    return path


@plants("environment", "GPU: a library that stands in for the driver, with memory of the host",
        "launches of an environment", "incorrect", 1,
        "… stands in for a driver, with memory of the host")  # fmt: skip
def test_no_number_of_a_stand_in_passes(workshop, site, tmp_path, declared):
    library = fault_library(of_family("mpich"), tmp_path, "standin_gpu", "libcuda.so.1")
    ended = workshop.measure("--site", str(site), *FEW, *plant({"aware": {"LD_PRELOAD": library}}))
    found = {case["environment"]: case for case in ended.summary["cases"]}
    declared.check([found["aware"]["verdict"]], ended.status, [found["aware"]["reason"]])
    assert (found["plain"]["verdict"], found["aware"]["routine"]) == ("skipped", "bcast.DD")
    assert "gpu='cuda' of the environment" in found["plain"]["reason"]


@plants("environment", "GPU: a site that declares them, on a node without a driver", "the node",
        "crashed", 1, "… no driver: libcuda.so.1 cannot be opened: …")  # fmt: skip
def test_a_node_without_a_driver_is_named(workshop, site, declared):
    ended = workshop.measure("--site", str(site), *FEW, "--environment", "aware")
    (case,) = ended.summary["cases"]
    declared.check([case["verdict"]], ended.status, [case["reason"]])


@plants("use", "cases of GPUs on a site that declares none", "`--program`, `--routine`", "", 2,
        "… matches no case: no partition here has two GPUs that the site file declares; …")  # fmt: skip
@pytest.mark.parametrize("words", [("--program", "gpu"), ("--routine", "bcast.DD")])
def test_a_site_without_gpus_says_so(workshop, words, declared):
    ended = workshop.run("list", *words)
    declared.check((), ended.status, [ended.errors.strip().splitlines()[-1]])
