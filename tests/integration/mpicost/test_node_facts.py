"""What the C programs read of their nodes: processors, on one host and on several, and facts of set-up."""

import subprocess
from pathlib import Path

import pytest

from tests.support.factories.processor import ARM, POWER, SAMPLES, X86
from tests.support.mpicost import FAMILIES, TINY, Record, library, lines, program, read
from tests.support.witness import executable, watch
from tests.support.witness import library as witness_library

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
    "sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n",
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
network mlx5_0\tmlx5_core, firmware 20.31.1014, port 1 4: ACTIVE, link InfiniBand, rate 200 Gb/sec (4X HDR)
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


@pytest.mark.parametrize(("told", "core"), [("0,64\n", "0,64"), ("0-1\n", "0-1"), ("0\n", ""), (None, "")])
def test_the_threads_of_a_core_are_told_where_it_has_several(
    told: str | None, core: str, tmp_path: Path
) -> None:
    path = tmp_path / "sys/devices/system/cpu/cpu0/topology/thread_siblings_list"
    path.parent.mkdir(parents=True)
    if told:
        path.write_text(told)
    driver = program("mpich").build / "node_facts_driver"
    said = subprocess.run([driver, tmp_path, "0"], capture_output=True, text=True, check=True)
    assert said.stdout == core


@pytest.mark.parametrize("family", FAMILIES)
def test_a_launch_tells_the_facts_of_its_node(family: str, tmp_path: Path) -> None:
    file = tmp_path / "out"
    words = (*TINY, "--routine", "barrier", "--trials", "2", "--output", str(file))
    assert program(family).run(2, *words).status == 0
    (facts,) = read(file).run["node_facts"]
    assert facts == dict(line.split("\t") for line in read_facts(Path("/")).splitlines())


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_name_is_the_one_that_the_site_finds(sample: str, tmp_path: Path) -> None:
    """``test_machine.py`` has the same samples."""
    text, name = SAMPLES[sample]
    path = tmp_path / "cpuinfo"
    if text is not None:
        path.write_text(text)
    driver = program("mpich").build / "processor_driver"
    said = subprocess.run([driver, path], capture_output=True, text=True, check=True)
    assert said.stdout == f"{name}\n"


def run_on(family: str, folder: Path, *processors: str) -> Record:
    """The run record of a launch with one rank on each of these hosts."""
    for rank, text in enumerate(processors):
        (folder / str(rank)).write_text(text)
    faults = ":".join(str(library(family, name)) for name in ("two_hosts", "other_processors"))
    file = folder / "out"
    ended = program(family).run(
        len(processors),
        *(*TINY, "--routine", "barrier", "--trials", "2", "--output", str(file)),
        wrapper=["env", f"LD_PRELOAD={faults}"],
        variables={"PLUMBLINE_PROCESSORS": str(folder)},
    )
    assert ended.status == 0, ended.complaints
    return read(file).run


@pytest.mark.parametrize("family", FAMILIES)
def test_processors_of_all_hosts_are_told(family: str, tmp_path: Path) -> None:
    """Each once and sorted, whichever host has which."""
    amd, arm, power = (SAMPLES[name][1] for name in ("x86", "arm", "power"))
    run = run_on(family, tmp_path, POWER, X86, ARM, X86, POWER)
    assert len(run["hosts"]) == 5
    assert run["cpu_model"] == " + ".join((amd, arm, power))
    assert run_on(family, tmp_path, X86, X86, X86)["cpu_model"] == amd
    assert run_on(family, tmp_path, X86, ARM)["cpu_model"] == f"{amd} + {arm}"


def test_very_many_kinds_are_counted_no_further(tmp_path: Path) -> None:
    texts = [f"model name : {letter}\n" for letter in "hijklmnopqabcdefg"]
    said = run_on("mpich", tmp_path, *texts)["cpu_model"]
    assert said == " + ".join((*"abcdefghijklmnop", "others"))
    said = run_on("mpich", tmp_path, *texts[:8], *texts[9:])["cpu_model"]
    assert said == " + ".join("abcdefghijklmnoq")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_witness_tells_them_too(family: str, tmp_path: Path) -> None:
    for rank, text in enumerate((X86, ARM)):
        (tmp_path / str(rank)).write_text(text)
    file = tmp_path / "w.jsonl"
    faults = [library(family, name) for name in ("two_hosts", "other_processors")]
    loaded, words = [witness_library(family), *faults], [str(executable(family)), "0"]
    folder = ("env", f"PLUMBLINE_PROCESSORS={tmp_path}")
    ended = watch(family, 2, words, file, loaded=loaded, wrapper=folder)
    assert ended.status == 0
    amd, arm = (SAMPLES[name][1] for name in ("x86", "arm"))
    assert lines(file)[0]["cpu_model"] == f"{amd} + {arm}"
