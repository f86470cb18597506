"""The pieces of a site file: what ReFrame and the checks are told of a machine."""

import os
import runpy
import shlex
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reframe.core.backends import getlauncher

from postprocess.base.sanitize import quote_word
from postprocess.model.session import Selection
from postprocess.runner import reframe
from site_configs import common
from site_configs.mpi import inventory
from site_configs.mpi.family import Mpi
from site_configs.mpi.inventory import Inventory
from site_configs.schema import variables as site_variables
from site_configs.schema.reframe_request import ReframeRequest
from site_configs.schema.variables import SESSION
from site_configs.schema.waivers import collect_waivers
from site_configs.topology.layouts import Layout, Topology
from site_configs.topology.machine import Machine
from tests.support.paths import ROOT
from tests.support.request import ask

TOPOLOGY = Topology(8, sockets_per_node=2, nodes=2)


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Plumbline tells a site through the environment."""
    for name in [name for name in os.environ if name.startswith("PLUMBLINE_")]:
        monkeypatch.delenv(name)


def mpich(**more) -> dict:
    return common.environment(
        "mpich-5", **{"family": "mpich", "library": "MPICH Version: 5", "launcher": "srun"} | more
    )


def cpus(**more) -> dict:
    """A partition without environments, if nothing else is said."""
    return common.partition("cpu", topology=TOPOLOGY, **{"environments": []} | more)


def variables(entry: dict) -> dict[str, str]:
    return dict(map(tuple, entry["env_vars"]))


def test_the_work_directory_is_in_the_clone_unless_said_otherwise(monkeypatch, tmp_path: Path):
    assert common.work_directory() == ROOT / ".plumbline"
    monkeypatch.setenv("PLUMBLINE_HOME", "")
    assert common.work_directory() == ROOT / ".plumbline"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLUMBLINE_HOME", "elsewhere")
    assert common.work_directory() == tmp_path / "elsewhere"


def test_the_launcher_of_an_environment_starts_so_many_processes():
    launcher = getlauncher("mpiexec-of-environment")
    assert launcher is common.EnvironmentLauncher
    words = ["/opt/my mpi/bin/mpiexec", "--bind-to", "core"]
    line = " ".join(launcher(words).command(SimpleNamespace(num_tasks=4)))
    assert shlex.split(line) == [*words, "-n", "4"]


def test_an_environment_tells_the_checks_what_they_may_know(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("PLUMBLINE_HOME", str(tmp_path))
    entry = mpich(launcher=("mpirun", "-x"), mpicc="/opt/mpicc", modules=("mpich/5",))
    assert (entry["name"], entry["modules"], entry["env_vars"]) == ("mpich-5", ["mpich/5"], [])
    assert {"mpi", "mpich"} <= set(entry["features"])
    assert entry["extras"] == {
        "accept": {},
        "transports": {},
        "gpu": "",
        "launch_variables": {},
        "by_hand": {},
        "library": "MPICH Version: 5",
        "family": "mpich",
        "mpicc": "/opt/mpicc",
        "prefix": "",
        "launcher": ["mpirun", "-x"],
        "spack_environment": str(tmp_path / "spack" / "environments" / "mpich-5"),
        "programs": {},
        "program_env": {},
        "program_origin": {},
        "lacking": {},
        "unfit": [],
    }
    assert mpich()["extras"]["launcher"] == "srun"


def test_an_environment_of_the_standard_abi_finds_its_library_in_launches_alone(monkeypatch):
    entry = mpich(standard_abi="/opt/my mpich/lib")
    assert entry["extras"]["standard_abi"] == "/opt/my mpich/lib"
    search = "'/opt/my mpich/lib'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\""
    assert entry["extras"]["launch_variables"] == {"LD_LIBRARY_PATH": search}
    assert entry["env_vars"] == []
    ask(monkeypatch, set_env={"mpich-5": {"LD_LIBRARY_PATH": "/other"}})
    assert mpich(standard_abi="/lib")["extras"]["launch_variables"] == {"LD_LIBRARY_PATH": "/other"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"standard_abi": "lib"},
            "standard_abi: 'lib': write the absolute path of the folder of libmpi_abi.so.1",
        ),
        ({"standard_abi": True}, "standard_abi: True: write the absolute path"),
        (
            {"standard_abi": "/lib", "programs": {"imb": "/sw"}},
            "standard_abi: imb cannot run, only mpicost is built",
        ),
    ],
)
def test_a_wrong_folder_of_the_standard_abi_is_refused(wrong: dict, said: str):
    with pytest.raises(ValueError) as refused:
        mpich(**wrong)
    assert str(refused.value).startswith(f"environment 'mpich-5': {said}")


def test_variables_are_set_for_the_environment_that_was_named(monkeypatch):
    chosen = {"mpich-5": {"NAME": "1", "MINE": "2"}, "other": {"OTHER": "3"}}
    ask(monkeypatch, set_env=chosen)
    entry = mpich(env_vars={"NAME": "0", "KEPT": "$HOME/x"})
    assert variables(entry) == {"NAME": "0", "KEPT": "$HOME/x"}  # which builds get too
    assert entry["extras"]["launch_variables"] == {"NAME": "1", "MINE": "2"}
    assert entry["extras"]["by_hand"] == {"set_env": chosen["mpich-5"]}


def test_what_the_shell_sets_for_an_mpi_is_told_but_in_simulated_time(monkeypatch):
    """As Plumbline took it from the shell; where ReFrame is started by hand, as it is there."""
    monkeypatch.setenv("UCX_TLS", "tcp")
    assert mpich()["extras"]["by_hand"] == {"shell": {"UCX_TLS": "tcp"}}
    ask(monkeypatch, shell={"FI_PROVIDER": "cxi"})
    assert mpich()["extras"]["by_hand"] == {"shell": {"FI_PROVIDER": "cxi"}}
    assert mpich(family=common.SIMULATED)["extras"]["by_hand"] == {}
    ask(monkeypatch, shell={})
    assert mpich()["extras"]["by_hand"] == {}


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_value_that_the_user_sets_reaches_the_program_as_it_was_typed(value: str):
    """ReFrame writes ``export NAME=VALUE`` into a script as it is."""
    with pytest.MonkeyPatch.context() as patch:
        ask(patch, set_env={"mpich-5": {"NAME": value}})
        (text,) = mpich()["extras"]["launch_variables"].values()
    assert text == quote_word(value)


@pytest.mark.parametrize("expected", [True, False])
def test_more_processes_than_cores_only_if_asked_for(monkeypatch, expected: bool):
    ask(monkeypatch, oversubscribe=expected)
    most = cpus()["extras"]["most_processes"]
    assert (most > TOPOLOGY.cores) == expected
    assert bool(mpich()["env_vars"]) == expected


def test_a_partition_tells_its_layouts_and_runs_one_job_at_a_time():
    entry = cpus(environments=("a", "b"))
    assert entry["extras"] == {
        "accept": {},
        "layouts": [[2, 1], [2, 2], [4, 4], [5, 5], [8, 4], [8, 8], [9, 8], [16, 8]],
        "boundaries": [2, 4, 5, 8, 9, 16],
        "most_processes": 16,
        "cores_per_node": 8,
        "nodes": 2,
        "nodes_per_switch": 0,
        "threads_per_core": 1,
        "defaults": {},
        "exact": False,
        "shared_memory_bytes": 0,
        "gpus": {},
        "reference_days": 180,
        "session_gap_minutes": 20,
    }
    assert (entry["max_jobs"], entry["environs"], entry["scheduler"]) == (1, ["a", "b"], "local")
    assert entry["launcher"] == "local"


def test_a_partition_says_what_it_measures_and_how():
    extras = cpus(layouts=[Layout(4, 2)], defaults={"cache": "warm"}, exact=True)["extras"]
    expected = ([[4, 2]], {"cache": "warm"}, True)
    assert (extras["layouts"], extras["defaults"], extras["exact"]) == expected
    with pytest.raises(ValueError, match="partition 'cpu': defaults: 'cach': write one of trials, "):
        cpus(defaults={"cach": "warm"})


def test_a_node_in_reframes_terms():
    expected = {"num_cpus": 8, "num_cpus_per_core": 1, "num_cpus_per_socket": 4, "num_sockets": 2}
    assert common.processor(TOPOLOGY) == expected


def test_only_starts_that_are_not_timed_run_beside_each_other(monkeypatch):
    ask(monkeypatch, verbose={"UCX_LOG_LEVEL": "info"})
    assert (cpus()["max_jobs"], cpus(max_jobs=8)["max_jobs"]) == (4, 8)
    ask(monkeypatch)
    assert cpus()["max_jobs"] == 1


def test_a_partition_may_have_any_key_of_reframes():
    more = {"max_jobs": 3, "extras": {"fabric": "x"}, "time_limit": "10m"}
    entry = cpus(scheduler="slurm", access=("--exclusive",), **more)
    assert (entry["launcher"], entry["access"], entry["max_jobs"]) == ("srun", ["--exclusive"], 3)
    assert (entry["time_limit"], entry["extras"]["fabric"]) == ("10m", "x")
    assert entry["extras"]["layouts"][-1] == [16, 8]
    assert cpus(launcher="ssh")["launcher"] == "ssh"


def a_site(**more) -> dict:
    place, more = cpus(environments=["mpich-5"]), {"modules_system": "lmod"} | more
    more = {"hostnames": ["login1"], "description": "A site"} | more
    return common.site("here", partitions=[place], environments=[mpich()], **more)


def system(configuration: dict) -> dict:
    (only,) = configuration["systems"]
    return only


def test_a_site_is_a_whole_configuration(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_HOME", str(tmp_path))
    found = a_site()
    assert system(found)["name"] == "here"
    assert [entry["name"] for entry in system(found)["partitions"]] == ["cpu"]
    assert [entry["name"] for entry in found["environments"]] == ["mpich-5"]
    assert found["logging"][0]["perflog_multiline"]
    assert found["logging"][0]["handlers"][1]["name"] == f"{tmp_path}/reframe.log"


def test_by_hand_a_site_is_for_its_hosts_and_in_a_session_for_the_one_it_was_chosen_on(monkeypatch):
    assert system(a_site())["hostnames"] == ["login1"]
    session = ask(monkeypatch)
    assert system(a_site())["hostnames"] == [".*"]
    assert a_site()["logging"][0]["handlers"][1]["name"] == f"{session}/reframe.log"
    assert a_site()["logging"][0]["handlers_perflog"] == []


@pytest.mark.parametrize(("looking", "expected"), [(None, "lmod"), (False, "lmod"), (True, "nomod")])
def test_to_look_at_a_site_its_modules_are_not_needed(monkeypatch, looking, expected):
    if looking is not None:
        ask(monkeypatch, only_looking=looking)
    assert system(a_site())["modules_system"] == expected
    assert bool(mpich(modules=("mpich/5",))["modules"]) == (expected == "lmod")


def test_the_local_site_is_what_the_inventory_says(monkeypatch, tmp_path: Path):
    machine = Machine("n1", "a processor", "6.1", 4, 4, 2, 10**9, ())
    where = ("module", "/p", "/p/mpicc", "/p/mpiexec")
    more = {"module": "mpich/5", "env": {"PATH": "/p/bin:/a b"}}
    mpi = Mpi("mpich-5_0_2", "mpich", "5.0.2", "MPICH Version: 5.0.2 and more", *where, **more)
    monkeypatch.setattr(inventory, "find_inventory", lambda _: Inventory(machine, (mpi,), ()))
    monkeypatch.setattr("site_configs.topology.machine.read_usable_threads", lambda: 2)
    found = runpy.run_path(str(ROOT / "site_configs" / "local.py"))["site_configuration"]
    (place,) = system(found)["partitions"]
    expected = ("local", "cpu", ["mpich-5_0_2"])
    assert (system(found)["name"], place["name"], place["environs"]) == expected
    assert place["extras"]["layouts"] == [[2, 2], [3, 3], [4, 4]]
    assert (place["extras"]["threads_per_core"], place["processor"]["num_cpus"]) == (2, 8)
    (entry,) = found["environments"]
    assert entry["extras"]["library"] == mpi.library
    assert (entry["extras"]["mpicc"], entry["extras"]["launcher"]) == ("/p/mpicc", ["/p/mpiexec"])
    assert entry["modules"] == ["mpich/5"]
    assert shlex.split(variables(entry)["PATH"]) == ["/p/bin:/a b"]


def test_plumbline_sets_every_variable_that_sites_and_checks_read():
    """Else what the user happens to have in one would be a choice that nobody made."""
    driver = reframe.ReframeDriver(ROOT, ROOT, ROOT, [], None)
    told = driver.environment()
    names = {value for name, value in vars(site_variables).items() if name.isupper()}
    assert SESSION in names <= told.keys()
    for field in fields(ReframeRequest):  # the shell's by hand are no default of a session
        assert getattr(driver.request(Selection(Path("site.py"))), field.name) is not None


def test_what_a_site_accepts_each_partition_does_and_the_nearer_word_counts():
    own = common.partition("gpu", topology=TOPOLOGY, environments=[], accept={"compiler": "of the gpus"})
    other = cpus()
    accept = {"compiler": "everywhere, it is", "binding": "another launcher"}
    made = common.site("here", description="", partitions=[own, other], environments=[], accept=accept)
    gpu, cpu = (each["extras"]["accept"] for each in made["systems"][0]["partitions"])
    assert (gpu["compiler"], cpu["compiler"]) == ("of the gpus", "everywhere, it is")
    assert gpu["binding"] == cpu["binding"] == "another launcher"
    assert own["extras"]["accept"] == {"compiler": "of the gpus"}
    environment = mpich(accept={"compiler": "of this mpi"})["extras"]["accept"]
    assert collect_waivers(gpu, environment)["compiler"] == "of this mpi"
    assert collect_waivers(gpu, {}) == gpu
