"""A site file from what was found: it says where each value is from, and what is not known is not forgotten."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.errors import UsageError
from postprocess.base.workdir import WorkDirectory
from site_configs.generate import survey, write
from site_configs.generate.survey import build_host_pattern, choose_distinct_names, choose_site_name, clean_name
from site_configs.mpi.family import Unusable
from site_configs.mpi.login_node import LoginMpis
from site_configs.schedulers import registry
from site_configs.schedulers.base import NodeKind, Queue
from site_configs.schedulers.lsf import LSF
from site_configs.schedulers.module_systems import module_system
from site_configs.schedulers.registry import SchedulerError
from site_configs.schedulers.slurm import SLURM
from site_configs.schema.fields import NAME
from tests.support.factories.scheduler import CRAY, GROWN, NODE, PBS, TORQUE
from tests.support.factories.site import CRAY_MPICH, MPICH, OPENMPI, PLAIN, pbs, slurm, text_of
from tests.support.faults import Declared, plants


def values(text: str, key: str) -> list[str]:
    """What a key is given, as Python, at each of its places."""
    found = re.findall(rf"^ *{key}=(.*?),(?:  #.*)?$", text, re.M)
    assert found, f"{key} is not there:\n{text}"
    return found


def changes(text: str) -> list[str]:
    """The lines that a person must change."""
    return [line.strip() for line in text.splitlines() if "CHANGE:" in line]


def test_a_large_cray_with_slurm():
    facts = slurm(CRAY, CRAY_MPICH, cray_modules=("PrgEnv-gnu/8.5.0", "cray-mpich/8.1.28"))
    text = text_of(facts, choose_site_name(facts))
    ast.parse(text)
    assert '"big-cray",  # part of every reference\'s path' in text
    assert values(text, "launcher") == ["slurm.SRUN_CRAY"]
    assert values(text, "mpicc") == ['"/opt/cray/pe/craype/2.7/bin/cc"']
    assert values(text, "modules") == ['["PrgEnv-gnu/8.5.0", "cray-mpich/8.1.28"]']
    assert values(text, "library") == ['"CRAY MPICH version 8.1.28.15"']
    assert values(text, "access") == ['["--partition=standard", "--exclusive"]']
    counts = [values(text, f"{key}")[0] for key in ("cores_per_node", "sockets_per_node", "nodes")]
    assert counts == ["128", "2", "4"]
    assert "of 1024 that a job can have (sinfo, scontrol); write more to measure more" in text
    assert (values(text, "nodes_per_switch"), values(text, "threads_per_core")) == (["256"], ["2"])
    assert "# - partition short is not in this file: its nodes are also in standard" in text
    assert "one login node. Compute nodes may differ" in text
    assert changes(text) == []


def test_reserved_cores_are_left_to_the_system():
    text = text_of(slurm(CRAY | {"node": NODE.format(host="x")}, OPENMPI))
    assert values(text, "cores_per_node") == ["120"]
    assert "without 8 kept for the system" in text


@pytest.mark.parametrize(
    ("gres", "written", "said"),
    [
        ("gpu:a100:4(S:0-1)", '{"kind": "cuda", "per_node": 4}', "a100 (sinfo, scontrol); give environments"),
        ("fpga:1,gpu:mi250x:8(S:0,2)", '{"kind": "rocm", "per_node": 8}', "mi250x (sinfo, scontrol)"),
        ("gpu:1g.10gb:2,gpu:h100:1", '{"kind": "cuda", "per_node": 1}', "h100"),
        ("gpu:2", '{"kind": "cuda", "per_node": 2}', "CHANGE: 2 GPUs (sinfo, scontrol); cuda or rocm"),
    ],
)
def test_gpus_of_a_node_are_declared(gres, written, said):
    text = text_of(slurm(CRAY | {"node": f"NodeName=x CoreSpecCount=0 Gres={gres} State=IDLE"}, OPENMPI))
    ast.parse(text)
    assert values(text, "gpus") == [written]
    assert said in text


def test_a_node_without_gpus_declares_none():
    assert "gpus=" not in text_of(slurm(CRAY | {"node": "NodeName=x Gres=(null) State=IDLE"}, OPENMPI))


def test_a_partition_of_many_kinds_becomes_several():
    text = text_of(slurm(GROWN, OPENMPI, MPICH))
    ast.parse(text)
    assert values(text, "access") == [
        '["--partition=all", "--exclusive", "--constraint=skylake"]',
        '["--partition=all", "--exclusive"]',
        '["--partition=new", "--exclusive"]',
    ]
    assert values(text, "cores_per_node") == ["48", "8", "96"]
    assert values(text, "threads_per_core") == ["2"]  # of the last one
    assert [line for line in changes(text) if "kinds of nodes" in line] == [
        "# CHANGE: all has 2 other kinds of nodes too: add what selects these alone"
    ]
    assert "accounting is off here, and it does without" in text


def test_the_launcher_of_each_mpi():
    text = text_of(slurm(CRAY, OPENMPI, MPICH))
    assert values(text, "launcher") == ['["mpirun"]', "slurm.SRUN_PMI2"]
    assert values(text, "mpicc") == ['"mpicc"', 'str(work_directory() / "mpi/mpich-5.0.2/bin/mpicc")']
    assert "env_vars" not in text  # HYDRA_BINDING is for MPICH's own launcher
    assert "from site_configs import slurm\n" in text


def test_pbs_tells_neither_sockets_nor_switches():
    text = text_of(pbs(PBS, OPENMPI))
    ast.parse(text)
    assert "from site_configs import pbs\n" in text
    assert values(text, "scheduler") == ["pbs.SCHEDULER"] * 2
    expected = ['["-q standard", "-l place=scatter:excl"]', '["-q large", "-l place=scatter:excl"]']
    assert (values(text, "access"), values(text, "sockets_per_node")) == (expected, ["0", "0"])
    said = changes(text)
    assert sum("PBS counts 96 CPUs" in line for line in said) == 1
    assert sum("sockets_per_node=0" in line for line in said) == 2
    assert "longest job 24 h 00 min" in text


def test_torque_tells_sockets():
    text = text_of(pbs(TORQUE, MPICH))
    assert values(text, "scheduler")[0] == "pbs.TORQUE"
    assert values(text, "sockets_per_node")[0] == "2"
    assert "1 of them not usable now" in text


def test_a_node_that_is_drained_now_is_counted():
    rows = [f"w|up|infinite|1-infinite|{state}|1|8|1|2000|{hosts}|" for state, hosts in
            (("idle", "n[1-3]"), ("drained", "n4"))]  # fmt: skip
    text = text_of(slurm(CRAY | {"sinfo": "\n".join(rows)}))
    assert values(text, "nodes") == ["4"]
    assert "of 4 that a job can have, 3 of them now (sinfo, scontrol)" in text


def test_a_machine_without_a_scheduler():
    text = text_of(PLAIN)
    ast.parse(text)
    assert (values(text, "scheduler"), values(text, "cores_per_node")) == (['"local"'], ["16"])
    assert values(text, "env_vars") == ['{"HYDRA_BINDING": "core"}']
    assert "login node" not in text and changes(text) == []


def test_slurm_that_nobody_told_the_sockets():
    """Eight CPUs without more are eight sockets to Slurm."""
    text = text_of(slurm(CRAY | {"sinfo": "w|up|infinite|1-infinite|idle|8|1|1|2000|n[1-4]|"}))
    assert values(text, "sockets_per_node") == ["1"]
    assert any("8 sockets of one core, its default" in line for line in changes(text))


def test_a_partition_of_which_nothing_is_usable():
    said = {"sinfo": "w|up|infinite|1-infinite|down|2|8|1|2000|n[1-4]|"}
    text = text_of(slurm(CRAY | said, MPICH))
    assert any("none of 4 is usable now" in line for line in changes(text))


def test_a_scheduler_of_which_nothing_is_read():
    facts = replace(PLAIN, scheduler=replace(LSF, notes=("not read",)))
    text = text_of(facts)
    ast.parse(text)
    keys = ("cores_per_node", "sockets_per_node", "nodes")
    assert [values(text, key)[0] for key in keys] == ["0", "0", "0"]
    assert "# - not read" in text and len(changes(text)) == 6


@pytest.mark.parametrize("said", [CRAY, PBS, TORQUE])
def test_what_is_written_hangs_on_what_a_scheduler_can_and_not_on_its_name(said):
    facts = slurm(said, OPENMPI) if said is CRAY else pbs(said, OPENMPI)
    named = facts.scheduler.title
    renamed = replace(facts, scheduler=replace(facts.scheduler, title="another name"))
    assert text_of(renamed).replace("another name", named) == text_of(facts)


def test_without_an_mpi_there_is_one_to_be_filled_in():
    unusable = Unusable("/usr/bin/mpicc", "path", "no licence")
    text = text_of(replace(PLAIN, mpis=LoginMpis((), (unusable,), ("not looked into: mpich/4.2",))))
    ast.parse(text)
    assert values(text, "library") == ['""']  # which site check refuses
    assert "# - /usr/bin/mpicc is not usable: no licence" in text
    assert "not looked into: mpich/4.2" in text
    assert any("no MPI was found" in line for line in changes(text))


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_name_of_a_machine_becomes_python(name: str, other: str):
    kind = NodeKind(("a",), sockets=1, cores=2, hardware_threads=2, option=f"--constraint={other}")
    queue = Queue(name, (kind, replace(kind, hosts=("b",), option="")))
    scheduler = replace(SLURM, query_commands=other, cluster=name, queues=(queue,), notes=(name,))
    mpis = LoginMpis((replace(OPENMPI, module=name, mpicc=other, library=name),), (), (other,))
    facts = replace(PLAIN, host=name, scheduler=scheduler, mpis=mpis, cray_modules=(name,))
    text = text_of(facts, choose_site_name(facts))
    tree = ast.parse(text)
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert calls == {"environment", "partition", "site", "Topology"}


@given(st.text(max_size=20))
def test_a_name_of_a_site_is_one(text: str):
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", clean_name(text))


@given(st.lists(st.text(max_size=9), max_size=9))
def test_names_are_distinct_and_allowed(texts: list[str]):
    names = choose_distinct_names(texts)
    assert len({name.lower() for name in names}) == len(texts)
    assert all(NAME.fullmatch(name) for name in names)


def test_hosts_that_are_numbered_are_alike():
    assert re.match(build_host_pattern("login03.example.org"), "login12")
    assert not re.match(build_host_pattern("login03"), "node12")


@pytest.mark.parametrize(
    ("environment", "name", "known"),
    [
        ({"LMOD_CMD": "x", "MODULESHOME": "x"}, "lmod", True),
        ({"MODULES_CMD": "x", "MODULESHOME": "x"}, "envmod", True),
        ({"MODULESHOME": "x"}, "nomod", False),
        ({}, "nomod", True),
    ],
)
def test_module_systems(environment, name, known):
    found = module_system(environment)
    assert (found.name, found.known) == (name, known)
    marked = changes(text_of(replace(PLAIN, modules=found)))
    assert any("modules_system" in line for line in marked) != known


# The command.


def write_site(work, progress, name="mine", output=None, mpis=None) -> int:
    """What the command does; wheels come from the package index."""
    return write.write_new_site(work, name, output, None, mpis, lambda: None, progress)


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    (tmp_path / "source" / "site_configs").mkdir(parents=True)
    return WorkDirectory(tmp_path / "home", tmp_path / "source")


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list:
    """The machine is a plain one; how often it was looked at."""
    times: list = []
    monkeypatch.setattr(survey, "survey_machine", lambda *_: times.append(1) or PLAIN)
    return times


def test_a_site_is_written_among_the_others_and_its_marks_are_told(work, progress, monkeypatch):
    monkeypatch.setattr(survey, "survey_machine", lambda *_: pbs(PBS, OPENMPI))
    assert write_site(work, progress) == 0
    path = work.source / "site_configs" / "mine.py"
    first, *marked, last = progress.console.file.getvalue().splitlines()
    assert first == f"wrote {path}"
    assert len(marked) == len(changes(path.read_text())) > 0
    number = int(marked[0].split()[1].rstrip(":"))
    assert "CHANGE:" in path.read_text().splitlines()[number - 1]
    assert last.endswith("./plumbline site check mine")


@plants("lost", "a file that is there", "`site new`", "", 2,
        "is there already and is not overwritten; choose another")  # fmt: skip
@pytest.mark.parametrize("make", ["file", "link", "directory"])
@pytest.mark.parametrize("named", [True, False])
def test_nothing_is_ever_overwritten(work, progress, looked, make: str, named: bool, declared):
    path = work.source / "site_configs" / "login03.py"
    makes = {"file": path.touch, "directory": path.mkdir}
    makes.get(make, lambda: path.symlink_to("nowhere"))()
    with declared.raises(UsageError):
        write_site(work, progress, "login03" if named else None)
    assert looked == ([] if named else [1])  # what is known before is said before a long look


def test_a_file_elsewhere_is_named_by_its_path(work, progress, looked, tmp_path: Path):
    path = tmp_path / "site.py"
    write_site(work, progress, None, path)
    assert f"./plumbline site try {path} " in path.read_text()
    assert progress.console.file.getvalue().strip().endswith(f"./plumbline site check {path}")


@plants("use", "a name that no site can have", "`site new`", "", 2,
        "write letters, digits, _ and - only")  # fmt: skip
@pytest.mark.parametrize("name", ["9x", "a b", "../x", "é"])
def test_a_name_that_no_site_can_have(work, progress, looked, name: str, declared: Declared):
    with declared.raises(UsageError):
        write_site(work, progress, name)


@plants("lost", "a place that cannot be written to", "`site new`", "", 2,
        "choose another place with --output")  # fmt: skip
def test_a_place_that_cannot_be_written_to(work, progress, looked, tmp_path, declared):
    (tmp_path / "file").touch()
    with declared.raises(UsageError):
        write_site(work, progress, None, tmp_path / "file" / "site.py")


@plants("schedulers", "a scheduler that does not answer", "`site new`", "", 2,
        "ask again when it answers, or --scheduler none")  # fmt: skip
def test_a_scheduler_that_does_not_answer_is_said(work, progress, monkeypatch, declared: Declared):
    def silent():
        raise SchedulerError("sinfo failed with exit code 1: no controller")

    monkeypatch.setattr(registry, "detect_scheduler", silent)
    with declared.raises(UsageError, match="no controller; ask again"):
        write_site(work, progress)


@plants("use", "a family of MPIs without wheels", "`site new --mpis`", "", 2,
        "--mpis: the package index has no 'mpic'")  # fmt: skip
def test_a_family_of_which_there_is_no_wheel(work, progress, monkeypatch, declared: Declared):
    monkeypatch.setattr(registry, "detect_scheduler", lambda: SLURM)
    with declared.raises(UsageError):
        write_site(work, progress, mpis=["mpic"])
