"""SimGrid as an environment: its launcher, its selectors, and one clear line where it is not installed."""

import os
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_configs import simgrid
from site_configs.schema.fields import PLATFORM_HASH
from site_configs.schema.variables import SESSION
from site_configs.topology.layouts import Layout
from site_configs.topology.machine import is_within_limits
from tests.support.plumbline_runner import ROOT, Workshop
from tests.support.request import ask

SITE = ROOT / "site_configs" / "simulated.py"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simgrid, "version", lambda: "3.32")


@pytest.fixture
def partitions(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict]:
    """Of the site, as on a machine where it is only looked at."""
    ask(monkeypatch, only_looking=True)
    monkeypatch.delenv(simgrid.MEMORY, raising=False)
    configuration = runpy.run_path(str(SITE))["site_configuration"]
    return {entry["name"]: entry for entry in configuration["systems"][0]["partitions"]}


@given(st.integers(1, 300), st.integers(1, 8))
def test_node_after_node_is_filled(processes: int, per_node: int):
    hosts = simgrid.host_list(processes, per_node)
    counts = [hosts.count(host) for host in dict.fromkeys(hosts)]
    assert counts == Layout(processes, per_node).ranks_per_host
    assert hosts == sorted(hosts, key=lambda host: int(host[1:]))


def test_a_launch_has_its_hosts_and_no_simulated_computation(tmp_path: Path):
    job = SimpleNamespace(num_tasks=5, num_tasks_per_node=2, workdir=str(tmp_path))
    words = simgrid.SmpirunLauncher().command(job)
    assert (tmp_path / "hosts").read_text().split() == ["n0", "n0", "n1", "n1", "n2"]
    assert words[words.index("-np") + 1] == "5"
    assert "--cfg=smpi/simulate-computation:no" in words  # else no time repeats


def test_a_selector_proves_itself_and_tells_which_routines_are_not_its_own(installed):
    for name in simgrid.SELECTORS:
        entry = simgrid.selector(name)
        assert entry["extras"]["library"] == "SMPI Version 3.32"
        assert f"algorithm {name} for collective barrier" in entry["extras"]["proof"]
        assert "barrier" not in simgrid.REPLACED.get(name, ())  # or there would be no proof
        stand_ins = dict(entry["env_vars"])[simgrid.STAND_INS]
        assert stand_ins.count("--cfg=smpi/") == len(simgrid.REPLACED.get(name, ()))
    assert len({simgrid.selector(name)["extras"]["build"] for name in simgrid.SELECTORS}) == 1


@pytest.mark.parametrize("missing", simgrid.NEEDED)
def test_what_is_not_installed_is_named_with_the_fix(missing: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(SESSION, raising=False)
    monkeypatch.setattr(simgrid.shutil, "which", lambda name: None if name == missing else name)
    with pytest.raises(ValueError, match=rf"{missing} is not on the PATH: install SimGrid"):
        simgrid.version()


def test_another_smpirun_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(SESSION, raising=False)
    monkeypatch.setattr(simgrid.shutil, "which", lambda name: name)
    said = SimpleNamespace(stdout="something else\n")
    monkeypatch.setattr(simgrid.subprocess, "run", lambda *words, **more: said)
    with pytest.raises(ValueError, match="smpirun -version said"):
        simgrid.version()


@pytest.fixture
def path_without(tmp_path: Path) -> str:
    """A search path without SimGrid."""
    bin_without = tmp_path / "bin"
    bin_without.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in Path(directory).glob("*"):
            link = bin_without / program.name
            if not program.name.startswith("smpi") and not link.is_symlink():
                link.symlink_to(program)
    return str(bin_without)


@pytest.mark.long
@pytest.mark.machine
def test_without_simgrid_the_site_file_is_looked_at_and_cannot_be_used(tmp_path, path_without: str):
    workshop = Workshop(tmp_path / "home")
    ended = workshop.run("lint", str(SITE), PATH=path_without).expect(0)
    assert f"note: {SITE}: only the file is looked at: simulated machines: smp" in ended.said
    ended = workshop.run("site", "check", "simulated", PATH=path_without)
    assert ended.status == 1
    assert "is not on the PATH: install SimGrid" in ended.said


@pytest.mark.machine
def test_a_night_without_simgrid_ends_with_one_clear_line(tmp_path: Path, path_without: str):
    workshop = Workshop(tmp_path / "home")
    ended = workshop.run("nightly", "--site", "simulated", PATH=path_without)
    assert ended.status == 2
    *_, last = ended.errors.strip().splitlines()
    assert "is not on the PATH: install SimGrid" in last
    assert "Traceback" not in ended.errors + ended.output


def test_the_night_has_the_papers_ladder_on_every_machine(partitions: dict[str, dict]):
    for entry in partitions.values():
        counts = {processes for processes, _ in entry["extras"]["layouts"]}
        assert {2, 4, 8, 16, 32, 64, 96, 128} <= counts and entry["extras"]["exact"]
        assert entry["extras"]["nodes"] * entry["extras"]["cores_per_node"] == 1024
    assert {17, 33, 65} <= {processes for processes, _ in partitions["hypercube"]["extras"]["layouts"]}
    assert partitions["fattree"]["environs"] == [f"simgrid-{name}" for name in simgrid.SELECTORS]


@pytest.mark.parametrize("text", ["much", "", "0", "-1", "nan", "inf"])
def test_a_memory_that_is_no_number_is_named(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(simgrid.MEMORY, text)
    with pytest.raises(ValueError, match=rf"{simgrid.MEMORY}: '{text}': write a number of bytes"):
        simgrid.memory_bytes()


def test_memory_can_be_chosen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(simgrid.MEMORY, raising=False)
    assert simgrid.memory_bytes() == simgrid.MEMORY_DEFAULT
    monkeypatch.setenv(simgrid.MEMORY, "8e9")
    assert simgrid.memory_bytes() == 8_000_000_000


def test_a_platform_of_ones_own_can_be_a_machine(tmp_path: Path):
    file = tmp_path / "two words.xml"
    shutil.copy(simgrid.PLATFORMS / "torus.xml", file)
    entry = simgrid.machine("mine", per_node=1, counts=[2, 4], platform=file)
    variables = dict(entry["env_vars"])
    assert variables[simgrid.PLATFORM] == f"'{file}'"
    file.write_text(file.read_text().replace("1.8us", "1.7us"))
    changed = dict(simgrid.machine("mine", per_node=1, counts=[2, 4], platform=file)["env_vars"])
    assert changed[PLATFORM_HASH] != variables[PLATFORM_HASH]
    assert entry["extras"]["layouts"] == [[2, 1], [4, 1]]


@pytest.mark.parametrize(
    ("processes", "small", "large"), [(64, True, True), (65, True, False), (129, False, False)]
)
def test_a_site_leaves_out_what_takes_long(processes: int, small: bool, large: bool):
    limits = {"alltoall:1000": 64, "alltoall": 128}
    assert is_within_limits(limits, "alltoall", 8, processes) is small
    assert is_within_limits(limits, "alltoall", 1000, processes) is large
    assert is_within_limits(limits, "bcast", 1000, processes)


@pytest.mark.parametrize(
    ("name", "algorithms"),
    [
        ("ompi", {"reduce_sum:0", "allreduce_sum:0", "bcast:0:2", "allgather_as_allgatherv:0:3"}),
        ("impi", {"reduce_sum:0", "allreduce_sum:0", "bcast:0:2", "allgather:0:2"}),
        ("mvapich2", {"reduce_sum:0", "allreduce_sum:0"}),
        ("mpich", set()),
    ],
)
def test_what_dies_of_no_bytes_is_told_to_be_impossible(installed, name, algorithms):
    asked = {
        *("reduce_sum:0", "allreduce_sum:0", "bcast:0:2", "bcast:0:4", "bcast:0"),
        *("allgather:0:2", "allgather:0", "allgather_as_allgatherv:0:3", "scatter:0"),
    }
    assert asked & set(simgrid.selector(name)["extras"]["impossible"]) == algorithms
