"""The facts of a node as the C programs read them, from files as Linux writes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.mpicost import FAMILIES, TINY, program, read

FILES = {
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "3800000\n",
    "sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq": "800000\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/devices/system/cpu/smt/control": "off\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "proc/sys/vm/nr_hugepages": "1024\n",
    "proc/sys/kernel/numa_balancing": "1\n",
    "proc/sys/kernel/osrelease": "6.1.0\n",
    "proc/cpuinfo": "processor : 0\nmicrocode : 0x2b\n",
    "sys/class/dmi/id/bios_version": "1.5\tbeta\n",
    "sys/class/infiniband/mlx5_0/fw_ver": "20.31.1014\n",
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "sys/class/infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)\n",
    "sys/class/net/eth0/speed": "25000\n",
    "sys/class/net/eth0/mtu": "9000\n",
    "sys/class/net/eth1/speed": "-1\n",
    "sys/class/net/lo/mtu": "65536\n",
}
DRIVERS = {"infiniband/mlx5_0": "mlx5_core", "net/eth0": "ice", "net/eth1": "ice"}
FACTS = """governor\tperformance
most kHz\t3800000 + 800000
boost\toff
hardware threads\toff
transparent huge pages\tmadvise
huge pages\t1024
NUMA balancing\t1
kernel\t6.1.0
firmware\t1.5
microcode\t0x2b
network mlx5_0\tmlx5_core, firmware 20.31.1014, port 1 4: ACTIVE, rate 200 Gb/sec (4X HDR)
network eth0\tice, Mb/s 25000, mtu 9000
network eth1\tice
"""


def read_facts(root: Path) -> str:
    driver = program("mpich").build / "node_facts_driver"
    return subprocess.run([driver, root], capture_output=True, text=True, check=True).stdout


def test_the_kernels_files_are_read(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for device, driver in DRIVERS.items():
        link = tmp_path / "sys/class" / device / "device" / "driver"
        link.parent.mkdir()
        link.symlink_to(f"../../../bus/pci/drivers/{driver}")
    assert read_facts(tmp_path) == FACTS


def test_a_machine_that_tells_nothing_has_no_facts(tmp_path: Path) -> None:
    assert read_facts(tmp_path) == ""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_launch_tells_the_facts_of_its_node(family: str, tmp_path: Path) -> None:
    file = tmp_path / "out"
    words = (*TINY, "--routine", "barrier", "--trials", "2", "--output", str(file))
    assert program(family).run(2, *words).status == 0
    (facts,) = read(file).run["node_facts"]
    assert facts == dict(line.split("\t") for line in read_facts(Path("/")).splitlines())
